"""The detectors of a vision process at the operator's table: shown, set, refused, set back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benches import Bench
from tests.jobs.pick_place.pick_cell import TEXT, written

from understudy.ports import state as snapshots

MARKERS: dict[str, Any] = {"kind": "markers", "size_mm": 30, "classes": {"0": "cube"}}
NETWORK: dict[str, Any] = {"kind": "onnx", "model": "parts.onnx", "classes": ["cube"]}
VISION = """    camera: {}
    vision:
      source: process
      detectors:
        - {kind: markers, size_mm: 30, classes: {0: cube}}
        - {kind: onnx, model: parts.onnx, classes: [cube]}
"""


@pytest.fixture
def seeing(tmp_path: Path, bench_of: Callable[[str], Bench]) -> Bench:
    (tmp_path / "parts.onnx").write_bytes(b"")
    text = TEXT.replace("    gripper: {}\n", f"    gripper: {{}}\n{VISION}")
    return bench_of(written(tmp_path, text))


def test_detectors_are_set_and_set_back(seeing: Bench) -> None:
    shown = seeing.do("vision_detectors")
    assert shown["detectors"] == shown["configured"] == [MARKERS, NETWORK]
    assert (shown["source"], shown["settable"], shown["changed"]) == ("process", True, False)
    other = [MARKERS | {"size_mm": 25, "upright": True}]
    answer = seeing.do("set_vision_detectors", robot="g60", detectors=other)
    assert (answer["detectors"], answer["changed"]) == (other, True)
    assert answer["configured"] == [MARKERS, NETWORK]
    assert seeing.do("vision_detectors") == answer
    for as_in_the_file in (None, [MARKERS, NETWORK]):
        seeing.do("set_vision_detectors", detectors=other)
        assert seeing.do("set_vision_detectors", detectors=as_in_the_file) == shown


def test_fields_are_those_of_the_config_classes(seeing: Bench) -> None:
    fields = {
        kind: {each["name"]: each for each in rows}
        for kind, rows in seeing.do("vision_detectors")["fields"].items()
    }
    assert {"markers", "shapes", "point_cloud", "onnx"} <= fields.keys()
    size = fields["markers"]["size_mm"]
    assert (size["type"], size["gt"], size["le"], size["default"]) == ("number", 0, 10_000, 50.0)
    assert size["allowed"] == "a number > 0 and ≤ 10000"
    assert fields["markers"]["upright"]["type"] == "switch"
    assert "DICT_4X4_50" in fields["markers"]["dictionary"]["choices"]
    assert fields["markers"]["offset_mm_deg"]["default"] == (0.0,) * 6
    assert fields["shapes"]["classes"]["required"]
    assert fields["onnx"]["model"]["file"]


WRONG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "kind": ([{"kind": "marker"}], "detectors.0.kind: unknown kind of detector (got 'marker')"),
    "no kind": ([{}], "detectors.0.kind: which kind of detector?"),
    "key": ([NETWORK, MARKERS | {"size": 3}], "detectors.1.size: unknown key"),
    "range": ([MARKERS | {"size_mm": 0}], "detectors.0.size_mm: out of range (got 0.0); allowed: "),
    "type": ([MARKERS | {"upright": "yes"}], "detectors.0.upright: this does not fit"),
    "choice": ([MARKERS | {"refinement": "edge"}], "did you mean 'edges'"),
    "inside": ([MARKERS | {"classes": {"0": 7}}], "detectors.0.classes.0"),
    "file": ([NETWORK | {"model": "/etc/passwd"}], "detectors.0.model: not a file of the conf"),
    "twice": ([NETWORK, NETWORK], "detectors.1.model: not a file of the configured detectors, or"),
    "none": ([], "nothing without detectors"),
    "many": ([MARKERS] * 33, "at most 32"),
    "large": ([MARKERS | {"classes": {str(n): "x" * 60 for n in range(600)}}], "at most 32768"),
}


def test_wrong_detectors_are_refused_with_the_text_of_the_cell_file(seeing: Bench) -> None:
    before = seeing.do("vision_detectors")
    for name, (tables, text) in WRONG.items():
        assert text in seeing.refusal("set_vision_detectors", detectors=tables), name
    assert "robot with vision" in seeing.refusal("set_vision_detectors", robot="x", detectors=None)
    assert "detectors" in seeing.refusal("set_vision_detectors", detectors="markers")
    assert seeing.do("vision_detectors") == before
    viewer = seeing.live.commands.call("set_vision_detectors", {"detectors": None}, "viewer")
    assert "needs role operator" in viewer.reason


def test_a_snapshot_keeps_detectors_and_no_files_of_its_choosing(seeing: Bench) -> None:
    other = [MARKERS | {"size_mm": 25}]
    seeing.do("set_vision_detectors", detectors=other)
    vision: Any = seeing.live.operator.robots.components["g60"]["g60.vision"]
    saved, digest = snapshots.saved(vision), vision.status(0).detectors_set
    seeing.do("set_vision_detectors", detectors=None)
    assert (digest != "", vision.status(0).detectors_set) == (True, "")
    snapshots.load(vision, saved)
    assert seeing.do("vision_detectors")["detectors"] == other


def test_vision_without_a_process_has_none_to_set(bench_of: Callable[[str], Bench]) -> None:
    cell = bench_of("pick_place")
    shown = cell.do("vision_detectors")
    assert (shown["source"], shown["settable"], shown["fields"]) == ("ground_truth", False, {})
    assert shown["detectors"][0]["kind"] == "markers"
    refused = cell.refusal("set_vision_detectors", detectors=[MARKERS])
    assert "knows where the parts are" in refused
    assert "--vision process" in refused
