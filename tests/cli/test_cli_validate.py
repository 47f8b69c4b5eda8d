"""`understudy validate` and `reach`: exit codes, files and output."""

import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from understudy.cli import main
from understudy.config.files import find_cell

PROGRAMS = Path(__file__).parents[1] / "offline" / "validate" / "programs"
SOUND = PROGRAMS / "sound" / "rapids.gcode"
FLAWED = PROGRAMS / "flawed" / "wrong_height.gcode"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["understudy", *map(str, arguments)])
    try:
        return main()
    except SystemExit as ended:
        return int(ended.code or 0)


def test_a_sound_program_exits_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", SOUND, "--cell", "g60_welding") == 0
    said = capsys.readouterr().out
    assert "pass" in said
    assert "proven clearance" in said


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (("validate", SOUND, "--junit", "--cell", "g60_welding"), "--junit", "--cell"),
        (("cycle-time", SOUND, "--cell", "--json"), "--cell", "--json"),
        (("reach", "--out", "--cell", "g60_welding"), "--out", "--cell"),
        (("run", "--ready-file", "--no-hmi"), "--ready-file", "--no-hmi"),
    ],
)
def test_an_option_is_no_value_of_another(
    words: tuple[object, ...],
    option: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--junit --cell` wrote a file called `--cell`."""
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *words) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"Invalid value for {option}: a value is needed, got the option {value}" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("dock.yaml", "--log", "run.mcap"),
        ("--job", "pick-place", "--cell", "pick_place", "--log", "run.mcap"),
    ],
    ids=["several robots", "a job"],
)
def test_a_log_of_no_one_program_is_refused_before_the_work(
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("understudy.cli.validate.compile_for_program", pytest.fail)
    Path("dock.yaml").write_text(find_cell("dock")[1])
    assert run(monkeypatch, "validate", *words) == 2
    assert "--log writes the run of one program" in capsys.readouterr().err


def test_a_violation_exits_with_1_and_every_report_has_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("json", "junit", "sarif", "html")
    files = {kind: tmp_path / f"report.{kind}" for kind in kinds}
    options = [each for kind, file in files.items() for each in (f"--{kind}", file)]
    assert run(monkeypatch, "validate", SOUND, FLAWED, "--cell", "g60_welding", *options) == 1
    assert "line 5: torch.nozzle touches fixture" in capsys.readouterr().out
    sound, flawed = json.loads(files["json"].read_text())
    assert (sound["verdict"], flawed["verdict"]) == ("pass", "fail")
    assert flawed["violations"][0]["line"] == 5
    suites = ElementTree.parse(files["junit"]).getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    (result,) = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert result["ruleId"] == "collision"
    assert "torch.nozzle touches fixture" in files["html"].read_text()


def test_a_dialect_with_a_former_name_is_read_and_noted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = ("validate", SOUND, "--cell", "g60_welding", "--dialect", "seed")
    assert run(monkeypatch, *arguments) == 0
    assert caplog.messages == ["dialect: seed is now called arm"]


def test_one_program_gives_one_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert run(monkeypatch, "validate", SOUND, "--cell", "g60_welding", "--json", file) == 0
    report = json.loads(file.read_text())
    assert report["program"] == str(SOUND)
    assert report["times_real_time"] > 0.0


def test_a_report_can_be_printed_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", SOUND, "--cell", "g60_welding", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "pass"


def test_a_syntax_error_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS / "flawed" / "unknown_word.gcode"
    assert run(monkeypatch, "validate", program, "--cell", "g60_welding") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["no_such.gcode"],
        [PROGRAMS],
        [SOUND, "--cell", "no_such"],
        [SOUND, "--robot", "nobody"],
        [SOUND, "--cell", "text_robot", "--dialect", "arm"],
        [SOUND, "--cell", "grblhal_6axis", "--robot", "g60"],
        [SOUND, "--scenario", "no_such.yaml"],
        [SOUND, "--json", "/no/such/folder/report.json"],
        [SOUND, "--cell", "g60_welding", "--mode-of-operation", "PICKPLACE"],
        [SOUND, "--mode-of-operation", "PAINTING"],
        [SOUND, "--dialect", "fanuc"],
        [SOUND, "--cell", "kuka_eki", "--dialect", "arm"],
        [SOUND, "--clearance-mm", "-1"],
        ["--cell", "fleet"],
        [SOUND, "--timing", "0.5"],
        ["--cell", "two_arms", "--timing", "soon"],
        ["--cell", "two_arms", "--robot", "left"],
        [f"left={SOUND}", SOUND, "--cell", "two_arms"],
        [f"up={SOUND}", "--cell", "two_arms"],
    ],
    ids=str,
)
def test_usage_errors_exit_with_2_and_a_message(
    arguments: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", *arguments) == 2
    said = capsys.readouterr()
    assert said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--robot", "nope"), "'nope'"),
        (("--out", "/nowhere/reach.csv"), "cannot be written"),
        (("--html", "/nowhere/reach.html"), "cannot be written"),
    ],
)
def test_reach_refuses_before_kernels_are_compiled(
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("understudy.cli.reach.compile_for_program", pytest.fail)
    assert run(monkeypatch, "reach", *words) == 2
    assert says in capsys.readouterr().err


def test_reach_writes_the_format_of_the_file_extension(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    for ending in ("csv", "npz", "html"):
        out = tmp_path / f"reach.{ending}"
        coarse = ("--cell", "g60_welding", "--resolution-mm", "300", "--out", out)
        assert run(monkeypatch, "reach", *coarse) == 0
    assert "grid points are reachable" in capsys.readouterr().out
    head, *rows = (tmp_path / "reach.csv").read_text().splitlines()
    assert head.split(",")[-1] == "collision_free"
    with np.load(tmp_path / "reach.npz") as arrays:
        assert len(arrays["points"]) == len(rows)
        assert (arrays["collision_free"] <= (arrays["orientations"] > 0)).all()
    assert (tmp_path / "reach.html").read_text().count("<svg") == 4


def test_reach_of_the_poses_of_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "reach", "--program", SOUND, "--cell", "g60_welding") == 0
    flawed = PROGRAMS / "flawed" / "unreachable.gcode"
    assert run(monkeypatch, "reach", "--program", flawed, "--cell", "g60_welding") == 1
    said = capsys.readouterr().out
    assert "out of reach" in said
    assert "x mm" in said, "a long reason leaves room for the figures"


def test_reach_is_in_the_frame_of_the_cell(tmp_path: Path) -> None:
    import numpy as np

    from understudy.app.reach import reach_maps
    from understudy.config import load_config

    corners = []
    for base in ("[0, 0, 0, 0, 0, 0]", "[600, -300, 300, 0, 0, 90]"):
        file = tmp_path / "cell.yaml"
        file.write_text(f"robots: {{g60: {{kind: arm, base_mm_deg: {base}}}}}\n")
        found = reach_maps(load_config(str(file)), resolution_mm=300).found
        corners.append((found.workspace_min, found.workspace_max))
    (low, high), (shifted_low, shifted_high) = corners
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    here = np.sort([turn @ low, turn @ high], axis=0) + np.array([0.6, -0.3, 0.3])
    assert here == pytest.approx(np.array([shifted_low, shifted_high]))


def test_an_unknown_file_extension_of_reach_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(monkeypatch, "reach", "--out", tmp_path / "reach.pdf") == 2


def test_a_file_name_that_is_not_utf_8_can_be_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Path(os.fsdecode(bytes(tmp_path) + b"/[red]\xff.gcode"))
    odd.write_text("G21\nG0 A171\n")
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "sarif", "html")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", file)]
    assert run(monkeypatch, "validate", odd, "--cell", "g60_welding", *options) == 1
    assert json.loads(files["json"].read_text())["program"].endswith("[red]\ufffd.gcode")
    assert all(file.read_text() for file in files.values())


def test_the_error_of_a_wrong_rule_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: {dark: {fault: no_such, on: g60}}\n")
    assert run(monkeypatch, "validate", SOUND, "--scenario", rules) == 2
    assert f"{rules}: rules.dark" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_a_feed_above_the_maximum_fails_only_a_strict_validation(
    options: tuple[str, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """JSON, JUnit, SARIF and page say the same as the exit code."""
    program = tmp_path / "fast.nc"
    program.write_text("G21 G90 G94\nG1 X50 F20000\n")
    kinds = ("json", "junit", "sarif", "html")
    files = {kind: tmp_path / f"report.{kind}" for kind in kinds}
    outputs = [word for kind, file in files.items() for word in (f"--{kind}", file)]
    words = (program, "--cell", "grblhal_6axis", *options, *outputs)
    assert run(monkeypatch, "validate", *words) == code
    label = "" if code else "warning: "
    said = capsys.readouterr().out
    assert f"\n  {label}velocity line 2: X would need 20000 mm/min" in said
    report = json.loads(files["json"].read_text())
    assert report["verdict"] == ("fail" if code else "pass")
    found, others = ("violations", "warnings") if code else ("warnings", "violations")
    assert [each["kind"] for each in report[found]] == ["velocity"]
    assert report[others] == []
    assert report["cycle_time"]["total_s"] == pytest.approx(50 / (8000 / 60) + 8000 / 60 / 500)
    assert ("<failure" in files["junit"].read_text()) == bool(code)
    (result,) = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert result["level"] == ("error" if code else "warning")
    assert f'"level":"{"violation" if code else "warning"}"' in files["html"].read_text()


@pytest.mark.parametrize(
    ("cell", "text", "code"),
    [
        ("grblhal_6axis", "G21 G90\nG0 X10\nG1 X20 F300\n", 0),
        ("grblhal_6axis", "G1 X20\n", 1),
        ("text_robot", "MOVE_ABS 100,200,150,0,0,90\nHOME\n", 0),
        ("text_robot", "G0 X1\n", 1),
    ],
)
def test_programs_of_robots_without_a_body_are_validated(
    cell: str,
    text: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = tmp_path / "program.txt"
    program.write_text(text)
    page = tmp_path / "report.html"
    assert run(monkeypatch, "validate", program, "--cell", cell, "--html", page) == code
    assert "no body" in capsys.readouterr().out
    assert run(monkeypatch, "cycle-time", program, "--cell", cell) == code
