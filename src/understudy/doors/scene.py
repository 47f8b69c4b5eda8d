"""The scene of a cell as frames and shapes: of the answer of the query `scene`, once for a cell.

Each joint of a robot has a frame, `<robot>/<joint>`, in that of the joint before it; bodies lie in
the frames and are written once. What moves afterwards are the transforms of the frames.

    world ─ <robot>/base ─ <robot>/<joint> ─ … ─ <robot>/flange ─ <robot>/tool
                                                              └── <robot>/finger_left, _right
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Raw
from msgspec.json import decode
from numpy.typing import NDArray

from understudy.doors.messages import (
    Color,
    CubePrimitive,
    CylinderPrimitive,
    FrameTransform,
    ModelPrimitive,
    Pose,
    Quaternion,
    SceneEntity,
    SpherePrimitive,
    Time,
    Vector3,
)
from understudy.ports.hmi import RobotView
from understudy.space.pose import Pose as SpacePose
from understudy.space.transform import matrix

WORLD = "world"
STEEL, GREY, TOOL = Color(0.62, 0.66, 0.7), Color(0.55, 0.6, 0.65), Color(0.35, 0.38, 0.42)
ZONE, PART = Color(0.9, 0.6, 0.1, 0.18), Color(0.85, 0.55, 0.25)
DIGITS = 7
"""Decimals of metres and of quaternions in transforms."""
FINGER_M = 0.012
"""Thickness of a finger."""
FREE_M = 0.04
"""The point of a robot that has no body."""

Rows = Sequence[float]
FourNumbers = tuple[float, float, float, float]
XYZ = tuple[float, float, float]
STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


# ── frames ──────────────────────────────────────────────────────────────────────────────────────


class RobotFrames:
    """The frames of a robot, from the facts of the query `scene`."""

    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        self.name = name
        self.base = f"{name}/base"
        self.flange = f"{name}/flange"
        self.tool = f"{name}/tool"
        self.is_free = not facts["joints"] and not facts["vehicle"]
        self._is_vehicle = bool(facts["vehicle"])
        self._foot = _placed(facts["base"])
        self._fingers = facts["fingers"]
        self._tools = {int(number): _placed(each["tcp"]) for number, each in facts["tools"].items()}
        self._links: list[tuple[str, str, _Placed, XYZ, str]] = []
        above = self.base
        for joint in facts["joints"]:
            frame = f"{name}/{joint['name']}"
            axis = np.asarray(joint["axis"], dtype=float)
            x, y, z = (axis / (np.linalg.norm(axis) or 1.0)).tolist()
            self._links.append((above, frame, _placed(joint["origin"]), (x, y, z), joint["type"]))
            above = frame
        self._last = above

    def fixed(self) -> set[str]:
        """The frames that do not move in those above them."""
        still = {frame for _, frame, _, _, kind in self._links if kind == "fixed"} | {self.flange}
        return still if self._is_vehicle else still | {self.base}

    def frame_of(self, joint: int) -> str:
        """The frame of the bodies that this joint carries; -1: the base."""
        return self.base if joint < 0 else self._links[joint][1]

    def transforms(self, view: RobotView, at: Time) -> Iterator[FrameTransform]:
        """All frames of the robot at one time."""
        if self._is_vehicle or self.is_free:
            place = _of_pose(view.tcp)
            frame = self.base if self._is_vehicle else self.tool
            yield _transform(at, WORLD, frame, *place)
            if self._is_vehicle:
                return
        else:
            yield _transform(at, WORLD, self.base, *self._foot)
        moving = iter(view.q)
        for above, frame, origin, axis, kind in self._links:
            value = 0.0 if kind == "fixed" else next(moving, 0.0)
            yield _transform(at, above, frame, *_moved(origin, axis, kind, value))
        if not self.is_free:
            yield _transform(at, self._last, self.flange, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
            tip = self._tools.get(view.tool, _HERE)
            yield _transform(at, self.flange, self.tool, *tip)
        if self._fingers and isinstance(view.opening, float):
            for side, sign in (("left", -1.0), ("right", 1.0)):
                far = sign * (view.opening / 2.0 + FINGER_M / 2.0)
                spot = (far, 0.0, 0.0) if self._fingers["axis"] == "x" else (0.0, far, 0.0)
                yield _transform(at, self.tool, f"{self.name}/finger_{side}", spot, _HERE[1])


_Placed = tuple[XYZ, FourNumbers]
_HERE: _Placed = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


def _transform(at: Time, parent: str, child: str, place: XYZ, turn: FourNumbers) -> FrameTransform:
    x, y, z = (round(value, DIGITS) for value in place)
    qx, qy, qz, qw = (round(value, DIGITS) for value in turn)
    return FrameTransform(at, parent, child, Vector3(x, y, z), Quaternion(qx, qy, qz, qw))


def _moved(origin: _Placed, axis: XYZ, kind: str, value: float) -> _Placed:
    """Origin · motion of a joint."""
    place, turn = origin
    if kind == "fixed" or value == 0.0:
        return origin
    if kind == "prismatic":
        x, y, z = _turned(turn, (axis[0] * value, axis[1] * value, axis[2] * value))
        return (place[0] + x, place[1] + y, place[2] + z), turn
    half = value / 2.0
    s = math.sin(half)
    return place, _product(turn, (axis[0] * s, axis[1] * s, axis[2] * s, math.cos(half)))


def _product(a: FourNumbers, b: FourNumbers) -> FourNumbers:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _turned(turn: FourNumbers, v: XYZ) -> XYZ:
    x, y, z, _ = _product(_product(turn, (*v, 0.0)), (-turn[0], -turn[1], -turn[2], turn[3]))
    return x, y, z


def quaternion_of(rotation: NDArray[np.float64]) -> FourNumbers:
    """x, y, z, w of a rotation matrix."""
    r = rotation
    terms = np.array(
        [
            1.0 + r[0, 0] - r[1, 1] - r[2, 2],
            1.0 - r[0, 0] + r[1, 1] - r[2, 2],
            1.0 - r[0, 0] - r[1, 1] + r[2, 2],
            1.0 + r[0, 0] + r[1, 1] + r[2, 2],
        ]
    )
    largest = int(terms.argmax())
    columns = (
        (terms[0], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]),
        (r[0, 1] + r[1, 0], terms[1], r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]),
        (r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], terms[2], r[1, 0] - r[0, 1]),
        (r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], terms[3]),
    )
    x, y, z, w = (np.array(columns[largest]) / (2.0 * math.sqrt(terms[largest]))).tolist()
    return x, y, z, w


def _placed(rows: Rows) -> _Placed:
    """Place and turn of a 4×4 matrix, row by row."""
    whole = np.asarray(rows, dtype=float).reshape(4, 4)
    x, y, z = whole[:3, 3].tolist()
    return (x, y, z), quaternion_of(whole[:3, :3])


def _of_pose(values: Rows) -> _Placed:
    x, y, z, rx, ry, rz = values
    if rx == ry == 0.0:
        return (x, y, z), (0.0, 0.0, math.sin(rz / 2.0), math.cos(rz / 2.0))
    return (x, y, z), quaternion_of(matrix(SpacePose(x, y, z, rx, ry, rz))[:3, :3])


def pose_message(values: Rows) -> Pose:
    """x y z rx ry rz as a message."""
    place, turn = _of_pose(values)
    return Pose(Vector3(*place), Quaternion(*turn))


def pose_of_rows(rows: Rows) -> Pose:
    place, turn = _placed(rows)
    return Pose(Vector3(*place), Quaternion(*turn))


# ── bodies ──────────────────────────────────────────────────────────────────────────────────────


def robot_entities(
    robots: Mapping[str, Any], frames: Mapping[str, RobotFrames], at: Time
) -> Iterator[SceneEntity]:
    """The bodies of robots, of their active tools and of what they hold."""
    for name, facts in robots.items():
        frame = frames[name]
        if frame.is_free:
            ball = Vector3(FREE_M, FREE_M, FREE_M)
            point = SpherePrimitive(Pose(), ball, STEEL)
            yield SceneEntity(at, frame.tool, f"{name}/point", spheres=[point])
        for link in facts["links"]:
            place = frame.frame_of(link["joint"])
            yield from _entity(f"{name}/{link['name']}", place, at, link["shapes"], "origin", GREY)
        if vehicle := facts["vehicle"]:
            yield _vehicle(name, frame.base, vehicle, at)
        tool = facts["tools"].get(facts["tool"], facts["tools"].get(str(facts["tool"])))
        own = tool["shapes"] if tool else []
        yield from _entity(f"{name}/its tool", frame.flange, at, own, "transform", TOOL)
        yield from _entity(f"{name}/held", frame.flange, at, facts["held"], "transform", PART)
        if fingers := facts["fingers"]:
            width, height = fingers["pad"]
            size = (
                (FINGER_M, width, height) if fingers["axis"] == "x" else (width, FINGER_M, height)
            )
            for side in ("left", "right"):
                pad = CubePrimitive(Pose(), Vector3(*size), STEEL)
                where = f"{name}/finger_{side}"
                yield SceneEntity(at, where, where, cubes=[pad])


def _vehicle(name: str, frame: str, vehicle: Mapping[str, float], at: Time) -> SceneEntity:
    length, width, height = (vehicle[key] for key in ("length", "width", "height"))
    pose = Pose(Vector3(vehicle["ahead"], 0.0, height / 2.0))
    body = CubePrimitive(pose, Vector3(length, width, height), STEEL)
    nose = Pose(Vector3(vehicle["ahead"] + 0.4 * length, 0.0, height))
    front = CubePrimitive(nose, Vector3(0.1 * length, 0.6 * width, 0.02), PART)
    return SceneEntity(at, frame, f"{name}/body", cubes=[body, front])


def environment_entities(things: Sequence[Mapping[str, Any]], at: Time) -> Iterator[SceneEntity]:
    for thing in things:
        color = ZONE if thing["zone"] else GREY
        yield from _entity(thing["name"], WORLD, at, [thing], "transform", color)


def workpiece_entities(
    parts: Sequence[Mapping[str, Any]], frames: Mapping[str, RobotFrames], at: Time
) -> Iterator[SceneEntity]:
    """The rows of the query `parts`; held ones follow the flange of their robot."""
    for part in parts:
        holder = frames.get(str(part["holder"]).partition(".")[0])
        place = holder.flange if part["state"] == "held" and holder else WORLD
        sides = [side * 1e-3 for side in part["size_mm"]]
        kind = str(part["type"]).lower()
        shape = {
            "type": kind,
            "dimensions": sides,
            "radius": sides[0] / 2.0,
            "height": sides[2],
            "length": sides[2],
            "transform": part["transform"],
            "color": part["color"],
        }
        yield from _entity(part["name"], place, at, [shape], "transform", PART)


def _entity(
    name: str, frame: str, at: Time, shapes: Sequence[Any], place: str, color: Color
) -> Iterator[SceneEntity]:
    """An entity of these shapes; none of no shapes."""
    found: dict[str, Any] = {"cubes": [], "spheres": [], "cylinders": [], "models": []}
    for shape in shapes:
        own = _color(shape.get("color"), color)
        for group, primitive in _primitives(shape, pose_of_rows(shape[place]), own):
            found[group].append(primitive)
    if shapes:
        yield SceneEntity(at, frame, name, **found)


def _primitives(shape: Mapping[str, Any], pose: Pose, color: Color) -> Iterator[tuple[str, Any]]:
    kind = str(shape["type"]).lower()
    if kind == "box":
        yield "cubes", CubePrimitive(pose, Vector3(*shape["dimensions"]), color)
    elif kind == "sphere":
        side = 2.0 * shape["radius"]
        yield "spheres", SpherePrimitive(pose, Vector3(side, side, side), color)
    elif kind in ("cylinder", "capsule"):
        across = 2.0 * shape["radius"]
        length = shape.get("length") or shape["height"]
        yield "cylinders", CylinderPrimitive(pose, Vector3(across, across, length), color)
        if kind == "capsule":
            for end in (-length / 2.0, length / 2.0):
                turn = pose.orientation
                shift = _turned((turn.x, turn.y, turn.z, turn.w), (0.0, 0.0, end))
                centre = pose.position
                spot = Vector3(centre.x + shift[0], centre.y + shift[1], centre.z + shift[2])
                ball = Vector3(across, across, across)
                yield "spheres", SpherePrimitive(Pose(spot, pose.orientation), ball, color)
    elif "vertices" in shape:
        vertices, indices = _array(shape["vertices"], float), _array(shape["indices"], int)
        if len(indices):
            one = Vector3(1.0, 1.0, 1.0)
            data = stl_of(vertices, indices)
            yield "models", ModelPrimitive(pose, one, color, True, "", "model/stl", data)


def _array(rows: Any, kind: type) -> NDArray[Any]:
    return np.asarray(decode(rows) if isinstance(rows, Raw) else rows, dtype=kind).reshape(-1, 3)


def stl_of(vertices: NDArray[np.float64], triangles: NDArray[np.int64]) -> bytes:
    """A mesh as binary STL."""
    facets = np.zeros(len(triangles), dtype=STL)
    corners = vertices[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    facets["normal"] = normals / np.where(lengths > 0.0, lengths, 1.0)
    facets["corners"] = corners
    return b"\0" * 80 + np.uint32(len(triangles)).tobytes() + facets.tobytes()


def _color(given: Any, default: Color) -> Color:
    """A colour as cell files and models write it: `#rrggbb`, or numbers from 0 to 1."""
    if isinstance(given, str) and given.startswith("#") and len(given) == 7:
        r, g, b = (int(given[n : n + 2], 16) / 255.0 for n in (1, 3, 5))
        return Color(r, g, b, default.a)
    if isinstance(given, list | tuple) and len(given) >= 3:
        r, g, b = (float(each) for each in given[:3])
        return Color(r, g, b, float(given[3]) if len(given) > 3 else default.a)
    return default
