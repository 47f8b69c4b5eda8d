"""The wire: round trips against a bare asyncio echo server, idle load, start, fixtures."""

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from benchmarks import Row, quantiles
from understudy.app.stand_in import StandIn

ROUNDS, TRIPS = 20, 500
SETTLING_SECONDS = 4.0
"""After the start the cell still prepares motions."""
IDLE_SECONDS = 10.0
ECHO = """
import asyncio, sys
class Echo(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.transport.write(data)
async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def rows() -> list[Row]:
    return [
        *round_trips(),
        idle("text_robot", "< 1 %"),
        idle("default", "< 3 %"),
        start(),
        fixtures(),
    ]


def round_trips() -> list[Row]:
    with ExitStack() as stack:
        _, endpoints = stack.enter_context(running("text_robot", "--no-hmi"))
        ours = stack.enter_context(connected(port_of(endpoints["bench.text_tcp"])))
        peer = stack.enter_context(connected(stack.enter_context(echo_server())))
        samples: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for line, found in zip((ours, peer), samples, strict=True):
                found.extend(trip(line) for _ in range(TRIPS))
    (p50, p99), (echo50, echo99) = map(quantiles, samples)
    return [
        Row("GET_POS p50", ms(p50), f"{ms(echo50)} bare echo", f"{p50 / echo50:.1f}", "< 0.3 ms"),
        Row("GET_POS p99", ms(p99), f"{ms(echo99)} bare echo", f"{p99 / echo99:.1f}", "< 2 ms"),
    ]


def idle(cell: str, aim: str) -> Row:
    with running(cell, "--no-hmi") as (process, _):
        watched = psutil.Process(process.pid)
        time.sleep(SETTLING_SECONDS)
        before = sum(watched.cpu_times()[:2])
        time.sleep(IDLE_SECONDS)
        share = (sum(watched.cpu_times()[:2]) - before) / IDLE_SECONDS
    return Row(f"idle {cell}", f"{share:.2%} of a core", "", "", aim)


def start() -> Row:
    ours, peer = [], []
    for _ in range(5):
        begun = time.perf_counter()
        with running("text_robot", "--no-hmi"):
            ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
        peer.append(time.perf_counter() - begun)
    a, b = quantiles(ours)[0], quantiles(peer)[0]
    return Row("run to ready", f"{a:.2f} s", f"{b:.2f} s bare python", f"{a / b:.1f}", "< 2 s")


def fixtures() -> Row:
    begun = time.perf_counter()
    for _ in range(100):
        with StandIn("text_robot") as robot:
            assert robot.ask("GET_POS")
    took = time.perf_counter() - begun
    return Row("100 fixtures", f"{took:.2f} s", "", "", "< 5 s")


@contextmanager
def running(cell: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = ["-m", "understudy", "run", cell, "--ephemeral", *options]
        command += ["--ready-file", str(ready)]
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
        try:
            while not ready.exists():
                time.sleep(0.005)
            yield process, json.loads(ready.read_text())["endpoints"]
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def echo_server() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield line


def trip(line: socket.socket) -> float:
    begun = time.perf_counter()
    line.sendall(b"GET_POS\n")
    line.recv(200)
    return time.perf_counter() - begun


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms"
