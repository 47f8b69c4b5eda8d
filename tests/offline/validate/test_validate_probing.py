"""Probing with a tool whose shape reaches its tip: the touch and the retract are meant contacts."""

from typing import Any

import pytest
import yaml

from understudy.app.validate import Options, validate_text
from understudy.config.cell import CellConfig, read_config
from understudy.units import MM

PROBING = "G21 G90 G94\nG0 X450 Y0 Z400 A180 B0 C0\nG38.2 Z300 F3000\n"
"""Onto a fixture whose top is at 344 mm."""


def cell(length_mm: float = 150.0, **more: Any) -> CellConfig:
    """A G60 with a stylus from the flange to ``length_mm``; its tip is at 150 mm."""
    needle = {
        "name": "needle", "type": "capsule", "radius_mm": 1, "height_mm": length_mm - 2,
        "position_mm": [0, 0, length_mm / 2],
    }  # fmt: skip
    tool = {"name": "probe", "tcp_mm_deg": [0, 0, 150, 0, 0, 0], "shapes": [needle]}
    fixture = {
        "name": "fixture", "type": "box", "position_mm": [450, 0, 197],
        "dimensions_mm": [80, 240, 294],
    }  # fmt: skip
    arm = {"kind": "arm", "model": "g60", "tool": 1, "tools": {1: tool}}
    document = {"robots": {"g60": arm}, "environment": {"objects": [fixture]}, **more}
    return read_config(yaml.safe_dump(document), "probing.yaml")


@pytest.mark.parametrize(
    "after",
    [
        "G91\nG1 Z50 F3000\n",
        "G1 Z400 F3000\nG1 X500 F3000\n",
        "G91\nG1 Z0.2 F300\nG1 Z0.2 F300\nG1 Z30 F3000\n",
        "G38.5 Z400 F600\nG1 Z400 F3000\n",
        "G1 Z360 F3000\nG38.2 Z300 F600\nG1 Z400 F3000\n",
    ],
)
@pytest.mark.parametrize("length_mm", [149.9, 150.0, 152.0])
def test_a_touch_and_the_retract_from_it_are_no_violations(after: str, length_mm: float) -> None:
    report = validate_text(PROBING + after, cell(length_mm))
    assert report.violations == ()
    assert report.warnings == ()
    assert all(row.proven for row in report.lines)


def test_the_retract_may_end_below_the_requested_clearance() -> None:
    report = validate_text(PROBING + "G1 Z400 F3000\n", cell(), options=Options(clearance_mm=5.0))
    assert report.violations == ()


def test_a_move_deeper_into_the_object_is_a_violation() -> None:
    (found,) = validate_text(PROBING + "G91\nG1 Z-10 F300\n", cell()).violations
    assert (found.line, found.kind) == (5, "collision")
    assert found.contact is not None
    assert found.contact.depth > 5 * MM


def test_a_contact_after_the_retract_is_a_violation() -> None:
    text = PROBING + "G1 Z360 F3000\nG1 X480 F3000\nG1 Z330 F3000\n"
    (found,) = validate_text(text, cell()).violations
    assert (found.line, found.kind) == (6, "collision")


def test_a_return_after_a_short_retract_is_a_violation() -> None:
    text = PROBING + "G1 Z345.5 F3000\nG1 Z343 F3000\n"
    (found,) = validate_text(text, cell()).violations
    assert (found.line, found.kind) == (5, "collision")


def test_a_tool_that_reaches_far_beyond_its_tip_is_a_violation() -> None:
    found = validate_text(PROBING + "G1 Z400 F3000\n", cell(180.0)).violations
    assert found[0].line == 3
    assert found[0].kind == "collision"
