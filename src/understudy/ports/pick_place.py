"""Protocols between the pick & place job and what it works with: arm, gripper and parts.

Every call returns at once; a `Ticket` ends later, by `on_finished`. Lengths are metres, angles rad,
forces N. Poses of the tool, of the camera and of parts are those of the cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.controller import MotionController
from understudy.ports.operation import Target
from understudy.ports.tools import ToolTable
from understudy.ports.vision import DetectedObject
from understudy.space.pose import Pose

# ── motion ──────────────────────────────────────────────────────────────────────────────────────


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


# ── gripper ─────────────────────────────────────────────────────────────────────────────────────

GripperType = Literal["PNEUMATIC_2FINGER", "PNEUMATIC_VACUUM", "ELECTRIC_SERVO"]
GripperState = Literal["UNKNOWN", "OPENED", "CLOSED", "OPENING", "CLOSING", "GRIPPING", "ERROR"]


class GripperStatus(Struct, frozen=True):
    """`vacuum_kpa`: negative below the pressure of the air. `opening`: between the fingers, m."""

    state: GripperState = "UNKNOWN"
    part_detected: bool = False
    force_n: float = 0.0
    vacuum_kpa: float = 0.0
    sensor_closed: bool = False
    sensor_opened: bool = False
    opening: float = 0.0
    error: str = ""


@runtime_checkable
class Gripper(Protocol):
    """A gripper, simulated or REAL. A ticket ends with None (done) or with a refusal."""

    def start_grip(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        """Closes; done when a part is held. A refusal that begins with MISSED: closed, no part."""
        ...

    def start_release(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        """Opens; done when the part sensor is clear."""
        ...

    def halt(self, now: int) -> None:
        """Ends the ticket under way and changes no output: a held part stays held."""
        ...

    def status(self, now: int) -> GripperStatus: ...

    def on_finished(self, listener: Finished) -> None: ...

    def on_lost(self, listener: Callable[[int], None]) -> None:
        """Calls the listener when the part sensor of a held part clears without a release."""
        ...


# ── cycle ───────────────────────────────────────────────────────────────────────────────────────

PickPlaceState = Literal[
    "IDLE",
    "MOVE_TO_SCAN",
    "SCANNING",
    "MOVE_TO_PICK",
    "APPROACH_PICK",
    "GRIPPING",
    "RETRACT_PICK",
    "MOVE_TO_PLACE",
    "APPROACH_PLACE",
    "RELEASING",
    "RETRACT_PLACE",
    "ERROR",
    "PAUSED",
]


PickPlaceError = Literal[
    "",
    "EMERGENCY_STOP",
    "ARM_FAULT",
    "OUT_OF_REACH",
    "OUT_OF_ZONE",
    "VISION_TIMEOUT",
    "GRIP_FAILED",
    "GRIPPER_FAULT",
    "PART_LOST",
    "PART_UNEXPECTED",
    "PART_NOT_RELEASED",
    "FORCE_LIMIT",
    "HANDSHAKE_TIMEOUT",
    "OUTPUT_REFUSED",
    "NO_CONTACT",
]
"""The fault of a job that is in ERROR."""
PickPlaceReason = Literal["", "DONE", "STOPPED", "NO_OBJECT", "PALLET_FULL", "SOURCE_EMPTY"]
"""Why the last run has ended without a fault."""
GOOD_ENDS: tuple[PickPlaceReason, ...] = ("DONE", "NO_OBJECT", "PALLET_FULL", "SOURCE_EMPTY")
"""Ends of a run that has done what there was to do."""


class PickPlaceStatistics(Struct, frozen=True):
    """Times of the successful cycles in seconds, 0 before the first one, and parts by class."""

    last_s: float = 0.0
    mean_s: float = 0.0
    shortest_s: float = 0.0
    longest_s: float = 0.0
    by_class: dict[str, int] = {}


class PickPlaceStatus(Struct, frozen=True):
    """State, counts and target of the cycle. `last_error`: why the last cycle failed or ended, and
    what to do. `cycles_left`: that follow the present one, -1 without an end. `holding`: the hand
    has a part. `progress`: 0 to 1 of the present cycle. `paused_in`: the state before a pause."""

    state: PickPlaceState = "IDLE"
    cycle_count: int = 0
    success_count: int = 0
    fail_count: int = 0
    current_target: DetectedObject | None = None
    last_error: str = ""
    code: PickPlaceError = ""
    reason: PickPlaceReason = ""
    running: bool = False
    cycles_left: int = 0
    holding: bool = False
    scan_misses: int = 0
    grip_misses: int = 0
    progress: float = 0.0
    paused_in: PickPlaceState | Literal[""] = ""
    statistics: PickPlaceStatistics = PickPlaceStatistics()
