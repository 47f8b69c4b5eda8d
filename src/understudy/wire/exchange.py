"""Connections of a cell: data goes to its session at the cell's time, answers go to the peer.

A session gets as many bytes or messages as its credit allows; what is beyond waits here, and the
wire stops reading. Received data comes after the wakes of the same instant. `InProcessCell` is a
cell on virtual time whose clients are in the same process, without sockets.

At rate `step` a byte is received in its turn: when everything that the peer was owed for the bytes
before it is answered, and the time after a query has passed. So the simulated time at which it is
received follows from the bytes before it, however the stream is cut into packets and whenever they
arrive. Until then it waits in `Connection.unheard`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from understudy.errors import ConfigError
from understudy.ports import (
    HANG_UP,
    UNLIMITED,
    CutsRequests,
    Snapshot,
    SpeaksHttp,
    TimedCell,
    WireMessage,
)
from understudy.units import NS_PER_SECOND, duration_ns, seconds
from understudy.wire.chat import Event, Kind, Note, NoteSent, event_of, note_each
from understudy.wire.connection import (
    AnySession,
    Connection,
    SavedConnection,
    SavedEndpoint,
    check_sessions,
    read_connections,
)
from understudy.wire.face_facts import CellFaces
from understudy.wire.first_bytes import FirstBytes
from understudy.wire.in_process_client import Client
from understudy.wire.interface import ClosedSession, DetachedSink, Sink
from understudy.wire.message_faults import Data, MessageFaults, size_of
from understudy.wire.turns import Turns

__all__ = ["Client", "Exchange", "InProcessCell"]
log = logging.getLogger(__name__)

MOST_HELD = 1 << 20
"""Bytes that scenario rules may delay for one peer."""
LONGEST_RUN = 3600 * NS_PER_SECOND
"""Simulated time that a cell in this process runs at most while a condition holds."""


# ── the exchange ────────────────────────────────────────────────────────────────────────────────


class Exchange(CellFaces):
    """All connections of a cell; ``note`` is called for everything that passes. ``note_sent``: for
    many messages that go to a peer at once, instead of ``note`` for each."""

    def __init__(
        self,
        timed_cell: TimedCell,
        note: Note = lambda event: None,
        note_sent: NoteSent | None = None,
    ) -> None:
        super().__init__(timed_cell)
        self._note = note
        self._note_sent = note_sent or partial(note_each, note)
        self._opened = dict.fromkeys(timed_cell.faces, 0)
        self._connections: dict[tuple[str, str], Connection] = {}
        self._unread: dict[Connection, None] = {}
        self._answer_faults = {
            endpoint: MessageFaults(fault_source, endpoint, "message")
            for endpoint, fault_source in timed_cell.disturbed.items()
        }
        self._request_faults = {
            endpoint: MessageFaults(fault_source, endpoint, "request")
            for endpoint, fault_source in timed_cell.disturbed.items()
        }
        self._closed: dict[str, str] = {}
        self.turns: Turns[Connection] = Turns()

    # ── events of the wires ──

    def open(self, endpoint: str, sink: Sink[Any], peer: str = "") -> Connection:
        """Opens a session for a peer; one that has no name of its own is numbered."""
        if reason := self._closed.get(endpoint):
            log.info("%s: a client was turned away: %s", endpoint, reason)
            sink.close()
            return Connection(endpoint, "", ClosedSession(), sink)
        self._opened[endpoint] += 1
        peer = peer or str(self._opened[endpoint])
        face = self.timed_cell.faces[endpoint]
        session = face.open(peer, self.timed_cell.now)
        first = FirstBytes(None if isinstance(face, SpeaksHttp) else b"")
        connection = Connection(endpoint, peer, session, sink, first=first)
        self._connections[endpoint, peer] = connection
        self._record(connection, "!", b"open")
        self.deliver()
        return connection

    def receive(self, connection: Connection, data: Data) -> bool:
        """Gives data to the session, bytes in their turn; true if it answered at once."""
        if not self._is_open(connection):
            connection.sink.close()
            return False
        if not isinstance(data, bytes) or not (self.turns.active or connection.unheard):
            return self._hear(connection, data)
        connection.unheard += data
        self.turns.wait(connection)
        answered = self.deliver(connection)
        self._read_more(connection)
        return answered

    def receive_many(self, connection: Connection, messages: Sequence[WireMessage]) -> None:
        """Gives messages to the session, and carries out once what follows from all of them."""
        if not self._is_open(connection):
            connection.sink.close()
            return
        for message in messages:
            self._record(connection, ">", message)
            self._accept(connection, message)
        self._unread[connection] = None
        self._settle(None)

    def eof(self, connection: Connection) -> None:
        if self._is_open(connection) and not connection.ended:
            connection.end_unheard = True
            self.turns.wait(connection)
            self.deliver()

    def closed(self, connection: Connection) -> None:
        if self._is_open(connection):
            self._record(connection, "!", b"closed")
            self._drop(connection)
            self.deliver()

    def drained(self, connection: Connection) -> None:
        """The connection to this peer has room again."""
        if self._is_open(connection):
            self._send_all(connection)
            self.deliver()

    def close(self, endpoints: Iterable[str], reason: str) -> None:
        """Closes all connections of these endpoints and refuses new ones; no reason: opens them."""
        for endpoint in endpoints:
            self._closed[endpoint] = reason
            there = [c for c in self._connections.values() if c.endpoint == endpoint]
            for connection in there if reason else []:
                self._hang_up(connection)
        self.deliver()

    # ── time ──

    def next_wake(self) -> int | None:
        """The next instant at which something happens: in the cell, or to a delayed answer."""
        moments = [self.timed_cell.next_wake(), self.turns.next_moment()]
        if self._answer_faults:
            queues = [q for c in self._connections.values() for q in (c.delayed, c.incoming) if q]
            moments += [queue[0][0] for queue in queues]
        return min((at for at in moments if at is not None), default=None)

    def advance(self, to: int) -> None:
        while self._stops_at_wakes() and (at := self.next_wake()) is not None and at < to:
            self._advance(at)
            if self.timed_cell.interrupted():
                return
        self._advance(to)

    def owed(self) -> bool:
        """A peer waits for an answer that needs time."""
        return any(connection.owed() for connection in self._connections.values())

    def polled(self) -> bool:
        """A query was answered, and the time that follows it has not passed yet."""
        return self.turns.next_moment() is not None

    def detached(self) -> bool:
        """No peer is connected that could send something; a broker says nothing about that."""
        return all(isinstance(c.sink, DetachedSink) or c.broker for c in self._connections.values())

    def behind(self) -> bool:
        """A broker has not taken what was sent to it."""
        return any(c.broker is not None and c.broker.behind() for c in self._connections.values())

    def deliver(self, asking: Connection | None = None) -> bool:
        """Carries data both ways until nothing more happens at this instant; true if ``asking`` was
        answered."""
        answered = self._settle(asking)
        while (connection := self._next_turn()) is not None:
            answered |= self._take_turn(connection) and connection is asking
        return answered

    # ── snapshots ──

    def snapshot(self) -> Snapshot:
        saved = {
            endpoint: SavedEndpoint(
                self._opened[endpoint],
                {
                    c.peer: c.save(self.turns.resumes_at(c))
                    for c in self._connections.values()
                    if c.endpoint == endpoint
                },
            )
            for endpoint in self.timed_cell.faces
        }
        whole = self.timed_cell.snapshot()
        return msgspec.structs.replace(whole, lines=msgspec.to_builtins(saved))

    def restore(self, snapshot: Snapshot) -> None:
        """Restores the cell. Peers in the snapshot continue, detached if they are not connected;
        connections of other peers are closed."""
        saved = read_connections(snapshot, self.timed_cell.faces)
        before = self.timed_cell.snapshot()
        try:
            self.timed_cell.restore(snapshot)
            for endpoint, face in self.timed_cell.faces.items():
                check_sessions(endpoint, saved.get(endpoint), face.sessions())
        except ConfigError:
            self.timed_cell.restore(before)
            self._rejoin()
            raise
        live, self._connections = self._connections, {}
        self._unread.clear()
        self.turns.clear()
        for endpoint, face in self.timed_cell.faces.items():
            was = saved.get(endpoint, SavedEndpoint(0, {}))
            self._opened[endpoint] = was.opened
            sessions: Mapping[str, AnySession] = face.sessions()
            for peer, session in sessions.items():
                connection = live.pop((endpoint, peer), None) or Connection(
                    endpoint, peer, session, DetachedSink()
                )
                self._reattach(connection, session, was.lines.get(peer))
        for connection in live.values():
            log.info("%s %s is not in the snapshot: closed", connection.endpoint, connection.peer)
            connection.sink.close()
        self.deliver()

    def _rejoin(self) -> None:
        """After a restore that failed: the state is as before, the sessions are new objects."""
        for c in self._connections.values():
            c.join(self.timed_cell.faces[c.endpoint].sessions()[c.peer], c.inbox.save())

    def _reattach(
        self, connection: Connection, session: AnySession, was: SavedConnection | None
    ) -> None:
        was = was or SavedConnection([], ended=False)
        connection.load(session, was)
        if was.unheard or was.end_unheard:
            self.turns.wait(connection)
        self.turns.resume(connection, was.resumes_at, self.timed_cell.now)
        self._connections[connection.endpoint, connection.peer] = connection
        self._unread[connection] = None
        self._send_all(connection)

    # ── inside ──

    def _stops_at_wakes(self) -> bool:
        """Something may happen here at a wake of the cell, or between two of them."""
        return bool(self._answer_faults or self.turns.waiting())

    def _advance(self, to: int) -> None:
        self.timed_cell.advance(to, self._settled)
        self._send_delayed()
        self.turns.passed(self.timed_cell.now)
        if self.turns.waiting():
            self.deliver()

    def _settled(self, now: int) -> None:
        self._deliver_once(None)

    def _settle(self, asking: Connection | None) -> bool:
        """Carries data both ways, and wakes the parts that are due at this instant."""
        answered = self._deliver_once(asking)
        while (at := self.timed_cell.next_wake()) is not None and at <= self.timed_cell.now:
            if self.timed_cell.interrupted():
                break
            self.timed_cell.advance(self.timed_cell.now, lambda now: None)
            answered |= self._deliver_once(asking)
        return answered

    def _next_turn(self) -> Connection | None:
        """The first connection whose next bytes can be received now."""
        return next((c for c in self.turns.waiting() if self._has_turn(c)), None)

    def _has_turn(self, connection: Connection) -> bool:
        if not self.turns.active:
            return True
        waits = connection.inbox or connection.owed()
        now = self.timed_cell.now
        return not waits and self.turns.resumes_at(connection) <= now and self._accepts(connection)

    def _accepts(self, connection: Connection) -> bool:
        """The session reads; the end of the bytes can always be received."""
        return not connection.unheard or connection.session.credit() > 0

    def _take_turn(self, connection: Connection) -> bool:
        """Receives the next bytes, or the end; true if they were answered at once."""
        unheard, answered = connection.unheard, False
        if unheard:
            answered = self._hear(connection, connection.take_unheard(piece=self.turns.active))
        elif connection.end_unheard:
            connection.end_unheard = False
            self._end(connection)
        if not unheard and not connection.end_unheard:
            self.turns.done(connection)
            self._read_more(connection)
        return answered

    def _hear(self, connection: Connection, data: Data) -> bool:
        """Gives data to the session; true if it answered at once. Hangs up on HTTP clients."""
        self._record(connection, ">", data)
        data, foreign = connection.first.read(data) if isinstance(data, bytes) else (data, False)
        self._accept(connection, data)
        self._unread[connection] = None
        answered = self._settle(connection)
        if foreign and self._is_open(connection):
            log.info("%s: a client was turned away: it speaks HTTP or TLS", connection.endpoint)
            self._hang_up(connection)
            self._settle(None)
        if answered and self.turns.active and self.timed_cell.busy() and not self.owed():
            self.turns.queried(connection, self.timed_cell.now)
        return answered

    def _end(self, connection: Connection) -> None:
        """The peer sends nothing more."""
        connection.ended = True
        self._record(connection, "!", b"eof")
        self._schedule(connection, connection.part)
        connection.part = b""
        self._admit(connection)
        self._unread[connection] = None
        self._settle(None)

    def _deliver_once(self, asking: Connection | None) -> bool:
        """Feeds unread data to the sessions and sends their answers, until neither goes on."""
        answered = False
        moved = True
        while moved:
            fed = [self._feed(connection) for connection in list(self._unread)]
            moved = any(fed)
            for endpoint, face in self.timed_cell.faces.items():
                for peer in face.ready_peers():
                    connection = self._connections.get((endpoint, peer))
                    if connection is None:
                        continue
                    answered |= connection is asking  # also if the peer has no room for it now
                    moved |= self._send_all(connection)
        return answered

    def _feed(self, connection: Connection) -> bool:
        fed: bool = connection.inbox.feed(self.timed_cell.now)
        self._read_more(connection)
        if not connection.inbox and not connection.incoming:
            self._unread.pop(connection, None)
            if connection.ended and not connection.eof_delivered:
                connection.eof_delivered = True
                connection.inbox.eof(self.timed_cell.now)
                fed |= self._send_all(connection)
        return fed

    def _send_all(self, connection: Connection) -> bool:
        """True if something was sent, or the connection was closed: others may go on then."""
        undisturbed = connection.endpoint not in self._answer_faults
        sent = undisturbed and connection.send_batches(self.timed_cell.now, self._note_sent)
        while data := connection.session.take(self._room(connection)):
            sent |= self._send(connection, data)
        self._read_more(connection)
        was_open = self._is_open(connection)
        if connection.session.credit() == HANG_UP and was_open:
            self._drop(connection)
            connection.sink.close()
        self._close_if_finished(connection)
        return sent or was_open != self._is_open(connection)

    def _room(self, connection: Connection) -> int:
        if connection.delayed:
            return max(0, MOST_HELD - connection.delayed_size)
        return connection.sink.room()

    def _send(self, connection: Connection, data: Data) -> bool:
        """Sends an answer now, or as a rule says; true if something was sent."""
        faults = self._answer_faults.get(connection.endpoint)
        if faults is None:
            self._send_now(connection, data)
            return True
        after = connection.delayed[-1][0] if connection.delayed else 0
        for due in faults.schedule(data, self.timed_cell.now, after):
            connection.delayed.append(due)
            connection.delayed_size += size_of(due[1])
        return self._send_due(connection)

    def _accept(self, connection: Connection, data: Data) -> None:
        """Passes received data on: whole requests, where rules may act on them."""
        face = self.timed_cell.faces[connection.endpoint]
        if connection.endpoint not in self._request_faults:
            connection.inbox.add(data)
            return
        if isinstance(data, bytes) and isinstance(face, CutsRequests):
            data = connection.part + data
            while size := face.request_size(data):
                self._schedule(connection, data[:size])
                data = data[size:]
            connection.part = data
        else:
            self._schedule(connection, data)
        self._admit(connection)

    def _schedule(self, connection: Connection, request: Data) -> None:
        faults = self._request_faults.get(connection.endpoint)
        if faults is not None and request:
            after = connection.incoming[-1][0] if connection.incoming else 0
            connection.incoming.extend(faults.schedule(request, self.timed_cell.now, after))

    def _admit(self, connection: Connection) -> bool:
        """Passes the requests on whose time has come; true if there were any."""
        admitted = False
        while connection.incoming and connection.incoming[0][0] <= self.timed_cell.now:
            connection.inbox.add(connection.incoming.popleft()[1])
            self._unread[connection] = None
            admitted = True
        return admitted

    def _send_delayed(self) -> None:
        arrived = [c for c in list(self._connections.values()) if c.incoming and self._admit(c)]
        if arrived:
            self.deliver()
        for connection in [c for c in self._connections.values() if c.delayed]:
            if self._send_due(connection):
                self._send_all(connection)
                self._deliver_once(None)

    def _send_due(self, connection: Connection) -> bool:
        sent = False
        while connection.delayed and connection.delayed[0][0] <= self.timed_cell.now:
            data = connection.delayed.popleft()[1]
            connection.delayed_size -= size_of(data)
            self._send_now(connection, data)
            sent = True
        return sent

    def _send_now(self, connection: Connection, data: Data) -> None:
        self._record(connection, "<", data)
        connection.sink.send(data)

    def _read_more(self, connection: Connection) -> None:
        waits = sum(size_of(data) for _, data in connection.incoming) >= MOST_HELD
        waits |= bool(connection.inbox or connection.unheard)
        wanted = not waits and connection.session.credit() > 0
        if wanted != connection.reading:
            connection.reading = wanted
            connection.sink.read_more(wanted)

    def _close_if_finished(self, connection: Connection) -> None:
        """Closes the connection of a peer that sends nothing more and has all its answers."""
        finished = connection.eof_delivered and not connection.session.owed()
        sent = not connection.delayed and connection.sink.room() >= UNLIMITED
        if finished and sent and self._is_open(connection):
            self._drop(connection)
            connection.sink.close()

    def _hang_up(self, connection: Connection) -> None:
        self._record(connection, "!", b"closed")
        self._drop(connection)
        connection.sink.close()

    def _drop(self, connection: Connection) -> None:
        del self._connections[connection.endpoint, connection.peer]
        self._unread.pop(connection, None)
        self.turns.drop(connection)
        connection.session.closed(self.timed_cell.now)

    def _is_open(self, connection: Connection) -> bool:
        return self._connections.get((connection.endpoint, connection.peer)) is connection

    def _record(self, connection: Connection, kind: Kind, data: Data) -> None:
        place = self.timed_cell.now, connection.endpoint, connection.peer
        self._note(event_of(*place, kind, data))


# ── a cell in this process ──────────────────────────────────────────────────────────────────────


class InProcessCell:
    """A cell whose time runs only when a method is called; all traffic is in the transcript."""

    def __init__(self, timed_cell: TimedCell) -> None:
        self.timed_cell = timed_cell
        self.transcript: list[Event] = []
        self.exchange = Exchange(timed_cell, note=self.transcript.append)

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return seconds(self.timed_cell.now)

    def connect(self, endpoint: str = "", peer: str = "") -> Client:
        """A new client of an endpoint; without a name, of the cell's only one."""
        faces = self.timed_cell.faces
        if not endpoint and len(faces) == 1:
            endpoint = next(iter(faces))
        if endpoint not in faces:
            raise ValueError(f"endpoint {endpoint!r}; there are: {', '.join(faces)}")
        return Client(self, endpoint, peer)

    def advance(self, duration: float) -> None:
        """Runs the cell for this many seconds."""
        self.advance_to(self.timed_cell.now + duration_ns(duration))

    def advance_to(self, moment: int) -> None:
        self.exchange.advance(moment)

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Runs from wake to wake while the condition holds, for at most an hour."""
        end = self.timed_cell.now + LONGEST_RUN
        while condition() and (at := self.exchange.next_wake()) is not None and at <= end:
            self.exchange.advance(at)

    def run_while_owed(self) -> None:
        """Runs until no client waits for an answer that needs time."""
        self.run_while(self.exchange.owed)

    def run_to_next_answer(self) -> bool:
        """Runs to the next wake if a client is owed an answer; true if it did."""
        at = self.exchange.next_wake()
        if at is None or not self.exchange.owed():
            return False
        self.exchange.advance(at)
        return True

    def run_while_busy(self) -> None:
        """Runs until no motion or program is under way."""
        self.run_while(self.timed_cell.busy)

    def snapshot(self) -> Snapshot:
        return self.exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.exchange.restore(snapshot)
