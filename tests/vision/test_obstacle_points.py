"""The thinned cloud of a depth image for the check of obstacles."""

import numpy as np
import pytest
from tests.vision.scenes import ABOVE, RED, SMALL, box, table, view

from understudy.sight.cloud import cloud, thinned
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.vision.interface import DetectionError, View
from understudy.vision.server import MOST_POINTS, obstacle_points, points_mm


def test_points_lie_on_the_surfaces_that_are_seen() -> None:
    scene = [*table(), *box((0.03, 0.03, 0.06), Pose(0.45, 0.02, 0.03, 0, 0, 0.3), RED)]
    points = obstacle_points(view(scene, lens=SMALL, samples=1))
    assert 500 < len(points) <= MOST_POINTS
    there = points @ ABOVE[:3, :3].T + ABOVE[:3, 3]
    on_table = np.abs(there[:, 2]) < 1e-6
    high = there[there[:, 2] > 0.0599]
    assert len(high) >= 9
    np.testing.assert_allclose(high.mean(axis=0), (0.45, 0.02, 0.06), atol=3e-3)
    assert on_table.mean() > 0.9
    assert points_mm(points[:1])[0][2] == pytest.approx(points[0, 2] * 1e3, abs=0.006)


def test_every_pixel_has_its_point() -> None:
    """The inverse of the lens: points are projected onto the pixels from which they came."""
    seen = view(table(), lens=SMALL, samples=1)
    assert seen.frame.depth is not None
    points = cloud(seen.frame.depth, SMALL)
    rows, columns = np.mgrid[0:480:37, 0:640:41]
    pixels = SMALL.pixels(points[rows, columns])
    np.testing.assert_allclose(pixels, np.stack([columns, rows], axis=-1), atol=1e-6)


def test_single_pixels_are_noise_and_the_nearest_point_of_a_cube_is_kept() -> None:
    rows = np.array([[0.001, 0.001, 0.502], [0.002, 0.003, 0.501], [0.3, 0.1, 0.5]])
    np.testing.assert_allclose(thinned(rows, 0.01), rows[[1, 2]])
    np.testing.assert_allclose(thinned(rows, 0.01, fewest=2), rows[[1]])
    assert thinned(rows[:0], 0.01).shape == (0, 3)


def test_a_large_view_has_larger_cubes() -> None:
    far = matrix(Pose(0.4, 0.0, 1.0, np.pi, 0.0, 0.0))
    points = obstacle_points(view(table(), lens=SMALL, samples=1, camera=far))
    assert 1000 < len(points) <= MOST_POINTS


def test_a_camera_without_depth_is_a_clear_error() -> None:
    seen = view(table(), lens=SMALL, samples=1)
    flat = View(type(seen.frame)(1, 0.0, seen.frame.picture, SMALL), SMALL, ABOVE)
    with pytest.raises(DetectionError, match="depth image"):
        obstacle_points(flat)
