"""The rows of a table of mobile robots: which motor, input, output and device has which number.

Robots are numbered in the order of the cell file; the motors of robot 0 come first, then those of
robot 1, and so on. Inputs, outputs and devices are numbered in the same way.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.config.robot_file import (
    Device,
    DigitalInput,
    DigitalOutput,
    Motor,
    MotorRole,
    RobotFile,
)

Rows = NDArray[np.int64]
T = TypeVar("T")


class MotorRow(NamedTuple):
    robot: int
    motor: Motor


class InputRow(NamedTuple):
    robot: int
    point: DigitalInput


class OutputRow(NamedTuple):
    robot: int
    point: DigitalOutput


class DeviceRow(NamedTuple):
    robot: int
    device: Device


class Layout:
    """``robots``: their files; `identity.robot_id` of each is its name."""

    def __init__(self, robots: Sequence[RobotFile]) -> None:
        self.robots = tuple(robots)

    @cached_property
    def robot_rows(self) -> dict[str, int]:
        """The row of a robot by its id."""
        return {robot.identity.robot_id: row for row, robot in enumerate(self.robots)}

    @cached_property
    def motors(self) -> tuple[MotorRow, ...]:
        return tuple(MotorRow(n, each) for n, robot in self._rows() for each in robot.motors)

    @cached_property
    def motor_spans(self) -> tuple[range, ...]:
        """The rows of the motors of each robot."""
        ends = list(accumulate((len(robot.motors) for robot in self.robots), initial=0))
        return tuple(range(begin, end) for begin, end in pairwise(ends))

    @cached_property
    def inputs(self) -> tuple[InputRow, ...]:
        return tuple(
            InputRow(n, each) for n, robot in self._rows() for each in robot.io.digital_inputs
        )

    @cached_property
    def outputs(self) -> tuple[OutputRow, ...]:
        return tuple(
            OutputRow(n, each) for n, robot in self._rows() for each in robot.io.digital_outputs
        )

    @cached_property
    def devices(self) -> tuple[DeviceRow, ...]:
        return tuple(DeviceRow(n, each) for n, robot in self._rows() for each in robot.io.devices)

    def motor_rows(self, robot: int, role: MotorRole | None = None) -> Rows:
        """The motors of a robot, those of a role or all."""
        rows = self.motor_spans[robot]
        return np.array(
            [row for row in rows if role in (None, self.motors[row].motor.role)], dtype=np.int64
        )

    def motor_row(self, robot: int, motor_id: str) -> int | None:
        rows = self.motor_spans[robot]
        return next((row for row in rows if self.motors[row].motor.motor_id == motor_id), None)

    def _rows(self) -> list[tuple[int, RobotFile]]:
        return list(enumerate(self.robots))
