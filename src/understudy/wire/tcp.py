"""TCP servers: any number of connections, bounded buffers, back-pressure in both directions."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from time import thread_time
from typing import Annotated, Any, Protocol, cast

import msgspec
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.protocol.client_limits import ClientLimits
from understudy.wire.connection import Connection
from understudy.wire.interface import (
    CLOSING_SECONDS,
    LARGEST_BACKLOG,
    ConnectionEvents,
    PeerEvents,
    Port,
    Server,
    Wire,
    address_of,
)

log = logging.getLogger(__name__)

SELECTED_BY: dict[str, Any] = {"pty": False, "mode": "server"}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a server listens; port 0: any free one.

    A peer that takes no bytes for `stalled_after_s` of wall time, while some wait for it, is
    disconnected. An endpoint has at most `max_clients` connections, `max_clients_per_address` of
    them from one address other than loopback. If there are `max_clients`, a new one takes the
    place of the oldest that has never sent anything nor got more than a greeting, or has not shown
    the secret where one is needed; or else of the one that was idle for the longest time, if that
    was `idle_yields_after_s`.
    """

    host: str = "127.0.0.1"
    port: Port = 0
    stalled_after_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    max_clients: Annotated[int, Meta(ge=1)] = 2000
    max_clients_per_address: Annotated[int, Meta(ge=1)] = 200
    idle_yields_after_s: Annotated[float, Meta(ge=0)] = 10.0

    def placed(self, port: int | None, *, ephemeral: bool) -> Wire:
        free = 0 if ephemeral else self.port
        return msgspec.structs.replace(self, port=free if port is None else port)

    def listens_on(self) -> tuple[str, int] | None:
        return self.host, self.port

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return TcpServer(endpoint, self, events)


# ── how much is read at a time ──────────────────────────────────────────────────────────────────

SMALLEST, FIRST, LARGEST = 16, 64, 2048
"""Bytes that are read at a time."""
LONG, SHORT = 0.010, 0.002
"""CPU seconds for one read: above LONG the next read is smaller, below SHORT it may be larger."""


def following(size: int, took: float) -> int:
    """Next read size, from the last size and its CPU time."""
    if took > LONG:
        return max(SMALLEST, size // 4)
    return min(LARGEST, size * 2) if took < SHORT else size


class ReadBudget:
    """The read size of one peer, so that a peer with costly requests does not delay the others.

    A request of three bytes can have an answer of four thousand. CPU time of this thread is
    counted: on a busy machine a read takes long without being costly.
    """

    def __init__(self) -> None:
        self.size = FIRST
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = thread_time()

    def __exit__(self, *problem: object) -> None:
        self.size = following(self.size, thread_time() - self._begun)


ACCEPTED_AT_ONCE, BACKLOG = 2, 1024
"""Connections that are accepted in one turn, and that wait for it. asyncio uses one number for
both: a crowd that arrives at once would take every descriptor before the first is turned away."""
ACCEPTING_TURNS = 4
"""Turns of the event loop from the accept of a connection until it is made, refused and closed."""


async def stop_accepting(server: asyncio.Server) -> None:
    """Closes a server when the connections that it has accepted are made: asyncio loses one that
    is accepted but not made yet, and its socket stays open."""
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    for _ in range(ACCEPTING_TURNS):
        await asyncio.sleep(0)
    server.close()


# ── connections ─────────────────────────────────────────────────────────────────────────────────


class TcpEndpoint(Protocol):
    """The owner of TCP connections: a server, or a client of a host."""

    endpoint: str
    events: ConnectionEvents

    @property
    def stalled_after_s(self) -> float: ...

    def opened(self, connection: "TcpConnection") -> bool:
        """Whether the connection is accepted."""
        ...

    def active(self, connection: "TcpConnection") -> None:
        """The peer sent bytes, or took all that were sent to it."""
        ...

    def closed(self, connection: "TcpConnection") -> None: ...


class TcpConnection(asyncio.BufferedProtocol):
    """One peer over TCP; `Sink` of its connection."""

    def __init__(self, owner: TcpEndpoint) -> None:
        self._owner = owner
        self._events = owner.events
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent = 0
        self._taken = 0
        self._greeted = False
        self._budget = ReadBudget()
        self._buffer = memoryview(bytearray(LARGEST))

    # ── asyncio ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # pause_writing for every byte that is not sent at once, resume_writing when all are sent.
        self.transport.set_write_buffer_limits(high=0)
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(raw)
        if not self._owner.opened(self):
            self.transport.abort()
            return
        self._connection = self._events.open(self._owner.endpoint, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[: self._budget.size]

    def buffer_updated(self, nbytes: int) -> None:
        if self._connection is not None:
            with self._budget:
                self._events.receive(self._connection, bytes(self._buffer[:nbytes]))
            self._owner.active(self)

    def eof_received(self) -> bool:
        if self._connection is not None:
            self._events.eof(self._connection)
        return True

    def connection_lost(self, problem: Exception | None) -> None:
        self._owner.closed(self)
        self._stop_timer()
        connection, self._connection = self._connection, None  # ends the reference cycle
        if connection is not None:
            self._events.closed(connection)

    def pause_writing(self) -> None:
        self._start_timer()

    def resume_writing(self) -> None:
        self._stop_timer()
        if self._connection is not None:
            self._events.drained(self._connection)

    def is_admitted(self) -> bool:
        """Whether the peer has shown the secret or done the handshake, where one is needed."""
        return self._connection is None or self._connection.is_admitted()

    # ── sink ──

    def room(self) -> int:
        waiting = self.transport.get_write_buffer_size()
        return UNLIMITED if waiting == 0 else max(0, LARGEST_BACKLOG - waiting)

    def send(self, data: bytes) -> None:
        self._sent += len(data)
        if not self.transport.is_closing():  # asyncio logs every write to a closing one
            self.transport.write(data)
            # The first message is the greeting that every client gets.
            if self._greeted and not self.transport.get_write_buffer_size():
                self._owner.active(self)
            self._greeted = True

    def read_more(self, wanted: bool) -> None:
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def close(self) -> None:
        self.transport.close()

    # ── stalled peers ──

    def _start_timer(self) -> None:
        self._stop_timer()
        self._taken = self._sent - self.transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._owner.stalled_after_s, self._check_stalled)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_stalled(self) -> None:
        if self._sent - self.transport.get_write_buffer_size() > self._taken:
            self._start_timer()
            return
        log.warning(
            "%s: a client took no bytes for %g s and was dropped",
            self._owner.endpoint,
            self._owner.stalled_after_s,
        )
        self.transport.abort()


class TcpServer:
    """Listens for the peers of one endpoint."""

    def __init__(self, endpoint: str, config: Config, events: ConnectionEvents) -> None:
        self.endpoint = endpoint
        self.config = config
        self.events = events
        self._connections: dict[TcpConnection, float] = {}
        """Times of the last activity; the last in the dict was active last."""
        self._silent: dict[TcpConnection, None] = {}
        """Those that never sent anything nor got more than a greeting, or were not admitted yet;
        the oldest first."""
        self._limits: ClientLimits[TcpConnection] = ClientLimits(
            config.max_clients, config.max_clients_per_address
        )
        self._empty = asyncio.Event()
        self._empty.set()
        self._server: asyncio.Server | None = None
        self._stopped = False

    @property
    def stalled_after_s(self) -> float:
        return self.config.stalled_after_s

    async def start(self) -> str:
        """Listens; returns the address."""
        loop = asyncio.get_running_loop()
        host, port = self.config.host, self.config.port
        try:
            self._server = await loop.create_server(
                lambda: TcpConnection(self),
                host,
                port,
                reuse_address=True,
                backlog=ACCEPTED_AT_ONCE,
            )
            for listener in self._server.sockets:
                with socket.socket(fileno=os.dup(listener.fileno())) as raw:
                    raw.listen(BACKLOG)
        except (OSError, UnicodeError) as problem:
            raise cannot_listen(self.endpoint, host, port, problem) from None
        host, port = self._server.sockets[0].getsockname()[:2]
        return address_of("tcp", host, port)

    async def stop(self) -> None:
        """Closes all connections; aborts those that have not sent their bytes within a second.
        Afterwards none is open, and none opens any more."""
        self._stopped = True
        if self._server is not None:
            await stop_accepting(self._server)
        for connection in list(self._connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), CLOSING_SECONDS)
        for connection in list(self._connections):
            connection.transport.abort()
        await self._empty.wait()

    def limit_clients(self, most: int) -> None:
        """Lowers the number of clients, for instance to its share of the descriptors."""
        if most < self._limits.in_all:
            self._limits.in_all = most
            log.info(
                "%s: at most %d connections (max_clients: %d), since this process may open few "
                "files; raise its limit (ulimit -n)",
                self.endpoint,
                most,
                self.config.max_clients,
            )

    def opened(self, connection: TcpConnection) -> bool:
        if self._stopped:
            return False
        if self._limits.is_full():
            self._close_idle()
        address = str((connection.transport.get_extra_info("peername") or ("",))[0])
        if reason := self._limits.enter(connection, address):
            log.warning(
                "%s: a client was turned away: %s (max_clients, max_clients_per_address)",
                self.endpoint,
                reason,
            )
            return False
        self._connections[connection] = asyncio.get_running_loop().time()
        self._silent[connection] = None
        self._empty.clear()
        return True

    def active(self, connection: TcpConnection) -> None:
        if self._connections.pop(connection, None) is not None:
            self._connections[connection] = asyncio.get_running_loop().time()
            if connection in self._silent and connection.is_admitted():
                del self._silent[connection]

    def closed(self, connection: TcpConnection) -> None:
        self._limits.leave(connection)
        self._connections.pop(connection, None)
        self._silent.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def _close_idle(self) -> None:
        """Closes a connection that yields to a new one, if there is one."""
        yields = next(iter(self._silent), None) or next(iter(self._connections), None)
        if yields is None:
            return
        idle = asyncio.get_running_loop().time() - self._connections[yields]
        if yields in self._silent or idle >= self.config.idle_yields_after_s:
            log.warning(
                "%s: a client that was idle for %.0f s was closed for a new one: at most %d "
                "connections at a time (max_clients)",
                self.endpoint,
                idle,
                self._limits.in_all,
            )
            yields.transport.abort()
            self.closed(yields)


KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""Seconds and number: a peer whose machine has vanished is noticed within two minutes."""


def keep_alive(raw: socket.socket) -> None:
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # not on every system
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def cannot_listen(
    endpoint: str, host: str, port: int, problem: OSError | UnicodeError
) -> ConfigError:
    where = f"{host}:{port}"
    if isinstance(problem, UnicodeError):
        return ConfigError(f"{endpoint} cannot listen on {where}: not the name of a host")
    if problem.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {port} is taken, {endpoint} cannot listen on {where}; "
            "end what listens there, choose another port with "
            f"--port {endpoint}=N, or let every port be a free one with --ephemeral"
        )
    return ConfigError(f"{endpoint} cannot listen on {where}: {problem.strerror or problem}")
