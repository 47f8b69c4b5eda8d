"""Rules on commands that reach a robot without a wire, and on pins by their names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.errors import ConfigError

ROBOTS = """
robots:
  g60: {{kind: arm}}
  kuka: {{kind: kuka, base_mm_deg: [0, -3000, 0, 0, 0, 0]}}
  machine: {{kind: machine}}
  text: {{kind: text_robot}}
scenario: {{rules: {{{rules}}}}}
"""
PROGRAMS = {
    "g60": ("G1 A10 F600\nM8\nG1 A0\n", "m8"),
    "kuka": ("G1 X20 F50\nT2\nG1 X30\n", "TOOL 2"),
    "machine": ("G21 G1 X-5 F600\nM8\nG1 X-9\n", "M8"),
    "text": ("MOVE_ABS 10,0,100,0,0,0\nMOVE_REL 0,0,5\nHOME\n", "MOVE_REL"),
}


@pytest.fixture
def cell_file(tmp_path: Path) -> Callable[[str], str]:
    def write(rules: str) -> str:
        file = tmp_path / "cell.yaml"
        file.write_text(ROBOTS.format(rules=rules))
        return str(file)

    return write


def state(cell: StandIn, robot: str) -> dict[str, Any]:
    found = next(each for each in cell.do("robots")["robots"] if each["name"] == robot)
    return dict(found)


@pytest.mark.parametrize("robot", PROGRAMS)
def test_a_rule_waits_for_a_command_of_a_program(
    cell_file: Callable[[str], str], robot: str
) -> None:
    text, command = PROGRAMS[robot]
    when = f"{{of: {robot}, command: {command}}}"
    rule = f"halt: {{fault: emergency_stop, on: {robot}, when: {when}}}"
    with StandIn(cell_file(rule), rules=True) as cell:
        if robot == "g60":
            cell.do("enable", robot=robot)
        cell.do("load_program", robot=robot, text=text)
        cell.do("run_program", robot=robot)
        cell.forward(seconds=20)
        assert state(cell, robot)["error"] != ""
        assert cell.do("program", robot=robot)["state"] == "failed"


def test_a_rule_waits_for_a_command_of_the_operator(cell_file: Callable[[str], str]) -> None:
    rule = "trip: {fault: axis_fault, on: g60, when: {of: g60, command: G1, after_s: 0.2}}"
    with StandIn(cell_file(rule), rules=True) as cell:
        cell.do("enable", robot="g60")
        cell.do("send_gcode", robot="g60", line="G0 A5")
        cell.forward(seconds=2)
        assert state(cell, "g60")["error"] == ""
        cell.do("send_gcode", robot="g60", line="g01 A90 F600")
        cell.forward(seconds=0.1)
        assert state(cell, "g60")["error"] == ""
        cell.forward(seconds=0.2)
        assert "motor fault" in state(cell, "g60")["error"]


def test_a_rule_names_its_pin(cell_file: Callable[[str], str]) -> None:
    rule = "lost: {fault: force_input, on: g60.io, at_s: 1, parameters: {pin: arc_ok, value: 1}}"
    with StandIn(cell_file(rule), rules=True) as cell:
        named = [pin["name"] for pin in cell.do("io", robot="g60")["digital_inputs"]]
        number = named.index("ARC_OK")
        cell.forward(seconds=1.1)
        assert cell.do("io", robot="g60")["digital_inputs"][number]["value"]
        parameters = {"pin": "ARC_OK", "value": 0}
        cell.do("inject", fault="force_input", on="g60.io", parameters=parameters)
        assert not cell.do("io", robot="g60")["digital_inputs"][number]["value"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("fault: force_input, on: g60.io, at_s: 1, parameters: {pin: ARC_OKAY}", "did you mean"),
        ("fault: force_input, on: g60.io, at_s: 1, parameters: {value: high}", "is not a number"),
        ("fault: emergency_stop, on: g60, when: {of: g60.io, command: M3}", "to listen to"),
    ],
)
def test_wrong_names_are_errors_of_the_cell_file(
    cell_file: Callable[[str], str], rule: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        build_cell(load_config(cell_file(f"wrong: {{{rule}}}")))
