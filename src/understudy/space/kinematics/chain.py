"""`Chain`: a serial arm with forward kinematics, Jacobian, joint limits and rigid bodies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.kinematics import forward
from understudy.space.model.robot import Inertial, Joint, RobotModel, Solid
from understudy.space.transform import Array, inverse, matrix, pose
from understudy.units import DEG, MM

Mass = tuple[float, Array, Array]
"""Mass, centre of mass, and 3×3 inertia tensor about it."""


@dataclass(frozen=True, eq=False)
class Body:
    """The links that move together with one joint, joined by fixed joints.

    The first body belongs to no joint. Everything is in the frame of the body's first link;
    ``inertia`` is the 3×3 tensor about the centre of mass ``com``.
    """

    name: str
    index: int
    mass: float
    com: Array
    inertia: Array
    collision: tuple[Solid, ...]
    visual: tuple[Solid, ...]


def bodies(model: RobotModel) -> tuple[Body, ...]:
    """The base first, then one body for each moving joint up to the tip."""
    first_links = (model.base, *(joint.child for joint in model.moving()))
    return tuple(_body(model, name, place) for place, name in enumerate(first_links))


def _body(model: RobotModel, first: str, place: int) -> Body:
    placed = [(model.link(name), at) for name, at in _held(first, np.eye(4), model.joints)]
    mass, com, inertia = combined([_mass(link.inertial, at) for link, at in placed])
    stated = [link.index for link, _ in placed if link.index is not None]
    return Body(
        first,
        stated[0] if stated else place,
        mass,
        com,
        inertia,
        tuple(_moved(solid, at) for link, at in placed for solid in link.collision),
        tuple(_moved(solid, at) for link, at in placed for solid in link.visual),
    )


def _held(name: str, at: Array, joints: Iterable[Joint]) -> list[tuple[str, Array]]:
    """The link and all links attached to it by fixed joints, with their frames."""
    found = [(name, at)]
    for joint in joints:
        if joint.parent == name and not joint.moves:
            found += _held(joint.child, at @ matrix(joint.origin), joints)
    return found


def _moved(solid: Solid, at: Array) -> Solid:
    if np.array_equal(at, np.eye(4)):
        return solid
    return replace(solid, origin=pose(at @ matrix(solid.origin)))


def combined(masses: Sequence[Mass]) -> Mass:
    """Several masses as one, by the parallel axis theorem."""
    mass = sum(m for m, _, _ in masses)
    com = sum((m * c for m, c, _ in masses), np.zeros(3)) / mass if mass else np.zeros(3)
    total = np.zeros((3, 3))
    for m, c, tensor in masses:
        d = c - com
        total += tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, total


def _mass(i: Inertial, at: Array) -> Mass:
    """The mass of a link whose frame is ``at``."""
    place = at @ matrix(i.origin)
    own = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    return i.mass, place[:3, 3], np.asarray(place[:3, :3] @ own @ place[:3, :3].T)


# ── the chain ─────────────────────────────────────────────────────────────────────────────────────


UNSTATED_ACCELERATION = 2.0
"""Acceleration over velocity if a robot states none: top speed is reached in 0.5 s."""
UNSTATED_JERK = 5.0
"""Jerk over acceleration if a robot states none: full acceleration is reached in 0.2 s."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Base frame in the robot's foot frame, and tool frame (TCP) in the flange frame, 4×4 each."""

    base: Array
    tool: Array

    def tcp(self, flange: Array) -> Array:
        """TCP in the base frame, from the flange in the foot frame; also for stacks of matrices."""
        return np.asarray(inverse(self.base) @ flange @ self.tool)

    def flange(self, tcp: Array) -> Array:
        """Flange in the foot frame, from the TCP in the base frame."""
        return np.asarray(self.base @ tcp @ inverse(self.tool))


FOOT_AND_FLANGE = Frames(np.eye(4), np.eye(4))
"""Base frame at the foot, tool frame at the flange."""


@dataclass(frozen=True, eq=False)
class Chain:
    """The arm of a robot model. A configuration is an array of joint values in rad (m)."""

    model: RobotModel
    names: tuple[str, ...]
    slides: Array
    """1.0 for a prismatic joint, 0.0 for a revolute one."""
    rest: Array
    """(dof, 12): frames of the joints at zero, see `forward`."""
    align: Array
    """Per joint the rotation from the axis frame (z along the axis) to the link's frame."""
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
    def units(self) -> Array:
        """Size of each joint's unit in programs, messages and pages: a degree in rad, or a
        millimetre in m if the joint slides."""
        return np.where(self.slides > 0, MM, DEG)

    @property
    def unit_names(self) -> tuple[str, ...]:
        """``deg``, or ``mm`` of a joint that slides."""
        return tuple("mm" if slides else "deg" for slides in self.slides)

    @cached_property
    def linear(self) -> tuple[int, ...]:
        """Indices of the joints that slide."""
        return tuple(np.flatnonzero(self.slides).tolist())

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """dof + 1 rigid bodies, the base first; body i is in the frame ``links(q)[i]``."""
        return bodies(self.model)

    @property
    def sampling_range(self) -> tuple[Array, Array]:
        """Lower and upper limits of the joints; ±180° for a joint without limits."""
        low = np.where(np.isfinite(self.lower), self.lower, -np.pi)
        return low, np.where(np.isfinite(self.upper), self.upper, np.pi)

    def flange(self, q: ArrayLike) -> Array:
        """Flange in the foot frame, 4×4."""
        return np.asarray(self.flanges(_row(q))[0])

    def flanges(self, Q: Array, frames: Frames = FOOT_AND_FLANGE) -> Array:
        """(m, dof) configurations → (m, 4, 4): TCP in the base frame."""
        out = np.empty((len(Q), 4, 4))
        rest, tip = self.rest, self.tip
        if frames is not FOOT_AND_FLANGE:
            tip = tip @ frames.tool
        forward.flange_frames(_rows(Q), rest, self.slides, tip, out)
        if frames is not FOOT_AND_FLANGE:
            return np.asarray(inverse(frames.base) @ out)
        return out

    def links(self, q: ArrayLike) -> Array:
        """(dof + 1, 4, 4): frames of all bodies in the foot frame, the base first."""
        return np.asarray(self.links_of(_row(q))[0])

    def links_of(self, Q: Array) -> Array:
        """(m, dof) → (m, dof + 1, 4, 4)."""
        out = self.axes_of(Q)
        out[:, 1:, :3, :3] @= self.align
        return out

    def axes_of(self, Q: Array) -> Array:
        """(m, dof) → (m, dof + 1, 4, 4): the foot, then one frame per joint, z along its axis."""
        out = np.empty((len(Q), self.dof + 1, 4, 4))
        forward.joint_frames(_rows(Q), self.rest, self.slides, out)
        return out

    def jacobian(self, q: ArrayLike, tool: Array | None = None) -> Array:
        """6×dof, in the axes of the foot: linear, then angular velocity of the TCP."""
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
    """Builds the chain from the model's base to its tip."""
    moving = model.moving()
    rest, align = [], []
    before = np.eye(4)
    for joint in model.joints_to_tip():
        before = before @ matrix(joint.origin)
        if not joint.moves:
            continue
        turn = np.eye(4)
        turn[:3, :3] = _z_onto(np.array(joint.axis))
        rest.append(forward.frame_row(before @ turn))
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
    """Rotation that maps z to the axis; the identity if the axis is z."""
    x, y, z = axis
    if z > 1.0 - 1e-15:
        return np.eye(3)
    if z < -1.0 + 1e-15:
        return np.diag([1.0, -1.0, -1.0])
    side = np.array([-y, x, 0.0]) / np.hypot(x, y)
    return np.column_stack([np.cross(side, axis), side, axis])
