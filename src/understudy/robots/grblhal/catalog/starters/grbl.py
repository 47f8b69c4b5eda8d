"""Tests of a G-code sender and of programs, on a machine behind grblHAL."""

from pathlib import Path

import pytest

import understudy
from understudy import StandIn

HERE = Path(__file__).parent
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))


def test_lines_are_accepted_and_the_machine_moves(grbl_robot: StandIn) -> None:
    # a sender of your own connects to grbl_robot.host and grbl_robot.port
    assert grbl_robot.ask("G21 G90") == "ok"
    assert grbl_robot.ask("G1 X-240 F2000") == "ok"
    grbl_robot.forward(seconds=5)  # simulated time: it passes at once
    assert grbl_robot.ask("$#").endswith("ok")


@pytest.mark.understudy(cell=str(HERE / "cell.yaml"), refusals=True)
def test_a_wrong_line_is_refused_with_its_code(grbl_robot: StandIn) -> None:
    assert grbl_robot.ask("G1 X-240") == "error:22"  # no feed rate


def test_homing_ends_at_the_limit_switches(grbl_robot: StandIn) -> None:
    assert grbl_robot.ask("$H").endswith("ok")


@pytest.mark.parametrize("program", sorted((HERE / "programs").iterdir()), ids=str)
def test_the_program_passes_its_check(program: Path) -> None:
    report = understudy.validate(program, HERE / "cell.yaml")
    assert report.passed, report.violations
