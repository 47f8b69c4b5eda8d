"""Motors of robots in MOCK mode: the wheels that carry their bodies, and functional axes.

Set speeds of wheels become a command of the body, `drive` moves the body within the limits of the
wheels, and the wheels report how far they have rolled. A motor that is faulty, not connected or not
enabled brakes with its deceleration limit and stays.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.chance import draw
from understudy.errors import Refused
from understudy.robots.mobile import drive
from understudy.robots.mobile.config.layout import (
    Layout,
    base_of,
    drives_of,
    track_of,
    wheel_rows,
    wheels_of,
)
from understudy.robots.mobile.config.profile import DriveResponse
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.drive import STEERING
from understudy.robots.mobile.hardware_interface import (
    RESET_COOLDOWN,
    RESET_NOT_ALLOWED,
    Bools,
    Floats,
    MotorFault,
    MotorLimits,
    MotorOutputs,
    MotorReadings,
    Rows,
)
from understudy.robots.mobile.tables import Columns, columns, restore
from understudy.robots.mobile.wheels import ACKERMANN, DIRECT, Wheels, fastest_within
from understudy.space.compiled import compiled
from understudy.units import MM, nanoseconds, seconds

Pose = tuple[float, float, float]

POSITION, SPEED = range(2)
"""Columns of the state of a motor."""
MAX_SPEED, MAX_ACCELERATION, MAX_DECELERATION, LOWEST, HIGHEST = range(5)
"""Columns of its limits; an axis without bounds has infinite ones."""


class Fault(Struct, frozen=True):
    """A fault of a motor, and when it came (nanoseconds)."""

    fault: MotorFault
    at: int


class MotorsState(Struct, frozen=True):
    """The state of all motors and bodies."""

    columns: Columns
    faults: dict[str, Fault]


class MockMotors:
    """`MotorDriver` of all motors of a layout. ``scales``: what a motor reports of the distance
    that it has moved, 1 = all. ``seeds``: of the random numbers of each robot."""

    def __init__(
        self, layout: Layout, poses: Sequence[Pose], scales: Floats, seeds: Sequence[int]
    ) -> None:
        self._layout = layout
        motors, robots = len(layout.motors), len(layout.robots)
        self.robot = np.array([row.robot for row in layout.motors], dtype=np.int64)
        self._scales = scales
        self._speed, self._target, self._tolerance = np.zeros((3, motors))
        self.response = Response(layout, seeds)
        self._moving = np.zeros(motors, dtype=np.bool_)
        self._faulty = np.zeros(motors, dtype=np.bool_)
        self._faults: dict[int, Fault] = {}
        self.limits = _limits(layout)
        self.state = np.zeros((motors, 2))
        """Position and speed as the motor reports them."""
        self.state[:, POSITION] = np.clip(0.0, self.limits[:, LOWEST], self.limits[:, HIGHEST])
        self.powered = np.ones(robots, dtype=np.bool_)
        self.connected = np.ones(robots, dtype=np.bool_)
        self.body = np.zeros((robots, 7))
        self.body[:, : drive.FORWARD] = np.array(poses).reshape(-1, 3)
        self.command = np.zeros((robots, 3))
        self._wheels = wheels_of(layout)
        self._wheel_motors = wheel_rows(layout)
        self._wheel_speeds = np.zeros((robots, drive.WHEELS))
        self._model = drives_of(layout)
        self._running = np.ones(motors, dtype=np.bool_)
        self._before = np.zeros((robots, 3))
        """Speeds of the bodies before the last step."""
        self.figures = np.zeros((robots, 5))
        self.figures[:, drive.TRACK] = [track_of(robot) for robot in layout.robots]
        self.figures[self._wheels.turns_by_steering, drive.TRACK] = 0.0
        self.figures[:, drive.BASE] = [base_of(robot) for robot in layout.robots]
        self._limit_bodies(range(robots))

    # ── MotorDriver ──

    def write(self, rows: Rows, outputs: MotorOutputs) -> None:
        self._speed[rows] = outputs.speed
        self._target[rows] = outputs.target
        self._tolerance[rows] = outputs.tolerance
        self._moving[rows] = outputs.moving

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None:
        self.limits[rows, MAX_SPEED] = limits.speed
        self.limits[rows, MAX_ACCELERATION] = limits.acceleration
        self.limits[rows, MAX_DECELERATION] = limits.deceleration
        self._limit_bodies(sorted(set(self.robot[rows].tolist())))

    def read(self, rows: Rows) -> MotorReadings:
        seen = self.state if not self.response.rows.size else self.state + self.response.noise
        return MotorReadings(
            position=seen[rows, POSITION],
            velocity=seen[rows, SPEED],
            connected=self.connected[self.robot[rows]],
            faulty=self._faulty[rows],
            homing=np.zeros(rows.size, dtype=np.bool_),
        )

    def fault(self, row: int) -> MotorFault | None:
        found = self._faults.get(row)
        return found.fault if found else None

    def reset(self, row: int, now: int) -> Refused | None:
        found = self._faults.get(row)
        policy = self._layout.motors[row].motor.reset_policy
        if found is None:
            return None
        if not policy.allow_reset:
            return RESET_NOT_ALLOWED
        left = found.at + nanoseconds(policy.cooldown_seconds) - now
        if left > 0:
            return Refused(f"{RESET_COOLDOWN}: {seconds(left):.2f} s left")
        self.clear(row)
        return None

    # ── what happens to them ──

    def fail(self, row: int, fault: MotorFault, at: int) -> None:
        """A fault comes; one that is there already stays."""
        if row not in self._faults:
            self._faults[row] = Fault(fault, at)
            self._faulty[row] = True

    def clear(self, row: int) -> None:
        self._faults.pop(row, None)
        self._faulty[row] = False

    def halt(self, robots: Sequence[int]) -> None:
        """Something stopped these robots at once: their wheels stand."""
        for robot in robots:
            begin, end = self._wheels.spans[robot]
            rolling = ~self._wheels.steers[begin:end]
            self.state[self._wheel_motors[begin:end][rolling], SPEED] = 0.0
            angle = self._wheel_speeds[robot, STEERING]
            self._wheel_speeds[robot] = 0.0
            if self._model[robot] == ACKERMANN:
                self._wheel_speeds[robot, STEERING] = angle

    def step(self, rows: Rows, axis_rows: Rows, late: Rows, duration: float, now: int) -> None:
        """Moves robots and their functional axes on. ``rows``: of robots; ``late``: their places in
        `response`."""
        find_running(self.powered, self.connected, self.robot, self._faulty, self._running)
        speed = self._speed
        if late.size:
            speed = self.response.follow(late, self._speed, duration, now)
        move_bodies(
            rows,
            self._wheels,
            self._wheel_motors,
            self._model,
            self.figures,
            speed,
            self._running,
            self._scales,
            self._before,
            self.command,
            self.body,
            self._wheel_speeds,
            self.state,
            duration,
        )
        step_axes(
            axis_rows,
            self.limits,
            self._target,
            self._tolerance,
            self._moving,
            self._running,
            self.state,
            duration,
        )

    # ── snapshot ──

    def save(self) -> MotorsState:
        faults = {str(row): fault for row, fault in sorted(self._faults.items())}
        return MotorsState(columns(self._saved()), faults)

    def load(self, state: MotorsState) -> None:
        restore(self._saved(), state.columns)
        self._faults = {int(row): fault for row, fault in state.faults.items()}
        self._faulty[:] = False
        self._faulty[list(self._faults)] = True
        self._limit_bodies(range(len(self._layout.robots)))

    def _saved(self) -> dict[str, NDArray[np.float64] | NDArray[np.bool_]]:
        return {
            "speed": self._speed,
            "target": self._target,
            "tolerance": self._tolerance,
            "moving": self._moving,
            "limits": self.limits[:, :LOWEST],
            "state": self.state,
            "body": self.body,
            "wheel_speeds": self._wheel_speeds,
            "command": self.command,
            **self.response.saved(),
        }

    def _limit_bodies(self, robots: Sequence[int] | range) -> None:
        """A body is limited by the weakest of the wheels that roll."""
        rolling = ~self._wheels.steers
        for robot in robots:
            begin, end = self._wheels.spans[robot]
            rows = self._wheel_motors[begin:end][rolling[begin:end]]
            if rows.size:
                self.figures[robot, drive.MAX_SPEED :] = self.limits[rows, :LOWEST].min(0)


class Response:
    """How late DRIVE motors follow, and what they misread, by `driveResponse` of their robots."""

    def __init__(self, layout: Layout, seeds: Sequence[int]) -> None:
        responses = [_response(robot) for robot in layout.robots]
        self.rows = np.array(
            [
                row
                for row, (robot, motor) in enumerate(layout.motors)
                if motor.role == "DRIVE" and responses[robot].acts
            ],
            dtype=np.int64,
        )
        """The motors that have a response."""
        self.robot = np.array([layout.motors[row].robot for row in self.rows], dtype=np.int64)
        found = [responses[robot] for robot in self.robot]
        self._delay = np.array([each.delay_ms / 1000.0 for each in found])
        self._lag = np.array([each.lag_ms / 1000.0 for each in found])
        self._noise = np.array(
            [(each.position_noise_mm * MM, each.speed_noise_mps) for each in found]
        ).reshape(-1, 2)
        names = [
            f"{layout.robots[robot].identity.robot_id}.noise.{layout.motors[row].motor.motor_id}"
            for row, robot in zip(self.rows, self.robot, strict=True)
        ]
        self._seeds = np.array(
            [
                int(draw(seeds[robot], name, 0) * 2**53)
                for name, robot in zip(names, self.robot, strict=True)
            ],
            dtype=np.uint64,
        )
        hz = max((layout.robots[robot].runtime.tick_hz for robot in self.robot), default=0)
        kept = math.ceil(self._delay.max(initial=0.0) * hz) + 2
        self._speeds = np.zeros((self.rows.size, kept))
        """Set speeds of the last ticks, the last one first."""
        self._following = np.zeros(self.rows.size)
        self._all = np.zeros(len(layout.motors))
        self.noise = np.zeros((len(layout.motors), 2))
        """Noise of position and speed of each motor."""

    def follow(self, late: Rows, speed: Floats, duration: float, now: int) -> Floats:
        """The set speeds that act in this tick; draws the noise of the readings after it."""
        self._all[:] = speed
        follow_late(
            late,
            self.rows,
            self._delay,
            self._lag,
            self._speeds,
            self._following,
            self._all,
            duration,
        )
        draw_noise(late, self.rows, self._seeds, now, self._noise, self.noise)
        return self._all

    def acts_at_rest(self) -> bool:
        """Whether something changes although no motor has a set speed: a command is under way, or
        readings are noisy."""
        return bool(self._noise.any() or self._speeds.any() or self._following.any())

    def saved(self) -> dict[str, Floats]:
        return {"speeds": self._speeds, "following": self._following, "noise": self.noise}


def _response(robot: RobotFile) -> DriveResponse:
    profile = robot.runtime.simulation_profile
    return profile.drive_response if profile else DriveResponse()


def _limits(layout: Layout) -> Floats:
    limits = [row.motor.limits.si for row in layout.motors]
    rows = [
        (
            each.max_speed,
            each.max_acceleration,
            each.max_deceleration,
            -math.inf if each.lowest is None else each.lowest,
            math.inf if each.highest is None else each.highest,
        )
        for each in limits
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


# ── kernels ─────────────────────────────────────────────────────────────────────────────────────


GONE = 1e-6
"""m/s or rad below which the lag has ended."""


@compiled
def follow_late(
    late: Rows,
    rows: Rows,
    delay: Floats,
    lag: Floats,
    given: Floats,
    following: Floats,
    speed: Floats,
    seconds: float,
) -> None:
    """Replaces the set speeds of late motors by those that act: each is ``delay`` seconds old, and
    approached with a time constant of ``lag``."""
    for n in late:
        motor = rows[n]
        for age in range(given.shape[1] - 1, 0, -1):
            given[n, age] = given[n, age - 1]
        given[n, 0] = speed[motor]
        ticks = delay[n] / seconds
        age = min(int(ticks), given.shape[1] - 2)
        part = min(ticks - age, 1.0)
        wanted = (1.0 - part) * given[n, age] + part * given[n, age + 1]
        share = 1.0 - math.exp(-seconds / lag[n]) if lag[n] > 0.0 else 1.0
        following[n] += share * (wanted - following[n])
        if abs(following[n] - wanted) < GONE:
            following[n] = wanted
        speed[motor] = following[n]


@compiled
def draw_noise(
    late: Rows,
    rows: Rows,
    seeds: NDArray[np.uint64],
    now: int,
    amplitude: Floats,
    noise: Floats,
) -> None:
    """Fills ``noise`` of late motors with numbers within ±``amplitude``, which follow from seed and
    time (splitmix64)."""
    for n in late:
        for column in range(2):
            mixed = seeds[n] + np.uint64(now) * np.uint64(2) + np.uint64(column)
            mixed *= np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            chance = float(mixed >> np.uint64(11)) * 2.0**-52 - 1.0
            noise[rows[n], column] = chance * amplitude[n, column]


@compiled
def find_running(
    powered: Bools, connected: Bools, robots: Rows, faulty: Bools, running: Bools
) -> None:
    """Fills ``running``: motors that follow their set speeds and targets."""
    for n in range(robots.size):
        running[n] = powered[robots[n]] and connected[robots[n]] and not faulty[n]


@compiled
def move_bodies(
    rows: Rows,
    wheels: Wheels,
    motors: Rows,
    model: NDArray[np.int8],
    figures: Floats,
    speed: Floats,
    running: Bools,
    scales: Floats,
    before: Floats,
    command: Floats,
    body: Floats,
    wheel_speeds: Floats,
    state: Floats,
    seconds: float,
) -> None:
    """Moves robots and their wheels on; ``before`` becomes the speeds of their bodies before."""
    command_bodies(rows, wheels, motors, speed, running, wheel_speeds, command)
    for row in rows:
        for column in range(3):
            before[row, column] = body[row, drive.FORWARD + column]
    drive.step_drives(rows, model, figures, command, body, wheel_speeds, seconds)
    for row in rows:
        if model[row] == DIRECT and (command[row, 0] != 0.0 or command[row, 2] != 0.0):
            before[row, 2] = body[row, drive.TURNING]
    roll_wheels(rows, wheels, motors, before, body, wheel_speeds, scales, state, seconds)


@compiled
def command_bodies(
    rows: Rows,
    wheels: Wheels,
    motors: Rows,
    speed: Floats,
    running: Bools,
    wheel_speeds: Floats,
    command: Floats,
) -> None:
    """Fills ``command`` of these robots with the body speeds that fit the set speeds of their
    wheels best. ``motors``: of the wheels; one that is not running shall stand."""
    spans, inverse, steers, base = wheels.spans, wheels.inverse, wheels.steers, wheels.base
    turns_by_steering = wheels.turns_by_steering
    for row in rows:
        forward = sideways = turning = 0.0
        for n in range(spans[row, 0], spans[row, 1]):
            if running[motors[n]]:
                rolling = speed[motors[n]]
                forward += inverse[n, 0] * rolling
                sideways += inverse[n, 1] * rolling
                turning += inverse[n, 2] * rolling
        if turns_by_steering[row]:
            for n in range(spans[row, 0], spans[row, 1]):
                if steers[n]:
                    kept = wheel_speeds[row, STEERING]
                    angle = speed[motors[n]] if running[motors[n]] else kept
                    turning = forward * math.tan(angle) / base[row]
        command[row, 0], command[row, 1], command[row, 2] = forward, sideways, turning


@compiled
def roll_wheels(
    rows: Rows,
    wheels: Wheels,
    motors: Rows,
    before: Floats,
    body: Floats,
    wheel_speeds: Floats,
    scales: Floats,
    state: Floats,
    seconds: float,
) -> None:
    """Moves the wheels of these robots on as their bodies have moved; ``before``: the speeds of the
    bodies before the tick."""
    spans, coefficients, steers = wheels.spans, wheels.coefficients, wheels.steers
    for row in rows:
        for n in range(spans[row, 0], spans[row, 1]):
            motor = motors[n]
            if steers[n]:
                angle = wheel_speeds[row, STEERING]
                state[motor, SPEED] = (angle - state[motor, POSITION]) / seconds
                state[motor, POSITION] = angle
                continue
            rolled = after = 0.0
            for column in range(3):
                speed = body[row, drive.FORWARD + column]
                after += coefficients[n, column] * speed
                rolled += coefficients[n, column] * (before[row, column] + speed) / 2.0
            state[motor, SPEED] = after * scales[motor]
            state[motor, POSITION] += rolled * scales[motor] * seconds


@compiled
def step_axes(
    rows: NDArray[np.int64],
    limits: Floats,
    target: Floats,
    tolerance: Floats,
    moving: Bools,
    running: Bools,
    state: Floats,
    seconds: float,
) -> None:
    """Moves the axes of these rows on by one tick. One that shall not move, or is not running,
    brakes and stays."""
    for row in rows:
        position, speed = state[row, POSITION], state[row, SPEED]
        away = target[row] - position
        wanted = 0.0
        if moving[row] and running[row]:
            if (
                abs(away) <= tolerance[row]
                and abs(speed) <= limits[row, MAX_DECELERATION] * seconds
            ):
                state[row, SPEED] = 0.0
                continue
            fastest = fastest_within(
                abs(away),
                math.copysign(speed, speed * away),
                limits[row, MAX_DECELERATION],
                limits[row, MAX_SPEED],
                seconds,
            )
            wanted = math.copysign(fastest, away)
        change = wanted - speed
        slower = speed * change < 0.0
        most = limits[row, MAX_DECELERATION if slower else MAX_ACCELERATION] * seconds
        after = speed + min(max(change, -most), most)
        reached = position + (speed + after) / 2.0 * seconds
        state[row, POSITION] = min(max(reached, limits[row, LOWEST]), limits[row, HIGHEST])
        state[row, SPEED] = after if state[row, POSITION] == reached else 0.0
