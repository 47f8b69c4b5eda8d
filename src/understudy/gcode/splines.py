"""G5 and G5.1: cubic and quadratic splines in the plane of X and Y, as short straight lines.

The firmware cuts the curve where it is straight enough: it halves the step of the parameter until
the middle of a piece is within `STRAIGHT_WITHIN` of its chord, and doubles it while it stays so.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import cast

import numpy as np

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.actions import Work, six
from understudy.gcode.moves import straight

SHORTEST_STEP, LONGEST_STEP, STRAIGHT_WITHIN = 0.002, 0.1, 0.1
"""Steps of the parameter, from 0 to 1 along the curve; distance in mm."""
IN_PLANE = (0, 1)
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


# ── the words of the line ───────────────────────────────────────────────────────────────────────


def _refused(work: Work) -> Refused | None:
    if work.plane != "G17":
        return work.refuse(error_numbers.WRONG_PLANE, work.motion, "needs G17, the plane of X Y")
    if any(axis not in IN_PLANE for axis in work.named):
        message = "moves X and Y: no words of other axes"
        return work.refuse(error_numbers.AXIS_CONFLICT, work.motion, message)
    return None


def _cubic(work: Work) -> tuple[Point, Point] | Refused:
    """The two inner points: I J from the start, P Q from the end.

    Without I and J the curve goes on as the spline before ended.
    """
    if refused := _refused(work):
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
    if refused := _refused(work):
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


# ── the curve ───────────────────────────────────────────────────────────────────────────────────


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
