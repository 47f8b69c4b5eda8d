"""Where a motor, an input, an output or a sensor of a REAL robot is: `driver.config` of a PLC."""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.config.mobile.profile import Camel
from understudy.config.mobile.robot_file import Driver
from understudy.config.typed import read
from understudy.errors import ConfigError

Host = Annotated[str, Meta(min_length=1, max_length=255)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Unit = Annotated[int, Meta(ge=0, le=255)]
Address = Annotated[int, Meta(ge=0, le=65_535)]


class PlcPlace(Camel, frozen=True):
    """The PLC by host and port, the unit behind it, and the first register (or the bit)."""

    host: Host
    address: Address
    port: Port = 502
    unit: Unit = 1


class PlcAddress(Struct, frozen=True):
    """A PLC: all its blocks share one connection."""

    host: str
    port: int


def place_of(driver: Driver | None, key: str) -> PlcPlace:
    """``key``: where the driver stands in the robot's file, for the error message."""
    if driver is None:
        raise ConfigError("this key is missing", key=key, allowed="in REAL mode: a driver")
    if driver.type != "PLC":
        raise ConfigError("there is no driver of this type yet", key=f"{key}.type",
                          value=driver.type, allowed="in REAL mode: PLC")  # fmt: skip
    try:
        place: PlcPlace = read(driver.config, PlcPlace)
    except ConfigError as problem:
        raise problem.within(f"{key}.config") from None
    return place
