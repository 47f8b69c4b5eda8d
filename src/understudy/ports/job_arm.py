"""An arm as jobs work with it: moves, readings, and checks of moves in advance.

Every call returns at once; a `Ticket` ends later, by `on_finished`. Lengths are metres, angles rad.
Poses of the tool are those of the cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.controller import MotionController
from understudy.ports.operation import Target
from understudy.ports.tools import ToolTable
from understudy.space.pose import Pose


class ArmMoves(Protocol):
    """The moves of an arm, one after the other."""

    def move(self, target: Target, now: int) -> Ticket | Refused:
        """Starts a move; its ticket ends when the arm rests at the target."""
        ...

    def hold(self, now: int) -> Refused | None:
        """Feed hold: the ticket stays, `resume` goes on from there."""
        ...

    def resume(self, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None:
        """Brakes along the path; the ticket ends with a refusal."""
        ...

    def on_finished(self, listener: Finished) -> None: ...

    def on_fault(self, listener: Callable[[Refused, int], None]) -> None:
        """Calls the listener when the arm cannot move any more, also without a move under way."""
        ...


class ArmReadings(Protocol):
    """Where an arm is, and whether it can move."""

    def flange(self, now: int) -> Pose:
        """The pose of the flange in the cell; ``now`` may be a moment that has passed."""
        ...

    def tool(self, now: int) -> Pose:
        """The pose of the tool in the cell."""
        ...

    def unready(self, now: int) -> Refused | None:
        """Why the arm takes no moves: emergency stop, alarm, drives off."""
        ...

    def at_rest(self, now: int) -> bool: ...


class ArmMotion(ArmMoves, ArmReadings, Protocol):
    """An arm, simulated or REAL, that carries out one move after the other."""


class ReachCheck(Protocol):
    """Checks a chain of moves before the first of them starts."""

    def check(self, targets: Sequence[Target], now: int) -> Refused | None:
        """Why the arm, from where it is, cannot make these moves one after the other."""
        ...


class Block(Struct, frozen=True):
    """A box: the pose of its middle, in the cell or in the frame of a tool, and its sides in m."""

    name: str
    at: Pose
    size: tuple[float, float, float]


class SweptMove(Struct, frozen=True):
    """A move, and what the hand has in it, in the frame of the tool."""

    target: Target
    held: Block | None = None


class Touch(Struct, frozen=True):
    """A move, by its index, in which a body of the arm would touch an object, and where."""

    move: int
    body: str
    object: str
    point: tuple[float, float, float]


class SweepsMoves(Protocol):
    """The body of an arm with its tool."""

    def covers(
        self, points: Sequence[tuple[float, float, float]], margin: float, now: int
    ) -> Sequence[bool]:
        """Which points of the cell are in the arm or nearer than ``margin`` to it."""
        ...

    def first_touch(
        self, moves: Sequence[SweptMove], blocks: Sequence[Block], now: int
    ) -> Touch | Refused | None:
        """The first contact with one of the blocks if the arm, from where it is, makes these
        moves; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class JobArm:
    """An arm as jobs use it. A kind of robot that jobs can use declares `job_arm(robot)`.

    `move_to`: sends one move to the controller. `flange`: its pose in the cell at a time.
    `reaches`: whether the arm with this tool can be at each of some poses; with None the mounted
    one. `tools`: the numbers of its tools; `tool`: of the mounted one. `arc_on`: the output of the
    arc is on. `feed_per_second`: the unit of F in its programs. `joints`: where they are, rad.
    `clear`: as `reach`, and nothing is touched on the way; None: contacts are not known.
    `body`: None for an arm without collision checks.
    """

    controller: MotionController
    move_to: Callable[[Target, int], Refused | None]
    flange: Callable[[int], Pose]
    reach: ReachCheck
    reaches: Callable[[Sequence[Pose], int | None], Sequence[bool]]
    tools: tuple[int, ...] = ()
    tool: Callable[[int], int] = lambda now: 0
    arc_on: Callable[[], bool] = lambda: False
    table: ToolTable | None = None
    feed_per_second: bool = False
    joints: Callable[[int], Sequence[float]] = lambda now: ()
    clear: ReachCheck | None = None
    body: SweepsMoves | None = None
