"""`understudy fleet` with the robots of a running cell, as docs/robots/mobile.md shows it."""

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.robots.mobile.command_line.scripted_fleet import PATIENCE
from typer.testing import CliRunner, Result

from understudy import cli
from understudy.app.ready_file import ReadyFile
from understudy.errors import ConfigError
from understudy.robots.mobile import command_line as fleet_commands
from understudy.robots.mobile.stand_in import FleetStandIn

PAGE = Path(__file__).parents[4] / "docs/robots/mobile.md"


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["fleet", *words])


@pytest.fixture
def cell(fleet: FleetStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetStandIn:
    """Found by its ready file; a slow machine has time."""
    monkeypatch.setattr(fleet_commands, "ANSWER_S", PATIENCE)
    monkeypatch.setattr(fleet_commands, "ONCE_S", PATIENCE)
    monkeypatch.chdir(tmp_path)
    ReadyFile(tmp_path / "ready.json", "").write("fleet", 10.0, dict(fleet.cell.endpoints))
    return fleet


def first_use() -> list[list[str]]:
    """The commands of the page that end by themselves."""
    shell = re.findall(r"## First use\n\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    commands = [line.split("#")[0].split(";") for line in shell.splitlines()]
    words = [shlex.split(command)[1:] for line in commands for command in line if command.strip()]
    return [each[1:] for each in words if each[0] == "fleet" and each[1] != "watch"]


def test_the_first_use_is_as_the_page_says(cell: FleetStandIn) -> None:
    commands = first_use()
    assert len(commands) >= 6
    for words in commands:
        where = [] if words[0] == "schema" else ["--ready-file", "ready.json"]
        done = run(*words, *where)
        assert done.exit_code == 0, f"{words}: {done.output}"
    state = cell.robot("robot-2").state["pose"]
    assert (state["x"], state["y"]) == pytest.approx((5.0, 7.25), abs=0.05)


def test_the_table_shows_the_robots_of_the_cell(cell: FleetStandIn) -> None:
    cell.robot("robot-4").command("MOVE_VELOCITY", linear=0.1)
    done = run("watch", "--once", "--json", "--ready-file", "ready.json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert tuple(row["robotId"] for row in rows) == cell.robots
    assert {row["state"]["status"] for row in rows} == {"RUNNING"}


def test_a_robot_in_front_of_a_wall(cell: FleetStandIn) -> None:
    done = run("send", "robot-5", "MOVE_TO_POSE", "x=9.2", "y=-0.1", "--ready-file", "ready.json")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "robot-5: FAILED SAFETY_STOP"


def test_a_mission_is_carried_out_line_by_line(cell: FleetStandIn, tmp_path: Path) -> None:
    file = tmp_path / "tour.mission"
    file.write_text("MOVE x=2 y=1.6\nWAIT seconds=0.1\nMOVE_TO_POINT x=2 y=2.2 # by a route\n")
    done = run("run", "robot-1", str(file), "--ready-file", "ready.json")
    assert done.exit_code == 0, done.output
    said = done.stdout.splitlines()
    assert said.count("robot-1: done") == 2
    assert "robot-1: step 2 of 2" in said
    assert cell.robot("robot-1").state["pose"]["y"] == pytest.approx(2.2, abs=0.05)


def test_a_mission_with_a_mistake_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "tour.mission"
    file.write_text("MOVE x=2 y=1.6\nTURN by=3\n")
    done = run("run", "robot-1", str(file))
    assert isinstance(done.exception, ConfigError)
    assert (done.exception.line, done.exception.value, done.exception.allowed) == (2, "by", "yaw")
