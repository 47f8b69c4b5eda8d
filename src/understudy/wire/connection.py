"""One peer's connection to a face, and its snapshot."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from understudy.ports import MessageSession, Session, WireMessage
from understudy.wire.first_bytes import FirstBytes
from understudy.wire.inbox import ByteInbox, MessageInbox
from understudy.wire.interface import Sink
from understudy.wire.message_faults import Data
from understudy.wire.turns import pieces_of

AnySession = Session | MessageSession


@dataclass(eq=False)
class Connection:
    """One peer's connection to a face; ``delayed``: answers that rules send later, with times."""

    endpoint: str
    peer: str
    session: AnySession
    sink: Sink[Any]
    inbox: Any = None
    ended: bool = False
    eof_delivered: bool = False
    reading: bool = True
    delayed: deque[tuple[int, Data]] = field(default_factory=deque)
    delayed_size: int = 0
    incoming: deque[tuple[int, Data]] = field(default_factory=deque)
    """Requests that rules let arrive later, with times."""
    part: bytes = b""
    """The begin of a request that is not whole yet."""
    unheard: bytearray = field(default_factory=bytearray)
    """Bytes that wait for their turn."""
    end_unheard: bool = False
    """The end of the peer's bytes waits for its turn."""
    first: FirstBytes = field(default_factory=FirstBytes)

    def __post_init__(self) -> None:
        self.join(self.session)

    def owed(self) -> bool:
        """The peer waits for an answer that needs time."""
        return bool(self.delayed or self.incoming or self.session.owed())

    def take_unheard(self, *, piece: bool) -> bytes:
        """Removes and returns the bytes that wait for their turn: all, or the next piece."""
        found = pieces_of(self.session).match(self.unheard) if piece else None
        size = found.end() if found else len(self.unheard)
        taken = bytes(self.unheard[:size])
        del self.unheard[:size]
        return taken

    def join(self, session: AnySession, unread: Any = ()) -> None:
        """Continues with this session, and with what it has not read yet."""
        self.session = session
        if isinstance(session, MessageSession):
            self.inbox = MessageInbox(session, unread)
        else:
            self.inbox = ByteInbox(session, bytes(unread))


class SavedConnection(Struct):
    """Snapshot of a connection: unread data, and answers that are sent later."""

    unread: bytes | list[WireMessage]
    ended: bool
    held: list[tuple[int, bytes | WireMessage]] = []
    incoming: list[tuple[int, bytes | WireMessage]] = []
    part: bytes = b""
    unheard: bytes = b""
    end_unheard: bool = False
    resumes_at: int = 0
    first: bytes | None = None


class SavedEndpoint(Struct):
    """Snapshot of an endpoint's connections; ``opened``: the number of the last one."""

    opened: int
    lines: dict[str, SavedConnection]
