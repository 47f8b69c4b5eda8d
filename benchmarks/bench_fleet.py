"""Speed of the runtime of mobile robots over simulated hardware, per tick of one robot.

The peer runs the same robots one by one, each with a runtime and hardware of its own, as a program
with one object for each robot would. Rounds alternate; CPU time is compared.
"""

import math
from collections.abc import Sequence
from statistics import median
from time import process_time

from tests.robots.mobile.runtime.driven_fleet import EPOCH, DrivenFleet, robot_file

from benchmarks import Row
from understudy.agenda import advance
from understudy.ports import Epoch
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.warm import warm
from understudy.units import NS_PER_SECOND

ROBOTS, ALONE = 1000, 10
SECONDS, TICKS = 1.0, 50
ROUNDS = 5
SILENT = {f"streams__{name}Hz": 0 for name in ("heartbeat", "state", "telemetry", "traffic")}
LOAD = {"streams__heartbeatHz": 1, "streams__stateHz": 10, "streams__telemetryHz": 2,
        "streams__trafficHz": 0}  # fmt: skip


class TakingFleet(DrivenFleet):
    """Messages are taken and dropped."""

    def _settled(self, now: int) -> None:
        while (message := self.fleet.take(1 << 40)) is not None:
            if message.reply_to:
                self.fleet.confirmed(message.reply_to, now)


def driving(count: int, changes: dict[str, object]) -> TakingFleet:
    layout = Layout([robot_file(f"r{n}", **changes) for n in range(count)])
    graph = build_driver_graph(layout, [Surroundings()] * count, print)
    fleet = TakingFleet(layout, graph, run_id="bench", epoch=Epoch(EPOCH))
    fleet.run(0.1)
    for n in range(count):
        fleet.command("MOVE_VELOCITY", robot=f"r{n}", linear=0.5, angular=0.1)
    return fleet.run(0.2)


def seconds(fleets: Sequence[TakingFleet]) -> float:
    """CPU time of a robot's tick."""
    start = process_time()
    for fleet in fleets:
        fleet.run(SECONDS)
    robots = sum(len(fleet.layout.robots) for fleet in fleets)
    return (process_time() - start) / TICKS / robots


def compare(what: str, changes: dict[str, object]) -> Row:
    together, alone = [driving(ROBOTS, changes)], [driving(1, changes) for _ in range(ALONE)]
    rounds = [(seconds(together), seconds(alone)) for _ in range(ROUNDS)]
    ours, peer = (median(column) * 1e6 for column in zip(*rounds, strict=True))
    ratio = median(other / own for own, other in rounds)
    return Row(what, f"{ours:.2f} µs", f"{peer:.0f} µs one by one", f"{ratio:.0f}×", "")


def crowd(count: int, see: bool) -> TakingFleet:
    """Robots 2 m apart that turn on small circles, all at once."""
    side = math.ceil(math.sqrt(count))
    layout = Layout([robot_file(f"r{n}", **SILENT) for n in range(count)])
    around = [Surroundings((2.0 * (n % side), 2.0 * (n // side), 0.1 * n)) for n in range(count)]
    graph = build_driver_graph(layout, around, print, see_each_other=see)
    fleet = TakingFleet(layout, graph, run_id="bench", epoch=Epoch(EPOCH), meet=see)
    fleet.run(0.1)
    for n in range(count):
        fleet.command("MOVE_VELOCITY", robot=f"r{n}", linear=0.1, angular=1.0)
    return fleet.run(0.2)


def seeing(count: int) -> Row:
    """The cost of `robots_see_each_other`; without it nothing is computed."""
    on, off = [crowd(count, True)], [crowd(count, False)]
    rounds = [(seconds(on), seconds(off)) for _ in range(ROUNDS)]
    ours, plain = (median(column) * 1e6 for column in zip(*rounds, strict=True))
    what = f"tick of a robot that sees {count - 1:,} others, 2 m apart"
    return Row(what, f"{ours:.2f} µs", f"{plain:.2f} µs off", f"{ours / plain:.1f}", "")


def asleep() -> Row:
    """An hour of robots that stand, without a connection."""
    layout = Layout([robot_file(f"r{n}") for n in range(ROBOTS)])
    fleet = TakingFleet(layout, build_driver_graph(layout, [Surroundings()] * ROBOTS, print),
                        run_id="bench", epoch=Epoch(EPOCH), connect=False)  # fmt: skip
    fleet.run(1.0)
    start = process_time()
    advance([fleet.fleet], fleet.now + 3600 * NS_PER_SECOND, since=fleet.now)
    took = process_time() - start
    return Row("an hour of 1,000 idle robots", f"{took * 1e3:.1f} ms", "180,000 ticks", "", "")


def rows() -> list[Row]:
    warm()
    return [
        compare("tick of a robot that drives, 1,000 robots, no messages", dict(SILENT)),
        compare("the same with 13 messages a second", dict(LOAD)),
        asleep(),
        seeing(100),
        seeing(1000),
    ]
