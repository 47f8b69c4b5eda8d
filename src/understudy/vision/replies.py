"""Replies of the vision process, as its clients read them: a value, or the reason of a refusal.

Whatever came, nothing is raised. A reply with the `request_id` of another request is refused; one
without any is accepted, as servers that know only the design document send it.
"""

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import LONGEST_SHOWN, UNREADABLE, Refused
from understudy.ports.vision import DetectedObject
from understudy.space.pose import Pose, pose_of
from understudy.units import MM

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
    reply has no such key. `points`: of the depth image, if they were asked for."""

    timestamp_us: Number = 0
    frame_id: Number = 0
    objects: Annotated[tuple[ObjectMessage, ...], Meta(max_length=MOST_OBJECTS)] = ()
    t_exposure: float | None = None
    points: Annotated[tuple[PointMm, ...], Meta(max_length=MOST_POINTS)] = ()

    def detected(self) -> tuple[DetectedObject, ...]:
        return tuple(each.detected() for each in self.objects)

    def cloud(self) -> tuple[tuple[float, float, float], ...]:
        """The points in metres, in the frame of the camera."""
        return tuple((x * MM, y * MM, z * MM) for x, y, z in self.points)


class _Head(Struct, frozen=True):
    """What every reply has."""

    success: bool
    error: str = ""
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
        return _wrong(f"request_id {_short(repr(head.request_id))}, not {request_id}")
    return None if head.success else Refused(_short(head.error) or "the vision process failed")


def _decoded(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE as problem:
        return _wrong(str(problem))


def _wrong(problem: str) -> Refused:
    return Refused(f"wrong reply of the vision process: {_short(problem)}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
