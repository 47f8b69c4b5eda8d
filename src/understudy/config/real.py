"""Where a real controller is found: over TCP, or on a serial line."""

from typing import Annotated, Literal
from urllib.parse import parse_qs, urlsplit

from msgspec import Meta, Struct

from understudy.errors import ConfigError

Controller = Literal["simulation", "real", "auto"]
BAUD = 115_200
BAUDS = range(50, 4_000_001)
FORMS = "tcp://HOST:PORT or serial:///dev/NAME?baud=115200"


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """`to`: tcp://HOST:PORT, or serial:///dev/NAME?baud=115200."""

    to: Annotated[str, Meta(max_length=1024)]


class TcpPlace(Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class SerialPlace(Struct, frozen=True):
    path: str
    baud: int = BAUD

    def __str__(self) -> str:
        return f"serial://{self.path}?baud={self.baud}"


RealPlace = TcpPlace | SerialPlace


def place_of(real: Real) -> RealPlace:
    try:
        parts = urlsplit(real.to)
        port = parts.port
    except ValueError:
        raise _misfit(real) from None
    if parts.scheme == "tcp" and parts.hostname and port and not (parts.path or parts.query):
        return TcpPlace(parts.hostname, port)
    if parts.scheme == "serial" and not parts.netloc and parts.path.startswith("/"):
        given = parse_qs(parts.query, keep_blank_values=True)
        baud = given.pop("baud", [str(BAUD)])[-1]
        if not given and baud.isdecimal() and int(baud) in BAUDS:
            return SerialPlace(parts.path, int(baud))
    raise _misfit(real)


def _misfit(real: Real) -> ConfigError:
    return ConfigError("not a place", key="to", value=real.to, allowed=FORMS)
