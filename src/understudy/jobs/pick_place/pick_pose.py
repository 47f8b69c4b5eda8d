"""The pose of the tool at a detected object: T_base_tcp = T_base_cam · T_cam_obj · T_obj_grasp.

`T_base_cam` is the pose of the camera in the cell when the picture was taken.
"""

import math
from collections.abc import Iterator

import numpy as np

from understudy.jobs.pick_place.config import Grasp
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import Array, matrix, pose, rotation_about
from understudy.units import DEG

Z = (0.0, 0.0, 1.0)
TURNED_OVER = matrix(pose_of((0.0, 0.0, 0.0, 180.0, 0.0, 0.0)))
WHOLE_TURN = 360.0
MOST_TURNS = 8
"""Grasps of a symmetric part that are tried; a round part would have any number."""


def pick_pose(camera: Pose, seen: Pose, grasp: Grasp, near: Pose) -> Pose:
    """The first of the `pick_poses`."""
    return pick_poses(camera, seen, grasp, near)[0]


def pick_poses(camera: Pose, seen: Pose, grasp: Grasp, near: Pose) -> list[Pose]:
    """The poses of the tool that grip an object: several if the part is symmetric, the one with the
    least turn about the axis of the tool from ``near`` first.

    ``seen``: the object in the frame of the camera.
    """
    in_cell = matrix(camera) @ matrix(seen)
    tool = in_cell @ (_from_camera_side(in_cell, camera) if grasp.offset_mm_deg is None
                      else matrix(pose_of(grasp.offset_mm_deg)))  # fmt: skip
    return [pose(each) for each in _turned(tool, matrix(near), grasp.symmetry_deg)]


def _from_camera_side(in_cell: Array, camera: Pose) -> Array:
    """The grasp of a class without one: the tool points as the camera looks, along the object's
    own Z axis or against it. Detectors differ: the Z axis of a marker points to the camera, a
    flat detector gives angles as seen by the camera."""
    looks = matrix(camera)[:3, 2]
    return np.eye(4) if float(in_cell[:3, 2] @ looks) >= 0.0 else TURNED_OVER


def _turned(tool: Array, near: Array, symmetry_deg: float) -> Iterator[Array]:
    """``tool``, turned about its own axis by multiples of the symmetry, the nearest first."""
    if not 0.0 < symmetry_deg < WHOLE_TURN:
        yield tool
        return
    between = tool[:3, :3].T @ near[:3, :3]
    yaw = math.atan2(between[1, 0] - between[0, 1], between[0, 0] + between[1, 1])
    step, first = symmetry_deg * DEG, round(yaw / (symmetry_deg * DEG))
    count = min(round(WHOLE_TURN / symmetry_deg), MOST_TURNS)
    side = 1 if yaw >= first * step else -1
    for number in range(count):
        away = side * ((number + 1) // 2) * (1 if number % 2 else -1)
        turned = tool.copy()
        turned[:3, :3] = tool[:3, :3] @ rotation_about(Z, (first + away) * step)
        yield turned
