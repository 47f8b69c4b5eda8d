"""A stop on the wires of a cell, while a long program is read: it is answered first.

Reading takes dozens of turns of the event loop, a round trip on a wire a few. Nothing here
measures time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.hmi.link import CellLink
from understudy.ports.hmi import Later

CELL = """
robots:
  g60: {kind: arm, model: g60, faces: {grblhal: {}, hmi_link: {}}}
  bench: {kind: text_robot, faces: {text_tcp: {}}}
"""
PROGRAM = "G90\nG1 F1000 X400 Y0 Z400 A180 B0 C0\n" + "G1 X410\nG1 X400\n" * 60_000
Stop = Callable[[], Awaitable[object]]


async def line_client(live: Live, endpoint: str, sent: bytes, answer: bytes) -> Stop:
    """A stop over TCP: ends with the line that begins with the answer."""
    host, port = live.endpoints[endpoint].removeprefix("tcp://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))

    async def stop() -> None:
        writer.write(sent)
        while not (line := await reader.readline()).startswith(answer):
            assert line, f"{endpoint} was closed"
        writer.close()
        await writer.wait_closed()

    return stop


async def link_client(live: Live) -> Stop:
    link = CellLink(live.endpoints["g60.hmi_link"], live.endpoints["g60.hmi_link.status"])
    await link.start()
    await link.call("now", role="viewer")

    async def stop() -> None:
        await link.call("emergency_stop", role="operator")
        await link.stop()

    return stop


CLIENTS: dict[str, Callable[[Live], Awaitable[Stop]]] = {
    "reset_byte": lambda live: line_client(live, "g60.grblhal", b"\x18", b"GrblHAL"),
    "door_byte": lambda live: line_client(live, "g60.grblhal", b"\x84?", b"<Door"),
    "text_stop": lambda live: line_client(live, "bench.text_tcp", b"STOP\n", b"OK Emergency stop"),
    "hmi_link": link_client,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stop_on_a_wire_is_answered_before_heavy_work(tmp_path: Path, client: str) -> None:
    (tmp_path / "cell.yaml").write_text(CELL)

    async def test() -> None:
        live = Live(load_config(str(tmp_path / "cell.yaml")), Options(rate=1.0, ephemeral=True))
        await live.start()
        try:
            stop = await CLIENTS[client](live)
            given = {"robot": "g60", "text": PROGRAM}
            loading: Any = live.commands.call("load_program", given, "operator")
            assert isinstance(loading, Later)
            order: list[str] = []
            loaded: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            loading.then(lambda _: order.append("program"))
            loading.then(loaded.set_result)
            await stop()
            order.append("stop")
            assert not isinstance(await loaded, Refused)
            assert order == ["stop", "program"]
        finally:
            await live.stop()

    asyncio.run(test())
