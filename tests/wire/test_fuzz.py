"""A whole cell in its own process gets garbage on every endpoint, while good clients are answered.

`make soak` sends UNDERSTUDY_FUZZ_MB (1000), `make test` a small part of it.
"""

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
import zmq
from tests.wire.garbage import ZMTP, piece

from understudy.wire.zmtp import LARGEST_MESSAGE

MEGABYTE = 1_000_000
PATIENCE_S = 120.0
ATTACKERS = 3
"""Attacking connections of each endpoint."""
LARGEST_GROWTH = 60 * MEGABYTE
"""Of the memory of each process, beyond what it had after the first tenth of the garbage."""


@dataclass
class WholeCell:
    """`understudy run` with its page, in a process of its own."""

    process: subprocess.Popen[bytes]
    log: Path
    endpoints: dict[str, str] = field(default_factory=dict)
    secret: str = ""

    def address(self, endpoint: str) -> tuple[str, int]:
        host, _, port = self.endpoints[endpoint].rpartition("//")[2].rstrip("/").rpartition(":")
        return host, int(port)

    def memory(self) -> dict[int, int]:
        """Resident bytes of the cell's process and of its page's."""
        own = psutil.Process(self.process.pid)
        return {each.pid: each.memory_info().rss for each in (own, *own.children())}


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeCell]:
    folder = tmp_path_factory.mktemp("cell")
    ready, log = folder / "ready.json", folder / "log.txt"
    run = [sys.executable, "-m", "understudy", "run", "default", "--ephemeral"]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*run, "--ready-file", str(ready)], stdout=written, stderr=written
        )
    try:
        until = time.monotonic() + 3 * PATIENCE_S
        found: dict[str, Any] = {"starting": ["hmi"]}
        while found["starting"]:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
            found = json.loads(ready.read_text()) if ready.exists() else found
        yield WholeCell(process, log, found["endpoints"], found.get("secret", ""))
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


# ── garbage ──


@dataclass
class Attack:
    """Garbage that is still to be sent to one endpoint."""

    left: int
    chance: Random

    async def attack(self, address: tuple[str, int]) -> None:
        """Connects, sends garbage in pieces, and leaves in one of several ways, again and again."""
        while self.left > 0:
            try:
                reader, writer = await asyncio.open_connection(*address)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            with suppress(OSError, TimeoutError):
                await self._talk(reader, writer)
            await self._leave(writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reads = self.chance.random() < 0.7
        for _ in range(self.chance.randrange(1, 30)):
            data = piece(self.chance)
            if self.chance.random() < 0.05:
                data = data[:50]
                for at in range(len(data)):  # a slow writer
                    writer.write(data[at : at + 1])
                    await asyncio.sleep(0.001)
            else:
                writer.write(data)
            try:
                async with asyncio.timeout(0.2):  # it may be that it is not read from any more
                    await writer.drain()
            finally:  # what has left this process counts
                self.left -= max(0, len(data) - writer.transport.get_write_buffer_size())
            if reads:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.002):
                        await reader.read(65_536)
            if self.left <= 0 or writer.is_closing() or reader.at_eof():
                return

    async def _leave(self, writer: asyncio.StreamWriter) -> None:
        if self.chance.random() < 0.3:
            raw = writer.get_extra_info("socket")
            if raw is not None and raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


# ── good clients ──


def check_good_clients(cell: WholeCell) -> None:
    """One request on each kind of endpoint, over a new connection, is answered as always."""
    for check in (check_grblhal, check_control, check_link, check_page):
        begun = time.monotonic()
        try:
            check(cell)
        except (OSError, zmq.ZMQError) as problem:
            problem.add_note(f"{check.__name__}, after {time.monotonic() - begun:.1f} s")
            raise


def check_grblhal(cell: WholeCell) -> None:
    """grblHAL serves its newest connection: if an attacker is newer, the client connects again."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with (
            suppress(TimeoutError),
            socket.create_connection(cell.address("g60.grblhal"), 0.5) as line,
        ):
            line.sendall(b"?")
            data = b""
            while received := line.recv(4096):
                data += received
                if b">" in data:
                    return
    raise TimeoutError


def check_control(cell: WholeCell) -> None:
    with socket.create_connection(cell.address("control"), PATIENCE_S) as line:
        line.sendall(json.dumps({"do": "now", "secret": cell.secret, "id": 7}).encode() + b"\n")
        answer = json.loads(line.makefile("rb").readline())
        assert (answer["id"], answer["ok"]) == (7, True)


def check_link(cell: WholeCell) -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as link:
        link.set(zmq.LINGER, 0)
        link.set(zmq.RCVTIMEO, round(1000 * PATIENCE_S))
        link.connect(cell.endpoints["g60.hmi_link"])
        link.send(b'{"type": "PING", "id": 5}')
        assert json.loads(link.recv())["id"] == 5


def check_page(cell: WholeCell) -> None:
    with urlopen(cell.endpoints["hmi"] + "/api/now", timeout=PATIENCE_S) as answer:
        assert "now_s" in json.load(answer)


async def send_garbage(cell: WholeCell, size: int, seed: int) -> int:
    """Sends so many bytes; returns how often good clients were answered meanwhile."""
    attacks = {
        cell.address(name): Attack(size // len(cell.endpoints), Random(f"{seed} {name}"))
        for name in cell.endpoints
    }
    attackers = [
        asyncio.create_task(attack.attack(address))
        for address, attack in attacks.items()
        for _ in range(ATTACKERS)
    ]
    checks = 0
    while any(attack.left > 0 for attack in attacks.values()):
        await asyncio.to_thread(check_good_clients, cell)
        checks += 1
    await asyncio.gather(*attackers)
    return checks


WHOLE_MB = int(os.environ.get("UNDERSTUDY_FUZZ_MB", "1000"))


@pytest.mark.parametrize(
    "size",
    [40 * MEGABYTE, pytest.param(WHOLE_MB * MEGABYTE, marks=pytest.mark.soak)],
    ids=["part", "whole"],
)
def test_garbage_on_every_endpoint_takes_no_memory_and_good_clients_are_answered(
    cell: WholeCell, size: int
) -> None:
    check_good_clients(cell)
    asyncio.run(send_garbage(cell, size // 10, seed=1))
    before = cell.memory()
    begun = time.monotonic()
    checks = asyncio.run(send_garbage(cell, size - size // 10, seed=2))
    after = cell.memory()
    print(
        f"\n{size // MEGABYTE} MB in {time.monotonic() - begun:.0f} s, {checks} rounds of checks; "
        f"memory, MB: {[b // MEGABYTE for b in before.values()]} before, "
        f"{[a // MEGABYTE for a in after.values()]} after"
    )
    assert checks > 0
    for pid, memory in after.items():
        assert memory - before.get(pid, memory) < LARGEST_GROWTH
    check_good_clients(cell)
    text = cell.log.read_text()
    assert "Traceback" not in text, text[text.index("Traceback") - 500 :][:3000]


# ── one peer that never ends ──

FRAME = b"\x03" + struct.pack(">Q", 1 << 20) + bytes(1 << 20)
ENDLESS = {
    "g60.hmi_link": (ZMTP, FRAME),
    "g60.hmi_link.status": (ZMTP.replace(b"\x06DEALER", b"\x03SUB"), FRAME),
    "control": (b'{"do": "', b"x" * 65_536),
    "state": (struct.pack(">I", 1 << 31), b"x" * 65_536),
    "bench.text_tcp": (b"", b"x" * 65_536),
    "g60.grblhal": (b"", b"x" * 65_536),
}
"""Endpoint → how a message begins, and what is sent of it without end."""


@pytest.mark.parametrize(
    "size",
    [20 * MEGABYTE, pytest.param(400 * MEGABYTE, marks=pytest.mark.soak)],
    ids=["part", "whole"],
)
@pytest.mark.parametrize("endpoint", ENDLESS)
def test_a_message_that_never_ends_takes_no_memory(
    cell: WholeCell, endpoint: str, size: int
) -> None:
    begin, more = ENDLESS[endpoint]
    before, peak, sent = cell.memory()[cell.process.pid], 0, 0
    with socket.create_connection(cell.address(endpoint), PATIENCE_S) as line:
        line.sendall(begin)
        line.settimeout(1)  # an endpoint that reads no more, or hangs up, ends the attack
        with suppress(OSError):
            while sent < size:
                sent += line.send(more)
                if sent // MEGABYTE % 4 == 0:
                    peak = max(peak, cell.memory()[cell.process.pid])
        peak = max(peak, cell.memory()[cell.process.pid])
        check_good_clients(cell)
    assert peak - before < 2 * LARGEST_MESSAGE, f"{peak - before} bytes of memory for {sent} sent"
