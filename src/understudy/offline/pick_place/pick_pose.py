"""The pose of the tool at a detected object: T_base_tcp = T_base_cam · T_cam_obj · T_obj_grasp.

`T_base_cam` is the pose of the camera in the cell when the picture was taken.
"""

import math

import numpy as np

from understudy.config.pick_place.cycle import Grasp
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import Array, matrix, pose, rotation_about
from understudy.units import DEG

Z = (0.0, 0.0, 1.0)
TURNED_OVER = matrix(pose_of((0.0, 0.0, 0.0, 180.0, 0.0, 0.0)))
WHOLE_TURN = 360.0


def pick_pose(camera: Pose, seen: Pose, grasp: Grasp, near: Pose) -> Pose:
    """The pose of the tool that grips an object.

    ``seen``: the object in the frame of the camera. ``near``: of the grasps that a symmetric part
    allows, the one with the least turn about the axis of the tool from this pose is taken.
    """
    in_cell = matrix(camera) @ matrix(seen)
    tool = in_cell @ (_from_camera_side(in_cell, camera) if grasp.offset_mm_deg is None
                      else matrix(pose_of(grasp.offset_mm_deg)))  # fmt: skip
    return pose(_nearest(tool, matrix(near), grasp.symmetry_deg))


def _from_camera_side(in_cell: Array, camera: Pose) -> Array:
    """The grasp of a class without one: the tool points as the camera looks, along the object's
    own Z axis or against it. Detectors differ: the Z axis of a marker points to the camera, a
    flat detector gives angles as seen by the camera."""
    looks = matrix(camera)[:3, 2]
    return np.eye(4) if float(in_cell[:3, 2] @ looks) >= 0.0 else TURNED_OVER


def _nearest(tool: Array, near: Array, symmetry_deg: float) -> Array:
    """``tool``, turned about its own axis by a multiple of the symmetry."""
    if not 0.0 < symmetry_deg < WHOLE_TURN:
        return tool
    between = tool[:3, :3].T @ near[:3, :3]
    yaw = math.atan2(between[1, 0] - between[0, 1], between[0, 0] + between[1, 1])
    step = symmetry_deg * DEG
    turned = tool.copy()
    turned[:3, :3] = tool[:3, :3] @ rotation_about(Z, round(yaw / step) * step)
    return turned
