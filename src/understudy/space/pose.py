"""Pose: position in metres and three angles in radians, with R = Rz(rz)·Ry(ry)·Rx(rx).

`Position` is a pose as the files of jobs have it: x y z in mm, rx ry rz in degrees.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from understudy.units import DEG, MM


class Pose(NamedTuple):
    x: float
    y: float
    z: float
    rx: float
    ry: float
    rz: float


ORIGIN = Pose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def interpolated(start: Pose, end: Pose, share: float) -> Pose:
    """Interpolates each of the six numbers linearly; exactly ``end`` at share 1."""
    if share >= 1.0:
        return end
    return Pose(*(a + (b - a) * share for a, b in zip(start, end, strict=True)))


def pose_mm_deg(pose: Pose) -> list[float]:
    """A pose in millimetres and degrees."""
    return [value / MM for value in pose[:3]] + [value / DEG for value in pose[3:]]


def pose_of(mm_deg: Sequence[float]) -> Pose:
    """The pose that six numbers in millimetres and degrees stand for."""
    x, y, z, rx, ry, rz = mm_deg
    return Pose(x * MM, y * MM, z * MM, rx * DEG, ry * DEG, rz * DEG)


Coordinate = Annotated[float, Meta(ge=-1e6, le=1e6)]
Angle = Annotated[float, Meta(ge=-3600, le=3600)]
Speed = Annotated[float, Meta(ge=0.01, le=10_000)]
PoseMmDeg = tuple[Coordinate, Coordinate, Coordinate, Angle, Angle, Angle]


class Position(Struct, frozen=True, forbid_unknown_fields=True):
    """R = Rz(rz)·Ry(ry)·Rx(rx); the default points down, as a hand above a table does."""

    x: Coordinate
    y: Coordinate
    z: Coordinate
    rx: Angle = 180.0
    ry: Angle = 0.0
    rz: Angle = 0.0

    def pose(self) -> Pose:
        return pose_of((self.x, self.y, self.z, self.rx, self.ry, self.rz))
