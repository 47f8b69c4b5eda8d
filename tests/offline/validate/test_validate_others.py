"""Validation for robots with a language of their own: KUKA, text robot."""

from pathlib import Path

import pytest
from tests.offline.validate.cases import cell

from understudy.app.build import load_cell
from understudy.app.validate import Options, cycle_time, validate_text
from understudy.errors import ConfigError
from understudy.offline.validate.report import Report

BOXED = """
robots:
  bench:
    kind: text_robot
    envelope_mm: {x: [-300, 300], y: [-300, 300], z: [0, 500]}
    faces:
      text_tcp: {port: 5000}
"""


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("cell") / "boxed.yaml"
    file.write_text(BOXED)
    return str(file)


def on_kuka(text: str, options: Options | None = None) -> Report:
    return validate_text(text, cell("kuka_eki"), options=options or Options())


# ── KUKA ──


def test_an_unknown_tool_is_reported_once_where_it_is_selected() -> None:
    report = on_kuka("G1 X0 Y0 Z100 A0 B0 C0 F80\nT7\nG1 X10\nG1 X20\n")
    assert [(v.line, v.kind) for v in report.violations] == [(2, "unsupported")]
    assert "no tool 7" in report.violations[0].message


def test_a_speed_above_the_limit_of_the_server_is_a_warning() -> None:
    report = on_kuka("G1 X0 Y0 Z100 A0 B0 C0 F80\nG1 X10 F250\n")
    assert report.passed
    assert [(w.line, w.kind) for w in report.warnings] == [(2, "velocity")]
    assert report.warnings[0].time_s == report.lines[1].start_s
    assert not on_kuka("G1 X0 Y0 Z100 A0 B0 C0 F100\n").warnings


def test_a_weld_job_left_on_at_the_end_is_a_violation() -> None:
    text = "G1 X0 Y0 Z100 A0 B0 C0 F80\nG1 X10 E3\n{}\n"
    (found,) = on_kuka(text.format("G1 X20")).violations
    assert (found.line, found.kind) == (3, "process")
    assert on_kuka(text.format("G1 X20 E0")).passed


def test_a_target_below_the_lowest_z_is_a_violation_and_the_next_line_is_checked() -> None:
    report = on_kuka("G1 X0 Y0 Z100 A0 B0 C0 F80\nG1 Z-1\nG1 X10 Y0 Z100 A0 B0 C0\n")
    assert [(v.line, v.kind) for v in report.violations] == [(2, "unreachable")]


def test_cycle_time_and_report_have_the_same_duration() -> None:
    text = "G28\nG1 X0 Y0 Z100 A0 B0 C0 F80\nG1 X10\nG28\n"
    cycle = cycle_time(text, cell("kuka_eki"))
    assert cycle.total_s == on_kuka(text).total_s > 0.0


# ── text ──

SQUARE = "# a square\nMOVE_ABS 100,200,150,0,0,90\nMOVE_REL 0,0,-20\nHOME\n"


def test_a_text_program_takes_as_long_as_on_the_running_robot() -> None:
    report = validate_text(SQUARE, cell("text_robot"))
    assert report.passed
    assert report.total_s == pytest.approx(0.5 + 0.2 + 1.0)
    running = load_cell("text_robot")
    client = running.connect("bench.text_tcp")
    for line in SQUARE.splitlines()[1:]:
        while b"ERROR" in client.ask(line.encode() + b"\n"):
            pass  # a command that the cell's scenario has lost
    assert running.now == pytest.approx(report.total_s)
    assert [(row.line, row.start_s) for row in report.lines if row.moves] == [
        (2, 0.0),
        (3, pytest.approx(0.5)),
        (4, pytest.approx(0.7)),
    ]


def test_a_text_program_is_not_proven_and_a_note_says_so() -> None:
    report = validate_text(SQUARE, cell("text_robot"))
    assert [row.proven for row in report.lines] == [True, False, False, False]
    assert report.least_clearance is None
    assert any("no body" in note for note in report.notes)
    assert report.distance_m == pytest.approx(0.2291 + 0.02 + 0.2256, abs=1e-3)


def test_every_line_that_cannot_be_read_is_a_violation() -> None:
    report = validate_text("FLY 1\nMOVE_ABS 1,2\n\nHOME 3\nHOME\n", cell("text_robot"))
    assert [(v.line, v.kind) for v in report.violations] == [(n, "syntax") for n in (1, 2, 4)]


def test_targets_outside_the_envelope_are_violations_and_skipped(boxed: str) -> None:
    text = "MOVE_ABS 290,0,100,0,0,0\nMOVE_REL 20,0,0\nMOVE_REL 5,0,0\nMOVE_ABS 0,0,501,0,0,0\n"
    report = validate_text(text, boxed)
    assert [(v.line, v.kind) for v in report.violations] == [(2, "unreachable"), (4, "unreachable")]


@pytest.mark.parametrize("name", ["text_robot", "kuka_eki"])
def test_a_dialect_is_refused_and_scenario_rules_do_not_act(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="language of its own"):
        validate_text("", cell(name), options=Options(dialect="arm"))
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: {}\n")
    report = validate_text("", cell(name), options=Options(scenario=str(rules)))
    assert any("scenario rules do not act" in note for note in report.notes)


def test_byte_order_mark_and_line_ends_are_ignored() -> None:
    text = b"\xef\xbb\xbf" + SQUARE.replace("\n", "\r\n").encode()
    assert validate_text(text, cell("text_robot")).total_s == pytest.approx(1.7)


def test_a_note_reports_disabled_collision_checks_of_a_kuka(tmp_path: Path) -> None:
    file = tmp_path / "blind.yaml"
    file.write_text("robots:\n  kuka:\n    kind: kuka\n    collision: {enable: false}\n")
    report = validate_text("T1 G58\nG1 X0 Y0 Z100 A0 B0 C0 F100\n", str(file))
    assert any("collision checks are off" in note for note in report.notes)
    assert not report.lines[-1].proven


# ── robots beside it ──

TWO = """
robots:
  left: {kind: arm, model: g60}
  right: {kind: arm, model: g60, base_mm_deg: [700, 0, 0, 0, 0, 180]}
  third: {kind: arm, model: g60}
  bench: {kind: text_robot}
"""


@pytest.mark.parametrize(("robot", "met"), [("left", "right"), ("right", "left, third")])
def test_a_note_names_the_robots_that_are_not_checked(tmp_path: Path, robot: str, met: str) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    report = validate_text("G4 P0.1\n", str(file), options=Options(robot=robot))
    said = f"only {robot} was checked; not part of this validation: {met} (ROBOT=PROGRAM"
    assert report.notes[0].startswith(said)
