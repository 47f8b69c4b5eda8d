"""Validation with pins, power source and scenario."""

from pathlib import Path

import pytest
from tests.offline.validate.cases import proved_text

from understudy.app.validate import Options
from understudy.errors import ConfigError
from understudy.offline.validate.report import Report

START = "G21 G90 G94\nG0 X450 Y-100 Z450 A180 B0 C0\n"
SEAM = START + "M7\nM3\nG1 Z440 F600\nM5\nG4 P1\nM9\n"


def under(rules: str, text: str, tmp_path: Path, name: str = "g60_welding") -> Report:
    file = tmp_path / "rules.yaml"
    file.write_text(f"rules:\n{rules}")
    return proved_text(text, name, Options(scenario=str(file)))


def kinds(report: Report) -> list[tuple[int, str]]:
    return [(each.line, each.kind) for each in report.violations]


def test_a_scenario_rule_that_sets_an_input_ends_a_wait(tmp_path: Path) -> None:
    text = "M66 P20 L3 Q5\n"
    assert kinds(proved_text(text, "g60_welding")) == [(1, "io")]
    rule = "  part: {fault: force_input, on: g60.io, at_s: 2, parameters: {pin: 20, value: 1}}\n"
    report = under(rule, text, tmp_path)
    assert report.passed
    assert report.cycle_time["io_s"] == pytest.approx(2.0)


def test_the_cells_own_rules_are_off(tmp_path: Path) -> None:
    assert proved_text(SEAM, "g60_welding").passed


def test_an_arc_lost_on_the_seam_is_reported_on_its_line(tmp_path: Path) -> None:
    rule = "  gust: {fault: arc_fault, on: g60.welder, at_s: 1.3, parameters: {duration_s: 5}}\n"
    report = under(rule, SEAM, tmp_path)
    assert kinds(report) == [(5, "process")]
    assert "the arc was lost" in report.violations[0].message


def test_an_arc_that_does_not_ignite_is_reported_once(tmp_path: Path) -> None:
    rule = "  never: {fault: ignition_fault, on: g60.welder, at_s: 0}\n"
    report = under(rule, SEAM.replace("M3", "M3\nM66 P0 L3 Q7"), tmp_path)
    assert kinds(report) == [(4, "process")]


def test_an_emergency_stop_of_the_scenario_is_a_violation(tmp_path: Path) -> None:
    rule = "  hand: {fault: emergency_stop, on: g60, at_s: 0.3}\n"
    assert kinds(under(rule, SEAM, tmp_path)) == [(2, "process")]


def test_a_rule_triggered_by_the_tool_acts(tmp_path: Path) -> None:
    rule = (
        "  near: {fault: pulse_input, on: g60.io, parameters: {pin: 20, value: 1, duration_s: 9},"
        " when: {of: g60, near_mm: [450, -100, 450], within_mm: 5}}\n"
    )
    assert under(rule, START + "M66 P20 L3 Q1\n", tmp_path).passed


@pytest.mark.parametrize(
    "rules", ["  odd: {fault: no_such, on: g60}\n", "  odd: {fault: arc_fault, on: nobody}\n"]
)
def test_a_scenario_that_does_not_fit_the_cell_is_a_config_error(
    rules: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError):
        under(rules, SEAM, tmp_path)


def test_a_weld_fault_is_reported_once_per_seam() -> None:
    text = START + "M3\nM66 P0 L3 Q7\nG1 Z440 F600\nG4 P3\nM5\n"
    assert kinds(proved_text(text, "g60_welding")) == [(3, "process")]


def test_without_a_power_source_gas_and_end_are_still_checked() -> None:
    assert kinds(proved_text(START + "M3\nG1 Z440 F600\nM5\n")) == [(3, "process")]
    assert kinds(proved_text(START + "M7\nM3\nG1 Z440 F600\nM2\n")) == [(6, "process")]
    assert proved_text(START + "M7\nM3\nG1 Z440 F600\nM5\nM9\nM2\n").passed


def test_rapids_between_seams_need_no_arc() -> None:
    text = START + "M7\nM3\nM65 P0\nG0 Z440\nM5\nM9\n"
    assert proved_text(text, "g60_welding").passed


def test_an_analog_value_out_of_range_is_a_violation() -> None:
    assert kinds(proved_text("M68 E0 Q99\n", "g60_welding")) == [(1, "io")]


def test_reading_an_input_never_waits() -> None:
    report = proved_text("M66 P20 L0\nM66 E0 L0\n", "g60_welding")
    assert report.passed
    assert report.total_s == 0.0


def test_modes_of_operation_come_from_the_cell() -> None:
    assert proved_text(SEAM, "g60_welding", Options(mode_of_operation="WELDING")).passed
    with pytest.raises(ConfigError, match="allowed: WELDING"):
        proved_text(SEAM, "g60_welding", Options(mode_of_operation="PICKPLACE"))
    with pytest.raises(ConfigError, match="allowed: none"):
        proved_text(SEAM, "bare", Options(mode_of_operation="WELDING"))


def test_an_arc_started_by_its_pin_without_gas_is_a_violation() -> None:
    text = START + "M64 P0\nG4 P0.1\nM3\nG1 Z440 F600\nM5\n"
    assert [kind for _, kind in kinds(proved_text(text, "g60_welding"))] == ["process"]
