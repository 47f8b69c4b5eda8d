"""Validation warns of an arc that burns far from everything."""

import math
from pathlib import Path

import numpy as np
import pytest

from understudy.app.validate import validate_text
from understudy.config import load_config
from understudy.config.cell import CellConfig
from understudy.space.collision.detector import NearestObject
from understudy.space.model.robot import Box
from understudy.space.model.shapes import as_object
from understudy.space.transform import translation

SHIPPED = Path(__file__).parents[3] / "src/understudy/catalog"
SEAM = (SHIPPED / "programs/seam.gcode").read_text()
FAR = SEAM.replace("Z350", "Z430")


def welding(folder: Path, **changes: str) -> CellConfig:
    text = (SHIPPED / "cells/g60_welding.yaml").read_text()
    for old, new in changes.items():
        text = text.replace(f"    {old}:", f"    {new}\n    {old}:", 1)
    (folder / "cell.yaml").write_text(text)
    return load_config(str(folder / "cell.yaml"))


def test_a_seam_on_the_workpiece_has_no_warning(tmp_path: Path) -> None:
    report = validate_text(SEAM, welding(tmp_path))
    assert report.passed
    assert not [each for each in report.warnings if each.kind == "process"]


def test_an_arc_far_from_everything_is_a_warning_with_its_distance(tmp_path: Path) -> None:
    report = validate_text(FAR, welding(tmp_path))
    (found,) = [each for each in report.warnings if each.kind == "process"]
    assert report.passed, "a warning"
    assert found.line == 11
    assert "the arc burns 86 mm from the nearest object" in found.message


@pytest.mark.parametrize(("key", "warns"), [("arc_within_mm: 90", 0), ("arc_within_mm: 0", 0),
                                            ("arc_within_mm: 5", 1)])  # fmt: skip
def test_the_distance_is_a_key(key: str, warns: int, tmp_path: Path) -> None:
    text = SEAM if warns else FAR
    report = validate_text(text, welding(tmp_path, tool=key))
    assert len([each for each in report.warnings if each.kind == "process"]) == warns


def test_the_cell_may_stand_anywhere(tmp_path: Path) -> None:
    """The base of the arm is not at the origin; programs have the coordinates of the cell."""
    cell = welding(tmp_path, tool="base_mm_deg: [0, 0, 40, 0, 0, 0]")
    (found,) = [each for each in validate_text(FAR, cell).warnings if each.kind == "process"]
    assert "86 mm" in found.message


def test_the_distance_of_points_to_objects() -> None:
    boxes = [
        as_object(name, Box((0.2, 0.2, 0.2)), translation(x, 0.0, 0.0))
        for name, x in (("a", 0.0), ("b", 1.0))
    ]
    nearest = NearestObject(boxes)
    assert nearest.distance(np.array([0.0, 0.0, 0.3])) == pytest.approx(0.2)
    assert nearest.distance(np.array([0.7, 0.0, 0.0])) == pytest.approx(0.2)
    assert nearest.distance(np.array([1.2, 0.2, 0.0])) == pytest.approx(math.hypot(0.1, 0.1))
    assert nearest.distance(np.array([0.0, 0.0, 0.0])) < 0.0
    assert NearestObject([]).distance(np.zeros(3)) == math.inf
