"""`understudy validate` and `cycle-time` of a pick & place cell, on the command line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.cli import main

CELLS = Path(__file__).parent / "offline" / "cells"
GOOD, POST = (str(CELLS / f"{name}.yaml") for name in ("good", "post"))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: its exit code and what it wrote to both outputs."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["understudy", *words])
        try:
            code = main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return (code, *capsys.readouterr())

    return command


@pytest.mark.parametrize(
    "words", [(GOOD,), ("--cell", GOOD), ("--job", "pick-place", "--cell", GOOD)]
)
def test_a_cell_in_place_of_a_program_means_its_job(run: Run, words: tuple[str, ...]) -> None:
    code, said, _ = run("validate", "--cycles", "1", *words)
    assert code == 0
    assert "pick & place on good (g60): pass" in said
    assert "1 placed: " in said
    assert "proven clearance between pick and place 2" in said
    assert "8 steps move" in said


def test_a_flaw_fails_and_is_in_every_report(run: Run, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "sarif", "junit", "html")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    code, said, _ = run("validate", POST, "--cycles", "1", *options)
    assert code == 1
    text = "pallet cell 0 (row 0, column 0, layer 0), MOVE_TO_PLACE: box_4 touches post"
    assert text in said
    document = json.loads(files["json"].read_text())
    assert document["verdict"] == "fail"
    assert document["violations"][0]["objects"] == ["box_4", "post"]
    (part,) = document["parts"]
    assert (part["name"], part["placed"], part["clearance_mm"]) == ("box_4", True, None)
    assert part["by_state_s"]["SCANNING"] == pytest.approx(0.05)
    for kind in ("sarif", "junit", "html"):
        assert text in files[kind].read_text()


def test_cycle_time_prints_parts_and_steps(run: Run) -> None:
    code, said, _ = run("cycle-time", GOOD, "--cycles", "2")
    assert code == 0
    assert "pallet cell 1 (row 0, column 1, layer 0)" in said
    assert "APPROACH_PLACE" in said
    code, said, _ = run("cycle-time", "--job", "pick-place", "--cell", GOOD, "--json")
    document = json.loads(said)
    assert [part["part"] for part in document["parts"]] == [1, 2, 3, 4]
    assert sum(part["seconds"] for part in document["parts"]) == pytest.approx(
        document["total_s"], abs=1e-4
    )


@pytest.mark.parametrize("command", ["validate", "cycle-time"])
def test_without_a_program_and_without_a_job_there_is_nothing_to_check(
    run: Run, command: str
) -> None:
    for words, text in (
        (("--cell", "hall"), "there is nothing to check"),
        (("--job", "weld"), "unknown job"),
        (("a.nc", "--job", "pick-place"), "give a program or a job, not both"),
    ):
        code, _, said = run(command, *words)
        assert code == 2
        assert text in said
