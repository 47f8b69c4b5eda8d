"""The motors of one robot, as its commands use them."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from understudy.errors import Refused
from understudy.motion.ticks import ideal_seconds
from understudy.motion.wheels import MECANUM
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import Motor
from understudy.robots.mobile.hardware_interface import TimedHardware
from understudy.robots.mobile.runtime import pose_control
from understudy.robots.mobile.runtime.commands import (
    INVALID,
    ExecuteAction,
    MoveToPose,
    MoveVelocity,
    ResetMotor,
    SetSpeedLimit,
)
from understudy.robots.mobile.runtime.table import Table
from understudy.robots.mobile.runtime.tick import POSE, REST, VELOCITY
from understudy.units import LATEST, nanoseconds

TOLERANCE = 5e-4
"""Metres or radians within which an action has reached its target, unless it says otherwise."""


class RowBody:
    """`executor.Body` of a row of the table."""

    def __init__(self, table: Table, row: int, hardware: TimedHardware) -> None:
        self._table = table
        self._row = row
        self._hardware = hardware
        self._first, self._end = (int(n) for n in table.motor_spans[row])
        self._motors = {
            motor.motor_id: self._first + number
            for number, motor in enumerate(table.files[row].motors)
        }
        """Places of the motors in the table, by id."""

    @property
    def motors(self) -> Mapping[str, int]:
        return self._motors

    def problem(self, parameters: Any) -> Refused | None:
        check = CHECKS.get(type(parameters))
        return check(self, parameters) if check is not None else None

    def started(self, command_type: CommandType, now: int) -> None:
        self._hardware.command_started(int(self._table.robots[self._row]), command_type, now)

    def begin(self, parameters: Any, now: int) -> Refused | None:
        self.halt(now)
        return BEGINNINGS[type(parameters)](self, parameters, now)

    def halt(self, now: int) -> None:
        table, row = self._table, self._row
        table.mode[row] = REST
        table.phase[row] = pose_control.REST
        table.moving[self._first : self._end] = False

    def is_up(self, motor: str | None) -> bool:
        table = self._table
        if motor is None:
            has_wheels = table.is_drive[self._first : self._end].any()
            return bool(has_wheels and not table.drive_down[self._row])
        place = self._motors.get(motor)
        return place is not None and bool(table.connected[place] and not table.faulty[place])

    def motor_of(self, action: ExecuteAction) -> str:
        functional = [m for m in self._table.files[self._row].motors if m.role == "FUNCTIONAL"]
        for motor in functional:
            if action.motor_id == motor.motor_id or action.function_key == motor.function_key:
                return motor.motor_id
        return ""

    # ── checks ──

    def _check_velocity(self, move: MoveVelocity) -> Refused | None:
        if move.lateral != 0.0 and self._table.drive[self._row] != MECANUM:
            return Refused(f"{INVALID}: lateral: this drive cannot move sideways")
        return None

    def _check_motor(self, reset: ResetMotor) -> Refused | None:
        if reset.motor_id not in self._motors:
            known = ", ".join(self._motors)
            return Refused(f"{INVALID}: motorId {reset.motor_id}; known: {known}")
        return None

    def _check_target(self, action: ExecuteAction) -> Refused | None:
        limits = self._motor(self.motor_of(action)).limits.si
        low, high = limits.lowest, limits.highest
        target = action.target_position
        if (low is not None and target < low) or (high is not None and target > high):
            allowed = (
                f"{'-∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"
            )
            return Refused(f"{INVALID}: targetPosition {target:g}; allowed: {allowed}")
        return None

    def _motor(self, motor_id: str) -> Motor:
        return self._table.files[self._row].motors[self._motors[motor_id] - self._first]

    # ── beginnings ──

    def _move(self, move: MoveVelocity, now: int) -> None:
        table, row = self._table, self._row
        seconds = move.duration_seconds
        table.velocity[row] = move.linear, move.lateral, move.angular
        table.until[row] = LATEST if seconds is None else now + nanoseconds(seconds)
        table.mode[row] = VELOCITY

    def _go(self, goal: MoveToPose, now: int) -> None:
        table, row = self._table, self._row
        yaw = goal.yaw if goal.yaw is not None else 0.0
        has_yaw = 1.0 if goal.yaw is not None else 0.0
        table.goal[row] = goal.x, goal.y, yaw, has_yaw, goal.tolerance
        table.phase[row] = pose_control.START
        table.route[row] = 0.0
        table.mode[row] = POSE

    def _reset(self, reset: ResetMotor, now: int) -> Refused | None:
        motor = int(self._table.motors[self._motors[reset.motor_id]])
        return self._hardware.motors.reset(motor, now)

    def _limit(self, limit: SetSpeedLimit, now: int) -> None:
        self._table.speed_limit[self._row] = limit.max_speed_mps

    def _act(self, action: ExecuteAction, now: int) -> None:
        table, place = self._table, self._motors[self.motor_of(action)]
        table.target[place] = action.target_position
        table.tolerance[place] = TOLERANCE if action.tolerance is None else action.tolerance
        seconds = action.timeout_seconds
        if seconds is None:
            distance = abs(action.target_position - table.position[place])
            seconds = 1.0 + 2.0 * ideal_seconds(
                distance, table.max_speed[place], table.max_acceleration[place],
                table.deceleration[place],
            )  # fmt: skip
        table.deadline[place] = min(now + nanoseconds(seconds), LATEST)
        table.moving[place] = True


CHECKS: Mapping[type[Struct], Callable[[RowBody, Any], Refused | None]] = {
    MoveVelocity: RowBody._check_velocity,
    ResetMotor: RowBody._check_motor,
    ExecuteAction: RowBody._check_target,
}
BEGINNINGS: Mapping[type[Struct], Callable[[RowBody, Any, int], Refused | None]] = {
    MoveVelocity: RowBody._move,
    MoveToPose: RowBody._go,
    ResetMotor: RowBody._reset,
    SetSpeedLimit: RowBody._limit,
    ExecuteAction: RowBody._act,
}
