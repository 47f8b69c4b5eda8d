"""Where a real controller is found: over TCP, or on a serial line."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.wire.dial import Destination, Device, parse_place

Controller = Literal["simulation", "real", "auto"]
RealPlace = Destination | Device


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """`to`: written as after `--to` of `understudy send`."""

    to: Annotated[str, Meta(max_length=1024)]


def place_of(real: Real) -> RealPlace:
    try:
        return parse_place(real.to)
    except ConfigError as problem:
        raise problem.within("to") from None
