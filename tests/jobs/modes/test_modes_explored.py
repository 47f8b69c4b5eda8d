"""Changeovers at the docks of a tool changer, and paths through all commands and faults."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jobs.modes.cells import ModeCell
from tests.jobs.tools.tool_cell import ToolCell

from understudy.jobs.modes.manager import PROGRESS, TRANSITIONS, ModeManager

AUTOMATIC = "modes: {start: WELDING, tools: {WELDING: 1, PICKPLACE: 2}, change: automatic}"


def settled(cell: ToolCell, modes: ModeManager) -> str:
    cell.cell.run_while(lambda: modes.next_wake() is not None)
    return modes.current_mode


def test_the_tool_changer_changes_the_tool_both_ways() -> None:
    cell = ToolCell(more=AUTOMATIC)
    modes: ModeManager = cell.components["g60.modes"]
    for mode, tool in (("PICKPLACE", 2), ("WELDING", 1), ("MANUAL", 1)):
        assert modes.request_mode_change(mode, cell.now) is None  # type: ignore[arg-type]
        assert settled(cell, modes) == mode
        assert cell.arm.firmware.reading(cell.now).tool == tool


def test_a_lost_sensor_fails_the_change_and_a_retry_ends_it() -> None:
    cell = ToolCell(more=AUTOMATIC)
    modes: ModeManager = cell.components["g60.modes"]
    cell.arm.io.set_digital_input(5, True, cell.now)  # the lock never reports that it is open
    modes.request_mode_change("PICKPLACE", cell.now)
    assert settled(cell, modes) == "CHANGEOVER"
    status = modes.status(cell.now)
    assert status.step == "FAILED"
    assert status.error
    cell.arm.io.release_digital_input(5, cell.now)
    cell.cell.advance(1.0)  # the lock closes again
    assert modes.retry(cell.now) is None
    assert settled(cell, modes) == "PICKPLACE"
    assert cell.arm.firmware.reading(cell.now).tool == 2


# ── every path ──

TARGETS = ("WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL")
EVENTS: dict[str, Callable[[ModeCell], object]] = {
    **{
        f"request {mode}": lambda cell, mode=mode: cell.request(mode)  # type: ignore[misc]
        for mode in TARGETS
    },
    "confirm": lambda cell: cell.modes.confirm_tool(cell.now),
    "retry": lambda cell: cell.modes.retry(cell.now),
    "abort": lambda cell: cell.modes.abort(cell.now),
    "M7": lambda cell: cell.arm.send_gcode("M7", cell.now),
    "M3": lambda cell: cell.arm.send_gcode("M3", cell.now),
    "M5": lambda cell: cell.arm.send_gcode("M5", cell.now),
    "M64": lambda cell: cell.arm.send_gcode("M64 P0", cell.now),
    "pin": lambda cell: cell.arm.io.set_digital_output(0, True, cell.now),
    "move": lambda cell: cell.arm.send_gcode("G1 A5 F600", cell.now),
    "back": lambda cell: cell.arm.send_gcode("G1 A0 F600", cell.now),
    "clear": lambda cell: cell.arm.send_gcode("", cell.now),
    "stop": lambda cell: cell.arm.stop(cell.now),
    "emergency stop": lambda cell: cell.arm.emergency_stop(cell.now),
    "reset": lambda cell: (cell.arm.reset(cell.now), cell.arm.enable(cell.now)),
    "arc fault": lambda cell: cell.components["g60.welder"].inject(
        "arc_fault", {"duration_s": 1.0}, cell.now
    ),
    "snapshot": lambda cell: cell.cell.restore(cell.cell.snapshot()),
}
WAITS = st.sampled_from([0.0, 0.001, 0.3, 3.0])
PATHS = st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), WAITS), max_size=25)
MODES = (
    "{start: WELDING, tools: {WELDING: 1, PICKPLACE: 2},"
    " park_joints_deg: {WELDING: [9, -30, 60, 0, 60, 0]}}"
)


@settings(max_examples=40, deadline=None)
@given(path=PATHS)
def test_the_arc_burns_in_welding_only_and_every_step_is_defined(
    path: list[tuple[str, float]],
) -> None:
    cell = ModeCell(MODES)
    wrong: list[str] = []

    def watch(pin: object) -> None:
        if cell.arc and cell.modes.current_mode != "WELDING":
            wrong.append(f"arc in {cell.modes.current_mode}")

    cell.arm.io.on_change(watch)
    cell.modes.on_mode_changed(lambda old, new, now: watch(None))
    for event, wait in path:
        EVENTS[event](cell)
        cell.cell.advance(wait)
        step = cell.modes.status(cell.now).step
        assert (step == "SETTLED") == (cell.modes.current_mode != "CHANGEOVER")
        assert step == "FAILED" or step in PROGRESS
        watch(None)
    assert not wrong
    cell.cell.advance(1000.0)
    assert cell.step() in ("SETTLED", "FAILED", "CONFIRM_TOOL"), "no step waits for ever"


@pytest.mark.parametrize("step", sorted({step for step, _ in TRANSITIONS} - {"SETTLED"}))
def test_every_step_can_be_left(step: str) -> None:
    ways = {after for (before, _), after in TRANSITIONS.items() if before == step}
    assert "SETTLED" in ways
