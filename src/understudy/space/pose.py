"""A pose as people write it: where, and turned how. Metres and radians; R = Rz·Ry·Rx."""

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
    """Each of the six numbers on its straight way; exactly ``end`` at share 1."""
    if share >= 1.0:
        return end
    return Pose(*(a + (b - a) * share for a, b in zip(start, end, strict=True)))
