"""What the sinks of brokers share: how much waits to be sent, and whether the session reads."""

import asyncio

from understudy.ports import UNLIMITED, WireMessage

LARGEST_PENDING = 16 << 20
"""Bytes that may wait to be sent, or were sent and not yet read by the broker."""
BEHIND = 256 * 1024
"""With more bytes than these the wire is behind: in lock-step time waits."""


class BrokerQueue:
    """The parts of a `Sink` that do not depend on the broker. ``overhead``: bytes that a message
    costs beside its address and payload."""

    def __init__(self, overhead: int) -> None:
        self._overhead = overhead
        self._pending = 0
        self._sendable = asyncio.Event()
        self._readable = asyncio.Event()
        self._readable.set()

    def room(self) -> int:
        return UNLIMITED if self._pending == 0 else max(0, LARGEST_PENDING - self._pending)

    def read_more(self, wanted: bool) -> None:
        if wanted:
            self._readable.set()
        else:
            self._readable.clear()

    def behind(self) -> bool:
        return self._pending > BEHIND

    def _note_waiting(self, size: int) -> None:
        """Messages of this size were queued."""
        self._pending += size
        self._sendable.set()

    def _size(self, message: WireMessage) -> int:
        return len(message.payload) + len(message.address) + self._overhead
