"""Rules with a trigger: a command, an edge of a pin, the tool near a point."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.parts import part

from understudy.app.build import load_cell
from understudy.errors import ConfigError
from understudy.robots.arm.controller import ArmController
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.wire.exchange import InProcessCell

Build = Callable[[str], InProcessCell]

CELL = """
robots:
  bench: {{kind: text_robot, faces: {{text_tcp: {{}}}}}}
  g60: {{kind: arm, simulation: {{command_delay_ms: 0}}}}
scenario: {{rules: {{rule: {rule}}}}}
"""


@pytest.fixture
def cell_with(tmp_path: Path) -> Build:
    def build(rule: str) -> InProcessCell:
        file = tmp_path / "cell.yaml"
        file.write_text(CELL.format(rule=rule))
        return load_cell(str(file))

    return build


def test_a_command_triggers_a_rule(cell_with: Build) -> None:
    cell = cell_with(
        "{fault: emergency_stop, on: bench, when: {of: bench.text_tcp, command: home}}"
    )
    client = cell.connect()
    assert client.ask(b"MOVE_REL 1,1,1\n") == b"OK Movement completed\n"
    client.say(b"HOME\n")
    cell.run_while_owed()
    assert client.received() == b"ERROR Robot in emergency stop state\n"


def test_a_triggered_rule_may_act_later(cell_with: Build) -> None:
    cell = cell_with(
        "{fault: emergency_stop, on: bench,"
        " when: {of: bench.text_tcp, command: HOME, after_s: 0.25}}"
    )
    client = cell.connect()
    assert client.ask(b"HOME\n") == b"ERROR Robot in emergency stop state\n"
    assert cell.now == 0.25


def test_times_limits_the_actions_of_a_rule(cell_with: Build) -> None:
    cell = cell_with(
        "{fault: overheat, on: bench, times: 2, when: {of: bench.text_tcp, command: GET_POS}}"
    )
    client = cell.connect()
    codes = []
    for _ in range(3):
        client.ask(b"GET_POS\n")
        codes.append(client.ask(b"GET_STATUS\n").split(b",")[2])
        client.ask(b"RESET\n")
    assert codes == [b"6", b"6", b"0"]


def test_times_limits_the_lost_commands(cell_with: Build) -> None:
    cell = cell_with("{fault: communication_timeout, on: bench.text_tcp, times: 2}")
    client = cell.connect()
    answers = [client.ask(b"GET_STATUS\n").split()[0] for _ in range(4)]
    assert answers == [b"ERROR", b"ERROR", b"OK", b"OK"]


@pytest.mark.parametrize(("edge", "when"), [("rise", 1.0), ("fall", 2.0)])
def test_an_edge_of_a_pin_triggers_a_rule(cell_with: Build, edge: str, when: float) -> None:
    cell = cell_with(
        f"{{fault: emergency_stop, on: g60, when: {{of: g60.io, pin: ARC_START, edge: {edge}}}}}"
    )
    arm = part(cell, "g60", ArmController)
    io = part(cell, "g60.io", VirtualIO)
    arm.connect(0)
    arm.enable(0)
    cell.advance(1.0)
    io.set_digital_output("ARC_START", True, cell.timed_cell.now)
    cell.exchange.deliver()
    assert arm.is_enabled() == (when > 1.0)
    cell.advance(1.0)
    io.set_digital_output("ARC_START", False, cell.timed_cell.now)
    cell.exchange.deliver()
    assert not arm.is_enabled()


def test_a_tool_near_a_point_triggers_a_rule(cell_with: Build) -> None:
    cell = cell_with(
        "{fault: emergency_stop, on: bench, when: {of: bench, near_mm: [50, 0, 100], within_mm: 5}}"
    )
    client = cell.connect()
    answer = client.ask(b"MOVE_ABS 100,0,100,0,0,0\n")
    assert answer == b"ERROR Robot in emergency stop state\n"
    x = float(client.ask(b"GET_POS\n")[3:].split(b",")[0])
    assert 45.0 <= x <= 55.0


@pytest.mark.parametrize("pin", ["11", "DI11"])
def test_faults_of_pins(cell_with: Build, pin: str) -> None:
    cell = cell_with(f"{{fault: pulse_input, on: g60.io, at_s: 1, parameters: {{pin: {pin}}}}}")
    io = part(cell, "g60.io", VirtualIO)
    cell.advance(1.05)
    assert io.digital_input(11)
    assert io.is_forced(11)
    cell.advance(0.1)
    assert not io.digital_input(11)
    assert not io.is_forced(11)


def test_a_snapshot_holds_triggered_rules(cell_with: Build) -> None:
    cell = cell_with(
        "{fault: emergency_stop, on: bench,"
        " when: {of: bench.text_tcp, command: HOME, after_s: 0.25}}"
    )
    client = cell.connect()
    client.say(b"HOME\n")
    cell.advance(0.1)
    moment = cell.snapshot()
    cell.restore(moment)
    cell.run_while_owed()
    assert (client.received(), cell.now) == (b"ERROR Robot in emergency stop state\n", 0.25)


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ("{fault: overheat, on: bench}", "needs either at_s or `when`"),
        ("{fault: overheat, on: bench, at_s: 1, when: {of: bench, pin: DI0}}", "needs either"),
        ("{fault: overheat, on: bench, when: {of: bench}}", "one of command, pin, near_mm"),
        ("{fault: overheat, on: bench, when: {of: bnch, command: A}}", "did you mean 'bench'"),
        ("{fault: overheat, on: bench, when: {of: bench, pin: DI0}}", "has no pins"),
        ("{fault: overheat, on: bench, when: {of: g60.io, pin: DI99}}", "there is no pin DI99"),
        ("{fault: overheat, on: bench, when: {of: g60.io, near_mm: [0, 0, 0]}}", "no tool"),
        ("{fault: position_noise, on: bench, when: {of: bench, command: A}}", "queries it"),
        ("{fault: overheat, on: bench, when: {of: g60.io, command: A}}", "endpoint to listen to"),
        ("{fault: overheat, on: bench, when: {of: g60.io, collision: any}}", "not watched for"),
        ("{fault: overheat, on: bench, at_s: 1, times: 2}", "times needs `when`"),
        ("{fault: position_noise, on: bench, times: 2}", "times needs `when`"),
    ],
)
def test_invalid_triggers_are_refused(cell_with: Build, rule: str, reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        cell_with(rule)
