"""Tests of a welding program: its check, its cycle time, and a run with the simulated welder."""

from pathlib import Path

import pytest

import understudy
from understudy import StandIn

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").iterdir())
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))
LONGEST_S = 120.0


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_program_passes_its_check(program: Path) -> None:
    report = understudy.validate(program, HERE / "cell.yaml")
    assert report.passed, report.violations
    assert report.cycle_time["total_s"] < 60.0


def ended(cell: StandIn, program: Path) -> tuple[str, str]:
    """Runs a program; its state and error when it has ended."""
    cell.do("start")
    cell.do("enable", robot="g60")
    cell.do("load_program", robot="g60", text=program.read_text())
    cell.do("run_program", robot="g60")
    while (shown := cell.do("program", robot="g60"))["state"] == "running":
        assert cell.now < LONGEST_S
        cell.forward(seconds=1)
    return shown["state"], shown["error"]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_seam_is_welded(cell: StandIn, program: Path) -> None:
    assert ended(cell, program) == ("done", "")


@pytest.mark.understudy(cell=str(HERE / "cell.yaml"), refusals=True)
def test_a_lost_gas_supply_ends_the_program(cell: StandIn) -> None:
    cell.inject("gas_fault", on="g60.welder")
    assert ended(cell, PROGRAMS[0])[0] == "failed"
