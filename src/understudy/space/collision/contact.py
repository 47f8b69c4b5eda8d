"""Contact of two shapes: distance, penetration depth and contact point.

The depth of two overlapping cores comes from the expanding polytope algorithm (EPA). The shortest
vector from the origin to the surface of the Minkowski difference of two convex bodies is the
smallest shift that separates them. The polytope starts as a tetrahedron inside the difference and
is expanded at the face nearest to the origin until it reaches the surface (exactly for polyhedra,
to ``LEFT`` for round bodies).
"""

import math
from typing import NamedTuple

import numpy as np

from understudy.space.collision.distance import Scratch, distance
from understudy.space.collision.gjk import (
    Shapes,
    Vector,
    core_distance,
    nearest_point,
    support,
    triangle_weights,
)
from understudy.space.collision.solids import KIND, MESH, SKIN, Ints, Solids
from understudy.space.collision.world import Placement
from understudy.space.compiled import compiled
from understudy.space.transform import Array

LEFT = 1e-7
"""Largest distance (m) of the polytope from the true surface."""
CORNERS = 160
FACES = 4 * CORNERS
FLAT = 1e-14
"""Six-fold volume (m³) below which four corners count as coplanar."""


@compiled
def _corner(
    shapes: Shapes, a: int, b: int, b_triangle: int, x: float, y: float, z: float,
    corners: Array, i: int,
) -> None:  # fmt: skip
    """Sets corner i: support points of the difference and of the first core along (x, y, z)."""
    px, py, pz = support(shapes, a, -1, x, y, z)
    qx, qy, qz = support(shapes, b, b_triangle, -x, -y, -z)
    corners[i, 0], corners[i, 1], corners[i, 2] = px - qx, py - qy, pz - qz
    corners[i, 3], corners[i, 4], corners[i, 5] = px, py, pz


@compiled
def _normal(corners: Array, i: int, j: int, k: int) -> Vector:
    ux, uy, uz = (
        corners[j, 0] - corners[i, 0], corners[j, 1] - corners[i, 1], corners[j, 2] - corners[i, 2],
    )  # fmt: skip
    vx, vy, vz = (
        corners[k, 0] - corners[i, 0], corners[k, 1] - corners[i, 1], corners[k, 2] - corners[i, 2],
    )  # fmt: skip
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@compiled
def _height(corners: Array, normal: Vector, i: int, top: int) -> float:
    return float(
        normal[0] * (corners[top, 0] - corners[i, 0])
        + normal[1] * (corners[top, 1] - corners[i, 1])
        + normal[2] * (corners[top, 2] - corners[i, 2])
    )


@compiled
def _tetrahedron(  # kernel
    shapes: Shapes, a: int, b: int, b_triangle: int, corners: Array
) -> bool:
    """Sets four corners of the difference; False if it has no volume."""
    _corner(shapes, a, b, b_triangle, 1.0, 0.0, 0.0, corners, 0)
    _corner(shapes, a, b, b_triangle, -1.0, 0.0, 0.0, corners, 1)
    ux, uy, uz = (
        corners[1, 0] - corners[0, 0], corners[1, 1] - corners[0, 1], corners[1, 2] - corners[0, 2],
    )  # fmt: skip
    # Perpendicular to the first edge: the direction with the largest triangle.
    best = -1.0
    for k in range(4):
        if k == 0:
            x, y, z = 0.0, uz, -uy
        elif k == 1:
            x, y, z = 0.0, -uz, uy
        elif k == 2:
            x, y, z = -uz, 0.0, ux
        else:
            x, y, z = uz, 0.0, -ux
        if x == 0.0 and y == 0.0 and z == 0.0:
            continue
        _corner(shapes, a, b, b_triangle, x, y, z, corners, 4)
        nx, ny, nz = _normal(corners, 0, 1, 4)
        area = nx * nx + ny * ny + nz * nz
        if area > best:
            best = area
            for c in range(6):
                corners[2, c] = corners[4, c]
    if best <= FLAT * FLAT:
        return False
    normal = _normal(corners, 0, 1, 2)
    _corner(shapes, a, b, b_triangle, normal[0], normal[1], normal[2], corners, 3)
    up = _height(corners, normal, 0, 3)
    _corner(shapes, a, b, b_triangle, -normal[0], -normal[1], -normal[2], corners, 4)
    down = -_height(corners, normal, 0, 4)
    if down > up:
        for c in range(6):
            corners[3, c] = corners[4, c]
    return max(up, down) > FLAT


@compiled
def _face(
    corners: Array, faces: Ints, planes: Array, f: int, i: int, j: int, k: int, middle: Array
) -> None:
    """Sets face f through three corners, its normal pointing away from the middle."""
    nx, ny, nz = _normal(corners, i, j, k)
    long = math.sqrt(nx * nx + ny * ny + nz * nz)
    faces[f, 0], faces[f, 1], faces[f, 2] = i, j, k
    if long <= FLAT:
        planes[f, 0] = planes[f, 1] = planes[f, 2] = 0.0
        planes[f, 3] = math.inf
        return
    nx, ny, nz = nx / long, ny / long, nz / long
    away = nx * corners[i, 0] + ny * corners[i, 1] + nz * corners[i, 2]
    if away < nx * middle[0] + ny * middle[1] + nz * middle[2]:
        nx, ny, nz, away = -nx, -ny, -nz, -away
    planes[f, 0], planes[f, 1], planes[f, 2], planes[f, 3] = nx, ny, nz, away


@compiled
def _grow(  # kernel
    corners: Array, faces: Ints, planes: Array, count: int, new: int, middle: Array, rim: Ints
) -> int:
    """Adds corner ``new``: replaces the faces it sees by triangles to their rim; the face count."""
    edges = 0
    f = 0
    while f < count:
        sees = (
            planes[f, 0] * corners[new, 0]
            + planes[f, 1] * corners[new, 1]
            + planes[f, 2] * corners[new, 2]
        )
        if sees <= planes[f, 3] + 1e-14:
            f += 1
            continue
        for e in range(3):
            i, j = faces[f, e], faces[f, (e + 1) % 3]
            seen = False
            for r in range(edges):
                if (rim[r, 0] == i and rim[r, 1] == j) or (rim[r, 0] == j and rim[r, 1] == i):
                    edges -= 1
                    rim[r, 0], rim[r, 1] = rim[edges, 0], rim[edges, 1]
                    seen = True
                    break
            if not seen and edges < len(rim):
                rim[edges, 0], rim[edges, 1] = i, j
                edges += 1
        count -= 1
        for c in range(3):
            faces[f, c] = faces[count, c]
        for c in range(4):
            planes[f, c] = planes[count, c]
    for r in range(edges):
        if count < FACES:
            _face(corners, faces, planes, count, rim[r, 0], rim[r, 1], new, middle)
            count += 1
    return count


@compiled
def core_depth(  # kernel
    shapes: Shapes, a: int, b: int, b_triangle: int
) -> tuple[float, Vector, Vector]:
    """Penetration depth of cores a and b, direction that separates b, and a point in the overlap.

    The depth is 0 if the difference has no volume (two lines, two coplanar triangles).
    """
    corners = np.zeros((CORNERS + 5, 6))
    faces, planes = np.zeros((FACES, 3), dtype=np.int64), np.zeros((FACES, 4))
    rim = np.zeros((FACES, 2), dtype=np.int64)
    if not _tetrahedron(shapes, a, b, b_triangle, corners):
        return 0.0, (0.0, 0.0, 0.0), (corners[0, 3], corners[0, 4], corners[0, 5])
    middle = np.zeros(3)
    for i in range(4):
        for c in range(3):
            middle[c] += 0.25 * corners[i, c]
    for skip in range(4):
        i, j, k = (skip + 1) & 3, (skip + 2) & 3, (skip + 3) & 3
        _face(corners, faces, planes, skip, i, j, k, middle)
    count, used = 4, 4
    best = 0
    while True:
        best = 0
        for f in range(count):
            if planes[f, 3] < planes[best, 3]:
                best = f
        x, y, z, away = planes[best, 0], planes[best, 1], planes[best, 2], planes[best, 3]
        _corner(shapes, a, b, b_triangle, x, y, z, corners, used)
        reach = x * corners[used, 0] + y * corners[used, 1] + z * corners[used, 2]
        if reach - away <= LEFT or used == CORNERS or count > FACES - 64:
            break
        count = _grow(corners, faces, planes, count, used, middle, rim)
        used += 1
    i, j, k = faces[best, 0], faces[best, 1], faces[best, 2]
    u, v, w = triangle_weights(
        corners[i, 0], corners[i, 1], corners[i, 2],
        corners[j, 0], corners[j, 1], corners[j, 2],
        corners[k, 0], corners[k, 1], corners[k, 2],
    )  # fmt: skip
    point = (
        u * corners[i, 3] + v * corners[j, 3] + w * corners[k, 3] - 0.5 * away * x,
        u * corners[i, 4] + v * corners[j, 4] + w * corners[k, 4] - 0.5 * away * y,
        u * corners[i, 5] + v * corners[j, 5] + w * corners[k, 5] - 0.5 * away * z,
    )
    return max(reach, 0.0), (x, y, z), point


# ── contact of two shapes ─────────────────────────────────────────────────────────────────────────


class Contact(NamedTuple):
    distance: float
    """Negative if the shapes overlap."""
    depth: float
    """0 if they do not overlap; for meshes a lower bound."""
    point: Array
    """In the middle between both surfaces, in the world frame."""


def shape_contact(solids: Solids, at: Placement, a: int, b: int, scratch: Scratch) -> Contact:
    """Distance, depth and contact point of shapes a and b."""
    if solids.traits[a, KIND] > solids.traits[b, KIND]:
        a, b = b, a
    far, triangle = distance(solids, at.placed, at.ends, a, b, np.inf, np.inf, -1, True, scratch)
    shapes = (solids.traits, solids.sizes, at.placed, solids.points)
    if solids.traits[b, KIND] != MESH:
        triangle = -1
    if solids.traits[a, KIND] == MESH:
        # For two meshes the contact point is a corner of the nearest triangle.
        return Contact(far, max(-far, 0.0), _world(solids, at.placed, b, triangle))
    _, apart = core_distance(shapes, a, b, -1, triangle, np.inf, scratch[2])
    skin_a, skin_b = solids.sizes[a, SKIN], solids.sizes[b, SKIN]
    if apart <= 0.0:
        depth, _, point = core_depth(shapes, a, b, triangle)
        depth += skin_a + skin_b
        return Contact(-depth, depth, np.array(point))
    on_a = np.array(nearest_point(scratch[2]))
    connection = scratch[2][:, 6] @ scratch[2][:, :3]
    outwards = connection / np.linalg.norm(connection)
    point = on_a - 0.5 * connection + 0.5 * (skin_b - skin_a) * outwards
    return Contact(far, max(-far, 0.0), point)


def _world(solids: Solids, placed: Array, i: int, triangle: int) -> Array:
    corner = solids.points[3 * max(triangle, 0)]
    return np.asarray(placed[i, :9].reshape(3, 3) @ corner + placed[i, 9:])
