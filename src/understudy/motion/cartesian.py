"""Joint paths that follow a tool path to within a micrometre and keep all joint limits.

Inverse kinematics gives the joints at knots along the tool path, the Jacobian their derivatives;
between knots each joint is a cubic polynomial, so that position and velocity are continuous. Knots
are inserted where the middle of a piece is too far from the tool path. On every piece the largest
|dq/ds| and |d²q/ds²| bound the speed v and then the acceleration a along the path:

    |dq/ds|·v ≤ v_max,   |d²q/ds²|·v² ≤ a_max/2,   |dq/ds|·a ≤ a_max - |d²q/ds²|·v²

so that the joint limits hold everywhere on the piece at any allowed speed.

The common case is computed by the kernels of `trace`; the functions here handle every case and
report why a tool path cannot be followed.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import TOOL, Floats, Ints, Limits, Path, empty_path, path_of
from understudy.motion.tool_path import NO_ARC, ArcShape, ToolArc, ToolLine, ToolPath
from understudy.motion.trace import (
    BEYOND_LIMIT,
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
from understudy.space.kinematics.follow import FailureKind, FollowFailure, follow
from understudy.space.kinematics.ik import closed_form, outside

MOST_KNOTS = 4096
"""Most points of one line or arc of the tool."""
MANY_WIDE = 0.5
"""Share of the pieces that need more points, above which the path is too long and not singular."""
PIECES_PER_LINE = 6
"""Pieces reserved per line; short lines have four."""
STEEPEST = 1e-5
"""Smallest distance of knots (m, or rad if the tool only rotates); a larger step is a jump."""
CLOSEST = 1e-9
"""Pieces of at most this length (m or rad) are not divided: if the tool leaves its path there, a
joint jumps."""
ONWARDS = 1e-4
"""Distance (m or rad) behind a jump at which the joints would be without it."""
NOT_SMOOTH = "the joints cannot follow the path smoothly here"
CLOSER = 8
"""Number of parts into which a piece with a jump is divided."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Reason why the arm cannot follow a tool path, and the share 0…1 of it that it can."""

    kind: FailureKind
    share: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Knots:
    """Joints along a tool path: distances s, values q, derivatives dq/ds."""

    s: Floats
    q: Floats
    slope: Floats


def joint_path(
    chain: Chain,
    start: ArrayLike,
    tool_path: ToolPath,
    *,
    limits: Limits,
    feed: float,
    turning: float = np.inf,
    acceleration: float = np.inf,
    frames: Frames = FOOT_AND_FLANGE,
    line: int = 0,
) -> Path | Blocked:
    """The joint path from ``start``, the configuration at the beginning of the tool path.

    feed in m/s (rad/s if the tool only rotates); turning: largest rotation speed of the tool in
    rad/s; acceleration along the path in m/s². A tool path of length 0 gives an empty path.
    """
    if tool_path.length == 0.0:
        return empty_path(chain.dof)
    if turning < np.inf and tool_path.angle > 0.0:
        feed = min(feed, turning * tool_path.length / tool_path.angle)
    arm = traced_arm(chain, limits, frames)
    if arm is not None:
        q = np.array(start, dtype=np.float64)
        traced = _traced(
            arm, q, tool_path, frames.base, feed=feed, acceleration=acceleration, line=line
        )
        if traced is not None:
            return traced
    return joint_path_by_knots(
        chain,
        start,
        tool_path,
        limits=limits,
        feed=feed,
        acceleration=acceleration,
        frames=frames,
        line=line,
    )


def joint_path_by_knots(
    chain: Chain,
    start: ArrayLike,
    tool_path: ToolPath,
    *,
    limits: Limits,
    feed: float,
    acceleration: float = np.inf,
    frames: Frames = FOOT_AND_FLANGE,
    line: int = 0,
) -> Path | Blocked:
    """`joint_path` for any arm and any tool path, without the kernels of `trace`."""
    knots = knots_along(chain, start, tool_path, frames)
    if isinstance(knots, Blocked):
        return knots
    path = path_through(knots, limits, feed=feed, acceleration=acceleration, line=line)
    return _beyond_limits(chain, path, tool_path) or path


# ── the common case ─────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=64)
def traced_arm(chain: Chain, limits: Limits, frames: Frames) -> TracedArm | None:
    """Data of an arm and its tool for the kernels; None if the arm has no exact closed form."""
    arm = closed_form(chain)
    if arm is None or not arm.exact:
        return None
    left, right = arm.ends(Frames(np.eye(4), frames.tool))
    parts = (
        chain.rest,
        chain.slides,
        chain.tip @ frames.tool,
        left,
        right,
        arm.geometry,
        chain.lower,
        chain.upper,
        limits.velocity,
        limits.acceleration,
        limits.jerk,
    )
    # Copies, because read-only or non-contiguous arrays would compile the kernel again.
    return TracedArm(*(np.array(part, dtype=np.float64, order="C") for part in parts))


def lines_through(
    arm: TracedArm, start: Floats, targets: Floats, *, feed: Floats, line: Ints, deviation: float
) -> tuple[Path, int]:
    """Joint path along straight tool lines through targets (m×4×4, foot frame); number of lines.

    Ends before the first line that the kernels cannot handle; use `joint_path` for it. feed (m/s)
    and line: one value per target; deviation: junction deviation of the corners between the lines.
    """
    room = empty_columns(PIECES_PER_LINE * len(targets) + MOST_PIECES)
    done, pieces = trace_lines(targets, feed, start, NO_ARC, arm, float(deviation), room)
    source = room.source[:pieces].copy()
    return _path(room, pieces, feed[source], source, line[source]), int(done)


def _traced(
    arm: TracedArm,
    start: Floats,
    tool_path: ToolPath,
    base: Floats,
    *,
    feed: float,
    acceleration: float,
    line: int,
) -> Path | None:
    """The joint path along a line or an arc by the kernels; None if they cannot handle it."""
    if not isinstance(tool_path, ToolLine | ToolArc):
        return None
    arc = NO_ARC if isinstance(tool_path, ToolLine) else _arc_shape(tool_path, base)
    room = empty_columns(MOST_PIECES)
    pace, most = float(feed), float(acceleration)
    count = trace_path(
        base @ tool_path.start, base @ tool_path.end, arc, pace, most, start, arm, room, 0
    )
    if count == 0:
        return None
    none = np.zeros(count, dtype=np.int64)
    return _path(room, count, np.full(count, feed), none, none + line)


def _arc_shape(tool_path: ToolArc, base: Floats) -> ArcShape:
    """The arc in the foot frame."""
    turn = base[:3, :3]
    x, y, z = (turn @ tool_path.centre + base[:3, 3]).tolist()
    u, v, w = (turn @ tool_path.axis).tolist()
    return ArcShape((x, y, z), (u, v, w), float(tool_path.swept), tool_path.climb)


def _path(room: PieceColumns, count: int, feed: Floats, block: Ints, line: Ints) -> Path:
    return path_of(
        shape=room.shape[:count].copy(),
        end=room.end[:count].copy(),
        length=room.length[:count].copy(),
        acceleration=room.acceleration[:count].copy(),
        jerk=room.jerk[:count].copy(),
        fastest=room.fastest[:count].copy(),
        feed=feed,
        junction=room.junction[:count].copy(),
        measure=np.full(count, TOOL, dtype=np.int8),
        block=block,
        line=line,
    )


# ── knots ───────────────────────────────────────────────────────────────────────────────────────


def knots_along(
    chain: Chain, start: ArrayLike, tool_path: ToolPath, frames: Frames = FOOT_AND_FLANGE
) -> Knots | Blocked:
    """Knots so close that the cubics between them stay within PATH_TOLERANCE of the tool path."""
    closest = tool_path.length / KNOT_DISTANCE, tool_path.angle / KNOT_ANGLE
    first = max(FEWEST, *(int(np.ceil(share)) for share in closest))
    if first > MOST_KNOTS:
        return _too_long(tool_path)
    shares = np.linspace(0.0, 1.0, first + 1)
    while True:
        found = follow(chain, start, tool_path.poses(shares), frames=frames)
        if found.failure is not None:
            closer = _more_knots(shares, found.failure, tool_path)
            if closer is None:
                at = float(shares[found.failure.index])
                return Blocked(found.failure.kind, at, found.failure.reason)
            shares = closer
            continue
        knots = Knots(
            shares * tool_path.length, found.q, _slopes(chain, found.q, tool_path, shares, frames)
        )
        knots.q[0] = start
        middle = 0.5 * (shares[1:] + shares[:-1])
        wide = _path_errors(chain, knots, tool_path, middle, frames) > PATH_TOLERANCE
        if not wide.any():
            return knots
        jumps = wide & (np.diff(knots.s) <= CLOSEST)
        if jumps.any():
            piece = int(np.flatnonzero(jumps)[0])
            return _jump(chain, knots, piece, float(shares[piece]))
        if len(shares) + wide.sum() > MOST_KNOTS:
            if wide.mean() > MANY_WIDE:
                return _too_long(tool_path)
            worst = float(middle[np.flatnonzero(wide)[0]])
            return Blocked(FailureKind.SINGULAR, worst, NOT_SMOOTH)
        shares = np.sort(np.concatenate([shares, middle[wide]]))


def _too_long(tool_path: ToolPath) -> Blocked:
    reason = (
        f"a path of {tool_path.length:.4g} m needs more than {MOST_KNOTS} points: divide the line"
    )
    return Blocked(FailureKind.UNREACHABLE, 0.0, reason)


def _jump(chain: Chain, knots: Knots, piece: int, share: float) -> Blocked:
    """Why the joints jump on a piece: one is at its limit, so that only other solutions of the
    inverse kinematics go on; or the pose is singular."""
    onwards = knots.q[piece] + knots.slope[piece] * ONWARDS
    over = np.maximum(chain.lower - onwards, onwards - chain.upper)
    joint = int(np.argmax(over))
    if over[joint] > 0.0:
        return Blocked(FailureKind.LIMIT, share, outside(chain, joint, float(onwards[joint])))
    return Blocked(FailureKind.SINGULAR, share, NOT_SMOOTH)


def _more_knots(shares: Floats, failure: FollowFailure, tool_path: ToolPath) -> Floats | None:
    """More knots where a joint moves far between two, as near a singular pose; None if the knots
    are already as close as STEEPEST, so that the joint jumps."""
    last = failure.index
    if failure.kind not in (FailureKind.SINGULAR, FailureKind.FLIP) or last == 0:
        return None
    if (shares[last] - shares[last - 1]) * tool_path.length <= STEEPEST:
        return None
    between = np.linspace(shares[last - 1], shares[last], CLOSER + 1)[1:-1]
    return np.insert(shares, last, between)


def _slopes(chain: Chain, q: Floats, tool_path: ToolPath, shares: Floats, frames: Frames) -> Floats:
    rates = tool_path.rates(shares).reshape(-1, 2, 3) @ frames.base[:3, :3].T
    inverse = np.linalg.pinv(chain.jacobians(q, frames.tool), rcond=1e-9)
    return np.asarray((inverse @ rates.reshape(-1, 6, 1))[..., 0])


def _path_errors(
    chain: Chain, knots: Knots, tool_path: ToolPath, middle: Floats, frames: Frames
) -> Floats:
    """Distance of the tool from its path in the middle of each piece; the larger of m and rad."""
    h = np.diff(knots.s)[:, None]
    halfway = 0.5 * (knots.q[1:] + knots.q[:-1]) - h / 8.0 * np.diff(knots.slope, axis=0)
    there, wanted = chain.flanges(halfway, frames), tool_path.poses(middle)
    apart = np.linalg.norm(there[:, :3, 3] - wanted[:, :3, 3], axis=1)
    # The antisymmetric part of a small rotation is its axis times its angle.
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
        _least(limits.velocity, slope), np.sqrt(_least(CURVATURE_SHARE * limits.acceleration, bend))
    )
    fastest = np.minimum(fastest, HIGHEST_OVERRIDE * feed)
    left = limits.acceleration - bend * fastest[:, None] ** 2
    count = len(h)
    return path_of(
        shape=shape,
        end=knots.q[1:].copy(),
        length=h[:, 0].copy(),
        acceleration=np.minimum(_least(left, slope), acceleration),
        jerk=_least(limits.jerk, slope),
        fastest=fastest,
        feed=np.full(count, feed),
        junction=np.concatenate([[0.0], np.full(count - 1, np.inf)]),
        measure=np.full(count, TOOL, dtype=np.int8),
        line=np.full(count, line, dtype=np.int64),
    )


def _beyond_limits(chain: Chain, path: Path, tool_path: ToolPath) -> Blocked | None:
    """The first piece on which a joint leaves its range between two knots; None: no such piece."""
    least, most = extremes(path.shape, path.length[:, None])
    over = np.maximum(chain.lower - least, most - chain.upper)
    pieces = np.flatnonzero(over.max(axis=1) > BEYOND_LIMIT)
    if not len(pieces):
        return None
    piece = int(pieces[0])
    joint = int(np.argmax(over[piece]))
    below = least[piece, joint] < chain.lower[joint]
    value = float((least if below else most)[piece, joint])
    share = float(path.length[:piece].sum()) / tool_path.length
    return Blocked(FailureKind.LIMIT, share, outside(chain, joint, value))


def extremes(shape: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Least and greatest value of every joint on each piece: at an end, or where the derivative
    b + 2·c·s + 3·d·s² is zero."""
    a, b, c, d = np.moveaxis(shape, 1, 0)
    with np.errstate(all="ignore"):
        r = -(c + np.copysign(np.sqrt(np.maximum(c * c - 3.0 * b * d, 0.0)), c))
        turns = (np.nan_to_num(np.clip(turn, 0.0, h)) for turn in (b / r, r / (3.0 * d)))
    values = [a + s * (b + s * (c + s * d)) for s in (np.zeros_like(h), h, *turns)]
    return np.asarray(np.minimum.reduce(values)), np.asarray(np.maximum.reduce(values))


def greatest_slopes(shape: Floats, h: Floats) -> Floats:
    """Largest |dq/ds| on each piece: at an end, or where the second derivative is zero."""
    _, b, c, d = np.moveaxis(shape, 1, 0)
    with np.errstate(all="ignore"):
        turn = np.nan_to_num(np.clip(-c / (3.0 * d), 0.0, h))
    slopes = [np.abs(b + s * (2.0 * c + 3.0 * d * s)) for s in (0.0, h, turn)]
    return np.asarray(np.maximum.reduce(slopes))


def greatest_bends(shape: Floats, h: Floats) -> Floats:
    """Largest |d²q/ds²| on each piece; it is linear in s, so at one of the ends."""
    _, _, c, d = np.moveaxis(shape, 1, 0)
    return np.asarray(np.maximum(np.abs(2.0 * c), np.abs(2.0 * c + 6.0 * d * h)))


def _least(allowed: Floats, used: Floats) -> Floats:
    """Per piece the smallest of allowed / used over all joints."""
    with np.errstate(all="ignore"):
        return np.asarray((allowed / used).min(axis=1))
