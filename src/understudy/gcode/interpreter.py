"""A block and the modal state into requests and the next modal state.

A pure function: what is refused changes nothing. The steps stand in the order of RS274/NGC,
table 8, which is the firmware's too; the first refusal is the answer.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import actions, faults, motion, offsets
from understudy.gcode.blocks import Block
from understudy.gcode.commands import COORDINATE_SYSTEMS, Group
from understudy.gcode.dialect import ZERO, Axes, Dialect, Frame
from understudy.gcode.modal import Modal
from understudy.gcode.requests import Message, Request
from understudy.gcode.work import Position, Work

_JOG_GROUPS: tuple[Group, ...] = ("nonmodal", "distance", "units")


class At(Struct, frozen=True):
    """A position that is known in full: axis units, and mm and deg of the tool."""

    axes: Axes = ZERO
    pose: Axes = ZERO


class Step(Struct, frozen=True):
    """What a block asks for and what is in force after it.

    `axes` or `pose` is the new commanded position, in mm and deg, if the block moves: that of
    the frame it was given in. A probe's target is one only if nothing is met on the way.
    """

    modal: Modal
    requests: tuple[Request, ...] = ()
    axes: Axes | None = None
    pose: Axes | None = None


def interpret(
    block: Block, modal: Modal, *, dialect: Dialect, position: Position
) -> Step | Refused:
    """Carries a block out on the modal state and says what the machine is to do."""
    if not (block.commands or block.values):
        return Step(modal, () if block.message is None else (Message(block.message),))
    work = _lay_out(block, modal, dialect, position)
    if refused := _through_steps(work):
        return refused
    _keep_modes(work)
    actions.end_or_pause(work)
    changed = {key: new for key, new in work.changes.items() if new != getattr(modal, key)}
    after = replace(modal, **changed) if changed else modal
    return _step(work, after)


def jog(block: Block, modal: Modal, *, dialect: Dialect, position: Position) -> Step | Refused:
    """What stands after `$J=`: axes, F, and of the modes only G20 G21 G90 G91 G53.

    Modes and F hold for this jog alone. Without axis words nothing moves.
    """
    work = _lay_out(block, modal, dialect, position, jogging=True)
    if refused := _through_steps(work):
        return refused
    for group, name in block.commands.items():
        if group not in _JOG_GROUPS or (group == "nonmodal" and name != "G53"):
            return work.refuse(faults.BAD_JOG, name, "is no part of a jog: G20 G21 G90 G91 G53 are")
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
        block, modal, dialect, position, jogging,
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
    )  # fmt: skip


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
    commands = work.block.commands
    for group, step in STEPS:
        if group is None or group in commands:
            refused = step(work)
            if refused is not None:
                return refused
    return None


def _check_unused(work: Work) -> Refused | None:
    """Every word has a meaning or is refused."""
    work.use("NF" if work.jogging else "NFST")
    if work.axis:
        work.use(work.dialect.letters)
    if not work.left:
        return None
    letter = min(work.left, key=work.block.column)
    return work.refuse(faults.UNUSED_WORD, letter, "means nothing in this line")


def _keep_modes(work: Work) -> None:
    work.changes.update(
        motion=work.motion,
        plane=work.plane,
        units="G20" if work.imperial else "G21",
        distance="G91" if work.incremental else "G90",
        feed_mode=work.feed_mode,
        feed=work.feed,
    )
    retract = work.command("retract")
    if retract:
        cycle_ends = work.motion == "G80" or (work.axis == "motion" and work.motion != "G0")
        work.changes["retract"] = "G98" if cycle_ends else retract


def _step(work: Work, after: Modal) -> Step:
    reached = {"axes": None, "tool": None} | {work.reached_frame: work.reached}
    return Step(after, tuple(work.requests), reached["axes"], reached["tool"])


STEPS: tuple[tuple[Group | None, Callable[[Work], Refused | None]], ...] = (
    (None, actions.announce),
    ("macro", actions.call_macro),
    (None, motion.choose_frame),
    (None, actions.number_line),
    (None, actions.check_tool_words),
    (None, actions.set_feed),
    (None, actions.set_speed),
    (None, actions.select_tool),
    ("io", actions.switch_pins),
    ("tool", actions.change_tool),
    (None, actions.turn_spindle),
    ("coolant", actions.switch_coolant),
    ("overrides", actions.allow_overrides),
    ("nonmodal", actions.dwell),
    (None, motion.convert_units),
    ("scaling", motion.scale),
    ("kinematics", actions.choose_kinematics),
    ("tool offset", offsets.set_tool_length),
    ("coordinates", offsets.choose_coordinates),
    ("path", actions.choose_path),
    ("nonmodal", offsets.change_data),
    ("nonmodal", offsets.shift_zero),
    (None, offsets.tell_offsets),
    ("nonmodal", offsets.store_position),
    (None, motion.aim),
    ("nonmodal", motion.go_home),
    (None, motion.move),
    (None, _check_unused),
)
"""What is asked of a block, and the group that makes it worth asking (None: always)."""
