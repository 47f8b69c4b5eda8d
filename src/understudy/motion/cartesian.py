"""Ways of the tool as paths of the joints: on the way within a micrometre, within all limits.

Inverse kinematics gives the joints at knots along the way, the Jacobian how they change; between
knots each joint is a cubic, so position and velocity go on without a step. Knots are put closer
where the middle of a piece would leave the way. On every piece the greatest |dq/ds| and |d²q/ds²|
bound the speed v and then the acceleration a along the way:

    |dq/ds|·v ≤ v_max,   |d²q/ds²|·v² ≤ a_max/2,   |dq/ds|·a ≤ a_max - |d²q/ds²|·v²

so that the limits hold everywhere on the piece, however it is run.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import TOOL, Floats, Limits, Path, nothing
from understudy.motion.ways import Way
from understudy.space.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.follow import Kind, follow

KNOT_DISTANCE = 0.02
"""Metres between knots at first."""
KNOT_ANGLE = 0.1
"""Radians between knots at first."""
OFF_THE_WAY = 1e-6
"""Metres (or radians) by which a piece may leave the way in its middle."""
MOST_KNOTS = 4096
HIGHEST_OVERRIDE = 2.0
"""The feed override never raises a feed above this."""
CURVATURE_SHARE = 0.5
"""The share of the joints' acceleration that the way's own curvature may use."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why the arm cannot follow the way, and up to which share of it it can."""

    kind: Kind
    share: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Knots:
    """Joints along a way: where, what values, what slopes dq/ds."""

    s: Floats
    q: Floats
    slope: Floats


def along(
    chain: Chain,
    start: ArrayLike,
    way: Way,
    *,
    limits: Limits,
    feed: float,
    turning: float = np.inf,
    acceleration: float = np.inf,
    frames: Frames = FOOT_AND_FLANGE,
    line: int = 0,
) -> Path | Blocked:
    """The path of the joints from ``start``, where the arm is at the way's beginning.

    feed in m/s (rad/s where the tool only turns), turning: the fastest turn of the tool in rad/s,
    acceleration along the way in m/s². A way that leads nowhere is a path without pieces.
    """
    if way.length == 0.0:
        return nothing(chain.dof)
    knots = knots_along(chain, start, way, frames)
    if isinstance(knots, Blocked):
        return knots
    pace = turning * way.length / way.angle if way.angle > 0.0 else np.inf
    return path_through(knots, limits, feed=min(feed, pace), acceleration=acceleration, line=line)


# ── knots ───────────────────────────────────────────────────────────────────────────────────────


def knots_along(
    chain: Chain, start: ArrayLike, way: Way, frames: Frames = FOOT_AND_FLANGE
) -> Knots | Blocked:
    """Knots so close that the cubics between them stay on the way."""
    first = max(4, int(np.ceil(way.length / KNOT_DISTANCE)), int(np.ceil(way.angle / KNOT_ANGLE)))
    shares = np.linspace(0.0, 1.0, first + 1)
    while True:
        found = follow(chain, start, way.poses(shares), frames=frames)
        if found.trouble is not None:
            trouble = found.trouble
            return Blocked(trouble.kind, float(shares[trouble.index]), trouble.reason)
        knots = Knots(shares * way.length, found.q, _slopes(chain, found.q, way, shares, frames))
        knots.q[0] = start
        middle = 0.5 * (shares[1:] + shares[:-1])
        wide = _off_the_way(chain, knots, way, middle, frames) > OFF_THE_WAY
        if not wide.any():
            return knots
        if len(shares) + wide.sum() > MOST_KNOTS:
            worst = float(middle[np.flatnonzero(wide)[0]])
            return Blocked(Kind.SINGULAR, worst, "the joints cannot follow the way smoothly here")
        shares = np.sort(np.concatenate([shares, middle[wide]]))


def _slopes(chain: Chain, q: Floats, way: Way, shares: Floats, frames: Frames) -> Floats:
    rates = way.rates(shares).reshape(-1, 2, 3) @ frames.base[:3, :3].T
    inverse = np.linalg.pinv(chain.jacobians(q, frames.tool), rcond=1e-9)
    return np.asarray((inverse @ rates.reshape(-1, 6, 1))[..., 0])


def _off_the_way(chain: Chain, knots: Knots, way: Way, middle: Floats, frames: Frames) -> Floats:
    """How far the tool is from the way in the middle of each piece; the greater of m and rad."""
    h = np.diff(knots.s)[:, None]
    halfway = 0.5 * (knots.q[1:] + knots.q[:-1]) - h / 8.0 * np.diff(knots.slope, axis=0)
    there, wanted = chain.flanges(halfway, frames), way.poses(middle)
    apart = np.linalg.norm(there[:, :3, 3] - wanted[:, :3, 3], axis=1)
    # Of a small turn the antisymmetric part is its axis times its angle.
    turn = np.swapaxes(there[:, :3, :3], 1, 2) @ wanted[:, :3, :3]
    skew = 0.5 * (turn - np.swapaxes(turn, 1, 2))
    turned = np.sqrt(0.5) * np.linalg.norm(skew, axis=(1, 2))
    return np.asarray(np.maximum(apart, turned))


# ── pieces ──────────────────────────────────────────────────────────────────────────────────────


def path_through(
    knots: Knots, limits: Limits, *, feed: float, acceleration: float = np.inf, line: int = 0
) -> Path:
    """Cubics through the knots, with the speed and acceleration that the joints allow on each."""
    h = np.diff(knots.s)[:, None]
    q0, m0, m1 = knots.q[:-1], knots.slope[:-1], knots.slope[1:]
    chord = np.diff(knots.q, axis=0) / h
    shape = np.stack(
        [q0, m0, (3.0 * chord - 2.0 * m0 - m1) / h, (m0 + m1 - 2.0 * chord) / h**2], axis=1
    )
    slope, bend = greatest_slopes(shape, h), greatest_bends(shape, h)
    fastest = np.minimum(
        _least(limits.velocity, slope),
        np.sqrt(_least(CURVATURE_SHARE * limits.acceleration, bend)),
    )
    fastest = np.minimum(fastest, HIGHEST_OVERRIDE * feed)
    left = limits.acceleration - bend * fastest[:, None] ** 2
    count = len(h)
    return Path(
        shape=shape,
        end=knots.q[1:].copy(),
        length=h[:, 0].copy(),
        acceleration=np.minimum(_least(left, slope), acceleration),
        jerk=_least(limits.jerk, slope),
        fastest=fastest,
        feed=np.full(count, feed),
        rapid=np.zeros(count, dtype=np.bool_),
        fixed=np.zeros(count, dtype=np.bool_),
        junction=np.concatenate([[0.0], np.full(count - 1, np.inf)]),
        dwell=np.zeros(count),
        measure=np.full(count, TOOL, dtype=np.int8),
        block=np.zeros(count, dtype=np.int64),
        line=np.full(count, line, dtype=np.int64),
    )


def greatest_slopes(shape: Floats, h: Floats) -> Floats:
    """The greatest |dq/ds| on each piece: at an end, or where the cubic's slope turns."""
    _, b, c, d = np.moveaxis(shape, 1, 0)
    with np.errstate(all="ignore"):
        turn = np.nan_to_num(np.clip(-c / (3.0 * d), 0.0, h))
    slopes = [np.abs(b + s * (2.0 * c + 3.0 * d * s)) for s in (0.0, h, turn)]
    return np.asarray(np.maximum.reduce(slopes))


def greatest_bends(shape: Floats, h: Floats) -> Floats:
    """The greatest |d²q/ds²| on each piece; it changes evenly, so at one of its ends."""
    _, _, c, d = np.moveaxis(shape, 1, 0)
    return np.asarray(np.maximum(np.abs(2.0 * c), np.abs(2.0 * c + 6.0 * d * h)))


def _least(allowed: Floats, used: Floats) -> Floats:
    """Per piece the least of allowed over used, over all joints."""
    with np.errstate(all="ignore"):
        return np.asarray((allowed / used).min(axis=1))
