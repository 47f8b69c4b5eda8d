"""A serial arm ready for arithmetic: forward kinematics, Jacobian, limits, bodies."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.kinematics import forward
from understudy.space.model.bodies import Body, bodies
from understudy.space.model.robot import RobotModel
from understudy.space.transform import Array, inverse, matrix

UNSTATED_ACCELERATION = 2.0
"""Where a robot states no acceleration: top speed is reached in half a second."""
UNSTATED_JERK = 5.0
"""Where a robot states no jerk: full acceleration is reached in a fifth of a second."""


@dataclass(frozen=True, eq=False)
class Frames:
    """A base (its place from the robot's foot) and a tool (its tip from the flange), 4×4 each."""

    base: Array
    tool: Array

    def tcp(self, flange: Array) -> Array:
        """Where the tool is in the base, given the flange from the foot; also for stacks."""
        return np.asarray(inverse(self.base) @ flange @ self.tool)

    def flange(self, tcp: Array) -> Array:
        """Where the flange must be from the foot, for the tool to be there in the base."""
        return np.asarray(self.base @ tcp @ inverse(self.tool))


FOOT_AND_FLANGE = Frames(np.eye(4), np.eye(4))
"""No base shifted, no tool mounted."""


@dataclass(frozen=True, eq=False)
class Chain:
    """The arm of a robot model. Configurations are arrays of joint values in rad (m)."""

    model: RobotModel
    names: tuple[str, ...]
    slides: Array
    """1.0 for a prismatic joint, 0.0 for a revolute one."""
    rest: Array
    align: Array
    """Per joint the rotation from the frame whose z is the axis to the link's own frame."""
    tip: Array
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array

    @property
    def dof(self) -> int:
        return len(self.names)

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """dof + 1 rigid bodies, the foot first; body i is given in the frame ``links(q)[i]``."""
        return bodies(self.model)

    def flange(self, q: ArrayLike) -> Array:
        """The tip's frame from the foot, 4×4."""
        return np.asarray(self.flanges(_row(q))[0])

    def flanges(self, Q: Array, frames: Frames = FOOT_AND_FLANGE) -> Array:
        """(m, dof) configurations → (m, 4, 4): the tool in the base, for many at once."""
        out = np.empty((len(Q), 4, 4))
        rest, tip = self.rest, self.tip
        if frames is not FOOT_AND_FLANGE:
            tip = tip @ frames.tool
        forward.flange_frames(_rows(Q), rest, self.slides, tip, out)
        if frames is not FOOT_AND_FLANGE:
            return np.asarray(inverse(frames.base) @ out)
        return out

    def links(self, q: ArrayLike) -> Array:
        """(dof + 1, 4, 4): the frames of all bodies from the foot, the foot's own first."""
        return np.asarray(self.links_of(_row(q))[0])

    def links_of(self, Q: Array) -> Array:
        """(m, dof) → (m, dof + 1, 4, 4)."""
        out = self.axes_of(Q)
        out[:, 1:, :3, :3] @= self.align
        return out

    def axes_of(self, Q: Array) -> Array:
        """(m, dof) → (m, dof + 1, 4, 4): the foot, then frames on the joint axes, z along them."""
        out = np.empty((len(Q), self.dof + 1, 4, 4))
        forward.joint_frames(_rows(Q), self.rest, self.slides, out)
        return out

    def jacobian(self, q: ArrayLike, tool: Array | None = None) -> Array:
        """6×dof, in the axes of the foot: velocity of the tool's tip, then its turning rate."""
        return np.asarray(self.jacobians(_row(q), tool)[0])

    def jacobians(self, Q: Array, tool: Array | None = None) -> Array:
        """(m, dof) → (m, 6, dof)."""
        frames = self.axes_of(Q)
        end = self.tip if tool is None else self.tip @ tool
        points = frames[:, -1, :3, :3] @ end[:3, 3] + frames[:, -1, :3, 3]
        out = np.empty((len(Q), 6, self.dof))
        forward.jacobians(frames, self.slides, points, out)
        return out


def chain(model: RobotModel) -> Chain:
    """The arm from the model's base to its tip."""
    moving = model.moving()
    rest, align = [], []
    before = np.eye(4)
    for joint in model.way():
        before = before @ matrix(joint.origin)
        if not joint.moves:
            continue
        turn = np.eye(4)
        turn[:3, :3] = _z_onto(np.array(joint.axis))
        rest.append(forward.packed(before @ turn))
        align.append(turn[:3, :3].T)
        before = turn.T
    velocity = np.array([joint.velocity for joint in moving])
    stated = np.array([joint.acceleration for joint in moving])
    acceleration = np.where(np.isfinite(stated), stated, UNSTATED_ACCELERATION * velocity)
    stated = np.array([joint.jerk for joint in moving])
    return Chain(
        model=model,
        names=tuple(joint.name for joint in moving),
        slides=np.array([float(joint.kind == "prismatic") for joint in moving]),
        rest=np.array(rest),
        align=np.array(align),
        tip=np.ascontiguousarray(before),
        lower=np.array([joint.lower for joint in moving]),
        upper=np.array([joint.upper for joint in moving]),
        velocity=velocity,
        acceleration=acceleration,
        jerk=np.where(np.isfinite(stated), stated, UNSTATED_JERK * acceleration),
        effort=np.array([joint.effort for joint in moving]),
    )


def _rows(Q: Array) -> Array:
    return np.ascontiguousarray(Q, dtype=np.float64)


def _row(q: ArrayLike) -> Array:
    return np.asarray(q, dtype=np.float64).reshape(1, -1)


def _z_onto(axis: Array) -> Array:
    """A rotation that turns z onto the axis; the identity where it is z already."""
    x, y, z = axis
    if z > 1.0 - 1e-15:
        return np.eye(3)
    if z < -1.0 + 1e-15:
        return np.diag([1.0, -1.0, -1.0])
    side = np.array([-y, x, 0.0]) / np.hypot(x, y)
    return np.column_stack([np.cross(side, axis), side, axis])
