"""Arcs of a machine as chords.

The firmware replaces an arc by chords. It rotates the radius vector again and again by a short
series, cos φ ≈ 1 - φ²/2 and sin φ ≈ φ - φ³/6, and computes every 13th vector exactly. With a
coarse tolerance the chords differ visibly from even ones, and so do the times.
"""

import math
from collections.abc import Iterator

import numpy as np

from understudy.gcode.requests import AxisArc
from understudy.motion.arcs import CHORDS_AT_ONCE
from understudy.motion.path import Floats

CORRECTED_EVERY = 13
"""Chords of an arc until the firmware computes its radius vector exactly again."""
FULL_CIRCLE_WITHIN = 5e-7


def turns(arc: AxisArc) -> list[float]:
    """Angles of the whole turns, followed by the angle of the rest."""
    whole = max(math.ceil(abs(arc.angle) / math.tau - FULL_CIRCLE_WITHIN) - 1, 0)
    turn = math.copysign(math.tau, arc.angle)
    return [turn] * whole + [arc.angle - whole * turn]


def segments(angle: float, radius: float, tolerance: float) -> int:
    """floor(0.5·|θ|·R / sqrt(tol·(2R - tol))); 0 if the arc is smaller than its tolerance."""
    if 2.0 * radius <= tolerance:
        return 0
    return math.floor(abs(0.5 * angle * radius) / math.sqrt(tolerance * (2.0 * radius - tolerance)))


def chord_count(arc: AxisArc, tolerance: float) -> int:
    """Approximate number of chords of all turns."""
    return segments(arc.angle, arc.radius, tolerance)


def chord_ends(arc: AxisArc, start: Floats, tolerance: float) -> Floats:
    """Ends of all chords, one row each; the last is the arc's target."""
    return np.concatenate(list(_turn_ends(arc, start, tolerance)))


def chord_stretches(arc: AxisArc, start: Floats, tolerance: float) -> Iterator[Floats]:
    """Like `chord_ends`, about CHORDS_AT_ONCE rows at a time."""
    rows: list[Floats] = []
    for turn in _turn_ends(arc, start, tolerance):
        rows += [turn[k : k + CHORDS_AT_ONCE] for k in range(0, len(turn), CHORDS_AT_ONCE)]
        while len(rows) > 1 and sum(map(len, rows)) >= CHORDS_AT_ONCE:
            yield np.concatenate(rows[:-1])
            rows = rows[-1:]
    yield np.concatenate(rows)


def _turn_ends(arc: AxisArc, start: Floats, tolerance: float) -> Iterator[Floats]:
    """Ends of the chords of each turn."""
    target = np.array(arc.target)
    spoke = _first_spoke(arc)
    here, swept, left = start, 0.0, len(turns(arc))
    for angle in turns(arc):
        swept, left = swept + angle, left - 1
        end = start + (target - start) * (swept / arc.angle)
        end[arc.plane[0]] = arc.centre[0] + spoke.real
        end[arc.plane[1]] = arc.centre[1] + spoke.imag
        rows = _one_turn(arc, here, end, angle=angle, spoke=spoke, tolerance=tolerance)
        if not left:
            rows[-1] = target
        yield rows
        here = end


def _first_spoke(arc: AxisArc) -> complex:
    """Radius vector from the centre to the start of the arc."""
    x, y = (arc.target[axis] - middle for axis, middle in zip(arc.plane, arc.centre, strict=True))
    begins = math.atan2(y, x) - arc.angle
    return complex(arc.radius * math.cos(begins), arc.radius * math.sin(begins))


def _one_turn(
    arc: AxisArc, start: Floats, end: Floats, *, angle: float, spoke: complex, tolerance: float
) -> Floats:
    count = max(segments(angle, arc.radius, tolerance), 1)
    step = angle / count
    number = np.arange(1, count + 1)
    turned = complex(1.0 - 0.5 * step * step, step - step**3 / 6.0)
    since = number % CORRECTED_EVERY
    spokes = spoke * np.exp(1j * (number - since) * step) * turned**since
    points = start + (number / count)[:, None] * (end - start)
    points[:, arc.plane[0]] = arc.centre[0] + spokes.real
    points[:, arc.plane[1]] = arc.centre[1] + spokes.imag
    points[-1] = end
    return points
