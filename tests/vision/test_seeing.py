"""Cells that could not see are refused when they are loaded, at the key that is wrong."""

import subprocess
import sys
from pathlib import Path

import cv2
import pytest
from tests.vision.camera_in import camera_in

from understudy.cli.check import check
from understudy.config import load_config
from understudy.config.include import read_environment, read_included
from understudy.errors import ConfigError
from understudy.sight.markers import DICTIONARIES as IN_OPENCV
from understudy.sight.markers import dictionary, paper_size
from understudy.space.model.appearance import DICTIONARIES, MarkerConfig, UpperFace

CELL = """\
robots:
  g60:
    kind: arm
    model: g60
    camera: {}
    vision:
      source: process
"""
PARTS = """\
parts:
  - {name: other, dimensions_mm: [40, 40, 40], position_mm: [400, 0, 20]}
  - name: cube
    dimensions_mm: [60, 60, 60]
    position_mm: [400, 200, 30]
    """
OBJECT = """\
environment:
  objects:
    - {name: table, type: box, dimensions_mm: [500, 500, 50]}
    - name: plate
      type: box
      dimensions_mm: [150, 100, 5]
      """
TOOL = """\
    tools:
      1:
        shapes:
          - {name: plate, type: cylinder, radius_mm: 30, height_mm: 5,
             """
LENS_ONLY = """\
hand_eye_calibration:
  method: intrinsics only
  matrix: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
  camera_intrinsics: {fx: 1200, fy: 1200, cx: 320, cy: 240, width: 640, height: 480}
"""


def problem_of(tmp_path: Path, text: str) -> str:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(str(file))
    return str(caught.value).removeprefix(f"{tmp_path}/")


def vision(keys: str) -> str:
    return f"{CELL}      {keys}\n"


def target(keys: str) -> str:
    return f"{CELL}    hand_eye:\n      target: {keys}\n"


BLIND = {
    "detector kind": (
        vision("detectors: [{kind: foo}]"),
        "c.yaml:8: robots.g60.vision.detectors.0.kind: unknown kind of detector (got 'foo'); "
        "allowed: markers, ",
    ),
    "detector key": (
        vision("detectors: [{kind: markers, dictionary: DICT_9X9_50}]"),
        "c.yaml:8: robots.g60.vision.detectors.0.dictionary: ",
    ),
    "no detectors": (
        vision("detectors: []"),
        "c.yaml:8: robots.g60.vision.detectors: the vision process finds nothing without",
    ),
    "network": (
        vision("detectors: [{kind: onnx, model: parts.onnx, classes: [a]}]"),
        "c.yaml:8: robots.g60.vision.detectors.0.model: there is no such file (got 'parts.onnx')",
    ),
    "camera kind": (
        vision('camera: "foo:1"'),
        "c.yaml:8: robots.g60.vision.camera: unknown kind of camera (got 'foo'); allowed: files, ",
    ),
    "camera kind of a calibration": (
        vision('camera: "foo:1"').replace("process", "ground_truth") + "    hand_eye: {}\n",
        "c.yaml:8: robots.g60.vision.camera: unknown kind of camera",
    ),
    "camera address": (
        vision("camera: webcam"),
        "c.yaml:8: robots.g60.vision.camera: not the address of a camera (got 'webcam')",
    ),
    "size of the virtual camera": (
        vision("width_px: 640\n      height_px: 20000"),
        "c.yaml:9: robots.g60.vision.height_px: too large for the virtual camera, which takes its "
        "size from here (got 20000); allowed: 16 … 4096",
    ),
    "size of a square": (
        target("{square_mm: 1.0e-60}"),
        "c.yaml:9: robots.g60.hand_eye.target.square_mm: out of range",
    ),
    "board": (
        target("{type: charuco, columns: 40, rows: 40}"),
        "c.yaml:9: robots.g60.hand_eye.target.columns: DICT_4X4_50 has 50 markers and the board "
        "needs 800 (got '40 × 40 squares'); allowed: at most 100 squares",
    ),
    "dictionary": (
        target("{type: charuco, dictionary: DICT_4X4_500}"),
        "c.yaml:9: robots.g60.hand_eye.target.dictionary: unknown dictionary of markers (got "
        "'DICT_4X4_500'); allowed: DICT_4X4_50, ",
    ),
    "marker": (
        target("{type: marker, id: 77}"),
        "c.yaml:9: robots.g60.hand_eye.target.id: DICT_4X4_50 has no such marker (got 77); "
        "allowed: 0 … 49",
    ),
    "chess board": (
        target("{type: chessboard, columns: 8, rows: 6}"),
        "c.yaml:9: robots.g60.hand_eye.target.columns: a chess board of 8 × 6 squares",
    ),
}


@pytest.mark.parametrize(("text", "message"), BLIND.values(), ids=BLIND.keys())
def test_a_cell_that_cannot_see_is_refused(text: str, message: str, tmp_path: Path) -> None:
    assert problem_of(tmp_path, text).startswith(message)


PATTERNS = {
    "large marker": (
        CELL + PARTS + "marker: {id: 7, size_mm: 100}",
        "c.yaml:13: parts.1.marker.size_mm: the marker with its white border has "
        "133.333 × 133.333 mm, and the upper face of the object is 60 × 60 mm (got 100.0); "
        "allowed: up to 45, or a larger object",
    ),
    "no such marker": (
        CELL + PARTS + "marker: {id: 77, size_mm: 30}",
        "c.yaml:13: parts.1.marker.id: DICT_4X4_50 has no such marker (got 77); allowed: 0 … 49",
    ),
    "no such dictionary": (
        CELL + PARTS + "marker: {dictionary: DICT_9X9_50}",
        "c.yaml:13: parts.1.marker.dictionary: unknown dictionary of markers (got 'DICT_9X9_50')",
    ),
    "large board": (
        CELL + OBJECT + "board: {columns: 7, rows: 5, square_mm: 30}",
        "c.yaml:14: environment.objects.1.board.square_mm: the board has 210 × 150 mm, and the "
        "upper face of the object is 150 × 100 mm (got 30.0)",
    ),
    "too few markers": (
        CELL + OBJECT + "board: {columns: 40, rows: 40, square_mm: 1}",
        "c.yaml:14: environment.objects.1.board.columns: DICT_4X4_50 has 50 markers",
    ),
    "tool": (
        CELL + TOOL + "marker: {size_mm: 32}}",
        "c.yaml:12: robots.g60.tools.1.shapes.0.marker.size_mm: the marker with its white border "
        "has 42.6667 × 42.6667 mm, and the upper face of the object is a circle of 60 mm (got "
        "32.0); allowed: up to 31.81",
    ),
}


@pytest.mark.parametrize(("text", "message"), PATTERNS.values(), ids=PATTERNS.keys())
def test_a_wrong_pattern_is_named_at_its_object(text: str, message: str, tmp_path: Path) -> None:
    assert problem_of(tmp_path, text).startswith(message)


def test_patterns_that_fit_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    for text in (
        CELL + PARTS + "marker: {id: 49, size_mm: 45}",
        CELL + OBJECT + "board: {columns: 6, rows: 4, square_mm: 25}",
        CELL + TOOL + "marker: {size_mm: 31.81}}",
        CELL,
        CELL + "    hand_eye: {}\n",
        vision("width_px: 5472\n      height_px: 3648").replace("{}", "{width_px: 1368}"),
        vision("width_px: 5472").replace("    camera: {}\n", ""),
    ):
        file.write_text(text)
        assert load_config(str(file)).robots


def test_an_included_environment_is_named_by_its_own_lines() -> None:
    text = "objects:\n- name: plate\n  type: sphere\n  radius_mm: 5\n  marker: {}\n"
    with pytest.raises(ConfigError, match=r"^cell\.yaml:5: objects\.0\.marker\.size_mm: .*circle"):
        read_environment(text, "cell.yaml")


def test_a_pickplace_file_is_checked_too() -> None:
    text = "vision:\n  source: process\n  detectors: [{kind: foo}]\n"
    with pytest.raises(ConfigError, match=r"^p\.yaml:3: vision\.detectors\.0\.kind: unknown"):
        read_included(text, "p.yaml")


def test_a_network_beside_the_cell_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "parts.onnx").write_bytes(b"")
    file = tmp_path / "c.yaml"
    file.write_text(vision("detectors: [{kind: onnx, model: parts.onnx, classes: [a]}]"))
    assert load_config(str(file)).robots


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "width_px: 640\n      height_px: 480",
            "c.yaml:8: robots.g60.vision.hand_eye_calibration_file: this calibration has "
            "intrinsics only",
        ),
        (
            "camera_mm_deg: [0, 0, 0, 0, 0, 0]\n      width_px: 320",
            "c.yaml:10: robots.g60.vision.width_px: this calibration is one of pictures of 640 × "
            "480 pixels (got '320 × 960'); allowed: 640 × 480",
        ),
        (
            "camera_mm_deg: [0, 0, 0, 0, 0, 0]\n      width_px: 640\n      height_px: 400",
            "c.yaml:11: robots.g60.vision.height_px: this calibration is one of pictures",
        ),
    ],
)
def test_a_calibration_file_that_does_not_fit_is_named_in_vision(
    keys: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "calib.yaml").write_text(LENS_ONLY)
    text = vision(f"hand_eye_calibration_file: calib.yaml\n      {keys}")
    assert problem_of(tmp_path, text).startswith(message)


def test_a_camera_that_is_not_calibrated_yet_is_a_warning_with_the_next_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(vision("hand_eye_calibration_file: calib.yaml\n      mount: eye_to_hand"))
    camera_in(load_config(str(file)))
    assert "taken to be at the origin of the cell" in caplog.text
    command = f"`understudy calibrate hand-eye --cell {file} --out {tmp_path}/calib.yaml`"
    assert command in caplog.text


def test_a_missing_calibration_file_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The job and the virtual camera both ask for the camera of the section `vision`."""
    file = tmp_path / "c.yaml"
    file.write_text(vision("hand_eye_calibration_file: calib.yaml") + "    hand_eye: {}\n")
    check(str(file))
    assert caplog.text.count("there is no file calib.yaml") == 1


def test_an_empty_calibration_file_has_no_line_of_the_cell_file(tmp_path: Path) -> None:
    (tmp_path / "calib.yaml").write_text("")
    text = problem_of(tmp_path, vision("hand_eye_calibration_file: calib.yaml"))
    assert text.startswith("calib.yaml: robots.g60.vision.hand_eye_calibration_file.")
    assert "this key is missing" in text


def test_the_dictionaries_are_those_of_opencv() -> None:
    assert set(IN_OPENCV) <= set(DICTIONARIES)
    for name in IN_OPENCV:
        book = dictionary(name)
        assert DICTIONARIES[name] == (book.markerSize, len(book.bytesList)), cv2.__version__


def test_the_paper_of_a_marker_is_as_it_is_drawn() -> None:
    for name in IN_OPENCV:
        side = paper_size(name, 30.0)
        marker = MarkerConfig(name, 0, 30.0)
        marker.check(UpperFace(side, side))
        with pytest.raises(ConfigError, match="white border"):
            marker.check(UpperFace(side, side - 0.001))


def test_opencv_is_not_loaded_to_read_targets_and_markers(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(target("{type: charuco}") + PARTS + "marker: {id: 1, size_mm: 30}")
    code = (
        "import sys; from understudy.config import load_config; load_config(sys.argv[1]); "
        "sys.exit('cv2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True, timeout=120)
