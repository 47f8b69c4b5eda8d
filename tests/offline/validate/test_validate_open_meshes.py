"""Meshes with openings are checked at their surface only, and the report names them."""

from pathlib import Path
from typing import Any

import numpy as np
import trimesh
import yaml
from tests.space.collision.scenes import ball, tube

from understudy.app.validate import validate_text
from understudy.config.cell import CellConfig, load_config
from understudy.offline.validate.report import Report
from understudy.space.model.shapes import TriangleMesh

SWING = "G0 A5\n"
FAR = [5000, 0, 0]
NOTE = "meshes with openings have no inside; contacts with them were checked at their surface only:"


def saved(folder: Path, name: str, *meshes: TriangleMesh) -> dict[str, Any]:
    """An object far away from the arm, with the meshes in one file."""
    apart: Any = [trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False) for mesh in meshes]
    for k, mesh in enumerate(apart):
        mesh.apply_translation((float(k), 0.0, 0.0))
    whole: Any = trimesh.util.concatenate(apart)
    whole.export(folder / f"{name}.stl")
    return {"name": name, "type": "mesh", "mesh": f"{name}.stl", "scale_mm": 1000}


def cell(folder: Path, *things: dict[str, Any], **more: Any) -> CellConfig:
    placed = [{"position_mm": FAR, **thing} for thing in things]
    document = {"robots": {"r": {"kind": "arm", **more}}, "environment": {"objects": placed}}
    (folder / "cell.yaml").write_text(yaml.safe_dump(document))
    return load_config(str(folder / "cell.yaml"))


def named(report: Report) -> list[str]:
    """The meshes that the note names."""
    notes = [note for note in report.notes if note.startswith(NOTE)]
    return [name.strip() for note in notes for name in note.removeprefix(NOTE).split(",")]


def test_the_note_names_open_meshes_and_no_others(tmp_path: Path) -> None:
    pipe, stone = saved(tmp_path, "pipe", tube()), saved(tmp_path, "stone", ball())
    both = saved(tmp_path, "stone_with_pipe", ball(), tube())
    report = validate_text(SWING, cell(tmp_path, pipe, stone, both))
    assert named(report) == ["pipe", "stone_with_pipe"]
    assert report.document()["notes"] == list(report.notes)


def test_a_mesh_with_a_small_gap_is_solid_and_not_named(tmp_path: Path) -> None:
    whole = ball(fineness=3)
    gap = saved(tmp_path, "gap", TriangleMesh(whole.vertices, whole.triangles[1:]))
    assert named(validate_text(SWING, cell(tmp_path, gap))) == []


def test_held_parts_are_named_too(tmp_path: Path) -> None:
    sleeve = saved(tmp_path, "sleeve", tube(0.1, 0.02)) | {"position_mm": [0, 0, 100]}
    assert named(validate_text(SWING, cell(tmp_path, collision={"held": [sleeve]}))) == ["sleeve"]


def test_objects_that_are_not_checked_are_not_named(tmp_path: Path) -> None:
    pipe = saved(tmp_path, "pipe", tube())
    config = cell(tmp_path, pipe, collision={"check_environment": False})
    assert named(validate_text(SWING, config)) == []


def test_only_the_surface_of_the_named_mesh_is_touched(tmp_path: Path) -> None:
    """The arm stands inside a wide tube, then inside a closed one of the same size."""
    around = {"position_mm": [0, 0, 500]}
    pipe = saved(tmp_path, "pipe", tube(6.0, 3.0)) | around
    through = validate_text(SWING, cell(tmp_path, pipe))
    assert not any(each.contact for each in through.violations)
    assert named(through) == ["pipe"]
    closed = trimesh.creation.cylinder(3.0, 6.0, sections=24)
    drum = TriangleMesh(np.array(closed.vertices), np.array(closed.faces, dtype=np.int64))
    inside = validate_text(SWING, cell(tmp_path, saved(tmp_path, "drum", drum) | around))
    assert any(each.contact and "drum" in each.contact.objects for each in inside.violations)
    assert named(inside) == []
