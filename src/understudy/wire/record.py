"""A proxy in front of a REAL controller that writes down what is said, both ways."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import ConfigError
from understudy.wire.chat import ChatWriter, Event, Kind, write_facts

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Host and port, as people write them."""

    host: str
    port: int


def parse_address(text: str) -> TcpAddress:
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError("not an address", value=text, allowed="HOST:PORT or :PORT")
    return TcpAddress(host.strip("[]") or "127.0.0.1", int(port))


class Recorder:
    """One proxy, any number of connections."""

    def __init__(self, listen: TcpAddress, to: TcpAddress, *, face: str) -> None:
        self._listen = listen
        self._to = to
        self._face = face
        self._writer = ChatWriter()
        self._write: Callable[[str], object] = lambda text: None
        self._opened = 0
        self._started = time.monotonic_ns()
        self.address: TcpAddress | None = None
        self.finished = asyncio.Event()

    async def run(
        self, write: Callable[[str], object], tell: Callable[[str], object] = lambda text: None
    ) -> None:
        """Until Ctrl-C or `finished`; ``tell`` is called once it listens."""
        self._write = write
        write(write_facts({"face": self._face}))
        try:
            server = await asyncio.start_server(self._serve, self._listen.host, self._listen.port)
        except OSError as problem:
            where = f"{self._listen.host}:{self._listen.port}"
            raise ConfigError(f"cannot listen on {where}: {problem.strerror}") from None
        host, port = server.sockets[0].getsockname()[:2]
        self.address = TcpAddress(host, port)
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.finished.set)
        try:
            tell(f"recording {host}:{port} → {self._to.host}:{self._to.port}; Ctrl-C ends it")
            await self.finished.wait()
        finally:
            server.close()  # who is still connected is not waited for
            for line in self._writer.rest():
                write(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._opened += 1
        peer = str(self._opened)
        try:
            dial = asyncio.open_connection(self._to.host, self._to.port)
            up_reader, up_writer = await asyncio.wait_for(dial, CONNECT_SECONDS)
        except (OSError, TimeoutError) as problem:
            log.warning("%s:%s does not answer: %s", self._to.host, self._to.port, problem)
            writer.close()
            return
        self._note(peer, "!", b"open")
        await asyncio.gather(
            self._carry(reader, up_writer, peer, ">"), self._carry(up_reader, writer, peer, "<")
        )
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
