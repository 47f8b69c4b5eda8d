"""What a controller behind a grblHAL wire offers its face, and the values they exchange.

The controller owns modal state, settings, alarms and overrides; the face owns bytes and words. It
stands on this floor because both speak of `Modal`.
"""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode.dialect import ZERO, Axes
from understudy.gcode.modal import Modal

News = Literal[
    "resumed", "door", "stop", "program end", "unlocked", "restored", "enabled", "disabled",
    "critical", "estop", "motor fault",
]  # fmt: skip
Field = Literal["overrides", "spindle", "coolant", "tool", "offset", "system", "input"]
"""Fields of a status report that the next one must carry."""
Override = Literal["feed", "rapid", "spindle"]
Toggle = Literal["flood", "mist", "optional stop", "single block", "block delete", "spindle"]
Restored = Literal["settings", "parameters", "all"]


class Notice(Struct, frozen=True):
    """Something the controller says by itself.

    `answer`: the line is through (`code` 0) or refused; `alarm`: it locks itself; `reset`: it has
    begun anew, locked if `code` is set; `news` names an event and `message` brings a program's own
    words; `startup`: a line of its own was run; `probe`: a probing move has ended; `report`: a
    status report is due; `changed` names a `Field`; `flush`: what waits unread is void; `void`: the
    line under way will not be answered; `settled`: it may take lines again.
    """

    kind: Literal[
        "answer", "alarm", "reset", "news", "message", "startup", "probe", "report", "changed",
        "flush", "void", "settled",
    ]  # fmt: skip
    code: int = 0
    text: str = ""


Listener = Callable[[Notice, int], None]


class Reading(Struct, frozen=True):
    """How things stand. Position and offsets in axis units, `feed` per minute.

    `line` is the N of the line being run; `tool` the one in the spindle, `changing` while another
    is awaited; `input` what M66 read last; `switches` grblHAL's letters for those that are on.
    """

    state: str
    alarm: int
    critical: bool
    position: Axes
    free: int
    window: int
    line: int
    feed: float
    speed: float
    spindle: str
    flood: bool
    mist: bool
    overrides: tuple[int, int, int]
    tool: int
    changing: bool
    homed: bool
    input: float | None
    switches: str
    modal: Modal
    probe: Axes = ZERO
    touched: bool = False


class Lines(Protocol):
    """Takes one line after the other; the answer comes as a notice, now or later."""

    def execute(self, text: str, now: int) -> None:
        """A line of G-code."""
        ...

    def jog(self, text: str, now: int) -> None:
        """What stands after ``$J=``."""
        ...

    def home(self, axes: str, now: int) -> None:
        """All axes, or those with these letters."""
        ...

    def barred(self, now: int) -> Refused | None:
        """Why no G-code is taken now, if so."""
        ...

    def listening(self, now: int) -> bool:
        """Whether the next line may come; in Hold, Door and Tool lines wait unread."""
        ...

    def stranded(self, now: int) -> bool:
        """Whether it takes an operator to go on: at rest in Hold, Door or Tool."""
        ...


class Panel(Protocol):
    """The operator's: what acts at once, whatever waits."""

    def hold(self, now: int) -> None: ...

    def start(self, now: int) -> None: ...

    def reset(self, now: int) -> None: ...

    def stop(self, now: int) -> None: ...

    def door(self, now: int) -> None: ...

    def cancel_jog(self, now: int) -> None: ...


class Knobs(Protocol):
    """Overrides and switches, the lock and the two modes without motion."""

    def override(self, what: Override, percent: int, now: int) -> None: ...

    def toggle(self, what: Toggle, now: int) -> bool:
        """Turn it over; what it is then."""
        ...

    def unlock(self, now: int) -> Refused | None: ...

    def check(self, now: int) -> Refused | None:
        """Into check mode, or out of it, whereupon a reset is due."""
        ...

    def sleep(self, now: int) -> Refused | None: ...


class Memory(Protocol):
    """What outlives a reset."""

    def settings(self) -> Mapping[int, float]: ...

    def store(self, number: int, text: str, now: int) -> Refused | None: ...

    def startup(self) -> tuple[str, ...]: ...

    def store_startup(self, index: int, text: str, now: int) -> None:
        """Run it, and keep it if it is good; the answer comes as a notice."""
        ...

    def restore(self, what: Restored, now: int) -> Refused | None:
        """As at first, whereupon a reset is due."""
        ...

    def label(self, text: str | None = None) -> str:
        """The text that ``$I=`` stores."""
        ...


class WireController(Protocol):
    """A controller behind a grblHAL wire."""

    @property
    def lines(self) -> Lines: ...

    @property
    def panel(self) -> Panel: ...

    @property
    def knobs(self) -> Knobs: ...

    @property
    def memory(self) -> Memory: ...

    def reading(self, now: int) -> Reading: ...

    def listen(self, listener: Listener) -> None: ...


Pins = tuple[int, int, int, int]
"""Digital inputs and outputs, analog inputs and outputs."""


class Pinned(Protocol):
    """Pins that can be counted."""

    @property
    def pins(self) -> Pins: ...


class Wired(Protocol):
    """Whatever can stand behind such a wire."""

    @property
    def firmware(self) -> WireController: ...

    @property
    def io(self) -> Pinned: ...
