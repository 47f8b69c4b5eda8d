"""Pose: position in metres and three angles in radians, with R = Rz(rz)·Ry(ry)·Rx(rx)."""

from typing import NamedTuple


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
