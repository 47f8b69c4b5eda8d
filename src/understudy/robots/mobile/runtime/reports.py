"""What robots report: the payloads of their streams."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import MotorFault, Rows, TimedHardware
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
from understudy.robots.mobile.runtime.table import (
    Codes,
    Flags,
    Table,
    rows_of,
)
from understudy.robots.mobile.runtime.tick import (
    STATUSES,
    STOPS,
    UNLIMITED,
    braking_distance_of,
)
from understudy.space.compiled import compiled

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


def find_nearest(table: Table, hardware: TimedHardware, asked: Flags) -> NDArray[np.float64]:
    """Metres to the nearest obstacle that a lidar of these robots sees; `UNLIMITED`: none."""
    nearest = np.full(table.size, UNLIMITED)
    chosen = asked[table.lidar_robot]
    found = hardware.sensors.nearest(table.lidars[chosen])
    np.minimum.at(nearest, table.lidar_robot[chosen], found)
    return nearest


def find_localizations(table: Table) -> Codes:
    """Codes of how well the robots know their poses."""
    away = np.where(table.corrects_pose, table.since_correction, 0.0)
    return (away > DEGRADED_AFTER).astype(np.int8) + (away > LOST_AFTER)


def find_modes(table: Table, rows: Rows) -> Codes:
    """Codes of the modes of all motors; those of these robots are up to date."""
    fill_modes(
        rows,
        table.motor_spans,
        table.stop,
        table.rolling,
        table.homing,
        table.connected,
        table.faulty,
        table.modes,
    )
    return table.modes


@compiled
def fill_modes(
    rows: Rows,
    spans: Rows,
    stop: Codes,
    rolling: NDArray[np.float64],
    homing: Flags,
    connected: Flags,
    faulty: Flags,
    modes: Codes,
) -> None:
    """Fills ``modes`` of the motors of these robots."""
    for row in rows:
        for n in range(spans[row, 0], spans[row, 1]):
            if faulty[n] or not connected[n]:
                modes[n] = ERROR
            elif homing[n]:
                modes[n] = HOMING
            elif abs(rolling[n]) > STILL:
                modes[n] = MOVING
            else:
                modes[n] = STOPPED if stop[row] != 0 else IDLE


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
        rows = self._table.lidars[self._table.lidar_robot == self._row]
        return float(self._hardware.sensors.nearest(rows).min(initial=UNLIMITED))

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
        modes = find_modes(table, rows_of([self._row]))[span]
        found = map(
            MotorState,
            table.connected[span].tolist(),
            [MODES[code] for code in modes.tolist()],
            table.position[span].tolist(),
            table.rolling[span].tolist(),
        )
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

    def inputs(self) -> dict[str, bool]:
        table = self._table
        first, end = table.input_spans[self._row]
        values = self._hardware.io.read_inputs(table.inputs[first:end])
        return dict(zip(table.input_ids[self._row], values.tolist(), strict=True))

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
        nearest = self.nearest
        near = bool(nearest <= table.warn_distance[row] or table.blocked[row])
        return Telemetry(
            battery=Battery(self.battery()),
            motors=self.motors(),
            lidar=LidarReading(
                near, nearest if nearest < UNLIMITED else None, bool(table.lidar_up[row])
            ),
            localization=LocalizationReading(self.localization(), self.pose),
            inputs=self.inputs(),
            health=Health(link.connected, self.hardware_ok(), link.given_up),
            state_json=self._marker,
        )

    def traffic(self, node_id: str | None, route_id: str | None) -> TrafficState:
        return TrafficState(
            self.pose,
            float(self._table.speeds[self._row, 0]),
            self.braking_distance(),
            UNSET if node_id is None else node_id,
            UNSET if route_id is None else route_id,
        )

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
