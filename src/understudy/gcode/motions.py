"""Motions that are more than a straight line: arcs, splines, and the canned cycles.

G5 and G5.1 are cubic and quadratic splines in the plane of X and Y, as short straight lines. The
firmware cuts the curve where it is straight enough: it halves the step of the parameter until the
middle of a piece is within `STRAIGHT_WITHIN` of its chord, and doubles it while it stays so.

G73 and G81 … G89 drill holes along the axis that is normal to the plane. A line with such a cycle
becomes rapids, feeds and dwells, in the order and with the roundings of the firmware. R, depth, Q
and P are kept from line to line until another cycle is chosen.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.dialect import Axes
from understudy.gcode.modal import DrillCycle
from understudy.gcode.requests import ArcMove, AxisArc, Dwell, JointArc, Move, Request, Spindle
from understudy.gcode.work import Work, joints, per_minute, six, speeds, straight, tool_pose
from understudy.units import DEG, MINUTE, MM

PLANES = {"G17": (0, 1), "G18": (2, 0), "G19": (1, 2)}
_CENTRE_LETTERS = "IJK"
_AXIS_NAMES = "XYZ"
_FULL_CIRCLE_WITHIN = 5e-7
_WHOLE_WITHIN = 1e-3
_RADII_DIFFER_MM, _RADII_DIFFER_MOST_MM, _RADII_DIFFER_SHARE = 0.005, 0.5, 0.001
_HALF_CIRCLE_SLACK = 1e-12
_LONGEST_MM = 1e5
"""The longest arc: it is cut into chords, which need memory."""
MOST_TURNS = 1000
"""The largest number of turns: every turn is cut into chords when its line is read."""


class Circle(NamedTuple):
    """A circle in axis units; `angle` in rad, counter-clockwise positive, with all turns."""

    plane: tuple[int, int]
    centre: tuple[float, float]
    radius: float
    angle: float


def circle(work: Work) -> Circle | Refused:
    """The circle of a G2 or G3 line from `work.here` to `work.target`."""
    plane = PLANES[work.plane]
    by_radius = work.has("R")
    if by_radius and not work.named:
        return work.refuse(error_numbers.NO_AXIS_WORDS, work.motion, "with R needs axis words")
    if by_radius and not any(axis in work.named for axis in plane):
        letters = " or ".join(_AXIS_NAMES[axis] for axis in sorted(plane))
        return work.refuse(
            error_numbers.NOT_IN_PLANE, work.motion, f"with R in {work.plane} needs {letters}"
        )
    turns = 1
    if work.has("P"):
        turns = int(work.value("P"))
        if abs(work.value("P") - turns) >= _WHOLE_WITHIN:
            return work.refuse(error_numbers.NOT_INTEGER, "P", "turns are whole")
        if turns == 0:
            return work.refuse(error_numbers.RANGE, "P", f"is 1…{MOST_TURNS} turns")
        work.use("P")
    centre = _centre_by_radius(work, plane) if by_radius else _centre_by_offset(work, plane)
    if isinstance(centre, Refused):
        return centre
    if not 1 <= turns <= MOST_TURNS:
        return work.refuse(error_numbers.RANGE, "P", f"is 1…{MOST_TURNS} turns")
    i, j = centre
    absolute = work.here[plane[0]] + i, work.here[plane[1]] + j
    radius, angle = math.hypot(i, j), _angle(work, plane, centre, turns)
    if not radius * abs(angle) <= _LONGEST_MM:
        message = f"is {radius * abs(angle) / 1e3:.4g} m long; {_LONGEST_MM / 1e3:g} m are allowed"
        return work.refuse(error_numbers.RANGE, work.motion, message)
    return Circle(plane, absolute, radius, angle)


def _chord(work: Work, plane: tuple[int, int]) -> tuple[float, float]:
    x, y = (work.exact(work.target[axis] - work.here[axis]) for axis in plane)
    return x, y


def _centre_by_radius(work: Work, plane: tuple[int, int]) -> tuple[float, float] | Refused:
    """From here to the centre. R > 0 selects the short arc, R < 0 the long one.

    With d the distance and h the height of the centre over the chord: h² = r² - d²/4.
    """
    work.use("R")
    x, y = _chord(work, plane)
    if x == y == work.value("R") == 0 and work.dialect.spelling.single and work.target != work.here:
        return 0.0, 0.0  # no circle: the firmware goes straight to a target above or below
    if x == y == 0:
        return work.refuse(
            error_numbers.BAD_TARGET, work.motion, "with R cannot end where it begins"
        )
    exact = work.exact
    radius = exact(work.value("R") * work.unit)
    if work.scaling.active:
        radius = exact(radius * max(work.scaling.factors[axis] for axis in plane))
    chord = exact(exact(x * x) + exact(y * y))
    above = exact(exact(exact(exact(4.0 * radius) * radius) - exact(x * x)) - exact(y * y))
    if not work.dialect.spelling.single and abs(above) <= _HALF_CIRCLE_SLACK * chord:
        above = 0.0
    if above < 0:
        return work.refuse(error_numbers.BAD_RADIUS, "R", f"cannot span {math.sqrt(chord):.3f}")
    height = math.sqrt(above / chord)
    if (work.motion == "G2") == (radius > 0):
        height = -height
    return 0.5 * (x - y * height), 0.5 * (y + x * height)


def _centre_by_offset(work: Work, plane: tuple[int, int]) -> tuple[float, float] | Refused:
    letters = [_CENTRE_LETTERS[axis] for axis in plane]
    if not any(work.has(letter) for letter in letters):
        names = " or ".join(sorted(letters))
        return work.refuse(
            error_numbers.NO_CENTRE, work.motion, f"in {work.plane} needs {names}, or R"
        )
    work.use(_CENTRE_LETTERS)
    factors = work.scaling.factors
    i, j = (
        work.exact(work.exact(work.value(letter) * work.unit) * factors[axis])
        for axis, letter in zip(plane, letters, strict=True)
    )
    x, y = _chord(work, plane)
    radius, end_radius = math.hypot(i, j), math.hypot(x - i, y - j)
    apart = abs(end_radius - radius)
    if apart > _RADII_DIFFER_MM and (
        apart > _RADII_DIFFER_MOST_MM or apart > _RADII_DIFFER_SHARE * radius
    ):
        message = f"starts {radius:.3f} from its centre and ends {end_radius:.3f} from it"
        return work.refuse(error_numbers.BAD_TARGET, work.motion, message)
    return i, j


def _angle(work: Work, plane: tuple[int, int], centre: tuple[float, float], turns: int) -> float:
    """The angle from start to end about the centre; equal points are a full circle."""
    i, j = centre
    x, y = (work.target[axis] - work.here[axis] for axis in plane)
    ex, ey = x - i, y - j
    angle = math.atan2(-i * ey + j * ex, -i * ex - j * ey)
    whole = math.tau * (turns - 1)
    mirrored = work.scaling.factors[plane[0]] * work.scaling.factors[plane[1]] < 0
    if (work.motion == "G3") != mirrored:
        return whole + (angle + math.tau if angle <= _FULL_CIRCLE_WITHIN else angle)
    return -whole + (angle - math.tau if angle >= -_FULL_CIRCLE_WITHIN else angle)


def along_arc(work: Work, circle: Circle) -> Move:
    plane, centre, radius, angle = circle
    inverse_time = work.feed_mode == "G93"
    if not work.dialect.arm:
        feed = per_minute(work)
        return AxisArc(work.target, plane, centre, radius, angle, feed, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = (None, None) if inverse_time else speeds(work)
    unit = DEG if work.frame == "axes" else MM
    centre, radius = (centre[0] * unit, centre[1] * unit), radius * unit
    if work.frame == "axes":
        return JointArc(joints(work, work.target), plane, centre, radius, angle, angular, duration)
    return ArcMove(tool_pose(work.target), plane, centre, radius, angle, linear, duration)


# ── splines ───────────────────────────────────────────────────────────────────────────────────────


SHORTEST_STEP, LONGEST_STEP, STRAIGHT_WITHIN = 0.002, 0.1, 0.1
"""Steps of the parameter, from 0 to 1 along the curve; distance in mm."""
SPLINE_PLANE = (0, 1)
Number = Callable[[float], float]
Point = tuple[float, float]


def single_number(value: float) -> float:
    """A number whose arithmetic is in single precision."""
    return cast(float, np.float32(value))


def follow_spline(work: Work) -> Refused | None:
    """The lines of a spline from here to the target."""
    bends = _cubic(work) if work.motion == "G5" else _quadratic(work)
    if isinstance(bends, Refused):
        return bends
    if work.dialect.two_frames and not work.named:
        return work.refuse(error_numbers.NO_AXIS_WORDS, work.motion, "needs X or Y")
    number: Number = single_number if work.dialect.spelling.single else float
    if refused := work.too_far(*bends):
        return refused
    curve = ((work.here[0], work.here[1]), *bends, (work.target[0], work.target[1]))
    place = list(work.here)
    for x, y in cut(curve, number):
        place[:2] = x, y
        work.requests.append(straight(work, six(place), work.frame))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _spline_refusal(work: Work) -> Refused | None:
    if work.plane != "G17":
        return work.refuse(error_numbers.WRONG_PLANE, work.motion, "needs G17, the plane of X Y")
    if any(axis not in SPLINE_PLANE for axis in work.named):
        message = "moves X and Y: no words of other axes"
        return work.refuse(error_numbers.AXIS_CONFLICT, work.motion, message)
    return None


def _cubic(work: Work) -> tuple[Point, Point] | Refused:
    """The two inner points: I J from the start, P Q from the end.

    Without I and J the curve goes on as the spline before ended.
    """
    if refused := _spline_refusal(work):
        return refused
    if not (work.has("P") and work.has("Q")):
        return work.missing(work.motion, "P and a Q")
    given = work.has("I") or work.has("J")
    if work.motion != work.old.motion and not (work.has("I") and work.has("J")):
        return work.missing(work.motion, "I and a J")
    p, q = _in_units(work, "PQ")
    first = _in_units(work, "IJ") if given else (-work.value("P"), -work.value("Q"))
    work.use("IJPQ")
    return _from(work, work.here, first), _from(work, work.target, (p, q))


def _quadratic(work: Work) -> tuple[Point, Point] | Refused:
    """The inner points of the equal cubic curve: 2/3 of the way to the one inner point."""
    if refused := _spline_refusal(work):
        return refused
    if not (work.has("I") and work.has("J")):
        return work.missing(work.motion, "I and a J")
    if work.value("I") == 0:
        return work.refuse(error_numbers.RANGE, "I", "cannot be 0")
    offset = _in_units(work, "IJ")
    work.use("IJ")
    exact, here, target = work.exact, work.here, work.target
    bend = _from(work, here, offset)
    back = exact(bend[0] - target[0]), exact(bend[1] - target[1])
    first, second = (
        (exact(exact(x * 2.0) / 3.0), exact(exact(y * 2.0) / 3.0)) for x, y in (offset, back)
    )
    return _from(work, here, first), _from(work, target, second)


def _in_units(work: Work, letters: str) -> Point:
    """Two offsets in mm, scaled."""
    factors = work.scaling.factors
    x, y = (
        work.exact(work.exact(work.value(letter) * work.unit) * factors[axis])
        for axis, letter in enumerate(letters)
    )
    return x, y


def _from(work: Work, place: tuple[float, ...], offset: Point) -> Point:
    return work.exact(place[0] + offset[0]), work.exact(place[1] + offset[1])


def cut(curve: tuple[Point, ...], number: Number = float) -> Iterator[Point]:
    """The ends of the pieces of a cubic curve; ``number`` is the precision of the controller."""
    xs, ys = ([number(value) for value in values] for values in zip(*curve, strict=True))
    one, half, two = number(1.0), number(0.5), number(2.0)
    shortest, longest = number(SHORTEST_STEP), number(LONGEST_STEP)

    def at(t: float) -> Point:
        return _on_curve(xs, t, one), _on_curve(ys, t, one)

    def is_straight(middle: Point, begin: Point, end: Point) -> bool:
        x, y = half * (begin[0] + end[0]), half * (begin[1] + end[1])
        return abs(middle[0] - x) + abs(middle[1] - y) <= number(STRAIGHT_WITHIN)

    here, t, step = (xs[0], ys[0]), number(0.0), longest
    while t < one:
        ahead = min(t + step, one)
        end, halved = at(ahead), False
        while ahead - t >= shortest:
            middle = half * (t + ahead)
            between = at(middle)
            if is_straight(between, here, end):
                break
            ahead, end, halved = middle, between, True
        while not halved and ahead - t <= longest:
            further = t + two * (ahead - t)
            if further >= one or not is_straight(end, here, at(further)):
                break
            ahead, end = further, at(further)
        step, t, here = ahead - t, ahead, end
        yield float(here[0]), float(here[1])


def _on_curve(values: list[float], t: float, one: float) -> float:
    """De Casteljau's algorithm along one axis."""
    while len(values) > 1:
        values = [(one - t) * a + t * b for a, b in pairwise(values)]
    return values[0]


# ── canned cycles ─────────────────────────────────────────────────────────────────────────────────


WITH_DWELL = ("G82", "G86", "G89")
PECKING = ("G73", "G83")
SLOW_RETRACT = ("G85", "G89")
"""Cycles that leave the hole at the feed."""
PECK_DWELL_S = 0.25
MOST_PLUNGES = 10_000
"""Plunges of one line, all its holes together."""


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
