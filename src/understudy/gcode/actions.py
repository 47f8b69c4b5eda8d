"""The interpretation of one block (`Work`), and its steps that move nothing.

Feed, spindle, tool, pins, dwell, program flow, coordinate systems, G10, G92, tool length and the
stored positions. Each step takes the `Work` and returns a refusal or None; it runs only if its
group of commands is in the block (see `interpreter.STEPS`). The numbers of refusals are grblHAL's,
and so is the order of the checks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.blocks import SYNCHRONIZED, AxisUse, Block, Group
from understudy.gcode.dialect import MM_PER_INCH, ZERO, Axes, Dialect, Frame
from understudy.gcode.modal import Modal, Scaling
from understudy.gcode.requests import (
    Coolant,
    Dwell,
    KinematicsMode,
    Message,
    Overrides,
    PathMode,
    Request,
    SetAnalog,
    SetOutput,
    Spindle,
    ToolChange,
    ToolSelect,
    WaitInput,
)

FARTHEST = 1e12
"""Coordinate of a target, mm or deg: far beyond the step counters of a firmware."""


class Position(Protocol):
    """The position of a program: the last commanded target, not the present machine position."""

    @property
    def axes(self) -> Axes:
        """Axis positions, mm or deg."""
        ...

    @property
    def pose(self) -> Axes:
        """The tool: x y z in mm, rx ry rz in deg; read only by dialects with two frames."""
        ...


@dataclass(slots=True)
class Work:
    """One block while it is interpreted.

    `left`: letters whose values are still unused. `named`: the axis words by axis, in axis
    units after `convert_units`. `changes`: fields of the modal state to replace. `kept`: those that
    the firmware changes at once and keeps if it refuses the line later, and their requests.
    `given`: the words that a macro takes. `accepted_only`: the code of a cycle that moves nothing.
    """

    block: Block
    old: Modal
    dialect: Dialect
    position: Position
    jogging: bool
    motion: str
    plane: str
    imperial: bool
    incremental: bool
    feed_mode: str
    coordinates: int
    frame: Frame
    axis: AxisUse
    named: dict[int, float]
    left: set[str]
    feed: float = 0.0
    here: Axes = ZERO
    target: Axes = ZERO
    reached: Axes | None = None
    reached_frame: Frame = "axes"
    changes: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    accepted_only: str = ""
    kept: dict[str, Any] = field(default_factory=dict)
    kept_requests: list[Request] = field(default_factory=list)
    given: dict[str, float] = field(default_factory=dict)

    def command(self, group: Group) -> str:
        """The code of this group; empty if the line does not have one."""
        return self.block.commands.get(group, "")

    def has(self, letter: str) -> bool:
        """Whether the block has this word and it is still unused."""
        return letter in self.left

    def value(self, letter: str, default: float = 0.0) -> float:
        return self.block.values.get(letter, default)

    def byte(self, letter: str, default: float = 0.0) -> int:
        """The whole part of a value; the firmware keeps its last eight bits."""
        whole = int(self.value(letter, default))
        return whole % 256 if self.dialect.spelling.single else whole

    def use(self, letters: str) -> None:
        self.left.difference_update(letters)

    def keep(self, **changes: Any) -> None:
        """Changes fields of the modal state also if the line is refused later."""
        self.changes.update(changes)
        self.kept.update(changes)

    @property
    def scaling(self) -> Scaling:
        scaling: Scaling = self.changes.get("scaling", self.old.scaling)
        return scaling

    def too_far(self, *places: Iterable[float]) -> Refused | None:
        """Refuses a motion to or around a place that is farther away than any machine is long."""
        if all(abs(value) <= FARTHEST for place in places for value in place):
            return None
        return self.refuse(error_numbers.RANGE, self.motion, f"goes beyond {FARTHEST:g} mm")

    @property
    def unit(self) -> float:
        """Millimetres of a length unit of this line."""
        return self.exact(MM_PER_INCH) if self.imperial else 1.0

    def exact(self, value: float) -> float:
        return self.dialect.exact(value)

    def refuse(self, code: int, word: str, message: str) -> Refused:
        return self.block.problem(code, word, message).refused()

    def missing(self, command: str, letter: str) -> Refused:
        return self.refuse(error_numbers.MISSING_WORD, command, f"needs a {letter} word")

    def offset(self, axis: int) -> float:
        """The offset from the program's zero to the machine's, along one axis."""
        work, g92 = self.old.offsets[self.coordinates][axis], self.old.g92[axis]
        length = self.old.tool_length[axis]
        if not (work or g92 or length):
            return 0.0
        return self.exact(self.exact(work + g92) + length)


def six(values: list[float]) -> Axes:
    x, y, z, a, b, c = values
    return x, y, z, a, b, c


LAST_LINE_NUMBER = 10_000_000
LAST_TOOL = 2**31 - 1
_WHOLE_WITHIN = 1e-3
_WRAP = 2**32
_NEEDS_NO_FEED = ("G0", "G80", "G33", "G33.1")

WaitMode = Literal["read", "rise", "fall", "high", "low"]
WAIT_MODES: tuple[WaitMode, ...] = ("read", "rise", "fall", "high", "low")


def announce(work: Work) -> Refused | None:
    if work.block.message is not None:
        work.requests.append(Message(work.block.message))
    return None


def number_line(work: Work) -> Refused | None:
    number = work.value("N")
    if number > LAST_LINE_NUMBER:
        return work.refuse(
            error_numbers.LINE_NUMBER, "N", f"line numbers end at {LAST_LINE_NUMBER}"
        )
    if int(number) != work.old.line:
        work.changes["line"] = int(number)
    return None


def check_tool_words(work: Work) -> Refused | None:
    for letter in "TH":
        if not work.has(letter):
            continue
        number = work.value(letter)
        if not _whole(number):
            return work.refuse(error_numbers.NOT_INTEGER, letter, "should be a whole number")
        if number < 0:
            return work.refuse(error_numbers.NEGATIVE, letter, "cannot be negative")
        if letter == "T" and not _is_tool(work, number):
            return work.refuse(error_numbers.TOOL, letter, _no_tool(work))
    return None


def set_feed(work: Work) -> Refused | None:
    """Sets F: a change between G93 and G94 resets it, and in G93 it is valid for one line only."""
    given, inverse_time = "F" in work.block.values, work.feed_mode == "G93"
    if work.feed_mode != work.old.feed_mode and not work.jogging and work.old.feed:
        work.kept["feed"] = 0.0
    feeding = work.axis == "motion" and work.motion not in _NEEDS_NO_FEED
    if not given and (work.jogging or (inverse_time and feeding)):
        return work.refuse(error_numbers.NO_FEED, work.motion, "needs a feed: no F in this line")
    if given:
        feed = work.value("F")
        if feed < 0:
            return work.refuse(error_numbers.NEGATIVE, "F", "cannot be negative")
        in_inches = work.imperial and not inverse_time
        work.feed = work.exact(feed * work.unit) if in_inches else feed
    elif not inverse_time and work.feed_mode == work.old.feed_mode:
        work.feed = work.old.feed
    return None


def set_speed(work: Work) -> Refused | None:
    name = work.command("spindle")
    if work.has("$") and (name or _names_spindle(work)):
        if work.value("$") != 0:
            return work.refuse(error_numbers.RANGE, "$", "there is one spindle, number 0")
        work.use("$")
    if work.feed_mode == "G95":
        return work.refuse(error_numbers.UNSUPPORTED, "G95", "there is no encoder on the spindle")
    speed = work.value("S", work.old.speed)
    if speed < 0:
        return work.refuse(error_numbers.NEGATIVE, "S", "cannot be negative")
    if speed != work.old.speed:
        work.changes["speed"] = speed
    return None


def _names_spindle(work: Work) -> bool:
    """Whether the line means one spindle, also without M3, M4 and M5."""
    synchronized = work.command("motion") in SYNCHRONIZED or work.command("feed mode") == "G95"
    return work.has("S") or synchronized or work.command("overrides") == "M51"


def select_tool(work: Work) -> Refused | None:
    if work.command("tool") == "M61":
        return _set_tool_number(work)
    selected = int(work.value("T", work.old.selected))
    if selected != work.old.selected:
        work.changes["selected"] = selected
        work.requests.append(ToolSelect(selected))
        if not work.dialect.changes_tools:
            work.changes["tool"] = selected
            work.requests.append(ToolChange(selected, work.old.tool, physical=False))
    return None


def _set_tool_number(work: Work) -> Refused | None:
    number = work.value("Q")
    if not work.has("Q"):
        return work.missing("M61", "Q")
    if not _whole(number):
        return work.refuse(error_numbers.NOT_INTEGER, "Q", "should be a whole number")
    if not _is_tool(work, number):
        return work.refuse(error_numbers.TOOL, "Q", _no_tool(work))
    work.use("Q")
    tool = int(number) % _WRAP
    work.changes.update(tool=tool, selected=tool)
    work.requests.append(ToolChange(tool, work.old.tool, physical=False))
    return None


def switch_pins(work: Work) -> Refused | None:
    name = work.command("io")
    if name == "M66":
        return _wait_for_input(work)
    if name in ("M67", "M68"):
        return _set_analog(work, name)
    pin = work.value("P")
    if not work.has("P"):
        return work.missing(name, "P")
    if pin < 0:
        return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
    if int(pin) >= work.dialect.digital_outputs:
        last = work.dialect.digital_outputs - 1
        return work.refuse(error_numbers.RANGE, "P", f"digital outputs are numbered 0 to {last}")
    work.use("P")
    on, with_motion = name in ("M62", "M64"), name in ("M62", "M63")
    work.requests.append(SetOutput(int(pin), on, with_motion))
    return None


def _set_analog(work: Work, name: str) -> Refused | None:
    if not (work.has("E") or work.has("Q")):
        return work.missing(name, "E and a Q")
    pin = work.value("E")
    if not 0 <= int(pin) < work.dialect.analog_outputs:
        last = work.dialect.analog_outputs - 1
        return work.refuse(
            error_numbers.ANALOG_RANGE, "E", f"analog outputs are numbered 0 to {last}"
        )
    work.use("EQ")
    work.requests.append(SetAnalog(int(pin), work.value("Q"), with_motion=name == "M67"))
    return None


def _wait_for_input(work: Work) -> Refused | None:
    mode, timeout = work.byte("L"), work.value("Q")
    digital, analog = work.has("P"), work.has("E")
    if not (work.has("L") or work.has("Q")):
        return work.missing("M66", "L or a Q")
    if digital and analog:
        return work.refuse(
            error_numbers.WORD_CONFLICT, "E", "M66 waits for P or for E, not for both"
        )
    if mode >= len(WAIT_MODES):
        return work.refuse(error_numbers.RANGE, "L", "is 0 read, 1 rise, 2 fall, 3 high or 4 low")
    if mode and timeout == 0:
        return work.refuse(error_numbers.RANGE, "M66", "needs a time-out: Q above 0 seconds")
    if work.dialect.two_frames and not (digital or analog):
        return work.missing("M66", "P or an E")
    letter = "P" if digital else "E"
    pin = work.byte(letter)
    if digital and work.value("P") < 0:
        return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
    inputs = work.dialect.digital_inputs if digital else work.dialect.analog_inputs
    if not 0 <= pin < inputs:
        return work.refuse(
            error_numbers.RANGE, letter, f"these inputs are numbered 0 to {inputs - 1}"
        )
    if analog and mode:
        return work.refuse(error_numbers.RANGE, "L", "an analog input is only read: L0")
    work.use("ELPQ")
    kind: Literal["digital", "analog"] = "digital" if digital else "analog"
    work.requests.append(WaitInput(kind, pin, WAIT_MODES[mode], timeout))
    return None


def change_tool(work: Work) -> Refused | None:
    tool = work.changes.get("selected", work.old.selected)
    if work.command("tool") == "M6" and tool != work.old.tool and work.dialect.changes_tools:
        work.changes["tool"] = tool
        work.requests.append(ToolChange(tool, work.old.tool))
    return None


def turn_spindle(work: Work) -> Refused | None:
    """M3, M4, M5 and S; the firmware does nothing if the spindle already turns like that."""
    name = work.command("spindle")
    direction = name or work.old.spindle
    speed = work.changes.get("speed", work.old.speed)
    turned = direction != work.old.spindle
    repeated = name and work.dialect.arm
    if turned or repeated or ("speed" in work.changes and direction != "M5"):
        work.requests.append(Spindle(direction, speed, turned))
        work.changes["spindle"] = direction
    return None


def switch_coolant(work: Work) -> Refused | None:
    name = work.command("coolant")
    mist = name == "M7" or (name == "M8" and work.old.mist)
    flood = name == "M8" or (name == "M7" and work.old.flood)
    if (mist, flood) != (work.old.mist, work.old.flood) or work.dialect.arm:
        work.changes.update(mist=mist, flood=flood)
        work.requests.append(Coolant(mist, flood))
    return None


def allow_overrides(work: Work) -> Refused | None:
    name = work.command("overrides")
    allowed = work.value("P", 1.0) != 0
    if work.has("P") and work.value("P") < 0:
        return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
    work.use("P")
    changes = {
        "M48": {"feed_override": True, "speed_override": True},
        "M49": {"feed_override": False, "speed_override": False},
        "M50": {"feed_override": allowed},
        "M51": {"speed_override": allowed},
        "M53": {"hold_allowed": allowed},
    }[name]
    work.changes.update(changes)
    old = work.old
    speed = changes.get("speed_override", old.speed_override)
    hold = changes.get("hold_allowed", old.hold_allowed)
    rests = (speed, hold) != (old.speed_override, old.hold_allowed)
    work.requests.append(
        Overrides(changes.get("feed_override", old.feed_override), speed, hold, rests)
    )
    return None


def dwell(work: Work) -> Refused | None:
    if work.command("nonmodal") != "G4":
        return None
    if not work.has("P"):
        return work.missing("G4", "P (seconds)")
    seconds = work.value("P")
    if seconds < 0:
        return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
    work.use("P")
    work.requests.append(Dwell(work.dialect.dwell_seconds(seconds)))
    return None


def choose_kinematics(work: Work) -> Refused | None:
    name = work.command("kinematics")
    work.changes["kinematics"] = name
    work.requests.append(KinematicsMode(world=name == "M429"))
    return None


def choose_path(work: Work) -> Refused | None:
    name = work.command("path")
    tolerance = 0.0
    if name == "G64":
        tolerance = work.value("P") * work.unit if work.has("P") else 0.0
        if tolerance < 0:
            return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
        work.use("P")
    work.changes.update(path=name, path_tolerance=tolerance)
    work.requests.append(PathMode(name, tolerance))
    return None


def _whole(value: float) -> bool:
    return abs(value - int(value)) < _WHOLE_WITHIN


def _is_tool(work: Work, number: float) -> bool:
    if work.old.tools and number and "G43" not in work.dialect.without:
        return work.old.tool_in_table(number) is not None
    return number <= LAST_TOOL


def _no_tool(work: Work) -> str:
    return f"is not a tool of this controller; {known_tools(work)}"


def known_tools(work: Work) -> str:
    """The tools of the table, or the range of numbers without one."""
    table = ", ".join(f"T{number}" for number in (0, *(each.number for each in work.old.tools)))
    return f"there are: {table}" if work.old.tools else f"allowed: 0…{LAST_TOOL}"
