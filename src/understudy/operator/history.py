"""The last minutes of joints, torques and weld current, for plots.

Filled at most twenty times a second of the wall's time, and only while somebody asks for it.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.space.pose import pose_mm_deg
from understudy.units import DEG, nanoseconds, seconds

PERIOD_SECONDS = 0.05
KEPT = 2400
LISTENING_SECONDS = 10.0
"""So long after the last question it goes on."""


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """`seconds_back`: of the cell's time; `count`: at most so many rows, evenly thinned."""

    robot: str
    seconds_back: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    count: Annotated[int, Meta(ge=1, le=KEPT)] = 600


class History:
    """A ring of rows per robot."""

    def __init__(self, robots: Robots, now: Callable[[], int]) -> None:
        self._robots = robots
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._rows: dict[str, deque[tuple[int, dict[str, Any]]]] = {
            robot.name: deque(maxlen=KEPT) for robot in robots
        }
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def commands(self) -> list[Command]:
        doc = "the last rows of joints, torques and weld current; kept while somebody asks"
        return [Command("sample", doc, self._sample, Wanted, role="viewer")]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sample(self, given: Wanted) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        self._until = self._loop.time() + LISTENING_SECONDS
        if self._timer is None:
            self._tick()
        rows = self._rows[given.robot]
        since = rows[-1][0] - nanoseconds(given.seconds_back) if rows else 0
        first = bisect_right([at for at, _ in rows], since)
        return {"robot": given.robot, "rows": thinned(list(rows)[first:], given.count)}

    def _tick(self) -> None:
        """A row for each robot, unless time has stood."""
        self._timer = None
        if self._loop.time() < self._until:
            self._timer = self._loop.call_later(PERIOD_SECONDS, self._tick)
            now = self._now()
            for robot in self._robots:
                rows = self._rows[robot.name]
                if rows and rows[-1][0] > now:
                    rows.clear()  # a snapshot has brought back an earlier moment
                if not rows or rows[-1][0] < now:
                    rows.append((now, row_of(robot, now)))


def row_of(robot: Robot, now: int) -> dict[str, Any]:
    axis_reading = robot.axis_reading()
    row: dict[str, Any] = {
        "time_s": seconds(now),
        "joints_deg": [value / DEG for value in axis_reading.joints],
        "velocities_deg_s": [value / DEG for value in axis_reading.velocities],
        "torques_nm": list(axis_reading.torques),
        "pose_mm_deg": pose_mm_deg(axis_reading.pose),
    }
    welder = getattr(robot.simulated.controller, "parts", {}).get("welder")
    if welder is not None:
        state = welder.status(now)
        row |= {"current_amps": state.current_amps, "voltage_volts": state.voltage_volts}
    return row


def thinned(rows: list[tuple[int, dict[str, Any]]], count: int) -> list[dict[str, Any]]:
    """At most so many, the last one among them."""
    step = -(-len(rows) // count) if rows else 1
    return [row for _, row in rows[::-1][::step][::-1]]
