"""Homogeneous 4×4 matrices, rotations and straight lines between two poses.

Roll, pitch and yaw mean R = Rz(rz)·Ry(ry)·Rx(rx) everywhere. KUKA's A, B, C are the same angles in
the opposite order: A = rz, B = ry, C = rx. Files and messages have four rows of a matrix, with
millimetres in the last column (`rows_mm`).
"""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from understudy.space.pose import Pose
from understudy.units import MM

Array = NDArray[np.float64]

GIMBAL_LOCK = 1e-8
"""Below this cosine of ry only rz - rx (or rz + rx) is defined; rx is then set to zero."""


def rotation(rx: float, ry: float, rz: float) -> Array:
    """R = Rz·Ry·Rx."""
    cx, sx, cy, sy, cz, sz = (f(a) for a in (rx, ry, rz) for f in (math.cos, math.sin))
    return np.array(
        [
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
            [-sy, cy * sx, cy * cx],
        ]
    )


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """(rx, ry, rz) of a rotation matrix, ry in ±90°."""
    r = rotation
    level = math.hypot(r[0, 0], r[1, 0])
    ry = math.atan2(-r[2, 0], level)
    if level < GIMBAL_LOCK:
        return 0.0, ry, math.atan2(-r[0, 1], r[1, 1])
    return math.atan2(r[2, 1], r[2, 2]), ry, math.atan2(r[1, 0], r[0, 0])


def matrix(pose: Pose) -> Array:
    out = np.eye(4)
    out[:3, :3] = rotation(pose.rx, pose.ry, pose.rz)
    out[:3, 3] = pose.x, pose.y, pose.z
    return out


def matrices(poses: ArrayLike | Sequence[Pose]) -> Array:
    """(m, 4, 4): the matrices of many poses at once."""
    x, y, z, *angles = np.array(poses, dtype=np.float64).reshape(-1, 6).T
    cx, sx, cy, sy, cz, sz = (f(a) for a in angles for f in (np.cos, np.sin))
    none, one = np.zeros_like(x), np.ones_like(x)
    rows = [
        [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, x],
        [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, y],
        [-sy, cy * sx, cy * cx, z],
        [none, none, none, one],
    ]
    return np.ascontiguousarray(np.moveaxis(np.array(rows), 2, 0))


def pose(matrix: Array) -> Pose:
    x, y, z = (float(v) for v in matrix[:3, 3])
    return Pose(x, y, z, *roll_pitch_yaw(matrix[:3, :3]))


def from_abc(x: float, y: float, z: float, a: float, b: float, c: float) -> Pose:
    """Pose from KUKA's order of the angles, in metres and radians."""
    return Pose(x, y, z, c, b, a)


def translation(x: float, y: float, z: float) -> Array:
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def inverse(matrix: Array) -> Array:
    """The inverse of a rigid motion, or of a stack of them."""
    out = np.zeros_like(matrix)
    back = np.swapaxes(matrix[..., :3, :3], -1, -2)
    out[..., :3, :3] = back
    out[..., :3, 3] = -np.einsum("...ij,...j->...i", back, matrix[..., :3, 3])
    out[..., 3, 3] = 1.0
    return out


def is_rigid(matrix: Array, tolerance: float = 1e-6) -> bool:
    """Whether the matrix is a rotation and a translation only."""
    r = matrix[:3, :3]
    return bool(
        np.all(np.isfinite(matrix))
        and np.allclose(r @ r.T, np.eye(3), atol=tolerance)
        and np.linalg.det(r) > 0
        and np.allclose(matrix[3], (0, 0, 0, 1), atol=tolerance)
    )


# ── quaternions (w, x, y, z), w ≥ 0 ─────────────────────────────────────────────────────────────


def quaternion(rotation: Array) -> Array:
    """Unit quaternion of a rotation matrix, through its largest component."""
    r = rotation
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    squares = np.array([trace, *(2 * r[i, i] - trace for i in range(3))])
    big = int(np.argmax(squares))
    skew = (r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1])
    q = np.empty(4)
    q[big] = 1.0 + squares[big]
    if big == 0:
        q[1:] = skew
    else:
        i = big - 1
        q[0] = skew[i]
        for j in {0, 1, 2} - {i}:
            q[j + 1] = r[i, j] + r[j, i]
    q /= np.linalg.norm(q)
    return q if q[0] >= 0 else -q


def axis_angle(rotation: Array) -> tuple[Array, float]:
    """Unit axis and angle in 0…π; the axis is z if the angle is zero."""
    q = quaternion(rotation)
    length = float(np.linalg.norm(q[1:]))
    if length < 1e-15:
        return np.array([0.0, 0.0, 1.0]), 0.0
    return q[1:] / length, 2.0 * math.atan2(length, float(q[0]))


def angle_between(first: Array, second: Array) -> float:
    """Angle of the single rotation from the first orientation to the second."""
    return axis_angle(first[:3, :3].T @ second[:3, :3])[1]


def rotation_about(axis: ArrayLike, angle: float | Array) -> Array:
    """Rotation about a unit axis by an angle, or a stack of them for many angles."""
    x, y, z = np.asarray(axis, dtype=np.float64)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    a = np.asarray(angle, dtype=np.float64)[..., None, None]
    return np.asarray(np.eye(3) + np.sin(a) * cross + (1.0 - np.cos(a)) * (cross @ cross))


# ── straight lines ──────────────────────────────────────────────────────────────────────────────


def slerp(start: Array, end: Array, share: float | Array) -> Array:
    """Spherical interpolation: rotations from start to end about one axis, at constant speed."""
    axis, angle = axis_angle(start.T @ end)
    return start @ rotation_about(axis, np.asarray(share) * angle)


def line(start: Array, end: Array, shares: Array) -> Array:
    """(n, 4, 4): poses at shares 0…1 of a straight line, rotating at a constant rate."""
    shares = np.asarray(shares, dtype=np.float64)
    out = np.zeros((*shares.shape, 4, 4))
    out[..., :3, :3] = slerp(start[:3, :3], end[:3, :3], shares)
    out[..., :3, 3] = start[:3, 3] + shares[..., None] * (end[:3, 3] - start[:3, 3])
    out[..., 3, 3] = 1.0
    return out


# ── matrices in files and messages ────────────────────────────────────────────────────────────────


Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Row = tuple[Number, Number, Number, Number]
Rows = tuple[Row, Row, Row, Row]


def rows_mm(place: Array) -> Rows:
    """The rows of a matrix in metres."""
    scaled = place.copy()
    scaled[:3, 3] /= MM
    a, b, c, d = (tuple(row) for row in scaled.tolist())
    return a, b, c, d


def from_rows_mm(rows: Rows) -> Array:
    """The inverse of `rows_mm`: 4×4 in metres."""
    place = np.array(rows, dtype=np.float64)
    place[:3, 3] *= MM
    return place
