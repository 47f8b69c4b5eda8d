"""What a grblHAL face and the firmware behind it exchange: notices, readings and their words.

The controller owns modal state, settings, alarms and overrides. The face owns bytes and words.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from understudy.gcode.dialect import ZERO, Axes
from understudy.gcode.modal import Modal
from understudy.simulation.io.virtual_io import VirtualIO

if TYPE_CHECKING:
    from understudy.robots.grblhal.firmware import Firmware

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


PinCounts = tuple[int, int, int, int]
"""Digital inputs and outputs, analog inputs and outputs."""


class GrblRobot(Protocol):
    """A robot that a grblHAL face can serve."""

    @property
    def firmware(self) -> "Firmware": ...

    @property
    def io(self) -> VirtualIO: ...
