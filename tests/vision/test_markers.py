"""Detector `markers`: where markers are, by rendered pictures."""

import numpy as np
import pytest
from tests.vision.rendered import LENS, TABLE, above, marker_sheet, photo

from understudy.errors import ConfigError
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.space.pose import Pose
from understudy.space.transform import Array, angle_between, inverse, matrix, translation
from understudy.units import DEG, MM
from understudy.vision.detectors import markers
from understudy.vision.interface import DetectionError, Seen, View

APRILTAG = "DICT_APRILTAG_36h11"
FINE = Lens(640, 480, 1200.0, 1200.0, 320.0, 240.0)
"""The middle of a picture of 1280×960."""
WHOLE = Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0, (-0.12, 0.08, 0.0, 0.0, 0.0))
MIDDLE, ANYWHERE = (0.04, 0.04), (0.15, 0.1)
"""How far from the middle of the picture a marker is at most, metres along x and y."""


def detected(config: markers.Config, view: View) -> list[Seen]:
    return list(markers.build(config, lambda name: b"").detect(view))


def scene(
    seed: int, lens: Lens, size: float, tilt: float = 0.0, reach: tuple[float, float] = MIDDLE
) -> tuple[View, Array]:
    """A marker on the table, 400 mm below a nearly level camera, and its place in the base."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1.0, 1.0, 2) * reach
    place = matrix(Pose(x, y, 0.02, tilt, 0.0, rng.uniform(-3.0, 3.0)))
    camera = above(0.0, 0.0, 0.42, rng.uniform(-0.03, 0.03, 3).tolist())
    picture = photo([TABLE, marker_sheet(APRILTAG, 3, size).moved(place)], lens, camera, seed)
    return View(Frame(1, 0.0, picture, lens), lens, camera), place


def test_defaults_are_those_of_the_design_document() -> None:
    sheet = marker_sheet("DICT_4X4_50", 7, 0.05)
    camera = above(0.01, 0.02, 0.4)
    frame = Frame(1, 0.0, photo([TABLE, sheet], LENS, camera, 1), LENS)
    (seen,) = detected(markers.Config(), View(frame, LENS))
    assert (seen.class_name, seen.confidence, seen.number) == ("marker_7", 1.0, 7)
    x, y, w, h = seen.bbox
    assert abs(w - 75) < 8
    assert abs(h - 75) < 8
    u, v = LENS.pixels(inverse(camera)[:3, 3])
    assert x < u < x + w
    assert y < v < y + h
    assert np.linalg.norm(camera @ seen.place[:, 3] - (0, 0, 0, 1)) < 1.0 * MM


def test_classes_sizes_and_offsets() -> None:
    """The centre of a cube is below its marker; sizes of single markers go before `size_mm`."""
    near, far = translation(-0.06, 0.0, 0.04), translation(0.06, 0.0, 0.04)
    sheets = [
        marker_sheet(APRILTAG, 0, 0.03).moved(near),
        marker_sheet(APRILTAG, 5, 0.04).moved(far),
    ]
    camera = above(0.0, 0.0, 0.4)
    view = View(Frame(1, 0.0, photo([TABLE, *sheets], LENS, camera, 1), LENS), LENS, camera)
    config = markers.Config(
        dictionary=APRILTAG,
        size_mm=30.0,
        sizes_mm={5: 40.0},
        classes={0: "cube"},
        offset_mm_deg=(0.0, 0.0, -20.0, 0.0, 0.0, 0.0),
        upright=True,
    )
    cube, other = detected(config, view)
    assert (cube.class_name, other.class_name) == ("cube", "marker_5")
    for seen, place in ((cube, near), (other, far)):
        expected = place @ translation(0.0, 0.0, -0.02)
        assert np.linalg.norm((camera @ seen.place - expected)[:3, 3]) < 1.0 * MM
    only = markers.Config(dictionary=APRILTAG, classes={0: "cube"}, only_listed=True)
    assert [seen.number for seen in detected(only, view)] == [0]


def upright_errors(
    count: int, lens: Lens, reach: tuple[float, float] = MIDDLE
) -> tuple[Array, Array, Array]:
    """In millimetres beside and along the axis of the camera, and in degrees."""
    config = markers.Config(dictionary=APRILTAG, size_mm=30.0, upright=True)
    beside, along, turned = [], [], []
    for seed in range(count):
        view, place = scene(seed, lens, 0.03, reach=reach)
        assert view.camera is not None
        (seen,) = detected(config, view)
        missed = (inverse(view.camera) @ place - seen.place)[:3, 3] / MM
        beside.append(np.hypot(*missed[:2]))
        along.append(abs(missed[2]))
        turned.append(angle_between(view.camera @ seen.place, place) / DEG)
    return np.array(beside), np.array(along), np.array(turned)


def test_pose_estimation_accuracy() -> None:
    """A level marker of 30 mm, 400 mm away: 0.3 mm and 0.2°."""
    beside, along, turned = upright_errors(5, FINE)
    assert beside.max() < 0.05
    assert along.max() < 0.2
    assert turned.max() < 0.1


@pytest.mark.soak
@pytest.mark.parametrize(("lens", "mm"), [(WHOLE, 0.15), (LENS, 0.4)], ids=["fine", "coarse"])
def test_pose_estimation_accuracy_over_many_pictures(lens: Lens, mm: float) -> None:
    beside, along, turned = upright_errors(200, lens, ANYWHERE)
    assert np.percentile(np.hypot(beside, along), 95) <= mm
    assert np.percentile(turned, 95) <= 0.1


def test_a_marker_that_does_not_lie_level_is_left_out() -> None:
    view, _ = scene(1, LENS, 0.03, tilt=25 * DEG)
    config = markers.Config(dictionary=APRILTAG, size_mm=30.0)
    assert len(detected(config, view)) == 1
    upright = markers.Config(dictionary=APRILTAG, size_mm=30.0, upright=True)
    assert detected(upright, view) == []


def test_upright_needs_the_place_of_the_camera() -> None:
    view, _ = scene(1, LENS, 0.03)
    with pytest.raises(DetectionError, match="hand-eye calibration"):
        detected(markers.Config(upright=True), View(view.frame, LENS))


def test_an_unknown_dictionary_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'DICT_4X4_50'"):
        markers.build(markers.Config(dictionary="DICT_4X4_5"), lambda name: b"")
