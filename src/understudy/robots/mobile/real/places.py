"""Where a motor, an input, an output or a sensor behind registers is: `driver.config`."""

from collections.abc import Mapping
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from understudy.config.typed import read
from understudy.errors import ConfigError, NotInstalledError, install_command
from understudy.robots.mobile.config.profile import Camel
from understudy.robots.mobile.config.robot_file import Driver, DriverType
from understudy.robots.mobile.real.driver_lines import LineCodec
from understudy.robots.mobile.real.driver_registers import Codec

Unit = Annotated[int, Meta(ge=0, le=255)]
Address = Annotated[int, Meta(ge=0, le=65_535)]


class Place(Struct, frozen=True):
    """``where``: the device, as in `understudy send --to`; blocks with the same one share a
    connection."""

    where: str
    unit: int
    address: int


class DriverKeys(Protocol):
    """The keys of a type of driver."""

    def place(self) -> Place: ...

    def codec(self) -> Codec: ...


class PlcKeys(Camel, frozen=True):
    """A PLC by host and port, the unit behind it, and the first register (or the bit)."""

    host: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\s/?#@]+\Z")]
    address: Address
    port: Annotated[int, Meta(ge=1, le=65535)] = 502
    unit: Unit = 1

    def place(self) -> Place:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return Place(f"tcp://{host}:{self.port}", self.unit, self.address)

    def codec(self) -> Codec:
        try:
            from understudy.robots.mobile.real.driver_modbus import ModbusCodec
        except ImportError:
            need = f"a PLC needs the package pymodbus: {install_command('pymodbus')}"
            raise NotInstalledError(need) from None
        return ModbusCodec()


class SerialKeys(Camel, frozen=True):
    """A serial port by its device, and the first register (or the bit) behind it."""

    device: Annotated[str, Meta(max_length=1024, pattern=r"^/[^@?]+\Z")]
    address: Address
    baud: Annotated[int, Meta(ge=50, le=4_000_000)] = 115_200
    unit: Unit = 1

    def place(self) -> Place:
        return Place(f"serial:{self.device}@{self.baud}", self.unit, self.address)

    def codec(self) -> Codec:
        return LineCodec()


KEYS: Mapping[DriverType, type[PlcKeys] | type[SerialKeys]] = {
    "PLC": PlcKeys,
    "SERIAL": SerialKeys,
}


def keys_of(driver: Driver, key: str) -> DriverKeys:
    """``key``: where the driver stands in the robot's file, for the error message."""
    try:
        keys: DriverKeys = read(driver.config, KEYS[driver.type])
    except ConfigError as problem:
        raise problem.within(f"{key}.config") from None
    return keys
