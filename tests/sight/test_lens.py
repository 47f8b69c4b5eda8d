"""The lens, and OpenCV as its oracle."""

import cv2
import numpy as np

from understudy.sight.lens import Lens

WIDE = Lens(1280, 960, 1200.5, 1200.8, 640.0, 480.0, (-0.12, 0.08, 0.001, -0.002, 0.01))


def points(count: int = 500) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(1)
    depth = rng.uniform(0.2, 2.0, count)
    return np.stack([*(rng.uniform(-0.45, 0.45, (2, count)) * depth), depth], axis=1)


def test_pixels_are_those_of_opencv() -> None:
    there = points()
    expected, _ = cv2.projectPoints(
        there, np.zeros(3), np.zeros(3), WIDE.matrix, np.array(WIDE.distortion)
    )
    np.testing.assert_allclose(WIDE.pixels(there), expected[:, 0], atol=1e-9)


def test_rays_are_the_inverse_of_pixels() -> None:
    there = points()
    np.testing.assert_allclose(
        WIDE.rays(WIDE.pixels(there)), there[:, :2] / there[:, 2:], atol=1e-12
    )


def test_a_lens_without_distortion_is_a_pinhole() -> None:
    plain = Lens(640, 480, 600.0, 600.0, 320.0, 240.0)
    np.testing.assert_allclose(plain.rays(np.array([320.0, 240.0])), [0.0, 0.0])
    np.testing.assert_allclose(plain.pixels(np.array([0.1, 0.0, 0.5])), [440.0, 240.0])


def test_a_point_beside_the_camera_is_not_shown_in_the_middle() -> None:
    """Beyond 46° the polynomial of this barrel distortion runs back to the middle."""
    barrel = Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0, (-0.3, 0.0, 0.0, 0.0, 0.0))
    aside = np.array([1.8, 0.0, 1.0])
    assert np.abs(barrel.pixels(aside) - (640.0, 480.0)).max() < 640.0
    assert not barrel.sees(aside)
    assert barrel.sees(np.array([0.5, 0.0, 1.0]))
    assert not barrel.sees(np.array([0.0, 0.0, -1.0]))
