"""Objects of a cell: shapes with a name and a pose.

`CollisionObject` has the field names of the design documents, in metres. `space.model.environment`
reads millimetres and degrees from cell files. `near` finds the points of a measured cloud that a
shape explains.
"""

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import product
from typing import Any
from weakref import WeakValueDictionary
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ConfigError, needs
from understudy.space.model.appearance import PLAIN, Appearance
from understudy.space.model.robot import Box, Capsule, Cylinder, Geometry, Mesh, Sphere, Vector
from understudy.space.model.surface import Surface, repaired
from understudy.space.transform import Array, is_rigid

Ints = NDArray[np.int64]
UNIT = re.compile(rb"<unit\b[^>]*\bmeter\s*=\s*[\"']([0-9.eE+-]+)[\"']")
"""Metres per unit of a DAE file."""
FARTHEST = 1000.0
"""Metres: largest size and coordinate of an object; larger numbers would lose precision."""


@dataclass(frozen=True, eq=False)
class Hull:
    """Convex hull of the points (n, 3)."""

    points: Array

    def bounds(self) -> tuple[Array, Array]:
        return self.points.min(axis=0), self.points.max(axis=0)


MOST_BOUNDS = 8


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Vertices (n, 3) and triangles (m, 3), each with three vertex indices."""

    vertices: Array
    triangles: Ints

    def bounds(self) -> tuple[Array, Array]:
        return self.turned_bounds(np.eye(3))

    def turned_bounds(self, turn: Array) -> tuple[Array, Array]:
        """The bounds of the mesh after a rotation (3×3); those of the last rotations are kept."""
        key = turn.tobytes()
        if key not in self._bounds:
            while len(self._bounds) >= MOST_BOUNDS:
                self._bounds.pop(next(iter(self._bounds)))
            points = self.used_points @ turn.T
            self._bounds[key] = points.min(axis=0), points.max(axis=0)
        return self._bounds[key]

    @cached_property
    def _bounds(self) -> dict[bytes, tuple[Array, Array]]:
        return {}

    @cached_property
    def used_points(self) -> Array:
        """The vertices that are corners of triangles."""
        return np.asarray(self.vertices[np.unique(self.triangles)])

    def corners(self) -> Array:
        """(m, 3, 3): the corners of every triangle."""
        return np.asarray(self.vertices[self.triangles])

    @cached_property
    def surface(self) -> Surface:
        """The triangles with consistent winding and without small gaps."""
        return repaired(self.vertices, self.triangles)

    @cached_property
    def outer_hull(self) -> "Hull":
        """A convex hull that contains the mesh: its own, or a simpler one around it."""
        return _outer_hull(self.used_points)

    @property
    def closed(self) -> bool:
        """Whether the mesh encloses a volume, small gaps closed."""
        return self.surface.closed

    @property
    def has_openings(self) -> bool:
        """Whether a piece of the mesh has larger openings: only its surface can be touched."""
        return self.surface.open_pieces > 0


MOST_HULL_POINTS = 2000
"""Corners of an object of the type convex: every distance to it looks at all of them."""


def hull_corners(points: Array) -> Array:
    """The points that are corners of the convex hull of all points; raises a ConfigError if they
    are too many. Without scipy, and if all points are in one plane, these are all points."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        corners = points
    else:
        try:
            corners = points[np.sort(ConvexHull(points).vertices)] if len(points) > 4 else points
        except QhullError:
            corners = np.unique(points, axis=0)
    if len(corners) > MOST_HULL_POINTS:
        allowed = f"a convex hull has at most {MOST_HULL_POINTS}: simplify it, or use type mesh"
        raise ConfigError("too many corners", value=len(corners), allowed=allowed)
    return corners


def hull_triangles(points: Array) -> Ints | None:
    """Triangles of the convex hull, (m, 3) numbers of points, in no order around it; None without
    scipy, or if all points are in one plane."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        return None
    try:
        return np.asarray(ConvexHull(points).simplices, dtype=np.int64)
    except QhullError:
        return None


MOST_CORNERS = 150
"""Corners of a convex hull; a hull with more is replaced by a simpler one around it."""
DIRECTIONS = 72
HULL_MARGIN = 1e-6
"""By how much (m) the simpler hull is larger, against rounding."""


def _outer_hull(points: Array) -> Hull:
    """A convex hull that contains the points: their own, or a simpler one around it."""
    try:
        from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError
    except ImportError:
        return Hull(points)
    try:
        corners = points[ConvexHull(points).vertices]
        if len(corners) <= MOST_CORNERS:
            return Hull(corners)
        normals = _directions()
        planes = np.column_stack([normals, -(corners @ normals.T).max(axis=0) - HULL_MARGIN])
        around = HalfspaceIntersection(planes, corners.mean(axis=0))
        return Hull(np.unique(around.intersections, axis=0))
    except QhullError:  # all points in one plane
        return Hull(points)


def _directions() -> Array:
    """Directions spread evenly over the sphere (Fibonacci), and those of the axes."""
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + np.sqrt(5.0)) * k
    r = np.sqrt(1.0 - z * z)
    return np.vstack(
        [np.column_stack([r * np.cos(turn), r * np.sin(turn), z]), np.eye(3), -np.eye(3)]
    )


Shape = Box | Sphere | Cylinder | Capsule | Hull | TriangleMesh


def bounds_of(shape: Shape) -> tuple[Array, Array]:
    """Lowest and highest corner of the box around a shape, in its own frame."""
    match shape:
        case Box(size=size):
            half = np.array(size) / 2.0
        case Sphere(radius=r):
            half = np.full(3, r)
        case Cylinder(radius=r, length=length):
            half = np.array([r, r, length / 2.0])
        case Capsule(radius=r, length=length):
            half = np.array([r, r, length / 2.0 + r])
        case _:
            return shape.bounds()
    return -half, half


def box_corners(low: Array, high: Array) -> Array:
    """(8, 3): the corners of the box between two corners; z changes first, x last."""
    return np.array(list(product(*zip(low, high, strict=True))), dtype=np.float64)


class ObjectType(StrEnum):
    BOX = "box"
    CYLINDER = "cylinder"
    SPHERE = "sphere"
    CAPSULE = "capsule"
    CONVEX = "convex"
    MESH = "mesh"


@dataclass(frozen=True, eq=False, kw_only=True)
class CollisionObject:
    """A named object. Which sizes apply depends on its type; all are metres.

    ``height`` of a cylinder is its length along z, of a capsule the straight part of it.
    ``vertices`` are the points of a convex hull or of a mesh, ``indices`` the mesh's triangles.
    """

    type: ObjectType
    name: str
    transform: Array = field(default_factory=lambda: np.eye(4))
    dimensions: Vector = (0.0, 0.0, 0.0)
    radius: float = 0.0
    height: float = 0.0
    vertices: ArrayLike = ()
    indices: ArrayLike = ()
    look: Appearance = PLAIN

    @cached_property
    def shape(self) -> Shape:
        """The shape; raises a ConfigError if a size is missing or wrong."""
        match ObjectType(self.type):
            case ObjectType.BOX:
                x, y, z = (self._size("dimensions", side) for side in self.dimensions)
                return Box((x, y, z))
            case ObjectType.SPHERE:
                return Sphere(self._size("radius", self.radius))
            case ObjectType.CYLINDER:
                return Cylinder(
                    self._size("radius", self.radius), self._size("height", self.height)
                )
            case ObjectType.CAPSULE:
                return Capsule(self._size("radius", self.radius), self._straight())
            case ObjectType.CONVEX:
                return Hull(self._points())
        return _mesh(self._points(), self.indices, self.name)

    @cached_property
    def place(self) -> Array:
        at = np.asarray(self.transform, dtype=np.float64)
        if at.shape != (4, 4) or not is_rigid(at):
            raise ConfigError(
                "a transform is a rotation and a translation",
                key=f"{self.name}.transform",
                allowed="a rigid 4×4 matrix",
            )
        return at

    def _size(self, key: str, value: float) -> float:
        if not 0 < value <= FARTHEST:
            allowed = f"above 0 and at most {FARTHEST:g} m"
            raise ConfigError("wrong size", key=f"{self.name}.{key}", value=value, allowed=allowed)
        return float(value)

    def _straight(self) -> float:
        """Length of a capsule's straight part; 0 makes it a sphere."""
        return self._size("height", self.height) if self.height != 0 else 0.0

    def _points(self) -> Array:
        points = np.asarray(self.vertices, dtype=np.float64)
        if points.ndim != 2 or points.shape[1:] != (3,) or not (np.abs(points) <= FARTHEST).all():
            allowed = f"rows of x, y, z within {FARTHEST:g} m"
            raise ConfigError("wrong points", key=f"{self.name}.vertices", allowed=allowed)
        return points


def _mesh(points: Array, indices: ArrayLike, name: str) -> TriangleMesh:
    triangles = np.asarray(indices, dtype=np.int64).reshape(-1, 3)
    if not len(triangles) or triangles.min() < 0 or triangles.max() >= len(points):
        raise ConfigError(
            "a mesh needs triangles, three vertex indices each",
            key=f"{name}.indices",
            allowed=f"rows of three indices 0…{len(points) - 1}",
        )
    return shared_mesh(points, triangles)


_meshes: WeakValueDictionary[bytes, TriangleMesh] = WeakValueDictionary()


def shared_mesh(vertices: Array, triangles: Ints) -> TriangleMesh:
    """One mesh for all objects with these vertices and triangles, as long as one of them exists:
    its surface and its tree are made once."""
    mesh = TriangleMesh(vertices, triangles)
    return _meshes.setdefault(_content(mesh), mesh)


def prepared_mesh(vertices: Array, triangles: Ints, surface: Surface, hull: Hull) -> TriangleMesh:
    """The mesh of `shared_mesh`, with a surface and a hull that were made elsewhere."""
    mesh = shared_mesh(vertices, triangles)
    mesh.__dict__.setdefault("surface", surface)  # the value of the cached property
    mesh.__dict__.setdefault("outer_hull", hull)
    return mesh


def is_prepared(vertices: Array, triangles: Ints) -> bool:
    """Whether the surface of this mesh is repaired already."""
    known = _meshes.get(_content(TriangleMesh(vertices, triangles)))
    return known is not None and "surface" in known.__dict__


def _content(mesh: TriangleMesh) -> bytes:
    found = blake2b(digest_size=20)
    for array in (mesh.vertices, mesh.triangles):
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def as_object(name: str, shape: Shape, transform: Array) -> CollisionObject:
    """Wraps a shape as a named object."""
    plain = CollisionObject(type=ObjectType.BOX, name=name, transform=transform)
    match shape:
        case Box(size=size):
            return replace(plain, dimensions=size)
        case Sphere(radius=r):
            return replace(plain, type=ObjectType.SPHERE, radius=r)
        case Cylinder(radius=r, length=h):
            return replace(plain, type=ObjectType.CYLINDER, radius=r, height=h)
        case Capsule(radius=r, length=h):
            return replace(plain, type=ObjectType.CAPSULE, radius=r, height=h)
        case Hull(points=points):
            return replace(plain, type=ObjectType.CONVEX, vertices=points)
    mesh = ObjectType.MESH
    return replace(plain, type=mesh, vertices=shape.vertices, indices=shape.triangles)


Meshes = Mapping[str, TriangleMesh]
"""Loaded meshes by the file name in the configuration."""


def unique(objects: Sequence[CollisionObject]) -> tuple[CollisionObject, ...]:
    """The objects as a tuple; raises a ConfigError if a name is used twice."""
    seen = set[str]()
    for thing in objects:
        if thing.name in seen:
            raise ConfigError(
                "the name is used twice",
                key="objects",
                value=thing.name,
                allowed="a name of its own for each",
            )
        seen.add(thing.name)
    return tuple(objects)


ReadMesh = Callable[[bytes, str, float], TriangleMesh]
"""Makes a mesh of the bytes of a file: with the ending of its name, and metres per unit."""


@lru_cache(maxsize=256)
def mesh_from_bytes(data: bytes, file_type: str, scale: float = 1.0) -> TriangleMesh:
    """Reads the triangles of an STL, OBJ, PLY, DAE or GLB file; ``scale``: metres per unit."""
    vertices: list[Array] = []
    triangles: list[Ints] = []
    scene = load_scene(data, file_type)
    check_triangles(sum(len(found.faces) for found in scene))
    for found in scene:
        triangles.append(np.array(found.faces, dtype=np.int64) + sum(map(len, vertices)))
        vertices.append(np.array(found.vertices, dtype=np.float64) * scale)
    if not any(map(len, triangles)):
        raise ConfigError("the mesh has no triangles", value=file_type)
    return TriangleMesh(np.concatenate(vertices), np.concatenate(triangles))


def load_scene(data: bytes, file_type: str) -> list[Any]:
    """The meshes of a file as trimesh reads them, each in its place; raises a ConfigError."""
    kind = file_type.lower().lstrip(".")
    check_mesh_file(data, kind)
    try:
        import trimesh

        if kind == "dae":
            import collada  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"a mesh in a {kind.upper()} file {needs('trimesh', 'pycollada', 'scipy')}"
        ) from None
    try:
        stream = trimesh.util.wrap_as_stream(data)
        scene: Any = trimesh.load(stream, file_type=kind, force="scene")
        check_scene(scene)
        meshes = [each for each in scene.dump() if hasattr(each, "faces")]
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"not a mesh: {error}", value=file_type) from error
    unit = UNIT.search(data) if kind == "dae" else None
    if unit is not None:
        for each in meshes:
            each.vertices = np.asarray(each.vertices) * float(unit.group(1))
    return meshes


def shape_of(geometry: Geometry, meshes: Meshes, link: str) -> Shape:
    """The shape of a link's geometry; a mesh is looked up and scaled as the URDF says."""
    if not isinstance(geometry, Mesh):
        return geometry
    if geometry.filename not in meshes:
        raise ConfigError(
            "the mesh file was not loaded", key=f"link '{link}'", value=geometry.filename
        )
    return scaled(meshes[geometry.filename], geometry.scale)


@lru_cache(maxsize=256)
def scaled(mesh: TriangleMesh, scale: Vector) -> TriangleMesh:
    """The same object for the same mesh and scale, so that its tree and hull are made once."""
    return TriangleMesh(mesh.vertices * np.array(scale), mesh.triangles)


# ── limits of mesh files ──────────────────────────────────────────────────────────────────────────
#
# A small file can describe a huge scene: counts without data, or one mesh that stands in a thousand
# places, each of which stands in a thousand places. `check_mesh_file` adds up what the file itself
# says, before it is read; `check_scene` what was read, before it is copied to its places.


MOST_TRIANGLES = 250_000
"""Triangles of a mesh."""
MOST_NODES = 10_000
"""Places in a DAE or GLB file in which its meshes stand."""
_DAE = "{http://www.collada.org/2005/11/COLLADASchema}"


def check_triangles(count: int, most: int = MOST_TRIANGLES, of: str = "a mesh") -> None:
    """Raises a ConfigError if there are too many triangles."""
    if count > most:
        raise ConfigError(
            "too many triangles", value=count, allowed=f"{of} has at most {most}: simplify it"
        )


def check_nodes(count: int) -> None:
    if count > MOST_NODES:
        allowed = f"meshes of one file stand in at most {MOST_NODES} places"
        raise ConfigError("too many nodes", value=count, allowed=allowed)


def check_mesh_file(data: bytes, kind: str) -> None:
    """Raises a ConfigError if the file is of another kind, or describes too much."""
    if kind not in CHECKS:
        allowed = ", ".join(name.upper() for name in CHECKS)
        raise ConfigError("meshes of this kind are not read", value=kind, allowed=allowed)
    CHECKS[kind](data)


def check_scene(scene: Any) -> None:
    """Raises a ConfigError if the meshes of a trimesh scene, each in its places, are too much."""
    nodes = scene.graph.nodes_geometry
    check_nodes(len(nodes))
    sizes = {name: len(getattr(each, "faces", ())) for name, each in scene.geometry.items()}
    check_triangles(sum(sizes[scene.graph[node][1]] for node in nodes))


def _stl(data: bytes) -> None:
    """84 bytes and 50 for each triangle; or a text with a line for each."""
    stated = struct.unpack_from("<I", data, 80)[0] if len(data) >= 84 else 0
    binary = len(data) == 84 + 50 * stated
    check_triangles(stated if binary else data.count(b"endfacet"))


def _obj(data: bytes) -> None:
    check_triangles(data.count(b"\nf "))


def _ply(data: bytes) -> None:
    """Its header states the rows of each element; a row has at least one byte."""
    header = data.partition(b"end_header")[0]
    for line in header.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == b"element" and words[2].isdigit():
            if words[1] == b"face":
                check_triangles(int(words[2]))
            if int(words[2]) > len(data):
                rows = f"at most {len(data)}, the bytes of the file"
                raise ConfigError("its header states too many rows", value=line, allowed=rows)


def _glb(data: bytes) -> None:
    """The counts of the JSON chunk; an accessor without data would be filled with zeros."""
    try:
        size = struct.unpack_from("<I", data, 12)[0]
        tree = json.loads(data[20 : 20 + size])
        accessors = [int(each.get("count", 0)) for each in tree.get("accessors", ())]
        nodes = tree.get("nodes", [])
        sizes = [_glb_triangles(mesh, accessors) for mesh in tree.get("meshes", ())]
        total = sum(sizes[node["mesh"]] for node in nodes if "mesh" in node)
    except (struct.error, ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
        raise ConfigError(f"not a mesh: {type(problem).__name__} in its JSON chunk") from None
    check_nodes(len(nodes))
    check_triangles(total)
    if (most := max(accessors, default=0)) > len(data):
        allowed = f"at most {len(data)}, the bytes of the file"
        raise ConfigError("an accessor states too many values", value=most, allowed=allowed)


def _glb_triangles(mesh: Mapping[str, Any], accessors: list[int]) -> int:
    corners = (p.get("indices", p["attributes"]["POSITION"]) for p in mesh["primitives"])
    return sum(accessors[index] // 3 for index in corners)


def _dae(data: bytes) -> None:
    """Nodes may stand in other nodes, which multiplies them."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ConfigError("document types and entities are not allowed")
    if b"instance_node" not in data:
        return
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        raise ConfigError("not a mesh: not XML") from None
    known = {f"#{node.get('id')}": node for node in root.iter(f"{_DAE}node")}

    @cache
    def places(url: str) -> int:
        inner = [each.get("url", "") for each in known[url].iter(f"{_DAE}instance_node")]
        count = 1 + sum(min(places(each), MOST_NODES + 1) for each in inner if each in known)
        check_nodes(count)
        return count

    try:
        check_nodes(sum(places(url) for url in known))
    except RecursionError:
        raise ConfigError("not a mesh: nodes that stand in themselves, or too deeply") from None


CHECKS: Mapping[str, Callable[[bytes], None]] = {
    "stl": _stl,
    "obj": _obj,
    "ply": _ply,
    "dae": _dae,
    "glb": _glb,
}


Bools = NDArray[np.bool_]
# ── points near a shape ───────────────────────────────────────────────────────────────────────────


MOST_STEPS = 400
"""Of the grid of points on a triangle, along each edge."""
CUBES_KEPT = 64
NEIGHBOURS = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
FAR = 1 << 20
"""Cubes are numbered from -FAR to FAR along each axis."""


def near(shape: Shape, place: Array, points: Array, margin: float) -> Bools:
    """(n,): whether points (n, 3) are inside a shape at a place, 4×4, or nearer than ``margin`` to
    it. A convex hull counts as the box around it; of a mesh only the surface counts, to twice the
    margin."""
    here = (points - place[:3, 3]) @ place[:3, :3]
    match shape:
        case Box(size=size):
            return _beside_box(here, 0.5 * np.array(size), margin)
        case Sphere(radius=r):
            return np.asarray(np.linalg.norm(here, axis=1) <= r + margin)
        case Cylinder(radius=r, length=length):
            aside = np.maximum(np.hypot(here[:, 0], here[:, 1]) - r, 0.0)
            along = np.maximum(np.abs(here[:, 2]) - 0.5 * length, 0.0)
            return np.asarray(np.hypot(aside, along) <= margin)
        case Capsule(radius=r, length=length):
            here[:, 2] -= np.clip(here[:, 2], -0.5 * length, 0.5 * length)
            return np.asarray(np.linalg.norm(here, axis=1) <= r + margin)
        case Hull(points=corners):
            low, high = corners.min(axis=0), corners.max(axis=0)
            return _beside_box(here - 0.5 * (low + high), 0.5 * (high - low), margin)
        case TriangleMesh():
            return _near_mesh(shape, here, margin)


def _beside_box(points: Array, half: Array, margin: float) -> Bools:
    beyond = np.maximum(np.abs(points) - half, 0.0)
    return np.asarray((beyond**2).sum(axis=1) <= margin * margin)


def _near_mesh(mesh: TriangleMesh, points: Array, margin: float) -> Bools:
    cubes = np.floor(points / margin).astype(np.int64)
    known = _cubes(mesh, margin)
    found = np.zeros(len(points), dtype=bool)
    for shift in NEIGHBOURS:
        found |= np.isin(_numbers(cubes + shift), known)
    return found


@lru_cache(maxsize=CUBES_KEPT)
def _cubes(mesh: TriangleMesh, side: float) -> Ints:
    """The numbers of the cubes of this side in which the surface of a mesh lies."""
    found = [np.zeros(0, dtype=np.int64)]
    for a, b, c in mesh.corners():
        longest = max(float(np.linalg.norm(edge)) for edge in (b - a, c - a, c - b))
        steps = min(MOST_STEPS, max(1, int(np.ceil(2.0 * longest / side))))
        u, v = np.meshgrid(np.arange(steps + 1) / steps, np.arange(steps + 1) / steps)
        inside = u + v <= 1.0 + 1e-9
        spots = a + u[inside][:, None] * (b - a) + v[inside][:, None] * (c - a)
        found.append(np.unique(_numbers(np.floor(spots / side).astype(np.int64))))
    return np.unique(np.concatenate(found))


def _numbers(cubes: Ints) -> Ints:
    """One number for each cube."""
    x, y, z = np.clip(cubes, -FAR, FAR - 1).T + FAR
    return np.asarray((x * (2 * FAR) + y) * (2 * FAR) + z)
