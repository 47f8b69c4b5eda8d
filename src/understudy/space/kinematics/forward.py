"""Kernels of forward kinematics.

Every joint has a frame whose z is its axis: ``rest[i]`` is the transform from the moved frame of
joint i-1 to the frame of joint i at zero (12 numbers, rotation row by row, then translation). A
revolute joint then rotates about z, a prismatic one (``slides[i]``) shifts along z.
"""

import numpy as np

from understudy.space.compiled import compiled
from understudy.space.kinematics.trigonometry import sincos
from understudy.space.transform import Array

BLOCK = 64
"""Configurations whose sines are computed at once: few enough for the L1 cache."""


@compiled
def flange_frames(Q: Array, rest: Array, slides: Array, tip: Array, out: Array) -> None:  # kernel
    """out[k] (4×4) = the product of all joints at Q[k], times ``tip``."""
    joints = Q.shape[1]
    angles = Q.reshape(-1)
    sines, cosines = np.empty(BLOCK * joints), np.empty(BLOCK * joints)
    for k in range(Q.shape[0]):
        at = (k % BLOCK) * joints
        if at == 0:
            sincos(angles[k * joints : (k + BLOCK) * joints], sines, cosines)
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
def joint_frames(Q: Array, rest: Array, slides: Array, out: Array) -> None:  # kernel
    """out[k, j + 1] (4×4): the moved frame of joint j, z along its axis; out[k, 0]: the foot."""
    joints = Q.shape[1]
    angles = Q.reshape(-1)
    sines, cosines = np.empty(BLOCK * joints), np.empty(BLOCK * joints)
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
