"""Hand-eye calibration on exact and on disturbed poses."""

import numpy as np
import pytest

from understudy.errors import Refused
from understudy.sight.camera_place import (
    OPENCV_METHODS,
    Views,
    by_opencv,
    degenerate,
    residuals,
    target_place,
    tsai_lenz,
)
from understudy.sight.lens import Mount
from understudy.space.transform import Array, angle_between, inverse, rotation_about

MOUNTS: tuple[Mount, ...] = ("eye_in_hand", "eye_to_hand")


def place(rng: np.random.Generator, turn: float = np.pi, reach: float = 1.0) -> Array:
    axis = rng.normal(size=3)
    out = np.eye(4)
    out[:3, :3] = rotation_about(axis / np.linalg.norm(axis), rng.uniform(-turn, turn))
    out[:3, 3] = rng.uniform(-reach, reach, 3)
    return out


def exact_views(seed: int, mount: Mount, count: int = 15) -> tuple[Views, Array, Array]:
    """Views without an error, the camera and the target."""
    rng = np.random.default_rng(seed)
    camera, target = place(rng), place(rng)
    hand = np.array([place(rng) for _ in range(count)])
    seen = inverse(hand @ camera) @ target
    return Views(hand if mount == "eye_in_hand" else inverse(hand), seen, mount), camera, target


@pytest.mark.parametrize("mount", MOUNTS)
def test_exact_poses_give_the_exact_camera(mount: Mount) -> None:
    for seed in range(20):
        views, camera, target = exact_views(seed, mount)
        found = tsai_lenz(views)
        assert not isinstance(found, Refused)
        np.testing.assert_allclose(found, camera, atol=1e-9)
        np.testing.assert_allclose(target_place(views, found), target, atol=1e-9)
        assert all(each.distance_mm < 1e-6 for each in residuals(views, found, target))


@pytest.mark.parametrize("method", OPENCV_METHODS)
@pytest.mark.parametrize("mount", MOUNTS)
def test_it_equals_opencv_on_exact_poses(mount: Mount, method: str) -> None:
    views, _, _ = exact_views(3, mount)
    own, others = tsai_lenz(views), by_opencv(views, method)
    assert not isinstance(own, Refused)
    assert not isinstance(others, Refused)
    np.testing.assert_allclose(own, others, atol=1e-7)


def turned_about(seed: int, axes: int, spread: float) -> Views:
    """Poses that turn about this many axes, up to ``spread`` on each side, with a robot's error."""
    rng = np.random.default_rng(seed)
    camera, target, start = place(rng), place(rng), place(rng)
    directions = rng.normal(size=(axes, 3)) if axes else np.zeros((0, 3))
    hand = []
    for number in range(15):
        here = start @ place(rng, turn=np.radians(0.05), reach=0.0002)
        here[:3, 3] += rng.uniform(-0.3, 0.3, 3)
        if axes:
            axis = directions[number % axes] / np.linalg.norm(directions[number % axes])
            here[:3, :3] = here[:3, :3] @ rotation_about(axis, rng.uniform(-spread, spread))
        hand.append(here)
    return Views(np.array(hand), inverse(np.array(hand) @ camera) @ target)


@pytest.mark.parametrize(
    ("axes", "spread", "text"),
    [(0, 0.0, "turn the flange"), (1, 1.5, "one axis only"), (3, 0.1, "turn the flange")],
    ids=["no rotation", "one axis", "small rotations"],
)
def test_degenerate_poses_are_refused_with_the_reason(axes: int, spread: float, text: str) -> None:
    for seed in range(67):
        views = turned_about(seed, axes, spread)
        refused = degenerate(views)
        assert refused is not None
        assert text in refused.reason
        assert tsai_lenz(views) == refused


def test_two_poses_are_too_few() -> None:
    views, _, _ = exact_views(1, "eye_in_hand", count=2)
    assert degenerate(views) == Refused("2 poses; at least 3 are needed")


def test_an_error_of_the_robot_shifts_the_camera_little() -> None:
    rng = np.random.default_rng(7)
    views, camera, _ = exact_views(7, "eye_in_hand", count=20)
    error = np.array([place(rng, turn=np.radians(0.05), reach=0.0002) for _ in range(20)])
    found = tsai_lenz(Views(views.flange @ error, views.target))
    assert not isinstance(found, Refused)
    assert np.linalg.norm(found[:3, 3] - camera[:3, 3]) < 2e-3
    assert angle_between(found, camera) < np.radians(0.2)


@pytest.mark.parametrize(("wobble_deg", "refused"), [(1.0, True), (3.0, True), (9.0, False)])
def test_nearly_one_axis_is_refused(wobble_deg: float, refused: bool) -> None:
    """Single pairs of these poses turn about quite other axes, by errors and small wobbles."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hand = turned_about(seed, 1, 1.5).flange
        for each in hand:
            for axis in np.eye(3):
                turn = np.radians(rng.normal() * wobble_deg)
                each[:3, :3] = each[:3, :3] @ rotation_about(axis, turn)
        found = degenerate(Views(hand, hand))
        assert (found is not None) == refused, (seed, found)
        if found is not None:
            assert "one axis" in found.reason
