"""What is judged: an arm with a tool in hand, among what stands around it."""

from collections.abc import Callable
from dataclasses import dataclass

from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Limits
from understudy.space.chain import Chain, Frames
from understudy.space.collide import CollisionDetector
from understudy.space.environment import Environment
from understudy.space.sweep import Sweeper
from understudy.space.transform import Array

EMPTY = Environment()


@dataclass(frozen=True, eq=False)
class Arm:
    """With one tool. `foot`: where it stands in the cell; `detector`, `sweeper`: what it could
    touch, without a sweeper where contacts are not looked for."""

    chain: Chain
    limits: Limits
    frames: Frames
    foot: Array
    detector: CollisionDetector
    dynamics: Dynamics | None = None
    sweeper: Sweeper | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """`arm`: the arm with tool n. `notes`: what is to be said of every program judged here."""

    program: str
    cell: str
    robot: str
    arm: Callable[[int], Arm]
    environment: Environment = EMPTY
    notes: tuple[str, ...] = ()
