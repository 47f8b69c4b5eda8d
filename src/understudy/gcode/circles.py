"""The circle of a G2 or G3 line."""

import math
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.actions import Work

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
