"""TCP connections that a face makes: the robot calls a host that listens, again and again.

The conversation is the same as with a peer that came by itself; only who calls is another matter.
"""

import asyncio
import contextlib
import logging
import socket
from typing import Annotated

from msgspec import Meta, Struct

from understudy.wire.tcp import CLOSING_SECONDS, Connection, Port, Switchboard

log = logging.getLogger(__name__)


class Outbound(Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to call, from which port of our own (0: any), and how long to rest between calls."""

    host: str
    port: Annotated[int, Meta(ge=1, le=65535)]
    local_host: str = ""
    local_port: Port = 0
    retry_s: Annotated[float, Meta(ge=0.01, le=3600)] = 2.0
    stalled_after_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0


class OutboundWire:
    """The calls of one endpoint; one connection at a time."""

    def __init__(self, endpoint: str, address: Outbound, board: Switchboard) -> None:
        self.endpoint = endpoint
        self.address = address
        self.board = board
        self._connection: Connection | None = None
        self._free = asyncio.Event()
        self._free.set()
        self._calls: asyncio.Task[None] | None = None

    @property
    def stalled_after_s(self) -> float:
        return self.address.stalled_after_s

    async def start(self) -> str:
        """Begin to call, and say whom."""
        self._calls = asyncio.get_running_loop().create_task(self._call_again_and_again())
        host = self.address.host
        return f"tcp://{f'[{host}]' if ':' in host else host}:{self.address.port}"

    async def stop(self) -> None:
        if self._calls is not None:
            self._calls.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._calls
        if self._connection is not None:
            self._connection.hang_up()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._free.wait(), CLOSING_SECONDS)
        if self._connection is not None:
            self._connection.transport.abort()

    def came(self, connection: Connection) -> None:
        self._connection = connection
        self._free.clear()

    def went(self, connection: Connection) -> None:
        self._connection = None
        self._free.set()

    async def _call_again_and_again(self) -> None:
        told = ""
        while True:
            await self._free.wait()
            try:
                await self._call()
                told = ""
            except (OSError, UnicodeError) as problem:
                reason = getattr(problem, "strerror", None) or str(problem)
                if reason != told:
                    log.info("%s: nobody at %s: %s", self.endpoint, self.address.host, reason)
                told = reason
                await asyncio.sleep(self.address.retry_s)

    async def _call(self) -> None:
        loop, to = asyncio.get_running_loop(), self.address
        found = await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        line = socket.socket(family, kind, protocol)
        try:
            line.setblocking(False)
            # The port may still wait for stragglers of the call before.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if to.local_port or to.local_host:
                line.bind((to.local_host, to.local_port))
            await loop.sock_connect(line, where)
            await loop.create_connection(lambda: Connection(self), sock=line)
        except BaseException:
            line.close()
            raise
