"""The simulation.yaml of the design document is read unchanged."""

from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError

DOCUMENT = Path(__file__).parent / "documents" / "simulation.yaml"
CELL = "include: {{simulation: {file}}}\nrobots: {{g60: {{kind: arm{more}}}}}\n"


def cell_with(tmp_path: Path, text: str, more: str = "") -> str:
    (tmp_path / "simulation.yaml").write_text(text)
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL.format(file="simulation.yaml", more=more))
    return str(cell)


def test_its_values_are_the_defaults_of_every_arm(tmp_path: Path) -> None:
    config = load_config(cell_with(tmp_path, DOCUMENT.read_text()))
    arm = config.robots["g60"].config
    assert arm.simulation.update_rate_hz == 1000.0
    assert arm.simulation.joint_inertia == [1.0, 1.0, 0.5, 0.1, 0.1, 0.05]
    assert arm.simulation.feedback_delay_ms == 0.5
    assert [(link.output, link.input, link.delay_ms) for link in arm.io.links] == [
        (0, 0, 50.0),
        (1, 1, 100.0),
    ]
    assert config.simulation.collision.self_collision_pairs == ((0, 4), (0, 5), (1, 4), (1, 5))
    assert config.simulation.visualization.robot_color == 0xFF5E00
    build_cell(config)


def test_keys_of_the_cell_file_take_precedence(tmp_path: Path) -> None:
    more = ", simulation: {command_delay_ms: 7}, io: {links: []}"
    arm = load_config(cell_with(tmp_path, DOCUMENT.read_text(), more)).robots["g60"].config
    assert arm.simulation.command_delay_ms == 7.0
    assert arm.simulation.update_rate_hz == 1000.0
    assert arm.io.links == []


def test_the_file_is_also_searched_in_the_folder_above(tmp_path: Path) -> None:
    (tmp_path / "simulation.yaml").write_text("simulation: {default_time_scale: 4}")
    cell = tmp_path / "cells" / "cell.yaml"
    cell.parent.mkdir()
    cell.write_text(CELL.format(file="simulation.yaml", more=""))
    assert load_config(str(cell)).simulation.simulation.default_time_scale == 4.0


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("simulation: {update_rate: 5}", "simulation.yaml:1: simulation.update_rate: unknown key"),
        ("collision: {self_collision_pairs: [[0]]}", "collision.self_collision_pairs"),
        ("visualization: {robot_color: 0x1000000}", "visualization.robot_color"),
    ],
)
def test_an_error_in_it_names_file_line_and_key(tmp_path: Path, text: str, reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        load_config(cell_with(tmp_path, text))


def test_a_missing_simulation_file_is_an_error(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text(CELL.format(file="nowhere.yaml", more=""))
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        load_config(str(cell))


# ── scenario files ──

BENCH = "{include}robots: {{bench: {{kind: text_robot}}}}\nscenario: {{rules: {{{own}}}}}\n"
STOP = "panic: {fault: emergency_stop, on: bench, at_s: 10}"


def bench(tmp_path: Path, scenario: str, own: str = "") -> str:
    (tmp_path / "storm.yaml").write_text(scenario)
    cell = tmp_path / "bench.yaml"
    cell.write_text(BENCH.format(include="include: {scenario: storm.yaml}\n", own=own))
    return str(cell)


def test_a_scenario_file_adds_its_rules(tmp_path: Path) -> None:
    own = "calm: {fault: emergency_release, on: bench, at_s: 12}"
    config = load_config(bench(tmp_path, f"rules: {{{STOP}}}", own))
    assert list(config.head.scenario.rules) == ["calm", "panic"]
    build_cell(config)


@pytest.mark.parametrize(
    ("scenario", "own", "reported"),
    [
        ("rules: {panic: {fault: emergency_stop}}", "", r"storm\.yaml:1: rules\.panic\.on"),
        (f"rules: {{{STOP}}}", STOP, r"storm\.yaml:1: rules\.panic: the cell file has a rule"),
        ("timeline: []", "", r"storm\.yaml:1: timeline: unknown key"),
    ],
)
def test_an_error_in_a_scenario_file_names_it(
    tmp_path: Path, scenario: str, own: str, reported: str
) -> None:
    with pytest.raises(ConfigError, match=reported):
        load_config(bench(tmp_path, scenario, own))
