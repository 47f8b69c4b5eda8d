"""`understudy new --for`: a folder with cell, programs, tests and a workflow, green as it is."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from understudy.config import load_config
from understudy.config.files import starters
from understudy.errors import ConfigError

SECONDS = 240.0


def written(kind: str, folder: Path) -> Path:
    from understudy.cli.new import new

    place = folder / f"my {kind}"
    new(str(place), for_=kind)
    return place


def test_the_tests_of_all_new_folders_are_green(tmp_path: Path) -> None:
    for kind in starters():
        place = written(kind, tmp_path)
        assert load_config(str(place / "cell.yaml")).robots
        workflow = yaml.safe_load((place / ".github/workflows/robots.yml").read_text())
        steps = [step["run"] for step in workflow["jobs"]["robots"]["steps"] if "run" in step]
        assert steps[-2:] == ["understudy check cell.yaml", "pytest"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--import-mode=importlib", "--junitxml=report.xml", "."],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {case.get("classname") for case in ElementTree.parse(tmp_path / "report.xml").iter()}
    assert len(tested - {None}) == len(starters())


def test_the_program_of_the_cell_is_a_file_of_the_folder(tmp_path: Path) -> None:
    place = written("welding", tmp_path)
    program = load_config(str(place / "cell.yaml")).robots["g60"].program
    assert program is not None
    assert program.text == (place / "programs/seam.gcode").read_text()


def test_commands_of_the_page_for_agents_exist(tmp_path: Path) -> None:
    from understudy.registry import cli_rows

    text = (written("text", tmp_path) / "AGENTS.md").read_text()
    named = set(re.findall(r"`understudy ([\w-]+)", text))
    assert named
    assert named <= cli_rows().keys()


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    place = written("text", tmp_path)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match="this exists; choose another name"):
        written("text", tmp_path)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_wrong_kind_is_said_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'kuka'"):
        written("kukaa", tmp_path)
    assert not list(tmp_path.iterdir())
