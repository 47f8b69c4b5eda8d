"""Kernels of `cartesian`: joint paths along whole tool paths.

They handle the common case: an arm with a closed form, a tool path within reach, no singular pose
nearby. In all other cases they return no pieces, and `cartesian` computes the path or the reason.
All poses are in the frame of the robot's foot.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy.motion.lines import passing_speed
from understudy.motion.path import Floats, Ints
from understudy.motion.tool_path import (
    IN_PLACE,
    ArcShape,
    Vector,
    path_length,
    poses_on,
    rates_on,
    turn_between,
)
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import flange_frames, jacobians, joint_frames
from understudy.space.kinematics.follow import JUMP, follow_branches

KNOT_DISTANCE = 0.02
"""Initial distance of knots (m); where a cubic leaves the tool path, they are set closer."""
KNOT_ANGLE = 0.1
"""Initial angle between knots (rad)."""
FEWEST = 4
"""Smallest initial number of pieces."""
PATH_TOLERANCE = 1e-6
"""Largest distance (m or rad) of the middle of a piece from the tool path."""
BEYOND_LIMIT = 1e-6
"""Largest distance (rad or m) beyond its limit that rounding may take a joint between knots."""
HIGHEST_OVERRIDE = 2.0
"""Largest feed override."""
CURVATURE_SHARE = 0.5
"""Share of the joints' acceleration that the curvature of the path may use."""
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
def solved(J: Floats, out: Floats) -> bool:  # kernel
    """Solves J·x = out into ``out`` by Gauss; False near a singular pose. J is overwritten."""
    size = len(out)
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
        if best != c:
            for j in range(c, size):
                J[c, j], J[best, j] = J[best, j], J[c, j]
            out[c], out[best] = out[best], out[c]
        for i in range(c + 1, size):
            share = J[i, c] / pivot
            for j in range(c + 1, size):
                J[i, j] -= share * J[c, j]
            out[i] -= share * out[c]
    for c in range(size - 1, -1, -1):
        for j in range(c + 1, size):
            out[c] -= J[c, j] * out[j]
        out[c] /= J[c, c]
    return True


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
    first = max(FEWEST, math.ceil(length / KNOT_DISTANCE), math.ceil(turn[3] / KNOT_ANGLE))
    none = np.empty((0, AXES))
    shares = np.arange(first + 1).astype(np.float64) * (1.0 / first)
    shares[first] = 1.0
    while len(shares) <= MOST_PIECES:
        count = len(shares)
        poses = poses_on(start, end, turn, arc, shares)
        q = np.empty((count, AXES))
        reached = follow_branches(
            poses, before, arm.left, arm.right, arm.geometry, arm.lower, arm.upper, JUMP, q
        )
        slopes = rates_on(start, end, turn, arc, poses, length)
        if reached < count or not slopes_at(q, slopes, arm):
            return shares[:0], none, none
        # The path begins where the arm is; the solution at the first knot differs by rounding.
        for j in range(AXES):
            q[0, j] = before[j]
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
    shape: Floats, h: float, feed: float, limits: tuple[Floats, Floats, Floats], scratch: Floats
) -> Vector:
    """Largest speed, acceleration and jerk that the joints allow on a piece."""
    # A joint has the speed q'·v and the acceleration q'·a + q''·v². The derivatives are bounded
    # over the piece: q' is a parabola (ends, and where it turns), q'' a line (ends). First v, so
    # that the curvature uses its share of the acceleration at most; then a, from what v leaves.
    # A faster plan than the highest override of the feed is never asked for.
    slope, bend = scratch[0], scratch[1]
    velocity, acceleration, jerks = limits
    fastest, curved, jerk = np.inf, np.inf, np.inf
    for j in range(AXES):
        b, c, d = shape[1, j], shape[2, j], shape[3, j]
        turn = -c / (3.0 * d)
        turn = min(turn, h) if turn > 0.0 else 0.0
        at_end, at_turn = b + h * (2.0 * c + 3.0 * d * h), b + turn * (2.0 * c + 3.0 * d * turn)
        slope[j] = max(abs(b), abs(at_end), abs(at_turn))
        bend[j] = max(abs(2.0 * c), abs(2.0 * c + 6.0 * d * h))
        fastest = min(fastest, velocity[j] / slope[j])
        curved = min(curved, CURVATURE_SHARE * acceleration[j] / bend[j])
        jerk = min(jerk, jerks[j] / slope[j])
    fastest = min(fastest, math.sqrt(curved), HIGHEST_OVERRIDE * feed)
    able = np.inf
    for j in range(AXES):
        able = min(able, (acceleration[j] - bend[j] * fastest**2) / slope[j])
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
    for k in range(pieces):
        row = n + k
        h = s[k + 1] - s[k]
        cubic(q[k], q[k + 1], slopes[k], slopes[k + 1], h, out.shape[row])
        if not within_limits(out.shape[row], h, arm.lower, arm.upper):
            return 0
        fastest, able, jerk = allowed_on(out.shape[row], h, feed, limits, scratch)
        for j in range(AXES):
            out.end[row, j] = q[k + 1, j]
        out.length[row] = h
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
    leaving = before[1] + s * (2.0 * before[2] + 3.0 * s * before[3])
    return passing_speed(leaving, after[1], slow, deviation)


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
    here = np.empty((1, 4, 4))
    before = start.copy()
    slow = 1.0 / arm.acceleration
    n = 0
    for k in range(len(targets)):
        if n + MOST_PIECES > len(out.length):
            return k, n
        # From where the joints are, not from the target before: deviations do not add up.
        flange_frames(before.reshape(1, AXES), arm.rest, arm.slides, arm.tip, here)
        pieces = trace_path(here[0], targets[k], arc, feeds[k], np.inf, before, arm, out, n)
        if pieces == 0:
            return k, n
        if n > 0:
            out.junction[n] = entry_speed(out, n, slow, deviation)
        out.source[n : n + pieces] = k
        n += pieces
        before[:] = out.end[n - 1]
    return len(targets), n
