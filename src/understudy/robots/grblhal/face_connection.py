"""The clients of a grblHAL wire: each is a plug, and there is one socket."""

from typing import Protocol

from understudy.protocol.sessions import Outbox, ReadyPeers
from understudy.robots.grblhal.face_framing import RX_SIZE, SILENT, Reader

BACKLOG = 64 * 1024
"""Bytes beyond the firmware's buffer that are kept for a sender that does not count."""
HELPING = 1024
"""So many bytes are read before it is looked again whether anybody takes the answers."""
OUTBOX_LIMIT = 256 * 1024


class Socket(Protocol):
    """What the connections share: the face."""

    ready: ReadyPeers

    def serves(self, peer: str) -> bool: ...

    def owes(self, peer: str) -> bool: ...

    def receive(self, data: bytes, now: int) -> None: ...

    def unplug(self, peer: str, now: int) -> None: ...


class Connection:
    """`Session` of one client: a plug for the one line there is, and its own receive buffer."""

    silent = SILENT

    def __init__(self, face: Socket, peer: str, said: list[bytes] | None = None) -> None:
        self._face = face
        self.peer = peer
        self.outbox = Outbox(lambda: face.ready.add(peer), said or ())
        self.reader = Reader()
        self.ended = False

    def receive(self, data: bytes, now: int) -> None:
        self._face.receive(data, now)

    def take(self, room: int) -> bytes:
        """Whoever is not served hears nothing: not even what it is still owed."""
        return self.outbox.take(room) if self._face.serves(self.peer) else b""

    def eof(self, now: int) -> None:
        self.ended = True

    def closed(self, now: int) -> None:
        self._face.unplug(self.peer, now)

    def credit(self) -> int:
        if self.ended or self.piled_up or not self._face.serves(self.peer):
            return 0
        return max(0, min(RX_SIZE + BACKLOG - self.reader.waiting, HELPING))

    @property
    def piled_up(self) -> bool:
        """It does not take what is said: what it asks for has to wait."""
        return self.outbox.size >= OUTBOX_LIMIT

    def owed(self) -> bool:
        return self._face.owes(self.peer)
