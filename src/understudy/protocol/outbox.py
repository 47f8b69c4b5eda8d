"""What a session has to say, until its wire takes it."""

from collections import deque
from collections.abc import Callable, Iterable


class Outbox:
    """Whole messages in their order; ``stir`` is told when there is something new."""

    def __init__(self, stir: Callable[[], None], messages: Iterable[bytes] = ()) -> None:
        self._stir = stir
        self._messages = deque(messages)
        self.size = sum(map(len, self._messages))
        if self._messages:
            stir()

    def say(self, message: bytes) -> None:
        self._messages.append(message)
        self.size += len(message)
        self._stir()

    def take(self, room: int) -> bytes:
        if not self._messages or room < len(self._messages[0]):
            return b""
        message = self._messages.popleft()
        self.size -= len(message)
        return message

    def save(self) -> list[bytes]:
        return list(self._messages)


class ReadyPeers:
    """Which peers of a face have something to take, in the order in which they got it."""

    def __init__(self) -> None:
        self._peers: dict[str, None] = {}

    def add(self, peer: str) -> None:
        self._peers[peer] = None

    def drain(self) -> list[str]:
        peers = list(self._peers)
        self._peers.clear()
        return peers
