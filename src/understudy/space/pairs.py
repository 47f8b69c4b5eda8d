"""The distance of any two shapes, and where and how deep they touch.

What is given back is never more than the true distance: kernels for lines, boxes and cylinders are
exact to rounding, searches give what they have proven. Overlapping shapes have a negative distance,
at least as deep as the skins alone tell; ``depth`` says exactly how deep.
"""

import math

import numpy as np

from understudy.space.compiled import compiled
from understudy.space.gjk import SIMPLEX, core_distance
from understudy.space.meshes import (
    DEPTH,
    core_mesh,
    inside_mesh,
    into_frame,
    line_mesh,
    mesh_mesh,
)
from understudy.space.nearest import segment_box, segment_cylinder, segment_segment
from understudy.space.solids import (
    BOX,
    CYLINDER,
    FAR,
    FIRST,
    HALF_X,
    HALF_Y,
    HALF_Z,
    HULL,
    KIND,
    LINE,
    MESH,
    ROOT,
    SKIN,
    Ints,
    Solids,
)
from understudy.space.transform import Array

Scratch = tuple[Ints, Array, Array]
Vector = tuple[float, float, float]


def scratch() -> Scratch:
    """What the kernels scribble on: nodes that wait, how near they are, a simplex."""
    return np.zeros(DEPTH, dtype=np.int64), np.zeros(DEPTH), np.zeros(SIMPLEX)


@compiled
def axis_of(solids: Solids, placed: Array, i: int) -> tuple[Vector, Vector]:
    """Both ends of the axis of the capsule around shape i, in the world."""
    a = solids.axes
    x, y, z = a[i, 0], a[i, 1], a[i, 2]
    start = (
        placed[i, 0] * x + placed[i, 1] * y + placed[i, 2] * z + placed[i, 9],
        placed[i, 3] * x + placed[i, 4] * y + placed[i, 5] * z + placed[i, 10],
        placed[i, 6] * x + placed[i, 7] * y + placed[i, 8] * z + placed[i, 11],
    )
    x, y, z = a[i, 3], a[i, 4], a[i, 5]
    end = (
        placed[i, 0] * x + placed[i, 1] * y + placed[i, 2] * z + placed[i, 9],
        placed[i, 3] * x + placed[i, 4] * y + placed[i, 5] * z + placed[i, 10],
        placed[i, 6] * x + placed[i, 7] * y + placed[i, 8] * z + placed[i, 11],
    )
    return start, end


@compiled
def core_point(solids: Solids, placed: Array, i: int) -> Vector:
    """Any point of core i, in the world."""
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
    """Whether a point of the other core lies inside the mesh."""
    x, y, z = core_point(solids, placed, other)
    x, y, z = into_frame(placed, mesh, x, y, z)
    return inside_mesh(
        solids.traits, solids.points, solids.nodes, solids.children, mesh, x, y, z, stack
    )


@compiled
def _from_line(
    solids: Solids, placed: Array, a: int, b: int, best: float, exact: float, hint: int,
    scratch: Scratch,
) -> tuple[float, int]:
    """Distance of the cores of a line a and a shape b that a closed form knows, or a mesh."""
    half = solids.sizes[a, HALF_Z]
    ux, uy, uz = 2 * half * placed[a, 2], 2 * half * placed[a, 5], 2 * half * placed[a, 8]
    px, py, pz = (
        placed[a, 9] - 0.5 * ux, placed[a, 10] - 0.5 * uy, placed[a, 11] - 0.5 * uz,
    )  # fmt: skip
    kind = solids.traits[b, KIND]
    if kind == LINE:
        half = solids.sizes[b, HALF_Z]
        vx, vy, vz = 2 * half * placed[b, 2], 2 * half * placed[b, 5], 2 * half * placed[b, 8]
        d = segment_segment(
            px, py, pz, ux, uy, uz,
            placed[b, 9] - 0.5 * vx, placed[b, 10] - 0.5 * vy, placed[b, 11] - 0.5 * vz,
            vx, vy, vz,
        )[0]  # fmt: skip
        return math.sqrt(d), -1
    qx, qy, qz = into_frame(placed, b, px + ux, py + uy, pz + uz)
    px, py, pz = into_frame(placed, b, px, py, pz)
    ux, uy, uz = qx - px, qy - py, qz - pz
    size = solids.sizes
    if kind == BOX:
        d = segment_box(
            px, py, pz, ux, uy, uz, size[b, HALF_X], size[b, HALF_Y], size[b, HALF_Z]
        )[0]  # fmt: skip
        return math.sqrt(d), -1
    if kind == CYLINDER:
        d = segment_cylinder(px, py, pz, ux, uy, uz, size[b, HALF_X], size[b, HALF_Z])[0]
        return math.sqrt(d), -1
    stacks = (scratch[0], scratch[1])
    line = (px, py, pz, ux, uy, uz)
    root = solids.traits[b, ROOT]
    return line_mesh(solids.points, solids.nodes, solids.children, root, line, best, hint, exact, stacks)


@compiled
def _to_mesh(
    solids: Solids, placed: Array, a: int, b: int, best: float, exact: float, scratch: Scratch
) -> tuple[float, int]:
    """Distance of any core a but a line to mesh b."""
    shapes = (solids.traits, solids.sizes, placed, solids.points)
    if solids.traits[a, KIND] == MESH:
        d, _, triangle = mesh_mesh(shapes, solids.nodes, solids.children, a, b, best, exact, scratch[2])
        return d, triangle
    (px, py, pz), (qx, qy, qz) = axis_of(solids, placed, a)
    px, py, pz = into_frame(placed, b, px, py, pz)
    qx, qy, qz = into_frame(placed, b, qx, qy, qz)
    line = (px, py, pz, qx - px, qy - py, qz - pz)
    stacks = (scratch[0], scratch[1])
    return core_mesh(
        shapes, solids.nodes, solids.children, a, b, line, solids.sizes[a, FAR], best, exact,
        stacks, scratch[2],
    )  # fmt: skip


@compiled
def distance(  # kernel
    solids: Solids, placed: Array, a: int, b: int,
    enough: float, exact: float, hint: int, look_inside: bool, scratch: Scratch,
) -> tuple[float, int]:  # fmt: skip
    """A proven distance of shapes a and b, exact where it is below ``enough`` and ``exact``.

    ``hint``: the nearest triangle of the last time; the new one is given back. Without
    ``look_inside`` the caller knows that neither is hidden inside a mesh of the other.
    """
    if solids.traits[a, KIND] > solids.traits[b, KIND]:
        a, b = b, a
    skins = solids.sizes[a, SKIN] + solids.sizes[b, SKIN]
    first, second = solids.traits[a, KIND], solids.traits[b, KIND]
    if first == LINE and second != HULL:
        d, hint = _from_line(solids, placed, a, b, enough + skins, exact + skins, hint, scratch)
    elif second == MESH:
        d, hint = _to_mesh(solids, placed, a, b, enough + skins, exact + skins, scratch)
    else:
        shapes = (solids.traits, solids.sizes, placed, solids.points)
        d, _ = core_distance(shapes, a, b, -1, -1, enough + skins, scratch[2])
    if look_inside and second == MESH and d > 0.0:
        hidden = encloses(solids, placed, b, a, scratch[0])
        if not hidden and first == MESH:
            hidden = encloses(solids, placed, a, b, scratch[0])
        if hidden:
            return -d - skins, hint
    return d - skins, hint
