"""The robots with one tick rate as rows of arrays: what their runtime knows of them at a tick.

A column has one entry for each robot, or for each motor, of the table. Motors, inputs and devices
are kept with their row numbers in the hardware.
"""

from collections.abc import Sequence
from typing import Any, ClassVar
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.config.layout import Layout, drives_of, outlines_of, wheels_of
from understudy.robots.mobile.config.robot_file import (
    DigitalInput,
    LidarConfig,
    ScannerConfig,
)
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.reeds_shepp import SEGMENTS
from understudy.robots.mobile.runtime.late_drives import BRAKING_SHARE, LateDrives
from understudy.robots.mobile.runtime.pose_control import DONE, LIMITS, ROUTE
from understudy.robots.mobile.runtime.tick import (
    MANUAL_HOLD,
    NO_STOP,
    POSE,
    REST,
    RUNNING,
    UNLIMITED,
    Conditions,
    Figures,
)
from understudy.robots.mobile.wheels import ACKERMANN, smallest_radius
from understudy.units import LATEST, NS_PER_SECOND

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

HEARTBEAT, STATE, TELEMETRY, TRAFFIC = range(4)
"""Columns of streams."""
ALLOWED = {
    "mode": (REST, POSE),
    "phase": (0, DONE),
    "stop": (NO_STOP, MANUAL_HOLD),
    "status": (-1, RUNNING),
    "max_speed": (1e-9, 1e9),
    "max_acceleration": (1e-9, 1e9),
    "measured": (-1, 1e9),
}
ALLOWED_OF = {"f": (-1e15, 1e15), "i": (-LATEST, LATEST), "b": (0, 1)}
"""Values in a snapshot: of a column, or of all columns of a type."""


def rows_of(numbers: Sequence[int]) -> Rows:
    return np.array(numbers, dtype=np.int64)


class Table:
    """``robots``: rows of the layout; all have the same tickHz."""

    SAVED: ClassVar[str] = """
        pose speeds command velocity until mode phase goal route seen steering speed_limit
        traffic_limit since_correction blocked ahead lidar_up estop io_hold
        traffic_hold manual_hold operator_hold inputs_up stop status drive_down function_down
        bootstrapped stop_on_obstacle stop_distance warn_distance position rolling connected
        faulty homing set_speed target tolerance moving deadline max_speed max_acceleration
        due settled given ordered measured astray last_way limit_ticks
        """
    """Columns of a snapshot; the others follow from the robot files or are filled at each tick."""

    def __init__(self, layout: Layout, robots: Sequence[int]) -> None:
        self.robots = rows_of(robots)
        self.files = [layout.robots[row] for row in robots]
        place = {row: number for number, row in enumerate(robots)}
        self._add_motors(layout, place)
        self._add_io(layout, place)
        self._add_robots()
        self._add_policies()
        self._add_late_drives()
        self.update_limits(range(len(robots)))
        self.figures = Figures._make(getattr(self, name) for name in Figures._fields)
        self.conditions = Conditions._make(getattr(self, name) for name in Conditions._fields)

    @property
    def size(self) -> int:
        return self.robots.size

    # ── columns ──

    def _add_motors(self, layout: Layout, place: dict[int, int]) -> None:
        found = [(n, *each) for n, each in enumerate(layout.motors) if each.robot in place]
        self.motors = rows_of([n for n, _, _ in found])
        self.motor_robot = rows_of([place[robot] for _, robot, _ in found])
        self.is_drive = np.array([motor.role == "DRIVE" for _, _, motor in found], dtype=np.bool_)
        self.drives = np.flatnonzero(self.is_drive)
        """Places of the DRIVE motors among the motors."""
        ends = np.cumsum([len(file.motors) for file in self.files], dtype=np.int64)
        self.motor_spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        limits = [motor.limits.si for _, _, motor in found]
        self.file_speed = np.array([each.max_speed for each in limits])
        self.file_acceleration = np.array([each.max_acceleration for each in limits])
        self.deceleration = np.array([each.max_deceleration for each in limits])
        self.max_speed, self.max_acceleration = (
            self.file_speed.copy(),
            self.file_acceleration.copy(),
        )
        count = len(found)
        self.position, self.rolling = np.zeros(count), np.zeros(count)
        """What the motors report; `rolling`: m/s or rad/s."""
        self.modes = np.zeros(count, dtype=np.int8)
        """Codes of their modes, as `reports.find_modes` leaves them."""
        self.connected = np.ones(count, dtype=np.bool_)
        self.faulty, self.homing, self.moving = (np.zeros(count, dtype=np.bool_) for _ in range(3))
        self.set_speed, self.target, self.tolerance = (np.zeros(count) for _ in range(3))
        self.deadline = np.full(count, LATEST, dtype=np.int64)
        self.astray = np.zeros(self.drives.size)
        """Seconds for which each wheel has not followed its command."""
        self.wheels = wheels_of(Layout(self.files))
        wheels = [self.wheels.coefficients[first:end] for first, end in self.wheels.spans]
        self.reach = np.array([np.abs(each[:, 2]).max(initial=0.0) for each in wheels])
        """Metres: the speed of the fastest wheel at 1 rad/s of turning."""
        self.drive = drives_of(Layout(self.files))

    def _add_io(self, layout: Layout, place: dict[int, int]) -> None:
        inputs = [(n, *each) for n, each in enumerate(layout.inputs) if each.robot in place]
        estops = [(n, place[robot]) for n, robot, point in inputs if point.role == "ESTOP"]
        holds = [(n, place[robot]) for n, robot, point in inputs if point.role == "TRAFFIC_HOLD"]
        self.inputs = rows_of([n for n, _, _ in inputs])
        self.input_ids = [[p.io_id for p in file.io.digital_inputs] for file in self.files]
        ends = np.cumsum([len(ids) for ids in self.input_ids], dtype=np.int64)
        self.input_spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        """Places of the inputs of each robot among `inputs`."""
        self.estop_inputs, self.estop_robot = _pairs(estops)
        self._add_limit_inputs(
            [
                (n, place[robot], point)
                for n, robot, point in inputs
                if point.role in ("LIMIT_MIN", "LIMIT_MAX")
            ]
        )
        self.hold_inputs, self.hold_robot = _pairs(holds)
        devices = [(n, *each) for n, each in enumerate(layout.devices) if each.robot in place]
        lidars = [(n, place[robot]) for n, robot, device in devices if device.type == "LIDAR"]
        self.lidars, self.lidar_robot = _pairs(lidars)
        self.sight = np.full(len(self.files), UNLIMITED)
        """Metres that the lidars of a robot see."""
        for _, robot, device in devices:
            if isinstance(device.settings, LidarConfig):
                least = min(self.sight[place[robot]], device.settings.max_range_meters)
                self.sight[place[robot]] = least
        self.outputs: list[list[int]] = [[] for _ in place]
        self.enables: list[list[int]] = [[] for _ in place]
        """Rows of the outputs MOTOR_ENABLE of each robot."""
        self.devices: list[list[int]] = [[] for _ in place]
        """Rows of the outputs and the devices of each robot."""
        for n, output in enumerate(layout.outputs):
            if output.robot in place:
                self.outputs[place[output.robot]].append(n)
                if output.point.role == "MOTOR_ENABLE":
                    self.enables[place[output.robot]].append(n)
        for n, robot, _ in devices:
            self.devices[place[robot]].append(n)
        self.all_devices, self.device_robot = _pairs([(n, place[robot]) for n, robot, _ in devices])
        self.corrects_pose = np.zeros(len(self.files), dtype=np.bool_)
        """Whether a scanner of a robot corrects its pose by markers."""
        for _, robot, device in devices:
            if isinstance(device.settings, ScannerConfig):
                self.corrects_pose[place[robot]] |= device.settings.corrects_pose

    def _add_limit_inputs(self, found: Sequence[tuple[int, int, DigitalInput]]) -> None:
        motors = [
            int(self.motor_spans[robot, 0])
            + [motor.motor_id for motor in self.files[robot].motors].index(point.motor_id or "")
            for _, robot, point in found
        ]
        self.limit_inputs, self.limit_motor = rows_of([n for n, _, _ in found]), rows_of(motors)
        """The inputs at the ends of axes, and the places of their motors."""
        self.limit_side = np.array(
            [1.0 if point.role == "LIMIT_MAX" else -1.0 for _, _, point in found]
        )
        self.limit_ticks = np.zeros(len(found), dtype=np.int64)
        """Ticks in a row in which an axis moved towards its limit input although it was on."""

    def _add_robots(self) -> None:
        count = len(self.files)
        self.pose, self.speeds, self.command, self.velocity = (
            np.zeros((count, 3)) for _ in range(4)
        )
        self.moved = np.zeros((count, 3))
        for row, file in enumerate(self.files):
            profile = file.runtime.simulation_profile
            if profile is not None:
                start = profile.initial_state.pose
                self.pose[row] = start.x, start.y, start.yaw
        self.until = np.full(count, LATEST, dtype=np.int64)
        self.mode, self.phase, self.stop = (np.zeros(count, dtype=np.int8) for _ in range(3))
        self.status = np.full(count, -1, dtype=np.int8)
        self.goal, self.route = np.zeros((count, 5)), np.zeros((count, ROUTE))
        self.steered = np.zeros((count, 3))
        self.body_limits, self.limits = np.zeros((count, LIMITS)), np.zeros((count, LIMITS))
        self.speed_limit, self.traffic_limit = np.full(count, UNLIMITED), np.full(count, UNLIMITED)
        self.since_correction = np.zeros(count)
        self.ahead = np.full(count, UNLIMITED)
        self.blocked, self.estop, self.io_hold, self.traffic_hold, self.manual_hold = (
            np.zeros(count, dtype=np.bool_) for _ in range(5)
        )
        self.operator_hold, self.drive_down, self.function_down = (
            np.zeros(count, dtype=np.bool_) for _ in range(3)
        )
        self.lidar_up, self.inputs_up = (np.ones(count, dtype=np.bool_) for _ in range(2))
        self.foreseen, self.motion = np.zeros((count, 3)), np.zeros((count, 3))
        self.last_way = np.zeros(count)
        """m/s forward when the robot drove last: below 0, it drove backwards."""
        self.steering, self.next_steering = np.zeros(count), np.zeros(count)
        """See `tick.foresee`."""
        self.changes, self.seen = (np.zeros(count, dtype=np.int8) for _ in range(2))
        """Bits of `tick.update_statuses`."""
        self.sent, self.beats = (np.zeros(count, dtype=np.int64) for _ in range(2))
        """Messages and heartbeats so far; each robot saves its own."""

    def _add_policies(self) -> None:
        files = self.files
        policies = [file.runtime.health_policy for file in files]
        self.needs_nats = np.array([each.require_nats_for_motion for each in policies])
        self.drives_in_warning = np.array([each.allow_drive_in_warning for each in policies])
        modes = [file.runtime.startup_policy.settings_bootstrap_mode for file in files]
        self.bootstrapped = np.array([mode == "LOCAL" for mode in modes])
        self.stop_on_estop = np.array([file.safety.stop_on_estop for file in files])
        self.stop_on_obstacle = np.array([file.safety.stop_on_obstacle for file in files])
        self.stop_distance = np.array([f.safety.obstacle_stop_distance_meters for f in files])
        self.warn_distance = np.array([f.safety.obstacle_warn_distance_meters for f in files])
        outlines = outlines_of(Layout(files))
        self.radius = np.hypot(outlines[:, 0] + outlines[:, 2], outlines[:, 1])
        """Metres from the pose of a robot to the farthest corner of its outline."""
        streams = [file.streams for file in files]
        rates = [(s.heartbeat_hz, s.state_hz, s.telemetry_hz, s.traffic_hz) for s in streams]
        self.periods = np.array(
            [[round(NS_PER_SECOND / hz) if hz else LATEST for hz in row] for row in rates],
            dtype=np.int64,
        )
        self.due = np.where(self.periods == LATEST, LATEST, 0)

    def spread_messages(self) -> None:
        """Gives each robot its own ticks for the messages of its streams."""
        tick = NS_PER_SECOND // self.files[0].runtime.tick_hz
        keys = np.array([crc32(file.identity.robot_id.encode()) for file in self.files])
        ticks = np.maximum(self.periods // tick, 1)
        spread = keys[:, np.newaxis] % ticks * tick
        self.due = np.where(self.periods == LATEST, LATEST, spread)

    def _add_late_drives(self) -> None:
        """Where robots will stand when all commands so far are carried out: where they are, unless
        their drives answer late."""
        late = self.late = LateDrives(self.files, self.files[0].runtime.tick_hz, self.reach)
        self.given, self.ordered, self.measured = late.given, late.ordered, late.measured
        self.settled = late.settled
        self.latency, self.braking_share = np.zeros(self.size), np.ones(self.size)
        self.braking_share[late.rows] = BRAKING_SHARE
        self.expected_pose, self.expected_speeds = self.pose, self.speeds
        if late.rows.size:
            self.expected_pose, self.expected_speeds = self.pose.copy(), self.speeds.copy()

    # ── limits ──

    def update_limits(self, robots: Sequence[int] | range) -> None:
        """Computes what the limits of the motors mean for the body of a robot."""
        for row in robots:
            first, end = self.motor_spans[row]
            wheels = [n for n in range(first, end) if self.is_drive[n]]
            steers = self.wheels.steers[self.wheels.spans[row, 0] : self.wheels.spans[row, 1]]
            rolling = [n for n, steering in zip(wheels, steers, strict=True) if not steering]
            if not rolling:
                continue
            speed = min(self.max_speed[rolling])
            faster = min(self.max_acceleration[rolling])
            slower = min(self.deceleration[rolling])
            reach = self.reach[row] or self.radius[row]
            turning = min(faster, slower) / reach
            radius = smallest_radius(self.wheels.base[row])
            self.body_limits[row] = (
                speed,
                faster,
                slower,
                speed / reach,
                turning,
                radius if self.drive[row] == ACKERMANN else 0.0,
                self.reach[row],
                0.0,
            )

    # ── snapshot ──

    def save(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in self.SAVED.split()}

    def load(self, saved: dict[str, Any]) -> None:
        for name in self.SAVED.split():
            column = getattr(self, name)
            try:
                values = np.array(saved[name], dtype=column.dtype).reshape(column.shape)
            except (KeyError, TypeError, ValueError, OverflowError) as problem:
                raise msgspec.ValidationError(f"{name}: {problem}") from None
            lowest, highest = ALLOWED.get(name, ALLOWED_OF[column.dtype.kind])
            if not ((values >= lowest) & (values <= highest)).all():
                raise msgspec.ValidationError(f"{name}: allowed: {lowest:g} … {highest:g}")
            column[...] = values
        if not ((self.route[:, :2] >= 0) & (self.route[:, :2] <= SEGMENTS)).all():
            raise msgspec.ValidationError(f"route: more than {SEGMENTS} segments")
        self.update_limits(range(self.size))


def _pairs(pairs: Sequence[tuple[int, int]]) -> tuple[Rows, Rows]:
    return rows_of([row for row, _ in pairs]), rows_of([robot for _, robot in pairs])
