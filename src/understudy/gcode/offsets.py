"""Steps that change the meaning of coordinates: scaling, coordinate systems, G10, G92, tool length
and the stored positions."""

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.gcode.dialect import ZERO
from understudy.gcode.modal import Scaling, Tool, work_offset
from understudy.gcode.requests import OffsetsChanged, ScalingChanged, SetHome
from understudy.gcode.switches import known_tools
from understudy.gcode.work import Work, six

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
    return None


def report_offsets(work: Work) -> Refused | None:
    """Requests `OffsetsChanged` if this block changes an offset."""
    if _OFFSET_FIELDS.isdisjoint(work.changes):
        return None
    fields = {name: work.changes[name] for name in _OFFSET_FIELDS if name in work.changes}
    after = replace(work.old, **fields)
    if after != work.old:
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
