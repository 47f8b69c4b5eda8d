"""Distance of any two shapes.

The result is never larger than the true distance: kernels for segments, boxes and cylinders are
exact to rounding, searches return a proven lower bound. Overlapping shapes have a negative
distance, which only accounts for their skins; `contact` computes the penetration depth.
"""

import math

import numpy as np

from understudy.space.collision.gjk import SIMPLEX, core_distance
from understudy.space.collision.meshes import (
    DEPTH,
    Segment,
    core_mesh,
    inside_mesh,
    into_frame,
    line_mesh,
    mesh_mesh,
)
from understudy.space.collision.segments import segment_box, segment_cylinder, segment_segment
from understudy.space.collision.solids import (
    CYLINDER,
    FAR,
    FIRST,
    HALF_X,
    HALF_Y,
    HALF_Z,
    HULL,
    KIND,
    MESH,
    ROOT,
    SEGMENT,
    SKIN,
    Ints,
    Solids,
)
from understudy.space.compiled import borrowed, compiled, inlined
from understudy.space.transform import Array

Scratch = tuple[Ints, Array, Array]
Vector = tuple[float, float, float]


def scratch() -> Scratch:
    """Working memory of the kernels: stack of nodes, their distances, a simplex."""
    return np.zeros(DEPTH, dtype=np.int64), np.zeros(DEPTH), np.zeros(SIMPLEX)


@compiled
def lent(solids: Solids) -> Solids:
    """The solids without reference counting; see `compiled.borrowed`."""
    return Solids(
        borrowed(solids.traits), borrowed(solids.sizes), borrowed(solids.axes),
        borrowed(solids.local), borrowed(solids.points), borrowed(solids.nodes),
        borrowed(solids.children),
    )  # fmt: skip


@compiled
def core_point(solids: Solids, placed: Array, i: int) -> Vector:
    """Some point of core i, in the world frame."""
    x = y = z = 0.0
    if solids.traits[i, KIND] >= HULL:
        k = solids.traits[i, FIRST]
        x, y, z = solids.points[k, 0], solids.points[k, 1], solids.points[k, 2]
    return (
        placed[i, 0] * x + placed[i, 1] * y + placed[i, 2] * z + placed[i, 9],
        placed[i, 3] * x + placed[i, 4] * y + placed[i, 5] * z + placed[i, 10],
        placed[i, 6] * x + placed[i, 7] * y + placed[i, 8] * z + placed[i, 11],
    )


@compiled
def encloses(solids: Solids, placed: Array, mesh: int, other: int, stack: Ints) -> bool:
    """Whether some point of the other core is inside the mesh."""
    x, y, z = core_point(solids, placed, other)
    x, y, z = into_frame(placed, mesh, x, y, z)
    return inside_mesh(
        solids.traits, solids.points, solids.nodes, solids.children, mesh, x, y, z, stack
    )


@inlined
def line_distance(  # kernel
    traits: Ints, sizes: Array, placed: Array, ends: Array, i: int, j: int
) -> float:
    """Distance of the cores of segment i and of j: a segment, a box or a cylinder."""
    px, py, pz = ends[i, 0], ends[i, 1], ends[i, 2]
    ux, uy, uz = ends[i, 3] - px, ends[i, 4] - py, ends[i, 5] - pz
    if traits[j, KIND] == SEGMENT:
        qx, qy, qz = ends[j, 0], ends[j, 1], ends[j, 2]
        vx, vy, vz = ends[j, 3] - qx, ends[j, 4] - qy, ends[j, 5] - qz
        square, _, _ = segment_segment(px, py, pz, ux, uy, uz, qx, qy, qz, vx, vy, vz)
    else:
        px, py, pz = px - placed[j, 9], py - placed[j, 10], pz - placed[j, 11]
        a, b, c = placed[j, 0], placed[j, 3], placed[j, 6]
        x, u = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        a, b, c = placed[j, 1], placed[j, 4], placed[j, 7]
        y, v = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        a, b, c = placed[j, 2], placed[j, 5], placed[j, 8]
        z, w = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        hx, hy, hz = sizes[j, HALF_X], sizes[j, HALF_Y], sizes[j, HALF_Z]
        if traits[j, KIND] == CYLINDER:
            square, _ = segment_cylinder(x, y, z, u, v, w, hx, hz)
        else:
            square, _ = segment_box(x, y, z, u, v, w, hx, hy, hz)
    return math.sqrt(square)


@compiled
def _axis_in_mesh(placed: Array, ends: Array, a: int, b: int) -> Segment:
    """Axis of shape a's bounding capsule, in the frame of mesh b."""
    px, py, pz = into_frame(placed, b, ends[a, 0], ends[a, 1], ends[a, 2])
    qx, qy, qz = into_frame(placed, b, ends[a, 3], ends[a, 4], ends[a, 5])
    return px, py, pz, qx - px, qy - py, qz - pz


@compiled
def _to_mesh(
    solids: Solids, placed: Array, ends: Array, a: int, b: int,
    best: float, exact: float, hint: int, scratch: Scratch,
) -> tuple[float, int]:  # fmt: skip
    """Lower bound of the distance of any core a to mesh b, and the nearest triangle."""
    shapes = (solids.traits, solids.sizes, placed, solids.points)
    points, nodes, children = solids.points, solids.nodes, solids.children
    stacks, simplex = (scratch[0], scratch[1]), scratch[2]
    if solids.traits[a, KIND] == MESH:
        d, _, triangle = mesh_mesh(shapes, nodes, children, a, b, best, exact, simplex)
        return d, triangle
    line = _axis_in_mesh(placed, ends, a, b)
    if solids.traits[a, KIND] == SEGMENT:
        root = solids.traits[b, ROOT]
        return line_mesh(points, nodes, children, root, line, best, hint, exact, stacks)
    around = solids.sizes[a, FAR]
    return core_mesh(
        shapes, nodes, children, a, b, line, around, best, exact, stacks, simplex
    )  # fmt: skip


@compiled
def distance(  # kernel
    solids: Solids, placed: Array, ends: Array, a: int, b: int,
    enough: float, exact: float, hint: int, look_inside: bool, scratch: Scratch,
) -> tuple[float, int]:  # fmt: skip
    """Lower bound of the distance of shapes a and b, exact if below ``enough`` and ``exact``.

    ``hint``: nearest triangle of the last call, or -1; the new one is returned. ``look_inside``:
    check whether one shape is completely inside the other's mesh.
    """
    traits, sizes = solids.traits, solids.sizes
    if traits[a, KIND] > traits[b, KIND]:
        a, b = b, a
    skins = sizes[a, SKIN] + sizes[b, SKIN]
    first, second = traits[a, KIND], traits[b, KIND]
    if second == MESH:
        d, hint = _to_mesh(
            solids, placed, ends, a, b, enough + skins, exact + skins, hint, scratch
        )  # fmt: skip
    elif first == SEGMENT and second != HULL:
        d = line_distance(traits, sizes, placed, ends, a, b)
    else:
        shapes = (traits, sizes, placed, solids.points)
        d, _ = core_distance(shapes, a, b, -1, -1, enough + skins, scratch[2])
    if look_inside and second == MESH and d > 0.0:
        hidden = encloses(solids, placed, b, a, scratch[0])
        if not hidden and first == MESH:
            hidden = encloses(solids, placed, a, b, scratch[0])
        if hidden:
            return -d - skins, hint
    return d - skins, hint
