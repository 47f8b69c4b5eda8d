"""The virtual Robotiq 2F-85: frames of the manual, activation, object detection, release."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.gripper.modbus.servo_cell import Bench, FakeJaws

from understudy.devices.gripper.modbus.robotiq import COMMAND, STATUS

CLEAR = "09 10 03 E8 00 03 06 00 00 00 00 00 00 73 30"
ACTIVATE = "09 10 03 E8 00 03 06 01 00 00 00 00 00 72 E1"
CLOSE = "09 10 03 E8 00 03 06 09 00 00 FF FF FF 42 29"
OPEN = "09 10 03 E8 00 03 06 09 00 00 00 FF FF 72 19"
ACKNOWLEDGED = "09 10 03 E8 00 03 01 30"
STATUS_1 = "09 03 07 D0 00 01 85 CF"
STATUS_3 = "09 03 07 D0 00 03 04 0E"
STATUS_3_INPUT = "09 04 07 D0 00 03 B1 CE"


def activated(width: float | None = None, *, strong: bool = True) -> Bench:
    bench = Bench("robotiq_2f85", FakeJaws(strong=strong))
    bench.ask(CLEAR)
    bench.ask(ACTIVATE)
    bench.at(3.0)
    bench.jaws.part = width
    return bench


def test_the_example_of_the_manual() -> None:
    """All frames of the chapter "Modbus RTU" with a part of 16 mm, requests and answers."""
    bench = Bench("robotiq_2f85")
    assert bench.ask(CLEAR) == ACKNOWLEDGED
    assert bench.ask(ACTIVATE) == ACKNOWLEDGED
    assert bench.ask(STATUS_1) == "09 03 02 11 00 55 D5", "activation in progress"
    bench.at(3.0)
    assert bench.ask(STATUS_1) == "09 03 02 31 00 4C 15", "activation completed"
    bench.jaws.part = 0.0161
    assert bench.ask(CLOSE) == ACKNOWLEDGED
    bench.after(0.003)
    assert bench.ask(STATUS_3) == "09 03 06 39 00 00 FF 0E 0A F7 8B", "gripping"
    bench.after(1.0)
    assert bench.ask(STATUS_3) == "09 03 06 B9 00 00 FF BD 00 1D 7C", "gripped"
    assert bench.jaws.holds()
    assert bench.ask(OPEN) == ACKNOWLEDGED
    assert not bench.jaws.holds()
    bench.after(0.0055)
    assert bench.ask(STATUS_3_INPUT).startswith("09 04 06 39 00 00 00 BB 10"), "opening"
    bench.after(1.0)
    assert bench.ask(STATUS_3_INPUT) == "09 04 06 F9 00 00 00 0D 00 17 AA", "opened"


def test_an_action_before_the_activation_is_fault_7_and_during_it_fault_5() -> None:
    bench = Bench("robotiq_2f85")
    bench.write(COMMAND, 0x0800, 0x00FF, 0xFFFF)
    assert bench.read(STATUS, 3)[1] == 0x07FF
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    assert bench.read(STATUS, 3)[:2] == [0x1900, 0x05FF]
    bench.at(2.5)
    status, fault, position = bench.read(STATUS, 3)
    assert (status >> 8, fault >> 8, position >> 8) == (0xF9, 0, 230), "delayed, then carried out"


@pytest.mark.parametrize(
    ("speed", "force", "seconds"), [(0, 0, 0.085 / 0.020), (255, 255, 0.085 / 0.150)]
)
def test_speed_and_force_scale(speed: int, force: int, seconds: float) -> None:
    bench = activated()
    bench.write(COMMAND, 0x0900, 0x00FF, speed << 8 | force)
    bench.after(seconds - 0.01)
    assert bench.read(STATUS)[0] >> 14 == 0
    bench.after(0.02)
    assert bench.read(STATUS)[0] >> 14 == 3
    assert bench.fingers.state.force == pytest.approx(20.0 if force == 0 else 235.0)


def test_a_part_that_is_taken_away_is_seen_as_gobj_3() -> None:
    bench = activated(0.040)
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    bench.after(1.0)
    assert bench.read(STATUS)[0] >> 14 == 2
    bench.jaws.remove()
    assert bench.read(STATUS)[0] >> 14 == 0, "the fingers go on"
    bench.after(1.0)
    assert bench.read(STATUS)[0] >> 14 == 3


def test_a_part_that_is_too_heavy_is_seen_and_not_held() -> None:
    bench = activated(0.040, strong=False)
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    bench.after(1.0)
    assert bench.read(STATUS)[0] >> 14 == 2
    assert not bench.jaws.held


def test_an_obstacle_while_opening_is_gobj_1() -> None:
    bench = activated()
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    bench.after(1.0)
    bench.write(COMMAND, 0x0900, 0x0000, 0xFFFF)
    bench.after(0.1)
    bench.fingers.block(bench.now)
    assert bench.read(STATUS)[0] >> 14 == 1


def test_going_off_stops_the_fingers() -> None:
    bench = activated()
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    bench.after(0.2)
    bench.write(COMMAND, 0x0100)
    at = bench.fingers.opening(bench.now)
    assert bench.after(1.0).fingers.opening(bench.now) == at == pytest.approx(0.085 - 0.030)


def test_automatic_release_opens_slowly_and_needs_a_reset() -> None:
    bench = activated(0.040)
    bench.write(COMMAND, 0x0900, 0x00FF, 0xFFFF)
    bench.after(1.0)
    bench.write(COMMAND, 0x3900)
    assert not bench.jaws.held
    assert bench.read(STATUS, 2)[1] >> 8 == 0x0B
    bench.after(3.0)
    status, fault, position = bench.read(STATUS, 3)
    assert (status >> 12 & 3, fault >> 8, position >> 8) == (0, 0x0F, 13)
    bench.write(COMMAND, 0x0900)
    assert bench.after(3.0).read(STATUS, 2)[1] >> 8 == 0x0F, "rACT must be cleared first"
    bench.jaws.remove()
    bench.write(COMMAND, 0x0000)
    bench.write(COMMAND, 0x0100)
    assert bench.after(3.0).read(STATUS, 2)[0] >> 12 & 3 == 3


def test_a_part_between_the_fingers_fails_the_activation() -> None:
    bench = Bench("robotiq_2f85", FakeJaws(0.030))
    bench.ask(ACTIVATE)
    bench.at(3.0)
    assert bench.read(STATUS, 2)[1] >> 8 == 0x0D


def test_overcurrent_needs_a_reset_and_holds_the_part() -> None:
    bench = activated(0.030)
    bench.ask(CLOSE)
    bench.after(1.0)
    bench.device.fail(bench.now)
    assert bench.read(STATUS, 2)[1] >> 8 == 0x0E
    assert bench.jaws.held
    bench.ask(CLEAR)
    assert bench.read(STATUS, 2) == [0, 0]


def test_read_and_write_in_one_request() -> None:
    bench = activated()
    assert bench.pdu("17 07D0 0003 03E8 0003 06 0900 00FF FFFF") == "17 06 39 00 00 ff 0d 0a"


@pytest.mark.parametrize(
    ("request_pdu", "answer"),
    [
        ("06 03E8 0100", "86 01"),  # function 6 is not known
        ("2B 0E01 00", "ab 01"),
        ("66 0102", "e6 01"),
        ("03 07D0 0004", "83 02"),
        ("03 03E7 0001", "83 02"),
        ("10 07D0 0001 02 0000", "90 02"),
        ("10 03EA 0002 04 0000 0000", "90 02"),
        ("03 07D0 0000", "83 03"),
        ("03 07D0 007E", "83 03"),
        ("03 07D0", "83 03"),
        ("10 03E8 0003 04 0000 0000", "90 03"),
        ("10 03E8 0000 00", "90 03"),
        ("17 07D0 0003 03E8 0001 04 0000 0000", "97 03"),
    ],
)
def test_exceptions(request_pdu: str, answer: str) -> None:
    assert Bench("robotiq_2f85").pdu(request_pdu) == answer


def test_other_units_are_not_answered_and_a_broadcast_acts() -> None:
    bench = Bench("robotiq_2f85")
    assert bench.ask("08 03 07 D0 00 01 84 1E") == ""
    assert bench.ask("00 10 03 E8 00 03 06 01 00 00 00 00 00 6F 28") == ""
    assert bench.read(STATUS)[0] == 0x1100


WRITES = st.tuples(
    st.integers(COMMAND - 1, COMMAND + 3),
    st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=4),
    st.floats(0.0, 3.0),
)


@given(st.lists(WRITES, max_size=15), st.floats(0.0, 0.085) | st.none())
@settings(max_examples=60)
def test_every_sequence_of_writes_leaves_a_defined_state(
    writes: list[tuple[int, list[int], float]], width: float | None
) -> None:
    bench = Bench("robotiq_2f85", FakeJaws(width))
    for address, values, pause in writes:
        assert bench.write(address, *values) in (0, 2)
        bench.after(pause)
        status, fault, position = bench.read(STATUS, 3)
        assert status >> 12 & 3 in (0, 1, 3)
        assert fault >> 8 in (0, 5, 7, 0x0B, 0x0D, 0x0F)
        assert 13 <= position >> 8 <= 230
        assert bench.fingers.touching or not bench.jaws.held
    bench.ask(CLEAR)
    bench.jaws.remove()
    bench.ask(ACTIVATE)
    assert bench.after(3.0).read(STATUS)[0] >> 12 & 3 == 3, "it can always be activated again"
