"""Pins of a REAL controller for devices: the driver in front of another cell, byte by byte."""

from typing import Any

from tests.jobs.test_arm_motion_real import Pair

from understudy.ports.io import PinChange, PollsInputs
from understudy.ports.operation import Target
from understudy.robots.grblhal.driver.pins import PolledPins
from understudy.space.pose import pose_of

SCAN = pose_of((400.0, 0.0, 500.0, 180.0, 0.0, 0.0))


class PinPair(Pair):
    """A pair whose pins are read, too."""

    def __init__(self) -> None:
        self.pins: Any = None
        super().__init__()
        io = self.robot.io
        names = {"DI": io.di, "DO": io.do, "AI": io.ai, "AO": io.ao}
        self.pins = PolledPins(self.driver, names)
        self.changes: list[PinChange] = []
        self.pins.on_change(self.changes.append)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1000)):
            super().run(0.001)
            at = None if self.pins is None else self.pins.next_wake()
            if at is not None and at <= self.now:
                self.pins.wake(self.now)


def test_inputs_are_read_at_rest_and_reading_is_no_motion() -> None:
    pair = PinPair()
    assert isinstance(pair.pins, PollsInputs)
    pair.pins.follow(["PART_DETECTED", 11], ["VACUUM_PRESSURE"])
    assert not pair.pins.read_since(0)
    seen_moving = []
    pair.driver.on_status(lambda status: seen_moving.append(status.moving))
    pair.robot.io.set_digital_input("PART_DETECTED", True, pair.now)
    pair.robot.io.set_analog_input("VACUUM_PRESSURE", 7.0, pair.now)
    since = pair.now
    pair.run(0.5)
    assert pair.pins.read_since(since)
    assert pair.pins.digital_input("PART_DETECTED")
    assert not pair.pins.digital_input("VACUUM_OK")
    assert pair.pins.analog_input(5, pair.now) == 7.0
    assert [(each.bank, each.pin, each.value) for each in pair.changes] == [("DI", 10, True)]
    assert not any(seen_moving)


def test_an_output_is_reported_when_the_controller_has_set_it() -> None:
    pair = PinPair()
    assert pair.pins.set_digital_output("GRIPPER_CLOSE", True, pair.now) is None
    assert not pair.pins.digital_output("GRIPPER_CLOSE")
    pair.run(0.1)
    assert pair.pins.digital_output("GRIPPER_CLOSE")
    assert pair.robot.io.digital_output("GRIPPER_CLOSE")
    assert pair.changes[-1][1:] == ("DO", 8, True)


def test_nothing_is_read_during_a_motion_and_moves_are_taken_between_two_readings() -> None:
    pair = PinPair()
    pair.pins.follow([10])
    for _ in range(5):
        pair.run(0.013)
        assert not pair.driver.status(pair.now).moving
    pair.motion.move(Target(None, SCAN, False, 0.5), pair.now)
    pair.run(0.2)
    began = pair.now
    assert pair.driver.status(pair.now).moving
    pair.run(0.1)
    assert not pair.pins.read_since(began)
    assert pair.finish()[1] is None
    pair.run(0.2)
    assert pair.pins.read_since(began)
