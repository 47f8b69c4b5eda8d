"""Table of the effect of each request on motion and time, for every executor of programs.

The running controller (`simulation.program`) and the offline walk (`offline.walk`) both carry out
requests. This table defines for both whether a request is a move, whether motion comes to rest
before it, and how its time is counted.
"""

from typing import Any, Literal, cast

from msgspec import Struct

from understudy.gcode import requests
from understudy.gcode.blocks import Block
from understudy.gcode.dialect import Dialect
from understudy.gcode.modal import Modal
from understudy.gcode.requests import Move, Request

Kind = Literal["move", "stored_move", "probe", "output", "wait", "switch", "flow", "mode", "notice"]
Rests = Literal["never", "always", "if_changed", "if_zero_shifts"]
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
    requests.AxisMove: StepMeaning("move"),
    requests.AxisArc: StepMeaning("move"),
    requests.JointMove: StepMeaning("move"),
    requests.JointArc: StepMeaning("move"),
    requests.LineMove: StepMeaning("move"),
    requests.ArcMove: StepMeaning("move"),
    requests.GoHome: StepMeaning("stored_move"),
    requests.Probe: StepMeaning("probe", "always"),
    requests.SetHome: StepMeaning("notice"),
    requests.Message: StepMeaning("notice"),
    requests.Dwell: StepMeaning("wait", "always", counted_as="dwell"),
    requests.SetOutput: StepMeaning("output"),
    requests.SetAnalog: StepMeaning("output"),
    requests.WaitInput: StepMeaning("wait", "always"),
    requests.Spindle: StepMeaning("switch", "if_changed", "always", counted_as_on_arm="process"),
    requests.Coolant: StepMeaning("switch", "if_changed", "always"),
    requests.ToolSelect: StepMeaning("notice"),
    requests.ToolChange: StepMeaning("switch", "if_changed", "always"),
    requests.Overrides: StepMeaning("mode", "if_changed"),
    requests.OffsetsChanged: StepMeaning("mode", "if_zero_shifts"),
    requests.ScalingChanged: StepMeaning("notice"),
    requests.PathMode: StepMeaning("mode"),
    requests.KinematicsMode: StepMeaning("notice"),
    requests.ProgramPause: StepMeaning("flow", "always"),
    requests.ProgramEnd: StepMeaning("flow", "always"),
}

MOVES: tuple[Any, ...] = tuple(each for each, row in MEANINGS.items() if row.kind == "move")
"""The classes of requests that are moves."""


def move_of(request: Request) -> Move | None:
    """The move that a request is or contains."""
    if isinstance(request, requests.GoHome | requests.Probe):
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
    if rests == "if_zero_shifts":
        return at_offsets and active_zero(before) != active_zero(after)
    return rests == "always"


def system_word_rests(block: Block, *, at_offsets: bool) -> bool:
    """Whether motion ends before a line with G54 … G59.3, also if that system is active already.

    The firmware marks the work offset as changed for every such word (gcode.c, step 15).
    """
    return at_offsets and "coordinates" in block.commands


def _changes(request: Request, before: Modal) -> bool:
    """Whether a request changes the modal state."""
    if isinstance(request, requests.Spindle):
        return (request.direction, request.speed) != (before.spindle, before.speed)
    if isinstance(request, requests.Coolant):
        return (request.mist, request.flood) != (before.mist, before.flood)
    if isinstance(request, requests.ToolChange):
        return request.physical
    return isinstance(request, requests.Overrides) and request.rests


def active_zero(modal: Modal) -> tuple[object, ...]:
    """All values that determine the active zero; other coordinate systems are not included."""
    chosen = modal.coordinates
    return chosen, modal.offsets[chosen], modal.g92, modal.tool_length


def delay_kind(request: Request, dialect: Dialect) -> DelayKind:
    """The kind of delay that a request causes."""
    meaning = MEANINGS[type(request)]
    return (meaning.counted_as_on_arm if dialect.arm else None) or meaning.counted_as


def homes_arm(request: requests.GoHome, dialect: Dialect) -> bool:
    """Whether this is an arm's G28 in its own dialect: it comes to rest there and is homed."""
    return dialect.two_frames and request.name == "G28"


def stops_at_corners(request: requests.PathMode, dialect: Dialect) -> bool:
    """Whether motion stops at the end of every move from now on: G61 in an arm's own dialect."""
    return dialect.two_frames and request.name != "G64"


def sets_outputs_without_move(dialect: Dialect) -> bool:
    """Whether M62, M63 and M67 take effect at the end of a program if no move follows them."""
    return dialect.two_frames
