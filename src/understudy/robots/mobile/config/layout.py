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

from understudy.robots.mobile.config.profile import DriveModel
from understudy.robots.mobile.config.robot_file import (
    Device,
    DigitalInput,
    DigitalOutput,
    Motor,
    MotorRole,
    RobotFile,
)
from understudy.robots.mobile.wheels import (
    DIFFERENTIAL,
    DIRECT,
    WheelMotor,
    Wheels,
    WheelSet,
    drive_code,
    join_wheels,
    wheel_set,
)
from understudy.units import MM

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
    """The numbers of the motors, inputs, outputs and devices of robots, from their files."""

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


# ── wheels and outlines ───────────────────────────────────────────────────────────────────────────

Floats = NDArray[np.float64]


def drive_model(robot: RobotFile) -> DriveModel:
    profile = robot.runtime.simulation_profile
    return profile.drive_model if profile else "differential"


def track_of(robot: RobotFile) -> float:
    """Metres between left and right wheels; without `trackWidthMm` the width of the body."""
    size = robot.dimensions
    return (size.track_width_mm or size.width_mm) * MM


def base_of(robot: RobotFile) -> float:
    """Metres between the axles; without `wheelBaseMm` the length of the body."""
    size = robot.dimensions
    return (size.wheel_base_mm or size.length_mm) * MM


def wheels_of(layout: Layout) -> Wheels:
    """The wheels of all robots; `wheel_rows` has their motors."""
    return join_wheels([_wheel_set(robot) for robot in layout.robots])


def drives_of(layout: Layout) -> NDArray[np.int8]:
    """The code of the drive of each robot, see `wheels`."""
    return np.array([_drive(robot) for robot in layout.robots], dtype=np.int8)


def _drive(robot: RobotFile) -> int:
    code = drive_code(drive_model(robot), _wheel_set(robot))
    simulated = robot.runtime.mode == "MOCK"
    if code == DIFFERENTIAL and simulated and robot.dimensions.track_width_mm is None:
        return DIRECT
    return code


def _wheel_set(robot: RobotFile) -> WheelSet:
    motors = [
        WheelMotor(motor.function_key, motor.motor_id)
        for motor in robot.motors
        if motor.role == "DRIVE"
    ]
    return wheel_set(drive_model(robot), motors, track=track_of(robot), base=base_of(robot))


def wheel_rows(layout: Layout) -> Rows:
    """The row of the motor of each wheel, in the order of `wheels_of`."""
    rows = [row for row, (_, motor) in enumerate(layout.motors) if motor.role == "DRIVE"]
    return np.array(rows, dtype=np.int64)


def centre_ahead(robot: RobotFile) -> float:
    """Metres by which the centre of the body is ahead of its pose: the pose of an Ackermann drive
    is the middle of its rear axle."""
    return base_of(robot) / 2.0 if drive_model(robot) == "ackermann" else 0.0


def outlines_of(layout: Layout) -> Floats:
    """Half the length, half the width, and how far the centre is ahead of the pose, in metres."""
    outlines = [
        (size.length_mm * MM / 2.0, size.width_mm * MM / 2.0, centre_ahead(robot))
        for robot in layout.robots
        for size in (robot.dimensions,)
    ]
    return np.array(outlines, dtype=np.float64).reshape(-1, 3)
