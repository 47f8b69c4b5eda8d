"""Building blocks of drivers: when to connect again, pending requests, drivers of REAL devices.

The connection of a driver:

    waiting ──due──▶ connecting ──connected──▶ connected
       ▲                 │                         │
       └─────failed──────┴──────────failed─────────┘
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from understudy.ports import Ticket
from understudy.protocol.sessions import LineReader, Outbox, TextLine
from understudy.units import NS_PER_SECOND

ConnectionState = Literal["waiting", "connecting", "connected"]

TRANSITIONS: Mapping[tuple[ConnectionState, str], ConnectionState] = {
    ("waiting", "due"): "connecting",
    ("connecting", "connected"): "connected",
    ("connecting", "failed"): "waiting",
    ("connected", "failed"): "waiting",
    ("waiting", "restart"): "waiting",
    ("connecting", "restart"): "waiting",
    ("connected", "restart"): "waiting",
}


class ReconnectSchedule:
    """When a driver connects: at once, and after each failure in a row after a longer pause.

    Connection attempts are numbered. The last of the pauses is repeated until the peer answers.
    """

    def __init__(self, *, timeout: int, pauses: Sequence[int]) -> None:
        self.state: ConnectionState = "waiting"
        self.due = 0
        """End of the pause, or of the time that a connection attempt may take."""
        self._timeout = timeout
        self._pauses = pauses
        self._number = 0
        self._failures = 0

    def wanted(self) -> int | None:
        """The number of the connection that should exist now, if one should."""
        return None if self.state == "waiting" else self._number

    def connect(self, now: int) -> None:
        """Begins a connection attempt."""
        self.state = TRANSITIONS[self.state, "due"]
        self.due = now + self._timeout
        self._number += 1

    def connected(self) -> None:
        self.state = TRANSITIONS[self.state, "connected"]

    def answered(self) -> None:
        """The peer answered: the next failure counts as the first one."""
        self._failures = 0

    def failed(self, now: int) -> None:
        self.state = TRANSITIONS[self.state, "failed"]
        self.due = now + self._pauses[min(self._failures, len(self._pauses) - 1)]
        self._failures += 1

    def save(self) -> tuple[ConnectionState, int, int, int]:
        return self.state, self.due, self._number, self._failures

    def load(self, state: ConnectionState, due: int, number: int, failures: int) -> None:
        self.state, self.due, self._number, self._failures = state, due, number, failures

    def restart(self, at: int) -> None:
        """Forgets the connection and all failures; the next attempt is due at ``at``."""
        self.state = TRANSITIONS[self.state, "restart"]
        self.due = at
        self._failures = 0


@dataclass(slots=True)
class PendingRequest:
    """A request without an answer yet, and the ticket that its answer ends, if there is one.

    From ``due`` on the answer is late.
    """

    verb: str
    due: int
    ticket: Ticket | None = None


class RequestQueue:
    """Requests and answers by the line, where answers come in the order of the requests.

    It belongs to one connection: unsent bytes, pending requests and the half-received line end
    with it.
    """

    def __init__(self, longest_line: int, ready: Callable[[], None]) -> None:
        self.pending: deque[PendingRequest] = deque()
        self._outbox = Outbox(ready)
        self._lines = LineReader(longest_line)

    def send(self, message: bytes, request: PendingRequest) -> None:
        self.pending.append(request)
        self._outbox.send(message)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def receive(self, data: bytes) -> list[TextLine]:
        """The lines that end in ``data``; a line over the limit is reported before it ends."""
        lines = self._lines.feed(data)
        return [*lines, TextLine(b"", too_long=True)] if self._lines.save().cut else lines

    def is_pending(self, verb: str) -> bool:
        return any(request.verb == verb for request in self.pending)

    def tickets(self) -> list[Ticket]:
        return [request.ticket for request in self.pending if request.ticket is not None]

    def drop_tickets(self) -> None:
        """The answers stay pending, but they end no ticket."""
        for request in self.pending:
            request.ticket = None


# ── drivers of REAL devices ─────────────────────────────────────────────────────────────────────

NOT_YET = "not connected yet"
PAUSES = (NS_PER_SECOND, 2 * NS_PER_SECOND, 4 * NS_PER_SECOND)


class DeviceStatus(NamedTuple):
    """State of the connection, and why it is not there."""

    connection: str
    trouble: str
    cycles: int


class DeviceCaller:
    """The parts of a `Caller` that do not depend on the protocol: one connection, which is made
    again when it is lost. A REAL device cannot be saved.

    ``where`` is the address of the device, ``timeout`` limits a connection attempt. A driver adds
    the bytes (`receive`, `take`), what is due while it is connected (`_next_due`, `_due`), and
    `_drop`.
    """

    def __init__(self, where: str, log: Callable[[str], None], timeout: int) -> None:
        self.where = where
        self._log = log
        self._schedule = ReconnectSchedule(timeout=timeout, pauses=PAUSES)
        self._listeners: list[Callable[[], None]] = []
        self._cycles = 0
        self._trouble = NOT_YET

    # ── the wire ──

    def wanted(self) -> int | None:
        return self._schedule.wanted()

    def connected(self, now: int) -> None:
        self._schedule.connected()
        self._trouble = ""
        self._log(f"{self.where}: connected")

    def lost(self, now: int, reason: str) -> None:
        if self._schedule.state != "waiting":
            self._fail(now, reason)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _fail(self, now: int, reason: str) -> None:
        """The connection has ended; the next one is made after a pause."""
        self._trouble = reason
        self._log(f"{self.where}: the connection has ended: {reason}")
        self._drop(now)
        self._schedule.failed(now)
        self._tell(now)

    def _drop(self, now: int) -> None:
        """Forgets what was under way on the connection."""
        raise NotImplementedError

    def _tell(self, now: int) -> None:
        """Notifies the wire: there is something to send, or another connection is wanted."""
        for listener in self._listeners:
            listener()

    # ── time ──

    def next_wake(self) -> int | None:
        return self._next_due() if self._schedule.state == "connected" else self._schedule.due

    def wake(self, now: int) -> None:
        if self._schedule.state == "waiting":
            self._schedule.connect(now)
            self._tell(now)
        elif self._schedule.state == "connecting":
            self._fail(now, "no connection in time")
        else:
            self._due(now)

    def _next_due(self) -> int | None:
        """When `_due` is to be called, while the device is connected."""
        raise NotImplementedError

    def _due(self, now: int) -> None:
        """A request is late, or the next one is due."""
        raise NotImplementedError

    # ── component ──

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> DeviceStatus:
        return DeviceStatus(self._schedule.state, self._trouble, self._cycles)
