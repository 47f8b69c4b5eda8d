"""Inverse kinematics by damped least squares, for arms without a closed form."""

import math

import numpy as np

from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain
from understudy.space.kinematics.forward import flange_frames, jacobians, joint_frames
from understudy.space.transform import Array

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

    Levenberg-Marquardt steps with Sugihara's damping: half the squared error.
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
        np.ascontiguousarray(targets), Q, chain.rest, chain.slides, chain.tip,
        -free, free, iterations, error,
    )  # fmt: skip
    Q[~(error < ACCEPTED)] = math.nan
    return Q


def searched(chain: Chain, target: Array, near: Array, *, limits: bool = True) -> Array:
    """The distinct solutions (k×dof) found from ``near`` and from evenly spread starts."""
    Q = np.vstack([np.clip(near, chain.lower, chain.upper), _spread(chain, STARTS - 1)])
    targets = np.repeat(target[None], len(Q), axis=0)
    error = np.empty(len(Q))
    search(
        targets, Q, chain.rest, chain.slides, chain.tip,
        chain.lower if limits else np.full(chain.dof, -math.inf),
        chain.upper if limits else np.full(chain.dof, math.inf),
        ITERATIONS, error,
    )  # fmt: skip
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
