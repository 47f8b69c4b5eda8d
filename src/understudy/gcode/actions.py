"""Steps that move nothing.

They switch tool, spindle, coolant and pins, wait, and set overrides, path mode and saved modes; or
they change the meaning of coordinates: scaling, coordinate systems, G10, G92, tool length and the
stored positions.
"""

from typing import Literal

from msgspec.structs import asdict, replace

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.gcode.dialect import ZERO
from understudy.gcode.modal import SavedModes, Scaling, Tool, work_offset
from understudy.gcode.requests import (
    Coolant,
    Dwell,
    KinematicsMode,
    OffsetsChanged,
    Overrides,
    PathMode,
    ScalingChanged,
    SetAnalog,
    SetHome,
    SetOutput,
    Spindle,
    ToolChange,
    ToolSelect,
    WaitInput,
)
from understudy.gcode.work import Work, six

LAST_TOOL = 2**31 - 1
_WHOLE_WITHIN = 1e-3
_WRAP = 2**32

WaitMode = Literal["read", "rise", "fall", "high", "low"]
WAIT_MODES: tuple[WaitMode, ...] = ("read", "rise", "fall", "high", "low")


# ── tool and spindle ──────────────────────────────────────────────────────────────────────────────


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


def change_tool(work: Work) -> Refused | None:
    tool = work.changes.get("selected", work.old.selected)
    if work.command("tool") == "M6" and tool != work.old.tool and work.dialect.changes_tools:
        work.changes["tool"] = tool
        work.requests.append(ToolChange(tool, work.old.tool))
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


# ── pins, waits and modes ─────────────────────────────────────────────────────────────────────────


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


# ── saved modes: M70 … M73 ────────────────────────────────────────────────────────────────────────


_OVERRIDES = ("feed_override", "speed_override", "hold_allowed")
_COOLANT = ("mist", "flood")
_SPINDLE = ("spindle", "speed")


def save_modes(work: Work) -> Refused | None:
    """M70 and M73 save the modes, M71 forgets them.

    Feed and spindle are saved as this line sets them, all other modes as they were before it.
    """
    name = work.command("modal state")
    if name == "M71":
        work.changes["saved"] = None
    elif name in ("M70", "M73"):
        old = {field: getattr(work.old, field) for field in SavedModes.__struct_fields__}
        changed = {field: work.changes[field] for field in _SPINDLE if field in work.changes}
        now = {"feed": work.feed, "feed_mode": work.feed_mode}
        work.changes["saved"] = SavedModes(**(old | changed | now))
    return None


def restore_modes(work: Work) -> bool:
    """M72: the saved modes replace those that the line itself has set; motion is not restored."""
    saved = work.old.saved
    if work.command("modal state") != "M72" or saved is None:
        return False
    fields = asdict(saved)
    if all(getattr(work.old, field) == fields[field] for field in _SPINDLE):
        for field in _SPINDLE:
            del fields[field]
    if saved.tool_offset == work.changes.get("tool_offset", work.old.tool_offset) and not any(
        saved.tool_length
    ):
        del fields["tool_length"]
    now = replace(work.old, **{key: work.changes[key] for key in fields if key in work.changes})
    work.changes.update(fields)
    after = replace(now, **fields)
    if any(getattr(now, field) != getattr(after, field) for field in _SPINDLE):
        work.requests.append(Spindle(after.spindle, after.speed))
    if any(getattr(now, field) != getattr(after, field) for field in _COOLANT):
        work.requests.append(Coolant(after.mist, after.flood))
    if any(getattr(now, field) != getattr(after, field) for field in _OVERRIDES):
        work.requests.append(
            Overrides(after.feed_override, after.speed_override, after.hold_allowed)
        )
    work.coordinates = after.coordinates
    return True


# ── zeros and scaling ─────────────────────────────────────────────────────────────────────────────


_G59_3 = COORDINATE_SYSTEMS.index("G59.3")
_TO_TABLE = (1, 10, 11)
NO_TOOL = Tool(0)
_OFFSET_FIELDS = frozenset({"offsets", "coordinates", "g92", "tool_length"})


def scale(work: Work) -> Refused | None:
    """G51: the axis words are the factors, in inches if G20 is active; G50: no scaling.

    The firmware keeps the factors also if a later step refuses the line.
    """
    if not work.command("scaling"):
        return None
    old = work.old.scaling
    new = Scaling()
    if work.command("scaling") == "G51":
        if not work.named:
            return work.refuse(error_numbers.NO_AXIS_WORDS, "G51", "needs factors: axis words")
        factors = [work.named.get(axis, factor) for axis, factor in enumerate(old.factors)]
        new = Scaling(six(factors), active=True)
        work.named.clear()
        work.use(work.dialect.letters)
    if new.letters or new.letters != old.letters:
        work.requests.append(ScalingChanged())
        work.kept_requests.append(ScalingChanged())
    work.keep(scaling=new)
    return None


def apply_scaling(work: Work) -> Refused | None:
    """Scales the axis words of the line: all of them, also those of G10, G92 and G43.1."""
    if work.scaling.active:
        for axis, value in work.named.items():
            work.named[axis] = work.exact(value * work.scaling.factors[axis])
    return None


def choose_coordinates(work: Work) -> Refused | None:
    work.changes["coordinates"] = work.coordinates
    return None


def set_tool_length(work: Work) -> Refused | None:
    name = work.command("tool offset")
    if name == "G49":
        work.changes.update(tool_offset=name, tool_length=ZERO)
        return None
    if name == "G43.1":
        return _dynamic_length(work)
    return _length_from_table(work, name)


def _dynamic_length(work: Work) -> Refused | None:
    if not work.named:
        return work.refuse(error_numbers.OFFSET_AXIS, "G43.1", "needs axis words")
    if refused := _joints_have_none(work, "G43.1"):
        return refused
    length = [work.named.get(axis, old) for axis, old in enumerate(work.old.tool_length)]
    work.changes.update(tool_offset="G43.1", tool_length=six(length))
    return None


def _length_from_table(work: Work, name: str) -> Refused | None:
    if not work.old.tools:
        return work.refuse(error_numbers.UNSUPPORTED, name, "there is no tool table")
    number = work.value("H") or work.changes.get("tool", work.value("T", work.old.tool))
    tool = work.old.tool_in_table(number) if number else NO_TOOL
    if tool is None:
        word = "H" if work.has("H") else name
        return work.refuse(
            error_numbers.TOOL, word, f"there is no tool {number:g}; {known_tools(work)}"
        )
    work.use("H")
    mounted = work.old.built_in_length(work.changes.get("tool", work.old.tool))
    length = six([a - b for a, b in zip(tool.offset, mounted, strict=True)])
    if work.dialect.arm and not work.dialect.two_frames:
        length = ZERO  # X Y Z are joints: the tool is in the kinematics, and no joint is longer
    work.changes.update(tool_offset=name, tool_length=length)
    return None


def change_data(work: Work) -> Refused | None:
    """Sets a coordinate system or a row of the tool table (G10)."""
    if work.command("nonmodal") != "G10":
        return None
    kind, number = work.byte("L"), work.byte("P")
    if kind > 0:
        if not (work.named or (kind != 20 and work.has("R"))):
            return work.refuse(error_numbers.NO_AXIS_WORDS, "G10", "needs axis words")
        if not (work.has("P") or work.has("L")):  # M98 has taken them
            return work.missing("G10", "P or an L")
        if work.value("P") < 0:
            return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
    if refused := _joints_have_none(work, "G10"):
        return refused
    if kind in (2, 20) and not (kind == 2 and work.has("R")):
        refused = _set_work_offset(work, kind, number)
    elif kind in _TO_TABLE and work.old.tools:
        refused = _set_tool_row(work, kind, number)
    else:
        word = "R" if work.has("R") else "L" if work.has("L") else "G10"
        refused = work.refuse(error_numbers.UNSUPPORTED, word, "G10 supports L2 and L20 without R")
    work.use("LP")
    return refused


def _set_work_offset(work: Work, kind: int, number: int) -> Refused | None:
    if number > len(COORDINATE_SYSTEMS):
        last = len(COORDINATE_SYSTEMS)
        return work.refuse(
            error_numbers.COORDINATE_SYSTEM, "P", f"systems are numbered 1 to {last}"
        )
    index = number - 1 if number else work.coordinates
    offset = list(work.old.offsets[index])
    for axis, value in work.named.items():
        offset[axis] = value if kind == 2 else _here_is(work, axis, value, work.old.g92[axis])
    offsets = list(work.old.offsets)
    offsets[index] = six(offset)
    work.changes["offsets"] = tuple(offsets)
    work.moves_zero = index == work.coordinates
    return None


def _here_is(work: Work, axis: int, value: float, other: float) -> float:
    """The offset with which the present position reads `value`, in addition to another offset."""
    rest = work.exact(work.exact(work.here[axis] - value) - other)
    return work.exact(rest - work.old.tool_length[axis])


def _set_tool_row(work: Work, kind: int, number: int) -> Refused | None:
    """L1: as given; L10: the present position reads the values; L11: G59.3 reads them."""
    tool = work.old.tool_in_table(number)
    if tool is None:
        return work.refuse(error_numbers.TOOL, "P", "is not a tool of the table")
    mounted = work.old.built_in_length(work.old.tool)
    present = [a + b for a, b in zip(work.old.tool_length, mounted, strict=True)]
    offset = list(tool.offset) if kind == 1 else present
    for axis, value in work.named.items():
        zero = 0.0
        if kind == 10:
            g5x = work.old.offsets[work.coordinates][axis]
            zero = work.here[axis] - g5x - work.old.g92[axis]
        elif kind == 11:
            zero = work.old.offsets[_G59_3][axis]
        offset[axis] = value if kind == 1 else zero - value + mounted[axis]
    radius = work.value("R") * work.unit if work.has("R") else tool.radius
    work.use("R")
    row = replace(tool, offset=six(offset), radius=radius)
    work.changes["tools"] = tuple(row if old is tool else old for old in work.old.tools)
    return None


def shift_zero(work: Work) -> Refused | None:
    """G92, G92.1, G92.2 and G92.3."""
    name = work.command("nonmodal")
    if name == "G92":
        if not work.named:
            return work.refuse(error_numbers.NO_AXIS_WORDS, "G92", "needs axis words")
        if refused := _joints_have_none(work, "G92"):
            return refused
        offset = list(work.old.g92)
        for axis, value in work.named.items():
            g5x = work.old.offsets[work.coordinates][axis]
            rest = work.exact(work.exact(work.here[axis] - g5x) - value)
            offset[axis] = work.exact(rest - work.old.tool_length[axis])
        work.changes.update(g92=six(offset), g92_kept=six(offset))
    elif name == "G92.1":
        work.changes.update(g92=ZERO, g92_kept=ZERO)
    elif name == "G92.2":
        work.changes.update(g92=ZERO)
    elif name == "G92.3":
        work.changes.update(g92=work.old.g92_kept)
    work.moves_zero |= name.startswith("G92")
    return None


def report_offsets(work: Work) -> Refused | None:
    """Requests `OffsetsChanged` if this block writes an active offset, or changes the coordinate
    system or the tool length.

    The firmware marks the work offset as changed also when the offset written is the present one,
    but not for a coordinate system or a tool length that is active already (gcode.c).
    """
    fields = {name: work.changes[name] for name in _OFFSET_FIELDS if name in work.changes}
    old, after = work.old, replace(work.old, **fields)
    changed = (after.coordinates, after.tool_length) != (old.coordinates, old.tool_length)
    if work.moves_zero or changed:
        work.requests.append(OffsetsChanged(work_offset(after)))
    return None


def store_position(work: Work) -> Refused | None:
    """G28.1 and G30.1: before any motion of the same line."""
    name = work.command("nonmodal")
    here = work.position.axes
    if name == "G28.1":
        work.changes["g28"] = here
        work.requests.append(SetHome("G28", here))
    elif name == "G30.1":
        work.changes["g30"] = here
        work.requests.append(SetHome("G30", here))
    return None


def _joints_have_none(work: Work, name: str) -> Refused | None:
    if work.dialect.two_frames and work.frame == "axes" and work.named:
        return work.refuse(
            error_numbers.UNSUPPORTED, name, "shifts only the tool's frame, no joints"
        )
    return None
