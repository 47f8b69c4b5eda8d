"""`Chain`: a serial arm with forward kinematics, Jacobian, joint limits and rigid bodies.

Sine, cosine and arctangent are vectorised: loops that the compiler turns into SIMD instructions.
Their polynomials are interpolated at Chebyshev nodes with 60 digits, so that only rounding errors
remain. No mathematics library is called: results do not depend on which one is installed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.compiled import borrowed, compiled
from understudy.space.model.robot import Inertial, Joint, RobotModel, Solid
from understudy.space.transform import Array, inverse, matrix, pose
from understudy.units import DEG, MM

QUARTER, HALF, FULL = math.pi / 4, math.pi / 2, math.pi
TAN_EIGHTH = math.sqrt(2.0) - 1.0
PER_HALF = 1.0 / HALF
HALF_HIGH = 1.570796325802803
HALF_LOW = 9.920935796805404e-10
"""π/2 in two parts; the first has 29 bits, so that small multiples of it are exact."""


@compiled
def arctan2(y: Array, x: Array, out: Array) -> None:  # kernel
    """out[i] = atan2(y[i], x[i]) to within 1e-15 of its value; 0 where both are 0.

    The quotient is reduced to ±tan(π/8), where atan(t) = t + t³·P(t²).
    """
    for i in range(y.shape[0]):
        ax, ay = abs(x[i]), abs(y[i])
        small, large = min(ax, ay), max(ax, ay)
        steep = small > TAN_EIGHTH * large
        above = small - large if steep else small
        below = small + large if steep else large
        t = above / (below if below > 0.0 else 1.0)
        z = t * t
        p = -0.019176887119062257
        p = p * z + 0.03923165829558719
        p = p * z - 0.0508544973794026
        p = p * z + 0.0585814891280221
        p = p * z - 0.06664511447381948
        p = p * z + 0.07692183190826087
        p = p * z - 0.09090904578123903
        p = p * z + 0.11111111015256361
        p = p * z - 0.14285714284666542
        p = p * z + 0.1999999999999552
        p = p * z - 0.3333333333333333
        a = t + t * z * p
        a = a + QUARTER if steep else a
        a = HALF - a if ay > ax else a
        a = FULL - a if x[i] < 0.0 else a
        out[i] = -a if y[i] < 0.0 else a


@compiled
def sincos(angle: Array, sin: Array, cos: Array) -> None:  # kernel
    """Sines and cosines, to within 1e-15 for angles up to a thousand turns.

    The angle is reduced by quarter turns to r within ±π/4, where sin(r) = r + r³·S(r²) and
    cos(r) = 1 - r²/2 + r⁴·C(r²).
    """
    for i in range(angle.shape[0]):
        quarters = np.floor(angle[i] * PER_HALF + 0.5)
        r = (angle[i] - quarters * HALF_HIGH) - quarters * HALF_LOW
        z = r * r
        s = 1.5918129294866608e-10
        s = s * z - 2.5051131845003624e-08
        s = s * z + 2.755731610255244e-06
        s = s * z - 0.00019841269836758574
        s = s * z + 0.008333333333330948
        s = s * z - 0.16666666666666666
        s = r + r * z * s
        c = -1.1382632425521717e-11
        c = c * z + 2.08761462684032e-09
        c = c * z - 2.7557317271729793e-07
        c = c * z + 2.480158729876569e-05
        c = c * z - 0.0013888888888887398
        c = c * z + 0.041666666666666664
        c = 1.0 - (0.5 * z - z * z * c)
        place = quarters - 4.0 * np.floor(0.25 * quarters)
        odd = place == 1.0 or place == 3.0
        up, along = (c if odd else s), (s if odd else c)
        sin[i] = -up if place >= 2.0 else up
        cos[i] = -along if place == 1.0 or place == 2.0 else along


# ── kernels ───────────────────────────────────────────────────────────────────────────────────────
#
# Every joint has a frame whose z is its axis: ``rest[i]`` is the transform from the moved frame of
# joint i-1 to the frame of joint i at zero (12 numbers, rotation row by row, then translation). A
# revolute joint then rotates about z, a prismatic one (``slides[i]``) shifts along z.


BLOCK = 64
"""Configurations whose sines are computed at once: few enough for the L1 cache."""


@compiled
def flange_frames(Q: Array, rest: Array, slides: Array, tip: Array, out: Array) -> None:  # kernel
    """out[k] (4×4) = the product of all joints at Q[k], times ``tip``."""
    Q, rest, slides = borrowed(Q), borrowed(rest), borrowed(slides)
    tip, out = borrowed(tip), borrowed(out)
    joints = Q.shape[1]
    angles = Q.reshape(-1)
    sines = np.empty(min(BLOCK, Q.shape[0]) * joints)
    cosines = np.empty_like(sines)  # with rows of one array the loop is half as fast
    for k in range(Q.shape[0]):
        at = (k % BLOCK) * joints
        if at == 0:
            sincos(angles[k * joints : (k + BLOCK) * joints], sines, cosines)
        # The product so far, in registers: rows (a b c x), (d e f y), (g h i z).
        a, b, c, x = 1.0, 0.0, 0.0, 0.0
        d, e, f, y = 0.0, 1.0, 0.0, 0.0
        g, h, i, z = 0.0, 0.0, 1.0, 0.0
        for j in range(joints):
            r = rest[j]
            x += a * r[9] + b * r[10] + c * r[11]
            y += d * r[9] + e * r[10] + f * r[11]
            z += g * r[9] + h * r[10] + i * r[11]
            a, b, c = (
                a * r[0] + b * r[3] + c * r[6],
                a * r[1] + b * r[4] + c * r[7],
                a * r[2] + b * r[5] + c * r[8],
            )
            d, e, f = (
                d * r[0] + e * r[3] + f * r[6],
                d * r[1] + e * r[4] + f * r[7],
                d * r[2] + e * r[5] + f * r[8],
            )
            g, h, i = (
                g * r[0] + h * r[3] + i * r[6],
                g * r[1] + h * r[4] + i * r[7],
                g * r[2] + h * r[5] + i * r[8],
            )
            if slides[j]:
                q = Q[k, j]
                x += c * q
                y += f * q
                z += i * q
            else:
                sin, cos = sines[at + j], cosines[at + j]
                a, b = a * cos + b * sin, b * cos - a * sin
                d, e = d * cos + e * sin, e * cos - d * sin
                g, h = g * cos + h * sin, h * cos - g * sin
        T = out[k]
        for m in range(4):
            T[0, m] = a * tip[0, m] + b * tip[1, m] + c * tip[2, m]
            T[1, m] = d * tip[0, m] + e * tip[1, m] + f * tip[2, m]
            T[2, m] = g * tip[0, m] + h * tip[1, m] + i * tip[2, m]
            T[3, m] = 0.0
        T[0, 3] += x
        T[1, 3] += y
        T[2, 3] += z
        T[3, 3] = 1.0


@compiled
def tip_points(  # kernel
    Q: Array, rest: Array, slides: Array, point: Array, out: Array
) -> None:
    """out[k] (3) = a point of the last joint's moved frame at Q[k], in the foot frame: the
    translation of `flange_frames`, from the tip inwards."""
    Q, rest, slides, out = borrowed(Q), borrowed(rest), borrowed(slides), borrowed(out)
    joints = Q.shape[1]
    angles = Q.reshape(-1)
    sines = np.empty(min(BLOCK, Q.shape[0]) * joints)
    cosines = np.empty_like(sines)
    for k in range(Q.shape[0]):
        at = (k % BLOCK) * joints
        if at == 0:
            sincos(angles[k * joints : (k + BLOCK) * joints], sines, cosines)
        x, y, z = point[0], point[1], point[2]
        for j in range(joints - 1, -1, -1):
            r = rest[j]
            if slides[j]:
                z += Q[k, j]
            else:
                sin, cos = sines[at + j], cosines[at + j]
                x, y = x * cos - y * sin, x * sin + y * cos
            x, y, z = (
                r[0] * x + r[1] * y + r[2] * z + r[9],
                r[3] * x + r[4] * y + r[5] * z + r[10],
                r[6] * x + r[7] * y + r[8] * z + r[11],
            )
        out[k, 0], out[k, 1], out[k, 2] = x, y, z


@compiled
def joint_frames(Q: Array, rest: Array, slides: Array, out: Array) -> None:  # kernel
    """out[k, j + 1] (4×4): the moved frame of joint j, z along its axis; out[k, 0]: the foot."""
    Q, rest, slides, out = borrowed(Q), borrowed(rest), borrowed(slides), borrowed(out)
    joints = Q.shape[1]
    angles = Q.reshape(-1)
    sines = np.empty(min(BLOCK, Q.shape[0]) * joints)
    cosines = np.empty_like(sines)
    for k in range(Q.shape[0]):
        at = (k % BLOCK) * joints
        if at == 0:
            sincos(angles[k * joints : (k + BLOCK) * joints], sines, cosines)
        for row in range(4):
            for column in range(4):
                out[k, 0, row, column] = 1.0 if row == column else 0.0
        for j in range(joints):
            T = out[k, j + 1]
            r = rest[j]
            sin, cos = sines[at + j], cosines[at + j]
            for row in range(3):
                before = out[k, j, row]
                u, v, w = before[0], before[1], before[2]
                x = u * r[0] + v * r[3] + w * r[6]
                y = u * r[1] + v * r[4] + w * r[7]
                z = u * r[2] + v * r[5] + w * r[8]
                T[row, 2] = z
                T[row, 3] = u * r[9] + v * r[10] + w * r[11] + before[3]
                if slides[j]:
                    T[row, 0], T[row, 1] = x, y
                    T[row, 3] += z * Q[k, j]
                else:
                    T[row, 0] = x * cos + y * sin
                    T[row, 1] = y * cos - x * sin
                T[3, row] = 0.0
            T[3, 3] = 1.0


@compiled
def jacobians(frames: Array, slides: Array, points: Array, out: Array) -> None:  # kernel
    """out[k] (6×n): linear velocity of points[k], then angular velocity, per unit of joint speed.

    ``frames``: the output of joint_frames.
    """
    frames, slides, out = borrowed(frames), borrowed(slides), borrowed(out)
    for k in range(frames.shape[0]):
        for j in range(frames.shape[1] - 1):
            T = frames[k, j + 1]
            ax, ay, az = T[0, 2], T[1, 2], T[2, 2]
            J = out[k]
            if slides[j]:
                J[0, j], J[1, j], J[2, j] = ax, ay, az
                J[3, j], J[4, j], J[5, j] = 0.0, 0.0, 0.0
            else:
                x = points[k, 0] - T[0, 3]
                y = points[k, 1] - T[1, 3]
                z = points[k, 2] - T[2, 3]
                J[0, j] = ay * z - az * y
                J[1, j] = az * x - ax * z
                J[2, j] = ax * y - ay * x
                J[3, j], J[4, j], J[5, j] = ax, ay, az


def frame_row(transform: Array) -> Array:
    """A 4×4 matrix as a row of 12 numbers: rotation row by row, then translation."""
    return np.concatenate([transform[:3, :3].ravel(), transform[:3, 3]])


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────


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

    @cached_property
    def foot(self) -> Array:
        """The robot's foot in the base frame."""
        return inverse(self.base)

    def tcp(self, flange: Array) -> Array:
        """TCP in the base frame, from the flange in the foot frame; also for stacks of matrices."""
        return np.asarray(self.foot @ flange @ self.tool)

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
    """(dof, 12): frames of the joints at zero, see the kernels."""
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
        flange_frames(_rows(Q), rest, self.slides, tip, out)
        if frames is not FOOT_AND_FLANGE:
            return np.asarray(frames.foot @ out)
        return out

    def tips(self, Q: Array, frames: Frames = FOOT_AND_FLANGE) -> Array:
        """(m, dof) configurations → (m, 3): positions of the TCP in the base frame."""
        out = np.empty((len(Q), 3))
        tip_points(_rows(Q), self.rest, self.slides, self.tip_of(frames), out)
        if frames is FOOT_AND_FLANGE:
            return out
        foot = frames.foot
        return np.asarray(out @ foot[:3, :3].T + foot[:3, 3])

    def tip_of(self, frames: Frames) -> Array:
        """The TCP in the moved frame of the last joint."""
        return np.asarray(self.tip[:3, :3] @ frames.tool[:3, 3] + self.tip[:3, 3])

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
        joint_frames(_rows(Q), self.rest, self.slides, out)
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
        jacobians(frames, self.slides, points, out)
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
        rest.append(frame_row(before @ turn))
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
