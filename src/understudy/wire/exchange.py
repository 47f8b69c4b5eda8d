"""Connections of a cell: data goes to its session at the cell's time, answers go to the peer.

A session gets as many bytes or messages as its credit allows; what is beyond waits in its
connection, and the wire stops reading. Received data comes after the wakes of the same instant.
`InProcessCell` is a cell on virtual time whose clients are in the same process, without sockets.

At rate `step` a byte is received in its turn: when everything that the peer was owed for the bytes
before it is answered, and the time after a query has passed. So the simulated time at which it is
received follows from the bytes before it, however the stream is cut into packets and whenever they
arrive. Until then it waits in `PeerState.unheard`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from understudy.errors import ConfigError
from understudy.ports import (
    CONFIRMED,
    HANG_UP,
    UNLIMITED,
    ActiveFault,
    FaultSource,
    LeavesWill,
    Snapshot,
    SpeaksHttp,
    TimedCell,
    WireMessage,
)
from understudy.ports.decoder import cut_of
from understudy.units import NS_PER_MS, NS_PER_SECOND, duration_ns, seconds
from understudy.wire.connection import (
    AnySession,
    Connection,
    Data,
    Event,
    Kind,
    Note,
    NoteSent,
    PeerState,
    SavedEndpoint,
    check_sessions,
    event_of,
    read_connections,
    size_of,
)
from understudy.wire.first_bytes import read_first
from understudy.wire.interface import ClosedSession, DetachedSink, Recorder, Sink

log = logging.getLogger(__name__)

MOST_HELD = 1 << 20
"""Bytes that scenario rules may delay for one peer."""
LONGEST_RUN = 3600 * NS_PER_SECOND
"""Simulated time that a cell in this process runs at most while a condition holds."""


# ── scenario rules that act on what passes ──────────────────────────────────────────────────────


class MessageFaults:
    """Loses, delays, repeats or garbles what goes one way through an endpoint, as rules say.

    ``way`` is `message` for answers, `request` for what is received. Both keep their order, as on
    any stream: a late one delays those behind it.
    """

    def __init__(
        self, fault_source: FaultSource, endpoint: str, way: Literal["message", "request"]
    ) -> None:
        self._fault_source = fault_source
        self._endpoint = endpoint
        self._way = way

    def schedule(self, data: Data, now: int, after: int) -> list[tuple[int, Data]]:
        """What passes in place of ``data``, with times; not before ``after``, the last time."""
        if self._draw(f"{self._way}_loss", now):
            return []
        due = max(now, after)
        if delay := self._draw(f"{self._way}_delay", now):
            due = max(due, now + round(delay.parameters["delay_ms"] * NS_PER_MS))
        if self._way == "message" and (slow := self._draw("slow_client", now)):
            due += round(size_of(data) * NS_PER_SECOND / slow.parameters["bytes_per_s"])
        if garble := self._draw(f"{self._way}_garble", now):
            place, change = self._fault_source.deviations(garble, 2)
            if isinstance(data, bytes):
                data = garbled(data, place, change)
            elif data.payload:
                payload = garbled(data.payload, place, change)
                data = msgspec.structs.replace(data, payload=payload)
        copies = 2 if self._draw(f"{self._way}_duplicate", now) else 1
        return [(due, data)] * copies

    def apart(self, data: Data, now: int) -> list[tuple[int, Data]]:
        """A message of a broker that arrives out of order, with its time: a late confirmation,
        which does not arrive now, or a delivery that comes again."""
        if not isinstance(data, WireMessage):
            return []
        if data.address == CONFIRMED:
            late = self._draw("confirmation_delay", now)
            return [(now + round(late.parameters["delay_ms"] * NS_PER_MS), data)] if late else []
        again = self._draw("delivery_repeated", now)
        return [(now + round(again.parameters["after_s"] * NS_PER_SECOND), data)] if again else []

    def _draw(self, fault: str, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault(fault, self._endpoint, now)


def garbled(data: bytes, place: float, change: float) -> bytes:
    """``data`` with one byte changed; ``place`` and ``change`` in [-1, 1) choose which and how."""
    at = min(int((place + 1.0) / 2.0 * len(data)), len(data) - 1)
    other = data[at] ^ (1 + int((change + 1.0) / 2.0 * 254))
    return data[:at] + bytes([other]) + data[at + 1 :]


# ── the exchange ────────────────────────────────────────────────────────────────────────────────


class Exchange:
    """All connections of a cell; ``notes`` are called for everything that passes. ``notes_sent``:
    those that can be called once for many messages to a peer.

    `poll_step` returns the simulated time that passes after a query while something moves, so that
    bytes are received in turns; None if they need not wait for turns.
    """

    def __init__(
        self,
        timed_cell: TimedCell,
        notes: Iterable[Note] = (),
        notes_sent: Mapping[Note, NoteSent] | None = None,
    ) -> None:
        self._notes_sent = notes_sent or {}
        self.timed_cell = timed_cell
        self.poll_step: Callable[[], int | None] = lambda: None
        self.notes = list(notes)
        """Called for everything that passes."""
        self._opened = dict.fromkeys(timed_cell.faces, 0)
        self._connections: dict[tuple[str, str], Connection] = {}
        self._unread: dict[Connection, None] = {}
        self._waiting: dict[Connection, None] = {}
        """Connections with bytes, or an end of them, that wait for their turn."""
        self._resuming: dict[Connection, None] = {}
        """Connections with `resumes_at`: time passes after a query."""
        disturbed = timed_cell.disturbed.items()
        self._answer_faults = {e: MessageFaults(source, e, "message") for e, source in disturbed}
        self._request_faults = {e: MessageFaults(source, e, "request") for e, source in disturbed}
        self._closed: dict[str, str] = {}

    def connection(self, endpoint: str, peer: str) -> Connection | None:
        """The connection of a peer, also one that a snapshot has left behind."""
        return self._connections.get((endpoint, peer))

    # ── what brokers and buses ask about a message face ──

    def addresses(self, endpoint: str) -> list[str]:
        face: Any = self.timed_cell.faces[endpoint]
        return list(face.addresses())

    def last_will(self, endpoint: str) -> WireMessage | None:
        face = self.timed_cell.faces[endpoint]
        return face.last_will() if isinstance(face, LeavesWill) else None

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
        first = None if isinstance(face, SpeaksHttp) else b""
        connection = Connection(endpoint, peer, session, sink, PeerState(first=first))
        self._connections[endpoint, peer] = connection
        self._record(connection, "!", b"open")
        self.deliver()
        return connection

    def receive(self, connection: Connection, data: Data) -> bool:
        """Gives data to the session, bytes in their turn; true if it answered at once."""
        if not self._is_open(connection):
            connection.sink.close()
            return False
        unheard = connection.state.unheard
        if not isinstance(data, bytes) or not (unheard or self._in_turns()):
            return self._hear(connection, data)
        unheard += data
        self._waiting[connection] = None
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
        if self._is_open(connection) and not connection.state.ended:
            connection.state.end_unheard = True
            self._waiting[connection] = None
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
        moments = [self.timed_cell.next_wake()]
        if self._resuming:
            moments += [c.state.resumes_at for c in self._resuming]
        if self._answer_faults:
            states = [c.state for c in self._connections.values()]
            queues = (q for state in states for q in (state.held, state.incoming, state.apart))
            moments += [queue[0][0] for queue in queues if queue]
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
        return bool(self._resuming)

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
        while connection := next((c for c in self._waiting if self._has_turn(c)), None):
            answered |= self._take_turn(connection) and connection is asking
        return answered

    # ── snapshots ──

    def snapshot(self) -> Snapshot:
        saved = {face: SavedEndpoint(opened, {}) for face, opened in self._opened.items()}
        for connection in self._connections.values():
            saved[connection.endpoint].lines[connection.peer] = connection.state
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
                lines = saved.get(endpoint, SavedEndpoint()).lines
                check_sessions(endpoint, lines, face.sessions())
        except ConfigError:
            self.timed_cell.restore(before)
            for c in self._connections.values():  # the state is as before, sessions are new objects
                c.join(self.timed_cell.faces[c.endpoint].sessions()[c.peer])
            raise
        live, self._connections = self._connections, {}
        self._unread.clear()
        self._waiting.clear()
        self._resuming.clear()
        for endpoint, face in self.timed_cell.faces.items():
            was = saved.get(endpoint, SavedEndpoint())
            self._opened[endpoint] = was.opened
            sessions: Mapping[str, AnySession] = face.sessions()
            for peer, session in sessions.items():
                connection = live.pop((endpoint, peer), None) or Connection(
                    endpoint, peer, session, DetachedSink()
                )
                connection.restore(session, was.lines[peer])
                self._reattach(connection)
        for connection in live.values():
            log.info("%s %s is not in the snapshot: closed", connection.endpoint, connection.peer)
            connection.sink.close()
        self.deliver()

    def _reattach(self, connection: Connection) -> None:
        state = connection.state
        if state.unheard or state.end_unheard:
            self._waiting[connection] = None
        if state.resumes_at > self.timed_cell.now:
            self._resuming[connection] = None
        else:
            state.resumes_at = 0
        self._connections[connection.endpoint, connection.peer] = connection
        self._unread[connection] = None
        self._send_all(connection)

    # ── inside ──

    def _stops_at_wakes(self) -> bool:
        """Something may happen here at a wake of the cell, or between two of them."""
        return bool(self._answer_faults or self._waiting)

    def _advance(self, to: int) -> None:
        self.timed_cell.advance(to, self._settled)
        self._send_delayed()
        for connection in [c for c in self._resuming if c.state.resumes_at <= self.timed_cell.now]:
            self._resume(connection)
        if self._waiting:
            self.deliver()

    def _resume(self, connection: Connection) -> None:
        """The time after the last query of this peer has passed."""
        if connection in self._resuming:
            del self._resuming[connection]
            connection.state.resumes_at = 0

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

    def _in_turns(self) -> bool:
        return self.poll_step() is not None

    def _has_turn(self, connection: Connection) -> bool:
        """Whether the next bytes, or the end, can be received now."""
        if not self._in_turns():
            return True
        state = connection.state
        if state.unread or connection.owed() or state.resumes_at > self.timed_cell.now:
            return False
        return not state.unheard or connection.session.credit() > 0

    def _take_turn(self, connection: Connection) -> bool:
        """Receives the next bytes, or the end; true if they were answered at once."""
        state, answered = connection.state, False
        if state.unheard:
            answered = self._hear(connection, connection.take_unheard(piece=self._in_turns()))
        elif state.end_unheard:
            state.end_unheard = False
            self._end(connection)
        if not state.unheard and not state.end_unheard:
            self._waiting.pop(connection, None)
            self._read_more(connection)
        return answered

    def _hear(self, connection: Connection, data: Data) -> bool:
        """Gives data to the session; true if it answered at once. Hangs up on HTTP clients."""
        self._record(connection, ">", data)
        state, foreign = connection.state, False
        if state.first is not None and isinstance(data, bytes):
            state.first, data, foreign = read_first(state.first, data)
        self._accept(connection, data)
        self._unread[connection] = None
        answered = self._settle(connection)
        if foreign and self._is_open(connection):
            log.info("%s: a client was turned away: it speaks HTTP or TLS", connection.endpoint)
            self._hang_up(connection)
            self._settle(None)
        step = self.poll_step()
        if answered and step and self.timed_cell.busy() and not self.owed():
            state.resumes_at = self.timed_cell.now + step
            self._resuming[connection] = None
        return answered

    def _end(self, connection: Connection) -> None:
        """The peer sends nothing more."""
        state = connection.state
        state.ended = True
        self._record(connection, "!", b"eof")
        self._schedule(connection, state.part)
        state.part = b""
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
        state = connection.state
        fed = connection.feed(self.timed_cell.now)
        self._read_more(connection)
        if not state.unread and not state.incoming:
            self._unread.pop(connection, None)
            if state.ended and not connection.eof_delivered:
                connection.give_eof(self.timed_cell.now)
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
        if connection.state.held:
            return max(0, MOST_HELD - connection.held_size)
        return connection.sink.room()

    def _send(self, connection: Connection, data: Data) -> bool:
        """Sends an answer now, or as a rule says; true if something was sent."""
        faults = self._answer_faults.get(connection.endpoint)
        if faults is None:
            self._send_now(connection, data)
            return True
        held = connection.state.held
        for due in faults.schedule(data, self.timed_cell.now, held[-1][0] if held else 0):
            held.append(due)
            connection.held_size += size_of(due[1])
        return self._send_due(connection)

    def _accept(self, connection: Connection, data: Data) -> None:
        """Passes received data on: whole requests, where rules may act on them."""
        if connection.endpoint not in self._request_faults:
            connection.add(data)
            return
        cut = cut_of(self.timed_cell.faces[connection.endpoint])
        if isinstance(data, bytes) and cut is not None:
            requests, connection.state.part = cut(connection.state.part + data)
            for request in requests:
                self._schedule(connection, request)
        else:
            self._schedule(connection, data)
        self._admit(connection)

    def _schedule(self, connection: Connection, request: Data) -> None:
        faults = self._request_faults.get(connection.endpoint)
        if faults is not None and request:
            if apart := faults.apart(request, self.timed_cell.now):
                state = connection.state
                state.apart = sorted([*state.apart, *apart], key=lambda each: each[0])
                if isinstance(request, WireMessage) and request.address == CONFIRMED:
                    return
            incoming = connection.state.incoming
            after = incoming[-1][0] if incoming else 0
            incoming.extend(faults.schedule(request, self.timed_cell.now, after))

    def _admit(self, connection: Connection) -> bool:
        """Passes the requests on whose time has come; true if there were any."""
        admitted = False
        incoming = connection.state.incoming
        for waiting in (connection.state.apart, incoming):
            while waiting and waiting[0][0] <= self.timed_cell.now:
                connection.add(waiting.pop(0)[1])
                self._unread[connection] = None
                admitted = True
        return admitted

    def _send_delayed(self) -> None:
        connections = list(self._connections.values())
        if [c for c in connections if (c.state.incoming or c.state.apart) and self._admit(c)]:
            self.deliver()
        for connection in [c for c in self._connections.values() if c.state.held]:
            if self._send_due(connection):
                self._send_all(connection)
                self._deliver_once(None)

    def _send_due(self, connection: Connection) -> bool:
        held, sent = connection.state.held, False
        while held and held[0][0] <= self.timed_cell.now:
            data = held.pop(0)[1]
            connection.held_size -= size_of(data)
            self._send_now(connection, data)
            sent = True
        return sent

    def _send_now(self, connection: Connection, data: Data) -> None:
        self._record(connection, "<", data)
        connection.sink.send(data)

    def _read_more(self, connection: Connection) -> None:
        state = connection.state
        waits = bool(state.unread or state.unheard) or (
            sum(size_of(data) for _, data in state.incoming) >= MOST_HELD
        )
        wanted = not waits and connection.session.credit() > 0
        if wanted != connection.reading:
            connection.reading = wanted
            connection.sink.read_more(wanted)

    def _close_if_finished(self, connection: Connection) -> None:
        """Closes the connection of a peer that sends nothing more and has all its answers."""
        finished = connection.eof_delivered and not connection.session.owed()
        sent = not connection.state.held and connection.sink.room() >= UNLIMITED
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
        self._waiting.pop(connection, None)
        self._resume(connection)
        connection.session.closed(self.timed_cell.now)

    def _is_open(self, connection: Connection) -> bool:
        return self._connections.get((connection.endpoint, connection.peer)) is connection

    def _record(self, connection: Connection, kind: Kind, data: Data) -> None:
        place = self.timed_cell.now, connection.endpoint, connection.peer
        for note in self.notes:
            note(event_of(*place, kind, data))

    def _note_sent(
        self, at: int, endpoint: str, peer: str, messages: Sequence[WireMessage]
    ) -> None:
        """Notes messages to a peer."""
        for note in self.notes:
            if (note_sent := self._notes_sent.get(note)) is not None:
                note_sent(at, endpoint, peer, messages)
                continue
            for message in messages:
                note(event_of(at, endpoint, peer, "<", message))


# ── a cell in this process ──────────────────────────────────────────────────────────────────────


class Client:
    """A peer in the same process; `Sink` of its own connection."""

    def __init__(self, cell: "InProcessCell", endpoint: str, peer: str = "") -> None:
        self._cell = cell
        self._received = bytearray()
        self._messages: list[WireMessage] = []
        self.connected = True
        self.count = 0
        self._connection = cell.exchange.open(endpoint, self, peer)

    @property
    def peer(self) -> str:
        return self._connection.peer

    def say(self, data: Data) -> None:
        """Sends bytes, or a message to a message face."""
        self._cell.exchange.receive(self._connection, data)

    def say_many(self, messages: Sequence[WireMessage]) -> None:
        """Sends messages that arrive together."""
        self._cell.exchange.receive_many(self._connection, messages)

    def received(self) -> bytes:
        """Bytes received since the last call."""
        data = bytes(self._received)
        self._received.clear()
        return data

    def messages(self) -> list[WireMessage]:
        """Messages received since the last call."""
        messages, self._messages = self._messages, []
        return messages

    def confirm(self) -> None:
        """Removes the messages received since the last call, and confirms those that need it, as a
        broker does."""
        due = [WireMessage(CONFIRMED, b"", m.reply_to) for m in self.messages() if m.reply_to]
        if due:
            self.say_many(due)

    def ask(self, data: bytes) -> bytes:
        """Sends bytes, runs the cell while an answer is owed, and returns what was received."""
        self.say(data)
        self._cell.run_while(self._connection.session.owed)
        return self.received()

    def end(self) -> None:
        """Sends nothing more."""
        self._cell.exchange.eof(self._connection)

    def leave(self) -> None:
        """Closes the connection."""
        self.connected = False
        self._cell.exchange.closed(self._connection)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: Data) -> None:
        if isinstance(data, WireMessage):
            self._messages.append(data)
            self.count += len(data.payload)
        else:
            self._received += data
            self.count += len(data)

    def send_many(self, messages: Sequence[WireMessage]) -> None:
        for message in messages:
            self.send(message)

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        self.connected = False


class InProcessCell:
    """A cell whose time runs only when a method is called; all traffic is in the transcript."""

    def __init__(self, timed_cell: TimedCell) -> None:
        self.timed_cell = timed_cell
        self.transcript: list[Event] = []
        self.exchange = Exchange(timed_cell, [self._note])
        self.on_event: Note | None = None
        """Called for everything that passes, beside the transcript."""
        self.recorder: Recorder | None = None
        """Reads the cell on its way."""

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
        recorder = self.recorder
        while recorder is not None and (at := recorder.next_reading(moment)) is not None:
            self.exchange.advance(at)
            recorder.read(at)
        self.exchange.advance(moment)

    def advance_with_brokers(self, moment: int, brokers: Collection[Client]) -> None:
        """Runs to a time; brokers confirm messages at the instant at which they receive them."""
        while brokers and (at := self.exchange.next_wake()) is not None and at < moment:
            self.advance_to(at)
            for broker in brokers:
                broker.confirm()
        self.advance_to(moment)
        for broker in brokers:
            broker.confirm()

    def _note(self, event: Event) -> None:
        self.transcript.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Runs from wake to wake while the condition holds, for at most an hour."""
        end = self.timed_cell.now + LONGEST_RUN
        while condition() and (at := self.exchange.next_wake()) is not None and at <= end:
            self.advance_to(at)

    def run_while_owed(self) -> None:
        """Runs until no client waits for an answer that needs time."""
        self.run_while(self.exchange.owed)

    def run_to_next_answer(self) -> bool:
        """Runs to the next wake if a client is owed an answer; true if it did."""
        at = self.exchange.next_wake()
        if at is None or not self.exchange.owed():
            return False
        self.advance_to(at)
        return True

    def run_while_busy(self) -> None:
        """Runs until no motion or program is under way."""
        self.run_while(self.timed_cell.busy)

    def snapshot(self) -> Snapshot:
        return self.exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.exchange.restore(snapshot)
