"""Distance of two convex cores by the GJK algorithm (Gilbert, Johnson, Keerthi).

Every step searches along the shortest known connection of the two cores. The plane through the
furthest point in that direction separates them, so each step also *proves* a distance: the returned
lower bound holds even if the search ends early.
"""

import math

from understudy.space.collision.solids import (
    BOX,
    COUNT,
    CYLINDER,
    FIRST,
    HALF_X,
    HALF_Y,
    HALF_Z,
    HULL,
    KIND,
    SEGMENT,
    Ints,
)
from understudy.space.compiled import compiled
from understudy.space.transform import Array

SIMPLEX = (4, 7)
"""Shape of the simplex array: per row a point of the Minkowski difference, the point of the first
core, and its weight."""
GAP = 1e-10
"""Difference of the proven and the found distance (m) at which the search ends."""
MOST_STEPS = 100

Vector = tuple[float, float, float]
Shapes = tuple[Ints, Array, Array, Array]
"""traits, sizes, frames in the world and points of solids."""


@compiled
def support(  # kernel
    shapes: Shapes, i: int, triangle: int, dx: float, dy: float, dz: float
) -> Vector:
    """Support point: furthest point of core i (or of one of its triangles, if not -1) along d."""
    traits, sizes, placed, points = shapes
    x = placed[i, 0] * dx + placed[i, 3] * dy + placed[i, 6] * dz
    y = placed[i, 1] * dx + placed[i, 4] * dy + placed[i, 7] * dz
    z = placed[i, 2] * dx + placed[i, 5] * dy + placed[i, 8] * dz
    kind = HULL if triangle >= 0 else traits[i, KIND]
    if kind == SEGMENT:
        x, y, z = 0.0, 0.0, math.copysign(sizes[i, HALF_Z], z)
    elif kind == BOX:
        x = math.copysign(sizes[i, HALF_X], x)
        y = math.copysign(sizes[i, HALF_Y], y)
        z = math.copysign(sizes[i, HALF_Z], z)
    elif kind == CYLINDER:
        long = math.sqrt(x * x + y * y)
        scale = sizes[i, HALF_X] / long if long > 0.0 else 0.0
        x, y, z = x * scale, y * scale, math.copysign(sizes[i, HALF_Z], z)
    else:
        first = 3 * triangle if triangle >= 0 else traits[i, FIRST]
        count = 3 if triangle >= 0 else traits[i, COUNT]
        best, most = first, -math.inf
        for k in range(first, first + count):
            along = points[k, 0] * x + points[k, 1] * y + points[k, 2] * z
            if along > most:
                best, most = k, along
        x, y, z = points[best, 0], points[best, 1], points[best, 2]
    return (
        placed[i, 0] * x + placed[i, 1] * y + placed[i, 2] * z + placed[i, 9],
        placed[i, 3] * x + placed[i, 4] * y + placed[i, 5] * z + placed[i, 10],
        placed[i, 6] * x + placed[i, 7] * y + placed[i, 8] * z + placed[i, 11],
    )


@compiled
def triangle_weights(  # kernel
    ax: float, ay: float, az: float, bx: float, by: float, bz: float,
    cx: float, cy: float, cz: float,
) -> tuple[float, float, float]:  # fmt: skip
    """The weights of a, b, c in the point of their triangle nearest to the origin."""
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = cx - ax, cy - ay, cz - az
    d1 = -(ux * ax + uy * ay + uz * az)
    d2 = -(vx * ax + vy * ay + vz * az)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3 = -(ux * bx + uy * by + uz * bz)
    d4 = -(vx * bx + vy * by + vz * bz)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = d1 / (d1 - d3) if d1 > d3 else 0.0
        return 1.0 - t, t, 0.0
    d5 = -(ux * cx + uy * cy + uz * cz)
    d6 = -(vx * cx + vy * cy + vz * cz)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6) if d2 > d6 else 0.0
        return 1.0 - t, 0.0, t
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        both = (d4 - d3) + (d5 - d6)
        t = (d4 - d3) / both if both > 0.0 else 0.0
        return 0.0, 1.0 - t, t
    total = va + vb + vc
    if not total > 0.0:
        return 1.0, 0.0, 0.0
    return va / total, vb / total, vc / total


@compiled
def _outside(simplex: Array, i: int, j: int, k: int, opposite: int) -> bool:
    """Whether the origin is on face i j k, or on the other side of it than the opposite corner."""
    ux, uy, uz = (
        simplex[j, 0] - simplex[i, 0],
        simplex[j, 1] - simplex[i, 1],
        simplex[j, 2] - simplex[i, 2],
    )
    vx, vy, vz = (
        simplex[k, 0] - simplex[i, 0],
        simplex[k, 1] - simplex[i, 1],
        simplex[k, 2] - simplex[i, 2],
    )
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    here = -(nx * simplex[i, 0] + ny * simplex[i, 1] + nz * simplex[i, 2])
    there = (
        nx * (simplex[opposite, 0] - simplex[i, 0])
        + ny * (simplex[opposite, 1] - simplex[i, 1])
        + nz * (simplex[opposite, 2] - simplex[i, 2])
    )
    return bool(here * there <= 0.0)


@compiled
def _weigh_triangle(simplex: Array, i: int, j: int, k: int) -> tuple[float, float, float, float]:
    """Squared distance of the origin to the triangle and the weights of its corners."""
    a, b, c = triangle_weights(
        simplex[i, 0], simplex[i, 1], simplex[i, 2],
        simplex[j, 0], simplex[j, 1], simplex[j, 2],
        simplex[k, 0], simplex[k, 1], simplex[k, 2],
    )  # fmt: skip
    x = a * simplex[i, 0] + b * simplex[j, 0] + c * simplex[k, 0]
    y = a * simplex[i, 1] + b * simplex[j, 1] + c * simplex[k, 1]
    z = a * simplex[i, 2] + b * simplex[j, 2] + c * simplex[k, 2]
    return x * x + y * y + z * z, a, b, c


@compiled
def _weigh(simplex: Array, count: int) -> bool:
    """Sets the weights of the corners in the point nearest to the origin; True: origin inside."""
    for i in range(4):
        simplex[i, 6] = 0.0
    if count == 1:
        simplex[0, 6] = 1.0
    elif count == 2:
        ux, uy, uz = (
            simplex[1, 0] - simplex[0, 0],
            simplex[1, 1] - simplex[0, 1],
            simplex[1, 2] - simplex[0, 2],
        )
        along = -(ux * simplex[0, 0] + uy * simplex[0, 1] + uz * simplex[0, 2])
        long = ux * ux + uy * uy + uz * uz
        t = min(max(along / long, 0.0), 1.0) if long > 0.0 else 0.0
        simplex[0, 6], simplex[1, 6] = 1.0 - t, t
    elif count == 3:
        _, a, b, c = _weigh_triangle(simplex, 0, 1, 2)
        simplex[0, 6], simplex[1, 6], simplex[2, 6] = a, b, c
    else:
        best = math.inf
        for skip in range(4):
            i, j, k = (skip + 1) & 3, (skip + 2) & 3, (skip + 3) & 3
            if _outside(simplex, i, j, k, skip):
                d, a, b, c = _weigh_triangle(simplex, i, j, k)
                if d < best:
                    best = d
                    simplex[i, 6], simplex[j, 6], simplex[k, 6], simplex[skip, 6] = a, b, c, 0.0
        if best == math.inf:
            return True
    return False


@compiled
def _kept(simplex: Array, count: int) -> int:
    """Removes the corners of weight zero; returns how many remain."""
    kept = 0
    for i in range(count):
        if simplex[i, 6] > 0.0:
            if kept != i:
                for c in range(7):
                    simplex[kept, c] = simplex[i, c]
            kept += 1
    return kept


@compiled
def core_distance(  # kernel
    shapes: Shapes, a: int, b: int, a_triangle: int, b_triangle: int, enough: float, simplex: Array
) -> tuple[float, float]:
    """A proven lower bound and the found distance of two cores; both 0 if they overlap.

    Ends early as soon as more than ``enough`` is proven.
    """
    placed = shapes[2]
    vx, vy, vz = (
        placed[a, 9] - placed[b, 9], placed[a, 10] - placed[b, 10], placed[a, 11] - placed[b, 11],
    )  # fmt: skip
    if vx == 0.0 and vy == 0.0 and vz == 0.0:
        vx = 1.0
    proven, found, count = 0.0, math.inf, 0
    for _ in range(MOST_STEPS):
        px, py, pz = support(shapes, a, a_triangle, -vx, -vy, -vz)
        qx, qy, qz = support(shapes, b, b_triangle, vx, vy, vz)
        wx, wy, wz = px - qx, py - qy, pz - qz
        long = math.sqrt(vx * vx + vy * vy + vz * vz)
        proven = max(proven, (vx * wx + vy * wy + vz * wz) / long)
        if found - proven <= GAP or proven > enough:
            break
        known = False
        for i in range(count):
            known |= simplex[i, 0] == wx and simplex[i, 1] == wy and simplex[i, 2] == wz
        if known:
            break
        simplex[count, 0], simplex[count, 1], simplex[count, 2] = wx, wy, wz
        simplex[count, 3], simplex[count, 4], simplex[count, 5] = px, py, pz
        count += 1
        if _weigh(simplex, count):
            if proven > GAP:  # four corners almost in a plane: rounding, not an overlap
                break
            _inner_weights(simplex)
            return 0.0, 0.0
        count = _kept(simplex, count)
        vx = vy = vz = 0.0
        for i in range(count):
            vx += simplex[i, 6] * simplex[i, 0]
            vy += simplex[i, 6] * simplex[i, 1]
            vz += simplex[i, 6] * simplex[i, 2]
        now = math.sqrt(vx * vx + vy * vy + vz * vz)
        if now <= GAP >= proven:
            return 0.0, 0.0
        if now >= found:
            break
        found = now
    for i in range(count, 4):
        simplex[i, 6] = 0.0
    return min(proven, found), found


@compiled
def _inner_weights(simplex: Array) -> None:
    """Sets the weights of the four corners in the origin, which they enclose."""
    total = 0.0
    for skip in range(4):
        i, j, k = (skip + 1) & 3, (skip + 2) & 3, (skip + 3) & 3
        ax, ay, az = simplex[i, 0], simplex[i, 1], simplex[i, 2]
        bx, by, bz = simplex[j, 0], simplex[j, 1], simplex[j, 2]
        cx, cy, cz = simplex[k, 0], simplex[k, 1], simplex[k, 2]
        volume = abs(ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx))
        simplex[skip, 6] = volume
        total += volume
    for skip in range(4):
        simplex[skip, 6] = simplex[skip, 6] / total if total > 0.0 else 0.25


@compiled
def nearest_point(simplex: Array) -> Vector:
    """The point of the first core nearest to the second, from the simplex of the last search."""
    x = y = z = 0.0
    for i in range(4):
        if simplex[i, 6] > 0.0:
            x += simplex[i, 6] * simplex[i, 3]
            y += simplex[i, 6] * simplex[i, 4]
            z += simplex[i, 6] * simplex[i, 5]
    return x, y, z
