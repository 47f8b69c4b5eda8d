"""Waiting lines, steps of the current line, and the state of a program.

Also the options of a controller, and the Protocols that a program needs beside its queue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import Dialect, Modal
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import (
    Coolant,
    Message,
    Move,
    OffsetsChanged,
    Output,
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
from understudy.ports.refusals import SOFT_LIMIT

# ── steps of a line, beside its requests ──


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


class SystemChosen(Struct, frozen=True, tag=True):
    """The line has one of G54 … G59.3, also if that system is active already."""


class LineRefused(Struct, frozen=True, tag=True):
    """The line is refused after its other steps."""

    reason: str
    code: int


Step = (
    Request
    | LineRefused
    | Rest
    | Paused
    | HomingMove
    | Homed
    | ProbeMove
    | Probed
    | ProcessWait
    | SystemChosen
)

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


# ── entries of the queue of lines ──


class GcodeLine(Struct, frozen=True, tag=True):
    """A waiting line of G-code.

    `how`: a line of a `program`, a single line over a `wire`, a line to `check` only, or a `jog`
    (the text after `$J=`). `single`: the program pauses after it; `ends`: the word that would have
    ended it. `optional`: M1 pauses (a program reads that from its controller instead).
    """

    number: int
    text: str
    how: Literal["program", "wire", "check", "jog"] = "program"
    single: bool = False
    optional: bool = True
    ends: str = ""


class Homing(Struct, frozen=True, tag=True):
    """A waiting homing request: groups of axes, one after the other."""

    number: int
    groups: tuple[tuple[int, ...], ...]


Entry = GcodeLine | Homing

DROPPED = Refused("dropped before it was carried out", -1)


def as_alarm(refused: Refused) -> Refused:
    """A move beyond the axes as an alarm, which has a negative code; others unchanged."""
    return Refused(refused.reason, -SOFT_LIMIT) if refused.code == SOFT_LIMIT else refused


def over_a_wire(entry: Entry | None) -> bool:
    """Whether a client waits for the answer to this entry alone."""
    if isinstance(entry, Homing):
        return entry.number > 0
    return entry is not None and entry.how != "program"


class StartAction(Struct, frozen=True):
    """An output that is set, or a message that is reported, when the motion of a line begins."""

    line: int
    action: Output | Message


class State(Struct):
    """The state of a runner, without its configuration.

    `axes`: the commanded joints in degrees as the program wrote them, while they are known.
    `mounted`: the present tool; the modal one may be ahead of it until the change is carried out.
    `waits_since`, `level`: when an M66 began to wait, and the level of its input at the last check;
    `held_since`: the time since which its timeout is suspended.
    `origin`, `queued`: the start of a move that is only partly in the planner, and the number
    of its blocks there.
    """

    modal: Modal
    mounted: int = 0
    waiting: list[Entry] = []
    current: Entry | None = None
    todo: list[Step] = []
    stream: dict[str, Any] = {}
    axes: Axes | None = None
    with_next_move: list[Output] = []
    origin: list[float] | None = None
    queued: int = 0
    start_actions: list[StartAction] = []
    exact: bool = False
    waits_since: int | None = None
    held_since: int | None = None
    level: bool = False
    result: float = 0.0
    paused: bool = False
    optional_stop: bool = False
    homed: list[int] = []
    executed: int = 0
    acts: bool = False
    stops: int = 0
    error: tuple[str, int] | None = None
    wake: int | None = None

    @property
    def number(self) -> int:
        """The number of the current line."""
        return self.current.number if self.current else 0

    def copied(self) -> "State":
        """A copy that shares no list with this one."""
        names = ("todo", "with_next_move", "start_actions", "homed")
        return replace(self, **{name: list(getattr(self, name)) for name in names})


# ── options and Protocols of a controller ──


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


class Switches(Protocol):
    """Spindle and coolant of a controller."""

    def set_spindle(self, step: Spindle, now: int) -> Refused | None: ...

    def set_coolant(self, step: Coolant, now: int) -> Refused | None: ...

    def switch_off(self, now: int) -> None:
        """Switches spindle and coolant off: the program has ended or was cut off."""
        ...


class ProgramHooks(Switches, Protocol):
    """The controller around a program: spindle, coolant, and reports of what was carried out."""

    def probe_ended(self, step: Probed, now: int) -> Refused | None: ...

    def may_pause(self, now: int) -> bool:
        """Whether the program can pause now; in an alarm, for instance, it does not."""
        ...

    def report(self, step: Step, now: int) -> None:
        """A step was carried out."""
        ...

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        """An entry was carried out, or was refused."""
        ...
