"""Files of the user take precedence over shipped files, which are found by name."""

from importlib import resources
from pathlib import Path

import pytest

from understudy.config.files import (
    find_program,
    found_beside,
    read_model,
    read_program,
    shipped_cells,
    shipped_programs,
    shipped_robot_files,
    shipped_robots,
)
from understudy.errors import ConfigError


def test_what_shows_one_capability_is_in_the_catalog_of_its_folder() -> None:
    places = {name: str(file) for name, file in shipped_cells().items()}
    assert places["fleet"].endswith("understudy/robots/mobile/catalog/cells/fleet.yaml")
    assert places["default"].endswith("understudy/catalog/cells/default.yaml")
    assert str(shipped_robot_files()["amr"]).endswith("robots/mobile/catalog/robots/amr.json")


def test_a_shipped_name_is_in_one_catalog_only() -> None:
    files = Path(str(resources.files("understudy"))).glob("**/catalog/*/*.*")
    shown = [file for file in files if file.parent.name in ("cells", "robots", "programs")]
    names = [f"{file.parent.name}/{file.name}" for file in shown if file.name != "index.yaml"]
    assert sorted(names) == sorted(set(names))
    shipped = (shipped_cells(), shipped_robots(), shipped_robot_files(), shipped_programs())
    assert len(names) == sum(map(len, shipped))


@pytest.mark.parametrize("name", ["seam", "seam.gcode"])
def test_a_shipped_program_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_program(Path(name)) == shipped_programs()["seam"].read_bytes()


def test_a_file_of_the_user_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seam.gcode").write_text("G28\n")
    assert read_program(Path("seam.gcode")) == b"G28\n"


def test_a_cell_file_names_a_program_beside_it_or_a_shipped_one(tmp_path: Path) -> None:
    cell = str(tmp_path / "cell.yaml")
    for name in ("seam", "seam.gcode"):
        found = find_program(name, beside=cell)
        assert (found.name, found.text) == ("seam.gcode", shipped_programs()["seam"].read_text())
    (tmp_path / "seam.gcode").write_text("G28\n")
    assert find_program("seam.gcode", beside=cell) == ("seam.gcode", "G28\n")
    with pytest.raises(ConfigError, match="did you mean 'seam'"):
        find_program("saem", beside=cell)
    with pytest.raises(ConfigError, match="cannot be read"):
        find_program("nothing.gcode", beside=cell)


@pytest.mark.parametrize("name", ["nothing.gcode", ".", "a\0b"])
def test_an_unreadable_file_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_program(Path(name))


def test_a_model_name_that_no_file_can_have_is_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_model("a\0b.urdf", beside="")


def test_a_relative_name_is_searched_beside_the_cell_file_first(tmp_path: Path) -> None:
    folder = tmp_path / "cells"
    folder.mkdir()
    cell = str(folder / "cell.yaml")
    with pytest.raises(ConfigError) as reported:
        found_beside(cell, "around.yaml")
    for place in (folder, tmp_path):
        assert str(place / "around.yaml") in str(reported.value)
    for place in (tmp_path, folder):
        (place / "around.yaml").touch()
        assert found_beside(cell, "around.yaml").samefile(place / "around.yaml")
