"""Sweeps an arm along a path; verdict per program line: proven clear, contact, or undecided.

The path is q(s), a polynomial on each piece, as `motion` plans it. The verdict is valid for every
speed along the path, stops and braking included. For a straight line of the tool the joint path
that follows it is swept.

The kernel proves that an arm keeps a clearance along a path. Every pair of shapes has a
certificate. The pair's distance at one place of the path, minus the clearance to be proven, is a
budget of motion. Until the motion may have used the budget, the pair keeps at least that clearance
at every place, however thin the shapes are. Then the certificate ends and is renewed with a new
distance. The path is processed from one end of a certificate to the next; distant pairs are
computed once, near ones often.

A pair of convex shapes has a plane between them, and only the motion across that plane uses the
budget (`directed_until`): a shape that passes another one may go far. Where there is no such plane
(meshes, hulls, shapes that nearly touch), motion in any direction counts (`certified_until`).

Why this is sound: a distance is never larger than the true one (`distance`), the bounds of the
motion never smaller, and the travel of a joint between two places is bounded by the sum of its
greatest slopes (``SweepPath.run``), so that nothing depends on how the path bends in between. A
plane is taken as it is and touches the other shape by construction, so that a normal which is not
quite that of the nearest points costs length and proves nothing wrong. Only the arm moves: for a
pair of the arm and an object the joints up to the shape count, for two shapes of the arm those
between their bodies. The skin of a shape does not count as a lever: only its core moves.
"""

import math
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from understudy.space.collision.detector import CollisionDetector, CollisionResult
from understudy.space.collision.distance import (
    TINY,
    Scratch,
    distance,
    lent,
    line_distance,
    scratch,
    segment_box,
    segment_cylinder,
    segment_segment,
)
from understudy.space.collision.pair_store import Pair
from understudy.space.collision.solids import (
    BODY,
    CYLINDER,
    FAR,
    HALF_X,
    HALF_Y,
    HALF_Z,
    KIND,
    ROUND,
    SEGMENT,
    SKIN,
    Ints,
    Solids,
)
from understudy.space.collision.world import (
    Placement,
    World,
    carry,
    distances_from_axes,
    furthest,
    gap_between,
    gap_to_box,
    joint_rows,
    moved_at_most,
    placement,
)
from understudy.space.compiled import borrowed, compiled, inlined
from understudy.space.transform import Array

ROUNDING = 1e-9
"""Rounding error of a computed distance (m)."""
TIGHT = 0.901
"""Share of the smallest distance found on a line that is proven as its clearance, up to ENOUGH: the
90 % that are promised, and something for rounding. A tighter proof takes more renewals: the budget
of a certificate is what is left of the distance."""
ENOUGH = 0.0225
"""A clearance of 20 mm (TIGHT of this) or more may be proven less tightly."""
TIGHT_FAR = 0.8
"""Share of the smallest distance found that is proven beyond that, if it takes few renewals. No
decision depends on a clearance of more than 20 mm."""
MOST_LOOKS = 20
"""Most renewals of a pair on the rest of the path for a tighter proof beyond 20 mm."""
LOOSE = 0.1
"""Share of its own distance that is proven for every pair, so that a far one has a floor, too."""
CREEP = 1e-5
"""Motion (m) between two checks of a pair that is too close: a contact is found to 0.01 mm. Without
a least step, ever smaller distances would give ever smaller steps."""
FAR_AWAY = 1e6
"""A finite distance beyond all others (m)."""
LONGER = 1.3
"""A step along the path that a coarse bound allows is tried this much longer: the second order of
the motion, which that bound leaves out, mostly allows it."""
MOST_TRIALS = 4
"""Most lengths of a step that are tried, the coarse bound included; mostly two."""
MOST_PIECES = 64
"""Most pieces of the path that one plane is proven to separate a pair on."""
USED_UP = 0.8
"""A certificate is renewed early, together with another, after this share of its length: the frames
of the arm at that place are computed anyway."""

PROVEN, CONTACT, UNDECIDED = range(3)
DUE, END, LAST, FLOOR = range(4)


class SweepPath(NamedTuple):
    """A path of the joints: polynomial pieces in the distance s."""

    shape: Array
    """(pieces, degree + 1, dof), constant term first."""
    start: Array
    """(pieces + 1,): distance at which each piece begins; last, the total length."""
    slopes: Array
    """(pieces, dof): upper bounds of |dq/ds|."""
    bends: Array
    """(pieces, dof): upper bounds of |d²q/ds²|."""
    run: Array
    """(pieces + 1, dof): upper bounds of the joints' travel up to the beginning of each piece."""
    line: Ints
    """(pieces,): 0, 1, 2 …: the program line of each piece; there is one verdict per line."""


class PairCertificates(NamedTuple):
    """The checked pairs and their certificates, with working memory."""

    pairs: Ints
    """(m, 2)"""
    certificates: Array
    """(m, 4), in the order of ``active``: where it is due for renewal, where it ends, the distance
    when it was made, the clearance it proves."""
    hints: Ints
    """(m, 2): the nearest triangle; whether one shape may be inside the other."""
    active: Ints
    """Pairs; those not yet proven to the end of the path come first."""
    radii: Array
    """(moving, dof): distances from the axes; valid if ``stamps`` is the current step."""
    stamps: Ints
    caps: Array
    q: Array
    now: Array
    travel: Array
    push: Array
    """(2, dof): derivatives of both ends' distances beyond a plane by each joint."""
    motions: Array
    """(dof + 1, 12): see `body_motions`."""
    shape_motion: Array
    """(moving + 1, 12): see `follow`."""
    growth: Array
    """(moving + 1, dof): see `follow`."""
    rests: Array
    """(moving,): bounds of the motion of each shape on the rest of the path."""


class LineResults(NamedTuple):
    """Results per program line."""

    verdict: Ints
    clearance: Array
    place: Array
    """(lines, 3): piece, s on it and distance there, of the contact or of the first close pair."""
    pair: Ints
    seen: Array
    """(lines, 3): piece, s and distance of the smallest distance that was computed."""
    nearest: Ints
    """(lines,): the pair at that place, as an index of the table; -1: there is none."""


@inlined
def near(  # kernel
    solids: Solids,
    traits: Ints,
    sizes: Array,
    placed: Array,
    ends: Array,
    i: int,
    j: int,
    enough: float,
    hint: int,
    look_inside: bool,
    scratch: Scratch,
) -> tuple[float, int]:
    """Like `distance`, with a fast path for the most common shapes."""
    one, other = (i, j) if traits[i, KIND] == SEGMENT else (j, i)
    if traits[one, KIND] == SEGMENT and traits[other, KIND] <= CYLINDER:
        skins = sizes[i, SKIN] + sizes[j, SKIN]
        d = line_distance(traits, sizes, placed, ends, one, other) - skins
    else:
        d, hint = distance(solids, placed, ends, i, j, enough, ENOUGH, hint, look_inside, scratch)
    return d, hint


@inlined
def apart_along(  # kernel
    traits: Ints, sizes: Array, placed: Array, ends: Array, i: int, j: int
) -> tuple[float, float, float, float, float, float]:
    """Distance of the cores of segment i and of j (a segment, a box or a cylinder), and a plane
    that separates them: its unit normal, and how far beyond it each end of the segment is.

    The plane touches core j whatever the normal is, so that rounding in the search of the nearest
    points makes the plane a worse one but not a wrong one. Cores that overlap have no plane: both
    ends are at -inf.
    """
    px, py, pz = ends[i, 0], ends[i, 1], ends[i, 2]
    ux, uy, uz = ends[i, 3] - px, ends[i, 4] - py, ends[i, 5] - pz
    nx = ny = nz = 0.0
    first = along = d = 0.0
    if traits[j, KIND] == SEGMENT:
        qx, qy, qz = ends[j, 0], ends[j, 1], ends[j, 2]
        vx, vy, vz = ends[j, 3] - qx, ends[j, 4] - qy, ends[j, 5] - qz
        square, s, t = segment_segment((px, py, pz), (ux, uy, uz), (qx, qy, qz), (vx, vy, vz))
        rx, ry, rz = px - qx, py - qy, pz - qz
        d = math.sqrt(square)
        if d > 0.0:
            nx = (rx + s * ux - t * vx) / d
            ny = (ry + s * uy - t * vy) / d
            nz = (rz + s * uz - t * vz) / d
            first = nx * rx + ny * ry + nz * rz - max(nx * vx + ny * vy + nz * vz, 0.0)
            along = nx * ux + ny * uy + nz * uz
    else:
        px, py, pz = px - placed[j, 9], py - placed[j, 10], pz - placed[j, 11]
        ax, ay, az = placed[j, 0], placed[j, 3], placed[j, 6]
        x, u = ax * px + ay * py + az * pz, ax * ux + ay * uy + az * uz
        bx, by, bz = placed[j, 1], placed[j, 4], placed[j, 7]
        y, v = bx * px + by * py + bz * pz, bx * ux + by * uy + bz * uz
        cx, cy, cz = placed[j, 2], placed[j, 5], placed[j, 8]
        z, w = cx * px + cy * py + cz * pz, cx * ux + cy * uy + cz * uz
        hx, hy, hz = sizes[j, HALF_X], sizes[j, HALF_Y], sizes[j, HALF_Z]
        if traits[j, KIND] == CYLINDER:
            square, t = segment_cylinder((x, y, z), (u, v, w), hx, hz)
            kx, ky, kz = x + t * u, y + t * v, z + t * w
            away = math.sqrt(kx * kx + ky * ky)
            share = max(away - hx, 0.0) / max(away, TINY)
            kx, ky, kz = kx * share, ky * share, kz - min(max(kz, -hz), hz)
        else:
            square, t = segment_box((x, y, z), (u, v, w), (hx, hy, hz))
            kx, ky, kz = x + t * u, y + t * v, z + t * w
            kx -= min(max(kx, -hx), hx)
            ky -= min(max(ky, -hy), hy)
            kz -= min(max(kz, -hz), hz)
        d = math.sqrt(square)
        if d > 0.0:
            scale = 1.0 / max(math.sqrt(kx * kx + ky * ky + kz * kz), TINY)
            kx, ky, kz = kx * scale, ky * scale, kz * scale
            if traits[j, KIND] == CYLINDER:
                support = hx * math.sqrt(kx * kx + ky * ky) + hz * abs(kz)
            else:
                support = hx * abs(kx) + hy * abs(ky) + hz * abs(kz)
            first = kx * x + ky * y + kz * z - support
            along = kx * u + ky * v + kz * w
            nx = ax * kx + bx * ky + cx * kz
            ny = ay * kx + by * ky + cy * kz
            nz = az * kx + bz * ky + cz * kz
    if d <= 0.0:
        first = -math.inf
    return d, nx, ny, nz, first, first + along


@inlined
def gap(sizes: Array, ends: Array, boxes: Array, moving: int, i: int, j: int) -> float:
    """Lower bound of the distance of shapes i and j, from their bounding volumes."""
    if j >= moving:
        least = gap_to_box(ends, i, sizes[i, FAR], boxes, j - moving)
    else:
        least = gap_between(ends, i, j, sizes[i, ROUND] + sizes[j, ROUND])
    return least


@inlined
def certified_until(  # kernel
    start: Array,
    slopes: Array,
    run: Array,
    radii: Array,
    caps: Array,
    slides: Array,
    now: Array,
    travel: Array,
    i: int,
    low: int,
    high: int,
    piece: int,
    s: float,
    budget: float,
) -> float:
    """Place on the path up to which shape i, relative to body ``low``, moves at most ``budget``.

    The caller knows that the rest of the path exceeds the budget.
    """
    # Whole pieces: steps that double, then bisection.
    done, fails, step = piece - 1, len(start) - 2, 1
    while done + 1 < fails:
        middle = done + step if step > 0 else (done + fails) // 2
        middle = min(middle, fails - 1)
        for k in range(low, high):
            travel[k] = run[middle + 1, k] - now[k]
        if moved_at_most(radii, caps, slides, i, low, high, travel) <= budget:
            done = middle
            step *= 2
        else:
            fails = middle
            step = 0
    begin = s
    for k in range(low, high):
        travel[k] = 0.0
    if fails > piece:
        begin = start[fails]
        for k in range(low, high):
            travel[k] = run[fails, k] - now[k]
    # In the piece the joints travel in proportion to s and the radii only grow, so the rate at its
    # beginning leads to a place that is not too near. From there the chord leads back, mostly in
    # one step, because the bound is convex except where a cap takes effect. The loop ends only at
    # a place where the bound itself is within the budget.
    rate, before = 0.0, 0.0
    for k in range(high - 1, low - 1, -1):
        rho = 1.0 if slides[k] != 0.0 else min(radii[i, k] + before, caps[i, k])
        before += travel[k] * rho
        rate += slopes[fails, k] * rho
    left, h = budget - before, start[fails + 1] - begin
    if rate * h > left:
        h = left / rate
    for k in range(low, high):
        travel[k] += slopes[fails, k] * h
    moved = moved_at_most(radii, caps, slides, i, low, high, travel) - before
    while moved > left:
        shorter = min(h * left / moved, 0.999 * h)
        for k in range(low, high):
            travel[k] -= slopes[fails, k] * (h - shorter)
        h = shorter
        moved = moved_at_most(radii, caps, slides, i, low, high, travel) - before
    return float(begin + h)


@inlined
def largest_step(a: float, rate: float, bend: float) -> float:
    """The h up to which a + rate·h - bend·h² is not negative, for a ≥ 0."""
    square = rate * rate + 4.0 * a * bend
    if bend <= 0.0 and (rate >= 0.0 or square < 0.0):
        return math.inf
    # The form without cancellation.
    root = math.sqrt(square)
    up, down = (rate + root, 2.0 * bend) if rate > 0.0 else (2.0 * a, root - rate)
    return up / down if down > 0.0 else math.inf


@compiled
def body_motions(  # kernel
    shape: Array, piece: int, x: float, frames: Array, slides: Array, motions: Array
) -> None:
    """motions[b] = motion of body b at the distance x along a piece, per unit of s and as if the
    slopes of the joints did not change: turn, speed of the point at the origin, and the rates of
    change of both."""
    degree = shape.shape[1] - 1
    for k in range(len(slides)):
        slope = shape[piece, degree, k] * degree
        for d in range(degree - 1, 0, -1):
            slope = slope * x + d * shape[piece, d, k]
        zx, zy, zz = slope * frames[k + 1, 2], slope * frames[k + 1, 5], slope * frames[k + 1, 8]
        ox, oy, oz = frames[k + 1, 9], frames[k + 1, 10], frames[k + 1, 11]
        wx, wy, wz = motions[k, 0], motions[k, 1], motions[k, 2]
        vx, vy, vz = motions[k, 3], motions[k, 4], motions[k, 5]
        if slides[k] != 0.0:
            ux, uy, uz = zx, zy, zz
            zx = zy = zz = 0.0
        else:
            ux, uy, uz = oy * zz - oz * zy, oz * zx - ox * zz, ox * zy - oy * zx
        motions[k + 1, 0], motions[k + 1, 1], motions[k + 1, 2] = wx + zx, wy + zy, wz + zz
        motions[k + 1, 3], motions[k + 1, 4], motions[k + 1, 5] = vx + ux, vy + uy, vz + uz
        # The body before carries the axis along.
        motions[k + 1, 6] = motions[k, 6] + wy * zz - wz * zy
        motions[k + 1, 7] = motions[k, 7] + wz * zx - wx * zz
        motions[k + 1, 8] = motions[k, 8] + wx * zy - wy * zx
        motions[k + 1, 9] = motions[k, 9] + wy * uz - wz * uy + vy * zz - vz * zy
        motions[k + 1, 10] = motions[k, 10] + wz * ux - wx * uz + vz * zx - vx * zz
        motions[k + 1, 11] = motions[k, 11] + wx * uy - wy * ux + vx * zy - vy * zx


@inlined
def pushes(
    frames: Array,
    ends: Array,
    slides: Array,
    push: Array,
    i: int,
    low: int,
    high: int,
    nx: float,
    ny: float,
    nz: float,
) -> None:
    """push[e, k] = derivative of n·x by joint k, for both ends of segment i."""
    ux, uy, uz = ends[i, 3] - ends[i, 0], ends[i, 4] - ends[i, 1], ends[i, 5] - ends[i, 2]
    for k in range(low, high):
        zx, zy, zz = frames[k + 1, 2], frames[k + 1, 5], frames[k + 1, 8]
        if slides[k] != 0.0:
            push[0, k] = push[1, k] = nx * zx + ny * zy + nz * zz
            continue
        cx, cy, cz = ny * zz - nz * zy, nz * zx - nx * zz, nx * zy - ny * zx  # n × z
        x, y = ends[i, 0] - frames[k + 1, 9], ends[i, 1] - frames[k + 1, 10]
        z = ends[i, 2] - frames[k + 1, 11]
        # n·(z × r) = (n × z)·r
        push[0, k] = cx * x + cy * y + cz * z
        push[1, k] = push[0, k] + cx * ux + cy * uy + cz * uz


@inlined
def follow(  # kernel
    motions: Array,
    ends: Array,
    slopes: Array,
    caps: Array,
    slides: Array,
    shape_motion: Array,
    growth: Array,
    row: int,
    i: int,
    low: int,
    high: int,
    piece: int,
) -> None:
    """Row ``row`` of ``shape_motion`` and ``growth`` for shape i, relative to body ``low``.

    shape_motion: speed and acceleration of one end, and of the other. growth: bounds of the rates
    at which the distances from the axes grow on this piece.
    """
    ax, ay, az = motions[low, 0], motions[low, 1], motions[low, 2]
    vx, vy, vz = motions[low, 3], motions[low, 4], motions[low, 5]
    wx, wy, wz = motions[high, 0] - ax, motions[high, 1] - ay, motions[high, 2] - az
    ux, uy, uz = motions[high, 3] - vx, motions[high, 4] - vy, motions[high, 5] - vz
    # As seen from body low, which itself moves.
    ex = motions[high, 6] - motions[low, 6] - (ay * wz - az * wy)
    ey = motions[high, 7] - motions[low, 7] - (az * wx - ax * wz)
    ez = motions[high, 8] - motions[low, 8] - (ax * wy - ay * wx)
    fx = motions[high, 9] - motions[low, 9] - (ay * uz - az * uy + vy * wz - vz * wy)
    fy = motions[high, 10] - motions[low, 10] - (az * ux - ax * uz + vz * wx - vx * wz)
    fz = motions[high, 11] - motions[low, 11] - (ax * uy - ay * ux + vx * wy - vy * wx)
    for e in range(2):
        x, y, z = ends[i, 3 * e], ends[i, 3 * e + 1], ends[i, 3 * e + 2]
        sx, sy, sz = ux + wy * z - wz * y, uy + wz * x - wx * z, uz + wx * y - wy * x
        shape_motion[row, 6 * e], shape_motion[row, 6 * e + 1] = sx, sy
        shape_motion[row, 6 * e + 2] = sz
        shape_motion[row, 6 * e + 3] = fx + ey * z - ez * y + wy * sz - wz * sy
        shape_motion[row, 6 * e + 4] = fy + ez * x - ex * z + wz * sx - wx * sz
        shape_motion[row, 6 * e + 5] = fz + ex * y - ey * x + wx * sy - wy * sx
    moved = 0.0
    for k in range(high - 1, low - 1, -1):
        growth[row, k] = moved if slides[k] == 0.0 else 0.0
        moved += slopes[piece, k] * caps[i, k]


@inlined
def directed_until(  # kernel
    shape: Array,
    start: Array,
    slopes: Array,
    run: Array,
    bends: Array,
    frames: Array,
    ends: Array,
    around: Array,
    growth: Array,
    radii: Array,
    caps: Array,
    slides: Array,
    q: Array,
    now: Array,
    push: Array,
    row: int,
    i: int,
    low: int,
    high: int,
    piece: int,
    s: float,
    nx: float,
    ny: float,
    nz: float,
    first: float,
    last: float,
) -> float:
    """Place on the path up to which both ends of segment i stay beyond a plane.

    The plane (normal n) is fixed to body ``low``; ``first`` and ``last`` are how far beyond it the
    ends are. This takes the direction of the motion into account, to the second order exactly, and
    only the rest by a bound, which is why it proves so much more than `certified_until` where a
    shape passes another one.
    """
    # The place of a point is a function of the joints. Its derivatives are products with axes: for
    # k ≤ l, ∂²x/∂qₖ∂qₗ = zₖ × (zₗ × (x - oₗ)), no longer than the distance ρₗ of x from axis l. So
    # the rest of the Taylor series about q is at most ½ Σ ρₗ·Vₖ·Vₗ after the first order, and
    # ⅙ Σ ρₘ·Vₖ·Vₗ·Vₘ after the second, with the outermost of the axes each time. A prismatic joint
    # has ρ = 1, and does not count as an inner one: joints behind it keep their directions.
    degree = shape.shape[1] - 1
    room = start[piece + 1] - s
    rate0 = nx * around[row, 0] + ny * around[row, 1] + nz * around[row, 2]
    bend0 = -0.5 * (nx * around[row, 3] + ny * around[row, 4] + nz * around[row, 5])
    rate1 = nx * around[row, 6] + ny * around[row, 7] + nz * around[row, 8]
    bend1 = -0.5 * (nx * around[row, 9] + ny * around[row, 10] + nz * around[row, 11])
    extra0 = extra1 = 0.0
    if degree > 1:
        pushes(frames, ends, slides, push, i, low, high, nx, ny, nz)
        for k in range(low, high):
            extra0 += 0.5 * abs(push[0, k]) * bends[piece, k]
            extra1 += 0.5 * abs(push[1, k]) * bends[piece, k]
    # The margins along the first piece are at least a + rate·h - bend·h² up to the h that ``bend``
    # was computed for. That h comes from the same formula without the growth of the levers.
    h = proven = 0.0
    for trial in range(MOST_TRIALS):
        second = third = inner = 0.0
        for k in range(low, high):
            v, rho = slopes[piece, k], min(radii[i, k] + growth[row, k] * h, caps[i, k])
            if slides[k] != 0.0:
                second += v * inner
                third += 0.5 * v * inner * inner
            else:
                outer = inner + v
                second += rho * v * (inner + 0.5 * v)
                third += rho * v * (inner * outer + v * v / 3.0) * 0.5
                inner = outer
        least0 = least1 = second
        if degree == 1 and trial > 0:
            least0, least1 = min(second, h * third + bend0), min(second, h * third + bend1)
        step = min(
            largest_step(first, rate0, least0 + extra0), largest_step(last, rate1, least1 + extra1)
        )
        if trial > 0:
            proven = max(proven, min(step, h))
            if step < LONGER * LONGER * h or h >= room:
                break
            step = math.sqrt(step * h)
        h = min(LONGER * step, room)
    if proven < room:
        return s + proven
    # Whole pieces behind it. The margins are concave on each of them with the levers of its end.
    end = start[piece + 1]
    if degree == 1 and piece + 2 < len(start):
        pushes(frames, ends, slides, push, i, low, high, nx, ny, nz)
    for p in range(piece + 1, min(len(start) - 1, piece + MOST_PIECES)):
        h, fits = start[p + 1] - start[p], False
        margin0, margin1 = first, last
        rate0 = rate1 = bend0 = bend1 = begun = turns = 0.0
        for k in range(low, high):
            way = shape[p, 0, k] - q[k]
            margin0 += push[0, k] * way
            margin1 += push[1, k] * way
            slope = shape[p, 1, k]
            rate0 += push[0, k] * slope
            rate1 += push[1, k] * slope
            if degree > 1:
                bend0 += 0.5 * abs(push[0, k]) * bends[p, k]
                bend1 += 0.5 * abs(push[1, k]) * bends[p, k]
            if slides[k] == 0.0:
                begun += run[p, k] - now[k]
                turns += slopes[p, k]
        for _ in range(4):
            moved = rest = rest_begun = 0.0
            before, before_begun = begun + turns * h, begun
            for k in range(high - 1, low - 1, -1):
                v0 = run[p, k] - now[k]
                v = v0 + slopes[p, k] * h
                if slides[k] != 0.0:
                    moved += v
                    rest += v * before
                    rest_begun += v0 * before_begun
                else:
                    rho = min(radii[i, k] + moved, caps[i, k])
                    moved += v * rho
                    before -= v
                    before_begun -= v0
                    rest += v * rho * (0.5 * v + before)
                    rest_begun += v0 * rho * (0.5 * v0 + before_begun)
            fits = min(margin0, margin1) >= rest_begun and (
                min(margin0 + (rate0 - bend0 * h) * h, margin1 + (rate1 - bend1 * h) * h) >= rest
            )
            if fits:
                break
            h *= 0.5
        if fits:
            end = start[p] + h
        if end < start[p + 1]:
            break
    return float(end)


@compiled
def certify(  # kernel
    world: World,
    path: SweepPath,
    table: PairCertificates,
    at: Placement,
    scratch: Scratch,
    wanted: float,
    slack: float,
    measured: float,
    results: LineResults,
) -> int:
    """Processes the path and fills ``results``; returns the number of computed configurations.

    After a contact the rest of that line is skipped. ``measured``: 0 proves ``wanted`` only.
    """
    solids, moving = lent(world.solids), world.moving
    traits, sizes, local, axes = solids.traits, solids.sizes, solids.local, solids.axes
    scratch = (borrowed(scratch[0]), borrowed(scratch[1]), borrowed(scratch[2]))
    rest_frames, slides, boxes = borrowed(world.rest), borrowed(world.slides), borrowed(world.boxes)
    frames, placed, ends = borrowed(at.frames), borrowed(at.placed), borrowed(at.ends)
    pairs, active = borrowed(table.pairs), borrowed(table.active)
    certificates, hints = borrowed(table.certificates), borrowed(table.hints)
    radii, caps, stamps = borrowed(table.radii), borrowed(table.caps), borrowed(table.stamps)
    q, now, travel = borrowed(table.q), borrowed(table.now), borrowed(table.travel)
    shape, slopes, run = borrowed(path.shape), borrowed(path.slopes), borrowed(path.run)
    start, lines, bends = borrowed(path.start), borrowed(path.line), borrowed(path.bends)
    push, motions = borrowed(table.push), borrowed(table.motions)
    shape_motion, growth = borrowed(table.shape_motion), borrowed(table.growth)
    rests = borrowed(table.rests)
    clearance, seen = borrowed(results.clearance), borrowed(results.seen)
    nearest, pieces = borrowed(results.nearest), len(lines)
    total = start[pieces]
    piece, s, line, stamp, count = 0, 0.0, -1, 0, 0
    least, retired, last_pair, fresh, line_end = math.inf, math.inf, -1, True, 0.0
    last_distance = math.inf
    while True:
        # A piece of no length is a dwell. Its line must get a verdict after a restart, too.
        while not fresh and piece < pieces - 1 and s >= start[piece + 1]:
            piece += 1
        run_to(shape, slopes, run, piece, s - start[piece], q, now)
        joint_rows(q, rest_frames, slides, frames)
        carry(traits, local, axes, moving, frames, placed, ends)
        body_motions(shape, piece, s - start[piece], frames, slides, motions)
        stamp += 1  # of this configuration: radii of another stamp are out of date
        if fresh:
            least = restart(world, table, at, s, measured, scratch)
            count, retired, last_pair, fresh = len(pairs), math.inf, -1, False
            last_distance = math.inf
        elif lines[piece] > line:
            least = lowest_first(certificates, active, count)
        begun = lines[piece] > line
        if begun:
            carry_over(
                table, count, retired, last_pair, last_distance, line + 1, lines[piece], results
            )
            line, line_end = lines[piece], end_of_line(lines, start, piece)
            clearance[line] = min(clearance[line], retired)
        ahead, k, touched, lowest = math.inf, 0, False, math.inf
        while k < count and not touched:
            end = certificates[k, END]
            # A certificate that was made for a line with a smaller distance may prove less than
            # this line deserves: it is renewed at the beginning of the line.
            loose = begun and certificates[k, FLOOR] < measured * TIGHT * min(least, ENOUGH)
            renew = loose or certificates[k, DUE] <= s
            if begun and not renew:
                clearance[line] = min(clearance[line], certificates[k, FLOOR])
            if renew:
                p = active[k]
                i, j = pairs[p, 0], pairs[p, 1]
                # Of two shapes of the arm, the outer one moves relative to the body of the inner.
                mover, low = (j, traits[i, BODY]) if j < moving else (i, 0)
                high = traits[mover, BODY]
                if stamps[mover] != stamp:
                    around = sizes[mover, FAR] - sizes[mover, SKIN]
                    distances_from_axes(frames, ends, slides, around, mover, high, radii)
                    stamps[mover] = stamp
                    follow(
                        motions,
                        ends,
                        slopes,
                        caps,
                        slides,
                        shape_motion,
                        growth,
                        mover,
                        mover,
                        0,
                        high,
                        piece,
                    )
                    for m in range(high):
                        travel[m] = run[pieces, m] - now[m]
                    rests[mover] = moved_at_most(radii, caps, slides, mover, 0, high, travel)
                row, rest = mover, rests[mover]
                if low > 0:
                    row = moving  # a spare one
                    for m in range(low, high):
                        travel[m] = run[pieces, m] - now[m]
                    rest = moved_at_most(radii, caps, slides, mover, low, high, travel)
                # Bounding volumes first: they prove most pairs to the end of the path.
                d = gap(sizes, ends, boxes, moving, i, j) - ROUNDING
                floor = max(wanted + slack, measured * TIGHT * min(least, FAR_AWAY))
                first = last = -math.inf
                nx = ny = nz = 0.0
                if d - floor < rest:
                    other = i if j < moving else j
                    if traits[mover, KIND] == SEGMENT and traits[other, KIND] <= CYLINDER:
                        d, nx, ny, nz, first, last = apart_along(
                            traits, sizes, placed, ends, mover, other
                        )
                        d -= sizes[i, SKIN] + sizes[j, SKIN]
                    else:
                        d, hints[p, 0] = near(
                            solids,
                            traits,
                            sizes,
                            placed,
                            ends,
                            i,
                            j,
                            rest + (least if measured else 2.0 * wanted),
                            hints[p, 0],
                            hints[p, 1] != 0,
                            scratch,
                        )
                    d -= ROUNDING
                    least = min(least, max(d, 0.0))
                    # The clearance to prove: large enough for the promise about this line, and as
                    # small as possible, since the rest of the distance is the budget.
                    tight = min(TIGHT_FAR * least, d - rest / MOST_LOOKS)
                    tight = max(tight, TIGHT * min(least, ENOUGH))
                    floor = max(wanted, measured * max(tight, min(0.5 * least, d), LOOSE * d))
                    if d < seen[line, 2]:
                        seen[line, 0], seen[line, 1], seen[line, 2] = piece, s - start[piece], d
                        nearest[line] = p
                close = d < wanted + slack
                # A shape can only get inside another through its surface, next to which the pair
                # is close: otherwise the next distance need not look inside.
                hints[p, 1] = close
                limit = total
                if close:
                    # Nothing can be proven here; halving the distance finds where it is a contact.
                    floor = d - max(0.5 * d, CREEP)
                    touched = d <= -ROUNDING
                    # The certificate ends with the line: it does not count for the next one.
                    limit = note(results, table, path, piece, s, p, d)
                end = total
                if d - floor < rest:
                    need = floor + sizes[i, SKIN] + sizes[j, SKIN] + ROUNDING
                    if min(first, last) > need and not close:
                        if low > 0:
                            follow(
                                motions,
                                ends,
                                slopes,
                                caps,
                                slides,
                                shape_motion,
                                growth,
                                row,
                                mover,
                                low,
                                high,
                                piece,
                            )
                        end = directed_until(
                            shape,
                            start,
                            slopes,
                            run,
                            bends,
                            frames,
                            ends,
                            shape_motion,
                            growth,
                            radii,
                            caps,
                            slides,
                            q,
                            now,
                            push,
                            row,
                            mover,
                            low,
                            high,
                            piece,
                            s,
                            nx,
                            ny,
                            nz,
                            first - need,
                            last - need,
                        )
                    else:
                        end = certified_until(
                            start,
                            slopes,
                            run,
                            radii,
                            caps,
                            slides,
                            now,
                            travel,
                            mover,
                            low,
                            high,
                            piece,
                            s,
                            d - floor,
                        )
                else:
                    floor = d - rest
                end, floor = min(end, limit), max(floor, 0.0)
                certificates[k, DUE], certificates[k, END] = s + USED_UP * (end - s), end
                certificates[k, LAST], certificates[k, FLOOR] = d, floor
                clearance[line] = min(clearance[line], floor)
                # Proven to the end of the path, and tight enough for every line of it: the pair is
                # done. The last active one takes its place.
                if end >= total and (floor >= TIGHT * ENOUGH or line_end >= total):
                    last_pair = p if d < last_distance else last_pair
                    retired, last_distance = min(retired, floor), min(last_distance, d)
                    count -= 1
                    active[k] = active[count]
                    for column in range(4):
                        certificates[k, column] = certificates[count, column]
                    continue
            ahead, lowest = min(ahead, end), min(lowest, certificates[k, FLOOR])
            k += 1
        if lowest < TIGHT * ENOUGH:
            # Every line needs a tight proof of its own.
            ahead = min(ahead, line_end)
        if touched:
            # The rest of the line decides nothing. After it every pair begins anew, since those
            # behind the contact in the list were not looked at.
            clearance[line] = 0.0
            fresh = True
            while piece < pieces and lines[piece] == line:
                piece += 1
            if piece == pieces:
                return stamp
            ahead = start[piece]
        elif count == 0:
            carry_over(
                table, 0, retired, last_pair, last_distance, line + 1, len(clearance), results
            )
            return stamp
        s = ahead


@compiled
def certify_and_measure(
    world: World,
    path: SweepPath,
    table: PairCertificates,
    at: Placement,
    scratch: Scratch,
    wanted: float,
    slack: float,
    measured: float,
    results: LineResults,
) -> int:
    """`certify`, and with ``measured`` `measure_seen`: each call from Python costs time."""
    for line in range(len(results.verdict)):
        results.verdict[line], results.nearest[line] = PROVEN, -1
        results.clearance[line] = math.inf
        for column in range(3):
            results.place[line, column], results.seen[line, column] = 0.0, math.inf
        results.pair[line, 0] = results.pair[line, 1] = -1
    looks = certify(world, path, table, at, scratch, wanted, slack, measured, results)
    if measured != 0.0:
        measure_seen(world, path, table, at, scratch, results)
        for line in range(len(results.verdict)):
            # A dwell at a place that is too close has no certificate of its own.
            if results.verdict[line] == PROVEN and results.clearance[line] < wanted:
                results.verdict[line] = UNDECIDED
    return looks


@compiled
def lay_out(length: Array, slopes: Array, start: Array, run: Array) -> None:
    """Sets where the pieces begin, and the travel of the joints up to there."""
    start[0] = 0.0
    for k in range(slopes.shape[1]):
        run[0, k] = 0.0
    for piece in range(len(length)):
        start[piece + 1] = start[piece] + length[piece]
        h = start[piece + 1] - start[piece]
        for k in range(slopes.shape[1]):
            run[piece + 1, k] = run[piece, k] + slopes[piece, k] * h


@compiled
def restart(
    world: World,
    table: PairCertificates,
    at: Placement,
    s: float,
    measured: float,
    scratch: Scratch,
) -> float:
    """Makes all pairs due at s; returns the distance of the pair with the smallest bound if
    distances are measured, else infinity."""
    nearest, least = -1, math.inf
    sizes, ends, boxes, moving = world.solids.sizes, at.ends, world.boxes, world.moving
    pairs, certificates, hints, active = table.pairs, table.certificates, table.hints, table.active
    for p in range(len(pairs)):
        active[p] = p
        hints[p, 0], hints[p, 1] = -1, 1
        certificates[p, DUE] = certificates[p, END] = s
        certificates[p, LAST] = certificates[p, FLOOR] = math.inf
        d = gap(sizes, ends, boxes, moving, pairs[p, 0], pairs[p, 1])
        if d < least:
            nearest, least = p, d
    table.stamps[:] = -1
    if nearest < 0 or not measured:
        return math.inf
    i, j = pairs[nearest, 0], pairs[nearest, 1]
    d, _ = distance(world.solids, at.placed, at.ends, i, j, math.inf, math.inf, -1, True, scratch)
    return max(d, 0.0)


@inlined
def run_to(
    shape: Array, slopes: Array, run: Array, piece: int, x: float, q: Array, now: Array
) -> None:
    """Sets q and the joints' travel ``now`` at the distance x along a piece."""
    degree = shape.shape[1] - 1
    for k in range(len(q)):
        value = shape[piece, degree, k]
        for d in range(degree - 1, -1, -1):
            value = shape[piece, d, k] + value * x
        q[k] = value
        now[k] = run[piece, k] + slopes[piece, k] * x


@compiled
def lowest_first(certificates: Array, active: Ints, count: int) -> float:
    """Puts the certificate with the lowest clearance first; returns a distance of the new line.

    Infinite if the lowest clearance is to be proven again: its pair gives the first distance.
    """
    lowest, least = -1, math.inf
    for k in range(count):
        if lowest < 0 or certificates[k, FLOOR] < certificates[lowest, FLOOR]:
            lowest = k
        least = min(least, certificates[k, LAST])
    if lowest < 0 or certificates[lowest, FLOOR] >= TIGHT * ENOUGH:
        return least
    active[0], active[lowest] = active[lowest], active[0]
    for column in range(4):
        first = certificates[0, column]
        certificates[0, column] = certificates[lowest, column]
        certificates[lowest, column] = first
    return math.inf


@compiled
def carry_over(
    table: PairCertificates,
    count: int,
    retired: float,
    last_pair: int,
    last_distance: float,
    first: int,
    last: int,
    results: LineResults,
) -> None:
    """Sets the clearance of lines that certificates of earlier lines cover completely, and the
    pair of these and of the next line that was nearest when its certificate was made."""
    lowest, pair, nearest = retired, last_pair, last_distance
    for k in range(count):
        lowest = min(lowest, table.certificates[k, FLOOR])
        if table.certificates[k, LAST] < nearest:
            nearest, pair = table.certificates[k, LAST], table.active[k]
    for line in range(first, min(last + 1, len(results.nearest))):
        results.nearest[line] = pair
        if line < last:
            results.clearance[line] = min(results.clearance[line], lowest)


@compiled
def end_of_line(lines: Ints, start: Array, piece: int) -> float:
    """Place at which the line of a piece ends."""
    line = lines[piece]
    while piece + 1 < len(lines) and lines[piece + 1] == line:
        piece += 1
    return float(start[piece + 1])


@compiled
def measure_seen(
    world: World,
    path: SweepPath,
    table: PairCertificates,
    at: Placement,
    scratch: Scratch,
    results: LineResults,
) -> None:
    """Sets the exact distance of each line's nearest pair, where it was found or at the beginning
    of the line."""
    piece, pieces = 0, len(path.line)
    for line in range(len(results.nearest)):
        while piece < pieces - 1 and path.line[piece] < line:
            piece += 1
        p = results.nearest[line]
        if p < 0:
            continue
        if results.seen[line, 2] == math.inf:
            results.seen[line, 0], results.seen[line, 1] = piece, 0.0
        there = int(results.seen[line, 0])
        run_to(path.shape, path.slopes, path.run, there, results.seen[line, 1], table.q, table.now)
        joint_rows(table.q, world.rest, world.slides, at.frames)
        carry(
            world.solids.traits,
            world.solids.local,
            world.solids.axes,
            world.moving,
            at.frames,
            at.placed,
            at.ends,
        )
        i, j = table.pairs[p, 0], table.pairs[p, 1]
        results.seen[line, 2], _ = distance(
            world.solids, at.placed, at.ends, i, j, math.inf, math.inf, -1, True, scratch
        )


@compiled
def note(
    results: LineResults,
    table: PairCertificates,
    path: SweepPath,
    piece: int,
    s: float,
    p: int,
    d: float,
) -> float:
    """Records the first close pair of a line, or its contact; returns where the line ends."""
    line = path.line[piece]
    verdict = CONTACT if d <= -ROUNDING else UNDECIDED
    if results.verdict[line] != UNDECIDED or verdict == CONTACT:
        results.verdict[line] = verdict
        results.place[line, 0], results.place[line, 1] = piece, s - path.start[piece]
        results.place[line, 2] = d
        results.pair[line, 0], results.pair[line, 1] = table.pairs[p, 0], table.pairs[p, 1]
    return end_of_line(path.line, path.start, piece)


EPS = 1e-4
"""Default clearance to prove (m)."""
SLACK = 0.02
"""Share of the requested clearance by which a distance must exceed it to be proven."""
LOOKS = 48
"""Places on the rest of a line at which the depth of a contact is computed."""


class Verdict(StrEnum):
    PROVEN = "proven"
    CONTACT = "contact"
    UNDECIDED = "undecided"


ONE_LINE = np.zeros(1, dtype=np.int64)
VERDICTS = (Verdict.PROVEN, Verdict.CONTACT, Verdict.UNDECIDED)


@dataclass(frozen=True)
class ContactSpot:
    """A place on the path where two shapes touch, or are too close for a proof."""

    piece: int
    s: float
    """Distance along the piece."""
    object1_name: str
    object2_name: str
    point: tuple[float, float, float]
    distance: float
    """Distance of the two shapes there; negative if they overlap."""
    depth: float
    """Largest penetration depth of the two from there to the end of the line."""
    self_collision: bool
    q: tuple[float, ...]
    pair: tuple[int, int] = (-1, -1)
    """Indices of the two shapes in the world."""


class LineResult(Struct, frozen=True, gc=False):
    """Verdict for one line of a path."""

    line: int
    verdict: Verdict
    clearance: float
    """Clearance (m) proven for the whole line; infinite if there are no pairs."""
    seen: float
    """Smallest distance (m) that was computed on the line: the true clearance lies between the
    two."""
    spot: ContactSpot | None = None

    @property
    def proven(self) -> bool:
        return self.verdict is Verdict.PROVEN


def greatest_slopes(shape: Array, length: Array) -> Array:
    """(pieces, dof): upper bounds of |dq/ds| on each piece; exact up to degree 3."""
    return _slopes_and_bends(shape, length)[0]


def greatest_bends(shape: Array, length: Array) -> Array:
    """(pieces, dof): upper bounds of |d²q/ds²| on each piece; exact up to degree 3."""
    return _slopes_and_bends(shape, length)[1]


def _slopes_and_bends(shape: Array, length: Array) -> tuple[Array, Array]:
    if shape.shape[1] == 2:
        slopes = np.abs(shape[:, 1])
        return slopes, np.zeros_like(slopes)
    if shape.shape[1] <= 4:
        slopes, bends = np.empty((2, len(shape), shape.shape[2]))
        bound_cubics(np.ascontiguousarray(shape), np.ascontiguousarray(length), slopes, bends)
        return slopes, bends
    powers, h = np.arange(1, shape.shape[1])[None, :, None], length[:, None, None]
    rises = powers * np.abs(shape[:, 1:])
    falls = (powers[:, 1:] - 1) * rises[:, 1:] * h ** (powers[:, 1:] - 2)
    return np.asarray((rises * h ** (powers - 1)).sum(axis=1)), np.asarray(falls.sum(axis=1))


@compiled
def bound_cubics(shape: Array, length: Array, slopes: Array, bends: Array) -> None:  # kernel
    """Fills the bounds of pieces of degree 2 or 3. The slope is largest at an end, or where the
    second derivative is zero."""
    cubic = shape.shape[1] == 4
    for piece in range(len(length)):
        h = length[piece]
        for k in range(shape.shape[2]):
            b, c = shape[piece, 1, k], shape[piece, 2, k]
            d = shape[piece, 3, k] if cubic else 0.0
            turn = -c / (3.0 * d)  # nan or infinite where the second derivative is constant
            turn = min(turn, h) if turn > 0.0 else 0.0
            at_end = abs(b + h * (2.0 * c + 3.0 * d * h))
            at_turn = abs(b + turn * (2.0 * c + 3.0 * d * turn))
            slopes[piece, k] = max(abs(b), at_end, at_turn) * (1.0 + 1e-12)
            bends[piece, k] = 2.0 * abs(c) + 6.0 * h * abs(d)


class SweptLines(NamedTuple):
    """Verdicts on the lines of a path in columns; ``line(k)``: all that is known of one."""

    lines: Ints
    proven: NDArray[np.bool_]
    clearance: Array
    seen: Array
    line: Callable[[int], LineResult]


def _no_line(k: int) -> LineResult:
    raise IndexError(k)


class Sweeper:
    """Sweeps paths in the world of a detector; follows its changes from the next sweep on."""

    def __init__(self, detector: CollisionDetector) -> None:
        self._detector, self._scratch = detector, scratch()
        self.configurations = 0
        """Number of configurations computed by all sweeps so far."""
        self._read_world()

    def _read_world(self) -> None:
        chain = self._detector.chain
        assert chain is not None, "a sweep needs an arm"
        self._world, self._names = self._detector.world, self._detector.names
        self._at = placement(self._world)
        skins = self._world.solids.sizes[: self._world.moving, SKIN]
        # Only the core moves with the joints, the skin about it is the same in every direction.
        self._caps = furthest(chain, self._world.solids, self._world.moving) - skins[:, None]
        self._caps[:, chain.slides != 0.0] = 1.0
        self._certificates = _certificates(self._world, self._caps, _pairs(self._world))

    def twin(self) -> "Sweeper":
        """Another sweeper of the same world, for another thread; it does not follow changes."""
        other = copy(self)
        other._scratch, other._at = scratch(), placement(self._world)
        other._certificates = _certificates(self._world, self._caps, _pairs(self._world))
        return other

    def sweep(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        lines: ArrayLike | None = None,
        clearance: float = EPS,
        slopes: ArrayLike | None = None,
        ignoring: Collection[Pair] = (),
    ) -> tuple[LineResult, ...]:
        """One verdict per line, in the order of the path; the ``ignoring`` pairs do not count.

        shape (pieces, degree + 1, dof) and length (pieces,) as in ``motion.path.Path``; lines: the
        line number of each piece, never decreasing (one line if not given); clearance: metres to
        be proven; slopes: upper bounds of |dq/ds|, if known.
        """
        found = self.swept(
            shape, length, lines=lines, clearance=clearance, slopes=slopes, ignoring=ignoring
        )
        return tuple(map(found.line, range(len(found.lines))))

    def swept(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        lines: ArrayLike | None = None,
        clearance: float = EPS,
        slopes: ArrayLike | None = None,
        ignoring: Collection[Pair] = (),
    ) -> SweptLines:
        """`sweep` in columns."""
        self._update_world()
        coefficients = np.require(shape, np.float64, ["C", "W"])
        lengths = np.asarray(length, dtype=np.float64)
        if not len(lengths):
            none = np.zeros(0)
            return SweptLines(ONE_LINE[:0], none > 0.0, none, none, _no_line)
        named, which = ONE_LINE, np.zeros(len(lengths), dtype=np.int64)
        if lines is not None:
            named, which = np.unique(np.asarray(lines), return_inverse=True)
        path = _sweep_path(coefficients, lengths, which.reshape(-1), slopes)
        found = self._certify(path, self._without(ignoring), len(named), float(clearance))
        return self._results(path, found, named)

    def pairs(self) -> list[Pair]:
        """All checked pairs, as indices of shapes."""
        self._update_world()
        return [(int(i), int(j)) for i, j in self._certificates.pairs]

    def contacts(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        most: int,
        known: ContactSpot | None = None,
        meant: Collection[Pair] = (),
    ) -> list[ContactSpot]:
        """The first contact of each pair of names along a path, in its order, at most ``most``;
        ``known``: one that was already found; ``meant``: pairs that do not count. The foot is not
        checked."""
        found = [known] if known else []
        while len(found) < most:
            named = {(spot.object1_name, spot.object2_name) for spot in found}
            names = self._names
            ignoring = {(i, j) for i, j in self.pairs() if (names[i], names[j]) in named}
            ignoring |= set(meant)
            spot = self.first_contact(shape, length, ignoring, looks=LOOKS)
            if spot is None:
                break
            found.append(spot)
        return sorted(found, key=lambda spot: (spot.piece, spot.s))

    def first_contact(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        ignoring: Collection[Pair] = (),
        *,
        looks: int = 1,
    ) -> ContactSpot | None:
        """The first contact along a path, except of the ``ignoring`` pairs.

        The foot, whose contacts do not depend on the motion, is not checked. The depth on the rest
        of the path is computed at ``looks`` places.
        """
        self._update_world()
        coefficients = np.require(shape, np.float64, ["C", "W"])
        lengths = np.asarray(length, dtype=np.float64)
        if not len(lengths):
            return None
        certificates = self._without(ignoring)
        path = _sweep_path(coefficients, lengths, np.zeros(len(lengths), dtype=np.int64), None)
        found = self._certify(path, certificates, 1, EPS, measured=False)
        if found.verdict[0] != CONTACT:
            return None
        return self._spot(path, found, 0, looks=looks)

    def _without(self, ignoring: Collection[Pair]) -> PairCertificates:
        """Certificates of all pairs but the ``ignoring`` ones."""
        if not ignoring:
            return self._certificates
        left = [pair for pair in _pairs(self._world).tolist() if tuple(pair) not in ignoring]
        pairs = np.array(left, dtype=np.int64).reshape(-1, 2)
        return _certificates(self._world, self._caps, pairs)

    def _update_world(self) -> None:
        if self._detector.world is not self._world:
            self._read_world()

    def _certify(
        self,
        path: SweepPath,
        certificates: PairCertificates,
        lines: int,
        clearance: float,
        *,
        measured: bool = True,
    ) -> LineResults:
        found = _blank(lines)
        self.configurations += certify_and_measure(
            self._world,
            path,
            certificates,
            self._at,
            self._scratch,
            clearance,
            SLACK * min(clearance, 10 * EPS),
            float(measured),
            found,
        )
        return found

    def _results(self, path: SweepPath, found: LineResults, lines: Ints) -> SweptLines:
        """Verdicts for all lines."""
        foot = self._detector.foot_contact
        if foot.collision:
            none = np.zeros(len(lines))

            def touching(k: int) -> LineResult:
                spot = _foot_spot(path, foot, k)
                return LineResult(int(lines[k]), Verdict.CONTACT, 0.0, 0.0, spot)

            return SweptLines(lines, none > 0.0, none, none, touching)
        seen = np.where(found.verdict == CONTACT, found.place[:, 2], found.seen[:, 2])
        proven = found.verdict == PROVEN

        def line(k: int) -> LineResult:
            spot = None if proven[k] or found.pair[k, 0] < 0 else self._spot(path, found, k)
            verdict = VERDICTS[found.verdict[k]]
            return LineResult(
                int(lines[k]), verdict, float(found.clearance[k]), float(seen[k]), spot
            )

        return SweptLines(lines, proven, found.clearance, seen, line)

    def _spot(self, path: SweepPath, found: LineResults, k: int, looks: int = LOOKS) -> ContactSpot:
        piece, s = int(found.place[k, 0]), float(found.place[k, 1])
        i, j = (int(part) for part in found.pair[k])
        q = _at(path, piece, s)
        there = self._detector.contact_between(q, i, j)
        depth = 0.0
        if found.verdict[k] == CONTACT:
            rest = _rest_of_line(path, piece, s, looks)
            depth = max(self._detector.contact_between(row, i, j).penetration_depth for row in rest)
        return ContactSpot(
            piece,
            s,
            self._names[i],
            self._names[j],
            there.contact_point,
            float(found.place[k, 2]),
            depth,
            j < self._world.moving,
            tuple(q.tolist()),
            (i, j),
        )


def sweep(
    detector: CollisionDetector,
    shape: ArrayLike,
    length: ArrayLike,
    *,
    lines: ArrayLike | None = None,
    clearance: float = EPS,
) -> tuple[LineResult, ...]:
    """Sweeps one path; for many paths use a Sweeper."""
    return Sweeper(detector).sweep(shape, length, lines=lines, clearance=clearance)


def straight(start: ArrayLike, end: ArrayLike) -> tuple[Array, Array]:
    """Shape and length of a straight line of the joints."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return np.stack([a, (b - a) / (length or 1.0)])[None], np.array([length])


def _sweep_path(
    shape: Array, length: Array, line: NDArray[np.int64], slopes: ArrayLike | None
) -> SweepPath:
    bounds, bends = _slopes_and_bends(shape, length)
    if slopes is not None:
        bounds = np.require(slopes, np.float64, ["C", "W"])
    start, run = np.empty(len(length) + 1), np.empty((len(length) + 1, shape.shape[2]))
    lay_out(np.require(length, np.float64, ["C", "W"]), bounds, start, run)
    return SweepPath(shape, start, bounds, bends, run, np.ascontiguousarray(line, dtype=np.int64))


def _pairs(world: World) -> Ints:
    """All pairs to check: moving shapes with objects, and shapes of the arm."""
    objects = np.arange(world.moving, len(world.solids.traits))
    around = [(i, j) for i in range(world.foot, world.moving) for j in objects]
    return np.concatenate([np.array(around, dtype=np.int64).reshape(-1, 2), world.partners])


def _certificates(world: World, caps: Array, pairs: Ints) -> PairCertificates:
    count, joints = len(pairs), len(world.slides)
    return PairCertificates(
        pairs,
        np.zeros((count, 4)),
        np.zeros((count, 2), dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros((world.moving, joints)),
        np.zeros(world.moving, dtype=np.int64),
        caps,
        np.zeros(joints),
        np.zeros(joints),
        np.zeros(joints),
        np.zeros((2, joints)),
        np.zeros((joints + 1, 12)),
        np.zeros((world.moving + 1, 12)),
        np.zeros((world.moving + 1, joints)),
        np.zeros(world.moving),
    )


def _blank(lines: int) -> LineResults:
    return LineResults(
        np.empty(lines, dtype=np.int64),
        np.empty(lines),
        np.empty((lines, 3)),
        np.empty((lines, 2), dtype=np.int64),
        np.empty((lines, 3)),
        np.empty(lines, dtype=np.int64),
    )


def _at(path: SweepPath, piece: int, s: float) -> Array:
    rows = path.shape[piece]
    return np.asarray(s ** np.arange(len(rows)) @ rows)


def _rest_of_line(path: SweepPath, piece: int, s: float, looks: int) -> list[Array]:
    """Configurations from a place to the end of its line, evenly spaced along the path."""
    last = int(np.flatnonzero(path.line == path.line[piece])[-1])
    whole = np.linspace(path.start[piece] + s, path.start[last + 1], looks)
    pieces = np.clip(np.searchsorted(path.start, whole, side="right") - 1, piece, last)
    return [_at(path, int(p), float(x - path.start[p])) for p, x in zip(pieces, whole, strict=True)]


def _foot_spot(path: SweepPath, foot: CollisionResult, k: int) -> ContactSpot:
    piece = int(np.flatnonzero(path.line == k)[0])
    depth = foot.penetration_depth
    return ContactSpot(
        piece,
        0.0,
        foot.object1_name,
        foot.object2_name,
        foot.contact_point,
        -depth,
        depth,
        False,
        tuple(_at(path, piece, 0.0).tolist()),
    )
