"""Tool changes at docks: the sequence, its sensors and its failures, on the parts of a cell."""

import math
from pathlib import Path

import pytest
from tests.jobs.tools.tool_cell import ToolCell

from understudy.app.validate import validate
from understudy.devices.tool_changer import FAULTS, Config
from understudy.errors import ConfigError, Refused
from understudy.jobs.tools.manager import TRANSITIONS, WORKING, Phase
from understudy.ports.tools import ToolDefinition
from understudy.space.pose import Pose, pose_of

TORCH_DOCK, GRIPPER_DOCK = (0.3, 0.4, 0.3), (0.3, -0.4, 0.3)


def flange(cell: ToolCell) -> Pose:
    assert cell.arm.tools is not None
    return cell.arm.tools.flange(cell.now)


def phases_of(cell: ToolCell, tool: int) -> list[Phase]:
    """The phases of a change, as they were entered."""
    seen: list[Phase] = []
    assert not isinstance(cell.changer.change(tool, cell.now), Refused)
    while cell.changer.busy():
        phase = cell.changer.status(cell.now).phase
        if not seen or seen[-1] != phase:
            seen.append(phase)
        cell.cell.advance(0.02)
    return seen


def test_a_tool_is_put_into_its_dock_and_the_next_one_is_taken() -> None:
    cell = ToolCell()
    assert cell.lock.status(cell.now).docked == (2,)
    assert cell.change(2) is None
    status = cell.lock.status(cell.now)
    assert (status.tool, status.docked) == (2, (1,))
    assert status.locked
    assert status.present
    assert not status.open
    assert cell.tools.get_active_tool(cell.now) == 2
    assert flange(cell)[:3] == pytest.approx((0.3, -0.4, 0.4), abs=1e-5)
    done = cell.changer.status(cell.now)
    assert (done.phase, done.tool, done.progress, done.error) == ("IDLE", 2, 1.0, "")


def test_there_and_back_again_ends_where_it_began() -> None:
    cell = ToolCell()
    for tool in (2, 1, 0, 2, 0, 1):
        assert cell.change(tool) is None
        assert cell.lock.status(cell.now).tool == tool
        assert cell.tools.get_active_tool(cell.now) == tool
        assert not cell.arm.io.digital_output(5)  # the valve is off between changes
    assert cell.lock.status(cell.now).docked == (2,)


def test_the_phases_are_those_of_the_table() -> None:
    seen = phases_of(ToolCell(), 2)
    moves = {"APPROACH_PUT", "INSERT", "LEAVE", "APPROACH_TAKE", "COUPLE", "PULL"}
    assert moves <= set(seen)
    order = [WORKING.index(phase) for phase in seen]
    assert order == sorted(order)


def test_every_phase_that_works_can_fail_and_be_cancelled() -> None:
    for phase in WORKING:
        assert TRANSITIONS[phase, "failed"] == "FAULT"
        assert TRANSITIONS[phase, "cancel"] == "FAULT"
    reached = {"CLEAR", *(after for (_, _), after in TRANSITIONS.items())}
    assert reached == {"IDLE", "FAULT", *WORKING}


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


def test_changes_that_cannot_be_made_are_refused() -> None:
    cell = ToolCell()
    assert cell.change(1) == Refused("T1 is mounted already")
    no_dock = cell.change(3)
    assert isinstance(no_dock, Refused)
    assert "T3 has no dock" in no_dock.reason
    assert isinstance(cell.change(7), Refused)
    assert not isinstance(cell.changer.change(2, cell.now), Refused)
    assert cell.changer.change(2, cell.now) == Refused("a tool change is under way")


def test_sensors_that_do_not_fit_to_the_active_tool_refuse_a_change() -> None:
    cell = ToolCell()
    cell.lock.inject("locked_sensor_stuck", {"value": 0.0}, cell.now)
    refused = cell.change(2)
    assert isinstance(refused, Refused)
    assert "report no locked tool" in refused.reason
    empty = ToolCell(tool=0)
    empty.lock.inject("locked_sensor_stuck", {"value": 1.0}, empty.now)
    assert isinstance(empty.change(2), Refused)


def test_outputs_of_the_old_tool_are_off_before_it_moves() -> None:
    cell = ToolCell()
    cell.arm.io.set_digital_output(1, True, cell.now)
    assert not isinstance(cell.changer.change(2, cell.now), Refused)
    assert not cell.arm.io.digital_output(1)


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "values", "said", "tool"),
    [
        ("unlock_fails", {}, "T1 does not come off", 1),
        ("locked_sensor_stuck", {"value": 1.0}, "T1 does not come off", 1),
        ("present_sensor_stuck", {"value": 1.0}, "T1 did not stay in its dock", 1),
        ("tool_missing", {"tool": 2.0}, "T2 is not in its dock", 0),
        ("lock_fails", {}, "T2 is not locked", 0),
    ],
)
def test_a_fault_ends_the_change_with_its_reason_and_a_retry_completes_it(
    fault: str, values: dict[str, float], said: str, tool: int
) -> None:
    cell = ToolCell()
    cell.lock.inject(fault, values, cell.now)
    refused = cell.change(2)
    assert isinstance(refused, Refused)
    assert said in refused.reason
    assert cell.changer.status(cell.now).phase == "FAULT"
    assert cell.changer.status(cell.now).error == refused.reason
    assert cell.tools.get_active_tool(cell.now) == tool
    assert cell.lock.active_faults()
    cell.lock.reset(cell.now)
    cell.cell.advance(0.5)
    assert not cell.lock.active_faults()
    if said == "T1 did not stay in its dock":  # the torch is in its dock, and the lock is open
        assert isinstance(cell.change(2), Refused)
        assert cell.changer.exchanged(0, cell.now) is None
        cell.run()
    assert cell.change(2) is None
    assert cell.lock.status(cell.now).tool == 2


def test_the_time_of_a_sensor_is_a_key() -> None:
    cell = ToolCell(changer="{sensor_timeout_ms: 100, lock_ms: 300, unlock_ms: 50}")
    refused = cell.change(2)
    assert isinstance(refused, Refused)
    assert "T2 is not locked" in refused.reason


def test_an_emergency_stop_ends_the_change_and_keeps_the_tool() -> None:
    cell = ToolCell()
    assert not isinstance(cell.changer.change(2, cell.now), Refused)
    cell.cell.advance(0.3)
    cell.arm.emergency_stop(cell.now)
    cell.run()
    assert cell.ended
    assert cell.ended[-1][1] is not None
    assert cell.changer.status(cell.now).phase == "FAULT"
    assert cell.lock.status(cell.now).tool == 1
    assert not cell.arm.io.digital_output(5)
    cell.arm.reset(cell.now)
    cell.arm.enable(cell.now)
    assert cell.change(2) is None


def test_a_cancelled_change_stops_where_it_is() -> None:
    cell = ToolCell()
    assert not isinstance(cell.changer.change(2, cell.now), Refused)
    cell.cell.advance(0.3)
    cell.changer.cancel(cell.now)
    cell.run()
    assert (cell.ended, cell.changer.status(cell.now).phase) == ([], "FAULT")
    assert cell.changer.next_wake() is None
    assert cell.change(2) is None


def test_a_tool_that_is_unlocked_outside_its_dock_falls() -> None:
    cell = ToolCell()
    said: list[str] = []
    cell.lock.on_event(lambda event: said.append(event.alarm))
    cell.arm.io.set_digital_output(5, True, cell.now)
    cell.cell.advance(0.2)
    status = cell.lock.status(cell.now)
    assert (status.tool, status.fallen, status.locked, status.present) == (0, 1, False, False)
    assert said == ["T1 fell off"]
    assert "T1 fell off" in cell.lock.active_faults()
    assert cell.lock.advice("T1 fell off")
    cell.lock.reset(cell.now)
    assert cell.lock.status(cell.now).docked == (1, 2)


# ── by hand, and in programs ────────────────────────────────────────────────────────────────────


def test_a_tool_that_is_mounted_by_hand_is_confirmed_by_the_sensors() -> None:
    cell = ToolCell()
    assert isinstance(cell.changer.exchanged(0, cell.now), Refused)
    assert cell.lock.actions()["mount_by_hand"].run(cell.now, 0.0) is None
    assert isinstance(cell.changer.exchanged(3, cell.now), Refused)
    assert cell.lock.mount_by_hand(cell.now, 3) is None
    assert isinstance(cell.lock.mount_by_hand(cell.now, 8), Refused)
    assert cell.changer.exchanged(3, cell.now) is None
    cell.run()
    assert cell.changer.mounted(cell.now) == 3
    assert cell.lock.status(cell.now).docked == (1, 2)


def test_m6_is_refused_unless_the_sensors_see_the_change() -> None:
    cell = ToolCell()
    refused = cell.lines("T0 M6")
    assert isinstance(refused, Refused)
    assert "still reports a tool" in refused.reason
    assert cell.tools.get_active_tool(cell.now) == 1
    cell.arm.send_gcode("", cell.now)
    refused = cell.lines("T2 M6")
    assert isinstance(refused, Refused)
    assert "was not opened since T1 was mounted" in refused.reason
    empty = ToolCell(tool=0)
    refused = empty.lines("T2 M6")
    assert isinstance(refused, Refused)
    assert "T2 is not at the flange" in refused.reason


def test_the_generated_lines_change_the_tool() -> None:
    cell = ToolCell()
    text = cell.tools.generate_tool_change_gcode(2, cell.now)
    assert isinstance(text, str)
    fell: list[str] = []
    cell.lock.on_event(lambda event: fell.append(event.alarm))
    assert cell.lines(*text.splitlines()) is None
    assert fell == []
    assert cell.lock.status(cell.now).tool == 2
    assert cell.tools.get_active_tool(cell.now) == 2
    assert cell.arm.firmware.modal.tool_offset == "G43"
    assert flange(cell)[:3] == pytest.approx((0.3, -0.4, 0.4), abs=1e-5)


def test_the_generated_lines_stop_if_the_tool_is_missing() -> None:
    cell = ToolCell()
    cell.lock.inject("tool_missing", {"tool": 2.0}, cell.now)
    text = cell.tools.generate_tool_change_gcode(2, cell.now)
    assert isinstance(text, str)
    refused = cell.lines(*text.splitlines())
    assert isinstance(refused, Refused)
    assert "T2" in refused.reason
    assert flange(cell)[:3] == pytest.approx(GRIPPER_DOCK, abs=1e-5)  # it did not go on


# ── part and device ─────────────────────────────────────────────────────────────────────────────


def test_a_restored_change_goes_on_in_the_same_way() -> None:
    cell = ToolCell()
    assert not isinstance(cell.changer.change(2, cell.now), Refused)
    for _ in range(6):
        cell.cell.advance(0.7)
        saved = cell.cell.snapshot()
        twin = ToolCell()
        twin.cell.restore(saved)
        for each in (cell, twin):
            each.cell.advance(0.1)
        assert twin.cell.snapshot() == cell.cell.snapshot()
    cell.run()
    assert cell.lock.status(cell.now).tool == 2


def test_a_locked_changer_sleeps() -> None:
    cell = ToolCell()
    assert cell.lock.next_wake() is None
    assert cell.change(0) is None
    cell.cell.advance(0.5)
    assert cell.lock.next_wake() is None


def test_docks_and_docked_tools_are_drawn() -> None:
    cell = ToolCell()
    drawn = {body.name: body for body in cell.lock.bodies()}
    assert set(drawn) == {"dock 1", "dock 2", "gripper in its dock"}
    assert drawn["gripper in its dock"].position == pytest.approx((0.3, -0.4, 0.26))
    assert math.isclose(drawn["gripper in its dock"].height, 0.08)
    cell.change(2)
    assert {body.name for body in cell.lock.bodies()} == {"dock 1", "dock 2", "torch in its dock"}


def test_two_sensors_need_two_inputs() -> None:
    with pytest.raises(ConfigError, match="the same input"):
        ToolCell(changer="{locked_input: 6}")


def test_modes_change_the_tool_at_the_docks() -> None:
    modes = "{start: WELDING, change: automatic, tools: {WELDING: 1, PICKPLACE: 2}}"
    cell = ToolCell(more=f"welder: {{}}\n    modes: {modes}")
    manager = cell.components["g60.modes"]
    assert manager.request_mode_change("PICKPLACE", cell.now) is None
    cell.cell.run_while(lambda: manager.next_wake() is not None or cell.changer.busy())
    assert manager.current_mode == "PICKPLACE"
    assert cell.lock.status(cell.now).tool == 2


def test_a_definition_is_a_value() -> None:
    assert ToolDefinition(1, dock=pose_of((1, 2, 3, 0, 0, 0))).outputs == ()


def test_validate_proves_the_generated_lines_and_finds_an_m6_without_its_dock() -> None:
    cell = ToolCell()
    text = cell.tools.generate_tool_change_gcode(2, cell.now)
    assert isinstance(text, str)
    report = validate(text + "M2\n", cell.config)
    assert report.passed, report.violations
    assert report.cycle_time["motion_s"] > 5.0
    wrong = validate("G0 X300 Y0 Z400\nT2 M6\nM2\n", cell.config)
    assert not wrong.passed
    (found,) = wrong.violations
    assert found.line == 2
    assert "was not opened since T1" in found.message


def test_the_page_has_the_table_the_keys_and_the_faults() -> None:
    page = (Path(__file__).parents[3] / "docs/devices/tool_changer.md").read_text()
    rows = {key: after for key, after in TRANSITIONS.items() if key[1] not in ("failed", "cancel")}
    arrows = "".join(f"    {a} --> {b}: {event}\n" for (a, event), b in rows.items())
    assert f"stateDiagram-v2\n{arrows}```" in page
    for name in (*Config.__struct_fields__, *FAULTS, *ToolCell().lock.actions()):
        assert f"`{name}`" in page
