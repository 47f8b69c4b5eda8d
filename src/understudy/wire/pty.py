"""A face on a pseudo-terminal, for programs that want a serial port.

There is one connection, and it is always open, as on a serial cable: the face is not notified when
a program opens or closes the other end. Bytes that are not read wait, up to a limit, until a
program discards them (`tcflush`, as most programs do when they open a serial port). If the face
ends the session, the next bytes begin a new one.

Programs find the terminal by a link with a stable name: the one of the cell file or of `--pty`, or
the name of the endpoint in the runtime folder. With `--ephemeral` there is none.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import struct
import termios
import tty
from asyncio.streams import FlowControlMixin
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.wire import tcp
from understudy.wire.connection import Connection
from understudy.wire.interface import LARGEST_BACKLOG, PeerEvents, Server, Wire
from understudy.wire.runtime_folder import make_runtime_folder, runtime_folder
from understudy.wire.terminal_link import PRIVATE, TerminalLink, link_path

log = logging.getLogger(__name__)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SELECTED_BY: dict[str, Any] = {"pty": True, "mode": "server"}


class Config(tcp.Config, frozen=True, forbid_unknown_fields=True):
    """A pseudo-terminal; the keys of TCP hold if a port is given on the command line.

    `pty`: the path of the link; empty: the default one.
    """

    pty: str = ""

    def __post_init__(self) -> None:
        if self.pty:
            link_path(self.pty)

    def placed(self, port: int | None, *, ephemeral: bool) -> Wire:
        if port is None:
            return WithoutLink() if ephemeral else self
        given = msgspec.structs.asdict(self)
        del given["pty"]
        return tcp.Config(**{**given, "port": port})

    def listens_on(self) -> tuple[str, int] | None:
        return None

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        link = link_path(self.pty) if self.pty else default_link(endpoint)
        return PtyServer(endpoint, events, link)


@dataclass(frozen=True)
class WithoutLink:
    """`Wire`: a pseudo-terminal that has its number only, for runs side by side."""

    def placed(self, port: int | None, *, ephemeral: bool) -> Wire:
        return self

    def listens_on(self) -> tuple[str, int] | None:
        return None

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return PtyServer(endpoint, events)


def default_link(endpoint: str) -> Path | None:
    """The path of the link to an endpoint; None if there is no folder that is safe."""
    try:
        return make_runtime_folder() / endpoint
    except OSError as problem:
        place = runtime_folder()
        log.warning("%s: %s; %s has no stable path", place, problem.strerror, endpoint)
    except ConfigError as problem:
        log.warning("%s; %s has no stable path", problem, endpoint)
    return None


class PtyServer:
    """One endpoint on one terminal; `Sink` of its connection."""

    def __init__(self, endpoint: str, events: PeerEvents, link: Path | None = None) -> None:
        self.endpoint = endpoint
        self._events = events
        self._link = TerminalLink(link) if link else None
        self._connection: Connection | None = None
        self._ours = self._theirs = -1
        self._unsent = bytearray()
        self._discarding = False
        self._budget = tcp.ReadBudget()

    async def start(self) -> str:
        """Makes the terminal and the link to it; returns its path."""
        self._ours, self._theirs = make_terminal(self.endpoint)
        path = os.ttyname(self._theirs)
        self._loop = asyncio.get_running_loop()
        if self._link is not None:
            self._link.make(path)
            path = str(self._link.path)
        fcntl.ioctl(self._ours, termios.TIOCPKT, struct.pack("i", 1))
        self._loop.add_reader(self._ours, self._read)
        self._connection = self._events.open(self.endpoint, self)
        return f"pty:{path}"

    async def stop(self) -> None:
        if self._ours < 0:
            return
        if self._link is not None:
            self._link.remove()
        if self._connection is not None:
            self._events.closed(self._connection)
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        os.close(self._ours)
        os.close(self._theirs)
        self._ours = self._theirs = -1

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED if not self._unsent else max(0, LARGEST_BACKLOG - len(self._unsent))

    def send(self, data: bytes) -> None:
        self._unsent += data
        self._write()

    def read_more(self, wanted: bool) -> None:
        if wanted:
            self._loop.add_reader(self._ours, self._read)
        else:
            self._loop.remove_reader(self._ours)

    def close(self) -> None:
        """Ends the session; the terminal stays."""
        self._connection = None

    # ── terminal ──

    def _read(self) -> None:
        """Reads a packet: 0 and data, or bits that say what the program did (tty_ioctl(2))."""
        try:
            packet = os.read(self._ours, 1 + self._budget.size)
        except BlockingIOError:
            return
        event, data = packet[0], packet[1:]
        if event & termios.TIOCPKT_FLUSHREAD:
            self._discard()
        if event != termios.TIOCPKT_DATA:
            return
        if self._connection is None:
            self._connection = self._events.open(self.endpoint, self)
        with self._budget:
            self._events.receive(self._connection, data)

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            del self._unsent[: os.write(self._ours, self._unsent)]
        if self._unsent:
            self._loop.add_writer(self._ours, self._drain)

    def _discard(self) -> None:
        """The program discards what has arrived: the bytes that wait, here and in the system's
        buffers, would have arrived, too. Discarding those is an event as well, and ignored."""
        self._discarding = not self._discarding
        if not self._discarding:
            return
        self._unsent.clear()
        termios.tcflush(self._ours, termios.TCOFLUSH)
        termios.tcflush(self._theirs, termios.TCIFLUSH)
        self._drain()

    def _drain(self) -> None:
        self._loop.remove_writer(self._ours)
        self._write()
        if not self._unsent and self._connection is not None:
            self._events.drained(self._connection)


# ── terminals and streams over them ─────────────────────────────────────────────────────────────


def make_terminal(owner: str) -> tuple[int, int]:
    """Makes a raw pseudo-terminal that only this user can open; returns our end and the client's.

    While the client's end is open here too, our end is not notified when a program closes it.
    """
    try:
        ours, theirs = os.openpty()
    except OSError as problem:
        raise ConfigError(f"{owner} gets no pseudo-terminal: {problem.strerror}") from None
    os.fchmod(theirs, PRIVATE)
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    return ours, theirs


class _WriteEnd(FlowControlMixin):
    """The writing end of a stream; it closes the reading end when it is closed."""

    def __init__(self, read_end: asyncio.BaseTransport) -> None:
        super().__init__()
        self._read_end = read_end

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._read_end.close()


async def streams_over(terminal: int) -> Streams:
    """Streams over an open terminal, which stays open when they are closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, sink = (os.fdopen(os.dup(terminal), mode, buffering=0) for mode in ("rb", "wb"))
    read_end, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    write_end, flow = await loop.connect_write_pipe(lambda: _WriteEnd(read_end), sink)
    return reader, asyncio.StreamWriter(write_end, flow, None, loop)
