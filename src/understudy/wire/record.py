"""A proxy in front of a REAL controller that records the bytes in both directions.

The client connects over TCP or opens a pseudo-terminal that is made for it; the proxy connects to
the controller over TCP or at a serial device.

Messages of a broker in the bytes of a connection, where the wire has them:

NATS   PUB subject [reply] size, HPUB …      the client publishes; size counts the headers too
       MSG subject sid [reply] size, HMSG …  the server delivers
other lines of NATS (CONNECT, SUB, PING, +OK) are no messages
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from understudy.errors import ConfigError
from understudy.ports import WireMessage
from understudy.wire.chat import ChatWriter, write_facts
from understudy.wire.connection import Kind, event_of
from understudy.wire.dial import Destination, Device, open_device
from understudy.wire.first_bytes import read_first
from understudy.wire.interface import words_of
from understudy.wire.play import CABLE
from understudy.wire.pty import Streams, make_terminal, streams_over
from understudy.wire.tcp import stop_accepting
from understudy.wire.terminal_link import TerminalLink, link_path

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Host and port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> TcpAddress:
    """Reads HOST:PORT; without a host: this machine."""
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError("not an address", value=text, allowed="HOST:PORT or :PORT")
    return TcpAddress(host.strip("[]") or "127.0.0.1", int(port))


def parse_front(text: str) -> "TcpAddress | Terminal":
    """Reads HOST:PORT, pty, or pty:PATH with the path of a link."""
    wire, colon, path = text.partition(":")
    if wire != "pty":
        return parse_address(text)
    path = str(Path(path).expanduser().absolute()) if colon else ""
    return Terminal(TerminalLink(link_path(path)) if path else None)


def on_signals(end: Callable[[], object]) -> None:
    """Calls ``end`` at Ctrl-C, SIGTERM or when the terminal closes (SIGHUP, unless `nohup` has it
    ignored); off the main thread there are no signals."""
    loop = asyncio.get_running_loop()
    numbers = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.add(signal.SIGHUP)
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number in numbers:
            loop.add_signal_handler(number, end)


@dataclass
class Terminal:
    """A pseudo-terminal for one client, instead of an address; `link` is the link to it, if
    there is one."""

    link: TerminalLink | None = None
    ends: tuple[int, int] = field(default=(-1, -1))

    def open(self) -> str:
        self.ends = make_terminal("the recorder")
        path = os.ttyname(self.ends[1])
        if self.link is None:
            return path
        try:
            self.link.make(path)
        except ConfigError:
            self.close()
            raise
        return str(self.link.path)

    def close(self) -> None:
        if self.link is not None:
            self.link.remove()
        for end in self.ends:
            os.close(end)


class Recorder:
    """A proxy for any number of connections, or for one terminal."""

    def __init__(
        self,
        listen: TcpAddress | Terminal,
        to: Destination | Device,
        *,
        face: str,
        wire: str = "tcp",
    ) -> None:
        """``wire``: what the controller is behind, of the table of wires. The messages of NATS are
        recorded as messages; on it, `CONNECT` is no request of HTTP."""
        self._listen = listen
        self._to = to
        self._face = face
        self._wire = wire
        self._writer = ChatWriter()
        self._write: Callable[[str], object] = lambda text: None
        self._opened = 0
        self._started = time.monotonic_ns()
        self.place = ""
        """The address or path for the client, once the proxy listens."""
        self.finished = asyncio.Event()

    async def run(
        self, write: Callable[[str], object], listening: Callable[[str], object] = lambda text: None
    ) -> None:
        """Runs until Ctrl-C or `finished`; calls ``listening`` with a message once it listens."""
        self._write = write
        cable = {"line": CABLE} if isinstance(self._to, Device) else {}
        write(write_facts({"face": self._face, **cable}))
        close = await self._begin()
        on_signals(self.finished.set)
        try:
            where = str(self._to).removeprefix("tcp://").removeprefix("serial:")
            listening(f"recording {self.place} → {where}; Ctrl-C ends it")
            await self.finished.wait()
        finally:
            await close()  # open connections are not waited for
            for line in self._writer.rest():
                write(line)

    async def _begin(self) -> Callable[[], Awaitable[None]]:
        """Listens; returns the function that ends it."""
        if isinstance(self._listen, Terminal):
            self.place = self._listen.open()
            return await self._serve_terminal(self._listen)
        listen = self._listen
        try:
            server = await asyncio.start_server(self._serve, listen.host, listen.port)
        except OSError as problem:
            raise ConfigError(f"cannot listen on {listen}: {problem.strerror}") from None
        self.place = str(TcpAddress(*server.sockets[0].getsockname()[:2]))
        return lambda: stop_accepting(server)

    async def _serve_terminal(self, terminal: Terminal) -> Callable[[], Awaitable[None]]:
        """Serves the terminal's one client until the controller closes."""
        client = await streams_over(terminal.ends[0])
        try:
            controller = await self._reach()
        except (OSError, TimeoutError) as problem:
            terminal.close()
            raise ConfigError(f"{self._to} does not answer: {words_of(problem)}") from None
        task = asyncio.ensure_future(self._between(client, controller))
        task.add_done_callback(lambda done: self.finished.set())

        async def close() -> None:
            task.cancel()
            for _, writer in (client, controller):
                writer.close()
            terminal.close()

        return close

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The end of the recording cancels this task; asyncio would print that as an error.
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
            try:
                controller = await self._reach()
            except (OSError, TimeoutError) as problem:
                log.warning("%s does not answer: %s", self._to, problem)
                return
            await self._between((reader, writer), controller)

    async def _reach(self) -> Streams:
        if isinstance(self._to, Device):
            port = open_device(self._to)
            try:
                return await streams_over(port.fileno())
            finally:
                port.close()
        # `wait_for` would lose the end of the recording at the moment when the connection is made.
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(self._to.host, self._to.port)

    async def _between(self, client: Streams, controller: Streams) -> None:
        self._opened += 1
        peer = str(self._opened)
        self._note(peer, "!", b"open")
        ways = (
            self._carry(client[0], controller[1], peer, ">"),
            self._carry(controller[0], client[1], peer, "<"),
        )
        try:
            await asyncio.gather(*ways)
            self._note(peer, "!", b"closed")
        finally:
            for _, writer in (client, controller):
                writer.close()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str, kind: Kind
    ) -> None:
        checked = kind == ">" and self._wire not in READERS
        known, foreign = b"" if checked else None, False
        read = reader_of(self._wire)
        with contextlib.suppress(OSError):
            while not foreign and (data := await reader.read(READ_SIZE)):
                for each in read(data):
                    self._note(peer, kind, each)
                known, data, foreign = read_first(known, data)
                writer.write(data)
                await writer.drain()
            if foreign:
                log.warning("a client was turned away: it speaks HTTP or TLS")
            elif kind == ">":
                self._note(peer, "!", b"eof")
                writer.write_eof()
                return
        writer.close()

    def _note(self, peer: str, kind: Kind, data: bytes | WireMessage) -> None:
        at = time.monotonic_ns() - self._started
        for line in self._writer.lines(event_of(at, self._face, peer, kind, data)):
            self._write(line)


# ── messages of a broker ──────────────────────────────────────────────────────────────────────────

LONGEST_LINE = 1 << 20
"""Bytes of a line that has no end yet; beyond that, what is kept is dropped."""
Reader = Callable[[bytes], Iterator[bytes | WireMessage]]


def read_bytes(data: bytes) -> Iterator[bytes | WireMessage]:
    yield data


class NatsReader:
    """The messages of one direction of a NATS connection; the bytes may come in any pieces."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def __call__(self, data: bytes) -> Iterator[bytes | WireMessage]:
        self._unread += data
        while (end := self._unread.find(b"\r\n")) >= 0:
            words = bytes(self._unread[:end]).split()
            verb = words[0].upper() if words else b""
            if verb not in (b"PUB", b"HPUB", b"MSG", b"HMSG") or not words[-1].isdigit():
                del self._unread[: end + 2]
                continue
            size = int(words[-1])
            if len(self._unread) < end + 2 + size + 2:
                return
            body = bytes(self._unread[end + 2 : end + 2 + size])
            del self._unread[: end + 2 + size + 2]
            yield _message(verb, words[1:], body)
        if len(self._unread) > LONGEST_LINE:
            self._unread.clear()


def _message(verb: bytes, words: list[bytes], body: bytes) -> WireMessage:
    headers = 0
    if verb.startswith(b"H"):
        headers = int(words[-2]) if words[-2:-1] and words[-2].isdigit() else 0
        del words[-2:-1]
    names = words[:-1] if verb.endswith(b"PUB") else [words[0], *words[2:-1]]
    reply_to = names[1] if len(names) > 1 else b""
    return WireMessage(
        names[0].decode("utf-8", "replace"), body[headers:], reply_to.decode("utf-8", "replace")
    )


READERS: Mapping[str, Callable[[], Reader]] = {"nats": NatsReader}
"""Wire → the reader of one direction; other wires carry bytes."""


def reader_of(wire: str) -> Reader:
    return READERS[wire]() if wire in READERS else read_bytes
