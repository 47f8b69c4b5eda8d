"""Received data that waits until its session has credit for it."""

import logging
from collections import deque
from collections.abc import Iterable

from understudy.ports import MessageSession, Session, WireMessage

log = logging.getLogger(__name__)

MOST_UNREAD = 1000
"""Messages that wait for a session's credit. Not every wire can stop reading: more are dropped."""


class ByteInbox:
    """Received bytes that their session has not read yet."""

    def __init__(self, session: Session, unread: bytes = b"") -> None:
        self._session = session
        self._unread = bytearray(unread)

    def __bool__(self) -> bool:
        return bool(self._unread)

    def add(self, data: bytes) -> None:
        self._unread += data

    def feed(self, now: int) -> bool:
        """Gives the session what its credit allows; true if it read something."""
        fed = False
        while self._unread and (credit := self._session.credit()) > 0:
            data = bytes(self._unread[:credit])
            del self._unread[:credit]
            self._session.receive(data, now)
            fed = True
        return fed

    def eof(self, now: int) -> None:
        self._session.eof(now)

    def save(self) -> bytes:
        return bytes(self._unread)


class MessageInbox:
    """Received messages that their session has not read yet."""

    def __init__(self, session: MessageSession, unread: Iterable[WireMessage] = ()) -> None:
        self._session = session
        self._unread = deque(unread)
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._unread)

    def add(self, message: WireMessage) -> None:
        if len(self._unread) < MOST_UNREAD:
            self._unread.append(message)
        else:
            self.dropped += 1

    def feed(self, now: int) -> bool:
        """As for bytes. After a message that causes a bug, the next one is still read."""
        fed = False
        while self._unread and self._session.credit() > 0:
            message = self._unread.popleft()
            try:
                self._session.receive(message, now)
            except Exception:
                log.exception("a message could not be handled")
                self._session.failed(message, now)
            fed = True
        return fed

    def eof(self, now: int) -> None:
        return None

    def save(self) -> list[WireMessage]:
        return list(self._unread)
