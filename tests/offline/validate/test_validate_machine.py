"""Validation of programs of a plain machine: errors of its firmware, travel, times."""

from math import hypot
from pathlib import Path

import pytest
from tests.offline.validate.cases import PROGRAMS, cell, proved_text

from understudy.app.build import load_cell
from understudy.app.validate import Options, validate_text
from understudy.errors import ConfigError
from understudy.offline.validate.report import Report

GOLDEN = PROGRAMS.parents[2] / "golden/grblhal/programs"
TRAVEL = str(PROGRAMS.parent / "cells/machine_travel.yaml")
READY = "G21 G90 G94\n"


def on_machine(text: str, options: Options | None = None) -> Report:
    return proved_text(READY + text, "grblhal_6axis", options)


def on_guarded(text: str, options: Options | None = None) -> Report:
    """On a machine with X from -300 to 0, Y from -200, Z from -100, A without limit."""
    return proved_text(READY + text, "machine_travel", options)


@pytest.mark.parametrize(
    ("line", "kind", "code"),
    [
        ("G1 X5", "syntax", 22),
        ("G0 X1 X2", "syntax", 25),
        ("G1 X1 F-1", "syntax", 4),
        ("G64", "unsupported", 20),
        ("G0 G1 X1 F100", "syntax", 24),
        ("Q5", "syntax", 36),
        ("G2 X5 I0 J0 F10", "syntax", 33),
        ("M66 P0 L3", "syntax", 39),
        ("M66 P9 L0", "syntax", 39),
        ("M62 P8", "syntax", 39),
        ("G0 U1", "syntax", 36),
        ("$H", "syntax", 3),
    ],
)
def test_a_violation_has_the_error_number_of_the_firmware(line: str, kind: str, code: int) -> None:
    (found,) = on_machine(line + "\n").violations
    assert (found.line, found.kind, found.code) == (2, kind, code)
    assert found.message.endswith(f"(error:{code})")


@pytest.mark.parametrize("line", ["G1 X5", "G64", "G0 X1 X2", "G0 U1", "G2 X5 I0 J0 F10", "Q5"])
def test_the_running_machine_gives_the_same_error_number(line: str) -> None:
    (found,) = on_machine(line + "\n").violations
    client = load_cell("grblhal_6axis").connect("machine.grblhal")
    received = client.ask(READY.encode() + line.encode() + b"\n")
    assert received.splitlines()[-1] == f"error:{found.code}".encode()


def test_a_target_beyond_the_travel_is_alarm_2() -> None:
    report = on_guarded("G0 X-299\nG1 Y-201 F600\nG1 X1\nG0 A999\nG0 X-10\n")
    assert [(v.line, v.kind, v.code) for v in report.violations] == [
        (3, "joint_limit", 2),
        (4, "joint_limit", 2),
    ]
    assert "Y -201 is outside -200…0" in report.violations[0].message
    assert report.violations[0].message.endswith("(alarm:2)")


def test_an_arc_that_leaves_the_travel_is_a_violation() -> None:
    (found,) = on_guarded("G0 X-10 Y-100\nG3 X-10 Y-50 J25 F600\n").violations
    assert (found.line, found.kind) == (3, "joint_limit")
    assert on_guarded("G0 X-10 Y-100\nG2 X-10 Y-50 J25 F600\n").passed


def test_work_offsets_inches_and_increments_are_applied() -> None:
    assert on_guarded("G10 L2 P1 X-100 Y0 Z0\nG0 X90\nG91\nG20\nG0 X-8\n").passed
    (found,) = on_guarded("G10 L2 P1 X-100\nG0 X90\nG91\nG20\nG0 X-12\n").violations
    assert (found.line, found.kind) == (6, "joint_limit")


def test_without_soft_limits_a_note_says_that_the_travel_is_not_checked() -> None:
    report = on_machine("G0 X900\n")
    assert report.passed
    assert any("$20=0" in note for note in report.notes)
    assert not any("$20=0" in note for note in on_guarded("G0 X-1\n").notes)


def test_lines_of_a_robot_without_a_body_are_not_proven() -> None:
    report = on_machine("G0 X10\nM5\n")
    assert [(row.clearance, row.proven, row.moves) for row in report.lines] == [
        (None, True, False),
        (None, False, True),
        (None, True, False),
    ]
    assert report.least_clearance is None
    assert any("no body" in note for note in report.notes)


STRICT = Options(strict=True)


def test_a_feed_above_the_speed_of_an_axis_is_a_warning_since_the_firmware_limits_it() -> None:
    report = on_machine("G1 X50 F9000\n")
    assert report.passed
    (found,) = report.warnings
    assert (found.line, found.kind, found.joint) == (2, "velocity", "X")
    assert "would need 9000 mm/min at this feed, 8000 are allowed (1.1 times)" in found.message
    assert found.message.endswith("the firmware runs the line at 8000 mm/min")
    assert report.total_s == on_machine("G1 X50 F8000\n").total_s, "the limited feed counts"
    assert not on_machine("G0 X50\nG1 X0 F8000\n").warnings


@pytest.mark.parametrize(
    ("line", "axis", "speed"),
    [
        ("G1 X30 Y40 F12000", "Y", "10000 mm/min"),
        ("G1 Z5 F5000", "Z", "4000 mm/min"),
        ("G1 C90 F9999", "C", "7200 deg/min"),
        ("G93 G1 X50 F200", "X", "8000 mm/min"),
        ("G2 X20 Y0 R10 F8100", "Y", "mm/min"),
    ],
)
def test_the_warning_names_the_slowest_axis_and_the_feed_of_the_firmware(
    line: str, axis: str, speed: str
) -> None:
    (found,) = on_machine(line + "\n").warnings
    assert (found.kind, found.joint) == ("velocity", axis)
    assert found.message.endswith(speed)


def test_a_strict_validation_makes_every_warning_a_violation() -> None:
    text = "G1 X50 F9000\nG86 X10 Z-2 R1 P0 F200\nG80\n"
    usual, strict = on_machine(text), on_machine(text, STRICT)
    assert usual.passed
    assert not strict.passed
    assert (strict.violations, strict.warnings) == (usual.warnings, ())
    assert strict.cycle_time == usual.cycle_time
    assert on_machine("G1 X50 F8000\n", STRICT).passed


def test_an_arm_that_cannot_follow_its_feed_is_a_violation_without_strict() -> None:
    text = "G1 X30 F99999\n"
    (found,) = proved_text(text, "bare", Options(dialect="grblhal")).violations
    assert found.kind == "velocity"


@pytest.mark.parametrize("cycle", ["G85", "G86 P0", "G89 P0"])
def test_a_cycle_that_the_firmware_does_not_carry_out_is_a_warning(cycle: str) -> None:
    """It is accepted; the machine stands, the parser goes on from the hole."""
    report = on_machine(f"{cycle} X10 Z-2 R1 F200\nX20\nG80\nG91 G0 X1\n")
    assert report.passed
    assert [(each.line, each.kind) for each in report.warnings] == [
        (2, "unsupported"),
        (3, "unsupported"),
    ]
    assert f"{cycle[:3]} is accepted by the controller, which then moves nothing" in (
        report.warnings[0].message
    )
    assert report.distance_m == pytest.approx(hypot(0.021, 0.002)), "from 0 to X 20 + 1, Z -2"


def test_only_a_wait_that_times_out_is_a_violation() -> None:
    (found,) = on_machine("M64 P1\nM66 P1 L3 Q2\nM66 P2 L3 Q2\n").violations
    assert (found.line, found.kind) == (4, "io")
    assert on_machine("M62 P3\nG0 X1\nM66 P3 L3 Q1\n").passed


def test_the_spindle_delay_counts_and_a_spindle_left_on_is_a_violation() -> None:
    report = on_guarded("M3 S1000\nG1 X-1 F600\nM2\n")
    assert report.passed
    assert report.lines[1].end_s == pytest.approx(1.5)
    (found,) = on_guarded("M3 S1000\nG1 X-1 F600\n").violations
    assert (found.line, found.kind) == (3, "process")
    assert on_guarded("M3 S1000\nG1 X-1 F600\nM5\n").passed


def test_a_probe_without_contact_is_a_violation() -> None:
    (found,) = on_machine("G38.2 Z-5 F100\n").violations
    assert (found.line, found.kind) == (2, "io")
    assert on_machine("G38.3 Z-5 F100\n").passed


def test_stops_within_the_travel_pass() -> None:
    text = "G0 X-299.9\n"
    assert on_guarded(text).passed
    assert on_guarded(text, Options(with_stops=True)).passed, "it brakes within its travel anyway"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.nc")))
def test_programs_that_the_firmware_ran_have_no_errors(name: str) -> None:
    report = validate_text((GOLDEN / f"{name}.nc").read_bytes(), cell("grblhal_6axis"))
    assert {each.kind for each in report.violations} <= {"process"}


@pytest.mark.parametrize("name", ["grblhal_6axis", TRAVEL])
def test_report_and_running_machine_agree_on_the_time(name: str) -> None:
    text = READY + "G0 X-20\nG1 Y-20 F400\nG2 X-10 Y-30 I10\nG4 P0.25\nM8\nG1 X-5 Z-3\nM30\n"
    total = validate_text(text, name).total_s
    running = load_cell(name)
    received = running.connect("machine.grblhal").ask(text.encode())
    assert b"error" not in received
    assert b"ALARM" not in received
    assert running.now == pytest.approx(total, abs=1e-3)


def test_a_machine_accepts_only_its_own_dialect() -> None:
    assert on_machine("G0 X1\n", Options(dialect="grblhal")).passed
    with pytest.raises(ConfigError, match="--dialect"):
        on_machine("G0 X1\n", Options(dialect="arm"))


def test_a_scenario_acts_on_a_machine(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  pushed: {fault: emergency_stop, on: machine, at_s: 0.5}\n")
    (found,) = on_machine("G0 X100\n", Options(scenario=str(rules))).violations
    assert (found.line, found.kind, found.time_s) == (2, "process", 0.5)
    assert "emergency_stop" in found.message
