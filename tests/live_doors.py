"""A live cell with one of its doors open, for tests that are clients of the door on a websocket."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from random import Random
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from understudy.app.live import Live, Options
from understudy.config import load_config, read_config
from understudy.doors.websocket import LARGEST_MESSAGE

PATIENCE_S = 60
TOKEN = "a-token-for-tests-1"
BENCH = "robots:\n  bench: {kind: text_robot}\n"
Scene = Callable[[Live, str], Awaitable[None]]
"""Is given the cell and the address of the door."""
OpenDoor = Callable[[Live, str], AbstractAsyncContextManager[dict[str, str]]]


def in_cell(
    open_door: OpenDoor,
    scene: Scene,
    cell: str = "default",
    *,
    value: str = "0",
    rate: float = 10.0,
    **options: Any,
) -> None:
    """``cell``: a name, or the text of a cell file; ``value``: that of the option of the door."""

    async def run() -> None:
        config = read_config(cell, "cell.yaml") if "\n" in cell else load_config(cell)
        live = Live(config, Options(rate=rate, ephemeral=True, **options))
        await live.start()
        try:
            async with open_door(live, value) as found:
                (address,) = found.values()
                await asyncio.wait_for(scene(live, address), PATIENCE_S)
        finally:
            await live.stop()

    asyncio.run(run())


async def printed(*command: str, env: dict[str, str]) -> Any:
    """What a client of another maker prints, as JSON."""
    pipe = subprocess.PIPE
    client = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=env)
    said, problem = await client.communicate()
    assert client.returncode == 0, problem.decode()
    return json.loads(said)


class JsonClient:
    """A client that keeps what it has received until it is taken."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []

    async def send(self, op: str, **values: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **values}))

    async def receive(self) -> None:
        self.heard.append(json.loads(await self.socket.recv()))

    async def next(self, **wanted: Any) -> Any:
        """The next message with these values, of those that were not taken yet."""
        while True:
            for message in self.heard:
                if all(message.get(key) == value for key, value in wanted.items()):
                    self.heard.remove(message)
                    return message
            await self.receive()


# ── nonsense ────────────────────────────────────────────────────────────────────────────────────

Words = tuple[str, ...]


def _nonsense(chance: Random, values: tuple[Any, ...], keys: Words, depth: int = 0) -> Any:
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return chance.choice(values)
    inside = (_nonsense(chance, values, keys, depth + 1) for _ in range(chance.randrange(4)))
    return list(inside) if kind == 6 else {chance.choice(keys): each for each in inside}


def nonsense(
    chance: Random, operations: Words, values: tuple[Any, ...], keys: Words, inner_keys: Words = ()
) -> list[bytes | str]:
    """Frames of no meaning: broken ones, and objects of these operations, keys and values."""
    frames: list[bytes | str] = [
        "{", "[]", "7", '"', "[" * 100_000, '{"op":' * 5_000, b"\xff\xfe", "x" * 1_000_000,
        '{"op": []}',
    ]  # fmt: skip
    for _ in range(300):
        given = {k: _nonsense(chance, values, keys + inner_keys) for k in chance.sample(keys, 5)}
        frames.append(json.dumps({**given, "op": chance.choice(operations)}))
    return frames


async def check_too_large_a_message_ends_the_connection(socket: ClientConnection) -> None:
    with suppress(ConnectionClosed):
        await socket.send("x" * (LARGEST_MESSAGE + 1))
    await asyncio.wait_for(socket.wait_closed(), PATIENCE_S)


# ── floods ──────────────────────────────────────────────────────────────────────────────────────

FLOOD = """
import sys
from websockets.sync.client import connect

address, message, *subprotocols = sys.argv[1:]
with connect(address, subprotocols=subprotocols or None) as socket:
    print("ready", flush=True)
    while True:
        socket.send(message)
"""
DEAF_TURNS = 2000


async def check_stop_beside_a_deaf_flood(
    deaf: Any, question: str | bytes, stop: Callable[[], Awaitable[None]]
) -> None:
    """A client asks and reads nothing, until nothing more is read from it; then ``stop``."""

    async def flood() -> None:
        while True:
            await deaf.send(question)

    deaf.transport.pause_reading()
    flooding = asyncio.ensure_future(flood())
    for _ in range(DEAF_TURNS):
        await asyncio.sleep(0)
    await stop()
    assert not flooding.done()
    flooding.cancel()
    deaf.transport.abort()


async def check_stops_beside_a_flood(
    address: str,
    message: str,
    stop: Callable[[], Awaitable[Any]],
    reset: Callable[[], Awaitable[Any]],
    *subprotocols: str,
) -> None:
    """Another process sends as fast as it can: 95 % of 200 stops take less than 50 ms."""
    command = sys.executable, "-c", FLOOD, address, message, *subprotocols
    flood = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert flood.stdout is not None
    await flood.stdout.readline()
    took = []
    try:
        for _ in range(200):
            began = time.perf_counter()
            await stop()
            took.append(time.perf_counter() - began)
            await reset()
    finally:
        flood.kill()
        await flood.wait()
    took.sort()
    print(f"emergency stop: median {took[100] * 1e3:.1f} ms, 95 % {took[190] * 1e3:.1f} ms")
    assert took[190] < 0.05, took[-20:]
