"""A snapshot belongs to a cell with the contents of all its files."""

from importlib import resources
from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError

CELL = """
robots: {arm: {kind: arm, model: mine.urdf}}
environment:
  objects: [{name: rock, type: convex, mesh: rock.stl, position_mm: [0, 3000, 0]}]
  fixtures: [{name: table, urdf: table.urdf, position_mm: [0, -3000, 0]}]
"""
G60 = resources.files("understudy").joinpath("catalog/robots/g60.urdf").read_text()
TRIANGLE = """solid rock
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
facet normal 1 0 0
outer loop
vertex 0 0 0
vertex 0 1 0
vertex 0 0 1
endloop
endfacet
endsolid
"""
TABLE = """<robot name="table"><link name="top"><collision><geometry>
<mesh filename="top.stl"/></geometry></collision></link></robot>"""
CHANGES = {
    "mine.urdf": ("0.4", "0.41"),
    "rock.stl": ("vertex 0 0 1", "vertex 0 0 2"),
    "table.urdf": ('name="top"', 'name="plate"'),
    "top.stl": ("vertex 0 0 1", "vertex 0 0 2"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"cell.yaml": CELL, "mine.urdf": G60, "rock.stl": TRIANGLE, "table.urdf": TABLE}
    for name, text in {**files, "top.stl": TRIANGLE}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("file", CHANGES)
def test_a_snapshot_is_not_restored_onto_changed_files(folder: Path, file: str) -> None:
    name = str(folder / "cell.yaml")
    snapshot = build_cell(load_config(name)).snapshot()
    build_cell(load_config(name)).restore(snapshot)
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(*CHANGES[file]))
    assert (folder / file).read_text() != text
    with pytest.raises(ConfigError, match="a model or mesh that it names has changed since"):
        build_cell(load_config(name)).restore(snapshot)


def test_a_running_cell_keeps_its_digest(folder: Path) -> None:
    config = load_config(str(folder / "cell.yaml"))
    digest = config.digest
    (folder / "mine.urdf").write_text(G60.replace("0.4", "0.41"))
    assert config.digest == digest != load_config(str(folder / "cell.yaml")).digest


def test_a_missing_file_is_reported_by_the_part_that_reads_it(folder: Path) -> None:
    (folder / "rock.stl").unlink()
    config = load_config(str(folder / "cell.yaml"))
    assert config.digest
    with pytest.raises(ConfigError, match=r"rock\.stl"):
        build_cell(config)
