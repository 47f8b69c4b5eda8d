"""A proxy in front of a REAL controller that writes down what is said, both ways.

The client comes over TCP, or opens a pseudo-terminal that is made for it; the controller is
called over TCP, or at a serial device.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from understudy.errors import ConfigError
from understudy.wire.address import TcpAddress
from understudy.wire.chat import ChatWriter, Event, Kind, write_facts
from understudy.wire.dial import Destination, words_of
from understudy.wire.play import CABLE
from understudy.wire.serial import Device, open_device
from understudy.wire.signals import on_signals
from understudy.wire.terminal import Streams, make_terminal, streams_over

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
READ_SIZE = 64 * 1024


@dataclass
class Terminal:
    """A pseudo-terminal for one client, instead of an address to listen on."""

    ends: tuple[int, int] = field(default=(-1, -1))

    def open(self) -> str:
        self.ends = make_terminal("the recorder")
        return os.ttyname(self.ends[1])

    def close(self) -> None:
        for end in self.ends:
            os.close(end)


class Recorder:
    """One proxy; any number of connections, or one terminal."""

    def __init__(
        self, listen: TcpAddress | Terminal, to: Destination | Device, *, face: str
    ) -> None:
        self._listen = listen
        self._to = to
        self._face = face
        self._writer = ChatWriter()
        self._write: Callable[[str], object] = lambda text: None
        self._opened = 0
        self._started = time.monotonic_ns()
        self.place = ""
        """Where the client finds it, once it listens."""
        self.finished = asyncio.Event()

    async def run(
        self, write: Callable[[str], object], tell: Callable[[str], object] = lambda text: None
    ) -> None:
        """Until Ctrl-C or `finished`; ``tell`` is called once it listens."""
        self._write = write
        cable = {"line": CABLE} if isinstance(self._to, Device) else {}
        write(write_facts({"face": self._face, **cable}))
        close = await self._begin()
        on_signals(self.finished.set)
        try:
            where = str(self._to).removeprefix("tcp://").removeprefix("serial:")
            tell(f"recording {self.place} → {where}; Ctrl-C ends it")
            await self.finished.wait()
        finally:
            close()  # who is still connected is not waited for
            for line in self._writer.rest():
                write(line)

    async def _begin(self) -> Callable[[], None]:
        """Listen; how to end that."""
        if isinstance(self._listen, Terminal):
            self.place = self._listen.open()
            return await self._serve_terminal(self._listen)
        listen = self._listen
        try:
            server = await asyncio.start_server(self._serve, listen.host, listen.port)
        except OSError as problem:
            raise ConfigError(f"cannot listen on {listen}: {problem.strerror}") from None
        self.place = str(TcpAddress(*server.sockets[0].getsockname()[:2]))
        return server.close

    async def _serve_terminal(self, terminal: Terminal) -> Callable[[], None]:
        """Its one client is always there; when the controller is gone, that is the end."""
        client = await streams_over(terminal.ends[0])
        try:
            controller = await self._reach()
        except (OSError, TimeoutError) as problem:
            terminal.close()
            raise ConfigError(f"{self._to} does not answer: {words_of(problem)}") from None
        task = asyncio.ensure_future(self._between(client, controller))
        task.add_done_callback(lambda done: self.finished.set())

        def close() -> None:
            task.cancel()
            for _, writer in (client, controller):
                writer.close()
            terminal.close()

        return close

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            controller = await self._reach()
        except (OSError, TimeoutError) as problem:
            log.warning("%s does not answer: %s", self._to, problem)
            writer.close()
            return
        await self._between((reader, writer), controller)

    async def _reach(self) -> Streams:
        if isinstance(self._to, Device):
            port = open_device(self._to)
            try:
                return await streams_over(port.fileno())
            finally:
                port.close()
        dial = asyncio.open_connection(self._to.host, self._to.port)
        return await asyncio.wait_for(dial, CONNECT_SECONDS)

    async def _between(self, client: Streams, controller: Streams) -> None:
        self._opened += 1
        peer = str(self._opened)
        self._note(peer, "!", b"open")
        ways = (
            self._carry(client[0], controller[1], peer, ">"),
            self._carry(controller[0], client[1], peer, "<"),
        )
        await asyncio.gather(*ways)
        self._note(peer, "!", b"closed")

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str, kind: Kind
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(READ_SIZE):
                self._note(peer, kind, data)
                writer.write(data)
                await writer.drain()
            if kind == ">":
                self._note(peer, "!", b"eof")
                writer.write_eof()
                return
        writer.close()

    def _note(self, peer: str, kind: Kind, data: bytes) -> None:
        at = time.monotonic_ns() - self._started
        for line in self._writer.lines(Event(at, self._face, peer, kind, data)):
            self._write(line)
