"""Metrics of the engine count for every robot: executed lines, and the path of the tool."""

import pytest
from tests.parts import part
from tests.robots.kuka.kuka_wire import command

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.simulation.engine import SimulationEngine, SimulationMetrics
from understudy.wire.exchange import InProcessCell


def quiet_cell(name: str) -> InProcessCell:
    return InProcessCell(build_cell(load_config(name).without_rules()))


def metrics(cell: InProcessCell) -> SimulationMetrics:
    return part(cell, "engine", SimulationEngine).metrics(cell.timed_cell.now)


def test_the_moves_of_a_text_robot_count() -> None:
    cell = quiet_cell("text_robot")
    client = cell.connect()
    client.ask(b"MOVE_ABS 300,0,100,0,0,0\nMOVE_REL 0,40,0\nMOVE_ABS 1\nGET_POS\n")
    assert metrics(cell).gcode_executed == 2
    assert metrics(cell).total_distance_mm == pytest.approx(340.0)
    client.say(b"MOVE_REL 0,0,100\n")
    cell.advance(0.1)
    client.say(b"STOP\n")
    assert metrics(cell).total_distance_mm == pytest.approx(390.0), "half of the move"
    assert metrics(cell).gcode_executed == 2


def test_a_snapshot_holds_the_stop_and_the_counters_at_the_last_reset() -> None:
    cell, other = quiet_cell("text_robot"), quiet_cell("text_robot")
    client, engine = cell.connect(), part(cell, "engine", SimulationEngine)
    client.ask(b"MOVE_ABS 300,0,100,0,0,0\n")
    engine.reset(cell.timed_cell.now)
    client.ask(b"MOVE_REL 0,40,0\n")
    engine.stop(cell.timed_cell.now)
    other.restore(cell.snapshot())
    assert metrics(other).gcode_executed == 1
    assert metrics(other).total_distance_mm == pytest.approx(40.0)
    assert part(other, "engine", SimulationEngine).state(other.timed_cell.now) == "STOPPED"


def test_the_records_of_a_kuka_count() -> None:
    cell = quiet_cell("kuka_eki")
    client = cell.connect("kuka.kuka_eki.command")
    client.say(command(1, X=100.0, F=100.0) + command(2, Y=50.0) + command(3, X=9000.0))
    cell.advance(0.5)
    assert metrics(cell).total_distance_mm == pytest.approx(49.5, abs=0.01)
    cell.run_while_busy()
    assert metrics(cell).gcode_executed == 2, "the third record is refused"
    assert metrics(cell).total_distance_mm == pytest.approx(150.0, abs=0.01)
    snapshot = cell.snapshot()
    other = quiet_cell("kuka_eki")
    other.restore(snapshot)
    assert metrics(other) == metrics(cell)


def test_the_lines_of_a_machine_count_but_not_comments_and_percent() -> None:
    cell = quiet_cell("grblhal_6axis")
    client = cell.connect()
    client.say(b"%\n(a comment)\n; another\n\nG21 G90\nG1 X30 F6000\nY40\n%\n")
    cell.run_while_busy()
    assert metrics(cell).gcode_executed == 3
    assert metrics(cell).total_distance_mm == pytest.approx(70.0, abs=0.01)


def test_lines_that_follow_each_other_on_the_wire_lose_no_distance() -> None:
    cell = quiet_cell("grblhal_6axis")
    client = cell.connect()
    for n in range(1, 41):
        client.say(f"G1 X{n * 5} F3000\n".encode())
        cell.advance(0.07)
    cell.run_while_busy()
    assert metrics(cell).total_distance_mm == pytest.approx(200.0, abs=0.01)


def test_comments_of_an_arms_program_do_not_count() -> None:
    from understudy import VirtualController

    arm = VirtualController("g60")
    arm.connect()
    arm.enable()
    for line in ("(start)", "G0 A10", "; comment", "G0 A20"):
        assert arm.send_gcode(line) is None
    arm.run_until_idle()
    assert arm.tally().gcode_executed == 2
