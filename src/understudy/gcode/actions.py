"""Steps of a block that move nothing: feed, spindle, tool, pins, dwell, flow.

Each step takes the workbench and returns a refusal or nothing; it is asked only where its group
of commands is in the block (see `interpreter.STEPS`). Numbers of refusals are
grblHAL's, and so is the order of the questions.
"""

from typing import Literal

from understudy.errors import Refused
from understudy.gcode import faults
from understudy.gcode.dialect import MM_PER_INCH
from understudy.gcode.offsets import tell_offsets
from understudy.gcode.requests import (
    Coolant,
    Dwell,
    KinematicsMode,
    Message,
    Overrides,
    PathMode,
    ProgramEnd,
    ProgramPause,
    SetAnalog,
    SetOutput,
    Spindle,
    ToolChange,
    ToolSelect,
    WaitInput,
)
from understudy.gcode.work import Work

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


def call_macro(work: Work) -> Refused | None:
    name = work.command("macro")
    if not work.has("P"):
        return work.missing(name, "P")
    return work.refuse(faults.UNSUPPORTED, name, "there are no macros on this controller")


def number_line(work: Work) -> Refused | None:
    number = work.value("N")
    if number > LAST_LINE_NUMBER:
        return work.refuse(faults.LINE_NUMBER, "N", f"line numbers end at {LAST_LINE_NUMBER}")
    if int(number) != work.old.line:
        work.changes["line"] = int(number)
    return None


def check_tool_words(work: Work) -> Refused | None:
    for letter in "TH":
        if not work.has(letter):
            continue
        number = work.value(letter)
        if not _whole(number):
            return work.refuse(faults.NOT_INTEGER, letter, "should be a whole number")
        if number < 0:
            return work.refuse(faults.NEGATIVE, letter, "cannot be negative")
        if letter == "T" and not _is_tool(work, number):
            return work.refuse(faults.TOOL, letter, "is no tool of this controller")
    return None


def set_feed(work: Work) -> Refused | None:
    """F is forgotten when G93 and G94 change, and never carried along in G93."""
    given, inverse_time = "F" in work.block.values, work.feed_mode == "G93"
    feeding = work.axis == "motion" and work.motion not in _NEEDS_NO_FEED
    if not given and (work.jogging or (inverse_time and feeding)):
        return work.refuse(faults.NO_FEED, work.motion, "needs a feed: no F in this line")
    if given:
        feed = work.value("F")
        if feed < 0:
            return work.refuse(faults.NEGATIVE, "F", "cannot be negative")
        in_inches = work.imperial and not inverse_time
        work.feed = work.exact(feed * MM_PER_INCH) if in_inches else feed
    elif not inverse_time and work.feed_mode == work.old.feed_mode:
        work.feed = work.old.feed
    if work.feed_mode == "G95":
        return work.refuse(faults.UNSUPPORTED, "G95", "there is no encoder on the spindle")
    return None


def set_speed(work: Work) -> Refused | None:
    name = work.command("spindle")
    if work.has("$") and (name or work.has("S")):
        if work.value("$") != 0:
            return work.refuse(faults.RANGE, "$", "there is one spindle, number 0")
        work.use("$")
    speed = work.value("S", work.old.speed)
    if speed < 0:
        return work.refuse(faults.NEGATIVE, "S", "cannot be negative")
    if speed != work.old.speed:
        work.changes["speed"] = speed
    return None


def select_tool(work: Work) -> Refused | None:
    if work.command("tool") == "M61":
        return _set_tool_number(work)
    selected = int(work.value("T", work.old.selected))
    if selected != work.old.selected:
        work.changes["selected"] = selected
        work.requests.append(ToolSelect(selected))
    return None


def _set_tool_number(work: Work) -> Refused | None:
    number = work.value("Q")
    if not work.has("Q"):
        return work.missing("M61", "Q")
    if not _whole(number):
        return work.refuse(faults.NOT_INTEGER, "Q", "should be a whole number")
    if not _is_tool(work, number):
        return work.refuse(faults.TOOL, "Q", "is no tool of this controller")
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
        return work.refuse(faults.NEGATIVE, "P", "cannot be negative")
    if int(pin) >= work.dialect.digital_outputs:
        last = work.dialect.digital_outputs - 1
        return work.refuse(faults.RANGE, "P", f"digital outputs are numbered 0 to {last}")
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
        return work.refuse(faults.ANALOG_RANGE, "E", f"analog outputs are numbered 0 to {last}")
    work.use("EQ")
    work.requests.append(SetAnalog(int(pin), work.value("Q"), with_motion=name == "M67"))
    return None


def _wait_for_input(work: Work) -> Refused | None:
    mode, timeout = int(work.value("L")), work.value("Q")
    digital, analog = work.has("P"), work.has("E")
    if not (work.has("L") or work.has("Q")):
        return work.missing("M66", "L or a Q")
    if digital and analog:
        return work.refuse(faults.WORD_CONFLICT, "E", "M66 waits for P or for E, not for both")
    if mode >= len(WAIT_MODES):
        return work.refuse(faults.RANGE, "L", "is 0 read, 1 rise, 2 fall, 3 high or 4 low")
    if mode and timeout == 0:
        return work.refuse(faults.RANGE, "M66", "needs a time-out: Q above 0 seconds")
    if work.dialect.two_frames and not (digital or analog):
        return work.missing("M66", "P or an E")
    pin = work.value("P" if digital else "E")
    if digital and pin < 0:
        return work.refuse(faults.NEGATIVE, "P", "cannot be negative")
    inputs = work.dialect.digital_inputs if digital else work.dialect.analog_inputs
    letter = "P" if digital else "E"
    if not 0 <= int(pin) < inputs:
        return work.refuse(faults.RANGE, letter, f"these inputs are numbered 0 to {inputs - 1}")
    if analog and mode:
        return work.refuse(faults.RANGE, "L", "an analog input is only read: L0")
    work.use("ELPQ")
    kind: Literal["digital", "analog"] = "digital" if digital else "analog"
    work.requests.append(WaitInput(kind, int(pin), WAIT_MODES[mode], timeout))
    return None


def change_tool(work: Work) -> Refused | None:
    tool = work.changes.get("selected", work.old.selected)
    if work.command("tool") == "M6" and tool != work.old.tool:
        work.changes["tool"] = tool
        work.requests.append(ToolChange(tool, work.old.tool))
    return None


def turn_spindle(work: Work) -> Refused | None:
    name = work.command("spindle")
    direction = name or work.old.spindle
    speed = work.changes.get("speed", work.old.speed)
    if name or ("speed" in work.changes and direction != "M5"):
        work.requests.append(Spindle(direction, speed))
        work.changes["spindle"] = direction
    return None


def switch_coolant(work: Work) -> Refused | None:
    name = work.command("coolant")
    mist = name == "M7" or (name == "M8" and work.old.mist)
    flood = name == "M8" or (name == "M7" and work.old.flood)
    work.changes.update(mist=mist, flood=flood)
    work.requests.append(Coolant(mist, flood))
    return None


def allow_overrides(work: Work) -> Refused | None:
    name = work.command("overrides")
    allowed = work.value("P", 1.0) != 0
    if work.has("P") and work.value("P") < 0:
        return work.refuse(faults.NEGATIVE, "P", "cannot be negative")
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
        return work.refuse(faults.NEGATIVE, "P", "cannot be negative")
    work.use("P")
    work.requests.append(Dwell(seconds))
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
        scale = MM_PER_INCH if work.imperial else 1.0
        tolerance = work.value("P") * scale if work.has("P") else 0.0
        if tolerance < 0:
            return work.refuse(faults.NEGATIVE, "P", "cannot be negative")
        work.use("P")
    work.changes.update(path=name, path_tolerance=tolerance)
    work.requests.append(PathMode(name, tolerance))
    return None


def end_or_pause(work: Work) -> None:
    """Comes last, after the motion of the line."""
    name = work.command("flow")
    if name in ("M0", "M1", "M60"):
        work.requests.append(ProgramPause(name))
    if name in ("M2", "M30"):
        work.changes.update(
            motion="G1", plane="G17", distance="G90", feed_mode="G94", coordinates=0,
            spindle="M5", mist=False, flood=False, feed_override=True, speed_override=True,
        )  # fmt: skip
        work.requests.append(ProgramEnd(name))
        if work.coordinates:
            tell_offsets(work)


def _whole(value: float) -> bool:
    return abs(value - int(value)) < _WHOLE_WITHIN


def _is_tool(work: Work, number: float) -> bool:
    if work.old.tools and number:
        return work.old.tool_in_table(number) is not None
    return number <= LAST_TOOL
