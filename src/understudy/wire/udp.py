"""Datagrams that go out to whoever listens; nobody answers, and nobody is waited for."""

import asyncio
import logging
import socket
from typing import Annotated

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.wire.exchange import Line
from understudy.wire.tcp import Port, Switchboard

log = logging.getLogger(__name__)


class Broadcast(Struct, frozen=True, forbid_unknown_fields=True):
    """Where to, a broadcast address or one host's; from which port of our own (0: any)."""

    port: Annotated[int, Meta(ge=1, le=65535)]
    host: str = "127.255.255.255"
    local_host: str = ""
    local_port: Port = 0


class UdpOutlet:
    """`Sink` of the one line of an endpoint, as long as the cell runs."""

    def __init__(self, endpoint: str, address: Broadcast, board: Switchboard) -> None:
        self.endpoint = endpoint
        self.address = address
        self._board = board
        self._socket: socket.socket | None = None
        self._line: Line | None = None
        self._trouble = ""

    async def start(self) -> str:
        to = self.address
        line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            line.setblocking(False)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind((to.local_host, to.local_port))
            # Looked up once: a name server must never hold up a datagram.
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(to.host, to.port, family=socket.AF_INET)
            line.connect(found[0][4])
        except (OSError, UnicodeError) as problem:
            line.close()
            reason = getattr(problem, "strerror", None) or str(problem)
            whither = f"from port {to.local_port} to {to.host}:{to.port}"
            raise ConfigError(f"{self.endpoint} cannot send {whither}: {reason}") from None
        self._socket = line
        self._line = self._board.open(self.endpoint, self)
        return f"udp://{to.host}:{to.port}"

    async def stop(self) -> None:
        if self._line is not None:
            self._board.closed(self._line)
        if self._socket is not None:
            self._socket.close()
        self._line = self._socket = None

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes) -> None:
        if self._socket is None:
            return
        try:
            self._socket.send(data)
            self._trouble = ""
        except OSError as problem:
            # A datagram that cannot go is lost, like any other that does not arrive.
            if problem.strerror != self._trouble:
                log.info("%s: %s", self.endpoint, problem.strerror)
            self._trouble = problem.strerror or ""

    def listen(self, willing: bool) -> None:
        return None

    def hang_up(self) -> None:
        return None
