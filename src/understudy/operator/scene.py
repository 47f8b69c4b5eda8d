"""The query `scene`: geometry for a browser. Metres and radians, 4×4 matrices row by row.

Files and meshes are read and written as JSON once, in a thread; after that the query is answered
at once.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakKeyDictionary

from msgspec import Raw, to_builtins
from msgspec.json import encode

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.operator.background import BackgroundRuns
from understudy.operator.environment import HoldsObjects
from understudy.operator.models import chain_of, tool_of, tools_of, work_offsets_of
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, commands_of, query
from understudy.operator.workpieces import workpieces_in
from understudy.ports import Component
from understudy.ports.device import HasBodies, HasFingers, SceneBody
from understudy.ports.hmi import Later, MarksScene
from understudy.ports.operation import IDENTITY, ModelAxis, components_of
from understudy.simulation.environment import CellEnvironment
from understudy.space.pose import pose_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.operator.cell import OperatedCell
    from understudy.space.kinematics.chain import Chain
    from understudy.space.model.robot import Geometry, Mesh, Solid
    from understudy.space.model.shapes import CollisionObject, Shape, TriangleMesh


def commands(cell: "OperatedCell") -> list[Command]:
    around = cell.environment.here
    return commands_of(SceneQuery(cell.config, cell.robots, around, cell.components, cell.runs))


class SceneQuery:
    """The query `scene`. `here`: the present environment."""

    def __init__(
        self,
        config: CellConfig,
        robots: Robots,
        here: CellEnvironment,
        parts: Mapping[str, Component],
        runs: BackgroundRuns,
    ) -> None:
        self._runs = runs
        self._under_way: Later | None = None
        self._config = config
        self._robots = robots
        self._here = here
        self._drawn = [part for part in parts.values() if isinstance(part, HasBodies)]
        self._parts = workpieces_in(parts)
        self._still: dict[str, dict[str, Any]] = {}

    @query(large=True)
    def scene(self) -> Any:
        """Geometry for a browser: robots, tools, environment, colours."""
        # viewers who ask while the geometry is prepared wait for the same work
        if self._under_way is None:
            robots = [robot for robot in self._robots if robot.name not in self._still]
            meshes = [mesh for mesh in self._meshes() if mesh not in _texts]
            if not (meshes or any(_has_meshes(robot) for robot in robots)):
                return self.whole()
            later = self._runs.in_thread("scene", lambda _: self._prepare(robots, meshes))
            if isinstance(later, Refused):
                return later
            self._under_way = later
            later.then(lambda _: self._forget_work())
        return self._under_way.turned(lambda _: self.scene())

    def _forget_work(self) -> None:
        self._under_way = None

    def _prepare(self, robots: "list[Robot]", meshes: "list[TriangleMesh]") -> None:
        for mesh in meshes:
            triangles_text(mesh)
        for robot in robots:
            self._still[robot.name] = self._geometry(robot)

    def _meshes(self) -> "Iterator[TriangleMesh]":
        """The large meshes of the environment and of what robots hold."""
        held = (
            thing
            for robot in self._robots
            for watch in components_of(robot.simulated.controller).values()
            if isinstance(watch, HoldsObjects)
            for thing in watch.held()
        )
        for thing in (*self._here.environment.everything(), *held):
            if is_large(thing.shape):
                yield thing.shape

    def whole(self) -> dict[str, Any]:
        """The answer, made here: files and meshes that were not read yet take time."""
        return {
            "cell": self._config.name,
            "robots": {robot.name: self._robot(robot) for robot in self._robots},
            "environment": self._environment(),
            "visualization": to_builtins(self._config.simulation.visualization),
        }

    def _environment(self) -> list[dict[str, Any]]:
        found = self._here.environment
        objects = [
            {**object_of(each), "zone": found.is_zone(each.name)} for each in found.everything()
        ]
        return objects + [body_of(body) for device in self._drawn for body in device.bodies()]

    def _marks(self, robot: Robot) -> dict[str, Any]:
        """The view of the robot's camera and its pallets; of several cameras the first one."""
        marks: dict[str, Any] = {"camera": None, "pallets": []}
        for component in self._robots.components[robot.name].values():
            if isinstance(component, MarksScene):
                found = component.scene_marks()
                marks["camera"] = marks["camera"] or found.get("camera")
                marks["pallets"] += found.get("pallets", [])
        return marks

    def _tool_shapes(self, robot: Robot, number: int) -> list[dict[str, Any]]:
        """The space that a tool takes, seen from the flange."""
        read = self._config.read_file
        return [object_of(shape.build(read)) for shape in robot.model.tools()[number].shapes]

    def _robot(self, robot: Robot) -> dict[str, Any]:
        if robot.name not in self._still:
            self._still[robot.name] = self._geometry(robot)
        own = components_of(robot.simulated.controller).values()
        watches = [part for part in own if isinstance(part, HoldsObjects)]
        parts = () if self._parts is None else self._parts.names()  # drawn by the query `parts`
        held = [
            object_of(thing)
            for watch in watches
            for thing in watch.held()
            if thing.name not in parts
        ]
        still = self._still[robot.name]
        tools = {
            number: {**still["tools"][number], **_tool(tool)}
            for number, tool in tools_of(robot).items()
        }
        frames = {name: _frame(offset) for name, offset in work_offsets_of(robot).items()}
        changing = {"tool": tool_of(robot), "tools": tools, "frames": frames, "held": held}
        return {**still, **changing, **self._marks(robot)}

    def _geometry(self, robot: Robot) -> dict[str, Any]:
        chain = chain_of(robot)
        joints, links = [_axis(axis) for axis in robot.model.axes], list[dict[str, Any]]()
        if not isinstance(chain, Refused):
            joints, links = joints_of(chain), self._links(chain)
        tools = {
            number: {**_tool(tool), "shapes": self._tool_shapes(robot, int(number))}
            for number, tool in tools_of(robot).items()
        }
        parts = components_of(robot.simulated.controller).values()
        hands = [part.fingers() for part in parts if isinstance(part, HasFingers)]
        fingers = next((found for found in hands if found is not None), None)
        return {
            "kind": robot.kind,
            "fingers": None if fingers is None else fingers._asdict(),
            "model": getattr(robot.config, "model", ""),
            "base": list(robot.model.base),
            "vehicle": robot.model.vehicle._asdict() if robot.model.vehicle else None,
            "joints": joints,
            "links": links,
            "tools": tools,
        }

    def _links(self, chain: "Chain") -> list[dict[str, Any]]:
        """The bodies of a chain, each with the moving joint that carries it; -1 for the base."""
        way = chain.model.joints_to_tip()
        carried_by = [-1, *(index for index, joint in enumerate(way) if joint.moves)]
        return [
            {
                "name": body.name,
                "joint": joint,
                "shapes": [
                    shape
                    for solid in body.visual or body.collision
                    for shape in self._shapes(solid)
                ],
                "collision": [shape for solid in body.collision for shape in self._shapes(solid)],
            }
            for body, joint in zip(chain.bodies, carried_by, strict=True)
        ]

    def _shapes(self, solid: "Solid") -> list[dict[str, Any]]:
        """A shape; for a mesh one shape for each of its colours."""
        from understudy.space.model.robot import Mesh
        from understudy.space.transform import matrix

        geometry, origin = solid.geometry, matrix(solid.origin).reshape(-1).tolist()
        if isinstance(geometry, Mesh):
            found = self._mesh(geometry)
        else:
            found = [_sizes(geometry)]
        return [{"color": solid.color, **shape, "origin": origin} for shape in found]

    def _mesh(self, mesh: "Mesh") -> list[dict[str, Any]]:
        """The triangles of a mesh file by colour, or the problem with the file."""
        from understudy.space.model.drawn_mesh import drawn_meshes

        try:
            data = self._config.read_file(mesh.filename)
            found = drawn_meshes(data, mesh.filename.rsplit(".", 1)[-1])
        except ConfigError as problem:
            return [{"type": "mesh", "problem": str(problem)}]
        return [
            {
                "type": "mesh",
                "vertices": rows_text((each.mesh.vertices * mesh.scale).round(5)),
                "indices": rows_text(each.mesh.triangles),
                **({"color": each.color} if each.color else {}),
            }
            for each in found
        ]


def _sizes(geometry: "Geometry") -> dict[str, Any]:
    from understudy.space.model import robot as shapes

    match geometry:
        case shapes.Box(size=size):
            return {"type": "box", "dimensions": size}
        case shapes.Sphere(radius=radius):
            return {"type": "sphere", "radius": radius}
        case shapes.Cylinder(radius=radius, length=length):
            return {"type": "cylinder", "radius": radius, "length": length}
        case shapes.Capsule(radius=radius, length=length):
            return {"type": "capsule", "radius": radius, "length": length}
    raise TypeError(f"no plain shape: {geometry!r}")


def joints_of(chain: "Chain") -> list[dict[str, Any]]:
    """All joints from base to flange: T = T · origin · turn (or shift) on the axis."""
    from understudy.space.transform import matrix

    return [
        {
            "name": joint.name,
            "type": "revolute" if joint.kind == "continuous" else joint.kind,
            "origin": matrix(joint.origin).reshape(-1).tolist(),
            "axis": list(joint.axis),
            "lower": _bound(joint.lower),
            "upper": _bound(joint.upper),
        }
        for joint in chain.model.joints_to_tip()
    ]


def object_of(thing: "CollisionObject") -> dict[str, Any]:
    """An object of the environment."""
    import numpy as np

    if is_large(thing.shape):
        vertices, indices = triangles_text(thing.shape)
    else:
        vertices, indices = (np.asarray(rows).tolist() for rows in (thing.vertices, thing.indices))
    return {
        "name": thing.name,
        "type": str(thing.type),
        "transform": thing.place.reshape(-1).tolist(),
        "dimensions": list(thing.dimensions),
        "radius": thing.radius,
        "height": thing.height,
        "vertices": vertices,
        "indices": indices,
    }


LARGE = 1000
"""Triangles of a mesh whose JSON text is kept."""
ROWS_AT_ONCE = 2000
"""Rows that are written without a break: the event loop waits for as long."""

_texts: "WeakKeyDictionary[TriangleMesh, tuple[Raw, Raw]]" = WeakKeyDictionary()


def is_large(shape: "Shape") -> "TypeGuard[TriangleMesh]":
    from understudy.space.model.shapes import TriangleMesh

    return isinstance(shape, TriangleMesh) and len(shape.triangles) > LARGE


def triangles_text(mesh: "TriangleMesh") -> tuple[Raw, Raw]:
    """Vertices and triangles of a mesh as JSON, written once."""
    if mesh not in _texts:
        _texts[mesh] = rows_text(mesh.vertices), rows_text(mesh.triangles)
    return _texts[mesh]


def rows_text(rows: "NDArray[Any]") -> Raw:
    """The rows of an array as JSON, a part at a time."""
    parts = (
        encode(rows[first : first + ROWS_AT_ONCE].tolist())[1:-1]
        for first in range(0, len(rows), ROWS_AT_ONCE)
    )
    return Raw(b"[" + b",".join(parts) + b"]")


def _has_meshes(robot: Robot) -> bool:
    from understudy.space.model.robot import Mesh

    chain = robot.model.chain
    return chain is not None and any(
        isinstance(solid.geometry, Mesh)
        for body in chain.bodies
        for solid in (*body.visual, *body.collision)
    )


def body_of(body: SceneBody) -> dict[str, Any]:
    """A body of a device, in the shape of an object of the environment."""
    x, y, z = body.position
    return {
        **body._asdict(),
        "transform": [*IDENTITY[:3], x, *IDENTITY[4:7], y, *IDENTITY[8:11], z, *IDENTITY[12:]],
        "vertices": [],
        "indices": [],
        "zone": False,
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "tcp": _frame(tool["tcp_mm_deg"])}


def _frame(mm_deg: list[float]) -> list[float]:
    from understudy.space.transform import matrix

    rows: list[float] = matrix(pose_of(mm_deg)).reshape(-1).tolist()
    return rows


def _axis(axis: ModelAxis) -> dict[str, Any]:
    """An axis of a robot without a chain."""
    return {
        "name": axis.name,
        "type": axis.kind,
        "origin": list(IDENTITY),
        "axis": list(axis.direction),
        "lower": None,
        "upper": None,
    }


def _bound(value: float) -> float | None:
    """A joint limit; None without a limit, since JSON has no infinity."""
    return value if abs(value) < 1e9 else None
