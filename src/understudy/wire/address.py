"""Host and port, as people write them."""

from dataclasses import dataclass

from understudy.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Without a host: this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> TcpAddress:
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError("not an address", value=text, allowed="HOST:PORT or :PORT")
    return TcpAddress(host.strip("[]") or "127.0.0.1", int(port))
