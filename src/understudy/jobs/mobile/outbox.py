"""Messages that must arrive: each stays here until the server has confirmed that it is stored.

A message that is not confirmed in time is sent again with the same id; the server and the consumers
drop what they have already seen. The outbox has a bound: when it is full the oldest message is
given up and counted.
"""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.units import NS_PER_SECOND

CAPACITY = 10_000
IN_FLIGHT = 256
"""Messages that wait for a confirmation at the same time."""
RETRY_NS = 2 * NS_PER_SECOND
Time = Annotated[int, Meta(ge=0, lt=1 << 62)]


class Entry(Struct, frozen=True):
    """A message; ``message_id`` was made when it was put here, and never changes."""

    message_id: str
    subject: str
    data: bytes


class SavedOutbox(Struct, forbid_unknown_fields=True):
    """Snapshot: what waits, in order; the given-up messages are only counted."""

    entries: Annotated[list[Entry], Meta(max_length=CAPACITY)]
    given_up: Annotated[int, Meta(ge=0, lt=1 << 62)]


class Outbox:
    """First in, first out; confirmations come in any order."""

    def __init__(self, capacity: int = CAPACITY, in_flight: int = IN_FLIGHT) -> None:
        self._capacity = capacity
        self._most_in_flight = in_flight
        self._entries: dict[str, Entry] = {}
        self._sent_at: dict[str, int] = {}
        """The messages in flight and when they were sent last."""
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
        if len(self._entries) >= self._capacity:
            oldest = next(iter(self._entries))
            del self._entries[oldest]
            self._sent_at.pop(oldest, None)
            self._given_up += 1
        self._entries[entry.message_id] = entry

    def take_due(self, now: int) -> list[Entry]:
        """The messages to send now: new ones as far as the flight has room, and late ones again."""
        due = [self._entries[name] for name, at in self._sent_at.items() if now - at >= RETRY_NS]
        room = self._most_in_flight - len(self._sent_at)
        if room > 0:
            waiting = (entry for name, entry in self._entries.items() if name not in self._sent_at)
            due += [entry for entry, _ in zip(waiting, range(room), strict=False)]
        for entry in due:
            self._sent_at[entry.message_id] = now
        return due

    def confirm(self, message_id: str) -> None:
        """The server has stored the message."""
        self._entries.pop(message_id, None)
        self._sent_at.pop(message_id, None)

    def connection_lost(self) -> None:
        """Everything in flight is sent again as soon as possible."""
        self._sent_at.clear()

    def next_wake(self) -> int | None:
        """When something is due; a time that has passed means now."""
        if len(self._sent_at) < min(self._most_in_flight, len(self._entries)):
            return 0
        return min(self._sent_at.values()) + RETRY_NS if self._sent_at else None

    # ── snapshot ──

    def save(self) -> SavedOutbox:
        return SavedOutbox(list(self._entries.values()), self._given_up)

    def load(self, saved: SavedOutbox) -> None:
        self._entries = {entry.message_id: entry for entry in saved.entries}
        self._sent_at = {}
        self._given_up = saved.given_up
