"""The pose of the tool at a detected object."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.jobs.pick_place.choice import pick_poses
from understudy.jobs.pick_place.config import Grasp
from understudy.space.pose import ORIGIN, Pose, pose_mm_deg, pose_of
from understudy.space.transform import angle_between, inverse, matrix, pose
from understudy.units import DEG

DOWN = pose_of((400.0, 0.0, 500.0, 180.0, 0.0, 0.0))
"""A camera over the table that looks down."""

angles = st.floats(-179.0, 179.0)
tilts = st.floats(-80.0, 80.0)
lengths = st.floats(-500.0, 500.0)
poses = st.builds(
    lambda x, y, z, a, b, c: pose_of((x, y, z, a, b, c)),
    lengths, lengths, lengths, angles, tilts, angles,
)  # fmt: skip


def close(first: Pose, second: Pose) -> bool:
    return np.allclose(matrix(first), matrix(second), atol=1e-9)


@given(poses, poses, poses)
def test_whole_rotations_are_multiplied(camera: Pose, seen: Pose, grasp: Pose) -> None:
    x, y, z, a, b, c = pose_mm_deg(grasp)
    tool = pick_poses(camera, seen, Grasp(offset_mm_deg=(x, y, z, a, b, c)), ORIGIN)[0]
    assert np.allclose(matrix(tool), matrix(camera) @ matrix(seen) @ matrix(grasp), atol=1e-9)


def test_an_object_that_the_camera_sees_upright_is_gripped_from_above() -> None:
    """A marker's Z axis points to the camera, a flat detector's away from it: both are gripped from
    the side of the camera."""
    marker = pose_of((10.0, 20.0, 450.0, 180.0, 0.0, 0.0))
    flat = pose_of((10.0, 20.0, 450.0, 0.0, 0.0, 45.0))
    for seen in (marker, flat):
        tool = matrix(pick_poses(DOWN, seen, Grasp(), DOWN)[0])
        assert tool[:3, 2] == pytest.approx([0.0, 0.0, -1.0])
        assert tool[:3, 3] == pytest.approx([0.41, -0.02, 0.05])


def test_the_yaw_of_the_object_is_the_yaw_of_the_tool() -> None:
    seen = pose_of((0.0, 0.0, 450.0, 0.0, 0.0, 45.3))
    tool = matrix(pick_poses(DOWN, seen, Grasp(), DOWN)[0])
    assert np.degrees(angle_between(matrix(DOWN), tool)) == pytest.approx(45.3)


@pytest.mark.parametrize(
    ("symmetry", "yaw", "turn"),
    [(0, 170, 170), (180, 170, 10), (90, 170, 10), (90, 50, 40), (60, 35, 25), (360, 170, 170)],
)
def test_a_symmetric_part_is_gripped_with_the_nearest_yaw(
    symmetry: float, yaw: float, turn: float
) -> None:
    seen = pose_of((0.0, 0.0, 450.0, 0.0, 0.0, yaw))
    tool = pick_poses(DOWN, seen, Grasp(symmetry_deg=symmetry), DOWN)[0]
    assert np.degrees(angle_between(matrix(DOWN), matrix(tool))) == pytest.approx(turn)


@given(poses, poses, st.sampled_from([10.0, 45.0, 72.0, 90.0, 120.0, 180.0]))
def test_no_other_symmetric_grasp_turns_less(seen: Pose, near: Pose, symmetry: float) -> None:
    grasp = Grasp(offset_mm_deg=(0, 0, 0, 0, 0, 0), symmetry_deg=symmetry)
    tool = matrix(pick_poses(DOWN, seen, grasp, near)[0])
    for count in range(1, round(360 / symmetry)):
        other = tool @ matrix(pose_of((0, 0, 0, 0, 0, count * symmetry)))
        assert angle_between(matrix(near), tool) <= angle_between(matrix(near), other) + 1e-9


def test_the_flange_pose_of_the_picture_counts() -> None:
    """Eye in hand: the same object seen from two places gives the same pick pose."""
    part = matrix(pose_of((450.0, 100.0, 60.0, 0.0, 0.0, 20.0)))
    found = []
    for x in (380.0, 460.0):
        camera = pose_of((x, 40.0, 520.0, 175.0, 5.0, 30.0))
        seen = pose(inverse(matrix(camera)) @ part)
        found.append(pick_poses(camera, seen, Grasp(), DOWN)[0])
    assert close(*found)


@pytest.mark.parametrize(
    ("symmetry", "count"), [(0.0, 1), (360.0, 1), (180.0, 2), (90.0, 4), (5.0, 8)]
)
@pytest.mark.parametrize("yaw", [-100.0, -20.0, 3.0, 44.0, 170.0])
def test_symmetric_parts_have_several_grips_the_nearest_first(
    symmetry: float, count: int, yaw: float
) -> None:
    seen = pose_of((0.0, 0.0, 400.0, 0.0, 0.0, yaw))
    grips = pick_poses(DOWN, seen, Grasp(symmetry_deg=symmetry), DOWN)
    turns = [angle_between(matrix(DOWN), matrix(each)) for each in grips]
    assert len(grips) == count
    assert turns == pytest.approx(sorted(turns))
    assert grips[0] == pick_poses(DOWN, seen, Grasp(symmetry_deg=symmetry), DOWN)[0]
    between = [angle_between(matrix(a), matrix(b)) for a, b in itertools.combinations(grips, 2)]
    assert all(angle > 4.0 * DEG for angle in between), "no grip twice"
