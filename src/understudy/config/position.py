"""A position of pickplace.yaml: x y z in mm, rx ry rz in degrees."""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.space.pose import Pose, pose_of

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
