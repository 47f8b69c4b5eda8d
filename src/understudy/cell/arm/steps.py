"""What waits in a controller: lines, and the steps of the line being carried out."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from understudy.gcode import Modal
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import Request, SetAnalog, SetOutput

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


class Probed(Struct, frozen=True, tag=True):
    """A probing move has ended without a touch; `required`: that is an alarm."""

    required: bool


class ArcWait(Struct, frozen=True, tag=True):
    """Wait until the arc burns steadily, or until it is out."""

    burns: bool


Step = Request | Rest | Paused | HomingMove | Homed | Probed | ArcWait


class Line(Struct, frozen=True, tag=True):
    """A line of G-code that waits its turn."""

    number: int
    text: str


class Homing(Struct, frozen=True, tag=True):
    """Homing that waits its turn: groups of axes, one after the other."""

    number: int
    groups: tuple[tuple[int, ...], ...]


Entry = Line | Homing


class Tagged(Struct, frozen=True):
    """A switch that is thrown when the motion of a line begins."""

    line: int
    switch: Switch


class State(Struct):
    """All that a runner remembers; what is configured is not among it.

    `axes`: the commanded joints in degrees as the program wrote them, while they are known so.
    `waits_since`, `level`: when an M66 began to wait, and what the input was when last looked at.
    """

    modal: Modal
    waiting: list[Entry] = []
    current: Entry | None = None
    todo: list[Step] = []
    stream: dict[str, Any] = {}
    axes: Axes | None = None
    with_next: list[Switch] = []
    tagged: list[Tagged] = []
    exact: bool = False
    waits_since: int | None = None
    level: bool = False
    result: float = 0.0
    paused: bool = False
    optional_stop: bool = False
    homed: list[int] = []
    executed: int = 0
    error: tuple[str, int] | None = None
    wake: int | None = None

    def copied(self) -> "State":
        """One that goes its own way."""
        lists = {
            name: list(getattr(self, name)) for name in ("todo", "with_next", "tagged", "homed")
        }
        return replace(self, **lists)
