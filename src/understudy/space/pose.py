"""Pose: position in metres and three angles in radians, with R = Rz(rz)·Ry(ry)·Rx(rx)."""

from collections.abc import Sequence
from typing import NamedTuple

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
