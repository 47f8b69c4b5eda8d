"""The virtual OnRobot RG2 and DH AG-95: registers, motion, object detection."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.gripper.modbus.servo_cell import Bench, FakeJaws

from understudy.devices.gripper.modbus import dh, onrobot

# ── OnRobot RG2 ──


def test_busy_until_the_width_is_reached() -> None:
    bench = Bench("onrobot_rg2")
    assert bench.pdu("10 0000 0003 06 0190 0000 0001") == "10 00 00 00 03"
    bench.after(0.1)
    assert bench.read(onrobot.STATUS) == [1]
    bench.after(0.1)
    assert bench.read(onrobot.WIDTH)[0] == pytest.approx(1100 - 0.2 * 1840, abs=2)
    bench.after(1.0)
    assert bench.read(onrobot.WIDTH, 2) == [0, 0]
    assert bench.read(onrobot.TIP_WIDTH) == [0]


def test_a_grip_is_detected_and_ends_when_the_part_is_gone() -> None:
    bench = Bench("onrobot_rg2", FakeJaws(0.0302))
    bench.write(0, 400, 0, onrobot.GRIP)
    bench.after(2.0)
    assert bench.read(onrobot.WIDTH, 2) == [302, 2]
    assert bench.jaws.holds()
    bench.jaws.remove()
    assert bench.read(onrobot.STATUS) == [1]
    assert bench.after(2.0).read(onrobot.WIDTH, 2) == [0, 0]


def test_while_it_is_busy_only_stop_counts() -> None:
    bench = Bench("onrobot_rg2")
    bench.write(0, 400, 0, onrobot.GRIP)
    bench.after(0.1)
    bench.write(0, 400, 1100, onrobot.GRIP)
    assert bench.fingers.state.goal == 0.0
    bench.write(onrobot.CONTROL, onrobot.STOP)
    width = bench.read(onrobot.WIDTH, 2)
    assert width[1] == 0
    assert bench.after(1.0).read(onrobot.WIDTH, 2) == width
    bench.write(0, 400, 1100, onrobot.GRIP)
    assert bench.after(1.0).read(onrobot.WIDTH) == [1100]


def test_widths_with_and_without_the_fingertips() -> None:
    bench = Bench("onrobot_rg2")
    assert bench.write(onrobot.NEW_OFFSET, 46) == 0
    assert bench.read(onrobot.OFFSET) == [46]
    bench.write(0, 400, 500, onrobot.GRIP_TIPS)
    bench.after(2.0)
    assert (bench.read(onrobot.WIDTH), bench.read(onrobot.TIP_WIDTH)) == ([592], [500])
    bench.write(0, 400, 392, onrobot.GRIP)
    bench.after(2.0)
    assert (bench.read(onrobot.WIDTH), bench.read(onrobot.TIP_WIDTH)) == ([392], [300])
    assert bench.write(onrobot.NEW_OFFSET, 0x10000 - 10) == 0
    assert bench.read(onrobot.OFFSET) == [0x10000 - 10], "signed"


def test_fingers_go_out_when_they_close() -> None:
    bench = Bench("onrobot_rg2")
    apart = bench.read(onrobot.DEPTH)[0]
    bench.write(0, 400, 0, onrobot.GRIP)
    bench.after(2.0)
    assert bench.read(onrobot.DEPTH)[0] > apart
    assert bench.read(onrobot.RELATIVE_DEPTH) == [bench.read(onrobot.DEPTH)[0] - apart]


def test_a_safety_switch_stops_it_until_its_power_was_off() -> None:
    bench = Bench("onrobot_rg2")
    bench.write(0, 400, 0, onrobot.GRIP)
    bench.after(0.1)
    bench.device.fail(bench.now)
    assert bench.read(onrobot.STATUS) == [onrobot.S1_PUSHED | onrobot.S1_TRIGGED]
    bench.write(0, 400, 0, onrobot.GRIP)
    assert not bench.fingers.moving
    bench.device.repair(bench.now)
    bench.write(0, 400, 0, onrobot.GRIP)
    assert bench.fingers.moving


@pytest.mark.parametrize(
    ("request_pdu", "answer"),
    [
        ("04 010B 0001", "84 01"),
        ("03 0003 0001", "83 02"),
        ("03 0112 0003", "83 02"),
        ("06 010B 0000", "86 02"),
        ("06 0002 0002", "86 03"),
        ("06 0403 7FFF", "86 03"),
        ("06 0000 0064", "06 00 00 00 64"),
    ],
)
def test_requests_of_the_rg2(request_pdu: str, answer: str) -> None:
    assert Bench("onrobot_rg2").pdu(request_pdu) == answer


# ── DH AG-95 ──


def test_frames_of_the_manual() -> None:
    bench = Bench("dh_ag95")
    assert bench.ask("01 03 02 00 00 01 85 B2") == "01 03 02 00 00 B8 44", "not initialised"
    assert bench.ask("01 06 01 00 00 01 49 F6") == "01 06 01 00 00 01 49 F6"
    bench.after(1.0)
    assert bench.ask("01 03 02 00 00 01 85 B2") == "01 03 02 00 01 79 84", "initialised"
    assert bench.ask("01 06 01 03 01 F4 78 21") == "01 06 01 03 01 F4 78 21"
    assert bench.ask("01 03 02 01 00 01 D4 72") == "01 03 02 00 00 B8 44", "moving"
    bench.after(1.0)
    assert bench.ask("01 03 02 01 00 01 D4 72") == "01 03 02 00 01 79 84", "reached"
    assert bench.ask("01 03 02 02 00 01 24 72") == "01 03 02 01 F4 B8 53", "500 per mille"


def test_it_does_not_move_before_it_is_initialised() -> None:
    bench = Bench("dh_ag95")
    bench.write(dh.POSITION, 0)
    assert bench.after(1.0).read(dh.ACTUAL) == [1000]


def test_calibration_closes_and_opens() -> None:
    bench = Bench("dh_ag95")
    bench.write(dh.INITIALISE, dh.CALIBRATE)
    assert bench.after(0.7).read(dh.INIT_STATE, 3)[0] == dh.INITIALISING
    assert bench.read(dh.ACTUAL)[0] < 50
    assert bench.after(0.8).read(dh.INIT_STATE, 3) == [dh.INITIALISED, dh.REACHED, 1000]


def test_a_caught_part_and_a_dropped_one() -> None:
    bench = Bench("dh_ag95", FakeJaws(0.0475))
    bench.write(dh.INITIALISE, dh.ONCE)
    bench.after(1.0)
    bench.write(dh.FORCE, 50, 50, 0)
    assert bench.after(0.3).read(dh.GRIP_STATE) == [dh.MOVING]
    assert bench.after(1.0).read(dh.GRIP_STATE, 2) == [dh.CAUGHT, 500]
    bench.jaws.remove()
    assert bench.read(dh.GRIP_STATE) == [dh.DROPPED]
    assert bench.after(1.0).read(dh.GRIP_STATE, 2) == [dh.DROPPED, 0]
    bench.write(dh.POSITION, 1000)
    assert bench.after(2.0).read(dh.GRIP_STATE, 2) == [dh.REACHED, 1000]


def test_both_addresses_of_the_speed_are_one_register() -> None:
    bench = Bench("dh_ag95")
    bench.write(dh.SPEED, 40)
    assert bench.read(dh.SPEED_TOO) == [40]
    bench.write(dh.SPEED_TOO, 60)
    assert bench.read(dh.SPEED) == [60]


@pytest.mark.parametrize(
    ("request_pdu", "answer"),
    [
        ("17 0200 0001 0101 0001 02 0014", "97 01"),
        ("03 0105 0001", "83 02"),
        ("06 0200 0001", "86 02"),
        ("06 0100 0002", "86 03"),
        ("06 0101 0013", "86 03"),
        ("06 0103 03E9", "86 03"),
        ("10 0101 0003 06 0032 0000 0000", "90 03"),
        ("04 0200 0001", "04 02 00 00"),
    ],
)
def test_requests_of_the_ag95(request_pdu: str, answer: str) -> None:
    assert Bench("dh_ag95").pdu(request_pdu) == answer


# ── both ──

WORD = st.integers(0, 0xFFFF) | st.integers(0, 20) | st.sampled_from([0xA5, 100, 400, 1000])
FIRST = st.sampled_from([*range(4), 0x0100, 0x0101, 0x0103, 0x0104, 0x0403, 0xFFFF])
WRITES = st.tuples(FIRST, st.lists(WORD, min_size=1, max_size=4), st.floats(0.0, 2.0))


@given(
    st.sampled_from(["onrobot_rg2", "dh_ag95"]),
    st.lists(WRITES, max_size=12),
    st.floats(0.0, 0.09) | st.none(),
)
@settings(max_examples=60)
def test_every_sequence_of_writes_leaves_a_defined_state(
    make: str, writes: list[tuple[int, list[int], float]], width: float | None
) -> None:
    bench = Bench(make, FakeJaws(width))
    for address, values, pause in writes:
        assert bench.write(address, *values) in (0, 2, 3)
        bench.after(pause)
        if make == "dh_ag95":
            state, grip, position = bench.read(dh.INIT_STATE, 3)
            assert (state in (0, 1, 2), grip in (0, 1, 2, 3), 0 <= position <= 1000) == (True,) * 3
        else:
            status, tips = bench.read(onrobot.STATUS)[0], bench.read(onrobot.TIP_WIDTH)[0]
            assert (status in (0, 1, 2), 0 <= tips <= 1100) == (True, True)
        assert bench.fingers.touching or not bench.jaws.held
