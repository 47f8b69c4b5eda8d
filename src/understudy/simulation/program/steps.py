"""What waits in a controller: lines, and the steps of the line being carried out."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode import requests as ask
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import Message, Request, SetAnalog, SetOutput
from understudy.ports.refusals import SOFT_LIMIT

Switch = SetOutput | SetAnalog


class Rest(Struct, frozen=True, tag=True):
    """Wait until the motion so far has ended."""


class Paused(Struct, frozen=True, tag=True):
    """Wait for the operator."""


class HomingMove(Struct, frozen=True, tag=True):
    """Some axes go home together."""

    axes: tuple[int, ...]


class Homed(Struct, frozen=True, tag=True):
    """These axes have been homed."""

    axes: tuple[int, ...]


Until = tuple[int, float] | None
"""A place on a path, the piece and how far along it; None: its end."""


class ProbeMove(Struct, frozen=True, tag=True):
    """A probing move, and where on its path the probe answers."""

    move: ask.Move
    until: Until = None


class Probed(Struct, frozen=True, tag=True):
    """A probing move has ended: the probe answered there, or never did, or did so before.

    `required`: unless it answered that is an alarm. `early`: the probe answered before the move.
    """

    required: bool
    over_wire: bool = False
    touched: bool = False
    early: bool = False


class ArcWait(Struct, frozen=True, tag=True):
    """Wait until the arc burns steadily, or until it is out."""

    burns: bool


class SystemChosen(Struct, frozen=True, tag=True):
    """The line names one of G54 … G59.3, another one or the same again."""


Step = Request | Rest | Paused | HomingMove | Homed | ProbeMove | Probed | ArcWait | SystemChosen


MOVES = (ask.JointMove, ask.JointArc, ask.LineMove, ask.ArcMove, ask.AxisMove, ask.AxisArc)
TOLD = (ask.Message, ask.ProgramEnd)
"""What is told of a line that is only checked."""


class Line(Struct, frozen=True, tag=True):
    """A line of G-code that waits its turn.

    `how` it is meant: as part of a `program`, as a single line over a `wire`, only to `check` it,
    or as what stands after `$J=`. `single`: the operator lets the program on after it; `optional`:
    M1 pauses, which a program asks its controller about.
    """

    number: int
    text: str
    how: Literal["program", "wire", "check", "jog"] = "program"
    single: bool = False
    optional: bool = True


class Homing(Struct, frozen=True, tag=True):
    """Homing that waits its turn: groups of axes, one after the other."""

    number: int
    groups: tuple[tuple[int, ...], ...]


Entry = Line | Homing


DROPPED = Refused("dropped before it was through", -1)


def beyond(refused: Refused) -> Refused:
    """What a mover refuses because it lies beyond the axes, as an alarm: told by its sign."""
    return Refused(refused.reason, -SOFT_LIMIT) if refused.code == SOFT_LIMIT else refused


def over_a_wire(entry: Entry | None) -> bool:
    """Whether somebody waits for the answer to this entry alone."""
    if isinstance(entry, Homing):
        return entry.number > 0
    return entry is not None and entry.how != "program"


class Tagged(Struct, frozen=True):
    """A switch that is thrown, or a message that is told, when the motion of a line begins."""

    line: int
    switch: Switch | Message


class State(Struct):
    """All that a runner remembers; what is configured is not among it.

    `axes`: the commanded joints in degrees as the program wrote them, while they are known so.
    `mounted`: the tool in hand, while the modal one may have yet to be changed to.
    `waits_since`, `level`: when an M66 began to wait, and what the input was when last looked at;
    `held_since`: its time stands still since then.
    `origin`, `queued`: where a move began that the planner has not taken whole, and how many of its
    blocks it has taken.
    """

    modal: Modal
    mounted: int = 0
    waiting: list[Entry] = []
    current: Entry | None = None
    todo: list[Step] = []
    stream: dict[str, Any] = {}
    axes: Axes | None = None
    with_next: list[Switch] = []
    origin: list[float] | None = None
    queued: int = 0
    tagged: list[Tagged] = []
    exact: bool = False
    waits_since: int | None = None
    held_since: int | None = None
    level: bool = False
    result: float = 0.0
    paused: bool = False
    optional_stop: bool = False
    homed: list[int] = []
    executed: int = 0
    stops: int = 0
    error: tuple[str, int] | None = None
    wake: int | None = None

    def copied(self) -> "State":
        """One that goes its own way."""
        lists = {
            name: list(getattr(self, name)) for name in ("todo", "with_next", "tagged", "homed")
        }
        return replace(self, **lists)
