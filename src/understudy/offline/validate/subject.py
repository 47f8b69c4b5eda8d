"""What programs are validated on: an arm with a tool in its environment, or a plain machine."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Limits
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject
from understudy.space.transform import Array
from understudy.units import MINUTE, MM

EMPTY = Environment()


@dataclass(frozen=True, slots=True)
class AxisUnit:
    """Display units of an axis: the size and name of its unit, and of the time."""

    unit: float
    name: str
    seconds: float
    per: str


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm with one tool. `foot`: pose of its base in the cell. `detector`, `sweeper`: collision
    checks; no sweeper if contacts are not checked. `stopping`: deceleration of independent joint
    braking, if it is not the joint's limit. `tool`: number of the tool; `tool_shapes`: its shapes
    in the frame of the flange."""

    chain: Chain
    limits: Limits
    frames: Frames
    foot: Array
    detector: CollisionDetector
    dynamics: Dynamics | None = None
    sweeper: Sweeper | None = None
    stopping: Floats | None = None
    tool: int = 0
    tool_shapes: tuple[CollisionObject, ...] = ()
    limits_feed: bool = False

    @property
    def braking(self) -> Floats:
        """Deceleration of each joint in a stop off the path."""
        return self.limits.acceleration if self.stopping is None else self.stopping

    @property
    def has_shapes(self) -> bool:
        """Whether a link that moves has a shape that can touch anything."""
        return any(body.collision for body in self.chain.bodies[1:])

    @property
    def names(self) -> tuple[str, ...]:
        return self.chain.names

    @property
    def range(self) -> tuple[Floats, Floats]:
        return self.chain.lower, self.chain.upper

    def unit_of(self, joint: int) -> AxisUnit:
        return AxisUnit(float(self.chain.units[joint]), self.chain.unit_names[joint], 1.0, "s")

    def slowed_text(self, speed: float, joint: int) -> str:
        """What the controller does where a joint is too slow; ``speed`` of the tool in m/s."""
        return f"the controller slows down to {speed / MM:.3g} mm/s here"

    def tips(self, q: Floats) -> Floats:
        """(n, 3): positions of the tool, in metres."""
        return np.asarray(self.chain.flanges(q, self.frames)[:, :3, 3])

    def skeleton(self, q: Floats) -> Floats:
        """(n, points, 3): positions of the axes and the tool tip, in metres, in the cell."""
        axes = self.chain.axes_of(q)[:, :, :3, 3]
        tips = self.chain.flanges(q, Frames(np.eye(4), self.frames.tool))
        points = np.concatenate([axes, tips[:, None, :3, 3]], axis=1)
        return np.asarray(points @ self.foot[:3, :3].T + self.foot[:3, 3])


@dataclass(frozen=True, eq=False)
class Machine:
    """Axes without a body, in mm and deg: no collision and no torque checks.

    `range`: the travel that its firmware checks. `limits_feed`: the firmware limits the feed of a
    line to what the axes can do, as users of such machines expect.
    """

    names: tuple[str, ...]
    limits: Limits
    range: tuple[Floats, Floats]
    rotary: tuple[bool, ...]
    dynamics: None = None
    sweeper: None = None
    has_shapes: bool = False
    tool: int = 0
    limits_feed: bool = True

    @property
    def braking(self) -> Floats:
        return self.limits.acceleration

    def unit_of(self, axis: int) -> AxisUnit:
        return AxisUnit(1.0, "deg" if self.rotary[axis] else "mm", MINUTE, "min")

    def slowed_text(self, speed: float, axis: int) -> str:
        """What the firmware does where an axis is too slow; ``speed`` along the path per second."""
        unit = self.unit_of(axis)
        return f"the firmware runs the line at {speed * unit.seconds:.0f} {unit.name}/{unit.per}"

    def tips(self, q: Floats) -> Floats:
        return q[:, :3] * MM

    def skeleton(self, q: Floats) -> Floats:
        return self.tips(q)[:, None]


@dataclass(frozen=True, eq=False)
class Subject:
    """A program on a robot of a cell. `arm(n)`: what moves, with tool n. `notes`: notes of every
    report on this robot. `numbered`: refusals carry the numbers of a firmware. `start`: joints and
    tool before the first line, if contacts are checked."""

    program: str
    cell: str
    robot: str
    arm: Callable[[int], Arm | Machine]
    environment: Environment = EMPTY
    notes: tuple[str, ...] = ()
    numbered: bool = False
    start: tuple[Floats, int] | None = None
