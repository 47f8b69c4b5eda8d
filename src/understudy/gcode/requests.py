"""Requests of a block to the machine, as values.

Requests to an arm are in SI: rad, m, s. Requests to a plain machine are in its axis units (mm, deg)
and per minute, because its planner rounds exactly these numbers to whole steps.
"""

from typing import Literal

from msgspec import Struct

from understudy.gcode.dialect import Axes
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
    """M67, M68."""

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
    """Work offsets, G92 or tool length have changed; their sum per axis in axis units."""

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
    """M2, M30."""

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
