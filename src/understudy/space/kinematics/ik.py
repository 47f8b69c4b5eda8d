"""Inverse kinematics: all configurations for a pose of the tool, or the reason why there are none.

Anthropomorphic arms with a spherical wrist are solved by the kernels of `closed_form`, other
six-axis arms with a closed form by ``eaik`` if it is installed, all others by search.
"""

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import Refused
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import (
    FOOT_AND_FLANGE,
    Chain,
    Frames,
    flange_frames,
    jacobians,
    joint_frames,
)
from understudy.space.kinematics.closed_form import (
    BRANCHES,
    TURN,
    Anthropomorphic,
    all_branches,
    closed_form,
    limited_branches,
)
from understudy.space.transform import Array
from understudy.units import MM, digits_apart

ON_LIMIT = 1e-9
"""A joint outside its limit by no more than this (rad or m) is set to the limit."""


# ── solving ─────────────────────────────────────────────────────────────────────────────────────


def solve(
    chain: Chain,
    target: Array,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    near: ArrayLike | None = None,
) -> Array | Refused:
    """All configurations (k×dof) inside the limits that bring the tool to the target (4×4).

    Configurations that differ by whole turns are listed separately. ``near`` (zeros if not given)
    sets the joints that a singular pose leaves free, and the start of a search.
    """
    near = np.zeros(chain.dof) if near is None else np.asarray(near, dtype=np.float64)
    raw = unlimited(chain, target, frames=frames, near=near)
    if len(raw) == 0:
        return Refused(_out_of_reach(chain, target, frames))
    found = [turned for q in raw for turned in _turns(chain, q)]
    if not found:
        return Refused(_outside_limits(chain, raw))
    return np.array(found)


def nearest(solutions: Array, q: ArrayLike) -> Array:
    """The solution with the least motion from q; of two equal ones the one with larger angles."""
    moves = solutions - np.asarray(q)
    effort = np.round(np.einsum("ij,ij->i", moves, moves), 9)
    best = np.flatnonzero(effort == effort.min())
    return np.asarray(solutions[max(best, key=lambda i: tuple(np.round(solutions[i], 6)))])


def unlimited(chain: Chain, target: Array, *, frames: Frames, near: Array) -> Array:
    """All configurations without regard to limits, revolute joints within ±180°."""
    arm = closed_form(chain)
    if arm is not None:
        found = _branches(chain, arm, target[None], frames, near)[0]
        return distinct(found[np.isfinite(found).all(axis=1)])
    flange = frames.flange(target)
    robot = _eaik(chain)
    if robot is not None:
        return _by_eaik(chain, robot, flange)
    found = searched(chain, flange, near)
    return found if len(found) else _in_one_turn(chain, searched(chain, flange, near, limits=False))


def solve_all(
    chain: Chain,
    targets: Array,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    near: ArrayLike | None = None,
) -> Array:
    """(m, 4, 4) targets → (m, k, dof): the branches inside the limits, NaN for all others.

    If a joint's range allows several turns, the one nearest to ``near`` is returned.
    """
    near = np.zeros(chain.dof) if near is None else np.asarray(near, dtype=np.float64)
    targets = np.ascontiguousarray(targets, dtype=np.float64)
    arm = closed_form(chain)
    if arm is not None and arm.exact:
        left, right = arm.ends(frames)
        out = np.empty((len(targets), BRANCHES, 6))
        limited_branches(targets, left, right, arm.geometry, near, chain.lower, chain.upper, out)
        return out
    rows = [solve(chain, target, frames=frames, near=near) for target in targets]
    most = max((len(row) for row in rows if not isinstance(row, Refused)), default=1)
    out = np.full((len(targets), most, chain.dof), math.nan)
    for k, row in enumerate(rows):
        if not isinstance(row, Refused):
            out[k, : len(row)] = row
    return out


def _branches(
    chain: Chain, arm: Anthropomorphic, targets: Array, frames: Frames, near: Array
) -> Array:
    left, right = arm.ends(frames)
    out = np.empty((len(targets), BRANCHES, 6))
    all_branches(np.ascontiguousarray(targets), left, right, arm.geometry, near, out)
    if arm.exact:
        return out
    goals = np.repeat(frames.flange(targets), BRANCHES, axis=0)
    return refined(chain, goals, out.reshape(-1, 6)).reshape(out.shape)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────


def _turns(chain: Chain, q: Array) -> list[Array]:
    """The configuration in all combinations of whole turns within the limits, smallest first."""
    choices = [_values(chain, j, float(q[j])) for j in range(chain.dof)]
    return [np.array(values) for values in itertools.product(*choices)]


def _values(chain: Chain, j: int, value: float) -> list[float]:
    low, high = float(chain.lower[j]), float(chain.upper[j])
    if chain.slides[j] or not (math.isfinite(low) and math.isfinite(high)):
        return [value] if low - ON_LIMIT <= value <= high + ON_LIMIT else []
    first = math.ceil((low - ON_LIMIT - value) / TURN)
    last = math.floor((high + ON_LIMIT - value) / TURN)
    values = (min(max(value + k * TURN, low), high) for k in range(first, last + 1))
    return sorted(values, key=abs)


def excess(chain: Chain, q: Array) -> Array:
    """Distance of each joint outside its limits; 0 inside."""
    return np.maximum(0.0, np.maximum(chain.lower - q, q - chain.upper))


def outside(chain: Chain, j: int, value: float) -> str:
    """``A3 = 161.2° is outside -120.0°…158.0°``"""
    unit, sign = float(chain.units[j]), " mm" if chain.slides[j] else "°"
    low, high = chain.lower[j] / unit, chain.upper[j] / unit
    shown = digits_apart(value / unit, high if value / unit > high else low, digits=1)
    return f"{chain.names[j]} = {shown}{sign} is outside {low:.1f}{sign}…{high:.1f}{sign}"


# ── reasons ─────────────────────────────────────────────────────────────────────────────────────


def _outside_limits(chain: Chain, raw: Array) -> str:
    """Reason: the joints outside their limits, for the configuration closest to the limits."""
    over = np.array([excess(chain, q) for q in raw])
    best = int(np.argmin(over.max(axis=1)))
    named = (
        outside(chain, j, float(raw[best, j])) for j in range(chain.dof) if over[best, j] > ON_LIMIT
    )
    return "outside joint limits: " + ", ".join(named)


def _out_of_reach(chain: Chain, target: Array, frames: Frames) -> str:
    arm = closed_form(chain)
    if arm is None:
        return "out of reach: no configuration was found"
    left, right = arm.ends(frames)
    x, y, z = (left @ target @ right)[:3, 3]
    side = abs(arm.geometry[1])
    if math.hypot(x, y) < side:
        return f"out of reach: closer than {side / MM:.1f} mm to the axis of {chain.names[0]}"
    ahead = math.sqrt(x * x + y * y - side * side)
    low, high = arm.reach
    both = (math.hypot(side_of * ahead - arm.geometry[0], z) for side_of in (1, -1))
    distance = min(both, key=lambda d: max(low - d, d - high))
    return (
        f"out of reach: the wrist would be {distance / MM:.1f} mm from the axis of "
        f"{chain.names[1]}, the arm spans {low / MM:.1f}…{high / MM:.1f} mm"
    )


# ── arms with another closed form ───────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)
def _eaik(chain: Chain) -> Any | None:
    """eaik's model of the arm; None if it has no closed form, or eaik is not installed."""
    if chain.dof != 6 or chain.slides.any():
        return None
    try:
        from eaik.IK_HP import HPRobot
    except ImportError:
        return None
    axes = chain.axes_of(np.zeros((1, 6)))[0, 1:]
    points = np.vstack([np.zeros(3), axes[:, :3, 3], chain.flange(np.zeros(6))[:3, 3]])
    robot = HPRobot(axes[:, :3, 2], np.diff(points, axis=0))
    return robot if robot.hasKnownDecomposition() else None


def _by_eaik(chain: Chain, robot: Any, flange: Array) -> Array:
    posed = flange.copy()
    posed[:3, :3] = flange[:3, :3] @ chain.flange(np.zeros(6))[:3, :3].T
    found = np.array(robot.IK(posed).Q).reshape(-1, 6)
    found = found[np.isfinite(found).all(axis=1)]
    close = refined(chain, np.repeat(flange[None], len(found), axis=0), found)
    close = close[~np.isnan(close[:, 0])]
    return distinct(_in_one_turn(chain, close))


def _in_one_turn(chain: Chain, Q: Array) -> Array:
    """Reduces revolute joints to -180°…180°."""
    return np.where(chain.slides > 0.0, Q, Q - TURN * np.ceil(Q / TURN - 0.5))


# ── search: damped least squares, for arms without a closed form ──────────────────────────────────


CONVERGED = 1e-9
"""Remaining error (norm over m and rad) at which a search ends."""
ACCEPTED = 1e-7
"""Largest remaining error of an accepted result."""
STARTS = 48
ITERATIONS = 120
LONGEST_STEP = 0.5
SAME = 1e-4
"""Configurations closer than this (rad or m per joint) count as the same."""


@compiled
def search(  # kernel
    targets: Array,
    Q: Array,
    rest: Array,
    slides: Array,
    tip: Array,
    lower: Array,
    upper: Array,
    iterations: int,
    error: Array,
) -> None:
    """Moves every start Q[k] towards targets[k] inside the limits; error[k] is the remaining error.

    Levenberg-Marquardt steps with Sugihara's damping: half the squared error. Far from the target
    the damping keeps the steps short where the arm is singular; near it the damping vanishes, and
    the search converges as fast as Newton's.
    """
    n = Q.shape[1]
    frames = np.empty((1, n + 1, 4, 4))
    T = np.empty((1, 4, 4))
    point = np.empty((1, 3))
    J = np.empty((1, 6, n))
    A = np.empty((6, 6))
    e = np.empty(6)
    for k in range(Q.shape[0]):
        goal = targets[k]
        for step in range(iterations + 1):
            flange_frames(Q[k : k + 1], rest, slides, tip, T)
            _difference(T[0], goal, e)
            rest2 = 0.0
            for i in range(6):
                rest2 += e[i] * e[i]
            error[k] = math.sqrt(rest2)
            if error[k] < CONVERGED or step == iterations:
                break
            joint_frames(Q[k : k + 1], rest, slides, frames)
            point[0] = T[0, :3, 3]
            jacobians(frames, slides, point, J)
            for r in range(6):
                for c in range(6):
                    total = 0.5 * rest2 + 1e-12 if r == c else 0.0
                    for j in range(n):
                        total += J[0, r, j] * J[0, c, j]
                    A[r, c] = total
            _cholesky_solve(A, e)
            largest = 0.0
            for j in range(n):
                move = 0.0
                for r in range(6):
                    move += J[0, r, j] * e[r]
                largest = max(largest, abs(move))
            shrink = min(1.0, LONGEST_STEP / largest) if largest > 0.0 else 1.0
            for j in range(n):
                move = 0.0
                for r in range(6):
                    move += J[0, r, j] * e[r]
                Q[k, j] = min(max(Q[k, j] + shrink * move, lower[j]), upper[j])


@compiled
def _difference(T: Array, goal: Array, e: Array) -> None:
    """Difference of T and goal: translation, then rotation as axis times angle."""
    x = y = z = 0.0
    trace = 0.0
    for c in range(3):
        e[c] = goal[c, 3] - T[c, 3]
        x += T[1, c] * goal[2, c] - T[2, c] * goal[1, c]
        y += T[2, c] * goal[0, c] - T[0, c] * goal[2, c]
        z += T[0, c] * goal[1, c] - T[1, c] * goal[0, c]
        trace += T[0, c] * goal[0, c] + T[1, c] * goal[1, c] + T[2, c] * goal[2, c]
    sin2 = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(sin2, trace - 1.0)
    scale = angle / sin2 if sin2 > 1e-9 else 0.5
    e[3], e[4], e[5] = x * scale, y * scale, z * scale


@compiled
def _cholesky_solve(A: Array, b: Array) -> None:
    """b ← A⁻¹·b for a symmetric positive definite A, which is overwritten."""
    n = b.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i == j:
                A[i, i] = math.sqrt(max(total, 1e-300))
            else:
                A[i, j] = total / A[j, j]
    for i in range(n):
        for k in range(i):
            b[i] -= A[i, k] * b[k]
        b[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= A[k, i] * b[k]
        b[i] /= A[i, i]


def refined(chain: Chain, targets: Array, starts: Array, *, iterations: int = 8) -> Array:
    """Moves the starts onto their targets (m×4×4), ignoring limits; NaN where that fails."""
    Q = np.array(starts, dtype=np.float64)
    error = np.empty(len(Q))
    free = np.full(chain.dof, math.inf)
    search(
        np.ascontiguousarray(targets),
        Q,
        chain.rest,
        chain.slides,
        chain.tip,
        -free,
        free,
        iterations,
        error,
    )
    Q[~(error < ACCEPTED)] = math.nan
    return Q


def searched(chain: Chain, target: Array, near: Array, *, limits: bool = True) -> Array:
    """The distinct solutions (k×dof) found from ``near`` and from evenly spread starts."""
    Q = np.vstack([np.clip(near, chain.lower, chain.upper), _spread(chain, STARTS - 1)])
    targets = np.repeat(target[None], len(Q), axis=0)
    error = np.empty(len(Q))
    search(
        targets,
        Q,
        chain.rest,
        chain.slides,
        chain.tip,
        chain.lower if limits else np.full(chain.dof, -math.inf),
        chain.upper if limits else np.full(chain.dof, math.inf),
        ITERATIONS,
        error,
    )
    return distinct(Q[error < ACCEPTED])


def distinct(Q: Array) -> Array:
    """Removes duplicates; the order is kept."""
    kept: list[Array] = []
    for q in Q:
        if all(np.abs(q - other).max() > SAME for other in kept):
            kept.append(q)
    return np.array(kept).reshape(-1, Q.shape[1])


def _spread(chain: Chain, count: int) -> Array:
    """Halton points between the limits; one turn for a joint without limits."""
    low, high = chain.sampling_range
    primes = [p for p in range(2, 100) if all(p % d for d in range(2, p))]
    share = np.array([[_halton(i + 1, p) for p in primes[: chain.dof]] for i in range(count)])
    return np.asarray(low + share * (high - low))


def _halton(index: int, base: int) -> float:
    share, weight = 0.0, 1.0
    while index:
        weight /= base
        index, digit = divmod(index, base)
        share += weight * digit
    return share
