"""Motors, inputs, outputs and sensors behind a device with registers: PLC and SERIAL.

What stands where in the block of a motor or a sensor:

A number of 32 bits takes two registers, the higher half first, and counts 1e-4 of the SI unit:
0.1 mm, 0.1 mm/s, 0.1 mm/s2, or the same with mrad. It is clipped to what 32 bits can hold.

    holding registers of a motor          input registers of a motor
    0      control word                   0      status word
    1, 2   set speed                      1, 2   position
    3, 4   target position                3, 4   velocity
    5, 6   tolerance                      5      number of the fault, 0: none
    7, 8   largest speed
    9, 10  largest acceleration
    11, 12 largest deceleration
    13     cycle counter

The cycle counter changes with every write: the device must stop the motor when it stands still for
longer than 0.5 s. An input is a discrete input and an output is a coil.

    input registers of a lidar            of a scanner                      of a battery
    0  status word                        0     status word                 0  status word
    1  nearest obstacle, mm               1     counter of codes            1  charge, 0.01 %
    2  free distance ahead, mm            2     length of the code, bytes
       (65535: nothing is seen)           3…18  the code, two bytes each
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from understudy.config.typed import read
from understudy.errors import NotInstalledError, located_at, needs
from understudy.robots.mobile.config.profile import Camel
from understudy.robots.mobile.config.robot_file import Driver, DriverType, Motor
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.robots.mobile.real.channels import Log, MotorCommand, MotorStatus
from understudy.robots.mobile.real.register_driver import (
    Block,
    Codec,
    LineCodec,
    RegisterDriver,
)

STEPS = 10_000
"""Steps of a number in one SI unit."""
ENABLE, GO, RESET = 1, 2, 4
"""Bits of the control word of a motor: it may move, it goes to its target, its fault is cleared."""
READY, FAULT, HOMING = 1, 2, 4
"""Bits of a status word; sensors have READY only. With any other bit it is not ready."""
WRITTEN, READ = 14, 6
"""Registers of the block of a motor."""
LIDAR_READ, SCANNER_READ, BATTERY_READ = 3, 19, 2
NOTHING_SEEN = 0xFFFF
MM = 1e-3
LARGEST = 0x7FFFFFFF


def written(command: MotorCommand, cycle: int) -> list[int]:
    """The holding registers of a motor."""
    control = ENABLE * command.enable | GO * command.moving | RESET * command.reset
    values = (command.speed, command.target, command.tolerance, *command.limits)
    return [control, *(half for value in values for half in halves(value)), cycle & 0xFFFF]


def motor_status(registers: Sequence[int]) -> MotorStatus:
    status = registers[0]
    return MotorStatus(
        ready=bool(status & READY) and not status & ~(READY | FAULT | HOMING),
        faulty=bool(status & FAULT),
        homing=bool(status & HOMING),
        position=number(registers[1:3]),
        velocity=number(registers[3:5]),
        fault=registers[5],
    )


def halves(value: float) -> tuple[int, int]:
    """A number as two registers."""
    steps = round(max(min(value * STEPS, LARGEST), -LARGEST)) & 0xFFFFFFFF
    return steps >> 16, steps & 0xFFFF


def number(registers: Sequence[int]) -> float:
    """The number in two registers."""
    steps = registers[0] << 16 | registers[1]
    return (steps - (1 << 32) if steps >> 31 else steps) / STEPS


def distance(register: int) -> float:
    """Metres; infinite if nothing is seen."""
    return float("inf") if register == NOTHING_SEEN else register * MM


def code_of(registers: Sequence[int]) -> str:
    """The code that a scanner has read; bytes that are not ASCII become question marks."""
    data = b"".join(register.to_bytes(2, "big") for register in registers[3:SCANNER_READ])
    text = data[: min(registers[2], len(data))].decode("ascii", "replace")
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text)


# ── where they are: `driver.config` ───────────────────────────────────────────────────────────────


class RegisterKeys(Camel, frozen=True, kw_only=True):
    """The unit behind a connection, and the first register (or the bit)."""

    address: Annotated[int, Meta(ge=0, le=65_535)]
    unit: Annotated[int, Meta(ge=0, le=255)] = 1

    def block(self, count: int, *, bits: bool) -> Block:
        return Block(self.unit, self.address, count, bits)


class PlcKeys(RegisterKeys, frozen=True, kw_only=True):
    """A PLC by host and port."""

    host: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\s/?#@]+\Z")]
    port: Annotated[int, Meta(ge=1, le=65535)] = 502

    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    def codec(self) -> Callable[[], Codec]:
        try:
            from understudy.robots.mobile.real.modbus import ModbusCodec
        except ImportError:
            raise NotInstalledError(f"a PLC {needs('pymodbus')}") from None
        return ModbusCodec


class SerialKeys(RegisterKeys, frozen=True, kw_only=True):
    """A serial port by its device."""

    device: Annotated[str, Meta(max_length=1024, pattern=r"^/[^@?]+\Z")]
    baud: Annotated[int, Meta(ge=50, le=4_000_000)] = 115_200

    def where(self) -> str:
        return f"serial:{self.device}@{self.baud}"

    def codec(self) -> Callable[[], Codec]:
        return LineCodec


KEYS: Mapping[DriverType, type[PlcKeys] | type[SerialKeys]] = {
    "PLC": PlcKeys,
    "SERIAL": SerialKeys,
}


# ── devices ───────────────────────────────────────────────────────────────────────────────────────


class RegisterDevices:
    """`DeviceFamily`; blocks with the same address, as in `understudy send --to`, share a
    connection."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.drivers: dict[str, RegisterDriver] = {}

    def motor(self, driver: Driver, motor: Motor, key: str) -> "RegisterMotor":
        found, keys = self._found(driver, key)
        return RegisterMotor(found, keys.block(WRITTEN, bits=False), keys.block(READ, bits=False))

    def input(self, driver: Driver, key: str) -> "RegisterInput":
        found, keys = self._found(driver, key)
        return RegisterInput(found, keys.block(1, bits=True))

    def output(self, driver: Driver, key: str) -> "RegisterOutput":
        found, keys = self._found(driver, key)
        return RegisterOutput(found, keys.block(1, bits=True))

    def sensor(self, driver: Driver, count: int, key: str) -> "RegisterInput":
        found, keys = self._found(driver, key)
        return RegisterInput(found, keys.block(count, bits=False))

    def _found(self, driver: Driver, key: str) -> tuple[RegisterDriver, RegisterKeys]:
        """The connection that a driver names, and its keys. ``key``: where the driver stands in the
        robot's file, for the error message."""
        with located_at(f"{key}.config"):
            keys = read(driver.config, KEYS[driver.type])
        where = keys.where()
        if where not in self.drivers:
            self.drivers[where] = RegisterDriver(where, keys.codec(), self._log)
        return self.drivers[where], keys


class RegisterMotor:
    """`MotorChannel`."""

    def __init__(self, driver: RegisterDriver, outputs: Block, inputs: Block) -> None:
        self._driver = driver
        self._output = driver.write(outputs)
        self._input = driver.read(inputs)

    def put(self, command: MotorCommand) -> None:
        self._driver.put(self._output, written(command, self._driver.cycles + 1))

    def status(self, now: int) -> MotorStatus | None:
        registers = self._driver.answer(self._input, now)
        return None if registers is None else motor_status(registers)

    def fault(self, number: int) -> MotorFault:
        return MotorFault(f"DEVICE_{number}", f"its controller reports fault {number}")


class RegisterInput:
    """`Input`: a block that is read in every cycle."""

    def __init__(self, driver: RegisterDriver, block: Block) -> None:
        self._driver = driver
        self._place = driver.read(block)

    def answer(self, now: int) -> Sequence[int] | None:
        return self._driver.answer(self._place, now)


class RegisterOutput:
    """`Output`: a bit that is written in every cycle."""

    def __init__(self, driver: RegisterDriver, block: Block) -> None:
        self._driver = driver
        self._place = driver.write(block)

    def put(self, value: bool) -> None:
        self._driver.put(self._place, [int(value)])
