"""The payloads of the streams of a robot: state, heartbeat, telemetry, traffic.state."""

from collections.abc import Sequence
from typing import NamedTuple

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
    position: list[float]
    rolling: list[float]
    connected: list[bool]
    faulty: list[bool]
    homing: list[bool]


def read_columns(table: Table, hardware: TimedHardware, first: int, end: int) -> Columns:
    """Columns of the robots from ``first`` to the one before ``end``."""
    motors = slice(int(table.motor_spans[first, 0]), int(table.motor_spans[end - 1, 1]))
    return Columns(
        first, motors.start, table.pose[first:end].tolist(), table.speeds[first:end].tolist(),
        hardware.read_robots(table.robots[first:end]).battery_percent.tolist(),
        table.position[motors].tolist(), table.rolling[motors].tolist(),
        table.connected[motors].tolist(), table.faulty[motors].tolist(),
        table.homing[motors].tolist(),
    )  # fmt: skip


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
        code = int(self._table.status[self._row])
        return STATUSES[code] if code >= 0 else "OFFLINE"  # before the first tick

    def columns(self) -> Columns:
        """Of this robot alone."""
        return read_columns(self._table, self._hardware, self._row, self._row + 1)

    def localization(self) -> Localization:
        away = self._table.since_correction[self._row]
        if not self._corrects or away <= DEGRADED_AFTER:
            return "OK"
        return "DEGRADED" if away <= LOST_AFTER else "LOST"

    def motors(self, columns: Columns) -> dict[str, MotorState]:
        stopped = bool(self._table.stop[self._row])
        span = slice(self._first - columns.motor, self._end - columns.motor)
        states = {}
        for name, position, speed, connected, faulty, homing in zip(
            self._motor_ids, columns.position[span], columns.rolling[span],
            columns.connected[span], columns.faulty[span], columns.homing[span], strict=True,
        ):  # fmt: skip
            mode = _mode(speed, faulty=faulty or not connected, homing=homing, stopped=stopped)
            states[name] = MotorState(connected, mode, position, speed)
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
        table, row = self._table, self._row
        columns = columns or self.columns()
        level, faults = self.faults()
        forward, _, turning = columns.speeds[row - columns.robot]
        stop = STOPS[int(table.stop[row])]
        return State(
            pose=Pose(*columns.pose[row - columns.robot]),
            velocity=Velocity(forward, turning),
            battery_percent=columns.battery[row - columns.robot],
            localization_status=self.localization(),
            fault_level=level,
            faults=faults,
            status=self.status,
            estop_pressed=bool(table.estop[row]),
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


def _mode(speed: float, *, faulty: bool, homing: bool, stopped: bool) -> MotorMode:
    if faulty:
        return "ERROR"
    if homing:
        return "HOMING"
    if abs(speed) > STILL:
        return "MOVING"
    return "STOPPED" if stopped else "IDLE"
