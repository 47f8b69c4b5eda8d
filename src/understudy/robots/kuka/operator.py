"""Operator actions on a KUKA: they submit records, numbered like the last completed one."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.ports import Injectable
from understudy.ports.operation import (
    AxisReading,
    Condition,
    Frame,
    Jog,
    ModelTool,
    RobotModel,
    Supervised,
    Target,
)
from understudy.robots.kuka.records import HOMES, LINEAR, POSITION, GcodeServer, Record
from understudy.space.kinematics.teach import moved_frame
from understudy.space.model.environment import place
from understudy.space.pose import Pose, pose_mm_deg
from understudy.space.transform import matrix, pose

if TYPE_CHECKING:
    from understudy.offline.walk import Event
    from understudy.robots.kuka import Config
    from understudy.robots.kuka.robot import KukaGcodeServer

LINES_ONLY = Refused("the G-code server moves the tool along lines only: give pose_mm_deg")
STEPS_ONLY = Refused("this robot jogs in steps only: give step")
NO_AXIS = Refused("this robot homes as a whole: give no axis")
FULL = Refused("the buffer of records is full")


class Stoppable(Protocol):
    """Stops, and reports why no motion is accepted."""

    def stop(self, now: int) -> None: ...

    def motion_refusal(self) -> Refused | None: ...


class Server(GcodeServer, Stoppable, Supervised, Injectable, Protocol):
    """The simulated server, with its stop and its faults."""


class KukaActions:
    """`OperatorActions`. Speeds are in m/s; poses are of the active tool in the active base."""

    frames: tuple[Frame, ...] = ("base", "tool")

    def __init__(self, server: Server) -> None:
        self._server = server

    def condition(self, now: int) -> Condition:
        under_way, fault = self._server.progress().under_way, self._server.fault(now)
        state = "EmergencyStopped" if fault else "Run" if under_way else "Idle"
        error = fault.reason if fault else ""
        return Condition(state, under_way, enabled=fault is None, error=error)

    def axis_reading(self, now: int) -> AxisReading:
        reading = self._server.reading(now)
        return AxisReading(reading.axes, (), (), reading.pose)

    def home(self, axis: int, now: int) -> Refused | None:
        return NO_AXIS if axis != -1 else self._submit(HOMES[0], {}, now)

    def stop(self, now: int) -> None:
        """Stops at once and drops all waiting records."""
        self._server.stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._server.inject("emergency_stop", {}, now)

    def reset(self, now: int) -> None:
        self._server.reset(now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.pose is None:
            return LINES_ONLY
        return self._line(target.pose, target.speed, now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        if jog.step is None:
            return STEPS_ONLY
        here = matrix(self._server.reading(now).pose)
        amount = math.copysign(jog.step, jog.speed)
        there = moved_frame(here, jog.axis, amount, in_tool=jog.frame == "tool")
        return self._line(pose(there), abs(jog.speed) if jog.axis < 3 else None, now)

    def _line(self, there: Pose, speed: float | None, now: int) -> Refused | None:
        words = dict(zip(POSITION, there, strict=True))
        return self._submit(LINEAR, words if speed is None else {**words, "F": speed}, now)

    def _submit(self, kind: int, words: dict[str, float], now: int) -> Refused | None:
        if refused := self._server.motion_refusal():
            return refused
        if not self._server.room():
            return FULL
        # The client follows the numbers; a new number would confirm a record that it never sent.
        number = max(self._server.progress().completed, 0)
        self._server.submit(Record(number, kind, words), now)
        return None


def model_of(config: "Config", robot: "KukaGcodeServer") -> RobotModel:
    x, y, z, rx, ry, rz = config.base_mm_deg
    foot = place((x, y, z), (rx, ry, rz))
    tools = {
        number: ModelTool(f"tool {number}", pose_mm_deg(pose(frame)))
        for number, frame in robot.model.tools.items()
    }
    return RobotModel(
        chain=robot.model.chain,
        base=tuple(foot.reshape(-1).tolist()),
        tools=lambda: tools,
        tool=lambda now: robot.reading(now).tool,
        program_events=lambda text, reading: _program_events(config, robot, text, reading),
        tip=lambda axes, tool: (foot @ matrix(robot.model.tip(axes, tool)))[:3, 3].tolist(),
    )


def _program_events(
    config: "Config", robot: "KukaGcodeServer", text: str, reading: AxisReading
) -> Iterator["Event"]:
    """Offline events of a program that begins where the robot is."""
    from understudy.robots.kuka.offline import walk_program

    start = replace(robot.modal, axes=reading.joints, position=reading.pose)
    return walk_program(text, robot.model, config.blend_percent / 100.0, start)
