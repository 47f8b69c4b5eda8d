"""The motors, inputs, outputs and sensors of REAL robots: `TimedHardware`.

Every tick puts the outputs into the next cycle of each device (a PLC, a controller at a serial
port); readings are those of the last cycle. What was not answered for 0.5 s is not connected.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from understudy.config.mobile.layout import Layout
from understudy.errors import ConfigError, Refused
from understudy.ports import State
from understudy.ports.mobile import (
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
from understudy.robots.mobile.real.driver_registers import Block, RegisterDriver
from understudy.robots.mobile.real.places import DriverKeys, keys_of
from understudy.robots.mobile.real.registers import (
    BATTERY_READ,
    LIDAR_READ,
    READ,
    READY,
    SCANNER_READ,
    WRITTEN,
    MotorCommand,
    MotorStatus,
    code_of,
    distance,
    motor_status,
    written,
)

NO_RESET = Refused("RESET_NOT_ALLOWED")
SENSOR_REGISTERS = {"LIDAR": LIDAR_READ, "BARCODE_SCANNER": SCANNER_READ, "BATTERY": BATTERY_READ}
FULL = 100.0
"""Percent: what a robot without a battery sensor reports."""
Log = Callable[[str], None]


class Devices:
    """The connections, one for each device, and the time of the present tick."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.drivers: dict[str, RegisterDriver] = {}
        self.now = 0

    def at(self, keys: DriverKeys) -> RegisterDriver:
        where = keys.place().where
        if where not in self.drivers:
            self.drivers[where] = RegisterDriver(where, keys.codec(), self._log)
        return self.drivers[where]

    def read(self, keys: DriverKeys, count: int, *, bits: bool = False) -> "Input":
        """A block that is read in every cycle."""
        return Input(self, self.at(keys), _block(keys, count, bits=bits))

    def write(
        self, keys: DriverKeys, count: int, *, bits: bool = False
    ) -> tuple[RegisterDriver, int]:
        """A block that is written in every cycle: its driver, and its place there."""
        driver = self.at(keys)
        return driver, driver.write(_block(keys, count, bits=bits))


def _block(keys: DriverKeys, count: int, *, bits: bool) -> Block:
    place = keys.place()
    return Block(place.unit, place.address, count, bits)


class Input:
    """A block that is read in every cycle."""

    def __init__(self, devices: Devices, driver: RegisterDriver, block: Block) -> None:
        self._devices = devices
        self._driver = driver
        self._place = driver.read(block)

    def answer(self) -> Sequence[int] | None:
        """None: not connected."""
        return self._driver.answer(self._place, self._devices.now)


# ── motors ──────────────────────────────────────────────────────────────────────────────────────


class RealMotor:
    """One motor: what it shall do, and what it reports."""

    def __init__(self, devices: Devices, layout: Layout, row: int) -> None:
        motor = layout.motors[row].motor
        keys = keys_of(motor.driver, f"motors.{motor.motor_id}.driver")
        limits = motor.limits.si
        self.allows_reset = motor.reset_policy.allow_reset
        self.status: MotorStatus | None = None
        self.last = MotorStatus(False, False, False, 0.0, 0.0, 0)
        """The last status, kept while the device does not answer."""
        self.command = MotorCommand(
            True, False, False, 0.0, 0.0, 0.0,
            (limits.max_speed, limits.max_acceleration, limits.max_deceleration),
        )  # fmt: skip
        self._driver, self._output = devices.write(keys, WRITTEN)
        self._input = devices.read(keys, READ)

    def exchange(self, *, enabled: bool) -> None:
        command = self.command._replace(enable=enabled)
        self._driver.put(self._output, written(command, self._driver.cycles + 1))
        registers = self._input.answer()
        self.status = None if registers is None else motor_status(registers)
        self.last = self.status or self.last
        if not self.last.faulty:
            self.command = self.command._replace(reset=False)


class RealMotors:
    """`MotorDriver`."""

    def __init__(self, motors: Mapping[int, RealMotor]) -> None:
        self._motors = motors

    def write(self, rows: Rows, outputs: MotorOutputs) -> None:
        for n, row in enumerate(rows):
            motor = self._motors[int(row)]
            motor.command = motor.command._replace(
                speed=float(outputs.speed[n]), target=float(outputs.target[n]),
                tolerance=float(outputs.tolerance[n]), moving=bool(outputs.moving[n]),
            )  # fmt: skip

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None:
        for n, row in enumerate(rows):
            motor = self._motors[int(row)]
            motor.command = motor.command._replace(limits=(
                float(limits.speed[n]), float(limits.acceleration[n]), float(limits.deceleration[n])
            ))  # fmt: skip

    def read(self, rows: Rows) -> MotorReadings:
        motors = [self._motors[int(row)] for row in rows]
        return MotorReadings(
            position=np.array([motor.last.position for motor in motors]),
            velocity=np.array([motor.status.velocity if motor.status else 0.0 for motor in motors]),
            connected=np.array([bool(motor.status and motor.status.ready) for motor in motors]),
            faulty=np.array([motor.last.faulty for motor in motors]),
            homing=np.array([bool(motor.status and motor.status.homing) for motor in motors]),
        )

    def fault(self, row: int) -> MotorFault | None:
        status = self._motors[row].last
        if not status.faulty:
            return None
        return MotorFault(f"DEVICE_{status.fault}", f"its controller reports fault {status.fault}")

    def reset(self, row: int, now: int) -> Refused | None:
        motor = self._motors[row]
        if not motor.allows_reset:
            return NO_RESET
        motor.command = motor.command._replace(reset=motor.last.faulty)
        return None


# ── inputs and outputs ──────────────────────────────────────────────────────────────────────────


class RealIo:
    """`IoDriver`. An input that is not connected keeps its last value."""

    def __init__(self, devices: Devices, layout: Layout, robots: set[int]) -> None:
        self._inputs: dict[int, Input] = {}
        self._outputs: dict[int, tuple[RegisterDriver, int]] = {}
        self._inverted_in = [row.point.inverted for row in layout.inputs]
        self._inverted_out = [row.point.inverted for row in layout.outputs]
        self._read = np.zeros(len(layout.inputs), dtype=np.bool_)
        self._written = np.zeros(len(layout.outputs), dtype=np.bool_)
        for number, (robot, point) in enumerate(layout.inputs):
            if robot in robots:
                keys = keys_of(point.driver, f"io.digitalInputs.{point.io_id}.driver")
                self._inputs[number] = devices.read(keys, 1, bits=True)
        for number, (robot, output) in enumerate(layout.outputs):
            if robot in robots:
                keys = keys_of(output.driver, f"io.digitalOutputs.{output.io_id}.driver")
                self._outputs[number] = devices.write(keys, 1, bits=True)

    def exchange(self) -> None:
        for row, place in self._inputs.items():
            answer = place.answer()
            if answer is not None:
                self._read[row] = bool(answer[0]) != self._inverted_in[row]

    def read_inputs(self, rows: Rows) -> Bools:
        return self._read[rows]

    def inputs_connected(self, rows: Rows) -> Bools:
        return np.array([self._inputs[int(row)].answer() is not None for row in rows], np.bool_)

    def read_outputs(self, rows: Rows) -> Bools:
        return self._written[rows]

    def write_outputs(self, rows: Rows, values: Bools) -> None:
        self._written[rows] = values
        for row, value in zip(rows, values, strict=True):
            driver, place = self._outputs[int(row)]
            driver.put(place, [int(bool(value) != self._inverted_out[int(row)])])


# ── sensors ─────────────────────────────────────────────────────────────────────────────────────


class RealSensors:
    """`SensorDriver`: a safety scanner whose protective field the device evaluates."""

    def __init__(self, devices: Devices, layout: Layout, robots: set[int]) -> None:
        self._places: dict[int, Input] = {}
        self._counters: dict[int, int] = {}
        self._batteries: dict[int, int] = {}
        """The battery sensor of a robot."""
        for row, (robot, device) in enumerate(layout.devices):
            if robot not in robots:
                continue
            keys = keys_of(device.driver, f"io.devices.{device.device_id}.driver")
            self._places[row] = devices.read(keys, SENSOR_REGISTERS[device.type])
            if device.type == "BARCODE_SCANNER":
                self._counters[row] = -1
            if device.type == "BATTERY":
                self._batteries[robot] = row

    def set_motion(self, rows: Rows, velocity: Floats) -> None:
        """The device switches the fields of the scanner by itself."""

    def read_lidars(self, rows: Rows) -> LidarReadings:
        answers = [self._ready(int(row)) for row in rows]
        return LidarReadings(
            nearest=np.array([distance(a[1]) if a else np.inf for a in answers]),
            ahead=np.array([distance(a[2]) if a else 0.0 for a in answers]),
            connected=np.array([a is not None for a in answers], np.bool_),
        )

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
        return answer[1] / 100.0 if answer else FULL

    def _ready(self, row: int) -> Sequence[int] | None:
        answer = self._places[row].answer()
        return answer if answer is not None and answer[0] & READY else None


# ── all together ────────────────────────────────────────────────────────────────────────────────


class RealHardware:
    """`TimedHardware` of the REAL robots of a layout."""

    def __init__(self, layout: Layout, robots: Sequence[int], log: Log) -> None:
        self._layout = layout
        self._robots = set(robots)
        self._devices = Devices(log)
        self._motors = {
            row: RealMotor(self._devices, layout, row)
            for row, (robot, _) in enumerate(layout.motors)
            if robot in self._robots
        }
        self.motors = RealMotors(self._motors)
        self.io = RealIo(self._devices, layout, self._robots)
        self.sensors = RealSensors(self._devices, layout, self._robots)

    def callers(self) -> Mapping[str, RegisterDriver]:
        """The connections that a wire has to make, by the address of the device."""
        return self._devices.drivers

    def begin(self, now: int) -> None:
        self._devices.now = now

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        """A real motor needs no notice of it."""

    def step(self, rows: Rows, seconds: float) -> None:
        stepped = set(map(int, rows))
        for row, motor in self._motors.items():
            robot = self._layout.motors[row].robot
            if robot in stepped:
                motor.exchange(enabled=self._enabled(robot))
        self.io.exchange()
        for driver in self._devices.drivers.values():
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
