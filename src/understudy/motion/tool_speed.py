"""Limit of the speed of the tool tip on any path of the joints: lines of the joints included.

The speed of the tip is |J(q(s))·q'(s)| times the speed along the path. It is sampled on every
piece. Between two samples that are h apart, |v|² exceeds the larger of them by at most h²/8 times
the bound of its second derivative, which follows from the length of the arm; this is added, so that
the limit holds everywhere and not at the samples only.
"""

import math
from dataclasses import replace

import numpy as np

from understudy.motion.path import TOOL, Floats, Ints, Path
from understudy.space.kinematics.chain import Chain

SPACING = 0.01
"""Distance of two samples on a line of the joints, rad or m."""
MOST_SAMPLES = 2000
SAMPLES = 5
"""On a piece that follows the tool: it is short, and its tip moves evenly."""
MARGIN = 1.002
"""Share by which a piece that follows the tool may differ from its samples."""


def with_tip_speed(path: Path, limit: float, chain: Chain, tool: Floats) -> Path:
    """The path with the tip of the tool at ``limit`` m/s at most, whatever the overrides are."""
    if math.isinf(limit) or not len(path):
        return path
    moving = path.length > 0.0
    short = moving & ((path.measure == TOOL) | (path.length <= SPACING * (SAMPLES - 1)))
    per_unit = np.zeros(len(path))
    per_unit[short] = _tip_speeds(path, np.flatnonzero(short), SAMPLES, chain, tool)
    for piece in np.flatnonzero(moving & ~short).tolist():
        count = min(math.ceil(path.length[piece] / SPACING) + 1, MOST_SAMPLES)
        per_unit[piece] = _tip_speeds(path, np.array([piece]), count, chain, tool)[0]
    return replace(path, fastest=np.minimum(path.fastest, _most(limit, per_unit)))


def axis_speeds(q: Floats, limit: float, chain: Chain, tool: Floats) -> Floats:
    """The speed of each joint, alone, at which the tip moves at ``limit`` m/s: the distance of the
    tip from the axis of a joint does not change while only that joint moves."""
    per_unit = np.linalg.norm(chain.jacobian(q, tool)[:3], axis=0)
    return _most(limit, per_unit)


def _most(limit: float, per_unit: Floats) -> Floats:
    """The limit per unit; infinite where the tip does not move."""
    still = np.full(len(per_unit), np.inf)
    return np.asarray(np.divide(limit, per_unit, out=still, where=per_unit > 0.0))


def _tip_speeds(path: Path, pieces: Ints, count: int, chain: Chain, tool: Floats) -> Floats:
    """The largest speed of the tip on each piece, travelled at speed 1, by ``count`` samples."""
    shape, length = path.shape[pieces], path.length[pieces]
    degree, axes = shape.shape[1] - 1, shape.shape[2]
    s = np.linspace(0.0, 1.0, count)[None, :] * length[:, None]
    powers = s[:, :, None] ** np.arange(degree + 1)
    places = (powers @ shape).reshape(-1, axes)
    tangents = ((np.arange(1, degree + 1) * powers[:, :, :-1]) @ shape[:, 1:]).reshape(-1, axes)
    moved = np.einsum("nij,nj->ni", chain.jacobians(places, tool)[:, :3], tangents)
    largest = np.linalg.norm(moved, axis=1).reshape(len(pieces), count).max(axis=1, initial=0.0)
    step = length / (count - 1)
    curvature = _curvature(chain, tool, np.abs(shape[:, 1]))
    between = np.sqrt(largest**2 + step**2 / 8.0 * curvature)
    return np.asarray(np.where(path.measure[pieces] == TOOL, largest * MARGIN, between))


def _curvature(chain: Chain, tool: Floats, directions: Floats) -> Floats:
    """Bound of the second derivative of |v|² along lines of the joints in these directions."""
    slides = np.asarray(chain.slides) > 0
    turning, sliding = directions[:, ~slides].sum(axis=1), directions[:, slides].sum(axis=1)
    reach = _reach(chain, tool)
    first, second, third = (
        reach * turning**k + k * sliding * turning ** (k - 1) for k in (1, 2, 3)
    )
    return np.asarray(2.0 * (second**2 + first * third))


def _reach(chain: Chain, tool: Floats) -> float:
    """Bound of the distance of the tip from every axis of the arm."""
    places = chain.axes_of(np.zeros((1, chain.dof)))[0, :, :3, 3]
    links = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    low, high = chain.sampling_range
    slides = np.asarray(chain.slides) > 0
    strokes = float(np.maximum(np.abs(low), np.abs(high))[slides].sum())
    return links + strokes + float(np.linalg.norm((chain.tip @ tool)[:3, 3]))
