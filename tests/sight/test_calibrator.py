"""HandEyeCalibrator on rendered boards, its refusals, and its checks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.sight.rendered_board import LENS, session
from tests.sight.test_camera_place import MOUNTS, exact_views, turned_about

from understudy.errors import ConfigError, Refused
from understudy.sight.calibrator import (
    METHODS,
    CalibrationPose,
    CalibrationResult,
    HandEyeCalibrator,
    coverage,
)
from understudy.sight.camera_place import Views
from understudy.sight.lens import Mount
from understudy.space.transform import Array, angle_between, rotation_about
from understudy.units import DEG, MM

ROBOT_ERROR = (0.2 * MM, 0.05 * DEG)


def computed(
    poses: Sequence[CalibrationPose], mount: Mount, method: str = "best"
) -> tuple[HandEyeCalibrator, CalibrationResult]:
    calibrator = HandEyeCalibrator(mount, LENS)
    for pose in poses:
        assert calibrator.add_pose(pose.flange, pose.target, pose.corners) is None
    result = calibrator.compute(method)
    assert not isinstance(result, Refused), result.reason
    return calibrator, result


def errors(found: Array, true: Array) -> tuple[float, float]:
    """Millimetres and degrees."""
    shift = float(np.linalg.norm(found[:3, 3] - true[:3, 3])) / MM
    return shift, angle_between(found, true) / DEG


def check_seeds(seeds: range) -> None:
    worst = np.zeros(4)
    for seed in seeds:
        mount = MOUNTS[seed % 2]
        rendered = session(seed, mount)
        _, exact = computed(rendered.poses, mount)
        _, shaken = computed(rendered.with_robot_error(seed, *ROBOT_ERROR), mount)
        missed = [*errors(exact.camera, rendered.camera), *errors(shaken.camera, rendered.camera)]
        worst = np.maximum(worst, missed)
    print(f"largest errors of {len(seeds)} calibrations: {worst.round(4)} (mm, °, mm, °)")
    assert (worst <= (0.05, 0.01, 0.3, 0.06)).all(), worst


def test_hand_eye_calibration_validation() -> None:
    """The item of this name in the checklist of the design document: 15 rendered pictures."""
    check_seeds(range(2))


@pytest.mark.soak
def test_hand_eye_calibration_over_100_seeds() -> None:
    check_seeds(range(100))


def test_a_pose_that_was_not_used_agrees_and_a_shifted_one_does_not() -> None:
    rendered = session(7, "eye_in_hand", count=12)
    calibrator, result = computed(rendered.poses[:-1], "eye_in_hand")
    good = rendered.poses[-1]
    passed = calibrator.validate(good)
    assert not isinstance(passed, Refused)
    assert passed.passed
    assert passed.distance_mm < 0.5
    off = good.flange.copy()
    off[0, 3] += 2.0 * MM
    failed = calibrator.validate(CalibrationPose(off, good.target))
    assert not isinstance(failed, Refused)
    assert not failed.passed
    assert failed.distance_mm == pytest.approx(2.0, abs=0.5)
    assert result.held_out is not None
    assert result.held_out.poses == 11
    assert result.held_out.rms_mm < 0.5
    assert result.pixel_rms is not None
    assert result.pixel_rms < 0.15
    assert calibrator.get_reprojection_error() == result.rms_mm


def exact_calibrator(seed: int, mount: Mount, count: int = 12) -> tuple[HandEyeCalibrator, Array]:
    """Poses without corners."""
    views, camera, _ = exact_views(seed, mount, count=60)
    calibrator = HandEyeCalibrator(mount)
    for flange, target in zip(views.flange, views.target, strict=True):
        if target[2, 3] > 0.0 and calibrator.get_pose_count() < count:
            assert calibrator.add_pose(flange, target) is None
    return calibrator, camera


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_without_corners(method: str, mount: Mount) -> None:
    calibrator, camera = exact_calibrator(2, mount)
    result = calibrator.compute(method)
    assert not isinstance(result, Refused)
    np.testing.assert_allclose(result.camera, camera, atol=1e-7)
    assert not result.refined
    assert result.pixel_rms is None
    assert np.abs(result.covariance).max() < 1e-10
    matrix = calibrator.get_hand_eye_matrix()
    assert matrix is not None
    np.testing.assert_array_equal(matrix, result.camera)


@pytest.mark.parametrize("method", METHODS)
def test_a_target_that_was_moved_makes_the_poses_contradict_each_other(method: str) -> None:
    exact, _ = exact_calibrator(2, "eye_in_hand", count=12)
    right = exact.compute(method)
    assert not isinstance(right, Refused)
    assert right.contradiction() is None
    calibrator = HandEyeCalibrator()
    for number, each in enumerate(exact.poses):
        moved = each.flange @ right.camera @ each.target
        moved[0, 3] += 0.05 * (number >= 8)
        target = np.linalg.inv(each.flange @ right.camera) @ moved
        assert calibrator.add_pose(each.flange, target) is None
    result = calibrator.compute(method)
    assert not isinstance(result, Refused)
    refused = result.contradiction()
    assert refused is not None
    assert "may have moved" in refused.reason


@pytest.mark.parametrize("method", METHODS)
def test_targets_without_any_relation_to_the_robot_raise_nothing(method: str) -> None:
    for seed in range(10):
        robot, _ = exact_calibrator(seed, "eye_in_hand")
        unrelated = np.random.default_rng(seed).permutation(len(robot.poses))
        calibrator = HandEyeCalibrator()
        for pose, other in zip(robot.poses, unrelated, strict=True):
            assert calibrator.add_pose(pose.flange, robot.poses[other].target) is None
        result = calibrator.compute(method)
        assert isinstance(result, Refused) or result.contradiction() is not None


def degenerate_sets(seeds: range) -> list[Views]:
    shapes = ((0, 0.0), (1, 1.5), (3, 0.1))
    return [turned_about(seed, *shapes[seed % len(shapes)]) for seed in seeds]


def check_degenerate(seeds: range) -> None:
    for views in degenerate_sets(seeds):
        calibrator = HandEyeCalibrator()
        calibrator._poses = [  # also poses that `add_pose` would not take
            CalibrationPose(*pair) for pair in zip(views.flange, views.target, strict=True)
        ]
        for method in METHODS:
            refused = calibrator.compute(method)
            assert isinstance(refused, Refused)
            assert "turn" in refused.reason
        assert calibrator.get_hand_eye_matrix() is None


def test_degenerate_sets_are_refused() -> None:
    check_degenerate(range(12))


@pytest.mark.soak
def test_200_of_200_degenerate_sets_are_refused() -> None:
    check_degenerate(range(200))


def test_poses_that_are_of_no_use_are_refused() -> None:
    calibrator, _ = exact_calibrator(5, "eye_in_hand", count=3)
    good = calibrator.poses[0]
    behind, skew = good.target.copy(), good.flange.copy()
    behind[2, 3], skew[0, 0] = -0.3, skew[0, 0] + 0.1
    other = good.flange.copy()
    other[0, 3] += 0.1
    refused = [
        calibrator.add_pose(other, behind),
        calibrator.add_pose(skew, good.target),
        calibrator.add_pose(np.full((4, 4), np.nan), good.target),
        calibrator.add_pose(good.flange, good.target),
        calibrator.compute(),
        calibrator.compute("magic"),
        calibrator.validate(good),
    ]
    texts = [each.reason for each in refused if isinstance(each, Refused)]
    assert texts == [
        "the target is behind the camera",
        "the pose of the flange is not a rotation and a translation",
        "the pose of the flange is not a rotation and a translation",
        "the flange is where it was at pose 1; move it first",
        "3 poses; at least 10 are needed, 15 are usual",
        "method magic: known are best, tsai_lenz, tsai, park, horaud, andreff, daniilidis",
        "compute the calibration before it is validated",
    ]


def test_poses_can_be_deleted() -> None:
    calibrator, _ = exact_calibrator(5, "eye_in_hand", count=10)
    assert calibrator.has_enough_poses()
    assert not isinstance(calibrator.compute(), Refused)
    assert calibrator.delete_last() is None
    assert calibrator.get_pose_count() == 9
    assert not calibrator.has_enough_poses()
    assert calibrator.get_hand_eye_matrix() is None
    calibrator.reset()
    assert calibrator.delete_last() == Refused("there is no pose to delete")


def turned(axis: tuple[float, float, float], degrees: float) -> Array:
    out = np.eye(4)
    out[:3, :3] = rotation_about(axis, degrees * DEG)
    return out


def test_coverage_names_the_directions_that_are_missing() -> None:
    assert all(each.missing for each in coverage([]))
    some = [turned((1.0, 0.0, 0.0), angle) for angle in (-30.0, 30.0)]
    some += [turned((0.0, 0.0, 1.0), angle) for angle in (-25.0, 25.0)]
    missing = [each.name for each in coverage([np.eye(4), *some]) if each.missing]
    assert missing == ["+y", "-y"]


def test_a_wrong_mount_and_a_pose_of_another_shape_are_named() -> None:
    with pytest.raises(ConfigError, match="mount 'bogus'; allowed: eye_in_hand, eye_to_hand"):
        HandEyeCalibrator("bogus")  # type: ignore[arg-type]
    calibrator, _ = exact_calibrator(1, "eye_in_hand")
    calibrator.compute()
    wrong = CalibrationPose(np.eye(3), np.eye(4))
    assert isinstance(found := calibrator.validate(wrong), Refused)
    assert "the pose of the flange is not a rotation" in found.reason


def test_deviations_are_those_along_the_axes_of_the_frame_of_the_camera() -> None:
    """A camera that is turned by 90° about y: its own z axis is the x axis of the flange."""
    found = exact_calibrator(1, "eye_in_hand")[0].compute()
    assert isinstance(found, CalibrationResult)
    turned = np.eye(4)
    turned[:3, :3] = rotation_about((0.0, 1.0, 0.0), 90.0 * DEG)
    own = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) ** 2
    shifts, turns = replace(found, camera=turned, covariance=own).deviations_mm_deg
    assert shifts * MM == pytest.approx([3.0, 2.0, 1.0])
    assert turns * DEG == pytest.approx([6.0, 5.0, 4.0])


def test_the_best_method_is_the_one_that_predicts_unseen_poses_best() -> None:
    rendered = session(3, "eye_in_hand")
    calibrator = HandEyeCalibrator()
    for pose in rendered.with_robot_error(3, *ROBOT_ERROR):
        assert calibrator.add_pose(pose.flange, pose.target) is None
    held_out = {}
    for method in METHODS:
        result = calibrator.compute(method)
        assert isinstance(result, CalibrationResult)
        assert result.held_out is not None
        held_out[method] = result.held_out.rms_mm
    assert held_out["best"] == min(held_out.values()) < max(held_out.values())
    best = calibrator.compute()
    assert isinstance(best, CalibrationResult)
    assert held_out[best.method] == held_out["best"], "it is named by its own name"
