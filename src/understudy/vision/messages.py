"""Requests and replies of the vision process: JSON over ZeroMQ, as the design document has them.

    {"command": "capture", "params": {"exposure_ms": 10, "gain_db": 0}, "request_id": 7}

    {"success": true, "timestamp_us": 1234567890, "frame_id": 42, "objects": [{"id": 1,
     "class": "bolt_m8", "confidence": 0.95, "bbox": [100, 200, 50, 50],
     "pose": {"x": 150.5, "y": -30.2, "z": 5.0, "rx": 0.0, "ry": 0.0, "rz": 45.3}}]}

Poses are in millimetres and degrees, in the frame of the camera. Matrices are rows of numbers, with
millimetres in the last column. A reply has the `request_id` of its request.
"""

import math
from typing import Annotated, Any, Literal

import msgspec
import msgspec.inspect
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import LONGEST_SHOWN, UNREADABLE, Refused
from understudy.ports.object_finder import DetectedObject
from understudy.sight.frame import ROUNDING
from understudy.sight.lens import Mount
from understudy.sight.targets import CalibrationTarget, Name
from understudy.space.pose import Pose, pose_mm_deg, pose_of
from understudy.space.transform import Array, Rows, from_rows_mm, is_rigid, pose, rows_mm
from understudy.units import MM
from understudy.vision.interface import Seen

LONGEST_REQUEST = 64 * 1024
"""Bytes of a request."""

LengthMm = Annotated[float, Meta(gt=0, le=10_000)]


class RequestError(ValueError):
    """Why a request is not carried out: what came, and what is allowed. `detail`: what the process
    adds to a text of the design document."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to the vision process. `params`: JSON, read as the command needs it. `trigger`: a
    virtual camera is given it, so that its cell knows what the picture is for."""

    command: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    request_id: int | Annotated[str, Meta(max_length=128)] | None = None
    trigger: Annotated[str, Meta(max_length=128)] = ""


class NoParams(Struct, frozen=True, forbid_unknown_fields=True):
    """A command without parameters."""


class GrabParams(Struct, frozen=True, forbid_unknown_fields=True):
    """How a picture is taken. `T_base_flange`: the robot at the request; a frame that knows its own
    goes first."""

    exposure_ms: Annotated[float, Meta(gt=0, le=60_000)] | None = None
    gain_db: Annotated[float, Meta(ge=-100, le=100)] | None = None
    T_base_flange: Rows | None = None


class PictureParams(Struct, frozen=True, forbid_unknown_fields=True):
    """Which picture is wanted, and how it is drawn. `which`: the last picture, or the last one in
    which nothing was found. `show`: the picture with what was seen, as it is, or the depth image in
    colours. `width`: at most, pixels."""

    which: Literal["last", "miss"] = "last"
    show: Literal["objects", "plain", "depth"] = "objects"
    width: Annotated[int, Meta(ge=16, le=2048)] = 640


class CaptureParams(GrabParams, frozen=True, forbid_unknown_fields=True):
    """How a picture is taken and searched. `obstacles`: the reply has `points` of every surface
    that the depth image shows. `detectors`: those of this picture, as in the section `vision`;
    None: those that the server has."""

    obstacles: bool = False
    detectors: tuple[dict[str, Any], ...] | None = None


class CalibrationParams(GrabParams, frozen=True, forbid_unknown_fields=True):
    """How a picture of the target is taken. `picture_px`: the reply has the picture as base64 of a
    JPEG file of this width; 0: none."""

    picture_px: Annotated[int, Meta(ge=0, le=1920)] = 0


class StartParams(Struct, frozen=True, forbid_unknown_fields=True):
    """What a calibration looks at. `mount`: without it as the process was started."""

    target: CalibrationTarget = CalibrationTarget()
    mount: Mount | None = None


class ComputeParams(Struct, frozen=True, forbid_unknown_fields=True):
    """How the camera is computed. `refine`: by the corners of all pictures together. `apply`: later
    pictures use the result."""

    method: Name = "best"
    refine: bool = True
    apply: bool = True


class ValidateParams(GrabParams, frozen=True, forbid_unknown_fields=True):
    tolerance_mm: LengthMm = 1.0


def read_request(data: bytes) -> Request:
    if len(data) > LONGEST_REQUEST:
        raise RequestError(f"{len(data)} bytes; a request has at most {LONGEST_REQUEST}")
    try:
        return msgspec.json.decode(data, type=Request)
    except UNREADABLE as problem:
        raise RequestError(
            f'not a request: {problem}; allowed: {{"command": …, "params": {{…}}, "request_id": …}}'
        ) from None


def read_params(request: Request, kind: type[Struct]) -> Any:
    raw = b"{}" if bytes(request.params) == b"null" else request.params
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE as problem:
        allowed = _allowed(msgspec.inspect.type_info(kind)) or "none"
        raise RequestError(f"{request.command}: params: {problem}; allowed: {allowed}") from None


def _allowed(kind: msgspec.inspect.Type) -> str:
    """The keys of a mapping, with the choices of those that have some."""
    if isinstance(kind, msgspec.inspect.StructType):
        inner = ((field.encode_name, _allowed(field.type)) for field in kind.fields)
        return ", ".join(f"{name} ({choices})" if choices else name for name, choices in inner)
    if isinstance(kind, msgspec.inspect.LiteralType):
        return " | ".join(str(value) for value in kind.values)
    if isinstance(kind, msgspec.inspect.UnionType):
        return next(filter(None, map(_allowed, kind.types)), "")
    return ""


def shown(text: str) -> str:
    """A text of the other side, short enough for a message."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


# ── values ──────────────────────────────────────────────────────────────────────────────────────


def read_place(rows: Rows, name: str) -> Array:
    """Rows with millimetres → 4×4 in metres."""
    place = from_rows_mm(rows)
    if not is_rigid(place, ROUNDING):
        raise RequestError(f"{name} is not a rotation and a translation: {shown(str(rows))}")
    return place


def place_rows(place: Array | None) -> Rows | None:
    """The inverse of `read_place`; None stays None."""
    return None if place is None else rows_mm(place)


def object_of(seen: Seen, count: int) -> dict[str, Any]:
    """An object of a reply; ``count``: its id if it has no number of its own."""
    return {
        "id": count if seen.number is None else seen.number,
        "class": seen.class_name,
        "confidence": seen.confidence,
        "pose": dict(zip(Pose._fields, pose_mm_deg(pose(seen.place)), strict=True)),
        "bbox": list(seen.bbox),
    }


def is_sound(seen: Seen) -> bool:
    """Whether all numbers of an object are finite."""
    return bool(np.isfinite(seen.place).all()) and math.isfinite(seen.confidence)


# ── replies, as clients read them ─────────────────────────────────────────────────────────────────

# Whatever came, nothing is raised. A reply with the `request_id` of another request is refused; one
# without any is accepted, as servers that know only the design document send it.


LARGEST_REPLY = 4 * 1024 * 1024
"""Bytes."""
MOST_OBJECTS = 1000
MOST_POINTS = 20_000
FARTHEST_MM = 1e6
"""A pose beyond it is no pose of an object in a cell."""

Coordinate = Annotated[float, Meta(ge=-FARTHEST_MM, le=FARTHEST_MM)]
PointMm = tuple[Coordinate, Coordinate, Coordinate]
Pixel = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Number = Annotated[int, Meta(ge=-(2**53), le=2**53)]


class PoseMessage(Struct, frozen=True):
    """Millimetres and degrees, in the frame of the camera."""

    x: Coordinate
    y: Coordinate
    z: Coordinate
    rx: Coordinate = 0.0
    ry: Coordinate = 0.0
    rz: Coordinate = 0.0

    def pose(self) -> Pose:
        return pose_of((self.x, self.y, self.z, self.rx, self.ry, self.rz))


class ObjectMessage(Struct, frozen=True):
    id: Number
    class_name: Annotated[str, Meta(max_length=200)] = msgspec.field(name="class")
    confidence: Annotated[float, Meta(ge=0, le=1)]
    pose: PoseMessage
    bbox: tuple[Pixel, Pixel, Pixel, Pixel] = (0, 0, 0, 0)

    def detected(self) -> DetectedObject:
        return DetectedObject(
            self.id, self.class_name, self.confidence, self.pose.pose(), self.bbox
        )


class Picture(Struct, frozen=True):
    """The reply to `capture`. `t_exposure`: seconds on the clock of the camera, None if the
    reply has no such key. `points`: of the depth image, if they were asked for. `brightness`: mean
    grey value, 0 to 255, None if the reply has none."""

    timestamp_us: Number = 0
    frame_id: Number = 0
    objects: Annotated[tuple[ObjectMessage, ...], Meta(max_length=MOST_OBJECTS)] = ()
    t_exposure: float | None = None
    points: Annotated[tuple[PointMm, ...], Meta(max_length=MOST_POINTS)] = ()
    brightness: Annotated[float, Meta(ge=0, le=255)] | None = None

    def detected(self) -> tuple[DetectedObject, ...]:
        return tuple(each.detected() for each in self.objects)

    def cloud(self) -> tuple[tuple[float, float, float], ...]:
        """The points in metres, in the frame of the camera."""
        return tuple((x * MM, y * MM, z * MM) for x, y, z in self.points)


class _Head(Struct, frozen=True):
    """What every reply has."""

    success: bool
    error: str = ""
    detail: str = ""
    request_id: Any = None


def read_picture(data: bytes, request_id: int) -> Picture | Refused:
    refused = _refused(data, request_id)
    if refused is not None:
        return refused
    found: Picture | Refused = _decoded(data, Picture)
    if isinstance(found, Picture) and not math.isfinite(found.t_exposure or 0.0):
        return Refused(f"wrong reply of the vision process: t_exposure is {found.t_exposure}")
    return found


def read_facts(data: bytes, request_id: int) -> dict[str, Any] | Refused:
    """The reply to any other command."""
    refused = _refused(data, request_id)
    return _decoded(data, dict[str, Any]) if refused is None else refused


def _refused(data: bytes, request_id: int) -> Refused | None:
    if len(data) > LARGEST_REPLY:
        return _wrong(f"{len(data)} bytes; allowed: {LARGEST_REPLY}")
    head = _decoded(data, _Head)
    if isinstance(head, Refused):
        return head
    if head.request_id is not None and head.request_id != request_id:
        return _wrong(f"request_id {shown(repr(head.request_id))}, not {request_id}")
    if head.success:
        return None
    return Refused(shown(error_words(head.error, head.detail)) or "the vision process failed")


def error_words(error: str, detail: str) -> str:
    """An error of the design document with what the process adds to it."""
    return f"{error}: {detail}" if detail else error


def _decoded(data: bytes, kind: Any) -> Any:
    try:
        data.decode()  # the decoder does not look at the texts that it skips
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE as problem:
        return _wrong(str(problem))


def _wrong(problem: str) -> Refused:
    return Refused(f"wrong reply of the vision process: {shown(problem)}")
