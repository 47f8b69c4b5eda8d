"""Joint paths that follow a tool path to within a micrometre and keep all joint limits.

Inverse kinematics gives the joints at knots along the tool path, the Jacobian their derivatives;
between knots each joint is a cubic polynomial, so that position and velocity are continuous. Knots
are inserted where the middle of a piece is too far from the tool path. On every piece the largest
|dq/ds| and |d²q/ds²| bound the speed v and then the acceleration a along the path:

    |dq/ds|·v ≤ v_max,   |d²q/ds²|·v² ≤ a_max/2,   |dq/ds|·a ≤ a_max - |d²q/ds²|·v²

so that the joint limits hold everywhere on the piece at any allowed speed.

The common case is computed by the kernel `trace_lines`: an arm with a closed form, a tool path
within reach, no singular pose nearby. In all other cases it returns no pieces. Poses of kernels are
in the frame of the robot's foot. The other functions handle every case and report why a tool path
cannot be followed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.lines import passing_speed
from understudy.motion.path import TOOL, Floats, Ints, Limits, Path, empty_path, path_of
from understudy.motion.tool_path import (
    IN_PLACE,
    NO_ARC,
    ArcShape,
    ToolArc,
    ToolLine,
    ToolPath,
    Vector,
    path_length,
    pose_between,
    poses_on,
    rates_on,
    turn_between,
)
from understudy.space.compiled import borrowed, compiled, inlined
from understudy.space.kinematics.chain import (
    FOOT_AND_FLANGE,
    Chain,
    Frames,
    flange_frames,
    jacobians,
    joint_frames,
)
from understudy.space.kinematics.follow import (
    JUMP,
    FailureKind,
    FollowFailure,
    follow,
    follow_branches,
    nearest_branch,
)
from understudy.space.kinematics.ik import BRANCHES, SCRATCH, branches_at, closed_form, outside

KNOT_DISTANCE = 0.02
"""Initial distance of knots (m); where a cubic leaves the tool path, they are set closer."""
KNOT_ANGLE = 0.1
"""Initial angle between knots (rad)."""
CLOSE_KNOTS = 4
"""Initial number of pieces of a line of KNOT_DISTANCE or KNOT_ANGLE. A shorter line has fewer, so
that its pieces are no longer than those: a line of 5 mm is one piece."""
PATH_TOLERANCE = 1e-6
"""Largest distance (m or rad) of the middle of a piece from the tool path."""
BEYOND_LIMIT = 1e-6
"""Largest distance (rad or m) beyond its limit that rounding may take a joint between knots."""
HIGHEST_OVERRIDE = 2.0
"""Largest feed override."""
CURVATURE_SHARE = 0.5
"""Share of the joints' acceleration that the curvature of the path may use."""
JERK_SHARE = 0.25
"""Share of the joints' jerk that each effect of the curvature may use."""
JERK_TICK = 1e-3
"""Seconds in which the acceleration passes from one cubic to the next."""
MOST_PIECES = 256
"""Most pieces of a tool path that the kernels handle."""
CLOSE_TO_SINGULAR = 1e-4
"""Smallest ratio of the pivots of a Jacobian that counts as regular: an estimate of its condition
that costs nothing, since the pivots are computed anyway. `cartesian` looks at what is left."""
AXES = 6


class TracedArm(NamedTuple):
    """Data of an arm with its tool: chain, closed form and joint limits."""

    rest: Floats
    slides: Floats
    tip: Floats
    left: Floats
    right: Floats
    geometry: Floats
    lower: Floats
    upper: Floats
    velocity: Floats
    acceleration: Floats
    jerk: Floats


class PieceColumns(NamedTuple):
    """Columns of a Path that the kernels fill; ``source``: index of the tool path of each piece."""

    shape: Floats
    end: Floats
    length: Floats
    acceleration: Floats
    jerk: Floats
    fastest: Floats
    junction: Floats
    source: Ints


def empty_columns(pieces: int) -> PieceColumns:
    """Buffers for a number of pieces."""
    length, acceleration, jerk, fastest, junction = np.empty((5, pieces))
    shape, end = np.empty((pieces, 4, AXES)), np.empty((pieces, AXES))
    source = np.empty(pieces, dtype=np.int64)
    return PieceColumns(shape, end, length, acceleration, jerk, fastest, junction, source)


# ── knots ───────────────────────────────────────────────────────────────────────────────────────


@compiled
def first_pieces(length: float, angle: float, swept: float) -> int:
    """Initial number of pieces of a tool path that sweeps an arc, or none.

    An arc has four for each turn: next to a knot in the middle between two equal places a wrong
    piece would look right.
    """
    spread = max(length / KNOT_DISTANCE, angle / KNOT_ANGLE)
    closer = math.ceil(CLOSE_KNOTS * min(spread, 1.0))
    if swept != 0.0:
        closer = CLOSE_KNOTS * max(1, math.ceil(abs(swept) / math.tau - 1e-9))
    return int(max(math.ceil(spread), closer))


@compiled
def factored(J: Floats, swaps: Ints) -> bool:
    """Factors J by Gauss in place, for `substituted`; ``swaps``: the row that each row is swapped
    with. False near a singular pose."""
    size = len(J)
    least, most = np.inf, 0.0
    for c in range(size):
        best = c
        for i in range(c + 1, size):
            if abs(J[i, c]) > abs(J[best, c]):
                best = i
        pivot = J[best, c]
        least, most = min(least, abs(pivot)), max(most, abs(pivot))
        if not least > CLOSE_TO_SINGULAR * most:
            return False
        swaps[c] = best
        if best != c:
            for j in range(c, size):
                J[c, j], J[best, j] = J[best, j], J[c, j]
        for i in range(c + 1, size):
            share = J[i, c] / pivot
            for j in range(c + 1, size):
                J[i, j] -= share * J[c, j]
            J[i, c] = share
    return True


@compiled
def substituted(J: Floats, swaps: Ints, out: Floats) -> None:
    """Solves J·x = out into ``out``, with J from `factored`."""
    size = len(out)
    for c in range(size):
        best = swaps[c]
        out[c], out[best] = out[best], out[c]
        for i in range(c + 1, size):
            out[i] -= J[i, c] * out[c]
    for c in range(size - 1, -1, -1):
        for j in range(c + 1, size):
            out[c] -= J[c, j] * out[j]
        out[c] /= J[c, c]


@compiled
def solved(J: Floats, out: Floats) -> bool:  # kernel
    """Solves J·x = out into ``out``; False near a singular pose. J is overwritten."""
    swaps = np.empty(len(out), dtype=np.int64)
    ordinary = factored(J, swaps)
    if ordinary:
        substituted(J, swaps, out)
    return ordinary


@compiled
def slopes_at(q: Floats, rates: Floats, arm: TracedArm) -> bool:
    """Replaces the tool's ``rates`` at the knots by dq/ds; False near a singular pose."""
    count = len(q)
    frames, J = np.empty((count, AXES + 1, 4, 4)), np.empty((count, AXES, AXES))
    joint_frames(q, arm.rest, arm.slides, frames)
    points = np.empty((count, 3))
    for k in range(count):
        for i in range(3):
            T = frames[k, AXES, i]
            points[k, i] = T[0] * arm.tip[0, 3] + T[1] * arm.tip[1, 3] + T[2] * arm.tip[2, 3] + T[3]
    jacobians(frames, arm.slides, points, J)
    ordinary = True
    for k in range(count):
        ordinary = ordinary and solved(J[k], rates[k])
    return ordinary


@compiled
def apart(there: Floats, wanted: Floats) -> float:
    """Distance of two close poses: the larger of metres and radians."""
    # Half the sum of the cross products of the axes has the direction of the rotation between the
    # poses and the length of its sine, which is the angle for poses that are this close.
    x, y, z = (there[0, 3] - wanted[0, 3]), (there[1, 3] - wanted[1, 3]), there[2, 3] - wanted[2, 3]
    a = b = c = 0.0
    for i in range(3):
        a += there[i, 2] * wanted[i, 1] - there[i, 1] * wanted[i, 2]
        b += there[i, 0] * wanted[i, 2] - there[i, 2] * wanted[i, 0]
        c += there[i, 1] * wanted[i, 0] - there[i, 0] * wanted[i, 1]
    return max(math.sqrt(x * x + y * y + z * z), 0.5 * math.sqrt(a * a + b * b + c * c))


@compiled
def knots_on(  # kernel
    start: Floats, end: Floats, arc: ArcShape, length: float, before: Floats, arm: TracedArm
) -> tuple[Floats, Floats, Floats]:
    """Distances, joint values and slopes dq/ds of the knots; empty if the case is not handled.

    Knots are so close that the cubics between them stay within PATH_TOLERANCE of the tool path.
    """
    turn = turn_between(start, end)
    first = first_pieces(length, turn[3], arc.swept)
    none = np.empty((0, AXES))
    shares = np.arange(first + 1).astype(np.float64) * (1.0 / first)
    shares[first] = 1.0
    while len(shares) <= MOST_PIECES:
        count = len(shares)
        poses = poses_on(start, end, turn, arc, shares)
        q = np.empty((count, AXES))
        # The path begins where the arm is.
        for j in range(AXES):
            q[0, j] = before[j]
        reached = 1 + follow_branches(
            poses[1:], before, arm.left, arm.right, arm.geometry, arm.lower, arm.upper, JUMP, q[1:]
        )
        slopes = rates_on(start, end, turn, arc, poses, length)
        if reached < count or not slopes_at(q, slopes, arm):
            return shares[:0], none, none
        # A cubic through two knots with their slopes deviates by s²·(h - s)², to first order, from
        # a smooth path: most in the middle. There its value is the mean of both knots less
        # h/8 of the difference of their slopes.
        middle, halfway = np.empty(count - 1), np.empty((count - 1, AXES))
        for k in range(count - 1):
            middle[k] = 0.5 * (shares[k + 1] + shares[k])
            h = (shares[k + 1] - shares[k]) * length
            for j in range(AXES):
                bent = h / 8.0 * (slopes[k + 1, j] - slopes[k, j])
                halfway[k, j] = 0.5 * (q[k + 1, j] + q[k, j]) - bent
        there, wanted = np.empty((count - 1, 4, 4)), poses_on(start, end, turn, arc, middle)
        flange_frames(halfway, arm.rest, arm.slides, arm.tip, there)
        closer = np.empty(2 * count)
        n = 0
        for k in range(count):
            closer[n] = shares[k]
            n += 1
            if k < count - 1 and apart(there[k], wanted[k]) > PATH_TOLERANCE:
                closer[n] = middle[k]
                n += 1
        if n == count:
            return shares * length, q, slopes
        shares = closer[:n].copy()
    return shares[:0], none, none


# ── pieces ──────────────────────────────────────────────────────────────────────────────────────


@compiled
def cubic(q0: Floats, q1: Floats, m0: Floats, m1: Floats, h: float, out: Floats) -> None:
    """out (4×6): coefficients between two knots at the distance h."""
    for j in range(AXES):
        chord = (q1[j] - q0[j]) / h
        out[0, j], out[1, j] = q0[j], m0[j]
        out[2, j] = (3.0 * chord - 2.0 * m0[j] - m1[j]) / h
        out[3, j] = (m0[j] + m1[j] - 2.0 * chord) / h**2


@compiled
def within_limits(shape: Floats, h: float, lower: Floats, upper: Floats) -> bool:  # kernel
    """Whether every joint stays within its limits on a piece, also between its ends.

    A joint turns back where its derivative b + 2·c·s + 3·d·s² is zero.
    """
    for j in range(AXES):
        a, b, c, d = shape[0, j], shape[1, j], shape[2, j], shape[3, j]
        low, high = lower[j] - BEYOND_LIMIT, upper[j] + BEYOND_LIMIT
        inside = c * c - 3.0 * b * d
        if inside < 0.0:
            continue
        # Both zeros without a difference of nearly equal numbers. A divisor of 0 gives inf or nan,
        # for which the comparisons are false: there is no such zero.
        r = -(c + math.copysign(math.sqrt(inside), c))
        for s in (b / r, r / (3.0 * d)):
            if 0.0 < s < h and not low <= a + s * (b + s * (c + s * d)) <= high:
                return False
    return True


@compiled
def allowed_on(  # kernel
    shape: Floats,
    h: float,
    feed: float,
    limits: tuple[Floats, Floats, Floats],
    steps: Floats,
    scratch: Floats,
) -> Vector:
    """Largest speed, acceleration and jerk that the joints allow on a piece.

    ``steps``: the greater step of q'' of each joint at the two ends of the piece.
    """
    # A joint has the speed q'·v and the acceleration q'·a + q''·v². The derivatives are bounded
    # over the piece: q' is a parabola (ends, and where it turns), q'' a line (ends). First v, so
    # that the curvature uses its share of the acceleration at most; then a, from what v leaves.
    # Its jerk is q'·j + 3·q''·v·a, the third derivative times v³, and the step of q'' at a knot
    # times v², within a tick: all but the first get a share each at most, and j what they leave. A
    # faster plan than the highest override of the feed is never asked for.
    slope, bend = scratch[0], scratch[1]
    velocity, acceleration, jerks = limits
    fastest, curved, twisted = np.inf, np.inf, np.inf
    for j in range(AXES):
        b, c, d = shape[1, j], shape[2, j], shape[3, j]
        turn = -c / (3.0 * d)
        turn = min(turn, h) if turn > 0.0 else 0.0
        at_end, at_turn = b + h * (2.0 * c + 3.0 * d * h), b + turn * (2.0 * c + 3.0 * d * turn)
        slope[j] = max(abs(b), abs(at_end), abs(at_turn))
        bend[j] = max(abs(2.0 * c), abs(2.0 * c + 6.0 * d * h))
        fastest = min(fastest, velocity[j] / slope[j])
        curved = min(curved, CURVATURE_SHARE * acceleration[j] / bend[j])
        curved = min(curved, JERK_SHARE * jerks[j] * JERK_TICK / steps[j])
        twisted = min(twisted, JERK_SHARE * jerks[j] / abs(6.0 * d))
    fastest = min(fastest, math.sqrt(curved), twisted ** (1.0 / 3.0), HIGHEST_OVERRIDE * feed)
    able, jerk = np.inf, np.inf
    for j in range(AXES):
        able = min(able, (acceleration[j] - bend[j] * fastest**2) / slope[j])
        able = min(able, JERK_SHARE * jerks[j] / (3.0 * bend[j] * fastest))
    for j in range(AXES):
        bends = fastest * (abs(6.0 * shape[3, j]) * fastest**2 + 3.0 * bend[j] * able)
        jerk = min(jerk, (jerks[j] - bends - steps[j] * fastest**2 / JERK_TICK) / slope[j])
    return fastest, able, jerk


@compiled
def trace_path(  # kernel
    start: Floats,
    end: Floats,
    arc: ArcShape,
    feed: float,
    acceleration: float,
    before: Floats,
    arm: TracedArm,
    out: PieceColumns,
    n: int,
) -> int:
    """Writes the pieces of a tool path from row n on; returns their number, 0 if not handled.

    ``before``: the joints at the start. ``out`` must have room for MOST_PIECES.
    """
    length = path_length(start, end, arc)
    if not length > IN_PLACE:
        return 0
    s, q, slopes = knots_on(start, end, arc, length, before, arm)
    pieces = max(0, len(s) - 1)
    limits, scratch = (arm.velocity, arm.acceleration, arm.jerk), np.empty((2, AXES))
    steps, worst = np.zeros((pieces + 1, AXES)), np.empty(AXES)
    for k in range(pieces):
        row = n + k
        h = s[k + 1] - s[k]
        cubic(q[k], q[k + 1], slopes[k], slopes[k + 1], h, out.shape[row])
        if not within_limits(out.shape[row], h, arm.lower, arm.upper):
            return 0
        for j in range(AXES if k else 0):
            c, d = out.shape[row - 1, 2, j], out.shape[row - 1, 3, j]
            steps[k, j] = abs(2.0 * (out.shape[row, 2, j] - c - 3.0 * d * out.length[row - 1]))
        out.length[row] = h
    for k in range(pieces):
        row = n + k
        for j in range(AXES):
            worst[j] = max(steps[k, j], steps[k + 1, j])
        h = out.length[row]
        fastest, able, jerk = allowed_on(out.shape[row], h, feed, limits, worst, scratch)
        for j in range(AXES):
            out.end[row, j] = q[k + 1, j]
        out.fastest[row] = fastest
        out.acceleration[row] = min(able, acceleration)
        out.jerk[row] = jerk
        # Slopes are the same on both sides of a knot: only the seam of two tool paths is a corner.
        out.junction[row] = 0.0 if k == 0 else np.inf
    return pieces


@compiled
def entry_speed(out: PieceColumns, n: int, slow: Floats, deviation: float) -> float:
    """Square of the speed at the seam before piece n; see `lines.seam`."""
    before, after, s = out.shape[n - 1], out.shape[n], out.length[n - 1]
    leaving = np.empty(AXES)
    for j in range(AXES):
        leaving[j] = before[1, j] + s * (2.0 * before[2, j] + 3.0 * s * before[3, j])
    return passing_speed(leaving, after[1], slow, deviation)


class Knot(NamedTuple):
    """A knot at the end of a line: ``pose`` (1×4×4) of the tool, and the factored Jacobian; with
    the frames of the joints, from which they were computed."""

    pose: Floats
    frames: Floats
    J: Floats
    swaps: Ints


@inlined
def knot_at(q: Floats, arm: TracedArm, knot: Knot) -> bool:
    """Fills a knot at joint values (1×6), as `flange_frames` and `slopes_at` compute them; False
    near a singular pose."""
    joint_frames(q, arm.rest, arm.slides, knot.frames)
    T, pose = knot.frames[0, AXES], knot.pose[0]
    for i in range(3):
        for m in range(4):
            pose[i, m] = T[i, 0] * arm.tip[0, m] + T[i, 1] * arm.tip[1, m] + T[i, 2] * arm.tip[2, m]
        pose[i, 3] += T[i, 3]
        pose[3, i] = 0.0
    pose[3, 3] = 1.0
    jacobians(knot.frames, arm.slides, knot.pose[:, :3, 3], knot.J)
    return factored(knot.J[0], knot.swaps)


class Room(NamedTuple):
    """Buffers of `trace_piece`."""

    wanted: Floats
    there: Floats
    turned: Floats
    halfway: Floats
    slopes: Floats
    still: Floats
    bounds: Floats
    branches: Floats
    scratch: Floats


@inlined
def trace_piece(  # kernel
    knot: Knot,
    target: Floats,
    feed: float,
    before: Floats,
    after: Floats,
    following: Knot,
    arm: TracedArm,
    out: PieceColumns,
    n: int,
    room: Room,
) -> bool:
    """Writes a straight line that is one piece into row n, as `trace_path` does; False if it is
    not one, or is not handled.

    Computes nothing twice: ``knot`` at the joints ``before`` (1×6) is known from the line before;
    fills ``after`` and the knot there.
    """
    start = knot.pose[0]
    length = path_length(start, target, NO_ARC)
    if not length > IN_PLACE:
        return False
    turn = turn_between(start, target)
    if first_pieces(length, turn[3], 0.0) != 1:
        return False
    wanted, slopes = room.wanted[0], room.slopes
    pose_between(start, target, turn, 1.0, room.turned, wanted)
    branches_at(wanted, arm.left, arm.right, arm.geometry, before[0], room.branches, room.scratch)
    if not nearest_branch(room.branches, before[0], arm.lower, arm.upper, JUMP, after[0]):
        return False
    if not knot_at(after, arm, following):
        return False
    slopes[:] = rates_on(start, target, turn, NO_ARC, room.wanted, length)[0]
    substituted(knot.J[0], knot.swaps, slopes[0])
    substituted(following.J[0], following.swaps, slopes[1])
    for j in range(AXES):
        bent = length / 8.0 * (slopes[1, j] - slopes[0, j])
        room.halfway[0, j] = 0.5 * (after[0, j] + before[0, j]) - bent
    flange_frames(room.halfway, arm.rest, arm.slides, arm.tip, room.there)
    pose_between(start, target, turn, 0.5, room.turned, wanted)
    if apart(room.there[0], wanted) > PATH_TOLERANCE:
        return False
    shape = out.shape[n]
    cubic(before[0], after[0], slopes[0], slopes[1], length, shape)
    if not within_limits(shape, length, arm.lower, arm.upper):
        return False
    limits = (arm.velocity, arm.acceleration, arm.jerk)
    fastest, able, jerk = allowed_on(shape, length, feed, limits, room.still, room.bounds)
    for j in range(AXES):
        out.end[n, j] = after[0, j]
    out.length[n], out.fastest[n], out.acceleration[n], out.jerk[n] = length, fastest, able, jerk
    out.junction[n] = 0.0
    return True


@compiled
def trace_lines(  # kernel
    targets: Floats,
    feeds: Floats,
    start: Floats,
    arc: ArcShape,
    arm: TracedArm,
    deviation: float,
    out: PieceColumns,
) -> tuple[int, int]:
    """Traces straight lines (``arc``: none) through targets (m×4×4); number of lines and pieces.

    Ends early at a line that is not handled, or when the buffers are full.
    """
    knots = (
        np.empty((2, 1, 4, 4)),
        np.empty((2, 1, AXES + 1, 4, 4)),
        np.empty((2, 1, AXES, AXES)),
        np.empty((2, AXES), dtype=np.int64),
    )
    room = Room(
        np.empty((1, 4, 4)),
        np.empty((1, 4, 4)),
        np.empty((3, 3)),
        np.empty((1, AXES)),
        np.empty((2, AXES)),
        np.zeros(AXES),
        np.empty((2, AXES)),
        np.empty((BRANCHES, AXES)),
        np.zeros(SCRATCH),
    )
    q = np.empty((2, 1, AXES))
    q[0, 0] = start
    return trace_with(targets, feeds, arc, arm, deviation, out, q, knots, room)


@compiled
def trace_with(
    targets: Floats,
    feeds: Floats,
    arc: ArcShape,
    arm: TracedArm,
    deviation: float,
    out: PieceColumns,
    q: Floats,
    knots: tuple[Floats, Floats, Floats, Ints],
    room: Room,
) -> tuple[int, int]:
    """`trace_lines` with these buffers, which the caller keeps alive: two places for ``knots`` and
    their joints ``q`` by turns."""
    arm = TracedArm(
        borrowed(arm.rest),
        borrowed(arm.slides),
        borrowed(arm.tip),
        borrowed(arm.left),
        borrowed(arm.right),
        borrowed(arm.geometry),
        borrowed(arm.lower),
        borrowed(arm.upper),
        borrowed(arm.velocity),
        borrowed(arm.acceleration),
        borrowed(arm.jerk),
    )
    out = PieceColumns(
        borrowed(out.shape),
        borrowed(out.end),
        borrowed(out.length),
        borrowed(out.acceleration),
        borrowed(out.jerk),
        borrowed(out.fastest),
        borrowed(out.junction),
        borrowed(out.source),
    )
    room = Room(
        borrowed(room.wanted),
        borrowed(room.there),
        borrowed(room.turned),
        borrowed(room.halfway),
        borrowed(room.slopes),
        borrowed(room.still),
        borrowed(room.bounds),
        borrowed(room.branches),
        borrowed(room.scratch),
    )
    q, pose, frames = borrowed(q), borrowed(knots[0]), borrowed(knots[1])
    J, swaps = borrowed(knots[2]), borrowed(knots[3])
    slow = 1.0 / arm.acceleration
    n, here, ordinary, fresh = 0, 0, False, False
    for k in range(len(targets)):
        if n + MOST_PIECES > len(out.length):
            return k, n
        # From where the joints are, not from the target before: deviations do not add up.
        knot = Knot(pose[here], frames[here], J[here], swaps[here])
        if not fresh:
            ordinary = knot_at(q[here], arm, knot)
        there = 1 - here
        following = Knot(pose[there], frames[there], J[there], swaps[there])
        fresh = ordinary and trace_piece(
            knot, targets[k], feeds[k], q[here], q[there], following, arm, out, n, room
        )
        pieces = 1
        if not fresh:
            before = q[here, 0]
            pieces = trace_path(
                pose[here, 0], targets[k], arc, feeds[k], np.inf, before, arm, out, n
            )
            if pieces == 0:
                return k, n
            q[there, 0] = out.end[n + pieces - 1]
        if n > 0:
            out.junction[n] = entry_speed(out, n, slow, deviation)
        out.source[n : n + pieces] = k
        n += pieces
        here = there
    return len(targets), n


MOST_KNOTS = 4096
"""Most points of one line or arc of the tool."""
MANY_WIDE = 0.5
"""Share of the pieces that need more points, above which the path is too long and not singular."""
PIECES_PER_LINE = 6
"""Pieces reserved per line; lines of 15 to 80 mm have four."""
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
    """`joint_path` for any arm and any tool path, without the kernel `trace_lines`."""
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
    swept = tool_path.swept if isinstance(tool_path, ToolArc) else 0.0
    first = first_pieces(float(tool_path.length), float(tool_path.angle), float(swept))
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
    twist, steps = np.abs(6.0 * shape[:, 3]), greatest_steps(shape, h)
    fastest = np.minimum(fastest, np.cbrt(_least(JERK_SHARE * limits.jerk, twist)))
    fastest = np.minimum(fastest, np.sqrt(_least(JERK_SHARE * JERK_TICK * limits.jerk, steps)))
    fastest = np.minimum(fastest, HIGHEST_OVERRIDE * feed)
    v = fastest[:, None]
    able = np.minimum(
        _least(limits.acceleration - bend * v**2, slope),
        _least(JERK_SHARE * limits.jerk, 3.0 * bend * v),
    )
    with np.errstate(
        invalid="ignore"
    ):  # without limits of acceleration and jerk: 0 · inf, inf - inf
        turns = np.where(bend > 0.0, bend * able[:, None], 0.0)
        bends = v * (twist * v**2 + 3.0 * turns) + steps * v**2 / JERK_TICK
        left = np.where(np.isinf(limits.jerk), np.inf, limits.jerk - bends)
    count = len(h)
    return path_of(
        shape=shape,
        end=knots.q[1:].copy(),
        length=h[:, 0].copy(),
        acceleration=np.minimum(able, acceleration),
        jerk=_least(left, slope),
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


def greatest_steps(shape: Floats, h: Floats) -> Floats:
    """Largest step of d²q/ds² at the two ends of each piece."""
    _, _, c, d = np.moveaxis(shape, 1, 0)
    inside = np.abs(2.0 * c[1:] - (2.0 * c + 6.0 * d * h)[:-1])
    steps = np.pad(inside, ((1, 1), (0, 0)))
    return np.asarray(np.maximum(steps[:-1], steps[1:]))


def _least(allowed: Floats, used: Floats) -> Floats:
    """Per piece the smallest of allowed / used over all joints."""
    with np.errstate(all="ignore"):
        return np.asarray((allowed / used).min(axis=1))
