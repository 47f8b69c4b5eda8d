"""Corners by the lines of the sides: against the true corners of rendered markers."""

import cv2
import numpy as np
from tests.vision.rendered import LENS, TABLE, above, marker_sheet, photo

from understudy.sight.markers import MarkerFinder, corner_points, refined_by_sides
from understudy.space.pose import Pose
from understudy.space.transform import Array, inverse, matrix

NAME, SIZE, CELLS = "DICT_APRILTAG_36h11", 0.03, 8


def scene(seed: int) -> tuple[Array, Array]:
    """A picture of a marker, and its true corners."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.04, 0.04, 2)
    place = matrix(Pose(x, y, 0.02, 0.0, 0.0, rng.uniform(-3, 3)))
    camera = above(0.0, 0.0, 0.42, rng.uniform(-0.15, 0.15, 3).tolist())
    picture = photo([TABLE, marker_sheet(NAME, 3, SIZE).moved(place)], LENS, camera, seed)
    seen = inverse(camera) @ place
    return picture, LENS.pixels(corner_points(SIZE) @ seen[:3, :3].T + seen[:3, 3])


def test_corners_are_found_to_a_twentieth_of_a_pixel() -> None:
    missed = []
    for seed in range(12):
        picture, true = scene(seed)
        (marker,) = MarkerFinder(NAME).find(picture, LENS)
        missed.append(marker.corners - true)
    assert np.abs(np.mean(missed, axis=(0, 1))).max() < 0.02, "no common shift"
    assert np.sqrt(np.mean(np.square(missed))) < 0.05
    assert np.abs(missed).max() < 0.2


def test_blur_does_not_move_the_corners() -> None:
    picture, true = scene(3)
    blurred = cv2.GaussianBlur(picture, (0, 0), 0.8)
    (marker,) = MarkerFinder(NAME).find(blurred, LENS)
    assert np.abs(marker.corners - true).max() < 0.2


def test_corners_of_sides_that_are_not_seen_stay() -> None:
    """Without contrast, at the border of the picture, and too small; beside one that is seen."""
    picture, true = scene(3)
    gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    square = np.array([(0.0, 0.0), (60.0, 0.0), (60.0, 60.0), (0.0, 60.0)])
    outside, small = square - 5.0, square / 20.0 + 100.0
    flat = square * 0.5 + (600.0, 440.0)
    given = np.stack([outside, true + 0.7, small, flat])
    found = refined_by_sides(np.asarray(gray), given, CELLS, LENS)
    for row in (0, 2, 3):
        assert (found[row] == given[row]).all()
    assert np.abs(found[1] - true).max() < 0.15
