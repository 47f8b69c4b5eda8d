"""What is judged: an arm with a tool in hand among what stands around it, or a plain machine."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Limits
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.model.environment import Environment
from understudy.space.transform import Array
from understudy.units import DEG, MINUTE, MM

EMPTY = Environment()


@dataclass(frozen=True, slots=True)
class Told:
    """How figures of an axis are told: the size of its unit and of the time, and their names."""

    unit: float
    name: str
    seconds: float
    per: str


@dataclass(frozen=True, eq=False)
class Arm:
    """With one tool. `foot`: where it stands in the cell; `detector`, `sweeper`: what it could
    touch, without a sweeper where contacts are not looked for. `stopping`: what the joints brake
    with by themselves, if that is not their limit."""

    chain: Chain
    limits: Limits
    frames: Frames
    foot: Array
    detector: CollisionDetector
    dynamics: Dynamics | None = None
    sweeper: Sweeper | None = None
    stopping: Floats | None = None

    @property
    def braking(self) -> Floats:
        """What each joint brakes with in a stop off the path."""
        return self.limits.acceleration if self.stopping is None else self.stopping

    @property
    def names(self) -> tuple[str, ...]:
        return self.chain.names

    @property
    def range(self) -> tuple[Floats, Floats]:
        return self.chain.lower, self.chain.upper

    def told(self, joint: int) -> Told:
        unit, name = (MM, "mm") if self.chain.slides[joint] else (DEG, "deg")
        return Told(unit, name, 1.0, "s")

    def tips(self, q: Floats) -> Floats:
        """(n, 3): where the tool is, in metres."""
        return np.asarray(self.chain.flanges(q, self.frames)[:, :3, 3])

    def skeleton(self, q: Floats) -> Floats:
        """(n, points, 3): the axes and at last the tip, in metres, in the cell."""
        axes = self.chain.axes_of(q)[:, :, :3, 3]
        tips = self.chain.flanges(q, Frames(np.eye(4), self.frames.tool))
        points = np.concatenate([axes, tips[:, None, :3, 3]], axis=1)
        return np.asarray(points @ self.foot[:3, :3].T + self.foot[:3, 3])


@dataclass(frozen=True, eq=False)
class Machine:
    """Axes without a body, in mm and deg: nothing to touch with, and no torque to run short of.

    `range`: as far as its firmware looks after it.
    """

    names: tuple[str, ...]
    limits: Limits
    range: tuple[Floats, Floats]
    rotary: tuple[bool, ...]
    dynamics: None = None
    sweeper: None = None

    @property
    def braking(self) -> Floats:
        return self.limits.acceleration

    def told(self, axis: int) -> Told:
        return Told(1.0, "deg" if self.rotary[axis] else "mm", MINUTE, "min")

    def tips(self, q: Floats) -> Floats:
        return q[:, :3] * MM

    def skeleton(self, q: Floats) -> Floats:
        return self.tips(q)[:, None]


@dataclass(frozen=True, eq=False)
class Subject:
    """`arm`: what moves, with tool n. `notes`: what is to be said of every program judged here.
    `numbered`: whose refusals have the numbers of a firmware."""

    program: str
    cell: str
    robot: str
    arm: Callable[[int], Arm | Machine]
    environment: Environment = EMPTY
    notes: tuple[str, ...] = ()
    numbered: bool = False
