"""The KUKA: jitter of its telemetry against a bare asyncio timer in the same run; records per
second."""

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import Row, quantiles
from benchmarks.bench_wire import connected, port_of, running
from understudy.app.build import load_cell

SECONDS, PERIOD = 10.0, 0.020
SETTLED = 1.0
"""Wait after the start: a cell that is ready still loads the kernels of the first motion."""
RECORDS = 2000
TIMER = """
import asyncio, socket, sys
class Timer(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.loop = transport, asyncio.get_running_loop()
        self.begun, self.count = self.loop.time(), 0
        self.tick()
    def tick(self):
        if self.transport.is_closing():
            return
        self.transport.write(bytes(128))
        self.count += 1
        self.loop.call_at(self.begun + self.count * 0.020, self.tick)
async def main():
    server = await asyncio.get_running_loop().create_server(Timer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def rows() -> list[Row]:
    return [jitter(), records()]


def jitter() -> Row:
    """Jitter while the robot moves; both are read at the same time."""
    with ExitStack() as stack:
        _, endpoints = stack.enter_context(running("kuka_eki", "--no-hmi"))
        time.sleep(SETTLED)
        client, ours = (
            stack.enter_context(connected(port_of(endpoints[f"kuka.kuka_eki.{name}"])))
            for name in ("command", "telemetry")
        )
        peer = stack.enter_context(connected(stack.enter_context(timer())))
        client.sendall(b"".join(back_and_forth(10)))
        found: tuple[list[float], list[float]] = ([], [])
        listeners = [
            threading.Thread(target=listen, args=(line, late))
            for line, late in zip((ours, peer), found, strict=True)
        ]
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join()
    (_, p99), (_, bare99) = map(quantiles, found)
    ratio = f"{p99 / bare99:.1f}"
    return Row("20 ms period, p99 off by", ms(p99), f"{ms(bare99)} bare timer", ratio, "< 5 ms")


def records() -> Row:
    """Streams records on virtual time, with a window that is never empty."""
    cell = load_cell("kuka_eki")
    client = cell.connect("kuka.kuka_eki.command")
    client.say(b"".join(back_and_forth(RECORDS, far=1)))
    begun = time.perf_counter()
    cell.run_while_busy()
    took = time.perf_counter() - begun
    return Row("records carried out", f"{RECORDS / took:.0f}/s", "32/s real client", "", "")


def back_and_forth(count: int, far: float = 200.0) -> list[bytes]:
    pack = struct.Struct("<ii8fi4x").pack
    return [pack(n, 0, far * (n % 2), 0, 0, 0, 0, 0, 100, 0, 65) for n in range(1, count + 1)]


def listen(line: socket.socket, late: list[float]) -> None:
    end, before = time.perf_counter() + SECONDS, 0.0
    while time.perf_counter() < end:
        line.recv(128, socket.MSG_WAITALL)
        now = time.perf_counter()
        if before:
            late.append(abs(now - before - PERIOD))
        before = now


@contextmanager
def timer() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", TIMER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms"
