"""The controller behind a grblHAL wire, as its face sees it: Protocols and the values exchanged.

The controller owns modal state, settings, alarms and overrides. The face owns bytes and words.
"""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode.dialect import ZERO, Axes
from understudy.gcode.modal import Modal
from understudy.simulation.io.virtual_io import VirtualIO

Event = Literal[
    "resumed",
    "restoring spindle",
    "door",
    "stop",
    "program end",
    "unlocked",
    "restored",
    "enabled",
    "disabled",
    "critical",
    "estop",
    "motor fault",
    "homing required",
    "limits engaged",
    "homed",
]
Field = Literal[
    "overrides",
    "spindle",
    "coolant",
    "tool",
    "offset",
    "system",
    "scaling",
    "input",
    "homed",
]
"""Fields of a status report that the next report must contain."""
Override = Literal["feed", "rapid", "spindle"]
Toggle = Literal["flood", "mist", "optional stop", "single block", "block delete", "spindle"]
Edition = Literal["GrblHAL", "Grbl"]
"""How the firmware calls itself; Grbl: it is compiled for compatibility with Grbl 1.1."""
Restored = Literal["settings", "parameters", "all", "driver"]
"""`driver`: settings of the driver, of which there are none."""


class Notice(Struct, frozen=True):
    """A message from the controller to its face.

    | kind | meaning |
    |---|---|
    | `answer` | the line is accepted (`code` 0) or refused with an error number |
    | `alarm` | the controller locks itself; `code` is the alarm number |
    | `reset` | the controller has restarted; it is locked if `code` is 1 |
    | `event` | `text` names an `Event` |
    | `message` | `text` is a program's own message |
    | `startup` | a start-up line was run; `text` is the line, `code` its error number |
    | `probe` | a probing move has ended |
    | `report` | a status report is due |
    | `status` | a status report is sent now; if `code` is 1 only if one was requested in silence |
    | `changed` | `text` names a `Field` |
    | `flush` | bytes that were received and not yet read are discarded |
    | `void` | the line in progress will not be answered |
    | `settled` | the controller may accept lines again |
    """

    kind: Literal[
        "answer",
        "alarm",
        "reset",
        "event",
        "message",
        "startup",
        "probe",
        "report",
        "changed",
        "flush",
        "void",
        "settled",
        "status",
    ]
    code: int = 0
    text: str = ""


Listener = Callable[[Notice, int], None]


class FirmwareReading(Struct, frozen=True):
    """Everything that a status report can show. Position and offsets are in axis units.

    `feed` is per minute. `line` is the N word of the line in execution. `tool` is the tool in the
    spindle; `changing` is set while the operator has to change it. `input` is the value that the
    last M66 read. `switches` are grblHAL's letters of the switches and inputs that are on; `limits`
    is the mask of the engaged limit inputs, `limit_event` that of the last hard limit alarm.
    `homed` is the value of the H field, empty if there is none; `homed_axes` is the mask of the
    homed axes, `home` the positions that homing set. `silent`: no status report is sent now.
    `pause`: the word (M0, M1, M60) at which the program waits.
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
    homed: str
    input: float | None
    switches: str
    modal: Modal
    probe: Axes = ZERO
    touched: bool = False
    limits: int = 0
    limit_event: int = 0
    homed_axes: int = 0
    home: Axes = ZERO
    silent: bool = False
    pause: str = ""


class LineExecution(Protocol):
    """Executes one line after the other; the answer comes as a notice, now or later."""

    def execute(self, text: str, now: int) -> None:
        """Execute a line of G-code."""
        ...

    def jog(self, text: str, now: int) -> None:
        """Execute a jog: the text after ``$J=``."""
        ...

    def home(self, axes: str, now: int) -> None:
        """Home the axes with these letters; all axes if there are none."""
        ...


class LinePermission(Protocol):
    """When lines may be executed."""

    def gcode_refusal(self, now: int) -> Refused | None:
        """Why no G-code is accepted now; None if it is."""
        ...

    def accepts_line(self, now: int) -> bool:
        """Whether the next line may be sent; in Hold, Door and Tool lines wait unread."""
        ...

    def runs(self, now: int) -> bool:
        """Whether lines move the axes."""
        ...

    def call_at_rest(self, now: int) -> None:
        """Send the notice `settled` when the motion in progress has ended."""
        ...

    def waits_for_operator(self, now: int) -> bool:
        """Whether the program waits in Hold, Door or Tool until an operator continues it."""
        ...


class LineInput(LineExecution, LinePermission, Protocol):
    """The lines of a client."""


class RealtimeCommands(Protocol):
    """Commands of a single byte that act at once, ahead of all lines."""

    def hold(self, now: int) -> None: ...

    def start(self, now: int) -> None: ...

    def reset(self, now: int) -> None: ...

    def stop(self, now: int) -> None: ...

    def door(self, now: int) -> None: ...

    def cancel_jog(self, now: int) -> None: ...


class OperatorSwitches(Protocol):
    """Overrides, toggles, the lock, check mode and sleep."""

    def override(self, what: Override, percent: int, now: int) -> None: ...

    def toggle(self, what: Toggle, now: int) -> bool:
        """Toggle a switch and return its new position."""
        ...

    def unlock(self, now: int) -> Refused | None: ...

    def check(self, now: int) -> Refused | None:
        """Enter check mode; or leave it, in which case the caller resets the controller."""
        ...

    def sleep(self, now: int) -> Refused | None: ...

    def acknowledge(self, now: int) -> bool:
        """Accept lines while the operator changes a tool; whether that has an effect."""
        ...


class Storage(Protocol):
    """Data that a reset keeps."""

    def settings(self) -> Mapping[int, float]: ...

    def store(self, number: int, text: str, now: int) -> Refused | None: ...

    def startup(self) -> tuple[str, ...]: ...

    def store_startup(self, index: int, text: str, now: int) -> None:
        """Run a start-up line and store it if it is accepted; the answer comes as a notice."""
        ...

    def restore(self, what: Restored, now: int) -> Refused | None:
        """Restore defaults; the caller resets the controller afterwards."""
        ...

    def label(self, text: str | None = None) -> str:
        """Store the text of ``$I=`` if one is given; return the stored text."""
        ...


class GrblController(Protocol):
    """A controller behind a grblHAL wire."""

    @property
    def lines(self) -> LineInput: ...

    @property
    def realtime(self) -> RealtimeCommands: ...

    @property
    def switches(self) -> OperatorSwitches: ...

    @property
    def storage(self) -> Storage: ...

    def reading(self, now: int) -> FirmwareReading: ...

    def listen(self, listener: Listener) -> None: ...


PinCounts = tuple[int, int, int, int]
"""Digital inputs and outputs, analog inputs and outputs."""


class GrblRobot(Protocol):
    """A robot that a grblHAL face can serve."""

    @property
    def firmware(self) -> GrblController: ...

    @property
    def io(self) -> VirtualIO: ...
