"""The last minutes of joints, torques and device values, for plots.

A row is added at most twenty times per second of wall time, and only while a client asks for rows.
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
from understudy.ports.device import PlotRow, Plotted
from understudy.space.pose import pose_mm_deg
from understudy.units import DEG, nanoseconds, seconds

PERIOD_SECONDS = 0.05
KEPT = 2400
LISTENING_SECONDS = 10.0
"""Rows are still added for this long after the last query."""


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """`seconds_back`: of the cell's time; `count`: the highest number of rows, evenly thinned."""

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
        doc = "the last rows of joints, torques and device values; recorded while clients ask"
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
        plots = [{"name": each.name, "unit": each.unit} for each in plots_of(robot)]
        kept = thinned(list(rows)[first:], given.count)
        return {"robot": given.robot, "plots": plots, "rows": kept}

    def _tick(self) -> None:
        """Adds a row for each robot, unless its time stands still."""
        self._timer = None
        if self._loop.time() < self._until:
            self._timer = self._loop.call_later(PERIOD_SECONDS, self._tick)
            now = self._now()
            for robot in self._robots:
                rows = self._rows[robot.name]
                if rows and rows[-1][0] > now:
                    rows.clear()  # a snapshot was restored
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
    return row | {plot.name: plot.value(now) for plot in plots_of(robot)}


def plots_of(robot: Robot) -> list[PlotRow]:
    """The curves of a robot's devices."""
    plotted = (each for each in robot.devices.values() if isinstance(each, Plotted))
    return [plot for device in plotted for plot in device.plots()]


def thinned(rows: list[tuple[int, dict[str, Any]]], count: int) -> list[dict[str, Any]]:
    """At most ``count`` rows, evenly spaced; the last row is one of them."""
    step = -(-len(rows) // count) if rows else 1
    return [row for _, row in rows[::-1][::step][::-1]]
