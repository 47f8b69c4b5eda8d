"""A vehicle on the floor as an arm of three joints: x and y slide, yaw turns."""

from functools import lru_cache

import numpy as np

from understudy.space.collision.arm_pair import PlacedArm
from understudy.space.collision.solids import Part
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.robot import Box
from understudy.space.model.urdf import read
from understudy.space.transform import translation

_JOINT = """
<joint name="{name}" type="{kind}"><parent link="{before}"/><child link="{name}_link"/>
<axis xyz="{axis}"/><limit lower="-1e9" upper="1e9" velocity="1" effort="1"/></joint>
<link name="{name}_link"/>"""
_MODEL = (
    '<robot name="vehicle"><link name="floor"/>'
    + _JOINT.format(name="x", kind="prismatic", before="floor", axis="1 0 0")
    + _JOINT.format(name="y", kind="prismatic", before="x_link", axis="0 1 0")
    + _JOINT.format(name="yaw", kind="revolute", before="y_link", axis="0 0 1")
    + "</robot>"
)


@lru_cache(maxsize=1)
def _floor_chain() -> Chain:
    return chain(read(_MODEL))


def placed_vehicle(
    body: tuple[float, float, float, float],
    fastest: tuple[float, float] = (0.0, 0.0),
    *,
    margin: float = 0.0,
) -> PlacedArm:
    """A box on the floor, whose joints are the pose x, y, yaw (m, rad) of the vehicle.

    ``body``: its length, width and height, and how far its middle is ahead of the pose, in metres.
    ``fastest``: its highest speeds, m/s and rad/s. ``margin``: by which it is larger on all sides.
    """
    length, width, height, ahead = body
    size = (length + 2.0 * margin, width + 2.0 * margin, height + margin)
    part = Part("body", Box(size), translation(ahead, 0.0, 0.5 * size[2]), 3, 3)
    speed, turning = fastest
    return PlacedArm(_floor_chain(), np.eye(4), (part,), np.array([speed, speed, turning]))
