"""A gripper in a whole cell: parts, programs, emergency stop, reset, snapshot, operator."""

from typing import Any

import pytest
from tests.devices.gripper.gripper_cell import GripperCell

from understudy.devices.gripper import Config
from understudy.errors import ConfigError
from understudy.units import NS_PER_MS

ABOVE = "G0 X500 Y0 Z200 A180 B0 C0"
DOWN, UP = "G1 Z70 F6000", "G1 Z200 F6000"
AWAY = "G0 X500 Y200 Z200 A180 B0 C0"
CUP: dict[str, Any] = {"type": "PNEUMATIC_VACUUM"}


def holding(gripper: dict[str, Any] | None = None) -> GripperCell:
    cell = GripperCell(gripper)
    cell.send(ABOVE, "G1 Z90 F6000" if gripper == CUP else DOWN)
    cell.grip()
    assert cell.state() == "GRIPPING"
    return cell


@pytest.mark.parametrize("gripper", [{}, CUP], ids=["fingers", "cup"])
def test_a_part_is_carried_and_placed(gripper: dict[str, Any]) -> None:
    cell = holding(gripper)
    cell.send(UP, AWAY)
    x, y, z = cell.cube()
    assert (x, y) == pytest.approx((500, 200), abs=0.01)
    assert z == pytest.approx(180 if gripper == CUP else 200, abs=0.01)
    cell.send("G1 Z90 F6000" if gripper == CUP else DOWN)
    cell.release()
    cell.send(UP)
    assert cell.cube() == pytest.approx((500, 200, 70), abs=0.01)
    assert cell.parts.reading("cube", cell.now).state == "resting"


def test_a_program_grips_with_its_own_outputs() -> None:
    cell = GripperCell()
    cell.send(ABOVE, DOWN, "M64 P8", "M66 P10 L3 Q1", "M65 P8", UP)
    assert cell.parts.held_by("g60") == "cube"
    assert cell.state() == "GRIPPING"
    cell.send("M64 P9", "M66 P9 L3 Q1", "M65 P9")
    assert cell.parts.held_by("g60") == ""


@pytest.mark.parametrize("gripper", [{}, CUP], ids=["fingers", "cup"])
def test_emergency_stop_reset_and_loss_of_power_hold_the_part(gripper: dict[str, Any]) -> None:
    cell = holding(gripper)
    cell.send(UP)
    lost: list[int] = []
    cell.gripper.on_lost(lost.append)
    before = cell.arm.digital_io().outputs
    for command in (cell.arm.emergency_stop, cell.arm.reset, cell.arm.disable, cell.arm.disconnect):
        command(cell.now)
        cell.run_for(2000)
        assert cell.parts.held_by("g60") == "cube", command.__name__
        assert cell.arm.digital_io().outputs == before, command.__name__
    assert lost == []


def test_a_released_part_in_the_air_falls() -> None:
    cell = holding()
    cell.send(UP)
    cell.release()
    assert cell.cube() == pytest.approx((500, 0, 70), abs=0.01)


@pytest.mark.parametrize("gripper", [{}, CUP], ids=["fingers", "cup"])
def test_a_snapshot_at_any_instant_gives_the_same_bytes(gripper: dict[str, Any]) -> None:
    cell, fresh = GripperCell(gripper), GripperCell(gripper)
    cell.send(ABOVE, "G1 Z90 F6000" if gripper == CUP else DOWN)
    start, ends = cell.now, cell.now + 2500 * NS_PER_MS

    def run(which: GripperCell, to: int) -> None:
        """Commands at fixed times; those before the present time are done."""
        for at, command in (
            (0, which.gripper.start_grip),
            (700, lambda now: which.gripper.inject("slip", {}, now)),
            (900, which.gripper.start_release),
            (960, which.gripper.start_grip),
            (1700, which.gripper.start_release),
        ):
            due = start + at * NS_PER_MS
            if which.now <= due < to:
                which.cell.advance(due)
                command(due)
        which.cell.advance(to)

    instants = [start + round(ms * NS_PER_MS) for ms in (5.3, 60, 113, 140, 333, 905, 1011.7, 1750)]
    written = {}
    for instant in instants:
        run(cell, instant)
        written[instant] = cell.written()
    run(cell, ends)
    whole = cell.written()
    for instant, paper in written.items():
        fresh.restore(paper)
        assert fresh.written() == paper
        run(fresh, ends)
        assert fresh.written() == whole, instant


def test_a_pin_that_the_robot_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"robots.g60.gripper.pins: there is no AI7"):
        GripperCell({"pins": {"force": 7}}, robots={
            "g60": {"kind": "arm", "io": {"analog_inputs": 6}, "gripper": {"pins": {"force": 7}}}
        })  # fmt: skip


@pytest.mark.parametrize(
    "keys",
    [
        {"type": "MAGNET"},
        {"close_timeout_ms": 0},
        {"vacuum_threshold_kpa": 60.0},
        {"settle_time": 50},
        {"pins": {"close": 32}},
        {"fingers": {"open_mm": -1}},
        {"calibration": {"vacuum_kpa_per_v": 10.0}},
        {"pins": {"close": 9}},
        {"pins": {"part": 8}},
        {"fingers": {"closed_mm": 79.5}},
        {"type": "PNEUMATIC_VACUUM", "cup": {"sealed_kpa": -60.0}},
    ],
)
def test_invalid_keys_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"robots.g60.gripper"):
        GripperCell(keys)


def test_the_defaults_are_those_of_the_design_document() -> None:
    config = Config()
    assert config.type == "PNEUMATIC_2FINGER"
    assert (config.close_timeout_ms, config.open_timeout_ms, config.settle_time_ms) == (
        500,
        500,
        50,
    )
    assert (config.vacuum_threshold_kpa, config.vacuum_timeout_ms) == (-60, 1000)
    assert (config.blowoff_time_ms, config.grip_force_n, config.grip_speed_mm_s) == (100, 50, 100)
