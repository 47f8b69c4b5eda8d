"""GripperController with the driver of a servo gripper and the virtual device, in a cell."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.devices.gripper.modbus.servo_cell import ServoCell

from understudy.devices.gripper.modbus import Make
from understudy.devices.gripper.modbus.assembly import MAKES
from understudy.errors import Refused
from understudy.ports.hand import HandStatus

EVERY_MAKE = pytest.mark.parametrize("make", list(MAKES))


def status(cell: ServoCell) -> HandStatus:
    return cell.gripper.status(cell.cell.now)


@EVERY_MAKE
def test_a_part_is_gripped_held_and_released(make: str) -> None:
    cell = ServoCell(make, grip_force_n=30.0)
    assert cell.grip() == "done"
    assert (cell.state, cell.parts.held_by("g60")) == ("GRIPPING", "part")
    found = status(cell)
    assert found.part_detected
    assert found.force_n == 30.0
    assert found.opening == pytest.approx(0.016, abs=1e-3)
    cell.advance(30.0)
    assert (cell.state, cell.lost) == ("GRIPPING", [])
    assert cell.release() == "done"
    assert (cell.state, cell.parts.held_by("g60")) == ("OPENED", "")
    assert not status(cell).part_detected


@EVERY_MAKE
def test_without_a_part_a_grip_is_missed_and_can_be_repeated(make: str) -> None:
    cell = ServoCell(make, width=0)
    for _ in range(2):
        assert cell.grip().startswith("MISSED")
        assert cell.state == "CLOSED"
    assert cell.release() == "done"
    assert cell.state == "OPENED"


@EVERY_MAKE
def test_a_part_that_slips_out_is_reported(make: str) -> None:
    cell = ServoCell(make)
    cell.grip()
    at = cell.cell.now / 1e9
    assert cell.gripper.inject("slip", {}, cell.cell.now) is None
    cell.advance(3.0)
    assert len(cell.lost) == 1
    assert cell.lost[0] - at < 0.5, "seen with the next readings of the status"
    assert cell.parts.held_by("g60") == ""


def test_a_part_that_is_too_heavy_for_the_force_is_not_carried() -> None:
    cell = ServoCell(fingers={"friction": 0.001})
    cell.grip()
    assert cell.parts.held_by("g60") == ""


@EVERY_MAKE
def test_a_drive_fault_is_an_error_until_the_reset(make: str) -> None:
    cell = ServoCell(make, width=0)
    cell.gripper.inject("drive_fault", {}, cell.cell.now)
    assert cell.gripper.active_faults()
    assert cell.grip() != "done"
    assert cell.state == "ERROR"
    cell.gripper.reset(cell.cell.now)
    assert not cell.gripper.active_faults()
    cell.advance(1.0)
    assert cell.release() == "done"


def test_blocked_fingers_look_like_a_part() -> None:
    cell = ServoCell(width=0)
    cell.gripper.start_grip(cell.cell.now)
    cell.advance(0.4)
    assert cell.gripper.inject("finger_blocked", {}, cell.cell.now) is None
    cell.advance(1.0)
    assert cell.state == "GRIPPING"
    refused = cell.gripper.inject("finger_blocked", {}, cell.cell.now)
    assert refused == Refused("the fingers do not move")


def test_lost_answers_are_asked_for_again() -> None:
    rules = {"loss": {"fault": "answer_lost", "on": "g60.gripper", "probability": 0.2}}
    cell = ServoCell(scenario={"rules": rules}, servo={"retries": 20}, close_timeout_ms=5000.0)
    assert cell.grip() == "done"
    assert cell.release() == "done"


def test_a_cut_cable_fails_the_command_and_the_driver_comes_back() -> None:
    cell = ServoCell(servo={"timeout_ms": 50})
    cell.gripper.inject("cable_cut", {"duration_s": 2.0}, cell.cell.now)
    assert cell.grip() == "the gripper is not connected: no answer to a write of register 0x03E8"
    assert cell.state == "ERROR"
    assert isinstance(cell.gripper.start_grip(cell.cell.now), Refused)
    cell.advance(10.0)
    assert cell.parts.held_by("g60") == "", "a command that has failed is not carried out later"
    assert status(cell).opening == 0.085
    assert cell.grip() == "done"


def test_a_held_part_stays_held_while_the_cable_is_cut() -> None:
    cell = ServoCell()
    cell.grip()
    cell.gripper.inject("cable_cut", {"duration_s": 2.0}, cell.cell.now)
    cell.advance(1.0)
    assert cell.state == "ERROR"
    cell.advance(9.0)
    assert (cell.state, cell.lost, cell.parts.held_by("g60")) == ("GRIPPING", [], "part")


@EVERY_MAKE
@pytest.mark.parametrize("closed", [False, True])
def test_frozen_registers_are_found_at_the_next_command(make: str, closed: bool) -> None:
    """What is written is acknowledged, and the status stays as it was."""
    cell = ServoCell(make)
    if closed:
        assert cell.grip() == "done"
    before = status(cell).opening
    assert cell.gripper.inject("registers_frozen", {}, cell.cell.now) is None
    began = cell.cell.now
    ended = cell.release() if closed else cell.grip()
    assert ended != "done"
    assert cell.cell.now - began < 10e9
    assert cell.state == "ERROR"
    assert status(cell).opening == before, "the fingers have not moved"
    assert cell.parts.held_by("g60") == ("part" if closed else "")
    moment = cell.run.snapshot()
    cell.gripper.reset(cell.cell.now)
    cell.advance(1.0)
    assert cell.release() == "done"
    cell.run.restore(moment)
    assert "servo gripper: the registers are frozen" in cell.gripper.active_faults()


STRANGE: dict[Make, list[int]] = {
    "robotiq_2f85": [0x2900, 0, 0],
    "onrobot_rg2": [500, 0x0100, 0, 0, 0, 0, 0, 0, 500],
    "dh_ag95": [7, 0, 0],
}
"""Registers of a status that the make does not have."""


@pytest.mark.parametrize("make", list(STRANGE))
def test_in_a_status_that_is_not_known_a_gripper_gets_no_command(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An activation would open it, with a part in the hand."""
    cell = ServoCell(make)
    assert cell.grip() == "done"
    hardware: Any = cell.gripper._hardware
    device = hardware.device
    row = MAKES[make]
    written: list[int] = []
    first = row.profile.status.address
    read = device.read
    monkeypatch.setattr(device, "write", lambda address, values, now: written.append(address))
    monkeypatch.setattr(
        device,
        "read",
        lambda address, count, now: (
            STRANGE[make][:count] if address == first else read(address, count, now)
        ),
    )
    cell.advance(1.0)
    assert cell.state == "ERROR"
    cell.gripper.start_grip(cell.cell.now)
    cell.gripper.start_release(cell.cell.now)
    cell.advance(10.0)
    assert written == []
    assert "its status is not known" in cell.gripper.status(cell.cell.now).error
    assert cell.parts.held_by("g60") == "part"


def test_halt_ends_the_ticket_and_moves_nothing() -> None:
    cell = ServoCell()
    cell.grip()
    cell.gripper.halt(cell.cell.now)
    cell.advance(2.0)
    assert cell.state == "GRIPPING"


def test_speed_and_force_reach_the_device() -> None:
    slow, fast = (ServoCell("dh_ag95", width=0, grip_speed_mm_s=speed) for speed in (20.0, 136.0))
    times = []
    for cell in (slow, fast):
        begun = cell.cell.now
        cell.grip()
        times.append((cell.cell.now - begun) / 1e9)
    assert times[0] == pytest.approx(0.095 / 0.020, abs=0.2)
    assert times[1] == pytest.approx(0.095 / 0.136, abs=0.2)
    registers = slow.gripper.registers()
    assert registers is not None
    assert registers.read(0x0101, 1, slow.cell.now) == [23], "50 N of 45 … 160 N"


def test_without_activation_at_the_start_the_first_command_activates() -> None:
    cell = ServoCell(width=0, servo={"activate_at_start": False})
    assert cell.state == "UNKNOWN"
    registers = cell.gripper.registers()
    assert registers is not None
    assert registers.read(0x07D0, 1, cell.cell.now) == [0]
    assert cell.grip().startswith("MISSED")


def refusing(cell: ServoCell, address: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device has no register at this address."""
    registers = cell.gripper.registers()
    assert registers is not None
    write = registers.write

    def without(at: int, values: Sequence[int], now: int) -> int:
        return 2 if at == address else write(at, values, now)

    monkeypatch.setattr(registers, "write", without)


def test_a_model_without_a_register_for_the_speed_is_driven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = ServoCell("dh_ag95")
    refusing(cell, 0x0102, monkeypatch)
    assert cell.grip() == "done"


def test_a_refused_command_is_an_error_with_its_register(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = ServoCell("dh_ag95")
    refusing(cell, 0x0103, monkeypatch)
    assert cell.grip() == "the gripper refuses a write of register 0x0103: exception 2"


def test_a_real_gripper_that_is_not_there_is_an_error_and_has_no_state_in_snapshots() -> None:
    cell = ServoCell(width=0, servo={"real": {"to": "127.0.0.1:1"}})
    assert cell.state == "ERROR", "no connection in time"
    assert isinstance(cell.gripper.start_grip(cell.cell.now), Refused)
    assert cell.gripper.registers() is None
    assert len(cell.gripper.callers()) == 1
    cell.run.restore(cell.run.snapshot())


@EVERY_MAKE
@pytest.mark.parametrize("pause", [0.001, 0.7, 2.2])
def test_a_snapshot_is_invisible(make: str, pause: float) -> None:
    cell = ServoCell(make)
    cell.gripper.start_grip(cell.cell.now)
    cell.advance(pause)
    saved = cell.run.snapshot()
    cell.advance(4.0)
    after = cell.run.snapshot()
    cell.run.restore(saved)
    cell.advance(4.0)
    assert cell.run.snapshot() == after
    again = ServoCell(make, width=0)
    again.run.restore(saved)
    again.advance(4.0)
    assert again.run.snapshot() == after
