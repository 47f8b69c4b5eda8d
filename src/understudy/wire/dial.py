"""Calls: dials out when a caller wants to talk, hangs up when it does not. Here: over TCP.

When to call, how long to rest and when to give up is the caller's affair. Its time is that of the
pump, which wakes it like every other part; here bytes go to and fro, and nothing else.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Annotated, Protocol, TypeVar, cast

from msgspec import Meta, Struct

from understudy.ports import Caller
from understudy.wire.exchange import UNLIMITED
from understudy.wire.tcp import CLOSING_SECONDS, LARGEST_BACKLOG

log = logging.getLogger(__name__)

DEAF_MS = 10_000
"""How long what was said may stay unheard before the line counts as cut."""

Outcome = TypeVar("Outcome")


class Destination(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a real thing listens."""

    host: str
    port: Annotated[int, Meta(ge=1, le=65535)]

    def __str__(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def call(self, dial: "Dial", number: int) -> "Call":
        return TcpCall(dial, number, self)


class Timekeeper(Protocol):
    """Whoever knows what time it is for the caller: a `Pump`."""

    def act(self, deed: Callable[[int], Outcome]) -> Outcome: ...


class Call(Protocol):
    """One attempt to reach the other side, and the connection that comes of it."""

    number: int
    ended: asyncio.Event

    def carry(self, take: Callable[[int], bytes]) -> None:
        """Send what there is to send, as far as there is room for it."""
        ...

    def close(self) -> None:
        """Hang up when all is sent."""
        ...

    def drop(self) -> None:
        """Hang up now."""
        ...


class Place(Protocol):
    """Where somebody can be called: a `Destination`, a `Device`. Its text names it for people."""

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
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAF_MS)
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


class Dial:
    """The line of one caller, on the event loop it is made on."""

    def __init__(self, caller: Caller, destination: Place, time: Timekeeper) -> None:
        self.destination = destination
        self._caller = caller
        self._time = time
        self._loop = asyncio.get_running_loop()
        self._call: Call | None = None
        self._looks = False
        self._stopped = False
        caller.on_ready(self._stirred)

    def start(self) -> None:
        self.look()

    async def stop(self) -> None:
        """Send what was said, hang up, and tell the caller so; within a second, or so."""
        call, self._stopped = self._call, True
        if call is None:
            return
        call.carry(self._caller.take)
        self._tell(call, lambda now: self._caller.lost(now, "hung up"))
        self._call = None
        call.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.ended.wait(), CLOSING_SECONDS)
        call.drop()

    def look(self) -> None:
        """See to it that the call stands that is wanted, and that what was said goes out."""
        self._looks = False
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

    # ── what calls tell ──

    def connected(self, call: Call) -> None:
        log.info("%s: connected", self.destination)
        self._tell(call, self._caller.connected)

    def received(self, call: Call, data: bytes) -> None:
        self._tell(call, lambda now: self._caller.receive(data, now))

    def lost(self, call: Call, reason: str) -> None:
        if call is self._call:
            log.info("%s: %s", self.destination, reason)
            self._tell(call, lambda now: self._caller.lost(now, reason))
            self._call = None
            self._stirred()

    def _tell(self, call: Call, deed: Callable[[int], None]) -> None:
        def if_wanted(now: int) -> None:
            # Coming to this moment, the caller may have given this call up.
            if call is self._call and call.number == self._caller.wanted():
                deed(now)

        self._time.act(if_wanted)

    def _stirred(self) -> None:
        if not self._looks and not self._stopped:
            self._looks = True
            self._loop.call_soon(self.look)


def words_of(problem: Exception) -> str:
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
