"""The motors, inputs, outputs and sensors of REAL robots: `TimedHardware`.

Every tick puts the outputs into the next cycle of each device (a PLC, a controller at a serial
port, the drives of a CAN bus); readings are those of the last cycle. What was not answered for
0.5 s is not connected.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.ports import State
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import (
    Device,
    DigitalInput,
    DigitalOutput,
    Driver,
    DriverType,
    Motor,
)
from understudy.robots.mobile.hardware_interface import (
    RESET_COOLDOWN,
    RESET_NOT_ALLOWED,
    Bools,
    Floats,
    LidarReadings,
    MotorFault,
    MotorLimits,
    MotorOutputs,
    MotorReadings,
    RobotReadings,
    Rows,
    Scan,
)
from understudy.robots.mobile.real.canopen.bus import CanopenDriver
from understudy.robots.mobile.real.canopen.devices import CanBuses
from understudy.robots.mobile.real.channels import (
    DeviceFamily,
    Input,
    Log,
    MotorChannel,
    MotorCommand,
    MotorStatus,
    Output,
)
from understudy.robots.mobile.real.registers import (
    BATTERY_READ,
    LIDAR_READ,
    READY,
    SCANNER_READ,
    RegisterDevices,
    RegisterDriver,
    code_of,
    distance,
)
from understudy.units import NS_PER_MS, nanoseconds, seconds

RESET_LASTS = 500 * NS_PER_MS
FROZEN_AFTER = 500 * NS_PER_MS
"""A motor that reports a speed for this time, always at the same position, counts as not connected:
the registers of its device are frozen. A frozen speed may be the one that is commanded, so that the
motor would seem to follow."""
CREEPING = 0.01
"""m/s or rad/s: at lower speeds an encoder may show the same position for long."""
SENSOR_REGISTERS = {"LIDAR": LIDAR_READ, "BARCODE_SCANNER": SCANNER_READ, "BATTERY": BATTERY_READ}
DeviceDriver = RegisterDriver | CanopenDriver
FULL = 100.0
"""Percent: what a robot without a battery sensor reports, and the largest charge."""


class Devices:
    """The connections to all devices, by the type of the driver, and the time of the present
    tick."""

    def __init__(self, log: Log) -> None:
        self._registers = RegisterDevices(log)
        self._buses = CanBuses(log)
        self._families: Mapping[DriverType, DeviceFamily] = {
            "PLC": self._registers,
            "SERIAL": self._registers,
            "CANOPEN": self._buses,
        }
        self.now = 0

    def drivers(self) -> Mapping[str, DeviceDriver]:
        return {**self._registers.drivers, **self._buses.drivers}

    def motor(self, motor: Motor) -> MotorChannel:
        key = f"motors.{motor.motor_id}.driver"
        driver, family = self._found(motor.driver, key)
        return family.motor(driver, motor, key)

    def input(self, point: DigitalInput) -> Input:
        key = f"io.digitalInputs.{point.io_id}.driver"
        driver, family = self._found(point.driver, key)
        return family.input(driver, key)

    def output(self, point: DigitalOutput) -> Output:
        key = f"io.digitalOutputs.{point.io_id}.driver"
        driver, family = self._found(point.driver, key)
        return family.output(driver, key)

    def sensor(self, device: Device) -> Input:
        key = f"io.devices.{device.device_id}.driver"
        driver, family = self._found(device.driver, key)
        return family.sensor(driver, SENSOR_REGISTERS[device.type], key)

    def _found(self, driver: Driver | None, key: str) -> tuple[Driver, DeviceFamily]:
        if driver is None:
            raise ConfigError("this key is missing", key=key, allowed="in REAL mode: a driver")
        if driver.type not in self._families:
            allowed = f"in REAL mode: {', '.join(self._families)}"
            raise ConfigError(
                "there is no such driver", key=f"{key}.type", value=driver.type, allowed=allowed
            )
        return driver, self._families[driver.type]


# ── motors ──────────────────────────────────────────────────────────────────────────────────────


class RealMotor:
    """One motor: what it shall do, and what it reports."""

    def __init__(self, channel: MotorChannel, motor: Motor, log: Log) -> None:
        limits = motor.limits.si
        self.channel = channel
        self.status: MotorStatus | None = None
        self.last = MotorStatus()
        """The last status, kept while the device does not answer."""
        self.position = 0.0
        """The last position; that of a wheel at the time of the newest reading of its robot."""
        self.command = MotorCommand(
            (limits.max_speed, limits.max_acceleration, limits.max_deceleration), enable=True
        )
        self.is_wheel = motor.role == "DRIVE"
        self._policy = motor.reset_policy
        self._bounds = (
            -math.inf if limits.lowest is None else limits.lowest,
            math.inf if limits.highest is None else limits.highest,
        )
        self._failed_at = 0
        self._reset_ends = 0
        self._name, self._log = motor.motor_id, log
        self._position, self._moved_at = 0.0, 0
        self._frozen = False

    def exchange(self, now: int, *, enabled: bool) -> None:
        was_faulty = self.last.faulty
        self.status = self._unless_frozen(self.channel.status(now), now)
        self.last = self.status or self.last
        if self.last.faulty and not was_faulty:
            self._failed_at = now
        if not self.last.faulty or now >= self._reset_ends:
            self.command = self.command._replace(reset=False)
        self.channel.put(self.command._replace(enable=enabled))

    def _unless_frozen(self, status: MotorStatus | None, now: int) -> MotorStatus | None:
        """The status; None while its registers are frozen."""
        if status is None:
            return None
        if abs(status.velocity) < CREEPING or status.position != self._position:
            self._position, self._moved_at = status.position, now
        frozen = now - self._moved_at > FROZEN_AFTER
        if frozen and not self._frozen:
            self._log(
                f"motor {self._name}: it reports {status.velocity:.3f} m/s or rad/s and always the "
                f"position {status.position:.4f}: its readings are frozen, it counts as not "
                "connected"
            )
        self._frozen = frozen
        return None if frozen else status

    def order(self, speed: float, target: float, tolerance: float, *, moving: bool) -> None:
        """A target outside of the motor's bounds is taken as the nearest bound."""
        low, high = self._bounds
        self.command = self.command._replace(
            speed=speed, target=min(max(target, low), high), tolerance=tolerance, moving=moving
        )

    def fault(self) -> MotorFault | None:
        return self.channel.fault(self.last.fault) if self.last.faulty else None

    def reset(self, now: int) -> Refused | None:
        """Asks the device to clear the fault, for a short time: a fault whose cause is still there
        must not disappear by itself later."""
        if not self.last.faulty:
            return None
        if not self._policy.allow_reset:
            return RESET_NOT_ALLOWED
        left = self._failed_at + nanoseconds(self._policy.cooldown_seconds) - now
        if left > 0:
            return Refused(f"{RESET_COOLDOWN}: {seconds(left):.2f} s left")
        self.command = self.command._replace(reset=True)
        self._reset_ends = now + RESET_LASTS
        return None


def _align_wheels(motors: Sequence[RealMotor]) -> None:
    """Moves the positions of the wheels of a robot on to the newest reading of one of them, at the
    speeds that they report. A PLC is asked for one wheel after the other: taken as they are, their
    positions would show a robot that drives straight at an angle, and it would leave its line."""
    wheels = [each.status for each in motors if each.is_wheel and each.status]
    newest = max((each.read_at for each in wheels if each.read_at is not None), default=0)
    for motor in motors:
        if motor.status is not None:
            read_at = motor.status.read_at if motor.is_wheel else None
            apart = 0.0 if read_at is None else seconds(newest - read_at)
            motor.position = motor.status.position + motor.status.velocity * apart


class RealMotors:
    """`MotorDriver`."""

    def __init__(self, motors: Mapping[int, RealMotor]) -> None:
        self._motors = motors

    def write(self, rows: Rows, outputs: MotorOutputs) -> None:
        for n, row in enumerate(rows):
            self._motors[int(row)].order(
                float(outputs.speed[n]),
                float(outputs.target[n]),
                float(outputs.tolerance[n]),
                moving=bool(outputs.moving[n]),
            )

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None:
        for n, row in enumerate(rows):
            motor = self._motors[int(row)]
            speed, acceleration = float(limits.speed[n]), float(limits.acceleration[n])
            found = speed, acceleration, float(limits.deceleration[n])
            motor.command = motor.command._replace(limits=found)

    def read(self, rows: Rows) -> MotorReadings:
        motors = [self._motors[int(row)] for row in rows]
        return MotorReadings(
            position=np.array([motor.position for motor in motors]),
            velocity=np.array([motor.status.velocity if motor.status else 0.0 for motor in motors]),
            connected=np.array([bool(motor.status and motor.status.ready) for motor in motors]),
            faulty=np.array([motor.last.faulty for motor in motors]),
            homing=np.array([bool(motor.status and motor.status.homing) for motor in motors]),
        )

    def fault(self, row: int) -> MotorFault | None:
        return self._motors[row].fault()

    def reset(self, row: int, now: int) -> Refused | None:
        return self._motors[row].reset(now)


# ── inputs and outputs ──────────────────────────────────────────────────────────────────────────


class RealIo:
    """`IoDriver`. An input that is not connected keeps its last value."""

    def __init__(self, devices: Devices, layout: Layout, robots: set[int]) -> None:
        self._devices = devices
        self._inputs: dict[int, Input] = {}
        self._outputs: dict[int, Output] = {}
        self._inverted_in = [row.point.inverted for row in layout.inputs]
        self._inverted_out = [row.point.inverted for row in layout.outputs]
        self._read = np.zeros(len(layout.inputs), dtype=np.bool_)
        self._written = np.zeros(len(layout.outputs), dtype=np.bool_)
        for number, (robot, point) in enumerate(layout.inputs):
            if robot in robots:
                self._inputs[number] = devices.input(point)
        for number, (robot, output) in enumerate(layout.outputs):
            if robot in robots:
                self._outputs[number] = devices.output(output)
                self._outputs[number].put(output.inverted)

    def exchange(self) -> None:
        for row, place in self._inputs.items():
            answer = place.answer(self._devices.now)
            if answer is not None:
                self._read[row] = bool(answer[0]) != self._inverted_in[row]

    def read_inputs(self, rows: Rows) -> Bools:
        return self._read[rows]

    def inputs_connected(self, rows: Rows) -> Bools:
        now = self._devices.now
        return np.array([self._inputs[int(row)].answer(now) is not None for row in rows], np.bool_)

    def read_outputs(self, rows: Rows) -> Bools:
        return self._written[rows]

    def write_outputs(self, rows: Rows, values: Bools) -> None:
        self._written[rows] = values
        for row, value in zip(rows, values, strict=True):
            self._outputs[int(row)].put(bool(value) != self._inverted_out[int(row)])


# ── sensors ─────────────────────────────────────────────────────────────────────────────────────


class RealSensors:
    """`SensorDriver`: a safety scanner whose protective field the device evaluates."""

    def __init__(self, devices: Devices, layout: Layout, robots: set[int]) -> None:
        self._devices = devices
        self._places: dict[int, Input] = {}
        self._counters: dict[int, int] = {}
        self._batteries: dict[int, int] = {}
        """The battery sensor of a robot."""
        self._charges: dict[int, float] = {}
        """Percent: the last reading of a robot, kept while its sensor does not answer."""
        for row, (robot, device) in enumerate(layout.devices):
            if robot not in robots:
                continue
            self._places[row] = devices.sensor(device)
            if device.type == "BARCODE_SCANNER":
                self._counters[row] = -1
            if device.type == "BATTERY":
                self._batteries[robot] = row

    def set_motion(self, rows: Rows, velocity: Floats) -> None:
        """The device switches the fields of the scanner by itself."""

    def read_lidars(self, rows: Rows) -> LidarReadings:
        answers = [self._ready(int(row)) for row in rows]
        return LidarReadings(
            ahead=np.array([distance(a[2]) if a else 0.0 for a in answers]),
            connected=np.array([a is not None for a in answers], np.bool_),
        )

    def nearest(self, rows: Rows) -> Floats:
        answers = [self._ready(int(row)) for row in rows]
        return np.array([distance(a[1]) if a else np.inf for a in answers])

    def ranges(self, row: int) -> Floats:
        """The device does not give single rays."""
        return np.empty(0)

    def take_scans(self) -> Sequence[Scan]:
        scans = []
        for row, counter in self._counters.items():
            answer = self._ready(row)
            if answer is None or answer[1] == counter:
                continue
            self._counters[row] = answer[1]
            if counter >= 0 and (code := code_of(answer)):
                scans.append(Scan(row, code, None, None))
        return scans

    def connected(self, rows: Rows) -> Bools:
        return np.array([self._ready(int(row)) is not None for row in rows], np.bool_)

    def battery_percent(self, robot: int) -> float:
        row = self._batteries.get(robot)
        answer = None if row is None else self._ready(row)
        if answer is not None:
            self._charges[robot] = min(answer[1] / 100.0, FULL)
        return self._charges.get(robot, FULL)

    def _ready(self, row: int) -> Sequence[int] | None:
        answer = self._places[row].answer(self._devices.now)
        return answer if answer is not None and answer[0] == READY else None


# ── all together ────────────────────────────────────────────────────────────────────────────────


class RealHardware:
    """`TimedHardware` of the REAL robots of a layout."""

    def __init__(self, layout: Layout, robots: Sequence[int], log: Log) -> None:
        self._layout = layout
        self._robots = set(robots)
        self._devices = Devices(log)
        self._motors = {
            row: RealMotor(self._devices.motor(motor), motor, log)
            for row, (robot, motor) in enumerate(layout.motors)
            if robot in self._robots
        }
        self.motors = RealMotors(self._motors)
        self.io = RealIo(self._devices, layout, self._robots)
        self.sensors = RealSensors(self._devices, layout, self._robots)

    def callers(self) -> Mapping[str, DeviceDriver]:
        """The connections that a wire has to make, by the address of the device."""
        return self._devices.drivers()

    def begin(self, now: int) -> None:
        self._devices.now = now

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        """A real motor needs no notice of it."""

    def step(self, rows: Rows, seconds: float) -> None:
        for robot in self._robots.intersection(rows.tolist()):
            motors = [self._motors[row] for row in self._layout.motor_spans[robot]]
            enabled = self._enabled(robot)
            for motor in motors:
                motor.exchange(self._devices.now, enabled=enabled)
            _align_wheels(motors)
        self.io.exchange()
        for driver in self._devices.drivers().values():
            driver.begin_cycle(self._devices.now)

    def read_robots(self, rows: Rows) -> RobotReadings:
        return RobotReadings(np.array([self.sensors.battery_percent(int(row)) for row in rows]))

    def save(self) -> State:
        """A real robot cannot be saved."""
        return None

    def load(self, state: State) -> None:
        if state is not None:
            raise ConfigError("the snapshot is of simulated robots, and these are REAL")

    def _enabled(self, robot: int) -> bool:
        """A robot without an output MOTOR_ENABLE has its motors always enabled."""
        outputs = [
            row
            for row, (of, point) in enumerate(self._layout.outputs)
            if of == robot and point.role == "MOTOR_ENABLE"
        ]
        return bool(self.io.read_outputs(np.array(outputs, np.int64)).all())
