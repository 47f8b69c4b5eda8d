"""Requests of a block to the machine, as values, and the effect of each on motion and time.

Requests to an arm are in SI: rad, m, s. Requests to a plain machine are in its axis units (mm, deg)
and per minute, because its planner rounds exactly these numbers to whole steps.

The running controller (`simulation.program`) and the offline walk (`offline.walk`) both carry out
requests. The table `MEANINGS` defines for both whether a request is a move, whether motion comes to
rest before it, and how its time is counted.
"""

from typing import Any, Literal, cast

from msgspec import Struct

from understudy.gcode.dialect import Axes, Dialect
from understudy.gcode.modal import Modal
from understudy.ports.operation import Target
from understudy.space.pose import Pose

# ── motion of a machine: mm, deg, per minute ────────────────────────────────────────────────────


class AxisMove(Struct, frozen=True, tag=True):
    """A straight line of the axes. Under `inverse_time` the feed is moves per minute (G93)."""

    target: Axes
    feed: float = 0.0
    rapid: bool = False
    inverse_time: bool = False


class AxisArc(Struct, frozen=True, tag=True):
    """An arc round `centre` in the plane of two axes; the other axes go along in proportion.

    `plane`: the indices of both axes. `angle` in rad, positive counter-clockwise seen from the
    third axis' positive side, all turns included.
    """

    target: Axes
    plane: tuple[int, int]
    centre: tuple[float, float]
    radius: float
    angle: float
    feed: float
    inverse_time: bool = False


# ── motion of an arm: rad, m, s ─────────────────────────────────────────────────────────────────


class JointMove(Struct, frozen=True, tag=True):
    """A move to joint positions in rad at `speed` rad/s, or in `duration` s; neither: rapid.

    A joint that slides is in m; in the speed each of its millimetres counts as one degree.
    """

    target: Axes
    speed: float | None = None
    duration: float | None = None


class LineMove(Struct, frozen=True, tag=True):
    """A line of the tool: `speed` m/s of its tip, `turning` rad/s where the tip stays in place."""

    target: Pose
    speed: float | None = None
    turning: float | None = None
    duration: float | None = None


class ArcMove(Struct, frozen=True, tag=True):
    """An arc of the tool round `centre` (m) in the plane of two of X Y Z; angle as in `AxisArc`."""

    target: Pose
    plane: tuple[int, int]
    centre: tuple[float, float]
    radius: float
    angle: float
    speed: float | None = None
    duration: float | None = None


class JointArc(Struct, frozen=True, tag=True):
    """G2 and G3 over a wire that has only joints: two of the first three on a circle, in rad."""

    target: Axes
    plane: tuple[int, int]
    centre: tuple[float, float]
    radius: float
    angle: float
    speed: float | None = None
    duration: float | None = None


Move = AxisMove | AxisArc | JointMove | LineMove | ArcMove | JointArc


def move_to_target(target: Target) -> JointMove | LineMove:
    """The move that a controller makes to the target of an operator or a job."""
    if target.joints is not None:
        a, b, c, u, v, w = target.joints
        return JointMove((a, b, c, u, v, w))
    assert target.pose is not None
    if not target.line:
        return LineMove(target.pose)
    return LineMove(target.pose, speed=target.speed, turning=target.speed)


class Probe(Struct, frozen=True, tag=True):
    """A move until the probe makes contact, or loses it (not `toward`); `required`: else alarm."""

    move: Move
    toward: bool
    required: bool


class GoHome(Struct, frozen=True, tag=True):
    """G28 or G30: a rapid to a stored position; a waypoint is a move before it."""

    name: str
    move: Move


class SetHome(Struct, frozen=True, tag=True):
    """G28.1 or G30.1: the present position, in axis units, was stored."""

    name: str
    position: Axes


# ── everything else ─────────────────────────────────────────────────────────────────────────────


class Message(Struct, frozen=True, tag=True):
    """A comment to the operator: (MSG, text)."""

    text: str


class Dwell(Struct, frozen=True, tag=True):
    seconds: float


class SetOutput(Struct, frozen=True, tag=True):
    """M62 … M65. `with_motion`: at the start of the next move, otherwise at once."""

    pin: int
    on: bool
    with_motion: bool


class SetAnalog(Struct, frozen=True, tag=True):
    """Sets an analog output (M67, M68)."""

    pin: int
    value: float
    with_motion: bool


Output = SetOutput | SetAnalog


class WaitInput(Struct, frozen=True, tag=True):
    """M66: read at once, or wait for an edge or a level for at most `timeout` seconds."""

    kind: Literal["digital", "analog"]
    pin: int
    mode: Literal["read", "rise", "fall", "high", "low"]
    timeout: float


class Spindle(Struct, frozen=True, tag=True):
    """M3, M4, M5 and S; on a welding arm M3 is arc on, M5 arc off.

    Not `turned`: the spindle keeps its direction, or stays off.
    """

    direction: str
    speed: float
    turned: bool = True


class Coolant(Struct, frozen=True, tag=True):
    """M7, M8, M9; on a welding arm `mist` is the gas."""

    mist: bool
    flood: bool


class ToolSelect(Struct, frozen=True, tag=True):
    """T: the tool that the next M6 mounts."""

    tool: int


class ToolChange(Struct, frozen=True, tag=True):
    """M6; not `physical`: M61, only the number changes."""

    tool: int
    previous: int
    physical: bool = True


class Overrides(Struct, frozen=True, tag=True):
    """M48 … M53: the overrides that the operator may use; `rests`: motion ends before that."""

    feed: bool
    speed: bool
    hold: bool
    rests: bool = False


class OffsetsChanged(Struct, frozen=True, tag=True):
    """The active work offset or G92 was written, or coordinate system or tool length changed;
    `work_offset` is the sum of the offsets per axis in axis units."""

    work_offset: Axes


class ScalingChanged(Struct, frozen=True, tag=True):
    """G50 or G51 changed a factor."""


class PathMode(Struct, frozen=True, tag=True):
    """G61 exact path, G61.1 exact stop, G64 blending within `tolerance` mm (0: no bound)."""

    name: str
    tolerance: float = 0.0


class KinematicsMode(Struct, frozen=True, tag=True):
    """M428 joint, M429 world: the meaning of a line with only A, B, C."""

    world: bool


class ProgramPause(Struct, frozen=True, tag=True):
    """M0, M1 (only if the operator wants it), M60."""

    name: str


class ProgramEnd(Struct, frozen=True, tag=True):
    """Ends the program (M2, M30)."""

    name: str


Request = (
    AxisMove
    | AxisArc
    | JointMove
    | LineMove
    | ArcMove
    | JointArc
    | Probe
    | GoHome
    | SetHome
    | Message
    | Dwell
    | SetOutput
    | SetAnalog
    | WaitInput
    | Spindle
    | Coolant
    | ToolSelect
    | ToolChange
    | Overrides
    | OffsetsChanged
    | ScalingChanged
    | PathMode
    | KinematicsMode
    | ProgramPause
    | ProgramEnd
)


# ── the effect of each request on motion and time, for every executor of programs ─────────────────


Kind = Literal["move", "stored_move", "probe", "output", "wait", "switch", "flow", "mode", "notice"]
Rests = Literal["never", "always", "if_changed", "at_offsets"]
DelayKind = Literal["dwell", "io", "process"]


class StepMeaning(Struct, frozen=True):
    """One row of the table.

    `kind`:
    - `move` joins the motion queue; `stored_move` does so with its `move` (G28, G30);
    - `probe` runs its `move` alone, from rest until contact;
    - `output` sets an output at once, or when the next move begins; motion continues;
    - `wait` delays the program until a time has passed or an input has changed;
    - `switch` acts on spindle, coolant or tool; `flow` pauses or ends the program;
    - `mode` changes how later lines are read or planned; `notice` is only reported.

    `rests`: whether motion ends before the request is carried out; `on_arm` replaces it for arms,
    whose M3 and M5 wait for an arc that can go out at any time, and whose tools change the motion.
    `counted_as`: the kind of delay in the time report; `counted_as_on_arm` replaces it for arms.
    """

    kind: Kind
    rests: Rests = "never"
    on_arm: Rests | None = None
    counted_as: DelayKind = "io"
    counted_as_on_arm: DelayKind | None = None


MEANINGS: dict[type, StepMeaning] = {
    AxisMove: StepMeaning("move"),
    AxisArc: StepMeaning("move"),
    JointMove: StepMeaning("move"),
    JointArc: StepMeaning("move"),
    LineMove: StepMeaning("move"),
    ArcMove: StepMeaning("move"),
    GoHome: StepMeaning("stored_move"),
    Probe: StepMeaning("probe", "always"),
    SetHome: StepMeaning("notice"),
    Message: StepMeaning("notice"),
    Dwell: StepMeaning("wait", "always", counted_as="dwell"),
    SetOutput: StepMeaning("output"),
    SetAnalog: StepMeaning("output"),
    WaitInput: StepMeaning("wait", "always"),
    Spindle: StepMeaning("switch", "if_changed", "always", counted_as_on_arm="process"),
    Coolant: StepMeaning("switch", "if_changed", "always"),
    ToolSelect: StepMeaning("notice"),
    ToolChange: StepMeaning("switch", "if_changed", "always"),
    Overrides: StepMeaning("mode", "if_changed"),
    OffsetsChanged: StepMeaning("mode", "at_offsets"),
    ScalingChanged: StepMeaning("notice"),
    PathMode: StepMeaning("mode"),
    KinematicsMode: StepMeaning("notice"),
    ProgramPause: StepMeaning("flow", "always"),
    ProgramEnd: StepMeaning("flow", "always"),
}

MOVES: tuple[Any, ...] = tuple(each for each, row in MEANINGS.items() if row.kind == "move")
"""The classes of requests that are moves."""


def move_of(request: Request) -> Move | None:
    """The move that a request is or contains."""
    if isinstance(request, GoHome | Probe):
        return request.move
    return cast(Move, request) if MEANINGS[type(request)].kind == "move" else None


def rests_motion(
    request: Request, before: Modal, after: Modal, *, dialect: Dialect, at_offsets: bool
) -> bool:
    """Whether motion ends before a request of a line is carried out.

    ``before``, ``after``: the modal state around the line. ``at_offsets``: this controller rests
    before the active zero shifts.
    """
    meaning = MEANINGS[type(request)]
    rests = (meaning.on_arm if dialect.arm else None) or meaning.rests
    if rests == "if_changed":
        return _changes(request, before)
    if rests == "at_offsets":
        return at_offsets
    return rests == "always"


def _changes(request: Request, before: Modal) -> bool:
    """Whether a request changes the modal state."""
    if isinstance(request, Spindle):
        return (request.direction, request.speed) != (before.spindle, before.speed)
    if isinstance(request, Coolant):
        return (request.mist, request.flood) != (before.mist, before.flood)
    if isinstance(request, ToolChange):
        return request.physical
    return isinstance(request, Overrides) and request.rests


def delay_kind(request: Request, dialect: Dialect) -> DelayKind:
    """The kind of delay that a request causes."""
    meaning = MEANINGS[type(request)]
    return (meaning.counted_as_on_arm if dialect.arm else None) or meaning.counted_as


def homes_arm(request: GoHome, dialect: Dialect) -> bool:
    """Whether this is an arm's G28 in its own dialect: it comes to rest there and is homed."""
    return dialect.two_frames and request.name == "G28"


def stops_at_corners(request: PathMode, dialect: Dialect) -> bool:
    """Whether motion stops at the end of every move from now on: G61 in an arm's own dialect."""
    return dialect.two_frames and request.name != "G64"


def sets_outputs_without_move(dialect: Dialect) -> bool:
    """Whether M62, M63 and M67 take effect at the end of a program if no move follows them."""
    return dialect.two_frames
