"""One block while it is interpreted (`Work`): what every block needs, and straight motion.

The steps of a block take its `Work` and return a refusal or None (`interpreter.STEPS`). The numbers
of refusals are grblHAL's, and so is the order of the checks.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.blocks import SYNCHRONIZED, AxisUse, Block, Group
from understudy.gcode.dialect import MM_PER_INCH, ZERO, Axes, Dialect, Frame
from understudy.gcode.modal import Modal, Scaling
from understudy.gcode.requests import AxisMove, JointMove, LineMove, Message, Move, Request
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM

FARTHEST = 1e12
"""Coordinate of a target, mm or deg: far beyond the step counters of a firmware."""
LAST_LINE_NUMBER = 10_000_000
_NEEDS_NO_FEED = ("G0", "G80", "G33", "G33.1")


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

    `active`: the groups of commands that concern it, see `interpreter.active_groups`. `left`:
    letters whose values are still unused. `named`: the axis words by axis, in axis units after
    `convert_units`. `changes`: fields of the modal state to replace. `kept`: those that the
    firmware changes at once and keeps if it refuses the line later, and their requests. `given`:
    the words that a macro takes. `accepted_only`: the code of a cycle that moves nothing.
    """

    block: Block
    old: Modal
    dialect: Dialect
    position: Position
    jogging: bool
    active: frozenset[Group]
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
    moves_zero: bool = False
    """Whether the block writes the offset of the active coordinate system, or G92."""
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


# ── steps of every block ──────────────────────────────────────────────────────────────────────────


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


# ── straight motion ───────────────────────────────────────────────────────────────────────────────


def straight(work: Work, target: Axes, frame: Frame, *, rapid: bool = False) -> Move:
    inverse_time = work.feed_mode == "G93" and not rapid
    if not work.dialect.arm:
        return AxisMove(target, 0.0 if rapid else per_minute(work), rapid, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = speeds(work) if not (rapid or inverse_time) else (None, None)
    if frame == "axes":
        return JointMove(joints(work, target), angular, duration)
    return LineMove(tool_pose(target), linear, angular, duration)


def per_minute(work: Work) -> float:
    scaled = work.dialect.feed_per_second and work.feed_mode != "G93"
    return work.feed * MINUTE if scaled else work.feed


def speeds(work: Work) -> tuple[float, float]:
    """The feed as m/s and as rad/s; see `JointMove` for joints that slide."""
    per_second = work.feed if work.dialect.feed_per_second else work.feed / MINUTE
    return per_second * MM, per_second * DEG


def joints(work: Work, target: Axes) -> Axes:
    """The joints in rad, or in m if they slide."""
    return six([value * unit for value, unit in zip(target, work.dialect.units, strict=True)])


def tool_pose(target: Axes) -> Pose:
    x, y, z, rx, ry, rz = target
    return Pose(x * MM, y * MM, z * MM, *(math.radians(angle) for angle in (rx, ry, rz)))
