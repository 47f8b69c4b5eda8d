"""Detector `shapes`: exact poses of coloured parts, and nothing where no part is."""

import msgspec
import numpy as np
import pytest
from tests.vision.scenes import (
    ABOVE,
    BLUE,
    GREEN,
    LARGE,
    RED,
    SMALL,
    box,
    cylinder,
    in_base,
    table,
    turn_error,
    view,
)

from understudy.errors import ConfigError
from understudy.sight.faces import Face, marker_face
from understudy.sight.lens import Lens
from understudy.sight.markers import marker_pattern
from understudy.sight.silhouette import on_plane, parallax_error
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.vision.detectors import shapes
from understudy.vision.interface import DetectionError, Seen, View

CLASSES: list[dict[str, object]] = [
    {"name": "cube", "color": "#c82820", "size_mm": [40, 40, 40]},
    {"name": "plate", "color": {"hue": [215, 245]}, "size_mm": [60, 30, 10]},
    {"name": "can", "color": "#28963c", "shape": "cylinder", "size_mm": [30, 50]},
]
SIZES = {"cube": (0.04, 0.04, 0.04), "plate": (0.06, 0.03, 0.01), "can": (0.03, 0.03, 0.05)}
COLORS = {"cube": RED, "plate": BLUE, "can": GREEN}
SYMMETRY = {"cube": np.pi / 2, "plate": np.pi}


def detector(classes: list[dict[str, object]] = CLASSES) -> shapes.ShapeDetector:
    config = msgspec.convert({"classes": classes}, shapes.Config)
    return shapes.build(config, lambda name: b"")


DETECTOR = detector()


def part(name: str, x: float, y: float, yaw: float) -> list[Face]:
    width, depth, height = SIZES[name]
    at = Pose(x, y, height / 2, 0, 0, yaw)
    if name == "can":
        return cylinder(width, height, at, COLORS[name])
    return box((width, depth, height), at, COLORS[name])


def errors(lens: Lens, seed: int) -> list[tuple[float, float]]:
    """Position (mm) and turn (degrees) errors of three parts at random poses."""
    chance = np.random.default_rng(seed)
    camera = matrix(Pose(0.4, 0, 0.4, np.pi + chance.normal(0, 0.03), 0.02, chance.uniform(-3, 3)))
    faces, true = table(), {}
    for name, x, y in zip(SIZES, (-0.07, 0.0, 0.07), (0.05, -0.06, 0.05), strict=True):
        dx, dy, yaw = chance.uniform((-0.015, -0.015, -3), (0.015, 0.015, 3))
        true[name] = (0.4 + x + dx, y + dy, SIZES[name][2] / 2, yaw)
        faces += part(name, true[name][0], true[name][1], yaw)
    found = DETECTOR.detect(view(faces, lens=lens, camera=camera, seed=seed))
    assert sorted(each.class_name for each in found) == sorted(SIZES)
    assert min(each.confidence for each in found) > 0.9
    out = []
    for each in found:
        at, (*middle, yaw) = in_base(each, camera), true[each.class_name]
        turn = 0.0
        if each.class_name in SYMMETRY:
            turn = turn_error(np.arctan2(at[1, 0], at[0, 0]), yaw, SYMMETRY[each.class_name])
        out.append((float(np.linalg.norm(at[:3, 3] - middle)) * 1e3, turn))
    return out


def test_parts_are_found_where_they_are() -> None:
    """640×480, grey noise of 2, a bent and tilted lens: half of what 1280×960 must hold."""
    worst = np.max([pair for seed in range(2) for pair in errors(SMALL, seed)], axis=0)
    assert worst[0] < 0.25, "mm"
    assert worst[1] < 0.3, "degrees"


@pytest.mark.soak
def test_many_parts_at_full_size() -> None:
    found = np.array([pair for seed in range(100) for pair in errors(LARGE, seed)])
    position, turn = np.percentile(found, 95, axis=0)
    assert position < 0.05, "mm"
    assert turn < 0.1, "degrees"


def names(faces: list[Face], least: float = 0.7) -> list[str]:
    found = DETECTOR.detect(view(faces, lens=SMALL))
    return sorted(each.class_name for each in found if each.confidence >= least)


def test_nothing_is_found_where_no_part_is() -> None:
    tag = marker_face(marker_pattern("DICT_4X4_50", 3), 0.05, 0.05)
    shadow = marker_face(np.array([[(70, 70, 68)]], dtype=np.uint8), 0.04, 0.04)
    other = box((0.04, 0.04, 0.04), Pose(0.48, 0.05, 0.02, 0, 0, 0.3), (190, 170, 30))
    paper = marker_face(np.array([[RED]], dtype=np.uint8), 0.025, 0.1)  # the colour of the cube
    faces = [
        *table(),
        tag.moved(matrix(Pose(0.32, 0.05, 0.0005, 0, 0, 0.2))),
        shadow.moved(matrix(Pose(0.4, -0.05, 0.0005, 0, 0, 0.7))),
        paper.moved(matrix(Pose(0.47, -0.04, 0.0005, 0, 0, 0.4))),
        *other,
    ]
    assert names(faces, 0.0) == []
    assert names(table(), 0.0) == []


def test_a_marker_on_the_part_does_not_matter() -> None:
    tag = marker_face(marker_pattern("DICT_4X4_50", 3), 0.03, 0.03)
    faces = [*table(), *part("cube", 0.43, 0.03, 0.3)]
    faces.append(tag.moved(matrix(Pose(0.43, 0.03, 0.04002, 0, 0, 0.3))))
    (cube,) = DETECTOR.detect(view(faces, lens=SMALL))
    np.testing.assert_allclose(in_base(cube)[:3, 3], (0.43, 0.03, 0.02), atol=2.5e-4)


@pytest.mark.parametrize("shift", [(0.04, 0.0), (0.03, 0.04), (0.041, 0.015)])
def test_touching_parts_are_not_taken_for_one(shift: tuple[float, float]) -> None:
    first = part("cube", 0.37, -0.01, 0.0)
    assert names([*table(), *first, *part("cube", 0.37 + shift[0], -0.01 + shift[1], 0.0)]) == []


def test_a_hidden_or_cut_part_has_a_low_confidence() -> None:
    cover = box((0.03, 0.05, 0.01), Pose(0.46, 0.0, 0.08, 0, 0, 0), (240, 240, 240))
    assert names([*table(), *part("cube", 0.44, 0.0, 0.2), *cover]) == []
    assert names([*table(), *part("cube", 0.4, 0.15, 0.2)]) == []


def test_a_part_of_another_size_is_not_the_class() -> None:
    assert names([*table(), *box((0.046,) * 3, Pose(0.4, 0, 0.023, 0, 0, 0.5), RED)]) == []


def test_two_classes_of_one_colour_are_separated() -> None:
    both = detector([CLASSES[0], {"name": "bar", "color": "#c82820", "size_mm": [80, 40, 40]}])
    bar = box((0.08, 0.04, 0.04), Pose(0.44, -0.05, 0.02, 0, 0, 0.2), RED)
    found = both.detect(view([*table(), *part("cube", 0.35, 0.04, 1.0), *bar], lens=SMALL))
    assert sorted((each.class_name, each.bbox[2] > 100) for each in found) == [
        ("bar", True),
        ("cube", False),
    ]


def test_the_parallax_formula_agrees_with_rays_for_a_vertical_camera() -> None:
    points = np.array([[0.12, -0.07, 0.35], [-0.03, 0.02, 0.37], [0.0, 0.1, 0.4]])  # camera frame
    rays = SMALL.rays(SMALL.pixels(points))
    reference, higher = 0.4, 0.4 - points[:, 2]
    measured = rays * reference
    corrected = measured - parallax_error(measured, higher[:, None], reference)
    np.testing.assert_allclose(corrected, points[:, :2], atol=1e-9)
    for ray, point, up in zip(rays, points, higher, strict=True):
        (met,) = on_plane(ray[None], ABOVE, up)
        np.testing.assert_allclose(met - ABOVE[:2, 3], point[:2] * (1, -1), atol=1e-9)


def test_it_says_what_it_needs() -> None:
    picture = view(table(), lens=SMALL)
    with pytest.raises(DetectionError, match="place of the camera"):
        DETECTOR.detect(View(picture.frame, picture.lens, None))
    with pytest.raises(ConfigError, match="size of a cylinder has 2 numbers"):
        detector([CLASSES[2] | {"size_mm": [30, 50, 2]}])
    with pytest.raises(ConfigError, match="same name"):
        detector([CLASSES[0], CLASSES[0]])
    with pytest.raises(msgspec.ValidationError, match="matching regex"):
        detector([CLASSES[0] | {"color": "red"}])


def test_answers_have_the_form_of_the_protocol() -> None:
    (cube,) = DETECTOR.detect(view([*table(), *part("cube", 0.4, 0.0, 0.2)], lens=SMALL))
    assert isinstance(cube, Seen)
    x, y, width, height = cube.bbox
    u, v = SMALL.pixels(cube.place[:3, 3])
    assert x < u < x + width
    assert y < v < y + height
    assert cube.place[2, 3] == pytest.approx(0.38, abs=1e-6), "the middle of the part"
