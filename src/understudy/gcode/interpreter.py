"""Converts a block and the modal state to requests and the next modal state.

`interpret` is a pure function: a refused block changes nothing. The steps are in the order of
RS274/NGC, table 8, as in the firmware; the first refusal is the result. The steps that move are
here: units, targets, G28 and G30, straight lines, arcs and probing.

Macro calls: a controller that stores no files has only the firmware's seven macros; the call of any
other is refused. What it refuses, and how much of the line is carried out before, follows the
firmware.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import actions, error_numbers
from understudy.gcode.blocks import (
    ARCS,
    COORDINATE_SYSTEMS,
    DRILLING,
    PROBES,
    SPLINES,
    SYNCHRONIZED,
    TAKES_M_WORDS,
    Block,
    Group,
)
from understudy.gcode.dialect import ZERO, Axes, Dialect, Frame
from understudy.gcode.modal import Modal, ModalCall, Scaling
from understudy.gcode.motions import along_arc, check_left_cycle, circle, drill, follow_spline
from understudy.gcode.requests import (
    GoHome,
    Message,
    Probe,
    ProgramEnd,
    ProgramPause,
    Request,
    ScalingChanged,
)
from understudy.gcode.work import (
    Position,
    Work,
    announce,
    number_line,
    set_feed,
    set_speed,
    six,
    straight,
)

_TO_ZERO = (*DRILLING, *SPLINES)
"""Motions that end at the machine's zero without axis words."""
_JOG_GROUPS: tuple[Group, ...] = ("nonmodal", "distance", "units")


class KnownPosition(Struct, frozen=True):
    """A `Position` as a value: in axis units, and in mm and deg of the tool."""

    axes: Axes = ZERO
    pose: Axes = ZERO


class LateRefusal(Struct, frozen=True):
    """A refusal after the requests of a block.

    `executed`: the block was carried out before. `in_check`: it is refused in check mode, too.
    """

    refused: Refused
    executed: bool = True
    in_check: bool = True


class Interpretation(Struct, frozen=True):
    """The requests of a block, and the modal state after it.

    `axes` or `pose` is the new commanded position, in mm and deg, if the block moves: the one
    in the frame of its target. A probing move reaches its target only without contact.
    `accepted_only`: the canned cycle of the block, if the controller accepts it without motion.
    `refusal`: the block is refused all the same, after its requests.
    `ends_early`: a macro call ends the line; nothing comes after it, no pause of single blocks.
    """

    modal: Modal
    requests: tuple[Request, ...] = ()
    axes: Axes | None = None
    pose: Axes | None = None
    accepted_only: str = ""
    refusal: LateRefusal | None = None
    ends_early: bool = False


def interpret(
    block: Block, modal: Modal, *, dialect: Dialect, position: Position
) -> Interpretation | Refused:
    """Applies a block to the modal state; returns the requests to the machine."""
    if not (block.commands or block.values):
        return Interpretation(modal, () if block.message is None else (Message(block.message),))
    work = _lay_out(block, modal, dialect, position)
    calls_macro = "macro" in work.active
    if work.command("macro") == "G66":
        call = remembered_call(work)
        after = Interpretation(replace(modal, calls=(*modal.calls, call)), ends_early=True)
        return check_macro_call(work) or after
    refused = _through_steps(work)
    if refused is None and calls_macro and macro_takes_line(work):
        refused = call_macro(work)
        if refused is None:
            return _after_whole_call(work)
    if refused is not None:
        return _after_refusal(work, refused)
    _keep_modes(work)
    if "modal state" in work.active and actions.restore_modes(work):
        actions.report_offsets(work)
    last = macro_at_end(work) if calls_macro else None
    if last is None:
        _end_or_pause(work)
        return _step(work, _changed(modal, work.changes))
    late = run_macro(work, last)
    step = replace(_step(work, _changed(modal, work.changes)), ends_early=True)
    if late is None:
        return step
    if work.axis != "motion":  # only a motion prints the message of a line that ends so
        requests = tuple(each for each in step.requests if not isinstance(each, Message))
        step = replace(step, requests=requests)
    return replace(step, refusal=LateRefusal(late, in_check=last.name != "M98"))


def _after_refusal(work: Work, refused: Refused) -> Interpretation | Refused:
    """The refusal of a line, with the changes that the firmware keeps."""
    if not work.kept:
        return refused
    requests = tuple(work.kept_requests)
    refusal = LateRefusal(refused, executed=False)
    return Interpretation(_changed(work.old, work.kept), requests, refusal=refusal)


def _after_whole_call(work: Work) -> Interpretation:
    """A macro has taken the whole line; G66.1 stays active."""
    calls = work.old.calls
    if work.command("macro") == "G66.1":
        calls = (*calls, remembered_call(work, "G66.1"))
    return Interpretation(_changed(work.old, {**work.kept, "calls": calls}), ends_early=True)


def _changed(modal: Modal, changes: Mapping[str, Any]) -> Modal:
    changed = {key: new for key, new in changes.items() if new != getattr(modal, key)}
    return replace(modal, **changed) if changed else modal


def jog(
    block: Block, modal: Modal, *, dialect: Dialect, position: Position
) -> Interpretation | Refused:
    """Interprets the text after `$J=`: axis words, F, and the modes G20 G21 G90 G91 G53.

    Modes and F are valid for this jog only. Without axis words nothing moves.
    """
    work = _lay_out(block, modal, dialect, position, jogging=True)
    if refused := _through_steps(work):
        return refused
    for group, name in block.commands.items():
        if group not in _JOG_GROUPS or (group == "nonmodal" and name != "G53"):
            return work.refuse(
                error_numbers.BAD_JOG, name, "is not allowed in a jog; allowed: G20 G21 G90 G91 G53"
            )
    return _step(work, modal)


def _lay_out(
    block: Block, modal: Modal, dialect: Dialect, position: Position, *, jogging: bool = False
) -> Work:
    commands, values = block.commands, block.values
    frame = _frame(block, modal, dialect)
    index = dialect.index(frame)
    named = {index[letter]: value for letter, value in values.items() if letter in index}
    coordinates = commands.get("coordinates")
    return Work(
        block,
        modal,
        dialect,
        position,
        jogging,
        active_groups(block, modal),
        motion=commands.get("motion", "G1" if jogging else modal.motion),
        plane=commands.get("plane", modal.plane),
        imperial=commands.get("units", modal.units) == "G20",
        incremental=commands.get("distance", modal.distance) == "G91",
        feed_mode=commands.get("feed mode", "G94" if jogging else modal.feed_mode),
        coordinates=COORDINATE_SYSTEMS.index(coordinates) if coordinates else modal.coordinates,
        frame=frame,
        axis=block.axis or ("motion" if named else ""),
        named=named,
        left=set(values),
    )


def active_groups(block: Block, modal: Modal) -> frozenset[Group]:
    """The groups of commands that concern a block: its own, those of its words without a command,
    and those that act on every block until they are ended."""
    groups, values = set(block.commands), block.values
    if modal.calls:
        groups.add("macro")
    if modal.scaling.active:
        groups.add("scaling")
    if "S" in values:
        groups.add("spindle")
    if "T" in values or "H" in values:
        groups.add("tool")
    return frozenset(groups)


def _frame(block: Block, modal: Modal, dialect: Dialect) -> Frame:
    if not dialect.two_frames:
        return "axes"
    values = block.values
    if "X" in values or "Y" in values or "Z" in values:
        return "tool"
    if "U" in values or "V" in values or "W" in values:
        return "axes"
    if "A" in values or "B" in values or "C" in values:
        world = block.commands.get("kinematics", modal.kinematics) == "M429"
        return "tool" if world else "axes"
    arc = block.commands.get("motion", modal.motion) in ("G2", "G3")
    return "tool" if arc and block.axis == "motion" else "axes"


def _through_steps(work: Work) -> Refused | None:
    for step in _steps_of(work.active):
        refused = step(work)
        if refused is not None:
            return refused
    return None


@lru_cache(maxsize=1024)
def _steps_of(active: frozenset[Group]) -> "tuple[Step, ...]":
    """The steps of a block that these groups of commands concern."""
    return tuple(step for groups, step in STEPS if not groups or active.intersection(groups))


def _check_unused(work: Work) -> Refused | None:
    """Refuses a word that no step has used."""
    work.use("NF" if work.jogging else "NFST")
    if work.axis:
        work.use(work.dialect.letters)
    if not work.left:
        return None
    letter = min(work.left, key=work.block.column)
    return work.refuse(error_numbers.UNUSED_WORD, letter, "is not used in this line")


def _keep_modes(work: Work) -> None:
    work.changes.update(
        motion=work.motion,
        plane=work.plane,
        units="G20" if work.imperial else "G21",
        distance="G91" if work.incremental else "G90",
        feed_mode=work.feed_mode,
        feed=work.feed,
    )
    if work.command("motion"):
        work.changes["cycle_left"] = False
    retract = work.command("retract")
    if retract:
        feeds = work.axis == "motion" and work.motion not in ("G0", *DRILLING)
        work.changes["retract"] = "G98" if feeds or work.motion == "G80" else retract


def _end_or_pause(work: Work) -> None:
    """Requests a pause or the end of the program; runs last, after the motion of the line."""
    name = work.command("flow")
    if name in ("M0", "M1", "M60"):
        work.requests.append(ProgramPause(name))
    if name in ("M2", "M30"):
        work.changes.update(
            motion="G1",
            plane="G17",
            distance="G90",
            feed_mode="G94",
            coordinates=0,
            spindle="M5",
            mist=False,
            flood=False,
            feed_override=True,
            speed_override=True,
            saved=None,
            calls=(),
            cycle_left=work.motion in DRILLING or _in_left_cycle(work),
        )
        work.requests.append(ProgramEnd(name))
        if work.coordinates:
            actions.report_offsets(work)


def _step(work: Work, after: Modal) -> Interpretation:
    reached = {"axes": None, "tool": None} | {work.reached_frame: work.reached}
    return Interpretation(
        after, tuple(work.requests), reached["axes"], reached["tool"], work.accepted_only
    )


def choose_frame(work: Work) -> Refused | None:
    """In dialects with two frames a line names the tool or the joints, not both."""
    if not work.dialect.two_frames:
        return None
    values = work.block.values
    tool = next((letter for letter in "XYZ" if letter in values), None)
    joint = next((letter for letter in "UVW" if letter in values), None)
    if tool and joint:
        message = f"is a joint and {tool} moves the tool: one line is either joint or Cartesian"
        return work.refuse(error_numbers.AXIS_CONFLICT, joint, message)
    if (
        work.frame == "axes"
        and work.named
        and work.axis == "motion"
        and work.motion in (*ARCS, *SPLINES)
    ):
        return work.refuse(error_numbers.UNSUPPORTED, work.motion, "moves the tool: name X, Y or Z")
    return None


def convert_units(work: Work) -> Refused | None:
    if work.imperial:
        rotary = work.dialect.is_rotary(work.frame)
        for axis, value in work.named.items():
            if not rotary[axis]:
                work.named[axis] = work.exact(value * work.unit)
    if work.named or work.axis == "motion":
        work.here = work.position.axes if work.frame == "axes" else work.position.pose
    return None


def aim(work: Work) -> Refused | None:
    """The target in machine coordinates; axes that are not named keep their position."""
    if work.command("nonmodal") in ("G10", "G92") or work.axis == "tool offset":
        return None
    in_machine = work.dialect.two_frames and work.frame == "axes"
    absolute = in_machine or work.command("nonmodal") == "G53"
    if not work.named and work.motion in _TO_ZERO and not work.dialect.two_frames:
        return None  # the firmware goes on with zeros
    target = list(work.here)
    for axis, value in work.named.items():
        if work.incremental and work.command("nonmodal") != "G53":
            shift = work.here[axis]
        else:
            shift = 0.0 if absolute else work.offset(axis)
        target[axis] = work.exact(value + shift) if shift else value
    work.target = six(target)
    return work.too_far(target[axis] for axis in work.named)


def go_home(work: Work) -> Refused | None:
    """G28 and G30 through the named waypoint, after which only the named axes go home."""
    name = work.command("nonmodal")
    if name == "G53" and work.motion not in ("G0", "G1"):
        return work.refuse(error_numbers.G53_MOTION, "G53", f"needs G0 or G1, not {work.motion}")
    if name not in ("G28", "G30"):
        return None
    home = work.old.g28 if name == "G28" else work.old.g30
    if work.named:
        work.requests.append(straight(work, work.target, work.frame, rapid=True))
        if work.frame == "axes":
            here = work.here
            home = six([home[axis] if axis in work.named else here[axis] for axis in range(6)])
    else:
        work.axis = ""
    work.requests.append(GoHome(name, straight(work, home, "axes", rapid=True)))
    work.reached, work.reached_frame = home, "axes"
    if work.scaling.active:
        work.changes["scaling"] = Scaling()
        work.requests.append(ScalingChanged())
    return None


def move(work: Work) -> Refused | None:
    if work.motion == "G80":
        if work.named and work.axis != "nonmodal":
            first = next(each for each in work.block.values if each in work.dialect.letters)
            return work.refuse(error_numbers.AXIS_WORDS, first, "moves nothing under G80")
        return None
    if work.axis != "motion":
        return None
    if work.motion == "G0":
        return _go_straight(work)
    if work.motion in SYNCHRONIZED:
        return work.refuse(
            error_numbers.UNSUPPORTED, work.motion, "there is no encoder on the spindle"
        )
    if work.feed == 0:
        return work.refuse(error_numbers.NO_FEED, work.motion, "needs a feed: F is 0")
    if work.motion in SPLINES:
        return follow_spline(work)
    if work.motion in DRILLING:
        return drill(work)
    if work.motion in ARCS:
        return _go_round(work)
    if work.motion in PROBES:
        return _probe(work)
    refused = check_left_cycle(work) if _in_left_cycle(work) else None
    return refused or _go_straight(work)


def _in_left_cycle(work: Work) -> bool:
    return work.old.cycle_left and not work.command("motion")


def _go_straight(work: Work) -> Refused | None:
    if not work.named:
        work.axis = ""
        return None
    work.requests.append(straight(work, work.target, work.frame, rapid=work.motion == "G0"))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _go_round(work: Work) -> Refused | None:
    found = circle(work)
    if isinstance(found, Refused):
        return found
    if found.radius == 0:
        work.requests.append(straight(work, work.target, work.frame))
    else:
        work.requests.append(along_arc(work, found))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _probe(work: Work) -> Refused | None:
    if not work.named:
        return work.refuse(error_numbers.NO_AXIS_WORDS, work.motion, "needs axis words")
    if work.here == work.target:
        return work.refuse(
            error_numbers.BAD_TARGET, work.motion, "needs a target other than the present position"
        )
    if work.has("P"):
        if work.value("P") != 0:
            return work.refuse(error_numbers.RANGE, "P", "there is one probe, number 0")
        work.use("P")
    toward, required = work.motion in ("G38.2", "G38.3"), work.motion in ("G38.2", "G38.4")
    work.requests.append(Probe(straight(work, work.target, work.frame), toward, required))
    work.reached, work.reached_frame = work.target, work.frame
    return None


# ── macro calls: G65, G66, G67 and M98 ────────────────────────────────────────────────────────────


LAST_MACRO = 65535
BUILT_IN = range(1, 8)
VALUES = frozenset("ABCEFHIJKQRSTUVWXYZ")
"""Letters whose values a macro gets; all other words of the line belong to the line."""
LAST_PARAMETER = 5000
MOST_CALLS = 100
"""Calls of G66 that are active at once: as many as the memory of a controller holds, about."""
CHECKED_GROUPS = (
    "macro",
    "nonmodal",
    "motion",
    "plane",
    "distance",
    "feed mode",
    "units",
    "scaling",
    "tool",
)
"""Groups of commands that the firmware still checks in a line with a macro call."""
CALLED_AFTER = ("G0", "G1")
"""Motions after which G66 calls its macro."""

Given = Mapping[str, float]


def check_macro_call(work: Work) -> Refused | None:
    """The P word of a call; the words that the macro takes are removed from the line."""
    name = _active_macro(work)
    if not name:
        return None
    given = work.command("macro")
    if given in TAKES_M_WORDS and work.old.calls and work.old.calls[-1].name == "G66.1":
        message = "cannot be called while G66.1 is active"
        return work.refuse(error_numbers.MODAL_CONFLICT, given, message)
    if name != "G67" and not work.old.calls:
        if not work.has("P"):
            return work.missing(name, "P")
        if work.value("P") > LAST_MACRO:
            return work.refuse(error_numbers.RANGE, "P", f"macros are numbered 0 to {LAST_MACRO}")
    if given in ("G66", "G66.1") and len(work.old.calls) >= MOST_CALLS:
        message = f"{MOST_CALLS} macros are active: end one with G67"
        return work.refuse(error_numbers.CALL_STACK, given, message)
    work.use("LP")
    if name == "G67":
        work.changes["calls"] = work.old.calls[:-1]
    if name in TAKES_M_WORDS:
        _leave_values_to_macro(work)
    return None


def call_macro(work: Work) -> Refused | None:
    """Calls the macro of a line with G65 or G66.1, of which nothing else is carried out."""
    name = _active_macro(work)
    if name == "G65":
        return run_macro(work, _given_call(work, name))
    chosen = _given_call(work, name)
    if work.old.calls:
        active, given = work.old.calls[-1], dict(chosen.values)
        chosen = replace(
            active, values=tuple((each, given.get(each, old)) for each, old in active.values)
        )
    return run_macro(work, chosen)


def macro_takes_line(work: Work) -> bool:
    """Whether the line is only a macro call: G65, G66.1, and every line while G66.1 is active."""
    return _active_macro(work) in ("G65", "G66.1")


def remembered_call(work: Work, name: str = "G66") -> ModalCall:
    """The macro of G66 or G66.1."""
    return _given_call(work, name)


def macro_at_end(work: Work) -> ModalCall | None:
    """The macro that is called last in a line: that of M98, or of G66 after a motion.

    The firmware forgets an M98 in a line with a straight motion.
    """
    if work.axis == "motion" and work.motion in CALLED_AFTER:
        return work.old.calls[-1] if work.old.calls else None
    if work.command("macro") == "M98":
        return replace(_given_call(work, "M98"), values=())
    return None


def _active_macro(work: Work) -> str:
    name = work.command("macro")
    if not name and work.old.calls and work.old.calls[-1].name == "G66.1":
        return "G66.1"
    return name


def _leave_values_to_macro(work: Work) -> None:
    block = work.block
    commands = {group: each for group, each in block.commands.items() if group in CHECKED_GROUPS}
    taken = VALUES
    if "macro" not in commands:  # G66.1 is active: its macro takes only the words that it has
        taken = frozenset(letter for letter, _ in work.old.calls[-1].values)
    values = {letter: value for letter, value in block.values.items() if letter not in taken}
    work.use("".join(taken))
    work.named.clear()
    work.axis = block.axis
    work.given = dict(block.values)
    work.block = replace(block, commands=commands, values=values)


def _given_call(work: Work, name: str) -> ModalCall:
    given = work.given or work.block.values
    repeats = int(given.get("L", 0.0)) or (0 if work.old.calls else 1)
    values = tuple((letter, value) for letter, value in given.items() if letter in VALUES)
    return ModalCall(name, given.get("P", 0.0), repeats, values)


def run_macro(work: Work, called: ModalCall) -> Refused | None:
    """Calls one of the firmware's own macros; every other one is refused."""
    number = int(called.number) % (LAST_MACRO + 1)
    if number not in BUILT_IN:
        message = f"there is no macro {number} on this controller"
        return work.refuse(error_numbers.RANGE, called.name, message)
    if called.repeats > 1:
        return work.refuse(error_numbers.RANGE, called.name, "calls this macro only once")
    code = MACROS[number](work, dict(called.values))
    return work.refuse(code, called.name, f"macro {number} refuses its values") if code else None


def _read_setting(work: Work, given: Given) -> int:
    if "Q" not in given:
        return error_numbers.MISSING_WORD
    return 0 if int(given["Q"]) in work.dialect.settings else error_numbers.RANGE


def _read_tool(work: Work, given: Given) -> int:
    if not {"Q", "R"} <= given.keys():
        return error_numbers.MISSING_WORD
    known = work.old.tool_in_table(int(given["Q"])) is not None and 0 <= given["R"] < 6
    return 0 if known else error_numbers.TOOL


def _use_parameter(work: Work, given: Given) -> int:
    if "I" not in given:
        return error_numbers.MISSING_WORD
    writable = 1 <= int(given["I"]) <= LAST_PARAMETER
    return error_numbers.RANGE if "Q" in given and not writable else 0


def _choose_probe(work: Work, given: Given) -> int:
    if "Q" not in given:
        return error_numbers.MISSING_WORD
    return 0 if given["Q"] == 0 else error_numbers.RANGE


MACROS: dict[int, Callable[[Work, Given], int]] = {
    1: _read_setting,
    2: _read_tool,
    3: _use_parameter,
    4: lambda work, given: 0,
    5: _choose_probe,
    6: lambda work, given: 0,
    7: lambda work, given: error_numbers.UNSUPPORTED,
}
"""grblHAL's own macros; each returns an error number. No result of them can be read: expressions
are not part of this build."""


# ── the steps of a block ──────────────────────────────────────────────────────────────────────────


Step = Callable[[Work], Refused | None]

STEPS: tuple[tuple[tuple[Group, ...], Step], ...] = (
    ((), announce),
    (("macro",), check_macro_call),
    ((), choose_frame),
    ((), number_line),
    (("tool",), actions.check_tool_words),
    ((), set_feed),
    ((), set_speed),
    (("tool",), actions.select_tool),
    (("io",), actions.switch_pins),
    (("tool",), actions.change_tool),
    (("spindle",), actions.turn_spindle),
    (("modal state",), actions.save_modes),
    (("coolant",), actions.switch_coolant),
    (("overrides",), actions.allow_overrides),
    (("nonmodal",), actions.dwell),
    ((), convert_units),
    (("scaling",), actions.scale),
    (("scaling",), actions.apply_scaling),
    (("kinematics",), actions.choose_kinematics),
    (("tool offset",), actions.set_tool_length),
    (("coordinates",), actions.choose_coordinates),
    (("path",), actions.choose_path),
    (("nonmodal",), actions.change_data),
    (("nonmodal",), actions.shift_zero),
    (("tool offset", "coordinates", "nonmodal"), actions.report_offsets),
    (("nonmodal",), actions.store_position),
    ((), aim),
    (("nonmodal",), go_home),
    ((), move),
    ((), _check_unused),
)
"""The steps of a block in their order, each with the groups that it is for (none: every block)."""
