"""A position of pickplace.yaml: x y z in mm, rx ry rz in degrees."""

from msgspec import Struct

from understudy.space.pose import Pose, pose_of


class Position(Struct, frozen=True, forbid_unknown_fields=True):
    """R = Rz(rz)·Ry(ry)·Rx(rx); the default points down, as a hand above a table does."""

    x: float
    y: float
    z: float
    rx: float = 180.0
    ry: float = 0.0
    rz: float = 0.0

    def pose(self) -> Pose:
        return pose_of((self.x, self.y, self.z, self.rx, self.ry, self.rz))
