"""The page: its CPU load, and its effect on the jitter of the cell's telemetry."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import websockets

from benchmarks import Row, quantiles
from benchmarks.bench_kuka import back_and_forth, listen, ms, timer
from benchmarks.bench_wire import connected, port_of, running
from understudy.app.ready_file import running_cells

SECONDS = 10.0
PAGE_SECONDS = 20.0
AIMS = {1: "≤ 6 %", 3: "≤ 12 %"}


def rows() -> list[Row]:
    with running("default") as (process, endpoints):
        page = page_of(process.pid)
        cell = psutil.Process(process.pid)
        watched = [cell, *cell.children()]
        quiet = cost(watched, page, 0)
        costs = {count: cost(watched, page, count) for count in AIMS}
        late = {count: jitter(endpoints, page, count) for count in (0, 3)}
    found = [
        Row(
            f"{count} browser(s) at 30 Hz, cell and page",
            f"{share:.1%} of a core",
            f"{quiet:.1%} without a browser",
            "",
            AIMS[count],
        )
        for count, share in costs.items()
    ]
    for count, (ours, bare) in late.items():
        name, peer = f"EKI telemetry p99 off by, {count} browsers", f"{ms(bare)} bare timer"
        found.append(Row(name, ms(ours), peer, f"{ours / bare:.1f}", "< 5 ms"))
    return found


def page_of(pid: int) -> str:
    """Address of the page of a cell, once it answers."""
    end = time.monotonic() + PAGE_SECONDS
    while time.monotonic() < end:
        for ready in running_cells():
            if ready.pid == pid and "hmi" in ready.endpoints:
                return ready.endpoints["hmi"]
        time.sleep(0.1)
    raise TimeoutError("the page did not start")


def cost(watched: list[psutil.Process], page: str, browsers: int) -> float:
    """Share of a core that the processes use together."""
    with looking(page, browsers):
        time.sleep(1.0)
        before = spent(watched)
        time.sleep(SECONDS)
        return (spent(watched) - before) / SECONDS


def spent(watched: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in watched)


def jitter(endpoints: dict[str, str], page: str, browsers: int) -> tuple[float, float]:
    """p99 of the telemetry's jitter while the robot moves, and of a bare timer at the same time."""
    with ExitStack() as stack:
        command, telemetry = (
            stack.enter_context(connected(port_of(endpoints[f"kuka.kuka_eki.{name}"])))
            for name in ("command", "telemetry")
        )
        bare = stack.enter_context(connected(stack.enter_context(timer())))
        stack.enter_context(looking(page, browsers))
        command.sendall(b"".join(back_and_forth(10)))
        late: tuple[list[float], list[float]] = ([], [])
        other = threading.Thread(target=listen, args=(bare, late[1]))
        other.start()
        listen(telemetry, late[0])
        other.join()
    (_, ours), (_, theirs) = map(quantiles, late)
    return ours, theirs


@contextmanager
def looking(page: str, browsers: int) -> Iterator[None]:
    """Websocket clients that read every frame, in a thread of their own."""
    loop = asyncio.new_event_loop()

    async def look() -> None:
        async with websockets.connect(page.replace("http", "ws") + "/ws/state") as line:
            async for _ in line:
                pass

    async def all_of_them() -> None:
        await asyncio.gather(*(look() for _ in range(browsers)))

    task = loop.create_task(all_of_them())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    loop.call_soon_threadsafe(task.cancel)
    thread.join(5.0)
