"""Shapes as arrays for the kernels, and the distance and depth of two convex shapes.

Row i of every array belongs to shape i.

Every shape is a core with a skin: a point or a line segment with a radius is a sphere or a capsule;
boxes, cylinders, hulls and meshes have a skin of zero. The triangles of a mesh are in a tree of
bounding boxes (BVH), built once for each mesh.

The distance comes from the GJK algorithm (Gilbert, Johnson, Keerthi) on the Minkowski difference of
the cores, which contains the origin if and only if they overlap. Every step searches along the
shortest known connection of the two cores. The plane through the furthest point in that direction
separates them, so each step also *proves* a distance: the returned lower bound holds even if the
search ends early.
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


# ── distance and depth of two convex shapes ───────────────────────────────────────────────────────


SIMPLEX = (4, 7)
"""Shape of the simplex array: per row a point of the Minkowski difference, the point of the first
core, and its weight."""
GAP = 1e-10
"""Difference of the proven and the found distance (m) at which the search ends: far above the
rounding of coordinates of some metres, far below every clearance that is asked for."""
MOST_STEPS = 100
"""Polyhedra end by themselves; a round core comes nearer with every step and could go on."""

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
    # The direction is in the frame of the core now. A skin is no part of the core: callers subtract
    # it from the distance, so that a sphere is a point here and ends in one step.
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
def triangle_weights(a: Vector, b: Vector, c: Vector) -> Vector:  # kernel
    """The weights of a, b, c in the point of their triangle nearest to the origin."""
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    # The regions of a triangle (Ericson, Real-Time Collision Detection, 5.1.5): first the corners,
    # then the edges, then the inside. d1 … d6 are projections of the corners on two edges.
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
    if not total > 0.0:  # three corners in a line: any of them is a point of the triangle
        return 1.0, 0.0, 0.0
    return va / total, vb / total, vc / total


@compiled
def _outside(simplex: Array, i: int, j: int, k: int, opposite: int) -> bool:
    """Whether the origin is on face i j k, or on the other side of it than the opposite corner."""
    ux, uy = simplex[j, 0] - simplex[i, 0], simplex[j, 1] - simplex[i, 1]
    uz = simplex[j, 2] - simplex[i, 2]
    vx, vy = simplex[k, 0] - simplex[i, 0], simplex[k, 1] - simplex[i, 1]
    vz = simplex[k, 2] - simplex[i, 2]
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
        (simplex[i, 0], simplex[i, 1], simplex[i, 2]),
        (simplex[j, 0], simplex[j, 1], simplex[j, 2]),
        (simplex[k, 0], simplex[k, 1], simplex[k, 2]),
    )
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
        # The nearest point lies on a face with the origin in front of it. All of them are compared,
        # since a flat tetrahedron has the origin in front of several.
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
        placed[a, 9] - placed[b, 9],
        placed[a, 10] - placed[b, 10],
        placed[a, 11] - placed[b, 11],
    )
    if vx == 0.0 and vy == 0.0 and vz == 0.0:  # any direction serves to begin with
        vx = 1.0
    proven, found, count = 0.0, math.inf, 0
    for _ in range(MOST_STEPS):
        px, py, pz = support(shapes, a, a_triangle, -vx, -vy, -vz)
        qx, qy, qz = support(shapes, b, b_triangle, vx, vy, vz)
        wx, wy, wz = px - qx, py - qy, pz - qz
        long = math.sqrt(vx * vx + vy * vy + vz * vz)
        # No point of the difference lies less far along v than w. The whole difference lies beyond
        # the plane through w across v, so that the plane's distance from the origin is a lower
        # bound. It may fall from one step to the next; the best one holds.
        proven = max(proven, (vx * wx + vy * wy + vz * wz) / long)
        if found - proven <= GAP or proven > enough:
            break
        known = False
        for i in range(count):
            known |= simplex[i, 0] == wx and simplex[i, 1] == wy and simplex[i, 2] == wz
        if known:  # no point lies further: the search would repeat itself
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
        if now >= found:  # rounding: the true distance falls with every step
            break
        found = now
    for i in range(count, 4):  # `nearest_point` reads all four rows
        simplex[i, 6] = 0.0
    return min(proven, found), found


@compiled
def _inner_weights(simplex: Array) -> None:
    """Sets the weights of the four corners in the origin, which they enclose."""
    # The weight of a corner is the share of the volume that the origin and the other three span.
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


# ── depth ─────────────────────────────────────────────────────────────────────────────────────────
#
# The depth of two overlapping cores comes from the expanding polytope algorithm (EPA). The shortest
# vector from the origin to the surface of the Minkowski difference of two convex bodies is the
# smallest shift that separates them. The polytope starts as a tetrahedron inside the difference and
# is expanded at the face nearest to the origin until it reaches the surface (exactly for polyhedra,
# to ``LEFT`` for round bodies).


LEFT = 1e-7
"""Largest distance (m) of the polytope from the true surface."""
CORNERS = 160
FACES = 4 * CORNERS
FLAT = 1e-14
"""Six-fold volume (m³) below which four corners count as coplanar."""


@compiled
def _corner(
    shapes: Shapes,
    a: int,
    b: int,
    b_triangle: int,
    x: float,
    y: float,
    z: float,
    corners: Array,
    i: int,
) -> None:
    """Sets corner i: support points of the difference and of the first core along (x, y, z)."""
    px, py, pz = support(shapes, a, -1, x, y, z)
    qx, qy, qz = support(shapes, b, b_triangle, -x, -y, -z)
    corners[i, 0], corners[i, 1], corners[i, 2] = px - qx, py - qy, pz - qz
    corners[i, 3], corners[i, 4], corners[i, 5] = px, py, pz


@compiled
def _normal(corners: Array, i: int, j: int, k: int) -> Vector:
    ux, uy = corners[j, 0] - corners[i, 0], corners[j, 1] - corners[i, 1]
    uz = corners[j, 2] - corners[i, 2]
    vx, vy = corners[k, 0] - corners[i, 0], corners[k, 1] - corners[i, 1]
    vz = corners[k, 2] - corners[i, 2]
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
    # Each corner is the furthest one in a direction across the corners before it: a thin difference
    # gives a thin tetrahedron, but not a flat one by chance.
    _corner(shapes, a, b, b_triangle, 1.0, 0.0, 0.0, corners, 0)
    _corner(shapes, a, b, b_triangle, -1.0, 0.0, 0.0, corners, 1)
    ux, uy = corners[1, 0] - corners[0, 0], corners[1, 1] - corners[0, 1]
    uz = corners[1, 2] - corners[0, 2]
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
        # The nearest face is inside the difference, so ``away`` is a lower bound of the depth. A
        # shift by ``reach`` along its normal separates the cores: an upper bound, which is returned
        # if there is no room for further corners.
        reach = x * corners[used, 0] + y * corners[used, 1] + z * corners[used, 2]
        if reach - away <= LEFT or used == CORNERS or count > FACES - 64:
            break
        count = _grow(corners, faces, planes, count, used, middle, rim)
        used += 1
    i, j, k = faces[best, 0], faces[best, 1], faces[best, 2]
    u, v, w = triangle_weights(
        (corners[i, 0], corners[i, 1], corners[i, 2]),
        (corners[j, 0], corners[j, 1], corners[j, 2]),
        (corners[k, 0], corners[k, 1], corners[k, 2]),
    )
    point = (
        u * corners[i, 3] + v * corners[j, 3] + w * corners[k, 3] - 0.5 * away * x,
        u * corners[i, 4] + v * corners[j, 4] + w * corners[k, 4] - 0.5 * away * y,
        u * corners[i, 5] + v * corners[j, 5] + w * corners[k, 5] - 0.5 * away * z,
    )
    return max(reach, 0.0), (x, y, z), point
