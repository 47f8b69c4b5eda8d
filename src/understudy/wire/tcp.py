"""TCP servers: any number of connections, bounded buffers, back-pressure in both directions."""

import asyncio
import contextlib
import errno
import logging
import socket
from typing import Annotated, Protocol, cast

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.wire.exchange import UNLIMITED, Line, Sink
from understudy.wire.read_budget import LARGEST, ReadBudget

log = logging.getLogger(__name__)

LARGEST_BACKLOG = 256 * 1024
CLOSING_SECONDS = 1.0

Port = Annotated[int, Meta(ge=0, le=65535)]


class Address(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a server listens. Port 0: a free one. A peer that takes no bytes for
    `stalled_after_s` of wall time, while some wait for it, is dropped. `pty`: a pseudo-terminal
    instead of a port."""

    host: str = "127.0.0.1"
    port: Port = 0
    stalled_after_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    pty: bool = False


class Switchboard(Protocol):
    """Whoever is told what the peers do: a pump for a cell's faces, an exchange beside it."""

    def open(self, endpoint: str, sink: Sink) -> Line: ...

    def receive(self, line: Line, data: bytes) -> object: ...

    def eof(self, line: Line) -> None: ...

    def closed(self, line: Line) -> None: ...

    def drained(self, line: Line) -> None: ...


class Door(Protocol):
    """Whose connection it is: a server that was called, or a wire that calls."""

    endpoint: str
    board: Switchboard

    @property
    def stalled_after_s(self) -> float: ...

    def came(self, connection: "Connection") -> None: ...

    def went(self, connection: "Connection") -> None: ...


class Connection(asyncio.BufferedProtocol):
    """One peer; `Sink` for its line. Its bytes are read in small helpings, so that whoever floods
    one wire keeps the others waiting for a moment only."""

    def __init__(self, server: Door) -> None:
        self._server = server
        self._board = server.board
        self._line: Line | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._sent = 0
        self._taken = 0
        self._helping = ReadBudget()
        self._plate = memoryview(bytearray(LARGEST))

    # ── asyncio ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Every byte that does not go out at once is told of, and when all of them have gone.
        self.transport.set_write_buffer_limits(high=0)
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.came(self)
        self._line = self._board.open(self._server.endpoint, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._plate[: self._helping.size]

    def buffer_updated(self, nbytes: int) -> None:
        if self._line is not None:
            with self._helping:
                self._board.receive(self._line, bytes(self._plate[:nbytes]))

    def eof_received(self) -> bool:
        if self._line is not None:
            self._board.eof(self._line)
        return True

    def connection_lost(self, problem: Exception | None) -> None:
        self._server.went(self)
        self._stop_watch()
        line, self._line = self._line, None  # the two held each other: both are gone at once
        if line is not None:
            self._board.closed(line)

    def pause_writing(self) -> None:
        self._start_watch()

    def resume_writing(self) -> None:
        self._stop_watch()
        if self._line is not None:
            self._board.drained(self._line)

    # ── sink ──

    def room(self) -> int:
        waiting = self.transport.get_write_buffer_size()
        return UNLIMITED if waiting == 0 else max(0, LARGEST_BACKLOG - waiting)

    def send(self, data: bytes) -> None:
        self._sent += len(data)
        if not self.transport.is_closing():  # asyncio would complain of every write to one that is
            self.transport.write(data)

    def listen(self, willing: bool) -> None:
        if willing:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def hang_up(self) -> None:
        self.transport.close()

    # ── is it stalled? ──

    def _start_watch(self) -> None:
        self._stop_watch()
        self._taken = self._sent - self.transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(self._server.stalled_after_s, self._look)

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self) -> None:
        if self._sent - self.transport.get_write_buffer_size() > self._taken:
            self._start_watch()
            return
        log.warning(
            "%s: a client took no bytes for %g s and was dropped",
            self._server.endpoint,
            self._server.stalled_after_s,
        )
        self.transport.abort()


class TcpServer:
    """Listens for one endpoint."""

    def __init__(self, endpoint: str, address: Address, board: Switchboard) -> None:
        self.endpoint = endpoint
        self.address = address
        self.board = board
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._server: asyncio.Server | None = None

    @property
    def stalled_after_s(self) -> float:
        return self.address.stalled_after_s

    async def start(self) -> str:
        """Listen, and say where."""
        loop = asyncio.get_running_loop()
        host, port = self.address.host, self.address.port
        try:
            self._server = await loop.create_server(
                lambda: Connection(self), host, port, reuse_address=True, backlog=1024
            )
        except (OSError, UnicodeError) as problem:
            raise cannot_listen(self.endpoint, self.address, problem) from None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"tcp://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        """Say good-bye; cut off whoever has not taken his bytes within a second."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.hang_up()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), CLOSING_SECONDS)
        for connection in list(self._connections):
            connection.transport.abort()

    def came(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._empty.clear()

    def went(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()


def cannot_listen(endpoint: str, address: Address, problem: OSError | UnicodeError) -> ConfigError:
    where = f"{address.host}:{address.port}"
    if isinstance(problem, UnicodeError):
        return ConfigError(f"{endpoint} cannot listen on {where}: not the name of a host")
    if problem.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {address.port} is taken, {endpoint} cannot listen on {where}; "
            "end what listens there, choose another port with "
            f"--port {endpoint}=N, or let every port be a free one with --ephemeral"
        )
    return ConfigError(f"{endpoint} cannot listen on {where}: {problem.strerror or problem}")
