"""Drives at a CAN bus, against nodes of the library `canopen`, on virtual time."""

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.mobile.conformance.benches import (
    CANOPEN,
    GRIPPER,
    LEFT,
    MOTORS,
    RIGHT,
    Change,
    RealBench,
    enable,
    order,
    readings,
)
from tests.robots.mobile.conformance.far_ends import COUNTS, NODES, CanEnd
from tests.robots.mobile.real.virtual_drive import (
    DISABLED,
    ENABLED,
    FAULT,
    ON,
    QUICK_STOP,
    READY,
    WORDS,
    VirtualDrive,
)

from understudy.errors import ConfigError
from understudy.protocol.can_frames import SIZE, CanFrame, unpack
from understudy.robots.mobile.hardware_interface import MotorLimits, MotorOutputs
from understudy.robots.mobile.real.canopen import cia402
from understudy.robots.mobile.real.canopen.bus import CanopenDriver
from understudy.robots.mobile.real.canopen.cia402 import STATES, STEPS, DriveState, state_of
from understudy.robots.mobile.real.canopen.services import Sdo, answer_to
from understudy.units import NS_PER_MS

WHERE = "can:socketcan:can0@500000"
PAGE = Path(__file__).parents[4] / "docs/robots/mobile_real.md"


class CanBench(RealBench):
    """A robot with all motors at a bus."""

    def __init__(self, change: Change = lambda robot: None) -> None:
        super().__init__("CANOPEN", change)
        end = self.end(CANOPEN)
        assert isinstance(end, CanEnd)
        self.far = end

    @property
    def bus(self) -> CanopenDriver:
        found = self.drivers[WHERE]
        assert isinstance(found, CanopenDriver)
        return found

    def drive(self, motor: int) -> VirtualDrive:
        return self.far.drives[motor]

    def replace(self, motor: int, without: set[int]) -> None:
        """Puts a drive in that lacks some objects."""
        old = self.drive(motor)
        for can_id, callback in ((0, old._nmt), (0x80, old._sync), (0x77F, old._master)):
            self.far.network.unsubscribe(can_id, callback)
        self.far.drives[motor] = VirtualDrive(self.far.network, NODES[motor], frozenset(without))
        self.drive(motor).boot()

    def lines(self, words: str) -> list[str]:
        return [line for line in self.log if words in line]


def running(change: Change = lambda robot: None) -> CanBench:
    bench = CanBench(change)
    bench.run(0.2)
    enable(bench)
    bench.run(0.2)
    return bench


# ── messages ────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, (1 << 32) - 1), st.binary(max_size=8))
def test_a_frame_is_the_same_after_packing(identifier: int, data: bytes) -> None:
    packed = CanFrame(identifier, data).pack()
    assert len(packed) == SIZE
    assert list(unpack(packed)) == [CanFrame(identifier, data)]


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        (Sdo(0x6060, 0, -1, 1), "2f606000ff000000"),
        (Sdo(0x1017, 0, 100, 2), "2b17100064000000"),
        (Sdo(0x6083, 0, 20_000, 4), "23836000204e0000"),
        (Sdo(0x607D, 1, -5, 4), "237d6001fbffffff"),
        (Sdo(0x1000, 0, None, 4), "4000100000000000"),
    ],
)
def test_requests_are_expedited(request_: Sdo, sent: str) -> None:
    assert request_.frame(5) == CanFrame(0x605, bytes.fromhex(sent))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("4300100092010200", (0x20192, "")),
        ("4b00100092010200", (0x0192, "")),
        ("4f00100092010200", (0x92, "")),
        ("4200100092010200", (0x20192, "")),
        ("4100100092010200", None),  # in segments
        ("4300100192010200", None),  # another object
        ("430010", None),
        ("8000100000000206", (0, "the object does not exist (06020000h)")),
    ],
)
def test_answers_are_read(answer: str, found: tuple[int, str] | None) -> None:
    got = answer_to(Sdo(0x1000, 0, None, 4), bytes.fromhex(answer))
    assert (got and tuple(got)) == found


# ── states ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (DISABLED, DriveState.SWITCH_ON_DISABLED),
        (READY, DriveState.READY),
        (ON, DriveState.SWITCHED_ON),
        (ENABLED, DriveState.ENABLED),
        (QUICK_STOP, DriveState.QUICK_STOP),
        (FAULT, DriveState.FAULT),
    ],
)
@pytest.mark.parametrize("other", [0, 0xFF90])
def test_a_status_word_is_a_state_whatever_its_other_bits(
    theirs: str, ours: DriveState, other: int
) -> None:
    assert state_of(WORDS[theirs] | other) is ours


def test_no_status_word_has_two_states_and_each_state_has_a_step() -> None:
    for word in range(1 << 7):
        assert sum(word & mask == value for mask, value, _ in STATES) <= 1
    assert set(STEPS) == set(DriveState)


def test_the_page_shows_the_table_of_states() -> None:
    hexadecimal = r"([0-9A-F]+)h"
    row = rf"^\| (\w[^|]*) \| {hexadecimal}, {hexadecimal} \| {hexadecimal} \| {hexadecimal} \|$"
    rows = re.findall(row, PAGE.read_text(), re.MULTILINE)
    table = [
        (str(state), f"{mask:02X}", f"{value:02X}", *(f"{word:X}" for word in STEPS[state]))
        for mask, value, state in STATES
    ]
    assert rows == table


@pytest.mark.parametrize("state", [DISABLED, READY, ON, ENABLED, QUICK_STOP])
def test_a_drive_is_enabled_from_every_state(state: str) -> None:
    bench = running()
    bench.drive(LEFT).state = state
    bench.run(0.2)
    assert bench.drive(LEFT).state == ENABLED
    enable(bench, False)
    bench.run(0.2)
    assert bench.drive(LEFT).state == ON


# ── configuration ───────────────────────────────────────────────────────────────────────────────


def test_a_node_gets_its_limits_and_mapping() -> None:
    bench = running()
    wheel, gripper = bench.drive(LEFT), bench.drive(GRIPPER)
    counts = COUNTS[LEFT]
    assert (wheel.get(0x6060), gripper.get(0x6060)) == (3, 1)
    assert wheel.get(0x607F) == round(1.2 * counts)
    assert (wheel.get(0x6083), wheel.get(0x6084)) == (round(0.8 * counts), counts)
    assert gripper.get(0x6081) == 50_000
    assert (gripper.get(0x607D, 1), gripper.get(0x607D, 2)) == (0, 80_000)
    assert wheel.get(0x1016, 1) == 127 << 16 | 500
    assert wheel.node.nmt.state == "OPERATIONAL"
    (outputs,) = [pdo for pdo in gripper.node.rpdo.values() if pdo.enabled]
    assert [variable.index for variable in outputs] == [0x6040, 0x607A]


def test_a_reversed_motor_turns_and_reports_the_other_way_round() -> None:
    def reverse(robot: dict[str, Any]) -> None:
        robot["motors"][LEFT]["driver"]["config"] |= {"reversed": True}
        robot["motors"][GRIPPER]["driver"]["config"] |= {"reversed": True}

    bench = running(reverse)
    order(bench, speed=0.5, target=0.06, moving=True)
    bench.run(2.5)
    assert bench.drive(LEFT).velocity == pytest.approx(-0.5 * COUNTS[LEFT])
    assert bench.drive(GRIPPER).position == pytest.approx(-60_000, abs=1000)
    assert readings(bench).velocity[:2] == pytest.approx([0.5, 0.5])
    assert readings(bench).position[LEFT] > 0.5
    assert readings(bench).position[GRIPPER] == pytest.approx(0.06, abs=1e-3)


def test_velocity_and_acceleration_may_have_their_own_units() -> None:
    def units(robot: dict[str, Any]) -> None:
        robot["motors"][LEFT]["driver"]["config"] |= {
            "velocityCountsPerUnit": 600,
            "accelerationCountsPerUnit": 300,
        }

    bench = running(units)
    order(bench, speed=0.5)
    bench.run(0.1)
    drive = bench.drive(LEFT)
    assert (drive.get(0x60FF), drive.get(0x6083), drive.get(0x607F)) == (300, 240, 720)


def test_only_limits_that_changed_are_sent_again() -> None:
    bench = running()
    written: list[int] = []
    bench.drive(GRIPPER).node.add_write_callback(
        lambda index, **_: written.append(index) if index in (0x6081, 0x6083, 0x6084) else None
    )
    limits = MotorLimits(np.array([1.2, 1.2, 0.02]), np.full(3, 0.1), np.full(3, 0.12))
    bench.hardware.motors.set_limits(MOTORS, limits)
    bench.run(0.5)
    assert written == [0x6081]
    assert bench.drive(GRIPPER).get(0x6081) == 20_000


def test_a_node_that_starts_again_is_configured_again_and_its_way_goes_on() -> None:
    bench = running()
    order(bench, speed=0.5)
    bench.run(2.0)
    before = float(readings(bench).position[LEFT])
    bench.drive(LEFT).boot()
    bench.run(0.04)
    assert readings(bench).position[LEFT] == pytest.approx(before, abs=0.05), "no jump to zero"
    bench.run(1.5)
    assert bench.drive(LEFT).get(0x6083) == round(0.8 * COUNTS[LEFT])
    assert readings(bench).connected.all()
    assert readings(bench).velocity[:2] == pytest.approx([0.5, 0.5])
    assert bench.lines("node 1: it has started")


def test_the_way_of_a_wheel_goes_on_over_the_end_of_the_counter() -> None:
    bench = CanBench()
    bench.run(0.1)
    bench.drive(LEFT).position = float((1 << 31) - 2000)
    bench.drive(RIGHT).position = float(-(1 << 31) + 2000)
    bench.bus.lost(bench.now, "test")
    bench.run(1.5)
    start = readings(bench).position.copy()
    enable(bench)
    order(bench, speed=0.5)
    bench.run(2.0)
    assert bench.drive(LEFT).position > 1 << 31
    rolled = readings(bench).position[LEFT] - start[LEFT]
    assert rolled == pytest.approx(0.5 * 2.0 - 0.5**2 / 1.6, abs=0.06)


def test_an_object_that_a_drive_can_do_without_is_named_once() -> None:
    bench = CanBench()
    bench.replace(LEFT, {0x607F, 0x6007})
    bench.run(2.0)
    assert len(bench.lines("node 1: it refuses 607Fh:0: the object does not exist")) == 1
    assert readings(bench).connected.all()
    enable(bench)
    limits = MotorLimits(np.full(3, 0.2), np.full(3, 0.8), np.full(3, 1.0))
    bench.hardware.motors.set_limits(MOTORS, limits)
    order(bench, speed=0.5)
    bench.run(1.5)
    assert readings(bench).velocity[LEFT] == pytest.approx(0.2), "the driver keeps the limit itself"


def test_a_drive_without_a_needed_object_is_not_connected() -> None:
    bench = CanBench()
    bench.replace(LEFT, {0x6083})
    bench.run(3.0)
    assert readings(bench).connected.tolist() == [False, True, True]
    assert len(bench.lines("node 1: it refuses 6083h:0")) == 1


def test_a_node_that_is_no_drive_is_not_used() -> None:
    bench = CanBench()
    bench.drive(LEFT).node.object_dictionary[0x1000].default = 0x191
    bench.run(1.0)
    assert readings(bench).connected.tolist() == [False, True, True]
    assert bench.lines("node 1: it is no drive: its device type is 00000191h")


# ── what can happen ─────────────────────────────────────────────────────────────────────────────


def test_one_silent_node_is_not_connected_and_the_others_go_on() -> None:
    bench = running()
    order(bench, speed=0.5)
    bench.run(1.5)
    drive = bench.drive(LEFT)
    for can_id, callback in ((0x80, drive._sync), (0x601, drive.node.sdo.on_request)):
        bench.far.network.unsubscribe(can_id, callback)
    bench.run(0.6)
    assert readings(bench).connected.tolist() == [False, True, True]
    assert drive.state == QUICK_STOP, "it is not heard, and hears us"
    bench.run(10.0)
    assert drive.velocity == 0.0
    assert readings(bench).velocity[RIGHT] == pytest.approx(0.5)
    assert len(bench.lines("node 1: it does not answer")) == 1, "not with each attempt"


@pytest.mark.parametrize("boots", [False, True])
def test_the_way_of_a_wheel_that_was_silent(boots: bool) -> None:
    """It has rolled on meanwhile, which counts; one that lost its power counts from zero."""
    bench = running()
    order(bench, speed=0.5)
    bench.run(2.0)
    drive, network = bench.drive(LEFT), bench.far.network
    heard: tuple[tuple[int, Any], ...] = ((0x80, drive._sync), (0x601, drive.node.sdo.on_request))
    for can_id, callback in heard:
        network.unsubscribe(can_id, callback)
    before = float(readings(bench).position[LEFT])
    booted = len(bench.lines("node 1: it has started"))
    bench.run(1.5)
    assert drive.position / COUNTS[LEFT] > before + 0.2
    order(bench, speed=0.0)
    if boots:
        drive.boot()
        network.sent.clear()  # its boot-up message is lost
    for can_id, callback in heard:
        network.subscribe(can_id, callback)
    bench.run(3.0)
    assert readings(bench).connected.all()
    rolled = 0.0 if boots else drive.position / COUNTS[LEFT] - before
    assert readings(bench).position[LEFT] == pytest.approx(before + rolled, abs=0.02)
    assert len(bench.lines("node 1: it has started")) == booted, "only a message that came"


def test_a_node_that_left_operational_is_configured_again() -> None:
    bench = running()
    bench.run(1.0)
    bench.drive(LEFT).node.nmt.send_command(0x80)
    bench.run(0.3)
    assert bench.lines("node 1: it has left the state operational (now 127)")
    bench.run(2.0)
    assert bench.drive(LEFT).node.nmt.state == "OPERATIONAL"
    assert readings(bench).connected.all()


def test_the_drives_stop_when_the_cycles_end() -> None:
    bench = running()
    order(bench, speed=0.5)
    bench.run(2.0)
    bench.unplug()
    bench.run(0.4)
    assert bench.drive(LEFT).state == ENABLED
    bench.run(0.2)
    assert bench.drive(LEFT).state == QUICK_STOP
    bench.run(1.0)
    assert bench.drive(LEFT).velocity == 0.0


def test_a_drive_that_cannot_be_enabled_is_not_ready() -> None:
    bench = CanBench()
    bench.drive(LEFT).power = False
    enable(bench)
    bench.run(2.0)
    assert readings(bench).connected.tolist() == [False, True, True]
    assert bench.lines("node 1: the drive is not enabled: it stays in Switch on disabled (0040h)")
    bench.drive(LEFT).power = True
    bench.run(0.2)
    assert readings(bench).connected.all()


@pytest.mark.parametrize("word", [0x03, 0x25, 0x0A, 0x4F])
def test_a_status_word_that_is_not_known_is_no_state_and_stops_the_drive(
    word: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORDS, "strange", word)
    assert state_of(word) is DriveState.UNKNOWN
    bench = running()
    speeds, moves = np.array([0.5, 0.5, 0.0]), np.zeros(3, np.bool_)
    bench.hardware.motors.write(MOTORS, MotorOutputs(speeds, np.zeros(3), np.full(3, 1e-3), moves))
    bench.run(0.5)
    bench.drive(LEFT).state = "strange"
    bench.run(0.1)
    assert readings(bench).connected.tolist() == [False, True, True]
    assert bench.drive(LEFT).get(0x6040) == cia402.QUICK_STOP
    bench.run(1.5)
    assert bench.lines(f"the drive is not enabled: it stays in Unknown ({word:04X}h)")


def test_a_fault_has_the_code_of_the_drive_and_its_meaning() -> None:
    bench = running()
    bench.drive(LEFT).fail(0x4310)
    bench.run(0.1)
    fault = bench.hardware.motors.fault(LEFT)
    assert fault is not None
    assert fault.code == "DEVICE_4310"
    assert fault.message == "its drive reports error 4310h: temperature"
    assert bench.lines("node 1: its drive reports error 4310h"), "the emergency message"


def test_a_cycle_is_left_out_while_the_bus_takes_no_frames() -> None:
    bench = running()
    bench.unplug()
    bench.run(0.02)
    waiting = len(bench.bus._unsent)
    cycles = bench.bus.status(bench.now).cycles
    bench.run(0.3)
    assert bench.bus.status(bench.now).cycles == cycles
    assert len(bench.bus._unsent) == waiting


def test_a_node_that_starts_again_and_again_fills_neither_log_nor_memory() -> None:
    bench = running()
    bench.unplug()
    count = len(bench.lines("node 1: it has started"))
    for _ in range(2000):
        bench.bus.receive(CanFrame(0x701, b"\x00").pack(), bench.now)
    assert len(bench.lines("node 1: it has started")) == count + 1
    bench.run(0.02)
    assert bench.bus.status(bench.now).trouble == "it takes no frames"
    assert bench.bus.take(1 << 20) == b""


def test_only_whole_frames_are_taken() -> None:
    bench = running()
    bench.unplug()
    bench.run(0.02)
    assert len(bench.bus.take(3 * SIZE + 5)) == 3 * SIZE
    assert bench.bus.take(SIZE - 1) == b""


@pytest.fixture(scope="module")
def fuzzed() -> CanBench:
    return running()


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0x0, 0x80, 0x81, 0x181, 0x281, 0x581, 0x701])
            | st.integers(0, 2**32 - 1),
            st.binary(max_size=8),
        ),
        max_size=10,
    )
)
def test_no_frame_upsets_the_driver(fuzzed: CanBench, frames: list[tuple[int, bytes]]) -> None:
    for frame in frames:
        fuzzed.bus.receive(CanFrame(*frame).pack(), fuzzed.now)
        fuzzed.run(0.02)
    for _ in range(20):
        if readings(fuzzed).connected.all():
            return
        fuzzed.run(0.5)
    pytest.fail("it does not recover")


def test_an_early_answer_of_an_earlier_request_is_not_taken() -> None:
    bus = CanopenDriver("can:virtual:x", print)
    node = bus.node(1)
    bus.wake(0)
    bus.connected(0)
    sent = list(unpack(bus.take(1 << 16)))
    assert [frame.id for frame in sent] == [0x0, 0x601]
    late = struct.pack("<BHBI", 0x60, 0x6081, 0, 0)
    bus.receive(CanFrame(0x581, late).pack(), 10)
    assert bus.take(1 << 16) == b""
    bus.wake(500 * NS_PER_MS)
    assert node.next_wake() == 1_500 * NS_PER_MS


# ── the robot's file ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"node": 127}, "node"),
        ({"node": 2}, "this node has a motor already"),
        ({"bitrate": 250_000}, "this bus has another bit rate elsewhere"),
        ({"countsPerUnit": 0}, "countsPerUnit"),
        ({"countsPerMeter": 5}, "did you mean 'countsPerUnit'"),
        ({"channel": "can 0"}, "channel"),
    ],
)
def test_a_wrong_driver_config_is_named(change: dict[str, Any], says: str) -> None:
    def apply(robot: dict[str, Any]) -> None:
        robot["motors"][GRIPPER]["driver"]["config"] |= change

    with pytest.raises(ConfigError) as problem:
        CanBench(apply)
    assert says in str(problem.value)
    assert "motors.act_1.driver.config" in str(problem.value)


def test_a_sensor_cannot_be_at_a_drive() -> None:
    def apply(robot: dict[str, Any]) -> None:
        robot["io"]["devices"][0]["driver"]["type"] = "CANOPEN"

    with pytest.raises(ConfigError) as problem:
        CanBench(apply)
    assert "in REAL mode: PLC, SERIAL" in str(problem.value)
