"""The address of a REAL robot: TCP or a serial device."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.wire.dial import Destination, Device, parse_place

Controller = Literal["simulation", "real", "auto"]
RealPlace = Destination | Device


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """`to`: an address as in `understudy send --to`."""

    to: Annotated[str, Meta(max_length=1024)]


def place_of(real: Real) -> RealPlace:
    try:
        return parse_place(real.to)
    except ConfigError as problem:
        raise problem.within("to") from None
