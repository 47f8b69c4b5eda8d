"""An arc as the firmware cuts it: chords by repeated rotation, set right every so often.

The rotation is a short series, cos φ ≈ 1 - φ²/2 and sin φ ≈ φ - φ³/6, applied to the spoke again
and again; each 13th spoke is reckoned anew. With a coarse tolerance the chords visibly differ
from even ones, and so do the times.
"""

import math

import numpy as np

from understudy.gcode.requests import AxisArc
from understudy.motion.path import Floats

CORRECTED_EVERY = 13
FULL_CIRCLE_WITHIN = 5e-7


def turns(arc: AxisArc) -> list[float]:
    """The angles of its whole turns, and of the rest, which comes last."""
    whole = max(math.ceil(abs(arc.angle) / math.tau - FULL_CIRCLE_WITHIN) - 1, 0)
    turn = math.copysign(math.tau, arc.angle)
    return [turn] * whole + [arc.angle - whole * turn]


def segments(angle: float, radius: float, tolerance: float) -> int:
    """floor(0.5·|θ|·R / sqrt(tol·(2R - tol))); 0 where the arc hides in its tolerance."""
    if 2.0 * radius <= tolerance:
        return 0
    return math.floor(abs(0.5 * angle * radius) / math.sqrt(tolerance * (2.0 * radius - tolerance)))


def chord_count(arc: AxisArc, tolerance: float) -> int:
    """Of all its turns, or hardly fewer."""
    return segments(arc.angle, arc.radius, tolerance)


def chord_ends(arc: AxisArc, start: Floats, tolerance: float) -> Floats:
    """The ends of all chords, a row each; the last is the arc's target."""
    target = np.array(arc.target)
    spoke = _first_spoke(arc)
    rows, here, swept = [], start, 0.0
    for angle in turns(arc):
        swept += angle
        end = start + (target - start) * (swept / arc.angle)
        end[arc.plane[0]] = arc.centre[0] + spoke.real
        end[arc.plane[1]] = arc.centre[1] + spoke.imag
        rows.append(_one_turn(arc, here, end, angle=angle, spoke=spoke, tolerance=tolerance))
        here = end
    rows[-1][-1] = target
    return np.concatenate(rows)


def _first_spoke(arc: AxisArc) -> complex:
    """From the centre to where the arc begins."""
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
