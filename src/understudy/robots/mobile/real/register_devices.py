"""Motors, inputs, outputs and sensors behind a device with registers: PLC and SERIAL."""

from collections.abc import Sequence

from understudy.robots.mobile.config.robot_file import Driver, Motor
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.robots.mobile.real.channels import Log, MotorCommand, MotorStatus
from understudy.robots.mobile.real.driver_registers import Block, RegisterDriver
from understudy.robots.mobile.real.places import DriverKeys, keys_of
from understudy.robots.mobile.real.registers import READ, WRITTEN, motor_status, written


class RegisterDevices:
    """`DeviceFamily`; one connection for each device."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.drivers: dict[str, RegisterDriver] = {}

    def motor(self, driver: Driver, motor: Motor, key: str) -> "RegisterMotor":
        keys = keys_of(driver, key)
        return RegisterMotor(
            self._at(keys), _block(keys, WRITTEN, bits=False), _block(keys, READ, bits=False)
        )

    def input(self, driver: Driver, key: str) -> "RegisterInput":
        keys = keys_of(driver, key)
        return RegisterInput(self._at(keys), _block(keys, 1, bits=True))

    def output(self, driver: Driver, key: str) -> "RegisterOutput":
        keys = keys_of(driver, key)
        return RegisterOutput(self._at(keys), _block(keys, 1, bits=True))

    def sensor(self, driver: Driver, count: int, key: str) -> "RegisterInput":
        keys = keys_of(driver, key)
        return RegisterInput(self._at(keys), _block(keys, count, bits=False))

    def _at(self, keys: DriverKeys) -> RegisterDriver:
        where = keys.place().where
        if where not in self.drivers:
            self.drivers[where] = RegisterDriver(where, keys.codec(), self._log)
        return self.drivers[where]


def _block(keys: DriverKeys, count: int, *, bits: bool) -> Block:
    place = keys.place()
    return Block(place.unit, place.address, count, bits)


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
