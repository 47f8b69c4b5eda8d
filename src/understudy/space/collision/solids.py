"""Shapes as arrays for the kernels; row i of every array belongs to shape i.

Every shape is a core with a skin: a point or a line segment with a radius is a sphere or a capsule;
boxes, cylinders, hulls and meshes have a skin of zero. The triangles of a mesh are in a tree of
bounding boxes (BVH), built once when the mesh is read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.space.kinematics.forward import frame_row
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh
from understudy.space.transform import Array

Ints = NDArray[np.int64]

SEGMENT, BOX, CYLINDER, HULL, MESH = range(5)

KIND, FIRST, COUNT, ROOT, CLOSED, BODY = range(6)
"""Columns of ``traits``. FIRST and COUNT are rows of ``points`` (three per triangle), ROOT a node,
CLOSED whether a mesh encloses a volume, BODY the body that carries the shape (-1: the world)."""
SKIN, HALF_X, HALF_Y, HALF_Z, FAR, ROUND = range(SIZES := 6)
"""Columns of ``sizes``: skin; half extents of the core (cylinder: radius, radius, half length);
FAR, the radius of the bounding capsule whose axis is ``axes``; ROUND, the radius of the bounding
sphere about the middle of that axis."""


class Solids(NamedTuple):
    """Many shapes as arrays."""

    traits: Ints
    sizes: Array
    axes: Array
    """(n, 6): both ends of the axis of the bounding capsule, in the shape's frame."""
    local: Array
    """(n, 12): the shape's frame in the frame of its carrier."""
    points: Array
    nodes: Array
    """(k, 7): centre, half extents and radius of every node of the mesh trees."""
    children: Ints
    """(k, 2): two child nodes, or -1 - (first triangle) and the number of triangles."""


@dataclass(frozen=True, eq=False)
class Part:
    """A shape with its name and its carrier."""

    name: str
    shape: Shape
    place: Array
    """4×4, in the frame of the carrier."""
    body: int = -1
    link: int = -1


def solids(parts: Sequence[Part]) -> Solids:
    """Converts parts to arrays."""
    traits = np.zeros((len(parts), 6), dtype=np.int64)
    sizes, axes = np.zeros((len(parts), SIZES)), np.zeros((len(parts), 6))
    points: list[Array] = []
    nodes: list[Array] = []
    children: list[Ints] = []
    for i, part in enumerate(parts):
        traits[i, KIND], traits[i, BODY] = _kind(part.shape), part.body
        traits[i, FIRST], traits[i, ROOT] = _total(points), _total(nodes)
        sizes[i, :4], around = _measures(part.shape)
        axes[i], sizes[i, FAR] = _axis(part.shape, *around)
        sizes[i, ROUND] = sizes[i, FAR] + 0.5 * np.linalg.norm(axes[i, 3:] - axes[i, :3])
        if isinstance(part.shape, Hull):
            points.append(part.shape.points)
        elif isinstance(part.shape, TriangleMesh):
            tree = build_tree(part.shape.surface.corners)
            leaf = tree.children[:, 0] < 0
            links = tree.children + np.where(leaf[:, None], (0, 0), traits[i, ROOT])
            links[leaf, 0] -= traits[i, FIRST] // 3
            points.append(tree.corners.reshape(-1, 3))
            nodes.append(tree.nodes)
            children.append(links)
            traits[i, CLOSED] = part.shape.closed
        traits[i, COUNT] = _total(points) - traits[i, FIRST]
        # A triangle is three rows from a multiple of three on: hulls are padded to that.
        points.append(np.zeros((-_total(points) % 3, 3)))
    local = np.array([frame_row(part.place) for part in parts]).reshape(-1, 12)
    return Solids(
        traits, sizes, axes, local,
        np.ascontiguousarray(np.concatenate([np.zeros((0, 3)), *points])),
        np.ascontiguousarray(np.concatenate([np.zeros((0, 7)), *nodes])),
        np.concatenate([np.zeros((0, 2), dtype=np.int64), *children]),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _tree(mesh: TriangleMesh) -> "MeshTree":
    return build_tree(mesh.corners())


def _total(arrays: Iterable[NDArray[np.generic]]) -> int:
    return sum(len(array) for array in arrays)


def _kind(shape: Shape) -> int:
    match shape:
        case Sphere() | Capsule():
            return SEGMENT
        case Box():
            return BOX
        case Cylinder():
            return CYLINDER
        case Hull():
            return HULL
    return MESH


def _measures(shape: Shape) -> tuple[tuple[float, ...], tuple[Array, Array]]:
    """Skin and half extents of the core; centre and half extents of the bounding box."""
    middle = np.zeros(3)
    match shape:
        case Sphere(radius=r):
            return (r, 0.0, 0.0, 0.0), (middle, np.full(3, r))
        case Capsule(radius=r, length=length):
            return (r, 0.0, 0.0, length / 2), (middle, np.array([r, r, length / 2 + r]))
        case Box(size=size):
            half = np.array(size) / 2
            return (0.0, *half), (middle, half)
        case Cylinder(radius=r, length=length):
            return (0.0, r, r, length / 2), (middle, np.array([r, r, length / 2]))
    low, high = shape.bounds()
    half = (high - low) / 2
    return (0.0, *half), ((low + high) / 2, half)


def _axis(shape: Shape, middle: Array, half: Array) -> tuple[Array, float]:
    """Ends of the axis and radius of the bounding capsule."""
    match shape:
        case Sphere(radius=r):
            return np.zeros(6), r
        case Capsule(radius=r, length=length) | Cylinder(radius=r, length=length):
            return np.array([0.0, 0.0, -length / 2, 0.0, 0.0, length / 2]), r
    long = int(np.argmax(half))
    step = np.zeros(3)
    step[long] = half[long]
    across = float(np.linalg.norm(np.delete(half, long)))
    return np.concatenate([middle - step, middle + step]), across


# ── trees of mesh triangles ───────────────────────────────────────────────────────────────────────


LEAF = 2
"""Most triangles in a leaf."""


class MeshTree(NamedTuple):
    corners: Array
    """(m, 3, 3): the triangles in the order of the leaves."""
    nodes: Array
    """(k, 7): centre, half extents, radius; node 0 is the root."""
    children: NDArray[np.int64]
    """(k, 2): two child nodes, or -1 - first triangle and the number of triangles."""


def build_tree(corners: Array) -> MeshTree:
    """Builds the tree by splitting the triangles in half along the longest side, recursively."""
    middles = corners.mean(axis=1)
    nodes: list[Array] = []
    children: list[list[int]] = []
    order: list[NDArray[np.int64]] = []
    laid = 0
    waiting: list[tuple[NDArray[np.int64], int]] = [(np.arange(len(corners)), -1)]
    while waiting:
        chosen, parent = waiting.pop()
        if parent >= 0:
            children[parent][0 if children[parent][0] == 0 else 1] = len(nodes)
        nodes.append(_node(corners[chosen]))
        if len(chosen) <= LEAF:
            children.append([-1 - laid, len(chosen)])
            order.append(chosen)
            laid += len(chosen)
            continue
        span = np.ptp(middles[chosen], axis=0)
        along = middles[chosen, int(np.argmax(span))]
        half = len(chosen) // 2
        ranked = chosen[np.argpartition(along, half)]
        children.append([0, 0])
        waiting += [(ranked[half:], len(nodes) - 1), (ranked[:half], len(nodes) - 1)]
    return MeshTree(corners[np.concatenate(order)], np.array(nodes), np.array(children))


def _node(corners: Array) -> Array:
    points = corners.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    away = float(np.linalg.norm(points - middle, axis=1).max())
    return np.array([*middle, *((high - low) / 2), away])
