"""`run_programs`: time runs, and the loaded programs of the simulated robots."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.benches import Bench
from tests.jobs.pick_place.pick_cell import written

CELL = """
robots:
  arm: {kind: arm, program: joint_tour}
  machine: {kind: machine}
"""


@pytest.fixture
def played(bench_of: Callable[[str], Bench], tmp_path: Path) -> Bench:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    bench = bench_of(str(file))
    bench.live.operator.all_programs.load_named_programs()
    return bench


def test_run_programs_runs_the_program_that_the_cell_file_names(played: Bench) -> None:
    assert played.do("program", robot="arm")["name"] == "joint_tour.gcode"
    before = played.joints("arm")
    answer = played.do("run_programs")
    assert (answer["started"], answer["refused"], answer["state"]) == (["arm"], {}, "RUNNING")
    played.forward(1.5)
    assert played.joints("arm") != before
    again = played.do("run_programs")
    assert (again["started"], again["under_way"]) == ([], True), "it runs already"
    played.forward(60.0)
    assert played.do("program", robot="arm")["state"] == "done"


def test_run_programs_ends_a_pause_and_a_stop(played: Bench) -> None:
    played.do("run_programs")
    played.forward(1.0)
    played.do("pause")
    assert played.do("run_programs")["state"] == "RUNNING"
    assert played.do("program", robot="arm")["state"] == "running", "not started anew"
    played.do("stop")
    played.forward(2.0)
    assert played.do("run_programs")["started"] == ["arm"]


def test_run_programs_reports_a_robot_that_cannot_run(played: Bench) -> None:
    played.do("inject", fault="emergency_stop", on="arm")
    answer = played.do("run_programs")
    assert answer["started"] == []
    assert list(answer["refused"]) == ["arm"]


def test_a_program_that_cannot_be_loaded_is_logged(
    bench_of: Callable[[str], Bench], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "cell.yaml"
    (tmp_path / "long.gcode").write_text("G4 P1\n")
    file.write_text("robots: {arm: {kind: arm, program: long.gcode}}\n")
    bench = bench_of(str(file))
    bench.live.operator.all_programs.load_named_programs()
    bench.do("run_programs")
    with caplog.at_level(logging.WARNING):
        bench.live.operator.all_programs.load_named_programs()
    assert "arm: the program long.gcode is not loaded: a program is running" in caplog.text


# ── pick & place ──


def test_run_programs_starts_the_job_of_a_robot_without_a_program(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    bench = bench_of(written(tmp_path))
    answer = bench.do("run_programs")
    assert (answer["started"], answer["refused"]) == (["g60"], {})
    bench.forward(3.0)
    bench.do("pause_pick_place")
    bench.forward(3.0)
    again = bench.do("run_programs")
    assert (again["started"], again["under_way"]) == ([], True), "a paused job is not started anew"
    bench.do("resume_pick_place")
    bench.forward(60.0)
    assert bench.do("pick_place")["reason"] == "PALLET_FULL"
    assert bench.do("run_programs")["refused"]["g60"].startswith("PALLET_FULL")


def test_run_programs_runs_the_program_of_a_robot_that_has_a_job_too(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    bench = bench_of(written(tmp_path))
    bench.do("load_program", robot="g60", text="G4 P1\n", name="dwell.gcode")
    bench.forward(0.1)
    assert bench.do("run_programs")["started"] == ["g60"]
    assert bench.do("program", robot="g60")["state"] == "running"
    assert bench.do("pick_place")["state"] == "IDLE"
