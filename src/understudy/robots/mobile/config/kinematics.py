"""Wheels and outlines of robots, from their files."""

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.profile import DriveModel
from understudy.robots.mobile.config.robot_file import RobotFile
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

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


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
