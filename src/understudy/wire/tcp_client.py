"""TCP connections that a face makes: the robot connects to a host that listens, and reconnects."""

import asyncio
import contextlib
import logging
import socket
from typing import Annotated, Any

from msgspec import Meta

from understudy.wire.interface import (
    CLOSING_SECONDS,
    ConnectionEvents,
    PeerEvents,
    RemoteHost,
    Server,
    address_of,
    words_of,
)
from understudy.wire.task_shutdown import end_tasks
from understudy.wire.tcp import TcpConnection

log = logging.getLogger(__name__)

SELECTED_BY: dict[str, Any] = {"mode": "client"}


class Config(RemoteHost, frozen=True, forbid_unknown_fields=True):
    """The host to connect to, and the pause between attempts."""

    retry_s: Annotated[float, Meta(ge=0.01, le=3600)] = 2.0
    stalled_after_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return TcpClient(endpoint, self, events)


class TcpClient:
    """Connects one endpoint to its host; one connection at a time."""

    def __init__(self, endpoint: str, config: Config, events: ConnectionEvents) -> None:
        self.endpoint = endpoint
        self.config = config
        self.events = events
        self._connection: TcpConnection | None = None
        self._free = asyncio.Event()
        self._free.set()
        self._attempts: asyncio.Task[None] | None = None

    @property
    def stalled_after_s(self) -> float:
        return self.config.stalled_after_s

    async def start(self) -> str:
        """Begins to connect; returns the host's address."""
        self._attempts = asyncio.get_running_loop().create_task(self._connect_forever())
        return address_of("tcp", self.config.host, self.config.port)

    async def stop(self) -> None:
        if self._attempts is not None:
            await end_tasks(self._attempts)
        if self._connection is not None:
            self._connection.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._free.wait(), CLOSING_SECONDS)
        if self._connection is not None:
            self._connection.transport.abort()
        await self._free.wait()

    def opened(self, connection: TcpConnection) -> bool:
        self._connection = connection
        self._free.clear()
        return True

    def active(self, connection: TcpConnection) -> None:
        return None

    def closed(self, connection: TcpConnection) -> None:
        self._connection = None
        self._free.set()

    async def _connect_forever(self) -> None:
        reported = ""
        while True:
            await self._free.wait()
            try:
                await self._connect()
                reported = ""
            except (OSError, UnicodeError) as problem:
                reason = words_of(problem)
                if reason != reported:
                    log.info("%s: no answer at %s: %s", self.endpoint, self.config.host, reason)
                reported = reason
                await asyncio.sleep(self.config.retry_s)

    async def _connect(self) -> None:
        loop, to = asyncio.get_running_loop(), self.config
        found = await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        raw = socket.socket(family, kind, protocol)
        try:
            raw.setblocking(False)
            # The local port may still be in TIME_WAIT from the connection before.
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if to.local_port or to.local_host:
                raw.bind((to.local_host, to.local_port))
            await loop.sock_connect(raw, where)
            await loop.create_connection(lambda: TcpConnection(self), sock=raw)
        except BaseException:
            raw.close()
            raise
