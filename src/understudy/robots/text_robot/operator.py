"""Operator actions on a text robot, simulated or real."""

from typing import Protocol

from understudy.errors import Refused
from understudy.ports import Ticket, TimedComponent
from understudy.ports.operation import AxisReading, Condition, Frame, Jog, Target
from understudy.robots.text_robot.interface import PoseReading, PoseRobot
from understudy.space.pose import Pose

JOINTLESS = Refused("this robot has no joints: give pose_mm_deg")
STEPS_ONLY = Refused("this robot jogs in steps only: give step")
NO_AXIS = Refused("this robot homes as a whole: give no axis")


class Robot(PoseRobot, TimedComponent, Protocol):
    """The simulated robot, or its driver."""


class TextRobotActions:
    """`OperatorActions`. Moves have a fixed duration, so speeds are ignored."""

    frames: tuple[Frame, ...] = ("base",)

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def condition(self, now: int) -> Condition:
        reading, stopped = self._reading(now), self._robot.stopped()
        fault = self._robot.fault(now)
        return Condition(
            # Stopped with the cell, without an emergency stop of its own.
            state="Stopped" if stopped and not fault else reading.state,
            moving=self._robot.busy() and stopped is None,
            connected=getattr(reading, "connection", "connected") == "connected",
            enabled=stopped is None,
            error=fault.reason if fault else "",
            code=reading.error_code,
        )

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), self._reading(now).pose)

    def home(self, axis: int, now: int) -> Refused | None:
        return NO_AXIS if axis != -1 else _outcome(self._robot.home(now))

    def stop(self, now: int) -> None:
        self._robot.halt(now)

    def emergency_stop(self, now: int) -> None:
        self._robot.stop(now)

    def reset(self, now: int) -> None:
        self._robot.reset(now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.pose is None:
            return JOINTLESS
        return _outcome(self._robot.move_to(target.pose, now))

    def jog(self, jog: Jog, now: int) -> Refused | None:
        if jog.step is None:
            return STEPS_ONLY
        way = [0.0] * 6
        way[jog.axis] = jog.step if jog.speed >= 0.0 else -jog.step
        if jog.axis < 3:
            return _outcome(self._robot.move_by(way[0], way[1], way[2], now))
        here = self._reading(now).pose
        there = Pose(*(a + b for a, b in zip(here, way, strict=True)))
        return _outcome(self._robot.move_to(there, now))

    def _reading(self, now: int) -> PoseReading:
        """The status, which has no noise: `reading` would draw faults of scenario rules."""
        reading: PoseReading = self._robot.status(now)
        return reading


def _outcome(submitted: Ticket | Refused) -> Refused | None:
    return submitted if isinstance(submitted, Refused) else None
