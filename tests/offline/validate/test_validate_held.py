"""Parts that the robot holds are checked with it; lines on which very many parts touch."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from understudy.app.validate import Options, validate_text
from understudy.config.cell import CellConfig, load_config
from understudy.errors import ConfigError

ROD: dict[str, Any] = {
    "name": "rod", "type": "cylinder", "radius_mm": 15, "height_mm": 300,
    "position_mm": [0, 0, 160],
}  # fmt: skip
POST: dict[str, Any] = {
    "name": "post", "type": "cylinder", "radius_mm": 20, "height_mm": 400,
    "position_mm": [620, 540, 1000],
}  # fmt: skip
SWING = "G0 A60\n"


def cell(
    folder: Path, kind: str = "arm", things: tuple[Any, ...] = (POST,), **more: Any
) -> CellConfig:
    document = {"robots": {"r": {"kind": kind, **more}}, "environment": {"objects": list(things)}}
    (folder / "cell.yaml").write_text(yaml.safe_dump(document))
    return load_config(str(folder / "cell.yaml"))


def test_a_held_part_of_the_cell_file_touches(tmp_path: Path) -> None:
    assert validate_text(SWING, cell(tmp_path)).passed
    (found,) = validate_text(SWING, cell(tmp_path, collision={"held": [ROD]})).violations
    assert found.contact is not None
    assert found.contact.objects == ("rod", "post")


def test_a_held_part_can_be_given_to_the_validation(tmp_path: Path) -> None:
    file = tmp_path / "held.yaml"
    file.write_text(yaml.safe_dump({"objects": [ROD]}))
    report = validate_text(SWING, cell(tmp_path), options=Options(held=str(file)))
    assert [each.contact.objects for each in report.violations if each.contact] == [("rod", "post")]


def test_a_kuka_holds_parts_too(tmp_path: Path) -> None:
    big = {
        "name": "plate",
        "type": "box",
        "dimensions_mm": [600, 600, 20],
        "position_mm": [0, 0, 30],
    }
    text = "G1 X500 Y0 Z500 A0 B90 C0 F100\n"
    floor = {
        "name": "floor",
        "type": "box",
        "position_mm": [700, 0, 300],
        "dimensions_mm": [600, 600, 20],
    }
    assert not any(
        each.contact for each in validate_text(text, cell(tmp_path, "kuka", (floor,))).violations
    )
    config = cell(tmp_path, "kuka", (floor,), collision={"held": [big]})
    report = validate_text(text, config)
    assert any("plate" in each.contact.objects for each in report.violations if each.contact)


def test_a_robot_without_a_body_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "held.yaml"
    file.write_text(yaml.safe_dump({"objects": [ROD]}))
    with pytest.raises(ConfigError, match="no body that could hold"):
        validate_text("HOME\n", cell(tmp_path, "text_robot"), options=Options(held=str(file)))


def test_a_note_counts_the_touching_pairs_beyond_the_reported_ones(tmp_path: Path) -> None:
    posts = tuple(
        {**POST, "name": f"post{k}", "radius_mm": 150, "position_mm": [620, 400 + 20 * k, 1000]}
        for k in range(6)
    )
    report = validate_text(SWING, cell(tmp_path, "arm", posts, collision={"held": [ROD]}))
    shown = sum(1 + len(each.also) for each in report.violations if each.contact)
    assert shown == 12
    (note,) = [note for note in report.notes if note.startswith("more than 12 pairs")]
    assert int(note.rstrip(")").rpartition(" ")[2]) > 12
