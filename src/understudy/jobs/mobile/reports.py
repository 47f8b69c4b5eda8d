"""The payloads of the streams of a robot: state, heartbeat, telemetry, traffic.state."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from understudy.config.mobile.robot_file import ScannerConfig
from understudy.jobs.mobile.messages import (
    Battery,
    FaultEntry,
    FaultLevel,
    Health,
    Heartbeat,
    LidarReading,
    Localization,
    LocalizationReading,
    MotorMode,
    MotorState,
    Pose,
    RobotStatus,
    State,
    StateMarker,
    Telemetry,
    TrafficState,
    Velocity,
)
from understudy.jobs.mobile.table import UNLIMITED, Table, rows_of
from understudy.jobs.mobile.tick import STATUSES, STOPS, braking_distance_of
from understudy.ports.mobile import MotorFault, TimedHardware

SILENT = MotorFault("NOT_CONNECTED", "the motor does not answer")
STILL = 1e-4
"""m/s or rad/s below which a motor does not move."""
IDLE, STOPPED, MOVING, HOMING, ERROR = range(5)
MODES: tuple[MotorMode, ...] = ("IDLE", "STOPPED", "MOVING", "HOMING", "ERROR")
DEGRADED_AFTER, LOST_AFTER = 50.0, 200.0
"""Metres since the last correction of the pose, for robots that correct it by markers."""


class Link(NamedTuple):
    """The connection, for health."""

    connected: bool
    given_up: int


class Columns(NamedTuple):
    """What messages take from the table, as lists, for robots from ``robot`` and motors from
    ``motor`` on: to read whole columns costs less than to read each row."""

    robot: int
    motor: int
    pose: list[list[float]]
    speeds: list[list[float]]
    battery: list[float]
    status: list[int]
    stop: list[int]
    estop: list[bool]
    sound: list[bool]
    """Neither a motor nor a lidar nor an input of the robot is down."""
    position: list[float]
    rolling: list[float]
    connected: list[bool]
    mode: list[MotorMode]


def read_columns(table: Table, hardware: TimedHardware, first: int, end: int) -> Columns:
    """Columns of the robots from ``first`` to the one before ``end``."""
    robots = slice(first, end)
    motors = slice(int(table.motor_spans[first, 0]), int(table.motor_spans[end - 1, 1]))
    down = table.drive_down[robots] | table.function_down[robots]
    sound = table.lidar_up[robots] & table.inputs_up[robots] & ~down
    return Columns(
        first, motors.start, table.pose[robots].tolist(), table.speeds[robots].tolist(),
        hardware.read_robots(table.robots[robots]).battery_percent.tolist(),
        table.status[robots].tolist(), table.stop[robots].tolist(), table.estop[robots].tolist(),
        sound.tolist(), table.position[motors].tolist(), table.rolling[motors].tolist(),
        table.connected[motors].tolist(), _modes(table, robots, motors),
    )  # fmt: skip


def _modes(table: Table, robots: slice, motors: slice) -> list[MotorMode]:
    spans = table.motor_spans[robots]
    stopped = np.repeat(table.stop[robots] != 0, spans[:, 1] - spans[:, 0])
    codes = np.where(stopped, STOPPED, IDLE)
    codes[np.abs(table.rolling[motors]) > STILL] = MOVING
    codes[table.homing[motors]] = HOMING
    codes[table.faulty[motors] | ~table.connected[motors]] = ERROR
    return [MODES[code] for code in codes.tolist()]


class Reports:
    """What a robot reports of itself."""

    def __init__(self, table: Table, row: int, hardware: TimedHardware) -> None:
        self._table = table
        self._row = row
        self._hardware = hardware
        file = table.files[row]
        self._motor_ids = [motor.motor_id for motor in file.motors]
        self._first, self._end = (int(n) for n in table.motor_spans[row])
        profile = file.runtime.simulation_profile
        name = profile.profile_name if profile is not None else "default"
        self.profile_name = name if file.runtime.mode == "MOCK" else None
        self._marker = StateMarker(file.runtime.mode, self.profile_name)
        scanners = [device.settings for device in file.io.devices]
        self._corrects = any(isinstance(s, ScannerConfig) and s.corrects_pose for s in scanners)

    # ── parts ──

    @property
    def pose(self) -> Pose:
        return Pose(*self._table.pose[self._row].tolist())

    @property
    def status(self) -> RobotStatus:
        return _status(int(self._table.status[self._row]))

    def columns(self) -> Columns:
        """Of this robot alone."""
        return read_columns(self._table, self._hardware, self._row, self._row + 1)

    def localization(self) -> Localization:
        if not self._corrects:
            return "OK"
        away = self._table.since_correction[self._row]
        if away <= DEGRADED_AFTER:
            return "OK"
        return "DEGRADED" if away <= LOST_AFTER else "LOST"

    def motors(self, columns: Columns) -> dict[str, MotorState]:
        span = slice(self._first - columns.motor, self._end - columns.motor)
        found = map(
            MotorState, columns.connected[span], columns.mode[span], columns.position[span],
            columns.rolling[span],
        )  # fmt: skip
        states = dict(zip(self._motor_ids, found, strict=True))
        if columns.sound[self._row - columns.robot]:
            return states
        if self._table.drive_down[self._row] or self._table.function_down[self._row]:
            for motor, fault in self.motor_faults():
                was = states[motor]
                states[motor] = MotorState(
                    was.connected, was.mode, was.position, was.velocity, fault.code, fault.message
                )
        return states

    def motor_faults(self) -> list[tuple[str, MotorFault]]:
        """The motors that are down, and why."""
        table = self._table
        found = []
        for number, name in enumerate(self._motor_ids, self._first):
            if table.faulty[number] or not table.connected[number]:
                fault = self._hardware.motors.fault(int(table.motors[number]))
                found.append((name, fault or SILENT))
        return found

    def faults(self) -> tuple[FaultLevel, list[FaultEntry]]:
        table, row = self._table, self._row
        found: list[FaultEntry] = []
        if table.drive_down[row] or table.function_down[row]:
            for name, fault in self.motor_faults():
                drives = table.is_drive[self._first + self._motor_ids.index(name)]
                text = f"{name}: {fault.message}"
                found.append(FaultEntry(fault.code, text, "ERROR" if drives else "WARN"))
        if not table.lidar_up[row]:
            found.append(FaultEntry("LIDAR_NOT_CONNECTED", "a lidar does not answer", "ERROR"))
        if not table.inputs_up[row]:
            found.append(FaultEntry("INPUT_NOT_CONNECTED", "an input does not answer", "ERROR"))
        severe = any(fault.severity == "ERROR" for fault in found)
        return ("ERROR" if severe else "WARN") if found else "NONE", found

    # ── payloads ──

    def state(self, columns: Columns | None = None) -> State:
        columns = columns or self.columns()
        place = self._row - columns.robot
        level, faults = ("NONE", []) if columns.sound[place] else self.faults()
        forward, _, turning = columns.speeds[place]
        stop = STOPS[columns.stop[place]]
        return State(
            pose=Pose(*columns.pose[place]),
            velocity=Velocity(forward, turning),
            battery_percent=columns.battery[place],
            localization_status=self.localization(),
            fault_level=level,
            faults=faults,
            status=_status(columns.status[place]),
            estop_pressed=columns.estop[place],
            safety_stop_active=stop is not None,
            safety_stop_reason=stop,
            motors=self.motors(columns),
            runtime_mode=self._marker.runtime_mode,
            simulation_profile_name=self.profile_name,
        )

    def heartbeat(self, boot_id: str, uptime_seconds: float, seq: int) -> Heartbeat:
        version = self._table.files[self._row].identity.firmware_version
        return Heartbeat(
            boot_id, version or "", self.status, self._marker.runtime_mode, uptime_seconds, seq
        )

    def telemetry(self, link: Link, columns: Columns | None = None) -> Telemetry:
        table, row = self._table, self._row
        columns = columns or self.columns()
        nearest = float(table.nearest[row])
        near = bool(nearest <= table.warn_distance[row] or table.blocked[row])
        return Telemetry(
            battery=Battery(columns.battery[row - columns.robot]),
            motors=self.motors(columns),
            lidar=LidarReading(
                near, nearest if nearest < UNLIMITED else None, bool(table.lidar_up[row])
            ),
            localization=LocalizationReading(
                self.localization(), Pose(*columns.pose[row - columns.robot])
            ),
            health=Health(link.connected, self.hardware_ok(), link.given_up),
            state_json=self._marker,
        )

    def traffic(self, node_id: str | None, route_id: str | None) -> TrafficState:
        return TrafficState(
            self.pose, float(self._table.speeds[self._row, 0]), self.braking_distance(),
            UNSET if node_id is None else node_id, UNSET if route_id is None else route_id,
        )  # fmt: skip

    def braking_distance(self) -> float:
        """Metres until the robot stands if it brakes now."""
        table = self._table
        return braking_distance_of(table.wheels, table.figures, table.speeds, self._row)

    def hardware_ok(self) -> bool:
        table, row = self._table, self._row
        down = table.drive_down[row] or table.function_down[row]
        if down or not table.inputs_up[row] or not table.lidar_up[row]:
            return False
        devices: Sequence[int] = table.devices[row]
        return not devices or bool(self._hardware.sensors.connected(rows_of(devices)).all())


def _status(code: int) -> RobotStatus:
    return STATUSES[code] if code >= 0 else "OFFLINE"  # before the first tick
