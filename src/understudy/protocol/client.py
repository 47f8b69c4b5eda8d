"""Building blocks of drivers: pending requests, and when to connect again.

The connection of a driver:

    waiting ──due──▶ connecting ──connected──▶ connected
       ▲                 │                         │
       └─────failed──────┴──────────failed─────────┘
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from understudy.ports import Ticket
from understudy.protocol.sessions import LineReader, Outbox, TextLine

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

    ``due``: when the answer is late.
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
