"""Messages that must arrive: each stays here until the server has confirmed that it is stored.

A message that is not confirmed in time is sent again with the same id; the server and the consumers
drop what they have already seen. The outbox has a bound: when it is full the oldest message is
given up and counted.
"""

from collections import deque
from typing import Annotated

from msgspec import Meta, Struct

from understudy.units import NS_PER_SECOND

CAPACITY = 10_000
IN_FLIGHT = 256
"""Messages that wait for a confirmation at the same time."""
RETRY_NS = 2 * NS_PER_SECOND
LARGEST = 1 << 22
"""Messages in a snapshot."""


class Entry(Struct, frozen=True):
    """A message; ``message_id`` was made when it was put here, and never changes."""

    message_id: str
    subject: str
    data: bytes


Time = Annotated[int, Meta(ge=0, lt=1 << 62)]


class SavedOutbox(Struct, forbid_unknown_fields=True):
    """Snapshot: what waits, in order; `in_flight`: since when messages wait for a confirmation."""

    entries: Annotated[list[Entry], Meta(max_length=LARGEST)]
    in_flight: dict[str, Time]
    given_up: Annotated[int, Meta(ge=0, lt=1 << 62)]


class Outbox:
    """First in, first out; confirmations come in any order. No call costs more than the messages
    that it returns."""

    def __init__(self, capacity: int = CAPACITY, in_flight: int = IN_FLIGHT) -> None:
        self.capacity = capacity
        self._most_in_flight = in_flight
        self._entries: dict[str, Entry] = {}
        self._unsent: deque[str] = deque()
        """Ids of messages that are not in flight; some may have been given up."""
        self._sent_at: dict[str, int] = {}
        """The messages in flight and when they were sent last, in the order of these times."""
        self._given_up = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def given_up(self) -> int:
        """Messages that were dropped because the outbox was full."""
        return self._given_up

    def put(self, entry: Entry) -> None:
        if entry.message_id in self._entries:
            return
        if len(self._entries) >= self.capacity:
            self.confirm(next(iter(self._entries)))
            self._given_up += 1
        self._entries[entry.message_id] = entry
        self._unsent.append(entry.message_id)

    def take_due(self, now: int) -> list[Entry]:
        """The messages to send now: late ones again, and new ones as far as the flight has room."""
        due: list[Entry] = []
        for name, at in self._sent_at.items():
            if now - at < RETRY_NS:
                break
            due.append(self._entries[name])
        for entry in due:
            del self._sent_at[entry.message_id]
        new = self._most_in_flight - len(self._sent_at) - len(due)
        while new > 0 and self._unsent:
            found = self._entries.get(self._unsent.popleft())
            if found is not None:
                due.append(found)
                new -= 1
        self._sent_at.update((entry.message_id, now) for entry in due)
        return due

    def confirm(self, message_id: str) -> None:
        """The server has stored the message."""
        self._entries.pop(message_id, None)
        self._sent_at.pop(message_id, None)

    def connection_lost(self) -> None:
        """Everything in flight is sent again as soon as possible."""
        self._sent_at.clear()
        self._unsent = deque(self._entries)

    # ── snapshot ──

    def save(self) -> SavedOutbox:
        return SavedOutbox(list(self._entries.values()), dict(self._sent_at), self._given_up)

    def load(self, saved: SavedOutbox) -> None:
        self._entries = {entry.message_id: entry for entry in saved.entries}
        flown = sorted(saved.in_flight.items(), key=lambda sent: sent[1])
        self._sent_at = {name: at for name, at in flown if name in self._entries}
        self._unsent = deque(name for name in self._entries if name not in self._sent_at)
        self._given_up = saved.given_up
