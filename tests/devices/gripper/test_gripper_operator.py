"""Grippers at the operator's table, in plots and events, and with blocking calls in tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.devices.gripper.gripper_cell import GripperCell, cell_text

from understudy.app.stand_in import StandIn
from understudy.ports import device as ports
from understudy.ports.device import DeviceEvent
from understudy.ports.hmi import HasPanel


@pytest.fixture
def live(tmp_path: Path) -> Iterator[StandIn]:
    file = tmp_path / "gripper.yaml"
    file.write_text(cell_text())
    with StandIn(str(file)) as cell:
        yield cell


def test_blocking_calls_let_simulated_time_pass(live: StandIn) -> None:
    gripper = live.gripper()
    assert gripper.is_ready()
    assert not gripper.grip(), "there is no part"
    assert gripper.reason.startswith("MISSED")
    assert gripper.release()
    assert live.now == pytest.approx(0.26 + 0.26, abs=0.02)
    live.inject("valve_stuck", on="g60.gripper")
    assert not gripper.grip(timeout_ms=80)
    assert "no part and not closed" in gripper.reason
    assert not gripper.has_part()
    assert not gripper.grip(timeout_ms=-5)


def test_operator_commands(live: StandIn) -> None:
    row = live.do("gripper_close")
    assert row["name"] == "g60.gripper"
    assert row["panel"][0].value == "CLOSING"
    live.forward(0.5)
    (row,) = (each for each in live.do("devices") if each["kind"] == "gripper")
    assert [(each.label, each.value) for each in row["panel"][:2]] == [
        ("State", "CLOSED"), ("Part", False)
    ]  # fmt: skip
    live.do("gripper_open")
    live.forward(0.5)
    assert live.gripper().is_ready()
    with pytest.raises(RuntimeError, match="vacuum_on"):
        live.do("vacuum_on")


@pytest.mark.parametrize(
    "protocol",
    [ports.Device, ports.HasActions, ports.Plotted, ports.ReportsEvents, HasPanel],
)
def test_a_gripper_offers(protocol: type) -> None:
    assert isinstance(GripperCell().gripper, protocol)


def test_events_alarms_and_advice() -> None:
    cell = GripperCell()
    events: list[DeviceEvent] = []
    cell.gripper.on_event(events.append)
    cell.send("G0 X500 Y0 Z200 A180 B0 C0", "G1 Z70 F6000")
    cell.grip()
    cell.gripper.inject("slip", {}, cell.now)
    cell.run_for(500)
    assert [event.text for event in events] == ["Closing", "Settling", "Holding", "Rest", "Lost"]
    (alarm,) = (event.alarm for event in events if event.alarm)
    assert alarm == "gripper fault: the part was lost"
    assert "air pressure" in cell.gripper.advice(alarm)
    assert cell.gripper.advice("the wire is stuck") == ""


def test_plots_of_fingers_and_cup() -> None:
    cell, cup = GripperCell(), GripperCell({"type": "PNEUMATIC_VACUUM"})
    assert [(row.name, row.unit, row.value(0)) for row in cell.gripper.plots()] == [
        ("opening_mm", "mm", pytest.approx(80.0)), ("grip_force_n", "N", 0.0)
    ]  # fmt: skip
    assert [(row.name, row.unit, row.value(0)) for row in cup.gripper.plots()] == [
        ("vacuum_kpa", "kPa", 0.0)
    ]
