"""Moves for jobs through the driver of a REAL arm: another cell behind its grblHAL wire."""

from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.pick_place.moves import line
from understudy.ports import UNLIMITED
from understudy.ports.operation import Target
from understudy.registry import module_of
from understudy.space.pose import pose_of
from understudy.units import NS_PER_MS, nanoseconds

CELL = """
robots:
  g60:
    kind: arm
    tool: 1
    tools: {1: {name: gripper, tcp_mm_deg: [0, 0, 80, 0, 0, 0]}}
    faces: {grblhal: {}}
"""
SCAN = pose_of((400.0, 0.0, 500.0, 180.0, 0.0, 0.0))
PICK = pose_of((450.0, 100.0, 160.0, 180.0, 0.0, 30.0))


class Pair:
    """A driver with its moves, and the cell that stands for the REAL arm; bytes go every ms."""

    def __init__(self) -> None:
        config = read_config(CELL, "cell.yaml")
        self.cell, own = build_cell(config), build_cell(config)
        client = module_of("robots", "arm").real_client(config, "g60", own.components["g60"])
        driver: Any = client.driver
        self.driver = driver
        robot: Any = self.cell.components["g60"]
        self.robot = robot
        face: Any = self.cell.faces["g60.grblhal"]
        self.session = face.open("driver", 0)
        move_to: Any = client.actions
        self.motion = ControllerMotion(driver, move_to.move_to, driver.tcp)
        self.ends: list[Any] = []
        self.motion.on_finished(lambda *end: self.ends.append(end))
        self.now = 0
        client.connect(0)
        driver.connected(0)
        self.run(2.0)
        assert driver.enable(self.now) is None
        self.run(0.5)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1000)):
            self.now += NS_PER_MS
            for part in (self.driver, self.motion):
                if (at := part.next_wake()) is not None and at <= self.now:
                    part.wake(self.now)
            while data := self.driver.take(UNLIMITED):
                self.session.receive(data, self.now)
            self.cell.advance(self.now)
            while data := self.session.take(UNLIMITED):
                self.driver.receive(data, self.now)

    def finish(self) -> Any:
        start = self.now
        while not self.ends:
            assert self.now - start < nanoseconds(30), self.driver.status(self.now)
            self.run(0.05)
        return self.ends.pop()


def test_moves_hold_stop_and_alarm_through_the_driver() -> None:
    pair = Pair()
    ticket = pair.motion.move(Target(None, SCAN, False, 0.5), pair.now)
    assert pair.finish()[:2] == (ticket, None)
    assert pair.robot.tcp(pair.now)[:3] == pytest.approx(SCAN[:3], abs=1e-4)

    ticket = pair.motion.move(line(PICK, 200.0), pair.now)
    pair.run(0.5)
    pair.motion.hold(pair.now)
    pair.run(2.0)
    held = pair.robot.tcp(pair.now)
    pair.run(2.0)
    assert pair.robot.tcp(pair.now) == held
    assert pair.ends == []
    pair.motion.resume(pair.now)
    assert pair.finish()[:2] == (ticket, None)
    assert pair.robot.tcp(pair.now)[:3] == pytest.approx(PICK[:3], abs=1e-4)

    pair.motion.move(line(SCAN, 200.0), pair.now)
    pair.run(0.5)
    pair.motion.stop(pair.now)
    assert "stopped" in pair.finish()[1].reason
    assert not pair.robot.status(pair.now).moving

    pair.motion.move(line(SCAN, 100.0), pair.now)
    pair.run(0.3)
    pair.robot.emergency_stop(pair.now)
    assert pair.finish()[1] is not None
    assert pair.motion.unready(pair.now) is not None
