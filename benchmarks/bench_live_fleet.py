"""A live fleet at a real NATS server: the CPU time of its process, and how late its messages are.

Every robot drives in a circle and has 50 ticks, 13 messages (heartbeat 1, state 10, telemetry 2)
and 10 lidar looks a second. The peer is what one writes by hand in an afternoon: Python objects
that are stepped one by one, `json` and nats-py, without lidar, commands and JetStream; it runs
after ours, for fewer robots, and its figure is scaled to the same number.

UNDERSTUDY_BENCH_ROBOTS=1000,5000,10000 chooses other numbers of robots, UNDERSTUDY_BENCH_DRIVING=0
robots that stand: these tick only when a message is due. UNDERSTUDY_BENCH_SHARDS=2 divides them
among processes (`--shards`; auto by default). The client that measures reads the states of 100
robots, so that it takes little of the processors.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import nats
import psutil

from benchmarks import Row
from understudy.config.files import shipped_cells, shipped_robot_files

ROBOTS = os.environ.get("UNDERSTUDY_BENCH_ROBOTS", "1000")
SECONDS = float(os.environ.get("UNDERSTUDY_BENCH_SECONDS", "20"))
DRIVING = os.environ.get("UNDERSTUDY_BENCH_DRIVING", "1") != "0"
CIRCLE = {"commandType": "MOVE_VELOCITY", "parameters": {"linear": 0.25, "angular": 0.5}}
SHARDS = os.environ.get("UNDERSTUDY_BENCH_SHARDS", "auto")
PEER_ROBOTS = 200
STARTING_SECONDS = 300
LATE_S = 0.02
"""A message is late if it arrives more than a tick after its time stamp. The clock of a process is
compared with that of the client at the fastest of its messages."""
PEER = """
import asyncio, json, math, sys, time, nats
count, seconds = int(sys.argv[2]), float(sys.argv[3])

class Robot:
    def __init__(self, n):
        self.name, self.x, self.y, self.yaw, self.v, self.w = f"robot-{n}", 0.0, 0.0, 0.0, 0.0, 0.0
    def step(self, dt):
        self.v += max(-0.016, min(0.016, 0.5 - self.v))
        self.w += max(-0.02, min(0.02, 0.2 - self.w))
        self.x += self.v * math.cos(self.yaw) * dt
        self.y += self.v * math.sin(self.yaw) * dt
        self.yaw += self.w * dt
    def state(self):
        motor = {"connected": True, "mode": "MOVING", "position": self.x, "velocity": self.v}
        payload = {"pose": {"x": self.x, "y": self.y, "yaw": self.yaw}, "status": "RUNNING",
                   "velocity": {"linear": self.v, "angular": self.w}, "batteryPercent": 80.0,
                   "motors": {"drive_left": motor, "drive_right": motor, "lift": motor}}
        return json.dumps({"payloadVersion": 1, "messageId": "x" * 36, "robotId": self.name,
                           "ts": "2026-01-01T00:00:00.000Z", "payload": payload}).encode()

async def main():
    client = await nats.connect(sys.argv[1])
    robots = [Robot(n) for n in range(count)]
    began, used = time.monotonic(), time.process_time()
    for tick in range(int(seconds * 50)):
        for n, robot in enumerate(robots):
            robot.step(0.02)
            if (tick + n) % 50 % 4 == 0:
                await client.publish(f"bench.{robot.name}.state", robot.state())
        await asyncio.sleep(max(0.0, began + (tick + 1) / 50 - time.monotonic()))
    print((time.process_time() - used) / (time.monotonic() - began))

asyncio.run(main())
"""


class Figures(NamedTuple):
    """`cpu`: of the robots' processes, in cores. `server_cpu`: of the NATS server, in cores.
    `messages`: per robot and second."""

    shards: int
    cpu: float
    server_cpu: float
    messages: float
    late: float


@contextmanager
def fleet(robots: int) -> Iterator[tuple[psutil.Process, str]]:
    """A running cell, and the address of its server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = json.loads(shipped_robot_files()["amr"].read_text())
        document["streams"] = {"heartbeatHz": 1, "stateHz": 10, "telemetryHz": 2, "trafficHz": 0}
        (folder / "bench.json").write_text(json.dumps(document))
        text = shipped_cells()["hall"].read_text().replace("amr.json", "bench.json")
        (folder / "hall.yaml").write_text(text)
        ready = folder / "ready.json"
        words = ["run", str(folder / "hall.yaml"), "--robots", str(robots), "--ephemeral"]
        words += ["--shards", SHARDS]
        process = subprocess.Popen(
            [sys.executable, "-m", "understudy", *words, "--no-hmi", "--ready-file", str(ready)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            end = time.monotonic() + STARTING_SECONDS
            while not ready.exists() or json.loads(ready.read_text())["starting"]:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
            yield psutil.Process(process.pid), json.loads(ready.read_text())["endpoints"]["nats"]
        finally:
            process.terminate()
            process.wait(60)


def _used(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


async def _listen(server: str, process: psutil.Process, robots: int) -> Figures:
    client = await nats.connect(server)
    children = process.children()
    server_process = [each for each in children if each.name() == "nats-server"]
    shards = [process, *(each for each in children if "understudy.cli.shards" in each.cmdline())]
    delays: list[list[float]] = [[] for _ in shards]
    watched = range(1, robots + 1, max(robots // 100, 1))

    def listener(number: int) -> Callable[[Any], Coroutine[Any, Any, None]]:
        own = delays[(number - 1) % len(shards)]

        async def hear(message: Any) -> None:
            stamp = datetime.fromisoformat(json.loads(message.data)["ts"]).timestamp()
            own.append(time.time() - stamp)

        return hear

    if DRIVING:
        for n in range(1, robots + 1):
            message = {"messageId": f"bench {time.time_ns()}", "payload": CIRCLE}
            subject = f"robot.robot-{n}.command.request"
            await client.publish(subject, json.dumps(message).encode())
        await client.flush()
    for number in watched:
        await client.subscribe(f"robot.robot-{number}.state", cb=listener(number))
    await asyncio.sleep(5.0 + robots / 500)
    for own in delays:
        own.clear()
    both = [shards, server_process]
    before, began = [_used(each) for each in both], time.monotonic()
    count = await _stored(client)
    await asyncio.sleep(SECONDS)
    passed = time.monotonic() - began
    cpu, server_cpu = (
        (_used(each) - used) / passed for each, used in zip(both, before, strict=True)
    )
    count = await _stored(client) - count
    await client.close()
    late = sum(delay - min(own) > LATE_S for own in delays for delay in own)
    share = late / sum(map(len, delays))
    return Figures(len(shards), cpu, server_cpu, count / passed / robots, share)


async def _stored(client: Any) -> int:
    info = await client.jetstream().stream_info("ROBOT_IN")
    return int(info.state.last_seq)


def measured(robots: int) -> tuple[Figures, float]:
    """Ours, and the cores that the peer needs for as many robots."""
    with fleet(robots) as (process, server):
        figures = asyncio.run(_listen(server, process, robots))
        peer = subprocess.run(
            [sys.executable, "-c", PEER, server, str(PEER_ROBOTS), str(min(SECONDS, 10.0))],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    return figures, float(peer.stdout) * robots / PEER_ROBOTS


def row(robots: int) -> Row:
    figures, peer = measured(robots)
    what = "drive" if DRIVING else "stand"
    return Row(
        f"{robots:,} robots that {what}, {figures.messages:.1f} messages/s each, shards: "
        f"{figures.shards}",
        f"{figures.cpu:.1%} of a core, {figures.late:.2%} late, NATS {figures.server_cpu:.1%}",
        f"{peer:.1%} of a core",
        f"{peer / figures.cpu:.1f}×",
        "1,000 robots: ≤ 15 % of a core, < 1 % late",
    )


def rows() -> list[Row]:
    return [row(int(robots)) for robots in ROBOTS.split(",")]
