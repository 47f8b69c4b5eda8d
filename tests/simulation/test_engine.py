"""SimulationEngine: the cell as a whole."""

from pathlib import Path

import pytest
from tests.parts import part

from understudy.app.build import load_cell
from understudy.app.stand_in import StandIn
from understudy.robots.arm.controller import ArmController
from understudy.simulation.engine import EngineState, SimulationEngine, transitions
from understudy.wire.exchange import InProcessCell


@pytest.fixture
def welding() -> InProcessCell:
    return load_cell("g60_welding")


def engine_of(cell: InProcessCell) -> SimulationEngine:
    return part(cell, "engine", SimulationEngine)


def arm_of(cell: InProcessCell) -> ArmController:
    return part(cell, "g60", ArmController)


def send(cell: InProcessCell, *lines: str) -> None:
    arm = arm_of(cell)
    arm.connect(cell.timed_cell.now)
    arm.enable(cell.timed_cell.now)
    for line in lines:
        assert arm.send_gcode(line, cell.timed_cell.now) is None


def test_it_runs_pauses_stops_and_starts(welding: InProcessCell) -> None:
    engine = engine_of(welding)
    seen = [engine.state(0)]
    for act in (engine.pause, engine.resume, engine.stop, engine.start):
        act(0)
        seen.append(engine.state(0))
    assert seen == ["RUNNING", "PAUSED", "RUNNING", "STOPPED", "RUNNING"]


def test_the_diagram_is_the_table() -> None:
    arrows = "".join(f"    {a} --> {b}: {cause}\n" for (a, cause), b in transitions().items())
    page = Path(__file__).parents[2] / "docs/operator/control.md"
    assert f"```mermaid\nstateDiagram-v2\n{arrows}```" in page.read_text()


@pytest.mark.parametrize(("before", "cause"), transitions())
def test_every_transition_of_the_table(
    before: EngineState, cause: str, welding: InProcessCell
) -> None:
    engine, arm = engine_of(welding), arm_of(welding)

    def act(name: str) -> None:
        (arm.emergency_stop if name == "error" else getattr(engine, name))(0)

    ways = {"PAUSED": "pause", "STOPPED": "stop", "ERROR": "error"}
    if before in ways:
        act(ways[before])
    assert engine.state(0) == before
    act(cause)
    assert engine.state(0) == transitions()[before, cause]


def test_metrics_count_blocks_and_the_distance_of_the_tool(welding: InProcessCell) -> None:
    cell = welding
    send(cell, "G0 X450 Y-100 Z400 A180 B0 C0", "G1 Y100 F6000")
    cell.run_while_busy()
    engine = engine_of(cell)
    whole = engine.metrics(cell.timed_cell.now)
    assert whole.gcode_executed == 2
    assert whole.simulation_time_s == cell.now
    engine.reset(cell.timed_cell.now)
    send(cell, "G1 Y-100 F6000")
    cell.run_while_busy()
    after = engine.metrics(cell.timed_cell.now)
    assert after.gcode_executed == 1
    assert after.total_distance_mm == pytest.approx(200.0, abs=1e-6)


def test_reading_changes_no_metric() -> None:
    distances = []
    for looks in (1, 37):
        cell = load_cell("g60_welding")
        send(cell, "G0 X450 Y-100 Z400 A180 B0 C0", "G2 X450 Y100 I0 J100 F6000")
        for _ in range(looks):
            cell.advance(3.7 / looks)
            engine_of(cell).metrics(cell.timed_cell.now)
        cell.run_while_busy()
        distances.append(engine_of(cell).metrics(cell.timed_cell.now).total_distance_mm)
    assert distances[0] == pytest.approx(distances[1], abs=1e-9)


def test_a_fault_is_an_error_until_reset(welding: InProcessCell) -> None:
    cell = welding
    engine = engine_of(cell)
    send(cell, "G0 A10")
    arm_of(cell).inject("axis_fault", {"axis": 2.0}, 0)
    assert engine.state(0) == "ERROR"
    assert arm_of(cell).status(0).error_message == "motor fault of J3: reset first"
    engine.reset(0)
    assert engine.state(0) == "RUNNING"


@pytest.mark.understudy(cell="g60_welding", rate=1.0, refusals=True)
def test_the_control_endpoint_commands_it(cell: StandIn) -> None:
    assert cell.do("pause")["state"] == "PAUSED"
    assert cell.do("now")["rate"] == 0.0
    assert cell.do("resume")["state"] == "RUNNING"
    assert cell.do("emergency_stop")["state"] == "ERROR"
    metrics = cell.do("reset")
    assert metrics["state"] == "RUNNING"
    assert metrics["gcode_executed"] == 0
    assert metrics["real_time_s"] > 0.0
