"""What a simulated gripper needs of the cell: the parts in its reach, and how its tool moves."""

from collections.abc import Callable
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from understudy.devices.gripper.contact import STANDARD_GRAVITY, Vector, load_of
from understudy.ports.device import Mount
from understudy.ports.workpieces import WorkpieceReading
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import MM, NS_PER_MS, seconds

WATCH_PERIOD = 10 * NS_PER_MS
"""The motion of the tool is sampled once per period while it can decide about a part."""
LIFTED = 1.0 * MM
"""A part that has been moved this far does not rest on its support any more."""
HARDEST = 50.0
"""m/s²: arms accelerate a tool less than this. A grip that carries it needs no watch."""

Point = tuple[float, float, float]
Carries = Callable[[Vector, Vector], bool]
"""(load, the tool's axes as columns) → whether the grip carries it."""


def is_weak(mass: float, force: float) -> bool:
    """Whether a hard acceleration of the arm may pull a part of this mass out of the grip."""
    return force < mass * (STANDARD_GRAVITY + HARDEST)


class Watch(Struct):
    """`at`: the next sample. `home`: where the tool was when the watch began; `points`: the last
    two positions."""

    at: int | None = None
    home: Point = (0.0, 0.0, 0.0)
    points: Annotated[list[Point], Meta(max_length=2)] = []


class Grasp:
    """The parts around the tool of one robot. Without parts or a tool there is nothing to grip."""

    def __init__(self, mount: Mount) -> None:
        self._parts = mount.parts
        self._tool_pose = mount.tool_pose
        self._robot = mount.robot

    def tool(self, now: int) -> Pose | None:
        return None if self._tool_pose is None else self._tool_pose(now)

    def found(self, region: tuple[float, float, float], now: int) -> list[WorkpieceReading]:
        """The resting parts in a box around the tool point, the nearest first."""
        tool = self.tool(now)
        if self._parts is None or tool is None:
            return []
        parts = self._parts
        return [parts.reading(name, now) for name in parts.near(tool, region, now)]

    def take(self, name: str, now: int) -> None:
        if self._parts is not None:
            self._parts.take(name, self._robot, now)

    def let_go(self, now: int) -> None:
        if self._parts is not None and self._parts.held_by(self._robot):
            self._parts.let_go(self._robot, now)

    def held(self) -> str:
        """The name of the part that the robot holds; empty if there is none."""
        return "" if self._parts is None else self._parts.held_by(self._robot)

    # ── watch ──

    def start(self, watch: Watch, now: int) -> None:
        """Begins to watch the tool; the samples follow in whole periods."""
        watch.at, watch.home = now + WATCH_PERIOD, self._position(now)
        watch.points = [watch.home]

    def _position(self, now: int) -> Point:
        tool = self.tool(now)
        return (0.0, 0.0, 0.0) if tool is None else (tool.x, tool.y, tool.z)

    def moved(self, watch: Watch, now: int) -> bool:
        """Whether the tool has left the place where the watch began."""
        away = np.subtract(self._position(now), watch.home)
        return float(np.linalg.norm(away)) > LIFTED

    def carries(self, watch: Watch, mass: float, carries: Carries, now: int) -> bool:
        """Takes a sample; whether the grip carries the part through the motion of the tool."""
        watch.at = now + WATCH_PERIOD
        here, before = self._position(now), watch.points
        watch.points = [*before, here][-2:]
        tool = self.tool(now)
        if tool is None or len(before) < 2 or not self.moved(watch, now):
            return True
        step = seconds(WATCH_PERIOD)
        acceleration = (np.array(here) - 2.0 * np.array(before[1]) + np.array(before[0])) / step**2
        return carries(load_of(mass, acceleration), matrix(tool)[:3, :3])
