"""A face on a pseudo-terminal."""

import asyncio
import os
import termios
from pathlib import Path
from typing import Any

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.wire.connection import Connection
from understudy.wire.interface import LARGEST_BACKLOG
from understudy.wire.pty import PtyServer

CELL = "robots: {machine: {kind: machine, faces: {grblhal: {pty: true}}}}\n"
PATIENCE_S = 60.0


async def talk(path: str, said: bytes, until: bytes) -> bytes:
    """Sends bytes; returns the answer up to and including ``until``."""
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    loop, received, through = asyncio.get_running_loop(), bytearray(), asyncio.Event()

    def read() -> None:
        received.extend(os.read(terminal, 4096))
        if until in received:
            through.set()

    loop.add_reader(terminal, read)
    try:
        os.write(terminal, said)
        await asyncio.wait_for(through.wait(), PATIENCE_S)
    finally:
        loop.remove_reader(terminal)
        os.close(terminal)
    return bytes(received)


async def serve(cell: Path) -> list[bytes]:
    live = Live(load_config(str(cell)), Options(rate=1.0, ephemeral=True))
    await live.start()
    try:
        endpoint = live.endpoints["machine.grblhal"]
        assert endpoint.startswith("pty:/dev/")
        path = endpoint.removeprefix("pty:")
        first = await talk(path, b"$I\n", b"ok\r\n")
        return [first, await talk(path, b"G91\n$G\n", b"]\r\nok\r\n")]
    finally:
        await live.stop()


def test_a_terminal_stays_one_session_when_programs_close_and_open_it(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL)
    first, second = asyncio.run(serve(cell))
    assert first.startswith(b"\r\nGrblHAL 1.1f"), "the banner waits for the first program"
    assert b"[AUX IO:8,8,4,4]\r\nok\r\n" in first
    assert b"G91" in second.splitlines()[1]
    assert b"GrblHAL 1.1f" not in second, "closing and opening starts no session"


async def closed_and_opened(cell: Path) -> list[bytes]:
    live = Live(load_config(str(cell)), Options(rate=1.0, ephemeral=True))
    await live.start()
    try:
        path = live.endpoints["machine.grblhal"].removeprefix("pty:")
        received = [await talk(path, b"G91\n", b"ok\r\n")]
        live._pump.close(["machine.grblhal"], "a test")
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        os.write(terminal, b"G90\n")
        await asyncio.sleep(0.05)
        os.write(terminal, b"G20\n")
        await asyncio.sleep(0.05)
        os.close(terminal)
        live._pump.close(["machine.grblhal"], "")
        return [*received, await talk(path, b"$G\n", b"]\r\nok\r\n")]
    finally:
        await live.stop()


def test_bytes_to_a_closed_endpoint_on_a_terminal_are_dropped(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL)
    _, second = asyncio.run(closed_and_opened(cell))
    assert second.startswith(b"\r\nGrblHAL 1.1f"), "a new session"
    assert b"G21 G91" in second, "bytes to the closed endpoint are dropped"


async def flooded(cell: Path) -> tuple[int, int]:
    """Sends `?` without reading; returns the bytes that were taken, and the most that waited."""
    live = Live(load_config(str(cell)), Options(rate=1.0, ephemeral=True))
    await live.start()
    server = next(each for each in live._servers if isinstance(each, PtyServer))
    path = live.endpoints["machine.grblhal"].removeprefix("pty:")
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    taken = most = refused = 0
    try:
        while refused < 10_000:  # turns in a row in which the terminal takes nothing
            try:
                taken += os.write(terminal, b"?" * 1000)
                refused = 0
            except BlockingIOError:
                refused += 1
            most = max(most, len(server._unsent))
            await asyncio.sleep(0)
    finally:
        os.close(terminal)
        await live.stop()
    return taken, most


def test_a_program_that_writes_and_never_reads_is_not_read_from(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL)
    taken, most = asyncio.run(flooded(cell))
    assert taken < 100_000, "the terminal's own buffers, and what was answered"
    assert 0 < most <= 2 * LARGEST_BACKLOG


async def left_unread(cell: Path) -> bytes:
    """A program asks many times, reads nothing and is gone; the next one opens the port afresh."""
    live = Live(load_config(str(cell)), Options(rate=1.0, ephemeral=True))
    await live.start()
    server = next(each for each in live._servers if isinstance(each, PtyServer))
    read, receive = 0, live._pump.receive

    def count(connection: Connection, data: Any) -> None:
        nonlocal read
        receive(connection, data)
        read += len(data)

    live._pump.receive = count  # type: ignore[method-assign]
    path = live.endpoints["machine.grblhal"].removeprefix("pty:")
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        asked = 0
        async with asyncio.timeout(PATIENCE_S):
            while not server._unsent:  # the terminal takes some answers itself
                asked += os.write(terminal, b"?" * 10)
                while read < asked:  # noqa: ASYNC110
                    await asyncio.sleep(0)
        os.close(terminal)
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        termios.tcflush(terminal, termios.TCIFLUSH)
        async with asyncio.timeout(PATIENCE_S):
            while server._unsent or server._discarding:  # noqa: ASYNC110
                await asyncio.sleep(0)
        return await talk(path, b"$G\n", b"]\r\nok\r\n")
    finally:
        os.close(terminal)
        await live.stop()


def test_a_program_that_discards_old_input_sees_none_of_it(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL)
    answer = asyncio.run(left_unread(cell))
    assert answer.startswith(b"[GC:"), "pyserial discards input when it opens a port"
    assert answer.count(b"\n") == 2
