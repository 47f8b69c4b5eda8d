"""The hand-eye calibration file: written with all digits, read again."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from msgspec import structs, to_builtins
from tests.jobs.pick_place.test_pickplace_file import CALIBRATION
from tests.sight.test_calibrator import exact_calibrator

from understudy.errors import ConfigError, Refused
from understudy.sight.calibration_file import Intrinsics, calibration_of, calibration_text
from understudy.sight.calibrator import CalibrationResult
from understudy.sight.lens import Lens, Mount
from understudy.vision.command_line import calibration_at, with_intrinsics
from understudy.vision.config import VisionConfig, camera_of, read_calibration
from understudy.vision.process import setup_of_camera

LENS = Lens(640, 480, 600.1, 602.3, 322.7, 238.9, (-0.12, 0.08, 0.001, -0.0005, 0.03))


def result_of(seed: int, mount: Mount) -> CalibrationResult:
    calibrator, _ = exact_calibrator(seed, mount)
    calibrator.lens = LENS
    found = calibrator.compute()
    assert not isinstance(found, Refused)
    return found


@pytest.mark.parametrize("mount", ["eye_in_hand", "eye_to_hand"])
def test_a_file_that_was_written_gives_the_same_numbers(mount: Mount) -> None:
    for seed in range(3):
        result = result_of(seed, mount)
        written = calibration_of(result, "2026-02-03")
        text = calibration_text(written)
        assert read_calibration(text, "calib.yaml") == written  # bit for bit
        assert calibration_text(read_calibration(text, "calib.yaml")) == text
        assert (f"T_{'base' if mount == 'eye_to_hand' else 'flange'}_to_camera") in text
        camera = camera_of(VisionConfig(mount=mount, width_px=640, height_px=480), written)
        assert camera.lens == LENS
        np.testing.assert_allclose(camera.at, result.camera, atol=1e-15)


def test_yaml_1_1_reads_the_same_numbers() -> None:
    """PyYAML takes 1e-05 and 1e5 for texts."""
    small = (1e-05, -1e-07, 2.5e-300, 0.0, 1e5)
    lens = Lens(640, 480, 1e5, 602.3, 1e-05, -1e-05, small)
    found = calibration_of(result_of(1, "eye_in_hand"), "2026-02-03")
    written = structs.replace(
        found,
        camera_intrinsics=Intrinsics.of(lens),
        reprojection_error_mm=1e-05,
        reprojection_error_px=2e-06,
        held_out_error_mm=3e-07,
        covariance_mm_deg=(small, (1e16, 1e-22, 1.2345678901234567e-08)),
        residuals_mm=small,
    )
    text = calibration_text(written)
    plain = to_builtins(written)
    read_by_others = yaml.safe_load(text)["hand_eye_calibration"]
    for key, value in read_by_others.items():
        assert json.dumps(value) == json.dumps(plain[key]), key
    assert read_calibration(text, "calib.yaml") == written


def test_the_file_of_the_design_document_is_read_and_written_again() -> None:
    found = read_calibration(CALIBRATION, "hand_eye_calib.yaml")
    assert found.mount is None
    assert found.num_poses_used == 15
    assert read_calibration(calibration_text(found), "hand_eye_calib.yaml") == found
    assert camera_of(VisionConfig(), found).lens.fx == 1200.5


def test_a_file_of_another_mount_or_size_is_refused() -> None:
    written = calibration_of(result_of(1, "eye_to_hand"), "")
    with pytest.raises(ConfigError, match="mount: eye_to_hand"):
        camera_of(VisionConfig(width_px=640, height_px=480), written)
    with pytest.raises(ConfigError, match="640 × 480 pixels"):
        camera_of(VisionConfig(mount="eye_to_hand"), written)


def test_a_file_with_intrinsics_only_does_not_say_where_the_camera_is(tmp_path: Path) -> None:
    """Its matrix is the identity: a robot would pick beside the parts."""
    file = tmp_path / "lens.yaml"
    file.write_text(with_intrinsics(calibration_at(file, "2026-02-03"), LENS))
    written = read_calibration(file.read_text(), "lens.yaml")
    with pytest.raises(ConfigError, match="intrinsics only"):
        camera_of(VisionConfig(width_px=640, height_px=480), written)
    rough = VisionConfig(width_px=640, height_px=480, camera_mm_deg=(60, 0, 40, 0, 0, 90))
    assert camera_of(rough, written).at[0, 3] == pytest.approx(0.06)
    eye = setup_of_camera("opencv:0").with_calibration(file).eye
    assert (eye.place, eye.lens) == (None, LENS)


@pytest.mark.parametrize(
    ("was", "wrong", "key"),
    [
        ("45.23]", "1e300]", "matrix"),
        ("45.23]", ".nan]", "matrix"),
        ("fx: 1200.5", "fx: 1e-300", "fx"),
        ("cx: 640.0", "cx: 1e300", "cx"),
        ("distortion: [-0.12", "distortion: [1e300", "distortion"),
    ],
)
def test_numbers_of_no_camera_are_refused_with_their_line(was: str, wrong: str, key: str) -> None:
    assert was in CALIBRATION
    with pytest.raises(ConfigError, match=rf"calib.yaml:\d+: .*{key}"):
        read_calibration(CALIBRATION.replace(was, wrong, 1), "calib.yaml")
