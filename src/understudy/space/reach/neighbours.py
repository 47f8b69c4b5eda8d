"""Reach of arms without a closed form: each point is solved from the solution of a neighbour.

For one direction of the tool, random configurations that are near to it start the search. Each
solved point of the grid then gives its six neighbours their start: a step of the grid is short, so
that a few Newton steps suffice, and points far outside the reach are never tried.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.ik import TURN, cholesky_solve, difference, spread
from understudy.space.transform import Array

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
SAMPLES = 60_000
"""Random configurations."""
ALIKE = 2.2
"""Trace of the turn from a sample to the direction above which it starts a search: 53°."""
STEPS = 9
"""Newton steps of one attempt."""
SLOW = 0.6
"""An attempt ends when a step after the third leaves more of the error than this share."""
LONGEST = 0.7
"""Largest change of a joint in one step, rad or m."""
SOLVED = 1e-6
"""Remaining error (norm over m and rad) of a solved point."""
FARTHEST_STEPS = 8
"""Steps beyond the cube from which a sample still starts a search."""
TRIES = 4
"""Attempts for a point from its neighbours."""


@compiled
def placed(  # kernel
    Q: Array, rest: Array, slides: Array, tip: Array, axes: Array, T: Array
) -> None:
    """T (4×4) = the flange at Q; axes[j] = direction of joint j's axis, and a point on it."""
    a, b, c, x = 1.0, 0.0, 0.0, 0.0
    d, e, f, y = 0.0, 1.0, 0.0, 0.0
    g, h, i, z = 0.0, 0.0, 1.0, 0.0
    joints = len(Q)
    for j in range(joints + 1):
        if j < joints:
            r0, r1, r2, r3, r4 = rest[j, 0], rest[j, 1], rest[j, 2], rest[j, 3], rest[j, 4]
            r5, r6, r7, r8 = rest[j, 5], rest[j, 6], rest[j, 7], rest[j, 8]
            u, v, w = rest[j, 9], rest[j, 10], rest[j, 11]
        else:
            r0, r1, r2, r3, r4 = tip[0, 0], tip[0, 1], tip[0, 2], tip[1, 0], tip[1, 1]
            r5, r6, r7, r8 = tip[1, 2], tip[2, 0], tip[2, 1], tip[2, 2]
            u, v, w = tip[0, 3], tip[1, 3], tip[2, 3]
        x += a * u + b * v + c * w
        y += d * u + e * v + f * w
        z += g * u + h * v + i * w
        a, b, c = a * r0 + b * r3 + c * r6, a * r1 + b * r4 + c * r7, a * r2 + b * r5 + c * r8
        d, e, f = d * r0 + e * r3 + f * r6, d * r1 + e * r4 + f * r7, d * r2 + e * r5 + f * r8
        g, h, i = g * r0 + h * r3 + i * r6, g * r1 + h * r4 + i * r7, g * r2 + h * r5 + i * r8
        if j == joints:
            break
        axes[j, 0], axes[j, 1], axes[j, 2] = c, f, i
        if slides[j]:
            x, y, z = x + c * Q[j], y + f * Q[j], z + i * Q[j]
        else:
            sin, cos = math.sin(Q[j]), math.cos(Q[j])
            a, b = a * cos + b * sin, b * cos - a * sin
            d, e = d * cos + e * sin, e * cos - d * sin
            g, h = g * cos + h * sin, h * cos - g * sin
        axes[j, 3], axes[j, 4], axes[j, 5] = x, y, z
    T[0, 0], T[0, 1], T[0, 2], T[0, 3] = a, b, c, x
    T[1, 0], T[1, 1], T[1, 2], T[1, 3] = d, e, f, y
    T[2, 0], T[2, 1], T[2, 2], T[2, 3] = g, h, i, z


@compiled
def attempt(  # kernel
    target: Array,
    Q: Array,
    rest: Array,
    slides: Array,
    tip: Array,
    lower: Array,
    upper: Array,
    work: tuple[Array, Array, Array, Array, Array],
) -> bool:
    """Moves Q onto the target (4×4) inside the limits; whether it gets there."""
    axes, T, J, A, e = work
    n, before = len(Q), np.inf
    for step in range(STEPS + 1):
        placed(Q, rest, slides, tip, axes, T)
        difference(T, target, e)
        left = 0.0
        for i in range(6):
            left += e[i] * e[i]
        if left < SOLVED * SOLVED:
            return True
        if step == STEPS or (step > 3 and left > SLOW * SLOW * before):
            return False
        before = left
        for j in range(n):
            x, y, z = axes[j, 0], axes[j, 1], axes[j, 2]
            u, v, w = T[0, 3] - axes[j, 3], T[1, 3] - axes[j, 4], T[2, 3] - axes[j, 5]
            if slides[j]:
                J[0, j], J[1, j], J[2, j] = x, y, z
                J[3, j] = J[4, j] = J[5, j] = 0.0
            else:
                J[0, j], J[1, j], J[2, j] = y * w - z * v, z * u - x * w, x * v - y * u
                J[3, j], J[4, j], J[5, j] = x, y, z
        for r in range(6):
            for c in range(r + 1):
                total = 0.5 * left + 1e-12 if r == c else 0.0
                for j in range(n):
                    total += J[r, j] * J[c, j]
                A[r, c] = total
        cholesky_solve(A, e)
        for j in range(n):
            move = 0.0
            for r in range(6):
                move += J[r, j] * e[r]
            value = Q[j] + min(max(move, -LONGEST), LONGEST)
            if not slides[j]:  # a whole turn leads back between the limits, if they are so wide
                if value > upper[j] and value - TURN >= lower[j]:
                    value -= TURN
                elif value < lower[j] and value + TURN <= upper[j]:
                    value += TURN
            Q[j] = min(max(value, lower[j]), upper[j])
    return False


@compiled
def fill(  # kernel
    side: int,
    first: Array,
    way: Array,
    turn: Array,
    starts: Array,
    cells: Ints,
    rest: Array,
    slides: Array,
    tip: Array,
    lower: Array,
    upper: Array,
    q: Floats,
    solved: NDArray[np.bool_],
) -> None:
    """Solves one direction: solved[k] for every point k that is reached, and q[k], how.

    The grid has ``side`` points along x, y and z. The flange is at ``first`` for the first point,
    moves by the columns of ``way`` from point to point, and has the rotation ``turn``. The
    configurations ``starts`` (m×n) are tried at the points ``cells``.
    """
    n = q.shape[1]
    tries = np.zeros(len(solved), dtype=np.uint8)
    queue = np.empty(len(solved), dtype=np.int32)
    read = written = 0
    target, Q = np.eye(4), np.empty(n)
    work = (np.empty((n, 6)), np.eye(4), np.empty((6, n)), np.empty((6, 6)), np.empty(6))
    target[:3, :3] = turn
    for s in range(len(starts)):
        k = cells[s]
        if solved[k]:
            continue
        x, y, z = k // (side * side), (k // side) % side, k % side
        for row in range(3):
            target[row, 3] = first[row] + x * way[row, 0] + y * way[row, 1] + z * way[row, 2]
        Q[:] = starts[s]
        if not attempt(target, Q, rest, slides, tip, lower, upper, work):
            continue
        solved[k], q[k], queue[written] = True, Q, k
        written += 1
        while read < written:
            k = queue[read]
            read += 1
            x, y, z = k // (side * side), (k // side) % side, k % side
            for face in range(6):
                u = x + (face == 0) - (face == 1)
                v = y + (face == 2) - (face == 3)
                w = z + (face == 4) - (face == 5)
                if min(u, v, w) < 0 or max(u, v, w) >= side:
                    continue
                other = (u * side + v) * side + w
                if solved[other] or tries[other] >= TRIES:
                    continue
                tries[other] += 1
                for row in range(3):
                    target[row, 3] = (
                        first[row] + u * way[row, 0] + v * way[row, 1] + w * way[row, 2]
                    )
                Q[:] = q[k]
                if attempt(target, Q, rest, slides, tip, lower, upper, work):
                    solved[other], q[other], queue[written] = True, Q, other
                    written += 1


def solved_by_direction(
    chain: Chain, frames: Frames, points: Array, turns: Array, step: float
) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
    """For each direction (4×4) of the tool: which points of a cube of points it reaches, and a
    configuration for each of these. ``step``: longest step (m) from a point to its neighbour; of
    a coarser cube points between are solved too. The arrays are used again for the next direction.
    """
    count = round(len(points) ** (1 / 3))
    resolution = float(points[1, 2] - points[0, 2]) if count > 1 else step
    finer = math.ceil(resolution / step - 1e-9)
    side, width = (count - 1) * finer + 1, resolution / finer
    samples = spread(chain, SAMPLES)
    tools = frames.tcp(chain.flanges(samples))
    cells = np.round((tools[:, :3, 3] - points[0]) / width).astype(np.int64)
    outside = np.maximum(np.maximum(-cells, cells - (side - 1)), 0).max(axis=1) * width
    close = outside <= FARTHEST_STEPS * step
    samples, tools = samples[close], tools[close]
    cells = np.clip(cells[close], 0, side - 1)
    numbers = (cells[:, 0] * side + cells[:, 1]) * side + cells[:, 2]
    solved = np.empty(side**3, dtype=np.bool_)
    q = np.empty((side**3, chain.dof), dtype=np.float32)
    every = slice(None, None, finer)
    for turn in turns:
        like = np.einsum("ij,kij->k", turn[:3, :3], tools[:, :3, :3])
        near = np.flatnonzero(like > ALIKE)
        target = turn.copy()
        target[:3, 3] = points[0]
        first = frames.flange(target)
        solved[:] = False
        fill(
            side,
            first[:3, 3].copy(),
            frames.base[:3, :3] * width,
            first[:3, :3].copy(),
            samples[near],
            numbers[near],
            chain.rest,
            chain.slides,
            chain.tip,
            chain.lower,
            chain.upper,
            q,
            solved,
        )
        yield (
            solved.reshape(side, side, side)[every, every, every].ravel(),
            q.reshape(side, side, side, -1)[every, every, every].reshape(-1, chain.dof),
        )
