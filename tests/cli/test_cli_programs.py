"""`understudy cycle-time`: what it prints, and its exit codes."""

import csv
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli import app, main

GOLDEN = Path(__file__).parents[1] / "golden" / "grblhal"
TIMES = list(csv.DictReader((GOLDEN / "times.csv").read_text().splitlines()))
SETTINGS = GOLDEN / "settings" / "s1_base.txt"
SQUARE = GOLDEN / "programs" / "p02_square.nc"


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["understudy", "cycle-time", *map(str, arguments)])
    try:
        return main()
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize("row", TIMES, ids=lambda row: f"{row['program']}-{row['settings']}")
def test_times_agree_with_the_firmware(row: dict[str, str]) -> None:
    program = GOLDEN / "programs" / f"{row['program']}.nc"
    settings = GOLDEN / "settings" / f"{row['settings']}.txt"
    command = ["cycle-time", program, "--settings", settings, "--dialect", "grblhal", "--json"]
    done = CliRunner().invoke(app, list(map(str, command)))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["motion_s"] == pytest.approx(float(row["motion_time_s"]), rel=1e-3)
    assert found["total_s"] == pytest.approx(
        sum(found[kind] for kind in ("motion_s", "process_s", "dwell_s", "io_s"))
    )
    assert {"line", "text", "start_s", "end_s", "kind"} == set(found["lines"][0])


def test_the_table_shows_the_breakdown_and_the_slowest_lines() -> None:
    done = CliRunner().invoke(app, ["cycle-time", str(SQUARE), "--settings", str(SETTINGS)])
    assert "p02_square.nc: 4 blocks" in done.stdout
    assert "4.352" in done.stdout
    assert "G1 X50 F3000" in done.stdout


@pytest.mark.parametrize("program", ["G0 Y0", "G0 X770 Y0 Z995", "G91 G0 X0"])
def test_a_program_without_motion_takes_no_time(program: str, tmp_path: Path) -> None:
    """On the shipped arm, which is at the target already."""
    file = tmp_path / "nowhere.nc"
    file.write_text(program)
    done = CliRunner().invoke(app, ["cycle-time", str(file), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["total_s"] == 0.0


def test_a_syntax_error_exits_with_1_and_has_line_and_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "bad.nc"
    program.write_text("G21\nG1 X1 Y F600\n")
    assert exit_code(monkeypatch, program, "--settings", SETTINGS, "--json") == 1
    reported = capsys.readouterr()
    assert json.loads(reported.out)["violations"][0]["line"] == 2
    assert "line 2, column 7" in reported.err


@pytest.mark.parametrize(
    "arguments",
    [
        (SQUARE, "--settings", SETTINGS, "--dialect", "arm"),
        (SQUARE, "--settings", "nowhere.txt"),
        (SQUARE, "--settings", SQUARE),
        ("nowhere.nc", "--settings", SETTINGS),
        (SQUARE, "--cell", "nowhere"),
        (SQUARE, "--cell", "text_robot", "--dialect", "arm"),
        (SQUARE, "--cell", "grblhal_6axis", "--dialect", "arm"),
        (SQUARE, "--dialect", "klingon"),
    ],
    ids=lambda arguments: " ".join(Path(str(word)).name for word in arguments),
)
def test_usage_errors_exit_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[object, ...],
) -> None:
    assert exit_code(monkeypatch, *arguments) == 2
    reported = capsys.readouterr()
    assert reported.err
    assert not reported.out
