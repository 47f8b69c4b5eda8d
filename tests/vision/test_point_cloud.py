"""Detector `point_cloud`: 6D poses of boxes and cylinders from the depth image."""

import msgspec
import numpy as np
import pytest
from tests.vision.scenes import ABOVE, BLUE, GREEN, RED, SMALL, box, cylinder, in_base, table, view

from understudy.errors import ConfigError
from understudy.sight.faces import Face
from understudy.sight.silhouette import Solid
from understudy.space.pose import Pose
from understudy.space.transform import Array, angle_between, is_rigid, matrix
from understudy.vision.detectors import point_cloud
from understudy.vision.interface import DetectionError, Seen, View

BLOCK, BOLT = (0.06, 0.04, 0.03), (0.024, 0.06)
CLASSES = [
    {"name": "block", "size_mm": [60, 40, 30]},
    {"name": "bolt", "shape": "cylinder", "size_mm": [24, 60]},
]
HALF_TURNS = [np.diag(row) for row in ((1.0, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))]


def detector(noise_mm: float = 0.0, *, upright: bool = False) -> point_cloud.PointCloudDetector:
    keys = {"classes": CLASSES, "noise_mm": noise_mm, "upright": upright}
    config = msgspec.convert(keys, point_cloud.Config)
    return point_cloud.build(config, lambda name: b"")


def block(at: Pose) -> list[Face]:
    return box(BLOCK, at, RED)


def bolt(at: Pose) -> list[Face]:
    return cylinder(*BOLT, at, BLUE)


def look(faces: list[Face], noise_mm: float = 0.0, camera: Array = ABOVE) -> list[Seen]:
    picture = view(
        [*table(), *faces],
        lens=SMALL,
        camera=camera,
        noise=0.0,
        depth_noise=noise_mm * 1e-3,
        samples=1,
    )
    return list(detector(noise_mm).detect(picture))


def errors(found: Seen, true: Pose, camera: Array = ABOVE) -> tuple[float, float]:
    """Millimetres and degrees; a block looks the same after half turns, a bolt about its axis."""
    there, at = in_base(found, camera), matrix(true)
    off = float(np.linalg.norm(there[:3, 3] - at[:3, 3])) * 1e3
    if found.class_name == "bolt":
        return off, float(np.degrees(np.arcsin(np.linalg.norm(np.cross(there[:3, 2], at[:3, 2])))))
    turned = (angle_between(there[:3, :3] @ half, at[:3, :3]) for half in HALF_TURNS)
    return off, float(np.degrees(min(turned)))


def scene(seed: int) -> tuple[list[Face], list[tuple[str, Pose]], Array]:
    """A tilted block in the air, a standing bolt and a lying one; a tilted camera."""
    chance = np.random.default_rng(seed)
    tilt = chance.normal(0.0, 0.1, 6).clip(-0.15, 0.15)
    camera = matrix(Pose(0.4, 0, 0.45, np.pi + 0.5 * tilt[0], 0.5 * tilt[1], chance.uniform(-3, 3)))
    true = [
        ("block", Pose(0.33, 0.04, 0.05, 1.5 * tilt[2], 1.5 * tilt[3], chance.uniform(-3, 3))),
        ("bolt", Pose(0.45, 0.05, 0.03, 0, 0, 0)),
        ("bolt", Pose(0.42, -0.05, 0.013, np.pi / 2 + tilt[4], 0, chance.uniform(-3, 3))),
    ]
    faces = [face for name, at in true for face in (block(at) if name == "block" else bolt(at))]
    return faces, true, camera


def all_errors(seeds: range, noise_mm: float = 0.0) -> Array:
    rows = []
    for seed in seeds:
        faces, true, camera = scene(seed)
        found = look(faces, noise_mm, camera)
        assert sorted(each.class_name for each in found) == ["block", "bolt", "bolt"]
        for name, at in true:
            same = [errors(each, at, camera) for each in found if each.class_name == name]
            rows.append(min(same))
    return np.array(rows)


def test_poses_are_exact_without_noise() -> None:
    off, turn = all_errors(range(1)).max(axis=0)
    assert off < 0.1, "mm"
    assert turn < 0.1, "degrees"


@pytest.mark.soak
@pytest.mark.parametrize(("noise", "most", "turn"), [(0.0, 0.1, 0.15), (0.1, 0.15, 0.5)])
def test_many_poses(noise: float, most: float, turn: float) -> None:
    """An edge along the rows of pixels is known to a fifth of a pixel only: 0.15 mm."""
    found = all_errors(range(40), noise)
    assert (np.percentile(found, 95, axis=0) < (most, turn)).all()
    assert (found.max(axis=0) < (2.0 * most, 3.0 * turn)).all()


def test_stacked_parts_are_found_the_highest_first() -> None:
    """A block across another one: the lower one is hidden in part."""
    low, high = Pose(0.4, 0.0, 0.015, 0, 0, 0.3), Pose(0.43, 0.01, 0.045, 0, 0, 1.9)
    first, second = look([*block(low), *block(high)])
    assert errors(first, high)[0] < 0.1
    assert first.confidence > 0.9
    assert second.confidence < 0.8, "hidden in part"
    assert errors(second, low)[0] < 0.5


def test_a_part_that_is_mostly_hidden_is_not_reported_as_certain() -> None:
    """Less than half of the lower block is seen: several poses would explain it."""
    low, high = Pose(0.4, 0.0, 0.015, 0, 0, 0.3), Pose(0.415, 0.0, 0.045, 0, 0, 1.9)
    first, *others = look([*block(low), *block(high)])
    assert errors(first, high)[0] < 0.1
    assert all(each.confidence < 0.7 for each in others)


def test_a_block_on_its_side_is_a_block() -> None:
    at = Pose(0.42, 0.03, 0.03, np.pi / 2, 0.0, 0.4)  # stands on its side
    at = at._replace(z=0.02)
    (found,) = look(block(at))
    off, turn = errors(found, at)
    assert off < 0.1
    assert turn < 0.1


def test_upright_parts_stand_exactly_upright() -> None:
    standing, lying = Pose(0.36, 0.03, 0.015, 0, 0, 0.4), Pose(0.45, 0.0, 0.02, np.pi / 2, 0, 0.2)
    faces = [*table(), *block(standing), *block(lying)]
    seen = view(faces, lens=SMALL, noise=0.0, depth_noise=2e-4, samples=1)
    assert len(detector(0.2).detect(seen)) == 2
    (found,) = detector(0.2, upright=True).detect(seen)
    np.testing.assert_allclose(in_base(found)[:3, 2], (0, 0, 1), atol=1e-12)
    assert errors(found, standing)[0] < 0.2
    with pytest.raises(DetectionError, match="place of the camera"):
        detector(upright=True).detect(View(seen.frame, SMALL, None))


def test_noise_of_the_depth_costs_little() -> None:
    at = Pose(0.42, 0.03, 0.05, 0.1, -0.15, 0.4)
    (found,) = look(block(at), noise_mm=0.1)
    off, turn = errors(found, at)
    assert off < 0.15
    assert turn < 0.3


def test_other_things_are_not_parts() -> None:
    other = box((0.05, 0.05, 0.05), Pose(0.36, 0.04, 0.025, 0, 0, 0.4), GREEN)
    pipe = cylinder(0.034, 0.06, Pose(0.45, 0.0, 0.017, np.pi / 2, 0, 0.2), BLUE)
    assert [each for each in look([*other, *pipe]) if each.confidence > 0.5] == []
    assert look([]) == []


def test_it_says_what_it_needs() -> None:
    seen = view(table(), lens=SMALL)
    flat = View(type(seen.frame)(1, 0.0, seen.frame.picture, SMALL), SMALL, ABOVE)
    with pytest.raises(DetectionError, match="depth image"):
        detector().detect(flat)
    with pytest.raises(ConfigError, match="same name"):
        msgspec.convert({"classes": CLASSES[:1] * 2}, point_cloud.Config)


def test_distances_to_solids() -> None:
    points = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 2.0, 3.5]])
    cube = Solid("box", (2.0, 2.0, 2.0))
    np.testing.assert_allclose(
        cube.distances(points), [-1.0, -0.5, 0.0, np.sqrt(0.25 + 1.0 + 6.25)]
    )
    can = Solid("cylinder", (2.0, 2.0, 4.0))
    np.testing.assert_allclose(can.distances(points), [-1.0, -0.5, 0.0, np.hypot(1.5, 1.5)])


def test_a_place_is_turned_up_by_half_a_turn_about_its_x_axis() -> None:
    down = matrix(Pose(0.1, 0.2, 0.3, np.pi + 0.2, 0.1, 0.4))
    turned = point_cloud.turned_up(down, np.array([0.0, 0.0, 1.0]), exact=False)
    assert turned is not None
    assert is_rigid(turned)
    assert turned[2, 2] > 0.0
    assert np.array_equal(turned[:, [0, 3]], down[:, [0, 3]])
