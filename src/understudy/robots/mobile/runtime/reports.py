"""The payloads of the streams of a robot: state, heartbeat, telemetry, traffic.state."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import MotorFault, TimedHardware
from understudy.robots.mobile.runtime.messages import (
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
from understudy.robots.mobile.runtime.table import UNLIMITED, Codes, Flags, Table, rows_of
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS, braking_distance_of

SILENT = MotorFault("NOT_CONNECTED", "the motor does not answer")
STILL = 1e-4
"""m/s or rad/s below which a motor or a robot does not move."""
IDLE, STOPPED, MOVING, HOMING, ERROR = range(5)
LOCALIZATIONS: tuple[Localization, ...] = ("OK", "DEGRADED", "LOST")
MODES: tuple[MotorMode, ...] = ("IDLE", "STOPPED", "MOVING", "HOMING", "ERROR")
DEGRADED_AFTER, LOST_AFTER = 50.0, 200.0
"""Metres since the last correction of the pose, for robots that correct it by markers."""


class Link(NamedTuple):
    """The connection, for health."""

    connected: bool
    given_up: int


def find_sound(table: Table, robots: slice) -> Flags:
    """Robots without a fault: neither a motor nor a lidar nor an input is down."""
    down = table.drive_down[robots] | table.function_down[robots]
    sound: Flags = table.lidar_up[robots] & table.inputs_up[robots] & ~down
    return sound


def find_working(table: Table, hardware: TimedHardware, sound: Flags) -> Flags:
    """Robots without a fault whose devices are all connected."""
    working = sound.copy()
    if table.all_devices.size:
        lost = ~hardware.sensors.connected(table.all_devices)
        working[table.device_robot[lost]] = False
    return working


def find_localizations(table: Table) -> Codes:
    """Codes of how well the robots know their poses."""
    away = np.where(table.corrects_pose, table.since_correction, 0.0)
    return (away > DEGRADED_AFTER).astype(np.int8) + (away > LOST_AFTER)


def find_modes(table: Table, robots: slice, motors: slice) -> Codes:
    """Codes of the modes of motors."""
    spans = table.motor_spans[robots]
    stopped = np.repeat(table.stop[robots] != 0, spans[:, 1] - spans[:, 0])
    codes = np.where(stopped, STOPPED, IDLE)
    codes[np.abs(table.rolling[motors]) > STILL] = MOVING
    codes[table.homing[motors]] = HOMING
    codes[table.faulty[motors] | ~table.connected[motors]] = ERROR
    return codes


def marker_of(file: RobotFile) -> StateMarker:
    """Mode and profile; a REAL robot has no profile."""
    profile = file.runtime.simulation_profile
    name = profile.profile_name if profile is not None else "default"
    return StateMarker(file.runtime.mode, name if file.runtime.mode == "MOCK" else None)


class Reports:
    """What a robot reports of itself."""

    def __init__(self, table: Table, row: int, hardware: TimedHardware) -> None:
        self._table = table
        self._row = row
        self._hardware = hardware
        file = table.files[row]
        self._motor_ids = [motor.motor_id for motor in file.motors]
        self._first, self._end = (int(n) for n in table.motor_spans[row])
        self._marker = marker_of(file)
        self.profile_name = self._marker.simulation_profile_name

    # ── parts ──

    @property
    def pose(self) -> Pose:
        return Pose(*self._table.pose[self._row].tolist())

    @property
    def status(self) -> RobotStatus:
        return _status(int(self._table.status[self._row]))

    @property
    def velocity(self) -> tuple[float, float]:
        """Forward (m/s) and turning (rad/s)."""
        forward, _, turning = self._table.speeds[self._row].tolist()
        return forward, turning

    @property
    def is_moving(self) -> bool:
        return max(abs(speed) for speed in self.velocity) > STILL

    @property
    def nearest(self) -> float:
        """Metres to the nearest obstacle that a lidar sees; `UNLIMITED` if there is none."""
        return float(self._table.nearest[self._row])

    @property
    def speed_limit(self) -> float:
        """m/s, by commands and traffic control; `UNLIMITED` if there is none."""
        table, row = self._table, self._row
        return float(min(table.speed_limit[row], table.traffic_limit[row]))

    def battery(self) -> float:
        rows = self._table.robots[self._row : self._row + 1]
        return float(self._hardware.read_robots(rows).battery_percent[0])

    def localization(self) -> Localization:
        if not self._table.corrects_pose[self._row]:
            return "OK"
        away = self._table.since_correction[self._row]
        if away <= DEGRADED_AFTER:
            return "OK"
        return "DEGRADED" if away <= LOST_AFTER else "LOST"

    def motors(self) -> dict[str, MotorState]:
        table, span = self._table, slice(self._first, self._end)
        modes = find_modes(table, slice(self._row, self._row + 1), span)
        found = map(
            MotorState, table.connected[span].tolist(), [MODES[code] for code in modes.tolist()],
            table.position[span].tolist(), table.rolling[span].tolist(),
        )  # fmt: skip
        states = dict(zip(self._motor_ids, found, strict=True))
        if table.drive_down[self._row] or table.function_down[self._row]:
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

    def state(self) -> State:
        table, row = self._table, self._row
        level, faults = self.faults()
        stop = STOPS[table.stop[row]]
        return State(
            pose=self.pose,
            velocity=Velocity(*self.velocity),
            battery_percent=self.battery(),
            localization_status=self.localization(),
            fault_level=level,
            faults=faults,
            status=self.status,
            estop_pressed=bool(table.estop[row]),
            safety_stop_active=stop is not None,
            safety_stop_reason=stop,
            motors=self.motors(),
            runtime_mode=self._marker.runtime_mode,
            simulation_profile_name=self.profile_name,
        )

    def heartbeat(self, boot_id: str, uptime_seconds: float, seq: int) -> Heartbeat:
        version = self._table.files[self._row].identity.firmware_version
        return Heartbeat(
            boot_id, version or "", self.status, self._marker.runtime_mode, uptime_seconds, seq
        )

    def telemetry(self, link: Link) -> Telemetry:
        table, row = self._table, self._row
        nearest = float(table.nearest[row])
        near = bool(nearest <= table.warn_distance[row] or table.blocked[row])
        return Telemetry(
            battery=Battery(self.battery()),
            motors=self.motors(),
            lidar=LidarReading(
                near, nearest if nearest < UNLIMITED else None, bool(table.lidar_up[row])
            ),
            localization=LocalizationReading(self.localization(), self.pose),
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
