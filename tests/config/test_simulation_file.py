"""The simulation.yaml of the design document is read unchanged."""

from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.cli.check import check
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


def test_an_error_about_a_missing_file_names_the_line_that_includes_it(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text("robots: {a: {kind: arm}}\ninclude:\n  environment: nowhere.yaml\n")
    with pytest.raises(ConfigError, match=r"cell\.yaml:3: include\.environment: .*nowhere\.yaml"):
        load_config(str(cell))


# ── its sections in the cell file ──


def test_the_sections_can_stand_in_the_cell_file(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    robots = "robots: {g60: {kind: arm}}\n"
    cell.write_text(robots + DOCUMENT.read_text())
    inline = load_config(str(cell))
    included = load_config(cell_with(tmp_path, DOCUMENT.read_text()))
    assert inline.simulation == included.simulation
    assert inline.robots["g60"].config == included.robots["g60"].config


def test_a_key_of_the_cell_file_goes_over_that_of_the_included_file(tmp_path: Path) -> None:
    cell = Path(cell_with(tmp_path, DOCUMENT.read_text()))
    cell.write_text(
        cell.read_text() + "simulation: {default_time_scale: 4}\n"
        "visualization: {robot_color: 0x00FF00}\nvirtual_io: {links: []}\n"
    )
    found = load_config(str(cell))
    assert found.simulation.simulation.default_time_scale == 4.0
    assert found.simulation.simulation.joint_inertia == [1.0, 1.0, 0.5, 0.1, 0.1, 0.05]
    assert found.simulation.visualization.robot_color == 0x00FF00
    assert found.simulation.visualization.ghost_robot_color == 0x808080
    assert found.robots["g60"].config.io.links == []


def test_an_error_in_an_inline_section_names_the_line_of_the_cell_file(tmp_path: Path) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text("robots: {a: {kind: arm}}\nsimulation:\n  update_rate: 5\n")
    with pytest.raises(ConfigError, match=r"cell\.yaml:3: simulation\.update_rate: unknown key"):
        load_config(str(cell))


# ── a file that cell files include, by itself ──


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("simulation", DOCUMENT.read_text()),
        ("scenario", "rules: {panic: {fault: emergency_stop, on: bench, at_s: 10}}"),
        ("environment", "objects: [{name: table, type: box, dimensions_mm: [1, 1, 1]}]"),
    ],
)
def test_check_understands_it_and_run_says_how_to_include_it(
    tmp_path: Path, kind: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    check(str(file))
    assert f"valid as a {kind} file" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=f"this is a {kind} file, not a cell file.*include"):
        load_config(str(file))


def test_check_names_the_line_of_an_error_in_it(tmp_path: Path) -> None:
    file = tmp_path / "simulation.yaml"
    file.write_text("simulation:\n  update_rate: 5\n")
    with pytest.raises(ConfigError, match=r"simulation\.yaml:2: simulation\.update_rate: unknown"):
        check(str(file))


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
