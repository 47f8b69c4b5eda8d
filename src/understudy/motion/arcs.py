"""Arcs in a plane of two axes, divided into chords as grblHAL does.

n = floor(0.5·|θ|·R / sqrt(tol·(2R - tol))) chords with their ends on the arc; the other axes move
linearly. Each additional whole turn is divided separately.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import Floats

SAME_PLACE = 5e-7
"""An arc whose end is this close to its start (rad) is a whole turn."""

MOST_CHORDS = 200_000
"""Most chords of one arc; a program that needs more has a wrong radius or tolerance."""
CHORDS_AT_ONCE = 4096
"""Chords from which an offline check divides an arc in stretches of about as many."""


def swept_angle(start: ArrayLike, end: ArrayLike, centre: ArrayLike, *, turns: int) -> float:
    """Signed angle about the centre: counter-clockwise for turns > 0, else clockwise."""
    middle = np.asarray(centre, dtype=np.float64)
    (x0, y0), (x1, y1) = (np.asarray(p, dtype=np.float64) - middle for p in (start, end))
    angle = math.atan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)
    if turns > 0 and angle <= SAME_PLACE:
        angle += math.tau
    if turns < 0 and angle >= -SAME_PLACE:
        angle -= math.tau
    return angle + math.copysign(math.tau * (abs(turns) - 1), turns)


def chord_count(angle: float, radius: float, tolerance: float) -> int:
    """Number of chords that keep the tolerance; at least one."""
    if 2.0 * radius <= tolerance:
        return 1
    sagitta = math.sqrt(tolerance * (2.0 * radius - tolerance))
    return max(math.floor(abs(0.5 * angle * radius) / sagitta), 1)


def chords(
    start: ArrayLike,
    end: ArrayLike,
    centre: ArrayLike,
    *,
    tolerance: float,
    plane: tuple[int, int] = (0, 1),
    turns: int = 1,
) -> Floats:
    """End points of the chords, one row each; the last is exactly ``end``.

    ``centre`` has two coordinates, in the plane's axes; ``turns`` is negative for clockwise (G2).
    """
    here, there = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    middle = np.asarray(centre, dtype=np.float64)
    pair = list(plane)
    total = swept_angle(here[pair], there[pair], middle, turns=turns)
    whole = math.copysign(math.tau, turns)
    pieces = [whole] * (abs(turns) - 1) + [total - whole * (abs(turns) - 1)]
    radius = math.hypot(*(here[pair] - middle))
    angles, before = [], 0.0
    for angle in pieces:
        count = chord_count(angle, radius, tolerance)
        angles.append(before + angle * np.arange(1, count + 1) / count)
        before += angle
    swept = np.concatenate(angles)
    points = here + (swept / total)[:, None] * (there - here)
    spoke = complex(*(here[pair] - middle)) * np.exp(1j * swept)
    points[:, pair[0]], points[:, pair[1]] = middle[0] + spoke.real, middle[1] + spoke.imag
    points[-1] = there
    return points
