"""Connections that drivers make to real controllers, over TCP or a serial device.

The driver (`Caller`) decides when to connect, how long to pause and when to give up; the pump wakes
it like every other part. Here bytes are carried in both directions, and nothing else.
"""

import asyncio
import contextlib
import logging
import os
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar, cast

from msgspec import Meta, Struct

from understudy.errors import ConfigError, needs
from understudy.ports import UNLIMITED, Caller
from understudy.wire.interface import (
    CLOSING_SECONDS,
    LARGEST_BACKLOG,
    RemotePort,
    address_of,
    words_of,
)

if TYPE_CHECKING:
    from serial import Serial

log = logging.getLogger(__name__)

UNACKNOWLEDGED_MS = 10_000
"""How long sent bytes may stay without an acknowledgement before the connection counts as cut."""
READ_SIZE = 4096
BAUD = 115_200
BAUDS = range(50, 4_000_001)
FORMS = "HOST:PORT or tcp://HOST:PORT; /dev/NAME[@BAUD] or serial:///dev/NAME?baud=115200"

_TCP = re.compile(r"(?:tcp://)?(?:\[([0-9A-Fa-f:.%]+)\]|([^\s/?#@:\[\]]*)):([0-9]{1,5})")
_DEVICE = re.compile(r"(?:(?:serial|pty):(?://)?)?(/(?!/)[^@?]+)(?:(?:@|\?baud=)([0-9]{1,7}))?")

Outcome = TypeVar("Outcome")


# ── where a controller is ───────────────────────────────────────────────────────────────────────


class Destination(Struct, frozen=True, forbid_unknown_fields=True):
    """Host and port where a real controller listens."""

    host: str
    port: RemotePort

    def __str__(self) -> str:
        return address_of("tcp", self.host, self.port)

    def call(self, dial: "Dial", number: int) -> "Call":
        return TcpCall(dial, number, self)


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """A serial port by the path of its device."""

    path: str
    baud: Annotated[int, Meta(ge=50, le=4_000_000)] = BAUD

    def __str__(self) -> str:
        return f"serial:{self.path}" + (f"@{self.baud}" if self.baud != BAUD else "")

    def call(self, dial: "Dial", number: int) -> "Call":
        return SerialCall(dial, number, self)


def parse_place(text: str) -> Destination | Device:
    """Reads an address as it is written on the command line; without a host: this machine."""
    if found := _TCP.fullmatch(text):
        port = int(found[3])
        if 1 <= port <= 65535:
            return Destination(found[1] or found[2] or "127.0.0.1", port)
    elif found := _DEVICE.fullmatch(text):
        baud = int(found[2] or BAUD)
        if baud in BAUDS:
            return Device(found[1], baud)
    raise ConfigError("not an address", value=text, allowed=FORMS)


# ── calls ───────────────────────────────────────────────────────────────────────────────────────


class Timekeeper(Protocol):
    """Acts at the driver's time: a `Pump`."""

    def act(self, action: Callable[[int], Outcome]) -> Outcome: ...


class Call(Protocol):
    """One attempt to connect, and the connection that follows."""

    number: int
    ended: asyncio.Event

    def carry(self, take: Callable[[int], bytes]) -> None:
        """Sends what there is to send, as far as there is room for it."""
        ...

    def close(self) -> None:
        """Closes the connection when everything is sent."""
        ...

    def drop(self) -> None:
        """Closes the connection now."""
        ...


class DialTarget(Protocol):
    """Where a controller can be reached: a `Destination` or a `Device`."""

    def call(self, dial: "Dial", number: int) -> Call: ...


class TcpCall(asyncio.Protocol):
    """`Call` over TCP."""

    def __init__(self, dial: "Dial", number: int, where: Destination) -> None:
        self.number = number
        self.ended = asyncio.Event()
        self._dial = dial
        self._where = where
        self._transport: asyncio.Transport | None = None
        self._dropped = False
        self._attempt = asyncio.get_running_loop().create_task(self._connect())
        self._attempt.add_done_callback(self._attempted)

    async def _connect(self) -> None:
        where = self._where
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, where.host, where.port)
        except (OSError, UnicodeError) as problem:
            self._dial.lost(self, f"{where} cannot be reached: {words_of(problem)}")

    def _attempted(self, attempt: asyncio.Task[None]) -> None:
        if self._transport is None:
            self.ended.set()

    # ── asyncio ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
        if self._dropped:
            self._transport.abort()
        else:
            self._dial.connected(self)

    def data_received(self, data: bytes) -> None:
        self._dial.received(self, data)

    def connection_lost(self, problem: Exception | None) -> None:
        self.ended.set()
        where = self._where
        self._dial.lost(self, words_of(problem) if problem else f"{where} closed the connection")

    def resume_writing(self) -> None:
        self._dial.look()

    # ── dial ──

    def carry(self, take: Callable[[int], bytes]) -> None:
        if self._transport is None:
            return
        while data := take(self._room(self._transport)):
            self._transport.write(data)

    def close(self) -> None:
        self._attempt.cancel()
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        self._dropped = True
        self._attempt.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _room(self, transport: asyncio.Transport) -> int:
        unsent = transport.get_write_buffer_size()
        return UNLIMITED if unsent == 0 else max(0, LARGEST_BACKLOG - unsent)


def open_device(device: Device) -> "Serial":
    """Opens a device for us alone, non-blocking; OSError if that fails.

    A second sender on the same line would mix its bytes with ours.
    """
    try:
        from serial import Serial
    except ImportError:
        raise OSError(needs("pyserial")) from None
    return Serial(device.path, device.baud, timeout=0, write_timeout=0, exclusive=True)


class SerialCall:
    """`Call` over a serial device or pseudo-terminal; pulling the cable ends it."""

    def __init__(self, dial: "Dial", number: int, device: Device) -> None:
        self.number = number
        self.ended = asyncio.Event()
        self._dial = dial
        self._device = device
        self._loop = asyncio.get_running_loop()
        self._port: Serial | None = None
        self._unsent = bytearray()
        self._attempt = self._loop.call_soon(self._open)

    def _open(self) -> None:
        try:
            self._port = open_device(self._device)
        except (OSError, ValueError) as problem:
            self.ended.set()
            self._dial.lost(self, f"{self._device} cannot be opened: {words_of(problem)}")
            return
        self._loop.add_reader(self._port.fileno(), self._read)
        self._dial.connected(self)

    # ── call ──

    def carry(self, take: Callable[[int], bytes]) -> None:
        while self._port is not None and (data := take(self._room())):
            self._unsent += data
            self._write()

    def close(self) -> None:
        """Closes at once: unsent bytes are dropped."""
        self.drop()

    def drop(self) -> None:
        self._attempt.cancel()
        self.ended.set()
        port, self._port = self._port, None
        if port is not None:
            self._loop.remove_reader(port.fileno())
            self._loop.remove_writer(port.fileno())
            with contextlib.suppress(OSError):
                port.close()

    # ── the device ──

    def _read(self) -> None:
        assert self._port is not None
        try:
            data = os.read(self._port.fileno(), READ_SIZE)
        except BlockingIOError:
            return
        except OSError as problem:
            self._gone(words_of(problem))
            return
        if data:
            self._dial.received(self, data)
        else:
            self._gone("unplugged")

    def _write(self) -> None:
        assert self._port is not None
        try:
            del self._unsent[: os.write(self._port.fileno(), self._unsent)]
        except BlockingIOError:
            pass
        except OSError as problem:
            self._gone(words_of(problem))
            return
        if self._unsent:
            self._loop.add_writer(self._port.fileno(), self._drain)

    def _drain(self) -> None:
        assert self._port is not None
        self._loop.remove_writer(self._port.fileno())
        self._write()
        self._dial.look()

    def _gone(self, why: str) -> None:
        self.drop()
        self._dial.lost(self, f"{self._device} is gone: {why}")

    def _room(self) -> int:
        return UNLIMITED if not self._unsent else max(0, LARGEST_BACKLOG - len(self._unsent))


# ── the driver's side ───────────────────────────────────────────────────────────────────────────


class Dial:
    """Keeps the connection that one driver wants, on the event loop it is made on."""

    def __init__(self, caller: Caller, destination: DialTarget, time: Timekeeper) -> None:
        self.destination = destination
        self._caller = caller
        self._time = time
        self._loop = asyncio.get_running_loop()
        self._call: Call | None = None
        self._look_queued = False
        self._stopped = False
        caller.on_ready(self._ready)

    def start(self) -> None:
        self.look()

    async def stop(self) -> None:
        """Sends what is queued, closes the connection and reports that to the driver."""
        call, self._stopped = self._call, True
        if call is None:
            return
        call.carry(self._caller.take)
        self._report(call, lambda now: self._caller.lost(now, "hung up"))
        self._call = None
        call.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.ended.wait(), CLOSING_SECONDS)
        call.drop()
        await call.ended.wait()

    def look(self) -> None:
        """Makes or drops the connection as the driver wants it, and sends what it has queued."""
        self._look_queued = False
        if self._stopped:
            return
        wanted = self._caller.wanted()
        if self._call is not None and self._call.number != wanted:
            log.info("%s: hung up", self.destination)
            self._call.drop()
            self._call = None
        if self._call is None and wanted is not None:
            self._call = self.destination.call(self, wanted)
        if self._call is not None:
            self._call.carry(self._caller.take)

    # ── events of calls ──

    def connected(self, call: Call) -> None:
        log.info("%s: connected", self.destination)
        self._report(call, self._caller.connected)

    def received(self, call: Call, data: bytes) -> None:
        self._report(call, lambda now: self._caller.receive(data, now))

    def lost(self, call: Call, reason: str) -> None:
        if call is self._call:
            log.info("%s: %s", self.destination, reason)
            self._report(call, lambda now: self._caller.lost(now, reason))
            self._call = None
            self._ready()

    def _report(self, call: Call, event: Callable[[int], None]) -> None:
        def if_wanted(now: int) -> None:
            # While the cell catches up with the clock, the driver may give this call up.
            if call is self._call and call.number == self._caller.wanted():
                event(now)

        self._time.act(if_wanted)

    def _ready(self) -> None:
        if not self._look_queued and not self._stopped:
            self._look_queued = True
            self._loop.call_soon(self.look)
