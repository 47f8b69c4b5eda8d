"""Canned cycles: G73 and G81 … G89 drill holes along the axis that is normal to the plane.

A line with a cycle becomes rapids, feeds and dwells, in the order and with the roundings of the
firmware. R, depth, Q and P are kept from line to line until another cycle is chosen.
"""

import math
from collections.abc import Iterator

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.actions import Work, six
from understudy.gcode.circles import PLANES
from understudy.gcode.dialect import Axes
from understudy.gcode.modal import DrillCycle
from understudy.gcode.moves import straight
from understudy.gcode.requests import Dwell, Request, Spindle

WITH_DWELL = ("G82", "G86", "G89")
PECKING = ("G73", "G83")
SLOW_RETRACT = ("G85", "G89")
"""Cycles that leave the hole at the feed."""
PECK_DWELL_S = 0.25
MOST_PLUNGES = 10_000
"""Plunges of one line, all its holes together."""
_AXIS_NAMES = "XYZ"


def drill(work: Work) -> Refused | None:
    """The holes of one line. The firmware keeps the values of the cycle if it refuses the line."""
    for step in (_begin, _check_words, _set_positions, _set_own_words):
        if refused := step(work):
            return refused
    cycle = _cycle(work)
    repeats = work.byte("L", 1.0)
    if refused := _check_plunges(work, cycle, repeats):
        return refused
    work.reached, work.reached_frame = work.target, work.frame
    if work.motion in work.dialect.accepted_only:
        work.accepted_only = work.motion
        return None
    holes = Holes(work, cycle, repeats)
    work.requests += holes.requests()
    work.reached = six(holes.position)
    return None


def check_left_cycle(work: Work) -> Refused | None:
    """The checks of a cycle for a straight line after the end of a program (`cycle_left`)."""
    return _check_words(work) or _set_positions(work)


def drilling_axis(plane: str) -> int:
    """The index of the axis that is normal to the plane."""
    return 3 - sum(PLANES[plane])


def plunges(cycle: DrillCycle, axis: int) -> int:
    """Plunges of one hole along this axis."""
    if cycle.peck <= 0.0:
        return 0
    return math.ceil((cycle.retract - cycle.words[axis]) / cycle.peck)


# ── the words of the line ───────────────────────────────────────────────────────────────────────


def _cycle(work: Work) -> DrillCycle:
    cycle: DrillCycle = work.changes.get("cycle", work.old.cycle)
    return cycle


def _is_new(work: Work) -> bool:
    return work.motion != work.old.motion


def _begin(work: Work) -> Refused | None:
    """The first line of a cycle needs R and the depth."""
    if not _is_new(work):
        return None
    axis = drilling_axis(work.plane)
    if work.old.feed_mode == "G93":
        message = "does not go with G93"
        return work.refuse(error_numbers.INVALID_STATEMENT, work.motion, message)
    if not work.has("R"):
        return work.missing(work.motion, "R")
    if axis not in work.named:
        return work.missing(work.motion, _AXIS_NAMES[axis])
    old = work.old.cycle
    words = [0.0 if each in PLANES[work.plane] else word for each, word in enumerate(old.words)]
    work.keep(cycle=replace(old, dwell_s=0.0, words=six(words)))
    return None


def _check_words(work: Work) -> Refused | None:
    rotary = work.dialect.is_rotary(work.frame)
    if any(rotary[named] for named in work.named):
        message = "drills along X, Y and Z: no words of rotary axes"
        return work.refuse(error_numbers.AXIS_CONFLICT, work.motion, message)
    if work.byte("L", 1.0) <= 0:
        return work.refuse(error_numbers.NOT_POSITIVE, "L", "is the number of holes: 1 or more")
    return None


def _set_positions(work: Work) -> Refused | None:
    """The retract position, the depth and the way to the next hole of this line."""
    cycle, axis, exact = _cycle(work), drilling_axis(work.plane), work.exact
    retract, words = cycle.retract, list(cycle.words)
    if work.has("R"):
        height = exact(work.value("R") * work.unit)
        retract = exact(height + (work.here[axis] if work.incremental else work.offset(axis)))
    for named in work.named:
        words[named] = work.target[named]
        if named != axis or work.incremental:
            words[named] = exact(words[named] - work.here[named])
        if named == axis and work.incremental:
            words[named] = exact(retract + words[named])
    work.keep(cycle=replace(cycle, retract=retract, words=six(words)))
    if retract < words[axis]:
        message = f"retracts to {retract:g}, which is below the depth of the hole, {words[axis]:g}"
        return work.refuse(error_numbers.RETRACT_BELOW_DEPTH, work.motion, message)
    work.use("RL")
    return None


def _set_own_words(work: Work) -> Refused | None:
    """The P or Q that this kind of cycle needs."""
    if work.motion == "G84":
        return work.refuse(error_numbers.UNSUPPORTED, "G84", "there is no encoder on the spindle")
    cycle = _cycle(work)
    if work.motion in PECKING:
        return _peck(work, cycle)
    if work.motion in WITH_DWELL:
        if work.has("P"):
            if work.value("P") < 0:
                return work.refuse(error_numbers.NEGATIVE, "P", "cannot be negative")
            cycle = replace(cycle, dwell_s=work.value("P"))
            work.use("P")
        elif _is_new(work):
            return work.missing(work.motion, "P")
    peck = work.exact(cycle.retract - cycle.words[drilling_axis(work.plane)])
    work.keep(cycle=replace(cycle, peck=peck))
    return None


def _peck(work: Work, cycle: DrillCycle) -> Refused | None:
    peck = cycle.peck
    if work.has("Q"):
        if work.value("Q") <= 0:
            return work.refuse(error_numbers.NEGATIVE, "Q", "is the depth of a plunge: above 0")
        peck = work.exact(work.value("Q") * work.unit)
        work.use("Q")
    elif _is_new(work):
        return work.missing(work.motion, "Q")
    work.keep(cycle=replace(cycle, peck=peck, dwell_s=PECK_DWELL_S))
    return None


def _check_plunges(work: Work, cycle: DrillCycle, repeats: int) -> Refused | None:
    """Plunges are few, and each is a step that the numbers of the controller can express: the
    firmware itself hangs if a plunge does not change the position."""
    axis = drilling_axis(work.plane)
    farthest = max(abs(cycle.retract), abs(cycle.words[axis]))
    if cycle.peck > 0.0 and work.exact(farthest + cycle.peck / 2.0) == farthest:
        message = f"has plunges of {cycle.peck:g} mm, too small for numbers such as {farthest:g}"
    elif plunges(cycle, axis) * repeats > MOST_PLUNGES:
        message = f"has more than {MOST_PLUNGES} plunges; a larger Q or fewer holes are needed"
    else:
        return None
    return work.refuse(error_numbers.RANGE, work.motion, message)


# ── motion ──────────────────────────────────────────────────────────────────────────────────────


class Holes:
    """The motion of all holes of a line; `position` follows it."""

    def __init__(self, work: Work, cycle: DrillCycle, repeats: int) -> None:
        self._work = work
        self._cycle = cycle
        self._repeats = repeats
        self._axis = drilling_axis(work.plane)
        self.position = list(work.here)
        retract_mode = work.command("retract") or work.old.retract
        top = max(work.here[self._axis], cycle.retract)
        self._leave_to = cycle.retract if retract_mode == "G99" else top

    def requests(self) -> Iterator[Request]:
        work, cycle, axis = self._work, self._cycle, self._axis
        if self.position[axis] < cycle.retract:
            yield self._to(cycle.retract, rapid=True)
        height = self.position[axis]
        self.position = list(work.target)
        yield self._to(height, rapid=True)
        for hole in range(self._repeats):
            yield from self._hole()
            if work.incremental and hole < self._repeats - 1:
                for each in PLANES[work.plane]:
                    self.position[each] = work.exact(self.position[each] + cycle.words[each])
                yield self._to(self.position[axis], rapid=True)

    def _hole(self) -> Iterator[Request]:
        work, cycle, axis = self._work, self._cycle, self._axis
        if self.position[axis] > cycle.retract:
            yield self._to(cycle.retract, rapid=True)
        reached = self.position[axis]
        depth = cycle.words[axis]
        while reached > depth:
            reached = max(depth, work.exact(reached - cycle.peck))
            yield self._to(reached)
            if cycle.dwell_s > 0.0:
                yield Dwell(work.dialect.dwell_seconds(cycle.dwell_s))
            yield from self._leave(reached)

    def _leave(self, reached: float) -> Iterator[Request]:
        """Out of the hole; G73 only breaks the chip until the last plunge."""
        work, stopped = self._work, self._work.motion == "G86"
        if stopped:
            yield Spindle("M5", 0.0)
        if work.motion == "G73" and reached != self._cycle.words[self._axis]:
            yield self._to(work.exact(reached + work.dialect.chip_break_mm), rapid=True)
        else:
            yield self._to(self._leave_to, rapid=work.motion not in SLOW_RETRACT)
        if stopped:
            speed = work.changes.get("speed", work.old.speed)
            yield Spindle(work.changes.get("spindle", work.old.spindle), speed)

    def _to(self, height: float, *, rapid: bool = False) -> Request:
        self.position[self._axis] = height
        target: Axes = six(self.position)
        return straight(self._work, target, self._work.frame, rapid=rapid)
