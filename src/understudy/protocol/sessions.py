"""Building blocks of faces: text lines in, queued answers out, sessions by peer."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import MessageSession, Session, WireMessage
from understudy.ports.faults import Faults

S = TypeVar("S", bound=Session | MessageSession)


# ── lines ───────────────────────────────────────────────────────────────────────────────────────


class TextLine(NamedTuple):
    """A line without its line end. A line that was too long is cut off at the limit."""

    data: bytes
    too_long: bool


class SavedLine(Struct):
    """Snapshot of the line that has not ended yet."""

    part: bytes = b""
    cut: bool = False


class LineReader:
    """Reads lines from a stream of bytes; a line ends with LF or CR LF.

    The reader never holds more than one line of ``limit`` bytes.
    """

    def __init__(self, limit: int, saved: SavedLine | None = None) -> None:
        self._limit = limit
        self._part = bytearray(saved.part if saved else b"")
        self._cut = saved.cut if saved else False

    def feed(self, data: bytes) -> list[TextLine]:
        """The lines that end in ``data``."""
        *ended, rest = data.split(b"\n")
        lines = []
        for piece in ended:
            self._add(piece)
            lines.append(self._end())
        self._add(rest)
        return lines

    def save(self) -> SavedLine:
        return SavedLine(bytes(self._part), self._cut)

    def _add(self, piece: bytes) -> None:
        room = self._limit + 1 - len(self._part)  # one more for a CR
        self._part += piece[:room]
        self._cut |= len(piece) > room

    def _end(self) -> TextLine:
        line = bytes(self._part).removesuffix(b"\r")
        too_long = self._cut or len(line) > self._limit
        self._part.clear()
        self._cut = False
        return TextLine(line[: self._limit], too_long)


# ── messages to send ────────────────────────────────────────────────────────────────────────────


class Outbox:
    """Queue of whole messages that wait for their wire; calls ``ready`` for each new message."""

    def __init__(self, ready: Callable[[], None], messages: Iterable[bytes] = ()) -> None:
        self._ready = ready
        self._messages = deque(messages)
        self.size = sum(map(len, self._messages))
        if self._messages:
            ready()

    def send(self, message: bytes) -> None:
        self._messages.append(message)
        self.size += len(message)
        self._ready()

    def end(self) -> None:
        """Wakes the wire after the last message: the session's credit tells it to hang up."""
        self._ready()

    def take(self, room: int) -> bytes:
        """The next message if it fits into ``room`` bytes, else nothing."""
        if not self._messages or room < len(self._messages[0]):
            return b""
        message = self._messages.popleft()
        self.size -= len(message)
        return message

    def save(self) -> list[bytes]:
        return list(self._messages)


class MessageOutbox:
    """Queue of messages that wait for their wire: at most ``most`` of them, and ``most_bytes``.

    A message that does not fit displaces the oldest ones, which are counted in `dropped`; one that
    is larger than all the room displaces every other and is sent.
    """

    def __init__(
        self,
        ready: Callable[[], None],
        messages: Iterable[WireMessage] = (),
        *,
        most: int = 100,
        most_bytes: int = 16 * 1024 * 1024,
        dropped: int = 0,
    ) -> None:
        self._ready = ready
        self._most = most
        self._most_bytes = most_bytes
        self._messages: deque[WireMessage] = deque()
        self.size = 0
        self.dropped = dropped
        for message in messages:
            self.send(message)

    def __len__(self) -> int:
        return len(self._messages)

    def send(self, message: WireMessage) -> None:
        self._messages.append(message)
        self.size += message.size
        while len(self._messages) > 1 and (
            len(self._messages) > self._most or self.size > self._most_bytes
        ):
            self.size -= self._messages.popleft().size
            self.dropped += 1
        self._ready()

    def take(self, room: int) -> WireMessage | None:
        """Removes and returns the next message if it fits into ``room`` bytes."""
        if not self._messages or room < self._messages[0].size:
            return None
        message = self._messages.popleft()
        self.size -= message.size
        return message

    def save(self) -> list[WireMessage]:
        return list(self._messages)


class ReadyPeers:
    """Peers of a face that have a message to take, in the order in which they became ready."""

    def __init__(self) -> None:
        self._peers: dict[str, None] = {}

    def add(self, peer: str) -> None:
        self._peers[peer] = None

    def drain(self) -> list[str]:
        peers = list(self._peers)
        self._peers.clear()
        return peers


# ── what faces have in common ───────────────────────────────────────────────────────────────────


class SessionFace(Protocol[S]):
    """The methods of a `Face` or `MessageFace` that are the same for most dialects.

    A face inherits them and adds `open`, `save` and `load`; a face with a timer also has its own
    `next_wake` and `wake`.
    """

    _sessions: dict[str, S]
    ready: ReadyPeers

    def sessions(self) -> Mapping[str, S]:
        return self._sessions

    def ready_peers(self) -> list[str]:
        return self.ready.drain()

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> dict[str, int]:
        return {"clients": len(self._sessions)}


class NotInjectable(Protocol):
    """`Injectable` without faults of its own: only scenario rules act on it."""

    def faults(self) -> Faults:
        return {}

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return Refused(f"{fault} cannot be injected into a face; write a scenario rule")
