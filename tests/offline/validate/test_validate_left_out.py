"""What a validation does not compare: it is named, and nothing is proven without shapes."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.space.arm_models import catalog_text

from understudy.app.validate import validate_text
from understudy.config.cell import CellConfig, load_config
from understudy.offline.validate.report import Report

MOVES = "G0 A10 V90\nG0 A20\n"
BODY = {"name": "body", "type": "cylinder", "radius_mm": 20, "height_mm": 70}
NOZZLE = {"name": "nozzle", "type": "cylinder", "radius_mm": 11, "height_mm": 65}
BLOCK = {
    "name": "block", "type": "box", "position_mm": [750, 0, 995], "dimensions_mm": [100, 100, 100],
}  # fmt: skip
Thing = dict[str, Any]


def cell(
    folder: Path, *shapes: Thing, things: tuple[Thing, ...] = (), model: str = "g60"
) -> CellConfig:
    tool = {"name": "torch", "tcp_mm_deg": [0, 0, 150, 0, 0, 0], "shapes": list(shapes)}
    arm = {"kind": "arm", "model": model, "tool": 1, "tools": {1: tool}}
    document = {"robots": {"g60": arm}, "environment": {"objects": list(things)}}
    (folder / "cell.yaml").write_text(yaml.safe_dump(document))
    return load_config(str(folder / "cell.yaml"))


def at(shape: Thing, z: float) -> Thing:
    return {**shape, "position_mm": [0, 0, z]}


def reasons(report: Report) -> dict[frozenset[str], str]:
    return {frozenset(pair.objects): str(pair.reason) for pair in report.left_out}


def without_shapes(folder: Path, links: str = r"\w+") -> str:
    """The G60 without the shapes of some links."""
    text = re.sub(
        rf'(<link name="({links})">.*?)<collision .*?</collision>\s*'
        r"(<collision_checking>.*?</collision_checking>)?",
        r"\1",
        catalog_text("g60"),
        flags=re.DOTALL,
    )
    (folder / "plain.urdf").write_text(text)
    return "plain.urdf"


def test_nothing_is_proven_for_an_arm_without_shapes(tmp_path: Path) -> None:
    report = validate_text(MOVES, cell(tmp_path, model=without_shapes(tmp_path)))
    assert [row.proven for row in report.lines] == [False, False]
    assert report.least_clearance is None
    assert any("no link of this robot has a collision shape" in note for note in report.notes)


def test_links_without_shapes_are_named(tmp_path: Path) -> None:
    report = validate_text(MOVES, cell(tmp_path, model=without_shapes(tmp_path, "wrist_1")))
    assert report.passed
    assert "links without a collision shape are not checked: wrist_1" in report.notes


def test_every_pair_that_is_not_compared_is_named_with_the_reason(tmp_path: Path) -> None:
    report = validate_text(MOVES, cell(tmp_path, at(BODY, 45)))
    found = reasons(report)
    assert found[frozenset(("base", "shoulder"))] == "joined by a joint"
    assert found[frozenset(("base", "upper_arm"))] == "overlap in every configuration"
    assert found[frozenset(("shoulder", "forearm"))] == "cannot touch in any configuration"
    assert found[frozenset(("flange", "torch.body"))] == "fixed to each other"
    assert found[frozenset(("wrist_2", "torch.body"))] == "cannot touch in any configuration"
    document = report.document()["pairs_not_checked"]
    assert {"objects": ["base", "shoulder"], "reason": "joined by a joint"} in document
    assert any(note.startswith("overlap in every configuration: base - upper_arm")
               for note in report.left_out_notes())  # fmt: skip


@pytest.mark.parametrize(
    "shapes",
    [
        (at(BODY, -35), at(NOZZLE, -102)),
        ({"name": "rod", "type": "capsule", "radius_mm": 15, "height_mm": 300,
          "position_mm": [0, 0, -165]},),
        ({"name": "box", "type": "box", "dimensions_mm": [3000, 3000, 3000]},),
    ],
    ids=["wrong sign", "long, wrong sign", "metres for millimetres"],
)  # fmt: skip
def test_a_tool_inside_the_arm_is_a_violation(tmp_path: Path, shapes: tuple[Thing, ...]) -> None:
    report = validate_text(MOVES, cell(tmp_path, *shapes))
    assert not report.passed
    first = report.violations[0]
    assert (first.line, first.kind, first.last) == (1, "self_collision", 2)
    assert first.contact is not None
    assert first.contact.objects[1].startswith("torch.")


def test_a_tool_that_overlaps_the_wrist_where_it_is_mounted_is_named(tmp_path: Path) -> None:
    plate = {"name": "plate", "type": "cylinder", "radius_mm": 60, "height_mm": 60}
    report = validate_text(MOVES, cell(tmp_path, at(plate, 10)))
    assert report.passed
    assert (
        reasons(report)[frozenset(("wrist_2", "torch.plate"))] == "overlap in every configuration"
    )


def test_a_bent_tool_that_can_reach_the_last_link_but_one_is_compared_with_it(
    tmp_path: Path,
) -> None:
    """A hook beside the flange that reaches back: free, but not left out."""
    hook = {"name": "hook", "type": "box", "dimensions_mm": [20, 20, 60],
            "position_mm": [90, 0, -60]}  # fmt: skip
    report = validate_text(MOVES, cell(tmp_path, hook))
    assert frozenset(("wrist_1", "torch.hook")) not in reasons(report)


@pytest.mark.parametrize("program", ["G4 P1\n", "M7\nG0 A10\n", "G91\nG0 A0\n", "G0 A90\n"])
def test_a_start_in_contact_is_a_violation_of_the_first_line(tmp_path: Path, program: str) -> None:
    rod = {"name": "rod", "type": "cylinder", "radius_mm": 20, "height_mm": 150}
    report = validate_text(program, cell(tmp_path, at(rod, 75), things=(BLOCK,)))
    (found,) = report.violations
    assert (found.line, found.kind, found.time_s) == (1, "collision", 0.0)
    assert not report.lines[0].proven
