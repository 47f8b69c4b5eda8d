"""A thousand clients on each endpoint, and floods: what a good client beside them notices.

The crowd and the flood run in processes of their own. Every figure is compared with the same
client alone in the same run, since absolute times depend on the machine and its load.
"""

import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil

from benchmarks import Row, quantiles
from understudy.config.files import shipped_cells
from understudy.wire.zmtp import command, greeting, message

CLIENTS = 1000
SECONDS = 3.0
STOPS = 20
PROPERTIES = b"\x0bSocket-Type\0\0\0%c%s\x08Identity\0\0\0\0"
PING = message([b'{"type": "PING", "id": 1}'])
UPGRADE = (
    b"GET /ws/state HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
GET_NOW = b"GET /api/now HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CROWD = """
import select, socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hello = bytes.fromhex(sys.argv[4])
poll = select.epoll()
lines = {}
for _ in range(count):
    line = socket.create_connection((host, port))
    line.sendall(hello)
    lines[line.fileno()] = line
    poll.register(line, select.EPOLLIN)
poll.register(0, select.EPOLLIN)
lost = 0
quiet_at = time.monotonic() + 4
begun = False
while True:
    ready = poll.poll(0.5)
    if not begun and (not ready or time.monotonic() > quiet_at):
        begun = True
        print("there", flush=True)  # the first answers have been read
    for fd, _ in ready:
        if fd == 0:
            print(lost, flush=True)
            sys.exit()
        try:
            data = lines[fd].recv(65536)
        except OSError:
            data = b""
        if not data:
            poll.unregister(fd)
            lost += 1
"""
FLOOD = """
import select, socket, sys
host, port, hello, piece = sys.argv[1], int(sys.argv[2]), *map(bytes.fromhex, sys.argv[3:5])
piece *= 1 + 20000 // len(piece)
sent = 0
print("there", flush=True)
while not select.select([0], [], [], 0)[0]:
    with socket.create_connection((host, port)) as line:
        line.setblocking(False)
        try:
            line.send(hello)
            while not select.select([0], [], [], 0)[0]:
                can_read, can_write, _ = select.select([line], [line], [], 0.1)
                if can_read and not line.recv(1 << 20):
                    break
                if can_write:
                    sent += line.send(piece)
        except OSError:
            pass
print(sent, flush=True)
"""


@dataclass(frozen=True)
class Talk:
    """A dialogue with an endpoint: what a client says first, then again and again; and how an
    answer ends, for a client that is measured."""

    endpoint: str
    first: bytes
    request: bytes
    ends: bytes = b""


def rows() -> list[Row]:
    with running() as cell:
        talks = dialogues(cell)
        return [
            *(row for name, talk in talks.items() for row in crowd(cell, name, talk)),
            *(row for name, talk in talks.items() for row in flood(cell, name, talk)),
        ]


def dialogues(cell: "RunningCell") -> dict[str, Talk]:
    """One for each kind of endpoint of the default cell."""
    zmtp = greeting() + command(b"READY", PROPERTIES % (6, b"DEALER"))
    subscriber = greeting() + command(b"READY", PROPERTIES % (3, b"SUB")) + message([b"\x01"])
    now = json.dumps({"do": "now", "secret": cell.secret}).encode() + b"\n"
    frame = msgspec.msgpack.encode({"want": "frame", "secret": cell.secret})
    framed = struct.pack(">I", len(frame)) + frame
    return {
        "text": Talk("bench.text_tcp", b"GET_POS\n", b"GET_POS\n", b"\n"),
        "KUKA command": Talk("kuka.kuka_eki.command", b"", b"\xff" * 48),
        "KUKA telemetry": Talk("kuka.kuka_eki.telemetry", b"", b"x" * 48),
        "grblHAL": Talk("g60.grblhal", b"", b"?", b">\r\n"),
        "control": Talk("control", now, b'{"do": "now"}\n', b"\n"),
        "state": Talk("state", framed, framed),
        "HMI link": Talk("g60.hmi_link", zmtp + PING, PING, b"}"),
        "HMI status": Talk("g60.hmi_link.status", subscriber, command(b"PING", b"\0\0x")),
        "page websocket": Talk("hmi", UPGRADE, b"\x89\x80\0\0\0\0"),
        "page REST": Talk("hmi", GET_NOW, GET_NOW, b"}"),
    }


def crowd(cell: "RunningCell", name: str, talk: Talk) -> Iterator[Row]:
    """A thousand connections of an endpoint, and a client beside them: of the same endpoint if it
    answers requests, else of the text robot."""
    probe = talk if talk.ends else dialogues(cell)["text"]
    _, alone = measured(cell, probe)
    before = cell.memory()
    place = [*map(str, cell.address(talk.endpoint)), str(CLIENTS), talk.first.hex()]
    with helper(CROWD, *place) as ended:
        _, beside = measured(cell, probe)
        grown = cell.memory() - before
        lost = ended()
    what = f"{CLIENTS} × {name}: p99"
    note = f"{ms(alone)} alone; +{grown / 1e6:.0f} MB, {lost} lost"
    yield Row(what, ms(beside), note, f"{beside / alone:.1f}", "")


def flood(cell: "RunningCell", name: str, talk: Talk) -> Iterator[Row]:
    """One client that sends as fast as it can; a client of the text robot, and emergency stops."""
    text = dialogues(cell)["text"]
    _, alone = measured(cell, text)
    typical_alone, _ = quantiles(cell.stops())
    before = cell.memory()
    begun = time.perf_counter()
    place = [*map(str, cell.address(talk.endpoint)), talk.first.hex(), talk.request.hex()]
    with helper(FLOOD, *place) as ended:
        _, beside = measured(cell, text)
        stops = cell.stops()
        grown = cell.memory() - before
        sent = ended() / (time.perf_counter() - begun)
    note = f"{ms(alone)} alone; +{grown / 1e6:.0f} MB at {sent / 1e6:.1f} MB/s"
    yield Row(f"flood {name}: p99", ms(beside), note, f"{beside / alone:.1f}", "")
    typical, worst = quantiles(stops)[0], max(stops)
    yield Row(
        f"flood {name}: E-stop p50",
        f"{ms(typical)}; worst of {STOPS} {ms(worst)}",
        f"{ms(typical_alone)} alone",
        f"{typical / typical_alone:.1f}",
        "< 50 ms",
    )


def measured(cell: "RunningCell", talk: Talk) -> tuple[float, float]:
    """p50 and p99 of the answers to one client."""
    samples: list[float] = []
    until = time.perf_counter() + SECONDS
    with socket.create_connection(cell.address(talk.endpoint), 60) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if talk.first:
            answer_of(line, talk.first, talk.ends)
        while time.perf_counter() < until or len(samples) < 20:
            begun = time.perf_counter()
            answer_of(line, talk.request, talk.ends)
            samples.append(time.perf_counter() - begun)
            time.sleep(0.002)
    return quantiles(samples)


def answer_of(line: socket.socket, request: bytes, ends: bytes) -> None:
    line.sendall(request)
    data = b""
    while not data.endswith(ends):
        received = line.recv(65_536)
        assert received, "the connection was closed"
        data += received


# ── processes ──


@dataclass(frozen=True)
class RunningCell:
    """The default cell with its page, without its scenario (it loses requests)."""

    process: psutil.Process
    endpoints: dict[str, str]
    secret: str

    def address(self, endpoint: str) -> tuple[str, int]:
        host, _, port = self.endpoints[endpoint].rpartition("//")[2].rstrip("/").rpartition(":")
        return host, int(port)

    def memory(self) -> int:
        """Bytes of the cell and its page together."""
        there = (self.process, *self.process.children())
        return sum(int(each.memory_info().rss) for each in there)

    def stops(self) -> list[float]:
        """Seconds until emergency stops were answered, on a connection that is open, as the page
        has one."""
        samples: list[float] = []
        with socket.create_connection(self.address("control"), 60) as line:
            lines = line.makefile("rwb", buffering=0)

            def do(name: str) -> None:
                lines.write(json.dumps({"do": name, "secret": self.secret}).encode() + b"\n")
                assert json.loads(lines.readline())["ok"]

            for _ in range(STOPS):
                do("reset")
                begun = time.perf_counter()
                do("emergency_stop")
                samples.append(time.perf_counter() - begun)
            do("reset")
        return samples


@contextmanager
def running() -> Iterator[RunningCell]:
    with tempfile.TemporaryDirectory() as folder:
        ready, file = Path(folder) / "ready.json", Path(folder) / "cell.yaml"
        file.write_text(shipped_cells()["default"].read_text().partition("scenario:")[0])
        run = [sys.executable, "-m", "understudy", "run", str(file), "--ephemeral"]
        process = subprocess.Popen(
            [*run, "--ready-file", str(ready)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            found: dict[str, Any] = {"starting": ["hmi"]}
            while found["starting"]:
                time.sleep(0.1)
                found = json.loads(ready.read_text()) if ready.exists() else found
            yield RunningCell(psutil.Process(process.pid), found["endpoints"], found["secret"])
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def helper(script: str, *arguments: str) -> Iterator[Callable[[], int]]:
    """Runs a script until the function is called, which returns the number that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout

    def ended() -> int:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        return int(process.stdout.readline())

    try:
        assert process.stdout.readline() == b"there\n"
        yield ended
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
