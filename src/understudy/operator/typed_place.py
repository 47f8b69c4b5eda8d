"""A place that an operator types: a pose or joints; the other one is computed."""

from collections.abc import Sequence

import numpy as np

from understudy.errors import Refused
from understudy.operator.models import chain_of, tool_of
from understudy.operator.motion import HOW_TO
from understudy.operator.robots import Robot
from understudy.ports import Joints
from understudy.simulation.points import Point
from understudy.space.kinematics.chain import Frames
from understudy.space.kinematics.ik import nearest, solve
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import inverse, matrix, pose


def typed_place(
    robot: Robot,
    before: Point,
    pose_mm_deg: Sequence[float] | None,
    joints_deg: Sequence[float] | None,
) -> tuple[Joints, Pose] | Refused:
    """The joints and the pose of typed coordinates; the joints nearest to those of before."""
    if (pose_mm_deg is None) == (joints_deg is None):
        return HOW_TO
    if pose_mm_deg is not None:
        there = pose_of(pose_mm_deg)
        joints = _joints_at(robot, there, before)
        return joints if isinstance(joints, Refused) else (joints, there)
    chain = chain_of(robot)
    if isinstance(chain, Refused):
        return chain
    given = joints_deg or ()
    if len(given) != chain.dof:
        return Refused(f"{robot.name} has {chain.dof} joints, joints_deg has {len(given)} numbers")
    joints = tuple((np.array(given) * chain.units).tolist())
    return joints, pose(_frames(robot).tcp(chain.flange(joints)))


def _joints_at(robot: Robot, there: Pose, before: Point) -> Joints | Refused:
    """The joints of a pose: empty for a robot without joint targets, the axes of a machine."""
    if "joint" not in robot.side.actions.frames:
        return ()
    if robot.model.chain is None:
        return tuple(there)
    near = before.joints or robot.axis_reading().joints
    found = solve(robot.model.chain, matrix(there), frames=_frames(robot), near=near)
    return found if isinstance(found, Refused) else tuple(nearest(found, near).tolist())


def _frames(robot: Robot) -> Frames:
    """The frames in which the robot's poses are: its base, and the tip of its present tool."""
    tool = robot.model.tools().get(tool_of(robot))
    tip = np.eye(4) if tool is None else matrix(pose_of(tool.tcp_mm_deg))
    return Frames(inverse(np.array(robot.model.base).reshape(4, 4)), tip)
