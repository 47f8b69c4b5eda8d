"""Tests of a pick & place cell: the job runs on virtual time, with faults on demand."""

from pathlib import Path

import pytest

from understudy import StandIn

HERE = Path(__file__).parent
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))
LONGEST_S = 120.0


def run(cell: StandIn, cycles: int) -> str:
    """Runs the job; the reason why it has ended."""
    cell.do("enable", robot="g60")
    cell.do("start_pick_place", max_cycles=cycles)
    while cell.now < LONGEST_S:
        cell.forward(seconds=1)
        job = cell.do("pick_place")
        if not job["running"]:
            return str(job["reason"])
    raise AssertionError(f"the job runs after {LONGEST_S:g} s")


def test_two_parts_are_on_the_pallet(cell: StandIn) -> None:
    assert run(cell, cycles=2) == "DONE"
    assert sum(part.pose.y < 0.15 for part in cell.parts().values()) == 2


def test_without_air_the_job_ends_with_an_alarm(cell: StandIn) -> None:
    cell.inject("air_lost", on="g60.gripper")
    assert run(cell, cycles=1) != "DONE"
