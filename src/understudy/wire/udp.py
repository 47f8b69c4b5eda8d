"""Datagrams that are sent to a host or broadcast; none are received, none are acknowledged."""

import asyncio
import logging
import socket
from typing import Any

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, RemoteHost, Server, words_of

log = logging.getLogger(__name__)

SELECTED_BY: dict[str, Any] = {}


class Config(RemoteHost, frozen=True, forbid_unknown_fields=True):
    """The address to send to, broadcast or one host's."""

    host: str = "127.255.255.255"

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return UdpSender(endpoint, self, events)


class UdpSender:
    """Sends the datagrams of one endpoint; `Sink` of its one connection, which is always open."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self.config = config
        self._events = events
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None
        self._reported = ""

    async def start(self) -> str:
        to = self.config
        raw = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            raw.bind((to.local_host, to.local_port))
            # The name is resolved once: a name server must never delay a datagram.
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(to.host, to.port, family=socket.AF_INET)
            raw.connect(found[0][4])
        except (OSError, UnicodeError) as problem:
            raw.close()
            route = f"from port {to.local_port} to {to.host}:{to.port}"
            raise ConfigError(f"{self.endpoint} cannot send {route}: {words_of(problem)}") from None
        self._socket = raw
        self._connection = self._events.open(self.endpoint, self)
        return f"udp://{to.host}:{to.port}"

    async def stop(self) -> None:
        if self._connection is not None:
            self._events.closed(self._connection)
        if self._socket is not None:
            self._socket.close()
        self._connection = self._socket = None

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes) -> None:
        if self._socket is None:
            return
        try:
            self._socket.send(data)
            self._reported = ""
        except OSError as problem:
            # A datagram that cannot be sent is lost, like any other that does not arrive.
            if problem.strerror != self._reported:
                log.info("%s: %s", self.endpoint, problem.strerror)
            self._reported = problem.strerror or ""

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None
