"""The arms most robots are: a turning column, two parallel joints, a wrist whose axes meet.

Found from the geometry at zero, whatever the joints are called and however the file orients
its frames: axis 2 square to axis 1, axis 3 parallel to 2, axis 4 square to 3, axes 4, 5, 6 through
one point and square to their neighbours. Offsets along and across are all allowed.

The column frame has z along axis 1, y along axis 2 and its origin on axis 1 at the height of
axis 2. In it the upper arm and the forearm swing in a plane at the lateral distance ``side``;
their directions are pitches, measured from z towards x.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.transform import Array, about, inverse

Y = (0.0, 1.0, 0.0)
Z = (0.0, 0.0, 1.0)

EXACT = 1e-9
"""Up to here the closed form is taken as it is."""
ROUNDED = 2e-5
"""Up to here (a file that writes π/2 as 1.5708) it is a start that is then refined."""


@dataclass(frozen=True, eq=False)
class Anthropomorphic:
    """What the closed form needs to know of an arm."""

    geometry: Array
    """reach1, side, upper, fore, pitch2, pitch3 - pitch2, cos and sin of the wrist's pitch from
    the forearm's, sign of joint 3, offset 4, offset 5."""
    column: Array
    """Foot → column frame, 4×4."""
    hand: Array
    """Rotation of the flange at zero undone, and the wrist centre in the flange's frame, 4×4."""
    exact: bool

    def ends(self, frames: Frames = FOOT_AND_FLANGE) -> tuple[Array, Array]:
        """What the kernels multiply a target by, from the left and from the right."""
        if frames is FOOT_AND_FLANGE:
            return self.column, self.hand
        return self.column @ frames.base, inverse(frames.tool) @ self.hand

    @property
    def reach(self) -> tuple[float, float]:
        """Least and greatest distance of the wrist centre from axis 2, in the arm's plane."""
        upper, fore = self.geometry[2], self.geometry[3]
        return abs(upper - fore), upper + fore


def anthropomorphic(chain: Chain) -> Anthropomorphic | None:
    """The arm's dimensions if it is of this kind."""
    if chain.dof != 6 or chain.slides.any():
        return None
    axes = chain.axes_of(np.zeros((1, 6)))[0, 1:]
    u, p = axes[:, :3, 2], axes[:, :3, 3]
    center = _meeting(u[3:], p[3:])
    off = max(
        abs(u[0] @ u[1]),
        float(np.linalg.norm(np.cross(u[1], u[2]))),
        abs(u[2] @ u[3]),
        abs(u[3] @ u[4]),
        abs(u[4] @ u[5]),
        max(float(np.linalg.norm(np.cross(u[i], center - p[i]))) for i in (3, 4, 5)),
    )
    if off > ROUNDED:
        return None
    found = _measure(u, p, center, chain.flange(np.zeros(6)), exact=off < EXACT)
    return found if min(found.geometry[2:4]) > 1e-6 else None


def _measure(u: Array, p: Array, center: Array, flange: Array, *, exact: bool) -> Anthropomorphic:
    column = np.eye(4)
    z = u[0]
    y = u[1] - (u[1] @ z) * z
    y /= np.linalg.norm(y)
    column[:3, :3] = np.column_stack([np.cross(y, z), y, z])
    column[:3, 3] = p[0] + z * ((p[1] - p[0]) @ z)
    turn = column[:3, :3].T
    shoulder, elbow, wrist = (turn @ (point - column[:3, 3]) for point in (p[1], p[2], center))
    upper, fore = elbow - shoulder, wrist - elbow
    pitch2 = math.atan2(upper[0], upper[2])
    pitch3 = math.atan2(fore[0], fore[2])
    u4, u5, u6 = (turn @ u[i] for i in (3, 4, 5))
    wrist_pitch = math.atan2(u4[0], u4[2])
    offset4 = _angle(np.array(Y), u5, axis=u4)
    offset5 = _angle(u4, u6, axis=u5)
    bend = wrist_pitch - pitch3
    hand = np.eye(4)
    hand[:3, :3] = (
        (turn @ flange[:3, :3]).T @ about(Y, wrist_pitch) @ about(Z, offset4) @ about(Y, offset5)
    )
    hand[:3, 3] = flange[:3, :3].T @ (center - flange[:3, 3])
    geometry = [
        shoulder[0], wrist[1], math.hypot(upper[0], upper[2]), math.hypot(fore[0], fore[2]),
        pitch2, pitch3 - pitch2, math.cos(bend), math.sin(bend),
        math.copysign(1.0, u[1] @ u[2]), offset4, offset5,
    ]  # fmt: skip
    return Anthropomorphic(np.array(geometry), inverse(column), hand, exact)


def _meeting(u: Array, p: Array) -> Array:
    """The point nearest to all the lines p + t·u, in the least squares sense."""
    across = [np.eye(3) - np.outer(d, d) for d in u]
    right = sum((a @ q for a, q in zip(across, p, strict=True)), np.zeros(3))
    return np.linalg.solve(sum(across, np.zeros((3, 3))), right)


def _angle(start: Array, end: Array, *, axis: Array) -> float:
    """The turn about an axis that takes start into end, both square to it."""
    return math.atan2(float(np.cross(start, end) @ axis), float(start @ end))
