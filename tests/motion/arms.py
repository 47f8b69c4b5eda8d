"""The catalogue's arms, and poses they reach."""

from importlib.resources import files

import numpy as np

from understudy.motion.path import Limits
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.kinematics.ik import nearest, solve
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import DEG


def robot_text(name: str) -> str:
    return (files("understudy") / "catalog" / "robots" / f"{name}.urdf").read_text()


G60: Chain = chain(read(robot_text("g60")))
LIMITS = Limits.of(G60.velocity, G60.acceleration, G60.jerk)


def pose(x: float, y: float, z: float, rx: float, ry: float, rz: float) -> np.ndarray:
    """Metres and degrees."""
    return matrix(Pose(x, y, z, rx * DEG, ry * DEG, rz * DEG))


def joints_at(target: np.ndarray) -> np.ndarray:
    found = solve(G60, target)
    assert isinstance(found, np.ndarray), found
    return nearest(found, np.zeros(6))


SCAN = pose(0.4, -0.2, 0.5, 180.0, 0.0, 0.0)
AT_SCAN = joints_at(SCAN)
