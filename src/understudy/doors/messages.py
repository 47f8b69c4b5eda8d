"""Messages of the channels of a cell, in the shapes of Foxglove's schemas, and their JSON schemas.

A message is a msgspec Struct whose JSON is the message, with bytes as base64 text; `schema_of`
makes the JSON schema of its class. Classes that Foxglove, Lichtblick and other viewers know by name
are called `foxglove.<class>` there; those at the end of the file are our own, called
`understudy.<class>`.
"""

import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from understudy.units import NS_PER_SECOND

OWN = "understudy"


# ── values ──────────────────────────────────────────────────────────────────────────────────────


class Time(Struct, frozen=True):
    sec: int
    nsec: int


def time_of(at: int) -> Time:
    return Time(*divmod(at, NS_PER_SECOND))


class Duration(Struct, frozen=True):
    sec: int = 0
    nsec: int = 0


class Vector3(Struct, frozen=True):
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


class Point3(Struct, frozen=True):
    x: float
    y: float
    z: float


class Point2(Struct, frozen=True):
    x: float
    y: float


class Quaternion(Struct, frozen=True):
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    w: float = 1.0


class Pose(Struct, frozen=True):
    position: Vector3 = Vector3()
    orientation: Quaternion = Quaternion()


class Color(Struct, frozen=True):
    r: float
    g: float
    b: float
    a: float = 1.0


class KeyValuePair(Struct, frozen=True):
    key: str
    value: str


# ── frames and joints ───────────────────────────────────────────────────────────────────────────


class FrameTransform(Struct, frozen=True):
    timestamp: Time
    parent_frame_id: str
    child_frame_id: str
    translation: Vector3
    rotation: Quaternion


class FrameTransforms(Struct, frozen=True):
    transforms: Sequence[FrameTransform]


class JointState(Struct, frozen=True, omit_defaults=True):
    """rad and rad/s, m and m/s; `effort` in Nm or N."""

    name: str
    position: float | None = None
    velocity: float | None = None
    effort: float | None = None


class JointStates(Struct, frozen=True):
    timestamp: Time
    joints: Sequence[JointState]


class PoseInFrame(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    pose: Pose


class PosesInFrame(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    poses: Sequence[Pose]


class LaserScan(Struct, frozen=True):
    """Ranges in metres; 0 where nothing is seen."""

    timestamp: Time
    frame_id: str
    pose: Pose
    start_angle: float
    end_angle: float
    ranges: Sequence[float]
    intensities: Sequence[float] = ()


# ── the scene ───────────────────────────────────────────────────────────────────────────────────


class CubePrimitive(Struct, frozen=True):
    pose: Pose
    size: Vector3
    color: Color


class SpherePrimitive(Struct, frozen=True):
    pose: Pose
    size: Vector3
    color: Color


class CylinderPrimitive(Struct, frozen=True):
    pose: Pose
    size: Vector3
    color: Color
    bottom_scale: float = 1.0
    top_scale: float = 1.0


class LinePrimitive(Struct, frozen=True):
    """`type` 0: a strip, 1: a loop, 2: a list of pairs."""

    type: Literal[0, 1, 2]
    pose: Pose
    thickness: float
    scale_invariant: bool
    points: Sequence[Point3]
    color: Color
    colors: Sequence[Color] = ()
    indices: Sequence[int] = ()


class TriangleListPrimitive(Struct, frozen=True):
    pose: Pose
    points: Sequence[Point3]
    color: Color
    colors: Sequence[Color] = ()
    indices: Sequence[int] = ()


class TextPrimitive(Struct, frozen=True):
    pose: Pose
    billboard: bool
    font_size: float
    scale_invariant: bool
    color: Color
    text: str


class ModelPrimitive(Struct, frozen=True):
    pose: Pose
    scale: Vector3
    color: Color
    override_color: bool
    url: str
    media_type: str
    data: bytes


class ArrowPrimitive(Struct, frozen=True):
    pose: Pose
    shaft_length: float
    shaft_diameter: float
    head_length: float
    head_diameter: float
    color: Color


class SceneEntity(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    id: str
    lifetime: Duration = Duration()
    frame_locked: bool = True
    metadata: Sequence[KeyValuePair] = ()
    arrows: Sequence[ArrowPrimitive] = ()
    cubes: Sequence[CubePrimitive] = ()
    spheres: Sequence[SpherePrimitive] = ()
    cylinders: Sequence[CylinderPrimitive] = ()
    lines: Sequence[LinePrimitive] = ()
    triangles: Sequence[TriangleListPrimitive] = ()
    texts: Sequence[TextPrimitive] = ()
    models: Sequence[ModelPrimitive] = ()


class SceneEntityDeletion(Struct, frozen=True):
    """`type` 0: the entity with this id, 1: all of the topic."""

    timestamp: Time
    type: Literal[0, 1]
    id: str


class SceneUpdate(Struct, frozen=True):
    deletions: Sequence[SceneEntityDeletion]
    entities: Sequence[SceneEntity]


# ── pictures ────────────────────────────────────────────────────────────────────────────────────


class CompressedImage(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    data: bytes
    format: str


class CameraCalibration(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    width: int
    height: int
    distortion_model: str
    D: Sequence[float]
    K: Sequence[float]
    R: Sequence[float]
    P: Sequence[float]


class PointsAnnotation(Struct, frozen=True):
    """`type` 2: a closed line."""

    timestamp: Time
    type: Literal[0, 1, 2, 3, 4]
    points: Sequence[Point2]
    outline_color: Color
    outline_colors: Sequence[Color]
    fill_color: Color
    thickness: float
    metadata: Sequence[KeyValuePair] = ()


class TextAnnotation(Struct, frozen=True):
    timestamp: Time
    position: Point2
    text: str
    font_size: float
    text_color: Color
    background_color: Color
    metadata: Sequence[KeyValuePair] = ()


class CircleAnnotation(Struct, frozen=True):
    timestamp: Time
    position: Point2
    diameter: float
    thickness: float
    fill_color: Color
    outline_color: Color
    metadata: Sequence[KeyValuePair] = ()


class ImageAnnotations(Struct, frozen=True):
    circles: Sequence[CircleAnnotation]
    points: Sequence[PointsAnnotation]
    texts: Sequence[TextAnnotation]


DEBUG, INFO, WARNING, ERROR = 1, 2, 3, 4


class Log(Struct, frozen=True):
    """`level` 1 debug, 2 info, 3 warning, 4 error."""

    timestamp: Time
    level: Literal[0, 1, 2, 3, 4, 5]
    message: str
    name: str
    file: str = ""
    line: int = 0


# ── our own ─────────────────────────────────────────────────────────────────────────────────────


class RobotState(Struct, frozen=True):
    """`line`: of the program that runs, 0 if none does. `arc`: it burns. `speed`: of the tool or of
    a mobile robot, in m/s."""

    timestamp: Time
    state: str
    moving: bool
    enabled: bool
    error: str
    tool: int
    line: int
    arc: bool
    speed: float


class ProgramLine(Struct, frozen=True):
    """The line of a program that is carried out. `state`: running, paused, done, failed …"""

    timestamp: Time
    program: str
    state: str
    line: int
    text: str
    error: str


class DigitalPin(Struct, frozen=True):
    name: str
    value: bool


class AnalogPin(Struct, frozen=True):
    name: str
    value: float


class Pins(Struct, frozen=True):
    timestamp: Time
    digital_inputs: Sequence[DigitalPin]
    digital_outputs: Sequence[DigitalPin]
    analog_inputs: Sequence[AnalogPin]
    analog_outputs: Sequence[AnalogPin]


class DeviceState(Struct, frozen=True):
    """`values`: the rows of the panel of a device and its curves, by name."""

    timestamp: Time
    values: dict[str, Any]
    faults: Sequence[str]


class Detection(Struct, frozen=True):
    """`pose`: in the frame of the camera. `box`: x, y, width and height in pixels of the camera."""

    id: int
    name: str
    confidence: float
    pose: Pose
    box: Sequence[int]


class Detections(Struct, frozen=True):
    timestamp: Time
    frame_id: str
    objects: Sequence[Detection]
    error: str = ""


class Happening(Struct, frozen=True):
    """A row of the event log: an alarm, a fault, a collision …"""

    timestamp: Time
    number: int
    kind: str
    robot: str
    text: str
    code: int
    what_to_do: str


class WireEvent(Struct, frozen=True):
    """What passed at an endpoint. `kind`: > from the client, < from the robot, ! an event of the
    connection. `address`: of a message and of its answer."""

    timestamp: Time
    endpoint: str
    peer: str
    kind: str
    text: str
    data: bytes
    address: Sequence[str] = ()


class Command(Struct, frozen=True):
    """A command of an operator that was carried out."""

    timestamp: Time
    name: str
    parameters: dict[str, Any]


class Metrics(Struct, frozen=True):
    """`lock_step`: `max` or `step`, with a `rate` of 0; else empty."""

    timestamp: Time
    state: str
    rate: float
    lock_step: str
    gcode_executed: int
    collisions_detected: int
    total_distance_mm: float


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────

TIMES = {Time: "time", Duration: "duration"}
PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    Any: {},
}


def schema_name(kind: type) -> str:
    own = getattr(kind, "__name__", "") in OWN_NAMES
    return f"{OWN if own else 'foxglove'}.{kind.__name__}"


OWN_NAMES = frozenset(
    each.__name__
    for each in (
        *(RobotState, ProgramLine, DigitalPin, AnalogPin, Pins, DeviceState, Detection, Detections),
        *(Happening, WireEvent, Metrics, Command),
    )
)


@cache
def schema_of(kind: type) -> bytes:
    """The JSON schema of the messages of a class."""
    return msgspec.json.encode(_schema(kind))


def schema_of_device(values: Mapping[str, Any]) -> bytes:
    """The schema of a `DeviceState` with these values: viewers offer them by name."""
    schema = _schema(DeviceState)
    schema["properties"]["values"]["properties"] = {
        name: _schema(type(value)) for name, value in values.items()
    }
    return msgspec.json.encode(schema)


def _schema(kind: Any) -> dict[str, Any]:
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "integer"}
    if origin in (Union, types.UnionType):
        (inner,) = (each for each in inside if each is not type(None))
        return _schema(inner)
    if origin is dict:
        return {"type": "object", "properties": {}}
    if origin is not None:
        return {"type": "array", "items": _schema(inside[0])}
    hints = typing.get_type_hints(kind)
    needed = [name for name, each in hints.items() if type(None) not in get_args(each)]
    return {
        "title": TIMES.get(kind) or schema_name(kind),
        "type": "object",
        "properties": {name: _schema(each) for name, each in hints.items()},
        "required": needed,
    }


def write(value: Any) -> bytes:
    """A message as JSON."""
    return msgspec.json.encode(value)
