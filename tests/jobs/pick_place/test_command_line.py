"""`understudy pick-place`: headless with a summary, and in a running cell."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.pick_place.pick_cell import TEXT, written
from typer.testing import CliRunner, Result

from understudy import cli
from understudy.app.ready_file import ReadyFile
from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def called(*words: str) -> Result:
    return CliRunner().invoke(cli.app, ["pick-place", *words])


def summary(*words: str, code: int = 0) -> Any:
    done = called("run", *words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_a_headless_run_has_a_summary(tmp_path: Path) -> None:
    cell = written(tmp_path)
    found = summary("--cell", cell)
    assert (found["cycles"], found["success"], found["ended"]) == (4, 4, "PALLET_FULL")
    assert found["simulated_s"] > found["success"] * found["shortest_s"] * 0.99
    again = summary("--cell", cell)
    assert {**again, "wall_s": 0} == {**found, "wall_s": 0}, "the same run every time"
    text = called("run", "--cell", cell, "--cycles", "1").stdout
    assert "1 success, 0 failed" in text
    assert "DONE" in text


def test_a_run_that_places_nothing_is_a_failure(tmp_path: Path) -> None:
    empty = TEXT[: TEXT.index("parts:")] + TEXT[TEXT.index("environment:") :]
    found = summary("--cell", written(tmp_path, empty), code=1)
    assert (found["success"], found["ended"]) == (0, "NO_OBJECT")
    late = summary("--cell", written(tmp_path), "--most-s", "1", code=1)
    assert late["ended"] == "TIME"
    other = TEXT.replace("start: PICKPLACE", "start: WELDING")
    done = called("run", "--cell", written(tmp_path, other))
    assert done.exit_code == 1
    assert "PICKPLACE" in done.output


def test_wrong_options_are_named_before_kernels_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    monkeypatch.setattr("understudy.jobs.pick_place.command_line.compile_for_cell", compiled.append)
    cell = written(tmp_path)
    for words, key in (
        (["--cell", "g60_welding"], "--robot: 0 robots have the section `pickplace`"),
        (["--cell", cell, "--robot", "g61"], "--robot: unknown robot"),
        (["--cell", cell, "--cycles", "0"], "--cycles (got 0)"),
    ):
        problem = called("run", *words).exception
        assert isinstance(problem, ConfigError)
        assert key in str(problem)
    assert not compiled


def test_a_running_cell_is_started_watched_and_stopped(tmp_path: Path) -> None:
    with StandIn(written(tmp_path), rate="max") as cell:
        ReadyFile(Path("ready.json"), cell.secret).write("pick", 0.0, dict(cell.endpoints))
        ready = ("--ready-file", "ready.json")
        done = called("run", "--cycles", "2", *ready)
        assert done.exit_code == 0, done.output
        assert "2 success" in done.stdout
        assert called("status", *ready).stdout.splitlines()[1:] == ["  DONE"]
        shown = json.loads(called("status", "--json", *ready).stdout)
        assert (shown["success_count"], shown["reason"]) == (2, "DONE")
        stopped = called("stop", *ready)
        assert stopped.exit_code == 1
        assert "not running" in stopped.output


@pytest.mark.parametrize("words", [("pick-place", "run"), ("calibrate", "hand-eye")])
def test_a_running_cell_without_the_job_is_named(words: tuple[str, str]) -> None:
    with StandIn("text_robot") as cell:
        ReadyFile(Path("ready.json"), cell.secret).write("bench", 0.0, dict(cell.endpoints))
        done = CliRunner().invoke(cli.app, [*words, "--ready-file", "ready.json"])
    assert done.exit_code == 1
    assert "no robot of this cell has such a job" in done.stderr
    assert "unknown command" not in done.stderr


def test_a_fault_is_shown_once_and_cleared(tmp_path: Path) -> None:
    with StandIn(written(tmp_path), rate=0.0) as cell:
        ReadyFile(Path("ready.json"), cell.secret).write("pick", 0.0, dict(cell.endpoints))
        ready = ("--ready-file", "ready.json")
        assert "no fault to reset" in called("reset", *ready).output
        assert called("run", "--no-wait", *ready).exit_code == 0
        cell.inject("axis_fault", on="g60", axis=1)
        cell.forward(0.1)
        shown = called("status", *ready).stdout
        assert "g60: ERROR" in shown
        assert shown.count("ARM_FAULT") == 1
        cell.do("reset", robot="g60")
        assert "reset it first (reset_pick_place)" in called("run", "--no-wait", *ready).output
        done = called("reset", *ready)
        assert (done.exit_code, "g60: IDLE" in done.stdout) == (0, True), done.output
        assert called("run", "--no-wait", *ready).exit_code == 0
