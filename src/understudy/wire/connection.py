"""One peer's connection to a face, and its snapshot."""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports import (
    Locked,
    MessageSession,
    Session,
    Snapshot,
    TakesMany,
    WireMessage,
)
from understudy.wire.chat import NoteSent
from understudy.wire.first_bytes import FirstBytes
from understudy.wire.inbox import ByteInbox, MessageInbox
from understudy.wire.interface import BrokerSink, SendsMany, Sink
from understudy.wire.message_faults import Data, size_of
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
    broker: BrokerSink | None = None
    """The sink, if it leads to a broker."""
    batches: tuple[TakesMany, SendsMany] | None = None
    """Session and sink, if both can pass many messages at once."""

    def __post_init__(self) -> None:
        self.broker = self.sink if isinstance(self.sink, BrokerSink) else None
        self.join(self.session)

    def is_admitted(self) -> bool:
        """Whether the peer may be here; false until it has shown a secret that it needs."""
        return not isinstance(self.session, Locked) or self.session.admission.admitted

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
        self.session, sink = session, self.sink
        self.batches = None
        if isinstance(session, TakesMany) and isinstance(sink, SendsMany):
            self.batches = session, sink
        if isinstance(session, MessageSession):
            self.inbox = MessageInbox(session, unread)
        else:
            self.inbox = ByteInbox(session, bytes(unread))

    def send_batches(self, now: int, note: NoteSent) -> bool:
        """Sends many messages at once, if no rule delays others; true if something was sent."""
        sent = False
        if self.batches is not None and not self.delayed:
            session, sink = self.batches
            while messages := session.take_many(sink.room()):
                note(now, self.endpoint, self.peer, messages)
                sink.send_many(messages)
                sent = True
        return sent

    def save(self, resumes_at: int) -> "SavedConnection":
        return SavedConnection(
            self.inbox.save(),
            self.ended,
            list(self.delayed),
            list(self.incoming),
            self.part,
            bytes(self.unheard),
            self.end_unheard,
            resumes_at,
            self.first.known,
        )

    def load(self, session: AnySession, saved: "SavedConnection") -> None:
        """Continues with a session of a restored face."""
        self.join(session, saved.unread)
        self.ended, self.eof_delivered = saved.ended, False
        self.delayed, self.incoming = deque(saved.held), deque(saved.incoming)
        self.delayed_size = sum(size_of(data) for _, data in self.delayed)
        self.part, self.first = saved.part, FirstBytes(saved.first)
        self.unheard, self.end_unheard = bytearray(saved.unheard), saved.end_unheard


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────

Moment = Annotated[int, Meta(ge=0, lt=1 << 62)]
Delayed = Annotated[list[tuple[Moment, bytes | WireMessage]], Meta(max_length=1 << 20)]


class SavedConnection(Struct, forbid_unknown_fields=True):
    """Snapshot of a connection: unread data, and answers that are sent later."""

    unread: bytes | list[WireMessage]
    ended: bool
    held: Delayed = []
    incoming: Delayed = []
    part: bytes = b""
    unheard: bytes = b""
    end_unheard: bool = False
    resumes_at: Moment = 0
    first: Annotated[bytes, Meta(max_length=64)] | None = None


class SavedEndpoint(Struct, forbid_unknown_fields=True):
    """Snapshot of an endpoint's connections; ``opened``: the number of the last one."""

    opened: Moment
    lines: dict[str, SavedConnection]


def read_connections(snapshot: Snapshot, endpoints: Collection[str]) -> dict[str, SavedEndpoint]:
    """The connections of a snapshot by endpoint; `ConfigError` names what is wrong."""
    try:
        saved = msgspec.convert(snapshot.lines, dict[str, SavedEndpoint])
    except msgspec.ValidationError as problem:
        raise ConfigError(f"the snapshot is damaged: lines: {problem}") from None
    for endpoint, was in saved.items():
        if endpoint not in endpoints:
            raise ConfigError(f"the snapshot is damaged: lines: no endpoint {endpoint!r} here")
        for peer, connection in was.lines.items():
            for name in ("held", "incoming"):
                times = [at for at, _ in getattr(connection, name)]
                if times != sorted(times) or (times and times[0] < snapshot.now):
                    raise _damaged(endpoint, peer, f"{name}: times in the past or not in order")
    return saved


def check_sessions(
    endpoint: str, saved: SavedEndpoint | None, sessions: Mapping[str, AnySession]
) -> None:
    """Every connection has a session of its kind, and every session a connection."""
    lines = saved.lines if saved else {}
    for peer in sessions.keys() ^ lines.keys():
        raise _damaged(endpoint, peer, "a session without a connection, or the other way round")
    for peer, connection in lines.items():
        kind = WireMessage if isinstance(sessions[peer], MessageSession) else bytes
        data = [*(d for _, d in connection.held), *(d for _, d in connection.incoming)]
        unread = connection.unread
        data += [unread] if isinstance(unread, bytes) else unread
        if any(not isinstance(each, kind) and each for each in data):
            raise _damaged(endpoint, peer, f"not {kind.__name__}")


def _damaged(endpoint: str, peer: str, problem: str) -> ConfigError:
    return ConfigError(f"the snapshot is damaged: lines: {endpoint} {peer}: {problem}")
