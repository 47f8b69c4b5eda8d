"""Matrices, poses, quaternions, straight lines."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.space import transform as tf
from understudy.space.pose import Pose
from understudy.space.transform import Array


def from_quaternion(q: Array) -> Array:
    """Rotation matrix of a quaternion; its length may be anything but zero."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


angles = st.floats(-math.pi, math.pi)
lengths = st.floats(-10.0, 10.0)
poses = st.builds(Pose, lengths, lengths, lengths, angles, angles, angles)


def rz(a: float) -> np.ndarray:
    return np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]])


def ry(a: float) -> np.ndarray:
    return np.array([[math.cos(a), 0, math.sin(a)], [0, 1, 0], [-math.sin(a), 0, math.cos(a)]])


def rx(a: float) -> np.ndarray:
    return np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])


@given(poses)
def test_rotation_is_rz_ry_rx(pose: Pose) -> None:
    expected = rz(pose.rz) @ ry(pose.ry) @ rx(pose.rx)
    np.testing.assert_allclose(tf.matrix(pose)[:3, :3], expected, atol=1e-14)


@given(poses)
def test_pose_and_matrix_agree(pose: Pose) -> None:
    there = tf.matrix(pose)
    np.testing.assert_allclose(tf.matrix(tf.pose(there)), there, atol=3e-8)
    assert abs(tf.pose(there).ry) <= math.pi / 2


def test_unique_angles_are_recovered() -> None:
    pose = Pose(1.0, 2.0, 3.0, 0.3, -0.4, 2.5)
    assert tf.pose(tf.matrix(pose)) == pytest.approx(pose)


def test_in_gimbal_lock_the_rotation_is_given_as_rz() -> None:
    pose = tf.pose(tf.matrix(Pose(0, 0, 0, 0.0, math.pi / 2, 0.7)))
    assert pose == pytest.approx((0, 0, 0, 0, math.pi / 2, 0.7))


def test_kuka_abc_are_the_same_angles() -> None:
    a, b, c = 0.4, -0.2, 1.1
    there = tf.matrix(tf.from_abc(1, 2, 3, a, b, c))
    np.testing.assert_allclose(there[:3, :3], rz(a) @ ry(b) @ rx(c), atol=1e-15)


@given(poses)
def test_inverse_undoes(pose: Pose) -> None:
    there = tf.matrix(pose)
    np.testing.assert_allclose(tf.inverse(there) @ there, np.eye(4), atol=1e-12)


def test_inverse_of_a_stack() -> None:
    stack = np.array([tf.matrix(Pose(i, 0, 1, 0.1 * i, 0.2, 0.3)) for i in range(4)])
    np.testing.assert_allclose(tf.inverse(stack) @ stack, np.tile(np.eye(4), (4, 1, 1)), atol=1e-14)


@given(poses)
def test_quaternion_and_back(pose: Pose) -> None:
    turn = tf.matrix(pose)[:3, :3]
    q = tf.quaternion(turn)
    assert np.linalg.norm(q) == pytest.approx(1.0)
    assert q[0] >= 0
    np.testing.assert_allclose(from_quaternion(3.0 * q), turn, atol=1e-12)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8)])
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, math.pi - 1e-9, math.pi])
def test_angle_between(axis: tuple[float, ...], angle: float) -> None:
    first = tf.rotation(0.1, 0.2, 0.3)
    second = first @ tf.rotation_about(axis, angle)
    assert tf.angle_between(first, second) == pytest.approx(angle, abs=1e-12)


@given(poses, poses)
def test_a_line_is_straight_and_rotates_at_a_constant_rate(start: Pose, end: Pose) -> None:
    one, other = tf.matrix(start), tf.matrix(end)
    line = tf.line(one, other, np.array([0.0, 0.25, 0.5, 1.0]))
    np.testing.assert_allclose(line[0], one, atol=1e-12)
    np.testing.assert_allclose(line[-1], other, atol=1e-9)
    np.testing.assert_allclose(line[2, :3, 3], (one[:3, 3] + other[:3, 3]) / 2, atol=1e-12)
    whole = tf.angle_between(one, other)
    assert tf.angle_between(one, line[1]) == pytest.approx(whole / 4, abs=1e-9)
    assert tf.angle_between(line[1], other) == pytest.approx(whole * 3 / 4, abs=1e-9)
    assert all(tf.is_rigid(there) for there in line)


def test_matrices_that_are_not_rigid() -> None:
    assert not tf.is_rigid(2.0 * np.eye(4))
    assert not tf.is_rigid(np.diag([1.0, 1.0, -1.0, 1.0]))
    assert not tf.is_rigid(np.full((4, 4), np.nan))
