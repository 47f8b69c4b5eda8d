"""Message faces: whole messages with an address, timed, saved and bounded like byte faces."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from understudy.ports import HANG_UP, UNLIMITED, ActiveFault, MessageFace, WireMessage
from understudy.protocol.sessions import MessageOutbox, ReadyPeers, SessionFace
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot
from understudy.units import NS_PER_MS, NS_PER_SECOND, nanoseconds
from understudy.wire.chat import parse, write
from understudy.wire.compare import Tolerance
from understudy.wire.connection import MOST_UNREAD
from understudy.wire.exchange import Client, InProcessCell
from understudy.wire.play import play

MOVE = 500 * NS_PER_MS
HEARTBEAT = NS_PER_SECOND


class SavedSession(Struct):
    due: list[tuple[int, WireMessage]]
    outbox: list[WireMessage]
    dropped: int


class BusSession:
    """Answers each request after half a second at its reply address; takes four at a time."""

    def __init__(self, face: "BusFace", peer: str, saved: SavedSession | None = None) -> None:
        self._face, self._peer = face, peer
        saved = saved or SavedSession([], [], 0)
        self.due = saved.due
        self.outbox = MessageOutbox(
            lambda: face.ready.add(peer), saved.outbox, most=5, dropped=saved.dropped
        )

    def receive(self, message: WireMessage, now: int) -> None:
        if message.payload == b"bug":
            raise ZeroDivisionError
        self.due.append((now + MOVE, WireMessage(message.reply_to, b"done " + message.payload)))

    def failed(self, message: WireMessage, now: int) -> None:
        self.outbox.send(WireMessage(message.reply_to, b"failed"))

    def take(self, room: int) -> WireMessage | None:
        return self.outbox.take(room)

    def closed(self, now: int) -> None:
        self._face.sessions_by_peer.pop(self._peer, None)

    def credit(self) -> int:
        return HANG_UP if self.outbox.dropped > 100 else max(0, 4 - len(self.due))

    def owed(self) -> bool:
        return bool(self.due)


class BusFace(SessionFace[BusSession]):
    """`MessageFace` with a heartbeat on its own subject."""

    def __init__(self) -> None:
        self.ready = ReadyPeers()
        self._sessions: dict[str, BusSession] = {}
        self._beats = 0

    @property
    def sessions_by_peer(self) -> dict[str, BusSession]:
        return self._sessions

    def open(self, peer: str, now: int) -> BusSession:
        self._sessions[peer] = BusSession(self, peer)
        return self._sessions[peer]

    def addresses(self) -> tuple[str, ...]:
        return ("bench.move", "bench.stop")

    def next_wake(self) -> int | None:
        due = [at for session in self._sessions.values() for at, _ in session.due]
        return min([*due, (self._beats + 1) * HEARTBEAT])

    def wake(self, now: int) -> None:
        for session in self._sessions.values():
            while session.due and session.due[0][0] <= now:
                session.outbox.send(session.due.pop(0)[1])
        if now >= (self._beats + 1) * HEARTBEAT:
            self._beats += 1
            for session in self._sessions.values():
                session.outbox.send(WireMessage("bench.alive", str(self._beats).encode()))

    def save(self) -> Any:
        saved = {
            peer: SavedSession(list(s.due), s.outbox.save(), s.outbox.dropped)
            for peer, s in self._sessions.items()
        }
        return {"beats": self._beats, "sessions": saved}

    def load(self, state: Any) -> None:
        self._beats = state["beats"]
        saved = msgspec.convert(state["sessions"], dict[str, SavedSession])
        self._sessions = {peer: BusSession(self, peer, each) for peer, each in saved.items()}


def bus(disturbed: Mapping[str, Any] | None = None) -> InProcessCell:
    face: MessageFace = BusFace()
    parts = {"bus": face}
    return InProcessCell(Cell("bus", digest="", components=parts, faces=parts, disturbed=disturbed))


def request(number: int) -> WireMessage:
    return WireMessage("bench.move", b"%d" % number, f"_INBOX.{number}")


def test_a_reply_goes_to_the_reply_address_when_it_is_due() -> None:
    cell = bus()
    client = cell.connect("bus", peer="broker")
    client.say(request(7))
    cell.advance(0.499)
    assert client.messages() == []
    cell.advance(0.001)
    assert client.messages() == [WireMessage("_INBOX.7", b"done 7")]
    assert client.peer == "broker"


def test_a_message_may_go_to_an_address_without_a_request() -> None:
    cell = bus()
    one, two = cell.connect("bus"), cell.connect("bus")
    cell.advance(2.0)
    alive = [WireMessage("bench.alive", b"1"), WireMessage("bench.alive", b"2")]
    assert (one.messages(), two.messages()) == (alive, alive)


def test_a_session_reads_no_more_than_its_credit() -> None:
    cell = bus()
    client = cell.connect("bus")
    for number in range(10):
        client.say(request(number))
    assert len(cell.exchange.timed_cell.faces["bus"].sessions()["1"].due) == 4  # type: ignore[union-attr]
    cell.run_while_owed()
    replies = [m.payload for m in client.messages() if m.address != "bench.alive"]
    assert replies == [b"done %d" % number for number in range(10)]
    assert cell.now == pytest.approx(1.5)


def test_a_bug_is_reported_and_the_next_message_is_read(caplog: pytest.LogCaptureFixture) -> None:
    cell = bus()
    client = cell.connect("bus")
    client.say(WireMessage("bench.move", b"bug", "_INBOX.1"))
    client.say(request(2))
    cell.advance(0.5)
    expected = [WireMessage("_INBOX.1", b"failed"), WireMessage("_INBOX.2", b"done 2")]
    assert client.messages() == expected
    assert "ZeroDivisionError" in caplog.text


def test_unread_messages_are_bounded() -> None:
    cell = bus()
    client = cell.connect("bus")
    for number in range(MOST_UNREAD + 50):
        client.say(request(number))
    connection = client._connection
    assert len(connection.state.unread) == MOST_UNREAD
    assert connection.dropped == 46  # four were read


# ── the bounded outbox ──


def test_a_full_outbox_drops_the_oldest_and_counts_them() -> None:
    cell = bus()
    client = cell.connect("bus")
    client.room = lambda: 0  # type: ignore[method-assign]
    cell.advance(7.0)
    client.room = lambda: UNLIMITED  # type: ignore[method-assign]
    session: Any = cell.timed_cell.faces["bus"].sessions()["1"]
    assert session.outbox.dropped == 2
    cell.exchange.drained(client._connection)
    assert [message.payload for message in client.messages()] == [b"3", b"4", b"5", b"6", b"7"]


PAYLOADS = st.lists(st.binary(max_size=20))


@given(PAYLOADS, st.integers(1, 5), st.integers(1, 30))
def test_an_outbox_is_never_over_its_bounds(payloads: list[bytes], most: int, size: int) -> None:
    outbox = MessageOutbox(lambda: None, most=most, most_bytes=size)
    for payload in payloads:
        outbox.send(WireMessage("", payload))
        assert len(outbox) <= most
        assert len(outbox) == 1 or outbox.size <= size
        assert outbox.size == sum(len(message.payload) for message in outbox.save())
    kept = [message.payload for message in outbox.save()]
    assert kept == payloads[len(payloads) - len(kept) :], "the newest are kept, in their order"
    assert outbox.dropped == len(payloads) - len(kept)


def test_a_message_waits_until_its_payload_fits() -> None:
    outbox = MessageOutbox(lambda: None, [WireMessage("a", b"1234")])
    assert outbox.take(3) is None
    assert outbox.take(4) == WireMessage("a", b"1234")
    assert outbox.take(UNLIMITED) is None


# ── snapshots, faults, transcripts ──


def _course(cell: InProcessCell, client: Client) -> list[WireMessage]:
    client.say(request(100))
    cell.advance(3.0)
    return client.messages()


def test_a_snapshot_changes_no_message() -> None:
    cell = bus()
    client = cell.connect("bus", peer="broker")
    for number in range(10):
        client.say(request(number))
    cell.advance(0.2)
    snapshot = read_snapshot(write_snapshot(cell.snapshot()))
    first = _course(cell, client)
    cell.restore(snapshot)
    assert _course(cell, client) == first
    assert len(first) > 10


def test_restored_in_another_cell_a_peer_is_detached_and_its_messages_are_in_the_transcript() -> (
    None
):
    cell, other = bus(), bus()
    client = cell.connect("bus", peer="broker")
    client.say(request(1))
    other.restore(cell.snapshot())
    other.advance(0.5)
    events = [(e.peer, e.kind, e.data, e.address) for e in other.transcript]
    assert events == [("broker", "<", b"done 1", ("_INBOX.1", ""))]


class OneRule:
    """`FaultSource` of one rule that always acts."""

    def __init__(self, fault: str = "message_garble", **figures: float) -> None:
        self._fault = fault
        self._figures = figures

    def draw_fault(self, fault: str, place: str, now: int) -> ActiveFault | None:
        return ActiveFault("rule", 0, self._figures) if fault == self._fault else None

    def ambient(self, fault: str, place: str, now: int) -> ActiveFault | None:
        return None

    def received(self, place: str, command: str, now: int) -> None:
        return None

    def deviations(self, fault: ActiveFault, count: int) -> tuple[float, ...]:
        return (0.0,) * count


def test_a_rule_garbles_the_payload_and_not_the_address() -> None:
    cell = bus({"bus": OneRule()})
    client = cell.connect("bus")
    client.say(request(1))
    cell.advance(0.5)
    (message,) = client.messages()
    assert message.address == "_INBOX.1"
    assert message.payload != b"done 1"
    assert len(message.payload) == len(b"done 1")


def test_rules_delay_and_repeat_messages_on_their_way_to_the_face() -> None:
    cell = bus({"bus": OneRule("request_delay", delay_ms=200.0)})
    client = cell.connect("bus")
    client.say(request(1))
    cell.advance(0.699)
    assert client.messages() == []
    cell.advance(0.001)
    assert client.messages() == [WireMessage("_INBOX.1", b"done 1")]
    cell = bus({"bus": OneRule("request_duplicate")})
    client = cell.connect("bus")
    client.say(request(1))
    cell.advance(2.0)
    answers = [message for message in client.messages() if message.address == "_INBOX.1"]
    assert answers == [WireMessage("_INBOX.1", b"done 1")] * 2


def test_a_transcript_is_written_read_and_played() -> None:
    cell = bus()
    client = cell.connect("bus")
    for number in (1, 2):
        client.say(request(number))
        cell.advance(0.75)
    text = write({"face": "bus"}, cell.transcript)
    assert ">> bench.move _INBOX.1 1\n" in text
    assert "<< _INBOX.1 - done 1\n" in text
    chat = parse(text)
    assert list(chat.events) == cell.transcript
    assert play(chat, bus(), tolerance=Tolerance()) is None
    other = parse(text.replace("done 2", "gone 2"))
    difference = play(other, bus(), tolerance=Tolerance())
    assert difference is not None
    assert difference.number == 3  # the reply to 1, a heartbeat, the reply to 2


ADDRESSES = st.text(max_size=8)


@given(ADDRESSES, ADDRESSES, st.binary(max_size=20))
def test_any_message_survives_a_transcript(address: str, reply_to: str, payload: bytes) -> None:
    cell = bus()
    cell.connect("bus").say(WireMessage(address, payload, reply_to))
    chat = parse(write({}, cell.transcript))
    assert [event for event in chat.events if event.kind == ">"] == cell.transcript[1:2]


def test_the_exchange_returns_the_addresses_of_a_face() -> None:
    assert bus().exchange.addresses("bus") == ["bench.move", "bench.stop"]


@pytest.mark.parametrize("cut", [0.1, 0.3, 1.7])
def test_other_slices_of_time_change_no_message(cut: float) -> None:
    runs = []
    for slices in ([2.0], [cut, 2.0 - cut]):
        cell = bus()
        client = cell.connect("bus")
        client.say(request(1))
        for duration in slices:
            cell.advance(duration)
        assert cell.timed_cell.now == nanoseconds(2.0)
        runs.append([(event.at, event.data) for event in cell.transcript])
    assert runs[0] == runs[1]
