"""Ground-truth vision: what it sees, its latency, its faults, and the calibration file."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.simulation.workpieces.table_cell import CUBE, at, components_of, table_cell
from tests.vision.camera_in import camera_in

from understudy.config import read_config
from understudy.errors import ConfigError, Refused
from understudy.ports import state as snapshots
from understudy.ports.object_finder import FoundObjects
from understudy.sight.lens import CameraModel, Lens
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config, Rule, Scenario, build
from understudy.space.pose import Pose
from understudy.space.transform import angle_between, matrix
from understudy.units import DEG, MM, NS_PER_MS
from understudy.vision.config import VisionConfig, camera_of, read_calibration
from understudy.vision.ground_truth import GroundTruthVision

ABOVE = Pose(0.5, 0.0, 0.55, math.pi, 0.0, 0.0)
"""A flange 500 mm above the table that points down."""
LOOK = matrix(ABOVE)


class Stand:
    """A camera above a cell with parts."""

    def __init__(self, cell: Cell, camera: CameraModel | None = None, **rules: Rule) -> None:
        self.cell = cell
        self.results: list[tuple[int, FoundObjects | Refused, int]] = []
        self.scenario: Scenario = build(Config(rules), seed=5)
        self.vision = GroundTruthVision(
            "g60.vision",
            components_of(cell),
            lambda now: ABOVE,
            camera=camera or CameraModel(),
            latency=50 * NS_PER_MS,
            fault_source=self.scenario,
        )
        self.scenario.act_on({"g60.vision": self.vision})
        self.vision.on_result(lambda *result: self.results.append(result))

    def look(self, class_filter: str = "", now: int = 0) -> FoundObjects | None:
        """The result of one picture; None if no answer comes."""
        self.results.clear()
        self.vision.request(class_filter, now)
        if (due := self.vision.next_wake()) is None:
            return None
        self.vision.wake(due)
        result = self.results[0][1]
        assert isinstance(result, FoundObjects)
        return result

    def names(self, class_filter: str = "") -> list[str]:
        result = self.look(class_filter)
        assert result is not None
        return [each.part for each in result.objects]


def rule(fault: str, **keys: Any) -> Rule:
    return Rule(fault=fault, on="g60.vision", **keys)


def test_a_part_is_reported_in_the_frame_of_the_camera() -> None:
    stand = Stand(table_cell({**CUBE, "class": "box", "rotation_deg": [0, 0, 30]}))
    stand.vision.request("", 7)
    assert stand.vision.next_wake() == 7 + 50 * NS_PER_MS
    stand.vision.wake(7 + 50 * NS_PER_MS)
    ((ticket, result, now),) = stand.results
    assert isinstance(result, FoundObjects)
    assert (ticket, now) == (1, 7 + 50 * NS_PER_MS)
    assert (result.exposed_at, result.frame_id) == (7, 1)
    (seen,) = result.objects
    assert (seen.id, seen.class_name, seen.part) == (1, "box", "cube")
    camera = matrix(stand.vision.camera(Pose(0.5, 0.0, 0.55, math.pi, 0.0, 0.0)))
    found = camera @ matrix(seen.pose)
    assert np.allclose(found, components_of(stand.cell).place("cube", 0), atol=1e-12)
    # 40 mm, turned by 30°, with its upper side 460 mm in front of a lens of 1200 px
    side = 40.0 * (math.cos(30 * DEG) + math.sin(30 * DEG)) / 460.0 * 1200.0
    x, y, width, height = seen.bbox
    assert (width, height) == pytest.approx((side, side), abs=2)
    assert (x + width / 2, y + height / 2) == pytest.approx((640, 480), abs=1.5)


def test_parts_outside_the_picture_below_others_or_held_are_not_seen() -> None:
    stand = Stand(
        table_cell(
            CUBE,
            at(CUBE, "upper", 500, 0, 110),
            {**at(CUBE, "side", 560, 100, 70), "class": "other"},
            at(CUBE, "far", 880, 0, 70),
        )
    )
    assert stand.names() == ["upper", "side"]
    assert stand.names("other") == ["side"]
    components_of(stand.cell).take("upper", "g60", 0)
    assert stand.names() == ["cube", "side"]


def test_a_camera_that_stands_in_the_cell_does_not_follow_the_flange() -> None:
    above = matrix(Pose(0.88, 0.0, 0.5, math.pi, 0.0, 0.0))
    stand = Stand(
        table_cell(CUBE, at(CUBE, "far", 880, 0, 70)), CameraModel(at=above, on_flange=False)
    )
    assert stand.names() == ["far"]
    assert stand.vision.camera(Pose(0, 0, 0, 0, 0, 0)) == pytest.approx(
        (0.88, 0, 0.5, math.pi, 0, 0)
    )


def test_a_request_that_is_cancelled_or_replaced_gets_no_result() -> None:
    stand = Stand(table_cell(CUBE))
    stand.vision.request("", 0)
    stand.vision.cancel(1)
    assert stand.vision.next_wake() is None
    stand.vision.request("", 2)
    stand.vision.request("", 3)
    stand.vision.wake(1000 * NS_PER_MS)
    assert [ticket for ticket, _, _ in stand.results] == [3]


def test_the_result_on_its_way_is_in_a_snapshot() -> None:
    cell = table_cell(CUBE)
    stand, other = Stand(cell), Stand(cell)
    stand.vision.request("", 0)
    snapshots.load(other.vision, msgspec.to_builtins(snapshots.saved(stand.vision)))
    for each in (stand, other):
        each.vision.wake(50 * NS_PER_MS)
    assert stand.results == other.results != []


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_faults_of_vision_act_on_a_picture() -> None:
    cell = table_cell(CUBE)
    assert Stand(cell, a=rule("vision_no_object", times=1)).names() == []
    assert Stand(cell, a=rule("vision_silent", times=1)).look() is None
    low = Stand(cell, a=rule("vision_low_confidence", parameters={"confidence": 0.4})).look()
    assert low is not None
    assert [each.confidence for each in low.objects] == [0.4]
    wrong = Stand(cell, a=rule("vision_wrong_class"))
    assert wrong.names("cube") == []
    assert wrong.names("unknown") == ["cube"]


def test_after_a_fault_the_next_picture_is_right_again() -> None:
    stand = Stand(table_cell(CUBE), a=rule("vision_silent", times=2))
    assert [stand.look() is None for _ in range(3)] == [True, True, False]


def test_noise_is_within_its_bounds_differs_and_repeats_with_the_seed() -> None:
    noise = rule("vision_noise", parameters={"mm": 2.0, "deg": 1.0})
    cell = table_cell(CUBE)
    true = Stand(cell).look()
    assert true is not None

    def poses() -> list[Pose]:
        stand = Stand(cell, noisy=noise)
        results = [stand.look() for _ in range(50)]
        return [result.objects[0].pose for result in results if result is not None]

    found = poses()
    assert found == poses()
    assert len(set(found)) == 50
    shifts = np.array([np.subtract(pose[:3], true.objects[0].pose[:3]) for pose in found])
    assert 1.8 * MM < np.abs(shifts).max() <= 2.0 * MM
    turns = [angle_between(matrix(pose), matrix(true.objects[0].pose)) for pose in found]
    assert 0.5 * DEG < max(turns) <= math.sqrt(3) * 1.01 * DEG


# ── calibration file ────────────────────────────────────────────────────────────────────────────

SEED_FILE = """
hand_eye_calibration:
  method: "tsai_lenz"
  date: "2026-01-15"
  matrix:
    - [0.9999, 0.0087, 0.0012, 45.23]
    - [-0.0087, 0.9999, 0.0045, -12.56]
    - [-0.0012, -0.0045, 1.0000, 85.78]
    - [0.0, 0.0, 0.0, 1.0]
  reprojection_error_mm: 0.35
  num_poses_used: 15
  camera_intrinsics: {fx: 1200.5, fy: 1200.8, cx: 640.0, cy: 480.0,
                      distortion: [-0.12, 0.08, 0.0, 0.0, 0.0]}
"""


def test_the_calibration_file_of_the_document_is_read_and_made_a_rotation() -> None:
    found = read_calibration(SEED_FILE, "hand_eye_calib.yaml")
    place = found.place()
    assert place[:3, 3] == pytest.approx((0.04523, -0.01256, 0.08578))
    assert np.allclose(place[:3, :3] @ place[:3, :3].T, np.eye(3), atol=1e-14)
    assert np.abs(place[:3, :3] - np.array(found.matrix)[:3, :3]).max() < 2e-4
    camera = camera_of(VisionConfig(fy_px=900.0), found)
    assert camera.lens == Lens(1280, 960, 1200.5, 900.0, 640.0, 480.0, (-0.12, 0.08, 0, 0, 0))
    assert np.array_equal(camera.at, place)


def test_the_distortion_of_the_calibration_counts_in_the_picture() -> None:
    barrel = SEED_FILE.replace("[-0.12, 0.08, 0.0, 0.0, 0.0]", "[-0.3, 0.0]")
    camera = camera_of(VisionConfig(mount="eye_to_hand"), read_calibration(barrel, "file.yaml"))
    assert camera.lens.distortion == (-0.3, 0.0, 0.0, 0.0, 0.0)
    cell = table_cell(CUBE, at(CUBE, "edge", 770, 0, 70))
    assert Stand(cell).names() == ["cube"]
    looks = replace(camera, at=LOOK)
    assert Stand(cell, looks).names() == ["cube", "edge"]


@pytest.mark.parametrize("wrong", ["0.0, 0.0, 0.0, 0.0, 0.0, 0.0", "-0.12, .inf"])
def test_a_distortion_that_is_not_simulated_is_refused(wrong: str) -> None:
    text = SEED_FILE.replace("-0.12, 0.08, 0.0, 0.0, 0.0", wrong)
    with pytest.raises(ConfigError, match="distortion"):
        read_calibration(text, "hand_eye_calib.yaml")


@pytest.mark.parametrize("wrong", ["0.95, 0.0087", "-0.9999, 0.0087"])
def test_a_matrix_that_is_no_rotation_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="not a rotation"):
        read_calibration(SEED_FILE.replace("0.9999, 0.0087", wrong, 1), "hand_eye_calib.yaml")


def test_the_file_is_found_beside_the_cell_file_or_above_and_counts_in_the_digest(
    tmp_path: Path,
) -> None:
    text = """
robots:
  g60:
    kind: arm
    model: g60
    vision: {hand_eye_calibration_file: config/hand_eye_calib.yaml}
"""
    folder = tmp_path / "config"
    folder.mkdir()
    for cell_file in (tmp_path / "cell.yaml", folder / "cell.yaml"):
        without = read_config(text, str(cell_file))
        assert np.array_equal(camera_in(without).at, np.eye(4))
        before = without.digest
        (folder / "hand_eye_calib.yaml").write_text(SEED_FILE)
        config = read_config(text, str(cell_file))
        assert camera_in(config).at[0, 3] == pytest.approx(0.04523)
        assert config.digest != before
        (folder / "hand_eye_calib.yaml").unlink()
