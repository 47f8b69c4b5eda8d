"""One peer's connection to a face: what passes on it, what waits, and its part of a snapshot."""

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, runtime_checkable
from zlib import crc32

import msgspec
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports import Locked, MessageSession, Session, Snapshot, TakesMany, WireMessage
from understudy.wire.interface import BrokerSink, SendsMany, Sink

log = logging.getLogger(__name__)

MOST_UNREAD = 1000
"""Messages that wait for a session's credit. Not every wire can stop reading: more are dropped."""

AnySession = Session | MessageSession
Data = bytes | WireMessage


def size_of(data: Data) -> int:
    """Number of payload bytes."""
    return len(data) if isinstance(data, bytes) else data.size


# ── what passes on a connection ─────────────────────────────────────────────────────────────────

Kind = Literal[">", "<", "!"]


@dataclass(frozen=True, slots=True)
class Event:
    """Bytes, a message or a change of a connection. ``address`` has the addresses of a message
    and of its reply."""

    at: int
    endpoint: str
    peer: str
    kind: Kind
    data: bytes
    address: tuple[str, str] | None = None


Note = Callable[[Event], None]
NoteSent = Callable[[int, str, str, Sequence[WireMessage]], None]
"""Time, endpoint, peer and messages."""


def event_of(at: int, endpoint: str, peer: str, kind: Kind, data: Data) -> Event:
    if isinstance(data, bytes):
        return Event(at, endpoint, peer, kind, data)
    payload = data.payload
    if data.more:  # size and checksum of each further part: pictures are megabytes
        sums = (b" +%d bytes, crc32 %08x" % (len(part), crc32(part)) for part in data.more)
        payload = b"".join((payload, *sums))
    return Event(at, endpoint, peer, kind, payload, (data.address, data.reply_to))


@runtime_checkable
class SilentBytes(Protocol):
    """A session that says which bytes it never answers: `silent` matches a run of them, and every
    other byte alone."""

    silent: re.Pattern[bytes]


EACH_BYTE = re.compile(rb"(?s:.)")


def pieces_of(session: Any) -> re.Pattern[bytes]:
    """Cuts a stream into bytes that may be answered, and runs of bytes that never are.

    Where a run is cut once more by a packet boundary makes no difference to the session.
    """
    return session.silent if isinstance(session, SilentBytes) else EACH_BYTE


# ── the connection ──────────────────────────────────────────────────────────────────────────────

Moment = Annotated[int, Meta(ge=0, lt=1 << 62)]
Delayed = list[tuple[Moment, bytes | WireMessage]]


class PeerState(Struct, forbid_unknown_fields=True):
    """What a snapshot holds of a connection.

    `unread` has the received bytes or messages for which the session has no credit yet; after
    `ended` the peer sends nothing more. `held` and `incoming` are answers and requests that
    scenario rules delay, with times; `apart` arrives out of order. `part` is the begin of a request
    that is not whole yet. The bytes of `unheard` wait for their turn at rate `step`, as the end of
    the bytes may do (`end_unheard`); until `resumes_at` time runs after a query. `first` has the
    first bytes of the peer, as `first_bytes.py` needs them.
    """

    unread: bytearray | list[WireMessage] = msgspec.field(default_factory=bytearray)
    ended: bool = False
    held: Annotated[Delayed, Meta(max_length=1 << 20)] = []
    incoming: Annotated[Delayed, Meta(max_length=1 << 20)] = []
    apart: Annotated[Delayed, Meta(max_length=1 << 20)] = []
    part: bytes = b""
    unheard: bytearray = msgspec.field(default_factory=bytearray)
    end_unheard: bool = False
    resumes_at: Moment = 0
    first: Annotated[bytes, Meta(max_length=64)] | None = None


@dataclass(eq=False)
class Connection:
    """One peer's connection to a face."""

    endpoint: str
    peer: str
    session: AnySession
    sink: Sink[Any]
    state: PeerState = field(default_factory=PeerState)
    eof_delivered: bool = False
    reading: bool = True
    held_size: int = 0
    """Bytes of the answers that rules delay."""
    dropped: int = 0
    """Messages that found no room."""
    broker: BrokerSink | None = None
    """The sink, if it leads to a broker."""
    batches: tuple[TakesMany, SendsMany] | None = None
    """Session and sink, if both can pass many messages at once."""

    def __post_init__(self) -> None:
        self.broker = self.sink if isinstance(self.sink, BrokerSink) else None
        self.join(self.session)

    def join(self, session: AnySession) -> None:
        """Continues with this session, and with what was not read yet."""
        self.session, sink = session, self.sink
        self.batches = None
        if isinstance(session, TakesMany) and isinstance(sink, SendsMany):
            self.batches = session, sink
        kind = list if isinstance(session, MessageSession) else bytearray
        if not isinstance(self.state.unread, kind):
            self.state.unread = kind()

    def restore(self, session: AnySession, state: PeerState) -> None:
        """Continues with a session of a restored face."""
        self.state, self.eof_delivered = state, False
        self.held_size = sum(size_of(data) for _, data in state.held)
        self.join(session)

    def is_admitted(self) -> bool:
        """Whether the peer may be here; false until it has shown a secret that it needs."""
        return not isinstance(self.session, Locked) or self.session.admission.admitted

    def owed(self) -> bool:
        """The peer waits for an answer that needs time."""
        return bool(self.state.held or self.state.incoming or self.session.owed())

    def add(self, data: Data) -> None:
        """Keeps received data until the session has credit for it."""
        unread: Any = self.state.unread
        if isinstance(data, bytes):
            unread += data
        elif len(unread) < MOST_UNREAD:
            unread.append(data)
        else:
            self.dropped += 1

    def feed(self, now: int) -> bool:
        """Gives the session what its credit allows; true if it read something."""
        session: Any = self.session
        unread, fed = self.state.unread, False
        while unread and (credit := session.credit()) > 0:
            fed = True
            if isinstance(unread, bytearray):
                data = bytes(unread[:credit])
                del unread[:credit]
                session.receive(data, now)
                continue
            message = unread.pop(0)
            try:
                session.receive(message, now)
            except Exception:  # the next message is still read
                log.exception("a message could not be handled")
                session.failed(message, now)
        return fed

    def give_eof(self, now: int) -> None:
        """Tells a session of bytes that no more come."""
        self.eof_delivered = True
        if not isinstance(self.session, MessageSession):
            self.session.eof(now)

    def take_unheard(self, *, piece: bool) -> bytes:
        """Removes and returns the bytes that wait for their turn: all, or the next piece."""
        unheard = self.state.unheard
        found = pieces_of(self.session).match(unheard) if piece else None
        size = found.end() if found else len(unheard)
        taken = bytes(unheard[:size])
        del unheard[:size]
        return taken

    def send_batches(self, now: int, note: NoteSent) -> bool:
        """Sends many messages at once, if no rule delays others; true if something was sent."""
        sent = False
        if self.batches is not None and not self.state.held:
            session, sink = self.batches
            while messages := session.take_many(sink.room()):
                note(now, self.endpoint, self.peer, messages)
                sink.send_many(messages)
                sent = True
        return sent


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────


class SavedEndpoint(Struct, forbid_unknown_fields=True):
    """Snapshot of an endpoint's connections; ``opened`` is the number of the last one."""

    opened: Moment = 0
    lines: dict[str, PeerState] = {}


def read_connections(snapshot: Snapshot, endpoints: Collection[str]) -> dict[str, SavedEndpoint]:
    """The connections of a snapshot by endpoint; `ConfigError` names what is wrong."""
    try:
        saved = msgspec.convert(snapshot.lines, dict[str, SavedEndpoint])
    except msgspec.ValidationError as problem:
        raise ConfigError(f"the snapshot is damaged: lines: {problem}") from None
    for endpoint, was in saved.items():
        if endpoint not in endpoints:
            raise ConfigError(f"the snapshot is damaged: lines: no endpoint {endpoint!r} here")
        for peer, state in was.lines.items():
            for name, delayed in _delayed_by_name(state):
                times = [at for at, _ in delayed]
                if times != sorted(times) or (times and times[0] < snapshot.now):
                    raise _damaged(endpoint, peer, f"{name}: times in the past or not in order")
    return saved


def _delayed_by_name(state: PeerState) -> list[tuple[str, Delayed]]:
    return [("held", state.held), ("incoming", state.incoming), ("apart", state.apart)]


def check_sessions(
    endpoint: str, saved: Mapping[str, PeerState], sessions: Mapping[str, AnySession]
) -> None:
    """Every connection has a session of its kind, and every session a connection."""
    for peer in sessions.keys() ^ saved.keys():
        raise _damaged(endpoint, peer, "a session without a connection, or the other way round")
    for peer, state in saved.items():
        kind = WireMessage if isinstance(sessions[peer], MessageSession) else bytes
        data: list[Any] = [each for _, each in (*state.held, *state.incoming, *state.apart)]
        data += state.unread if isinstance(state.unread, list) else [bytes(state.unread)]
        if any(not isinstance(each, kind) and each for each in data):
            raise _damaged(endpoint, peer, f"not {kind.__name__}")


def _damaged(endpoint: str, peer: str, problem: str) -> ConfigError:
    return ConfigError(f"the snapshot is damaged: lines: {endpoint} {peer}: {problem}")
