"""Steps of a line beside its requests, and what carries them out: options, mover and probe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode import Dialect, Modal
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import (
    Coolant,
    Move,
    OffsetsChanged,
    Overrides,
    ProgramEnd,
    Request,
    ScalingChanged,
    SetAnalog,
    SetOutput,
    Spindle,
    WaitInput,
)
from understudy.motion.path import Floats, Path


class Rest(Struct, frozen=True, tag=True):
    """Wait until the motion so far has ended."""


class Paused(Struct, frozen=True, tag=True):
    """Wait for the operator; `name` is the word that asks for it, empty after a single line."""

    name: str = ""


class HomingMove(Struct, frozen=True, tag=True):
    """Moves some axes home together."""

    axes: tuple[int, ...]


class Homed(Struct, frozen=True, tag=True):
    """These axes have been homed."""

    axes: tuple[int, ...]


Until = tuple[int, float] | None
"""A place on a path, the piece and the distance along it; None: its end."""


class ProbeMove(Struct, frozen=True, tag=True):
    """A probing move, and where on its path the probe makes or loses contact."""

    move: Move
    until: Until = None


class Probed(Struct, frozen=True, tag=True):
    """The result of a probing move.

    `touched`: the probe reached or left contact as required. `required`: otherwise it is an alarm.
    `early`: the probe was in that state before the move. `away`: it was to leave contact.
    `place`: the axes at the touch; the target if the move did not begin.
    """

    required: bool
    over_wire: bool = False
    touched: bool = False
    early: bool = False
    away: bool = False
    place: Axes | None = None


class ProcessWait(Struct, frozen=True, tag=True):
    """Wait until the device that M3 and M5 switch is steadily on, or off."""

    on: bool


class LineRefused(Struct, frozen=True, tag=True):
    """The line is refused after its other steps."""

    reason: str
    code: int


Step = Request | LineRefused | Rest | Paused | HomingMove | Homed | ProbeMove | Probed | ProcessWait

EXECUTED_IN_CHECK = (
    ProgramEnd,
    OffsetsChanged,
    ScalingChanged,
    Overrides,
    SetOutput,
    SetAnalog,
    WaitInput,
)
"""Requests that are carried out for a line in check mode: the firmware moves nothing, leaves tool,
spindle and coolant alone, and prints no messages. Pins it does switch."""


@dataclass(frozen=True)
class ControllerOptions:
    """How a controller carries out programs.

    ``wire`` is the dialect of lines that come over a wire. ``home`` in degrees; ``homing_share`` of
    the rapid speed; ``deviation`` at corners. ``rests_at_offsets``: motion ends before the active
    zero shifts. ``process_wait``: M3 and M5 wait for the device that they switch.
    ``probes_overridden``: the feed override acts on probing moves, too. ``switch_seconds``: how
    long the program waits for spindle or coolant. ``tool_refusal``: why no M6 is possible now.
    """

    dialect: Dialect
    modal: Modal
    home: Axes
    homing_share: float
    deviation: float
    wire: Dialect
    rests_at_offsets: bool = False
    process_wait: bool = True
    probes_overridden: bool = False
    switch_seconds: Callable[[Spindle | Coolant], float] = lambda switch: 0.0
    tool_refusal: Callable[[], Refused | None] = lambda: None


class Mover(Protocol):
    """Plans moves as paths of the axes."""

    def path(self, move: Move, start: Floats, *, line: int, exact: bool) -> Path | Refused: ...

    def axes(self, q: Floats) -> Axes: ...

    def pose(self, q: Floats) -> Axes: ...


class Probe(Protocol):
    """A probe that can touch its surroundings."""

    def touches(self, q: Floats) -> bool: ...

    def trigger_place(self, path: Path, *, toward: bool) -> tuple[int, float] | None:
        """The first place of a path, piece and distance, where contact begins or ends."""
        ...

    def rest_place(self, path: Path, place: tuple[int, float]) -> tuple[int, float]:
        """Where on the path the axes come to rest after that."""
        ...
