"""GripperController on pins whose inputs the test sets: no simulated gripper."""

from collections.abc import Callable

import pytest
from msgspec import convert

from understudy.agenda import advance
from understudy.devices.gripper import Config
from understudy.devices.gripper.controller import (
    MISSED,
    FingerValve,
    GripperController,
    VacuumValve,
)
from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.ports.device import Device
from understudy.ports.hand import Hand
from understudy.simulation.io.virtual_io import Config as PinsConfig
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.units import NS_PER_MS

CLOSE, OPEN, VACUUM_ON, BLOW_OFF = 8, 9, 10, 11
CLOSED, OPENED, PART, VACUUM_OK = 8, 9, 10, 11
VACUUM = 5


class Wired:
    """A controller and its pins on one time axis in ms; the test sets the inputs."""

    def __init__(self, **keys: object) -> None:
        config = convert(keys, Config)
        self.io = VirtualIO(PinsConfig())
        vacuum = config.type == "PNEUMATIC_VACUUM"
        valve = VacuumValve(config, self.io) if vacuum else FingerValve(config, self.io)
        self.gripper = GripperController("g60.gripper", config, valve)
        self.ended: list[tuple[float, Ticket, str]] = []
        self.lost: list[float] = []
        self.now = 0
        self.gripper.on_finished(
            lambda ticket, refused, now: self.ended.append(
                (now / NS_PER_MS, ticket, refused.reason if refused else "")
            )
        )
        self.gripper.on_lost(lambda now: self.lost.append(now / NS_PER_MS))

    def run(self, to_ms: float) -> "Wired":
        self.now = round(to_ms * NS_PER_MS)
        advance([self.io, self.gripper], self.now)
        return self

    def set(self, at_ms: float, pin: int, level: bool) -> "Wired":
        self.run(at_ms)
        self.io.set_digital_input(pin, level, self.now)
        return self.run(at_ms)

    def start(self, command: Callable[..., Ticket | Refused]) -> Ticket:
        ticket = command(self.now)
        assert not isinstance(ticket, Refused)
        return ticket

    def outputs(self) -> list[tuple[float, int, bool]]:
        return [(c.at / NS_PER_MS, c.pin, c.value) for c in self.io.history() if c.bank == "DO"]

    @property
    def state(self) -> str:
        return self.gripper.status(self.now).state


def as_ports(gripper: GripperController) -> tuple[Hand, Device]:
    """Checks the signatures with mypy."""
    return gripper, gripper


def test_a_part_within_the_time_is_held_after_the_settle_time() -> None:
    cell = Wired().set(0, OPENED, True)
    assert cell.state == "OPENED"
    ticket = cell.start(cell.gripper.start_grip)
    assert cell.set(20, OPENED, False).state == "CLOSING"
    cell.set(120, PART, True).run(169)
    assert cell.ended == []
    cell.run(170)
    assert cell.ended == [(170, ticket, "")]
    assert cell.state == "GRIPPING"
    assert cell.outputs() == [(0, CLOSE, True), (170, CLOSE, False)]


def test_closed_without_a_part_is_missed_and_the_fingers_stay_closed() -> None:
    cell = Wired().set(0, OPENED, True)
    ticket = cell.start(cell.gripper.start_grip)
    cell.set(20, OPENED, False).set(200, CLOSED, True).run(400)
    assert cell.ended == [(250, ticket, MISSED)]
    assert cell.state == "CLOSED"
    assert not cell.io.digital().outputs


def test_a_part_that_is_gone_after_the_settle_time_is_missed() -> None:
    cell = Wired()
    cell.start(cell.gripper.start_grip)
    cell.set(100, PART, True).set(120, PART, False).run(300)
    assert [(at, reason) for at, _, reason in cell.ended] == [(150, MISSED)]


def test_a_time_out_is_an_error_that_a_new_command_clears() -> None:
    cell = Wired().set(0, OPENED, True)
    cell.start(cell.gripper.start_grip)
    cell.run(600)
    said = "no part and not closed within 500 ms: the fingers are still open"
    assert [(at, reason) for at, _, reason in cell.ended] == [(500, said)]
    assert (cell.state, cell.gripper.status(cell.now).error) == ("ERROR", said)
    assert cell.gripper.active_faults() == (f"gripper fault: {said}",)
    assert not cell.io.digital().outputs
    cell.start(cell.gripper.start_grip)
    assert cell.state == "CLOSING"
    assert cell.gripper.active_faults() == ()


def test_a_given_time_out_replaces_the_configured_one() -> None:
    cell = Wired()
    cell.start(lambda now: cell.gripper.start_grip(now, timeout_ms=80))
    cell.run(1000)
    assert [at for at, _, _ in cell.ended] == [80]
    assert isinstance(cell.gripper.start_grip(cell.now, timeout_ms=-1), Refused)
    assert isinstance(cell.gripper.start_grip(cell.now, timeout_ms=float("nan")), Refused)


@pytest.mark.parametrize("command", ["start_grip", "start_release"])
def test_both_end_sensors_are_an_error(command: str) -> None:
    cell = Wired().set(0, OPENED, True)
    cell.start(getattr(cell.gripper, command))
    cell.run(10)
    if command == "start_release":
        cell.start(cell.gripper.start_grip)
    cell.set(20, CLOSED, True).run(100)
    assert cell.state == "ERROR"
    assert "at the same time" in cell.ended[-1][2]


def test_a_release_is_done_when_opened_and_the_part_sensor_is_clear() -> None:
    cell = Wired().set(0, PART, True)
    ticket = cell.start(cell.gripper.start_release)
    cell.set(100, OPENED, True).run(200)
    assert cell.ended == [], "the part sensor is still on"
    assert cell.state == "OPENING"
    cell.set(210, PART, False).run(400)
    assert cell.ended == [(260, ticket, "")]
    assert cell.outputs() == [(0, OPEN, True), (260, OPEN, False)]


def test_a_part_sensor_that_does_not_clear_fails_the_release() -> None:
    cell = Wired().set(0, PART, True)
    cell.start(cell.gripper.start_release)
    cell.set(100, OPENED, True).run(600)
    assert cell.ended[0][2] == "the part sensor is still on after the release"
    refused = cell.gripper.start_grip(cell.now)
    assert refused == Refused("the part sensor is on while the fingers are open; clear it first")


def test_a_lost_part_is_reported_once() -> None:
    cell = Wired()
    cell.start(cell.gripper.start_grip)
    cell.set(100, PART, True).run(1000)
    assert cell.lost == []
    cell.set(2000, PART, False).set(2100, PART, True).set(2200, PART, False)
    assert cell.lost == [2000]
    assert cell.gripper.active_faults() == ("gripper fault: the part was lost",)
    cell.gripper.reset(cell.now)
    assert cell.gripper.active_faults() == ()


def test_halt_ends_the_ticket_and_changes_no_output() -> None:
    cell = Wired()
    ticket = cell.start(cell.gripper.start_grip)
    cell.run(50).gripper.halt(cell.now)
    assert cell.ended == [(50, ticket, "halted")]
    assert cell.outputs() == [(0, CLOSE, True)]
    cell.set(100, PART, True).run(1000)
    assert cell.state == "GRIPPING", "the stroke goes on"
    assert cell.outputs() == [(0, CLOSE, True), (150, CLOSE, False)]
    assert len(cell.ended) == 1


def test_a_new_command_replaces_the_one_under_way_off_before_on() -> None:
    cell = Wired()
    first = cell.start(cell.gripper.start_grip)
    cell.run(30)
    second = cell.start(cell.gripper.start_release)
    assert first != second
    assert cell.ended == [(30, first, "replaced by a release")]
    assert cell.outputs() == [(0, CLOSE, True), (30, CLOSE, False), (30, OPEN, True)]


def test_a_listener_may_command_again_when_its_ticket_is_replaced() -> None:
    cell = Wired()
    first = cell.start(cell.gripper.start_grip)
    again: list[Ticket] = []

    def close_again(ticket: Ticket, refused: Refused | None, now: int) -> None:
        if ticket == first:
            again.append(cell.start(cell.gripper.start_grip))

    cell.gripper.on_finished(close_again)
    second = cell.start(cell.gripper.start_release)
    assert [first, second, *again] == [1, 2, 3]
    assert [(ticket, reason) for _, ticket, reason in cell.ended] == [
        (first, "replaced by a release"), (second, "replaced by a grip")
    ]  # fmt: skip
    cell.set(100, PART, True).run(1000)
    assert cell.ended[-1][1:] == (again[0], "")


def test_a_program_that_switches_the_valve_itself_is_seen() -> None:
    cell = Wired()
    assert cell.state == "UNKNOWN"
    cell.io.set_digital_output(CLOSE, True, 0)
    assert cell.state == "CLOSING"
    assert cell.set(10, PART, True).state == "GRIPPING"


# ── vacuum ──────────────────────────────────────────────────────────────────────────────────────


def cup(**keys: object) -> Wired:
    return Wired(type="PNEUMATIC_VACUUM", **keys)


def test_vacuum_ok_ends_a_grip_and_the_ejector_stays_on() -> None:
    cell = cup()
    ticket = cell.start(cell.gripper.start_grip)
    cell.set(237.5, VACUUM_OK, True).run(3000)
    assert cell.ended == [(237.5, ticket, "")]
    assert (cell.state, cell.outputs()) == ("GRIPPING", [(0, VACUUM_ON, True)])
    cell.set(4000, VACUUM_OK, False)
    assert cell.lost == [4000]


def test_ten_volts_are_minus_100_kpa_and_the_threshold_has_hysteresis() -> None:
    cell = cup()
    cell.io.set_analog_input(VACUUM, 5.9, 0)
    assert cell.gripper.status(0).vacuum_kpa == pytest.approx(-59.0)
    cell.start(cell.gripper.start_grip)
    assert cell.run(300).state == "CLOSING"
    cell.io.set_analog_input(VACUUM, 6.1, cell.now)
    cell.run(310)
    assert (cell.state, cell.ended[0][2]) == ("GRIPPING", "")
    cell.io.set_analog_input(VACUUM, 5.1, cell.now)
    assert cell.run(400).lost == [], "-51 kPa is within the hysteresis of 10 kPa"
    cell.io.set_analog_input(VACUUM, 4.9, cell.now)
    assert cell.run(500).lost == [410]


def test_no_vacuum_within_the_time_is_missed_and_switches_the_ejector_off() -> None:
    cell = cup(vacuum_timeout_ms=700)
    cell.start(cell.gripper.start_grip)
    cell.run(2000)
    said = "MISSED: 0.0 kPa within 700 ms, -60 kPa are needed"
    assert [(at, reason) for at, _, reason in cell.ended] == [(700, said)]
    assert cell.outputs() == [(0, VACUUM_ON, True), (700, VACUUM_ON, False)]
    assert cell.state == "ERROR"


def test_a_halted_cup_keeps_its_vacuum() -> None:
    cell = cup()
    cell.start(cell.gripper.start_grip)
    cell.run(100).gripper.halt(cell.now)
    cell.run(5000)
    assert cell.outputs() == [(0, VACUUM_ON, True)]
    assert cell.ended[0][::2] == (100, "halted")


def test_a_release_blows_for_its_time() -> None:
    cell = cup(blowoff_time_ms=120)
    cell.start(cell.gripper.start_grip)
    cell.set(200, VACUUM_OK, True).run(1000)
    cell.start(cell.gripper.start_release)
    cell.set(1030, VACUUM_OK, False).run(2000)
    assert cell.ended[-1][::2] == (1120, "")
    assert cell.outputs()[1:] == [
        (1000, VACUUM_ON, False), (1000, BLOW_OFF, True), (1120, BLOW_OFF, False)
    ]  # fmt: skip
    assert (cell.state, cell.lost) == ("OPENED", [])


def test_vacuum_commands_of_the_design_document() -> None:
    cell = cup()
    assert cell.gripper.enable_vacuum(0) is None
    cell.set(100, VACUUM_OK, True)
    cell.start(cell.gripper.start_grip)
    cell.run(100)
    assert cell.state == "GRIPPING"
    assert cell.gripper.disable_vacuum(cell.now) is None
    cell.set(200, VACUUM_OK, False).run(300)
    assert (cell.lost, cell.state) == ([], "OPENED"), "switched off on purpose"
    assert cell.gripper.blow_off(cell.now) is None
    cell.run(1000)
    assert not cell.io.digital().outputs
    refused = Wired().gripper.blow_off(0)
    assert refused == Refused("a gripper of type PNEUMATIC_2FINGER has no vacuum")


def test_a_reset_of_the_pins_leaves_a_retained_output() -> None:
    io = VirtualIO(PinsConfig())
    io.retain(VACUUM_ON)
    io.set_digital_output(VACUUM_ON, True, 0)
    io.set_digital_output(CLOSE, True, 0)
    io.reset(5)
    assert io.digital().outputs == 1 << VACUUM_ON
