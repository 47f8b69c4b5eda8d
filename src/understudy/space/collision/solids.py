"""Shapes as arrays for the kernels; row i of every array belongs to shape i.

Every shape is a core with a skin: a point or a line segment with a radius is a sphere or a capsule;
boxes, cylinders, hulls and meshes have a skin of zero. The triangles of a mesh are in a tree of
bounding boxes (BVH), built once for each mesh.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import frame_row
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
    """Converts parts to arrays; the geometry of hulls and meshes is stored once for all worlds."""
    traits = np.zeros((len(parts), 6), dtype=np.int64)
    sizes, axes = np.zeros((len(parts), SIZES)), np.zeros((len(parts), 6))
    store = geometry([p.shape for p in parts if isinstance(p.shape, Hull | TriangleMesh)])
    for i, part in enumerate(parts):
        traits[i, KIND], traits[i, BODY] = _kind(part.shape), part.body
        sizes[i, :4], around = _measures(part.shape)
        axes[i], sizes[i, FAR] = _axis(part.shape, *around)
        sizes[i, ROUND] = sizes[i, FAR] + 0.5 * np.linalg.norm(axes[i, 3:] - axes[i, :3])
        if isinstance(part.shape, Hull | TriangleMesh):
            traits[i, FIRST], traits[i, COUNT], traits[i, ROOT] = store.places[part.shape]
        if isinstance(part.shape, TriangleMesh):
            traits[i, CLOSED] = part.shape.closed
    local = np.array([frame_row(part.place) for part in parts]).reshape(-1, 12)
    return Solids(traits, sizes, axes, local, store.points, store.nodes, store.children)


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


# ── the geometry of hulls and meshes ──────────────────────────────────────────────────────────────


class Geometry:
    """Points and trees of many shapes, one after the other. Worlds refer to them by row, so that a
    change around an arm copies no geometry. Rows are written once and never changed: when a store
    is full, a new one takes its place, and worlds that refer to the old one keep it."""

    def __init__(self, points: int, nodes: int) -> None:
        self.points = np.zeros((points, 3))
        self.nodes = np.zeros((nodes, 7))
        self.children: Ints = np.zeros((nodes, 2), dtype=np.int64)
        self.places: WeakKeyDictionary[Hull | TriangleMesh, tuple[int, int, int]]
        self.places = WeakKeyDictionary()
        self._used, self._used_nodes = 0, 0

    def has_room(self, points: int, nodes: int) -> bool:
        return self._used + points <= len(self.points) and self._used_nodes + nodes <= len(
            self.nodes
        )

    def put(self, shape: Hull | TriangleMesh) -> None:
        first, root = self._used, self._used_nodes
        if isinstance(shape, TriangleMesh):
            points = self._put_tree(tree_of(shape), first, root)
        else:
            points = shape.points
        self.points[first : first + len(points)] = points
        self._used += _room(shape)[0]
        self.places[shape] = first, len(points), root

    def _put_tree(self, tree: "MeshTree", first: int, root: int) -> Array:
        leaf = tree.children[:, 0] < 0
        links = tree.children + np.where(leaf[:, None], (0, 0), root)
        links[leaf, 0] -= first // 3
        end = self._used_nodes = root + len(links)
        self.nodes[root:end], self.children[root:end] = tree.nodes, links
        return tree.corners.reshape(-1, 3)


SMALLEST_STORE = 16_384
"""Points in the first store."""
_store = Geometry(SMALLEST_STORE, SMALLEST_STORE)
_storing = Lock()


def geometry(shapes: Sequence[Hull | TriangleMesh]) -> Geometry:
    """A store that has all these shapes. Another thread may store shapes at the same time."""
    global _store
    store = _store
    if all(shape in store.places for shape in shapes):
        return store
    with _storing:
        store = _store
        new = [shape for shape in dict.fromkeys(shapes) if shape not in store.places]
        if not store.has_room(*_rooms(new)):
            new = [*dict.fromkeys([*store.places, *shapes])]
            points, nodes = _rooms(new)
            store = Geometry(max(2 * points, SMALLEST_STORE), max(2 * nodes, SMALLEST_STORE))
        for shape in new:
            store.put(shape)
        _store = store
        return store


def _rooms(shapes: Sequence[Hull | TriangleMesh]) -> tuple[int, int]:
    rooms = [_room(shape) for shape in shapes]
    return sum(points for points, _ in rooms), sum(nodes for _, nodes in rooms)


def _room(shape: Hull | TriangleMesh) -> tuple[int, int]:
    """Rows of points and nodes of a shape. A triangle is three rows from a multiple of three on:
    hulls are padded to that."""
    if isinstance(shape, Hull):
        return len(shape.points) + -len(shape.points) % 3, 0
    tree = tree_of(shape)
    return 3 * len(tree.corners), len(tree.nodes)


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


_trees: WeakKeyDictionary[TriangleMesh, MeshTree] = WeakKeyDictionary()
"""The trees of the meshes that are in use: a world is built anew at every change around an arm."""


def tree_of(mesh: TriangleMesh) -> MeshTree:
    """The tree of a mesh, built once."""
    if mesh not in _trees:
        keep_tree(mesh, build_tree(mesh.surface.corners))
    return _trees[mesh]


def keep_tree(mesh: TriangleMesh, tree: MeshTree) -> None:
    """Uses a tree that was built elsewhere."""
    _trees[mesh] = tree


def build_tree(corners: Array) -> MeshTree:
    """Builds the tree by splitting the triangles in half along the longest side, recursively."""
    given = np.ascontiguousarray(corners, dtype=np.float64)
    order = np.arange(len(given))
    nodes, children = np.zeros((2 * len(given), 7)), np.zeros((2 * len(given), 2), dtype=np.int64)
    count = split(given, given.mean(axis=1), order, nodes, children)
    return MeshTree(given[order], nodes[:count].copy(), children[:count].copy())


@compiled
def split(corners: Array, middles: Array, order: Ints, nodes: Array, children: Ints) -> int:
    """Orders the triangles by leaves and fills the nodes, depth first; returns their number."""
    stack = np.empty((128, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, len(order), -1
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        begin, end, parent = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        if parent >= 0:
            children[parent, 0 if children[parent, 0] == 0 else 1] = count
        _bound(corners, order, begin, end, nodes, count)
        if end - begin <= LEAF:
            children[count, 0], children[count, 1] = -1 - begin, end - begin
        else:
            half = begin + (end - begin) // 2
            _select(middles, order, begin, end, half, _longest_side(middles, order, begin, end))
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = half, end, count
            waiting += 1
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = begin, half, count
            waiting += 1
        count += 1
    return count


@compiled
def _bound(corners: Array, order: Ints, begin: int, end: int, nodes: Array, node: int) -> None:
    """Centre, half extents and radius about the centre of some triangles."""
    for axis in range(3):
        low, high = np.inf, -np.inf
        for k in range(begin, end):
            for corner in range(3):
                value = corners[order[k], corner, axis]
                low, high = min(low, value), max(high, value)
        nodes[node, axis], nodes[node, 3 + axis] = (low + high) / 2, (high - low) / 2
    away = 0.0
    for k in range(begin, end):
        for corner in range(3):
            x = corners[order[k], corner, 0] - nodes[node, 0]
            y = corners[order[k], corner, 1] - nodes[node, 1]
            z = corners[order[k], corner, 2] - nodes[node, 2]
            away = max(away, x * x + y * y + z * z)
    nodes[node, 6] = math.sqrt(away)


@compiled
def _longest_side(middles: Array, order: Ints, begin: int, end: int) -> int:
    longest, best = 0, -1.0
    for axis in range(3):
        low, high = np.inf, -np.inf
        for k in range(begin, end):
            value = middles[order[k], axis]
            low, high = min(low, value), max(high, value)
        if high - low > best:
            longest, best = axis, high - low
    return longest


@compiled
def _select(middles: Array, order: Ints, begin: int, end: int, half: int, axis: int) -> None:
    """Reorders a range so that no triangle before ``half`` lies beyond one after it (quickselect
    with a pivot from the middle of three)."""
    low, high = begin, end - 1
    while low < high:
        a, b = middles[order[low], axis], middles[order[(low + high) // 2], axis]
        c = middles[order[high], axis]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while middles[order[i], axis] < pivot:
                i += 1
            while middles[order[j], axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if half <= j:
            high = j
        elif half >= i:
            low = i
        else:
            return
