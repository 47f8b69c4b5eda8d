"""The mode manager in a cell: changeover, guards, failure, snapshot."""

import pytest
from tests.jobs.modes.cells import ModeCell

from understudy.errors import ConfigError, Refused
from understudy.jobs.modes.manager import PROGRESS, TRANSITIONS
from understudy.ports.modes import CHANGEOVER_STEPS

TOOLS = "{start: WELDING, tools: {WELDING: 1, PICKPLACE: 2}}"
MODES = ("WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL")


def test_every_step_can_end_fail_and_be_aborted() -> None:
    for step in CHANGEOVER_STEPS:
        events = {event for found, event in TRANSITIONS if found == step}
        assert {"failed", "abort", "done"} <= events
        assert step in PROGRESS
    assert TRANSITIONS["FAILED", "retry"] == "STOP_WELD"
    reachable = set(TRANSITIONS.values())
    assert reachable == {"SETTLED", "FAILED", *CHANGEOVER_STEPS}


@pytest.mark.parametrize("start", MODES)
@pytest.mark.parametrize("target", MODES)
def test_modes_without_tools_change_both_ways(start: str, target: str) -> None:
    cell = ModeCell(f"{{start: {start}}}")
    seen: list[tuple[str, str]] = []
    cell.modes.on_mode_changed(lambda old, new, now: seen.append((old, new)))
    refused = cell.request(target)
    if start == target:
        assert refused == Refused(f"the mode is {target} already")
        return
    assert refused is None
    assert cell.modes.is_changing_mode()
    assert cell.settle() == target
    assert seen == [(start, "CHANGEOVER"), ("CHANGEOVER", target)]
    assert cell.modes.get_change_progress() == 1.0


def test_a_tool_is_changed_by_hand_and_back() -> None:
    cell = ModeCell(TOOLS)
    assert cell.request("PICKPLACE") is None
    assert cell.settle() == "CHANGEOVER"
    status = cell.modes.status(cell.now)
    assert (status.step, status.tool, status.speed_limit_mm_s) == ("CONFIRM_TOOL", 2, 250.0)
    assert 0.0 < status.progress < 1.0
    assert cell.modes.confirm_tool(cell.now) is None
    assert cell.settle() == "PICKPLACE"
    assert cell.arm.firmware.reading(cell.now).tool == 2
    assert cell.request("WELDING") is None
    cell.settle()
    assert cell.modes.confirm_tool(cell.now) is None
    assert cell.settle() == "WELDING"
    assert cell.arm.firmware.reading(cell.now).tool == 1


def test_the_arm_parks_before_the_tool_is_changed() -> None:
    park = "[10, -30, 60, 0, 60, 0]"
    cell = ModeCell(TOOLS[:-1] + f", park_joints_deg: {{WELDING: {park}}}}}")
    cell.request("PICKPLACE")
    cell.settle()
    assert cell.step() == "CONFIRM_TOOL"
    joints = cell.arm.joint_state(cell.now).positions
    assert joints[0] == pytest.approx(0.17453, abs=1e-4)


def test_post_flow_is_awaited_and_a_burning_arc_refuses() -> None:
    cell = ModeCell(TOOLS)
    assert cell.lines("M7", "M3") is None
    assert cell.arc
    refused = cell.request("PICKPLACE")
    assert refused is not None
    assert "the arc is on" in refused.reason
    assert cell.lines("M5", "M9") is None
    phase = cell.components["g60.welder"].status(cell.now).phase
    assert phase == "PostFlow"
    assert cell.request("PICKPLACE") is None
    assert cell.step() == "STOP_WELD"
    began = cell.now
    cell.cell.run_while(lambda: cell.step() == "STOP_WELD")
    assert cell.components["g60.welder"].status(cell.now).phase == "Idle"
    assert cell.now > began


def test_a_moving_robot_refuses() -> None:
    cell = ModeCell(TOOLS)
    cell.arm.send_gcode("G1 A20 F600", cell.now)
    refused = cell.request("MANUAL")
    assert refused is not None
    assert "at rest" in refused.reason
    cell.cell.run_while_busy()
    assert cell.request("MANUAL") is None


def test_an_emergency_stop_fails_the_changeover_and_retry_ends_it() -> None:
    park = "[90, -30, 60, 0, 60, 0]"
    cell = ModeCell(TOOLS[:-1] + f", park_joints_deg: {{WELDING: {park}}}}}")
    cell.request("PICKPLACE")
    cell.cell.run_while(lambda: cell.step() != "PARK_TORCH")
    cell.cell.advance(0.2)
    cell.arm.emergency_stop(cell.now)
    cell.settle()
    status = cell.modes.status(cell.now)
    assert (status.mode, status.step) == ("CHANGEOVER", "FAILED")
    assert "emergency stop" in status.error
    assert "retry or abort" in str(cell.request("MANUAL"))
    assert "emergency stop" in str(cell.modes.retry(cell.now))
    cell.arm.reset(cell.now)
    cell.arm.enable(cell.now)
    assert cell.modes.retry(cell.now) is None
    cell.settle()
    assert cell.step() == "CONFIRM_TOOL"


PLATE = (
    "{start: MANUAL, tools: {MANUAL: 1, PICKPLACE: 2}, calibrate: {position: {x: 500, y: 0, z: 130}"
    ", plate_z_mm: %s}}"
)


def test_abort_goes_back_if_the_tool_is_still_there() -> None:
    cell = ModeCell(TOOLS)
    cell.request("PICKPLACE")
    cell.settle()
    assert cell.modes.abort(cell.now) is None
    assert cell.modes.current_mode == "WELDING"
    assert cell.modes.abort(cell.now) is not None


def test_abort_with_the_other_tool_leads_to_manual() -> None:
    wrong_plate = PLATE.replace("MANUAL", "WELDING") % "97"
    cell = ModeCell(wrong_plate, touches=True)
    cell.request("PICKPLACE")
    cell.settle()
    cell.modes.confirm_tool(cell.now)
    cell.settle()
    assert cell.step() == "FAILED"
    assert cell.modes.abort(cell.now) is None
    assert cell.modes.current_mode == "MANUAL"


@pytest.mark.parametrize(
    ("plate", "mode", "missed"),
    [
        ("100", "PICKPLACE", ""),
        ("97", "CHANGEOVER", "3.00 mm above the top of the plate"),
        ("103", "CHANGEOVER", "3.00 mm below the top of the plate"),
    ],
)
def test_a_new_tool_touches_the_plate(plate: str, mode: str, missed: str) -> None:
    cell = ModeCell(PLATE % plate, touches=True)
    straight: list[bool] = []
    cell.components["g60.modes_motion"].on_started(lambda to, now: straight.append(to.line))
    assert cell.request("PICKPLACE") is None
    cell.settle()
    assert cell.modes.confirm_tool(cell.now) is None
    assert cell.settle() == mode
    assert straight == ([False] if missed else [False, True])  # to the plate, and up from it
    status = cell.modes.status(cell.now)
    assert status.step == ("FAILED" if missed else "SETTLED")
    assert missed in status.error
    assert cell.lines("G0 A0") is None
    assert cell.arm.firmware.modal.distance == "G90"


def test_a_missing_plate_fails() -> None:
    cell = ModeCell(PLATE.replace("z: 130", "z: 300") % "100", touches=True)
    cell.request("PICKPLACE")
    cell.settle()
    cell.modes.confirm_tool(cell.now)
    assert cell.settle() == "CHANGEOVER"
    assert "touched nothing" in cell.modes.status(cell.now).error
    assert cell.lines("G0 A0") is None


def test_a_snapshot_in_every_step_is_invisible() -> None:
    def run(restored: bool) -> tuple[object, ...]:
        cell = ModeCell(PLATE % "100", touches=True)
        cell.request("PICKPLACE")
        while True:
            snapshot = cell.cell.snapshot()
            if restored:
                cell.cell.restore(snapshot)
            status = cell.modes.status(cell.now)
            if status.step == "CONFIRM_TOOL":
                cell.modes.confirm_tool(cell.now)
            elif status.mode == "PICKPLACE":
                return cell.now, cell.arm.joint_state(cell.now), status, snapshot
            else:
                at = cell.cell.exchange.next_wake()
                assert at is not None
                cell.cell.advance_to(at)

    assert run(restored=False) == run(restored=True)


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        ("{start: CHANGEOVER}", "start"),
        ("{strat: MANUAL}", "did you mean"),
        ("{tools: {WELDING: 7}}", "no such tool"),
        ("{change: automatic}", "no tool changer"),
        ("{tools: {WELDIN: 1}}", "WELDING"),
    ],
)
def test_wrong_keys_are_named(modes: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModeCell(modes)
