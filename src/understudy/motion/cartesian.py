"""Ways of the tool as paths of the joints: on the way within a micrometre, within all limits.

Inverse kinematics gives the joints at knots along the way, the Jacobian how they change; between
knots each joint is a cubic, so position and velocity go on without a step. Knots are put closer
where the middle of a piece would leave the way. On every piece the greatest |dq/ds| and |d²q/ds²|
bound the speed v and then the acceleration a along the way:

    |dq/ds|·v ≤ v_max,   |d²q/ds²|·v² ≤ a_max/2,   |dq/ds|·a ≤ a_max - |d²q/ds²|·v²

so that the limits hold everywhere on the piece, however it is run.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import TOOL, Floats, Ints, Limits, Path, empty_path
from understudy.motion.tool_path import NO_ARC, ArcShape, ToolArc, ToolLine, ToolPath
from understudy.motion.trace import (
    CURVATURE_SHARE,
    FEWEST,
    HIGHEST_OVERRIDE,
    KNOT_ANGLE,
    KNOT_DISTANCE,
    MOST_PIECES,
    PATH_TOLERANCE,
    PieceColumns,
    TracedArm,
    empty_columns,
    trace_lines,
    trace_path,
)
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.closed_form import closed_form
from understudy.space.kinematics.follow import FailureKind, FollowFailure, follow

MOST_KNOTS = 4096
PIECES_PER_LINE = 6
"""Room for so many; short lines have four."""
STEEPEST = 1e-5
"""Metres, or radians where the tool only turns: a joint that jumps between knots so close does."""
CLOSER = 8
"""Into so many parts a piece is cut on which a joint seems to jump."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why the arm cannot follow the way, and up to which share of it it can."""

    kind: FailureKind
    share: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Knots:
    """Joints along a way: where, what values, what slopes dq/ds."""

    s: Floats
    q: Floats
    slope: Floats


def joint_path(
    chain: Chain,
    start: ArrayLike,
    way: ToolPath,
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
        return empty_path(chain.dof)
    if turning < np.inf and way.angle > 0.0:
        feed = min(feed, turning * way.length / way.angle)
    arm = traced_arm(chain, limits, frames)
    if arm is not None:
        q = np.array(start, dtype=np.float64)
        traced = _traced(arm, q, way, frames.base, feed=feed, acceleration=acceleration, line=line)
        if traced is not None:
            return traced
    return joint_path_by_knots(
        chain,
        start,
        way,
        limits=limits,
        feed=feed,
        acceleration=acceleration,
        frames=frames,
        line=line,
    )


def joint_path_by_knots(
    chain: Chain,
    start: ArrayLike,
    way: ToolPath,
    *,
    limits: Limits,
    feed: float,
    acceleration: float = np.inf,
    frames: Frames = FOOT_AND_FLANGE,
    line: int = 0,
) -> Path | Blocked:
    """`along` for any arm and any way, ordinary or not; it knows why a way cannot be followed."""
    knots = knots_along(chain, start, way, frames)
    if isinstance(knots, Blocked):
        return knots
    return path_through(knots, limits, feed=feed, acceleration=acceleration, line=line)


# ── the ordinary case ───────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=64)
def traced_arm(chain: Chain, limits: Limits, frames: Frames) -> TracedArm | None:
    """What the kernels need to know of an arm and its tool; None of an arm they do not know."""
    arm = closed_form(chain)
    if arm is None or not arm.exact:
        return None
    left, right = arm.ends(Frames(np.eye(4), frames.tool))
    parts = (
        chain.rest, chain.slides, chain.tip @ frames.tool, left, right, arm.geometry,
        chain.lower, chain.upper, limits.velocity, limits.acceleration, limits.jerk,
    )  # fmt: skip
    # Copies, since a kernel is compiled anew for arrays that cannot be written or lie otherwise.
    return TracedArm(*(np.array(part, dtype=np.float64, order="C") for part in parts))


def lines_through(
    arm: TracedArm, start: Floats, targets: Floats, *, feed: Floats, line: Ints, deviation: float
) -> tuple[Path, int]:
    """Straight lines of the tool through targets (m×4×4, from the foot), and how many of them.

    Ends before the first that is no ordinary one: `along` knows more. feed (m/s) and line: one
    each; deviation: how closely the corners between the lines are rounded.
    """
    room = empty_columns(PIECES_PER_LINE * len(targets) + MOST_PIECES)
    done, pieces = trace_lines(targets, feed, start, NO_ARC, arm, float(deviation), room)
    source = room.source[:pieces].copy()
    return _path(room, pieces, feed[source], source, line[source]), int(done)


def _traced(
    arm: TracedArm,
    start: Floats,
    way: ToolPath,
    base: Floats,
    *,
    feed: float,
    acceleration: float,
    line: int,
) -> Path | None:
    """The path along a line or an arc, if it is an ordinary one."""
    if not isinstance(way, ToolLine | ToolArc):
        return None
    bow = NO_ARC if isinstance(way, ToolLine) else _bow(way, base)
    room = empty_columns(MOST_PIECES)
    pace, most = float(feed), float(acceleration)
    count = trace_path(base @ way.start, base @ way.end, bow, pace, most, start, arm, room, 0)
    if count == 0:
        return None
    none = np.zeros(count, dtype=np.int64)
    return _path(room, count, np.full(count, feed), none, none + line)


def _bow(way: ToolArc, base: Floats) -> ArcShape:
    """An arc seen from the foot."""
    turn = base[:3, :3]
    x, y, z = (turn @ way.centre + base[:3, 3]).tolist()
    u, v, w = (turn @ way.axis).tolist()
    return ArcShape((x, y, z), (u, v, w), float(way.swept), way.climb)


def _path(room: PieceColumns, count: int, feed: Floats, block: Ints, line: Ints) -> Path:
    return Path(
        shape=room.shape[:count].copy(),
        end=room.end[:count].copy(),
        length=room.length[:count].copy(),
        acceleration=room.acceleration[:count].copy(),
        jerk=room.jerk[:count].copy(),
        fastest=room.fastest[:count].copy(),
        feed=feed,
        rapid=np.zeros(count, dtype=np.bool_),
        fixed=np.zeros(count, dtype=np.bool_),
        junction=room.junction[:count].copy(),
        dwell=np.zeros(count),
        measure=np.full(count, TOOL, dtype=np.int8),
        block=block,
        line=line,
    )


# ── knots ───────────────────────────────────────────────────────────────────────────────────────


def knots_along(
    chain: Chain, start: ArrayLike, way: ToolPath, frames: Frames = FOOT_AND_FLANGE
) -> Knots | Blocked:
    """Knots so close that the cubics between them stay on the way."""
    closest = way.length / KNOT_DISTANCE, way.angle / KNOT_ANGLE
    first = max(FEWEST, *(int(np.ceil(share)) for share in closest))
    shares = np.linspace(0.0, 1.0, first + 1)
    while True:
        found = follow(chain, start, way.poses(shares), frames=frames)
        if found.trouble is not None:
            closer = _looked_closer(shares, found.trouble, way)
            if closer is None:
                at = float(shares[found.trouble.index])
                return Blocked(found.trouble.kind, at, found.trouble.reason)
            shares = closer
            continue
        knots = Knots(shares * way.length, found.q, _slopes(chain, found.q, way, shares, frames))
        knots.q[0] = start
        middle = 0.5 * (shares[1:] + shares[:-1])
        wide = _off_the_way(chain, knots, way, middle, frames) > PATH_TOLERANCE
        if not wide.any():
            return knots
        if len(shares) + wide.sum() > MOST_KNOTS:
            worst = float(middle[np.flatnonzero(wide)[0]])
            return Blocked(
                FailureKind.SINGULAR, worst, "the joints cannot follow the way smoothly here"
            )
        shares = np.sort(np.concatenate([shares, middle[wide]]))


def _looked_closer(shares: Floats, trouble: FollowFailure, way: ToolPath) -> Floats | None:
    """More knots where a joint turns much between two, as beside a singular pose it does; None if
    there are enough of them, and it jumps."""
    last = trouble.index
    if trouble.kind not in (FailureKind.SINGULAR, FailureKind.FLIP) or last == 0:
        return None
    if (shares[last] - shares[last - 1]) * way.length <= STEEPEST:
        return None
    between = np.linspace(shares[last - 1], shares[last], CLOSER + 1)[1:-1]
    return np.insert(shares, last, between)


def _slopes(chain: Chain, q: Floats, way: ToolPath, shares: Floats, frames: Frames) -> Floats:
    rates = way.rates(shares).reshape(-1, 2, 3) @ frames.base[:3, :3].T
    inverse = np.linalg.pinv(chain.jacobians(q, frames.tool), rcond=1e-9)
    return np.asarray((inverse @ rates.reshape(-1, 6, 1))[..., 0])


def _off_the_way(
    chain: Chain, knots: Knots, way: ToolPath, middle: Floats, frames: Frames
) -> Floats:
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
