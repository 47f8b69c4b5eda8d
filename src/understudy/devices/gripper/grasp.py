"""What a simulated gripper needs of the cell: the parts in its reach, and how its tool moves."""

import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.ports.device import Mount
from understudy.ports.workpieces import WorkpieceReading
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import MM, NS_PER_MS, seconds

Vector = NDArray[np.float64]
STANDARD_GRAVITY = 9.80665
AXES = {"x": 0, "y": 1}


class Span(NamedTuple):
    """A part along the axis of the fingers: its width, and its centre from the tool point."""

    width: float
    offset: float

    def fits(self, opening: float) -> bool:
        """Whether it lies between two fingers that are this far apart."""
        return abs(self.offset) + self.width / 2.0 < opening / 2.0


def span_along(tool: Pose, part: WorkpieceReading, axis: str) -> Span:
    frame, own = matrix(tool), matrix(part.pose)
    along = frame[:3, AXES[axis]]
    cosines, (length, breadth, height) = np.abs(along @ own[:3, :3]), part.size
    if part.type == "cylinder":
        round_ = math.sqrt(max(1.0 - float(cosines[2]) ** 2, 0.0))
        width = length * round_ + height * float(cosines[2])
    else:
        width = float(cosines @ np.array((length, breadth, height)))
    return Span(width, float(along @ (own[:3, 3] - frame[:3, 3])))


def seals(tool: Pose, part: WorkpieceReading, *, radius: float, reach: float, tilt: float) -> bool:
    """Whether a cup at the tool point, which looks along the tool's Z, lies on a flat face of the
    part: near enough, flat enough, and with its whole rim on the face."""
    frame, own = matrix(tool), matrix(part.pose)
    cosines = frame[:3, 2] @ own[:3, :3]
    faces = int(np.argmax(np.abs(cosines)))
    if abs(cosines[faces]) < math.cos(tilt):
        return False
    beyond = (own[:3, 3] - frame[:3, 3]) @ own[:3, :3]
    size = np.array(part.size)
    gap = float(beyond[faces] * np.sign(cosines[faces]) - size[faces] / 2.0)
    on_face = np.delete(np.abs(beyond), faces) + radius
    inside = bool((on_face <= np.delete(size, faces) / 2.0).all())
    if part.type == "cylinder":
        rim = float(np.hypot(beyond[0], beyond[1])) + radius
        inside = faces == 2 and rim <= size[0] / 2.0
    return abs(gap) <= reach and inside


def load_of(mass: float, acceleration: Vector) -> Vector:
    """The force with which a lifted part must be held, in the axes of the cell."""
    load: Vector = mass * (acceleration + np.array([0.0, 0.0, STANDARD_GRAVITY]))
    return load


def fingers_carry(load: Vector, axis: Vector, force: float, friction: float) -> bool:
    """Whether two fingers that press with this force along the axis carry the load: the part of it
    along the axis is taken by a finger, the rest by friction on both."""
    along = float(load @ axis)
    across = float(np.linalg.norm(load - along * axis))
    return abs(along) <= force and across <= 2.0 * friction * force


def cup_carries(load: Vector, approach: Vector, force: float, friction: float) -> bool:
    """Whether a cup that sucks with this force against its approach direction carries the load."""
    pull = -float(load @ approach)
    across = float(np.linalg.norm(load + pull * approach))
    return pull <= force and across <= friction * (force - pull)


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
    """What is known of the path of the tool since a part is held. `at`: the next sample. `home`:
    where the tool was when the watch began; `points`: the last two positions."""

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
