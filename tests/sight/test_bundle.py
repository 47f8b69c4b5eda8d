"""The refined camera explains the corners; errors of the robot do not spoil it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sight.test_camera_place import MOUNTS

from understudy.errors import Refused
from understudy.sight.bundle import (
    Corners,
    Noise,
    Refined,
    motion_vector,
    refine,
    refine_with_noise,
    small_motion,
)
from understudy.sight.camera_place import Views, target_place, tsai_lenz
from understudy.sight.lens import Lens, Mount
from understudy.space.transform import Array, angle_between, inverse, rotation_about
from understudy.units import DEG, MM

LENS = Lens(640, 480, 600.0, 600.0, 320.0, 240.0, (-0.12, 0.08, 0.0, 0.0, 0.0))
BOARD = np.array([[x * 0.02, y * 0.02, 0.0] for y in range(-2, 3) for x in range(-3, 4)])
POSES = 15

EXACT = Noise(shift=0.0, turn=0.0)


def scene(
    seed: int, mount: Mount, *, pixel: float, shift: float, turn: float
) -> tuple[Views, list[Corners], Array]:
    """Views of a board from a dome above it, as the robot reports them, and the camera."""
    rng = np.random.default_rng(seed)
    camera = small_motion(np.array([0.045, -0.012, 0.085, *rng.uniform(-0.3, 0.3, 3)]))
    target = small_motion(np.array([0.5, 0.1, 0.02, *rng.uniform(-0.3, 0.3, 3)]))
    flange, corners = [], []
    for _ in range(POSES):
        seen = np.eye(4)  # the target in the frame of the camera
        seen[:3, 3] = *rng.uniform(-0.03, 0.03, 2), rng.uniform(0.25, 0.4)
        axis = np.append(rng.normal(size=2), 0.0)
        tilt = rotation_about(axis / np.linalg.norm(axis), rng.uniform(0.3, 0.6))
        flip = rotation_about([1.0, 0.0, 0.0], np.pi)
        seen[:3, :3] = flip @ tilt @ rotation_about([0.0, 0.0, 1.0], rng.uniform(-2, 2))
        hand = target @ inverse(seen) @ inverse(camera)
        pixels = LENS.pixels(BOARD @ seen[:3, :3].T + seen[:3, 3])
        corners.append(Corners(BOARD, pixels + rng.normal(size=pixels.shape) * pixel))
        error = small_motion(
            np.concatenate([rng.normal(size=3) * shift, rng.normal(size=3) * turn])
        )
        true = hand if mount == "eye_in_hand" else inverse(hand)
        flange.append((true @ inverse(error), seen))
    reported, seen_targets = (np.array(each) for each in zip(*flange, strict=True))
    return Views(reported, seen_targets, mount), corners, camera


def refined(seed: int, mount: Mount, noise: Noise, **errors: float) -> tuple[Refined, Array]:
    views, corners, camera = scene(seed, mount, **errors)
    first = tsai_lenz(views)
    assert not isinstance(first, Refused)
    start = target_place(views, first)
    return refine(views, corners, LENS, camera=first, target=start, noise=noise), camera


@pytest.mark.parametrize("mount", MOUNTS)
def test_exact_corners_give_the_exact_camera(mount: Mount) -> None:
    for noise in (EXACT, Noise()):
        found, camera = refined(1, mount, noise, pixel=0.0, shift=0.0, turn=0.0)
        np.testing.assert_allclose(found.camera, camera, atol=1e-7)
        assert found.rms < 1e-4


@pytest.mark.parametrize("mount", MOUNTS)
def test_noise_of_the_corners_shifts_the_camera_little(mount: Mount) -> None:
    for seed in range(10):
        found, camera = refined(seed, mount, EXACT, pixel=0.05, shift=0.0, turn=0.0)
        assert np.linalg.norm(found.camera[:3, 3] - camera[:3, 3]) < 0.05 * MM
        assert angle_between(found.camera, camera) < 0.01 * DEG


@pytest.mark.parametrize("mount", MOUNTS)
def test_the_prior_takes_the_errors_of_the_robot(mount: Mount) -> None:
    robot = {"shift": 0.2 * MM / np.sqrt(3), "turn": 0.05 * DEG / np.sqrt(3)}
    with_prior: list[float] = []
    without: list[float] = []
    for seed in range(10):
        for noise, errors in ((Noise(**robot), with_prior), (EXACT, without)):
            found, camera = refined(seed, mount, noise, pixel=0.05, **robot)
            errors.append(float(np.linalg.norm(found.camera[:3, 3] - camera[:3, 3])))
    assert max(with_prior) < 0.3 * MM
    assert np.mean(with_prior) < np.mean(without)


def test_the_covariance_is_that_of_the_errors() -> None:
    noise = Noise(pixel=0.1, shift=0.0, turn=0.0)
    found = [
        refined(seed, "eye_in_hand", noise, pixel=0.1, shift=0.0, turn=0.0) for seed in range(30)
    ]
    shares = []
    for each, camera in found:
        missed = (inverse(camera) @ each.camera)[:3, 3]
        shares.append(float(missed @ np.linalg.solve(each.covariance[:3, :3], missed)))
    assert 2.0 < np.mean(shares) < 4.5  # three for three directions


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("noise", [EXACT, Noise()], ids=["exact robot", "prior"])
def test_a_wrong_size_of_the_target_is_recognised(mount: Mount, noise: Noise) -> None:
    views, corners, camera = scene(2, mount, pixel=0.05, shift=0.0, turn=0.0)
    larger = [Corners(1.02 * points, pixels) for points, pixels in corners]
    for given, share in ((corners, 0.0), (larger, 1.0 / 1.02 - 1.0)):
        found = refine(
            views, given, LENS, camera=camera, target=target_place(views, camera), noise=noise
        )
        assert abs(found.scale.share - share) < max(5.0 * found.scale.deviation, 0.001)
        assert (abs(found.scale.share) > 5.0 * found.scale.deviation) == (share != 0.0)
    assert found.scale.kind == "target_size"


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_wrong_focal_length_is_recognised(mount: Mount) -> None:
    views, corners, camera = scene(2, mount, pixel=0.05, shift=0.0, turn=0.0)
    longer = replace(LENS, fx=1.03 * LENS.fx, fy=1.03 * LENS.fy)
    target = target_place(views, camera)
    found = refine(views, corners, longer, camera=camera, target=target, noise=Noise())
    assert found.scale.kind == "focal_length"
    assert found.scale.share == pytest.approx(-0.03, abs=0.006)
    assert abs(found.scale.share) > 5.0 * found.scale.deviation


def test_deviations_are_larger_when_the_poses_do_not_fit() -> None:
    robot = {"shift": 1.0 * MM, "turn": 0.2 * DEG}
    good, _ = refined(3, "eye_in_hand", Noise(), pixel=0.2, shift=0.0, turn=0.0)
    bad, _ = refined(3, "eye_in_hand", Noise(), pixel=0.2, **robot)
    assert good.variance < 1.3 < 3.0 < bad.variance
    assert np.trace(bad.covariance) > 3.0 * np.trace(good.covariance)


@pytest.mark.parametrize(("shift", "turn"), [(0.1 * MM, 0.0), (0.0, 0.03 * DEG)])
def test_a_robot_may_be_exact_in_its_shifts_or_in_its_turns_only(shift: float, turn: float) -> None:
    """One of both is enough for errors of the robot: the deviations are those of such a robot."""
    spreads = [
        np.trace(refined(4, "eye_in_hand", noise, pixel=0.05, shift=0.0, turn=0.0)[0].covariance)
        for noise in (EXACT, Noise(shift=shift, turn=turn), Noise(shift=0.1 * MM, turn=0.03 * DEG))
    ]
    assert 1.2 * spreads[0] < spreads[1] < spreads[2]


# ── errors of the robot that are not given ────────────────────────────────────────────────────────


def estimated(views: Views, corners: list[Corners]) -> Refined:
    first = tsai_lenz(views)
    assert not isinstance(first, Refused)
    start = target_place(views, first)
    return refine_with_noise(views, corners, LENS, camera=first, target=start)


REAL_ROBOTS = [(0.07, 0.0, 0.0), (0.07, 0.1, 0.03), (0.3, 0.5, 0.15), (0.2, 2.0, 0.5)]
"""Standard deviations: pixels, mm and degrees of the robot."""


@pytest.mark.parametrize(("pixel", "mm", "deg"), REAL_ROBOTS)
def test_the_noise_is_estimated_from_the_residuals(pixel: float, mm: float, deg: float) -> None:
    found = [
        estimated(*scene(seed, "eye_in_hand", pixel=pixel, shift=mm * MM, turn=deg * DEG)[:2])
        for seed in range(3)
    ]
    means = np.mean(
        [(f.noise.pixel, f.noise.shift / MM, f.noise.turn / DEG) for f in found], axis=0
    )
    assert means == pytest.approx([pixel, mm, deg], rel=0.25, abs=0.004)
    assert all(abs(f.scale.share) < 5.0 * f.scale.deviation for f in found), "no size is wrong"


def check_deviations(seeds: int) -> None:
    """The camera misses by what its covariance says; so do the cameras of two halves of a set."""
    chi2, halves = [], []
    for seed in range(seeds):
        views, corners, camera = scene(
            seed, "eye_in_hand", pixel=0.3, shift=0.5 * MM, turn=0.2 * DEG
        )
        found = estimated(views, corners)
        missed = motion_vector(inverse(found.camera) @ camera)
        chi2.append(missed @ np.linalg.solve(found.covariance, missed))
        first, second = (
            estimated(Views(views.flange[k::2], views.target[k::2]), corners[k::2]) for k in (0, 1)
        )
        apart = motion_vector(inverse(first.camera) @ second.camera)
        sigma = np.sqrt(np.diag(first.covariance + second.covariance))
        halves.append(float(np.abs(apart / sigma).max()))
    print(f"chi² of 6: {np.mean(chi2):.1f}; halves differ by {max(halves):.1f} σ at most")
    assert 2.0 < np.mean(chi2) < 12.0
    assert np.median(halves) < 3.0


def test_deviations_are_true_where_the_errors_of_the_robot_are_not_given() -> None:
    check_deviations(4)


@pytest.mark.soak
def test_deviations_are_true_over_80_sets() -> None:
    check_deviations(80)


@pytest.mark.parametrize(("mm", "deg"), [(0.0, 0.0), (0.1, 0.03), (0.3, 0.1)])
def test_a_wrong_size_is_not_taken_for_noise(mm: float, deg: float) -> None:
    views, corners, _ = scene(1, "eye_in_hand", pixel=0.1, shift=mm * MM, turn=deg * DEG)
    target = views.target.copy()
    target[:, :3, 3] *= 1.02
    wrong = [each._replace(points=1.02 * each.points) for each in corners]
    found = estimated(Views(views.flange, target), wrong)
    assert found.scale.kind == "target_size"
    assert found.scale.share == pytest.approx(-0.02, abs=0.004)
    assert abs(found.scale.share) > 5.0 * found.scale.deviation
