"""The environment of a robot as cell files describe it: objects, zones and URDF fixtures.

Cell files have millimetres, degrees and file names; the built objects are in metres.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct

from understudy.errors import ConfigError, located_at, unknown
from understudy.space.model.appearance import (
    Appearance,
    BoardConfig,
    ColorName,
    MarkerConfig,
    UpperFace,
)
from understudy.space.model.robot import Joint, Mesh, Solid
from understudy.space.model.shapes import (
    FARTHEST,
    CollisionObject,
    Meshes,
    ObjectType,
    ReadMesh,
    TriangleMesh,
    as_object,
    check_triangles,
    hull_corners,
    mesh_from_bytes,
    shape_of,
    unique,
)
from understudy.space.model.urdf import elements
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, rotation_about, translation
from understudy.units import DEG, MM

Xyz = tuple[float, float, float]
Read = Callable[[str], bytes]
"""Reads a file by its name in the configuration; raises a ConfigError if it does not exist."""

LONGEST_NAME = 200
ObjectName = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]

MOST_OBJECTS = 1000
MOST_TRIANGLES_AROUND = 500_000
"""Triangles of all meshes of an environment."""
PRINTED = ("marker", "board")
"""Keys of what is printed on the upper face of an object."""


@dataclass(frozen=True)
class Environment:
    """Objects around a robot, and zones: volumes it must not enter although they are empty."""

    objects: tuple[CollisionObject, ...] = ()
    zones: tuple[CollisionObject, ...] = ()

    def everything(self) -> tuple[CollisionObject, ...]:
        return unique((*self.objects, *self.zones))

    def checked(self) -> "Environment":
        """The same environment; raises a ConfigError if it is too large or a name is used twice."""
        count = len(self.objects) + len(self.zones)
        if count > MOST_OBJECTS:
            allowed = f"an environment has at most {MOST_OBJECTS} objects and zones"
            raise ConfigError("too many objects", value=count, allowed=allowed)
        triangles = sum(np.size(thing.indices) // 3 for thing in self.everything())
        check_triangles(triangles, MOST_TRIANGLES_AROUND, "an environment")
        return self

    def is_zone(self, name: str) -> bool:
        return any(zone.name == name for zone in self.zones)


class ObjectConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One object. ``mesh`` is a file; the type ``convex`` takes its convex hull. Cameras see its
    colour, and a marker or a board on its upper face."""

    name: ObjectName
    type: ObjectType
    position_mm: Xyz = (0.0, 0.0, 0.0)
    rotation_deg: Xyz = (0.0, 0.0, 0.0)
    dimensions_mm: Xyz = (0.0, 0.0, 0.0)
    radius_mm: float = 0.0
    height_mm: float = 0.0
    mesh: str = ""
    scale_mm: float = 1.0
    """Millimetres per unit of the file."""
    color: ColorName | None = None
    marker: MarkerConfig | None = None
    board: BoardConfig | None = None

    def build(self, read: Read, read_mesh: ReadMesh = mesh_from_bytes) -> CollisionObject:
        check_name(self.name)
        points: Any = ()
        indices: Any = ()
        if self.type in (ObjectType.MESH, ObjectType.CONVEX):
            if not self.mesh:
                raise ConfigError("the mesh file is missing", key=f"{self.name}.mesh")
            points, indices = self._triangles(read, read_mesh)
        a, b, c = (value * MM for value in self.dimensions_mm)
        found = CollisionObject(
            type=self.type,
            name=self.name,
            transform=self._place(),
            dimensions=(a, b, c),
            radius=self.radius_mm * MM,
            height=self.height_mm * MM,
            vertices=points,
            indices=indices,
            look=self._look(),
        )
        self._check_sizes(found)
        return found

    def upper_face(self) -> UpperFace | None:
        """What a marker or a board lies on; None for a mesh, whose size is in its file."""
        if self.type in (ObjectType.MESH, ObjectType.CONVEX):
            return None
        if self.type is ObjectType.BOX:
            return UpperFace(*self.dimensions_mm[:2])
        wide = 2.0 * self.radius_mm
        return UpperFace(wide, wide, round=True)

    def check_printed(self) -> None:
        """Raises a ConfigError for a marker or a board that does not exist, or is larger than the
        upper face that it is on. Needs no OpenCV."""
        for key in PRINTED:
            if (printed := getattr(self, key)) is not None:
                with located_at(key):
                    printed.check(self.upper_face())

    def _look(self) -> Appearance:
        if self.marker is not None and self.board is not None:
            allowed = "one of marker and board"
            problem = ConfigError("a face has a marker and a board", key="board", allowed=allowed)
            raise problem.within(self.name)
        return Appearance(self.color or "", self.marker, self.board)

    def _triangles(self, read: Read, read_mesh: ReadMesh) -> tuple[Array, Any]:
        try:
            mesh = _mesh(self.mesh, self.scale_mm * MM, read, read_mesh)
        except ConfigError as problem:
            raise problem.within(self.name) from None
        if self.type is ObjectType.CONVEX:
            return self._hull(mesh), ()
        return mesh.vertices, mesh.triangles

    def _hull(self, mesh: TriangleMesh) -> Array:
        try:
            return hull_corners(mesh.used_points)
        except ConfigError as problem:
            raise problem.within(f"{self.name}.mesh") from None

    def _check_sizes(self, found: CollisionObject) -> None:
        """Raises a ConfigError in millimetres and with the key of the file if a size is wrong."""
        try:
            assert found.shape
        except ConfigError as problem:
            key = f"{problem.key}_mm"
            given = getattr(self, key.rpartition(".")[2], None)
            if given is None:
                raise
            allowed = f"above 0 and at most {FARTHEST / MM:.0f} mm"
            raise ConfigError(problem.problem, key=key, value=given, allowed=allowed) from None

    def _place(self) -> Array:
        try:
            return place(self.position_mm, self.rotation_deg)
        except ConfigError as problem:
            raise problem.within(self.name) from None


class FixtureConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A URDF that stands in the cell; its links become objects ``name.link``. Its joints are at
    zero unless given: revolute ones in ``joints_deg``, prismatic ones in ``joints_mm``."""

    name: ObjectName
    urdf: str
    position_mm: Xyz = (0.0, 0.0, 0.0)
    rotation_deg: Xyz = (0.0, 0.0, 0.0)
    joints_deg: dict[str, float] = {}
    joints_mm: dict[str, float] = {}

    def build(
        self, read: Read, read_mesh: ReadMesh = mesh_from_bytes
    ) -> tuple[CollisionObject, ...]:
        check_name(self.name)
        text = _file("urdf", self.urdf, read, self.name).decode("utf-8", "replace")
        _, links, joints = elements(text, file=self.urdf)
        return fixture(
            text,
            self.name,
            at=place(self.position_mm, self.rotation_deg),
            values=self._values(joints),
            meshes=meshes_of([s for link in links for s in link.collision], read, read_mesh),
            file=self.urdf,
        )

    def _values(self, joints: tuple[Joint, ...]) -> dict[str, float]:
        """Joint values in rad and m."""
        slide = [joint.name for joint in joints if joint.kind == "prismatic"]
        turn = [joint.name for joint in joints if joint.moves and joint.name not in slide]
        values: dict[str, float] = {}
        for key, given, able, unit in (
            ("joints_deg", self.joints_deg, turn, DEG),
            ("joints_mm", self.joints_mm, slide, MM),
        ):
            for name, value in given.items():
                if name not in able:
                    raise unknown("joint", name, able, key=f"{self.name}.{key}")
                values[name] = value * unit
        return values


class EnvironmentConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """An environment file, or the ``environment`` of a cell."""

    objects: Annotated[tuple[ObjectConfig, ...], Meta(max_length=MOST_OBJECTS)] = ()
    fixtures: Annotated[tuple[FixtureConfig, ...], Meta(max_length=MOST_OBJECTS)] = ()
    zones: Annotated[tuple[ObjectConfig, ...], Meta(max_length=MOST_OBJECTS)] = ()

    def check_printed(self) -> None:
        for number, thing in enumerate(self.objects):
            with located_at(f"objects.{number}"):
                thing.check_printed()

    def build(self, read: Read, read_mesh: ReadMesh = mesh_from_bytes) -> Environment:
        objects = [thing.build(read, read_mesh) for thing in self.objects]
        for urdf in self.fixtures:
            objects.extend(urdf.build(read, read_mesh))
        zones = (zone.build(read, read_mesh) for zone in self.zones)
        return Environment(tuple(objects), tuple(zones)).checked()


CollisionReaction = Literal["report", "stop"]


class CollisionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The ``collision`` block of a simulation file: what is checked, and the reaction. ``held``:
    parts that the robot carries all the time, placed from the flange."""

    enable: bool = True
    check_self_collision: bool = True
    check_environment: bool = True
    self_collision_pairs: Literal["auto"] | tuple[tuple[int, int], ...] = "auto"
    on_collision: CollisionReaction = "report"
    held: tuple[ObjectConfig, ...] = ()


Figures = Annotated[float, Meta(gt=0, le=1e9)] | tuple[Annotated[float, Meta(gt=0, le=1e9)], ...]


class LimitsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the joints in place of those of the robot's description: a number for all, or one
    for each. `velocity_deg_s`: of joints that slide, mm/s. `effort`: Nm (N), or `ignore`."""

    velocity_deg_s: Figures | None = None
    effort: Figures | Literal["ignore"] | None = None


def check_name(name: str) -> None:
    """A name is shown on terminals, in logs and in messages."""
    if not name.isprintable():
        raise ConfigError("a name with control characters", key="name", value=name)


def place(position_mm: Xyz, rotation_deg: Xyz) -> Array:
    near = all(abs(value) * MM <= FARTHEST for value in position_mm)
    if not (near and all(map(math.isfinite, rotation_deg))):
        allowed = f"finite numbers, x y z within {FARTHEST:g} m"
        raise ConfigError("wrong pose", value=(*position_mm, *rotation_deg), allowed=allowed)
    x, y, z = (value * MM for value in position_mm)
    rx, ry, rz = (angle * DEG for angle in rotation_deg)
    return matrix(Pose(x, y, z, rx, ry, rz))


def meshes_of(solids: list[Solid], read: Read, read_mesh: ReadMesh = mesh_from_bytes) -> Meshes:
    """Loads the mesh files of a URDF's shapes; their unit is the metre."""
    names = {s.geometry.filename for s in solids if isinstance(s.geometry, Mesh)}
    return {name: _mesh(name, 1.0, read, read_mesh) for name in sorted(names)}


def _mesh(name: str, scale: float, read: Read, read_mesh: ReadMesh) -> TriangleMesh:
    data = _file("mesh", name, read)
    try:
        return read_mesh(data, name.rpartition(".")[2], scale)
    except ConfigError as problem:
        allowed = problem.allowed
        raise ConfigError(problem.problem, key="mesh", value=name, allowed=allowed) from None


def _file(key: str, name: str, read: Read, of: str = "") -> bytes:
    """Contents of a file; if it cannot be read, the ConfigError names the key that refers to it."""
    try:
        return read(name)
    except ConfigError as problem:
        allowed = problem.allowed
        raise ConfigError(problem.problem, key=key, value=name, allowed=allowed).within(
            of
        ) from None


# ── URDF fixtures ─────────────────────────────────────────────────────────────────────────────────


def fixture(
    text: str,
    name: str = "",
    *,
    at: Array | None = None,
    values: Mapping[str, float] | None = None,
    meshes: Meshes | None = None,
    file: str = "",
) -> tuple[CollisionObject, ...]:
    """The collision shapes of all links of a URDF as objects ``name.link`` (``name.link.2`` …).

    at: pose of its root (4×4); values: of joints that are not at zero (rad, m).
    """
    called, links, joints = elements(text, file=file)
    name = name or called
    places = _places({link.name for link in links}, joints, values or {}, file)
    root = np.eye(4) if at is None else at
    found = []
    for link in links:
        for number, solid in enumerate(link.collision, start=1):
            shape = shape_of(solid.geometry, meshes or {}, link.name)
            label = f"{name}.{link.name}" + (f".{number}" if number > 1 else "")
            place = root @ places[link.name] @ matrix(solid.origin)
            found.append(as_object(label, shape, place))
    return tuple(found)


def _places(
    names: set[str], joints: tuple[Joint, ...], values: Mapping[str, float], file: str
) -> dict[str, Array]:
    """Frames of all links in the frame of the root."""
    children = {joint.child for joint in joints}
    places = {name: np.eye(4) for name in names - children}
    waiting = list(joints)
    while waiting:
        ready = [joint for joint in waiting if joint.parent in places]
        if not ready:
            raise ConfigError(
                "its parent is not a link of this file", file=file, key=f"joint '{waiting[0].name}'"
            )
        for joint in ready:
            moved = _moved(joint, values.get(joint.name, 0.0))
            places[joint.child] = places[joint.parent] @ matrix(joint.origin) @ moved
            waiting.remove(joint)
    return places


def _moved(joint: Joint, value: float) -> Array:
    if joint.kind == "prismatic":
        x, y, z = (value * part for part in joint.axis)
        return translation(x, y, z)
    turn = np.eye(4)
    if joint.moves:
        turn[:3, :3] = rotation_about(joint.axis, value)
    return turn
