"""The exchange: no byte is lost between connections and sessions, and buffers are bounded."""

from dataclasses import dataclass, field

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.ports import UNLIMITED
from understudy.robots.text_robot.face import LONGEST_LINE, OUTBOX_LIMIT
from understudy.units import nanoseconds
from understudy.wire.exchange import Client, Exchange, InProcessCell

CONFIG = load_config("text_robot").without_rules()
FACE = "bench.text_tcp"


@dataclass
class Narrow:
    """`Sink` that holds ``width`` bytes until the test reads them."""

    width: int = 1_000_000
    waiting: bytearray = field(default_factory=bytearray)
    read: bytearray = field(default_factory=bytearray)
    willing: bool = True
    connected: bool = True

    def room(self) -> int:
        return UNLIMITED if not self.waiting else max(0, self.width - len(self.waiting))

    def send(self, data: bytes) -> None:
        assert self.connected
        self.waiting += data

    def read_more(self, wanted: bool) -> None:
        self.willing = wanted

    def close(self) -> None:
        self.connected = False

    def drain(self) -> None:
        self.read += self.waiting
        self.waiting.clear()


@pytest.fixture
def exchange() -> Exchange:
    return Exchange(build_cell(CONFIG))


def here(client: Client) -> bool:
    return client.connected


@pytest.mark.parametrize("queries", [1, 1500, 3000])
def test_after_eof_a_peer_gets_all_answers_and_is_then_disconnected(queries: int) -> None:
    """Also if it sent more than is read at once: the rest is read after the motion."""
    cell = InProcessCell(build_cell(CONFIG))
    client = cell.connect()
    client.say(b"HOME\n" + b"GET_POS\n" * queries + b"LAST\n")
    client.end()
    assert here(client)
    cell.advance(1.0)
    answers = client.received().splitlines()
    assert len(answers) == queries + 2
    assert (answers[0], answers[-1]) == (b"OK Homing completed", b"ERROR Unknown command: LAST")
    assert not here(client)
    assert not cell.timed_cell.faces[FACE].sessions()


def test_after_eof_a_slow_reader_gets_all_answers(exchange: Exchange) -> None:
    sink = Narrow(1000)
    line = exchange.open(FACE, sink)
    exchange.receive(line, b"".join(b"N%d\n" % n for n in range(8000)))
    exchange.eof(line)
    while sink.waiting:
        assert len(sink.waiting) <= 1000
        assert sink.connected
        sink.drain()
        exchange.drained(line)
    expected = b"".join(b"ERROR Unknown command: N%d\n" % n for n in range(8000))
    assert bytes(sink.read) == expected
    assert not sink.connected


def test_a_peer_that_does_not_read_is_not_read_and_its_answers_are_bounded(
    exchange: Exchange,
) -> None:
    deaf, other = Narrow(1000), Narrow()
    line, other_line = exchange.open(FACE, deaf), exchange.open(FACE, other)
    packets = 0
    while deaf.willing:
        exchange.receive(line, b"GET_POS\n" * 100)
        packets += 1
        assert packets < 100
    snapshot = exchange.snapshot()
    kept = snapshot.parts[FACE]["sessions"]["1"]["outbox"]
    assert len(str(kept)) < 4 * OUTBOX_LIMIT
    exchange.receive(other_line, b"GET_STATUS\n")
    assert other.waiting == b"OK Idle,26.0,0,10\n"
    while deaf.waiting:
        deaf.drain()
        exchange.drained(line)
    assert deaf.read.count(b"\n") == packets * 100
    assert deaf.willing


def test_only_answers_that_need_time_are_owed(exchange: Exchange) -> None:
    line = exchange.open(FACE, Narrow())
    exchange.receive(line, b"GET_POS\nGET_STA")
    assert not exchange.owed()
    exchange.receive(line, b"TUS\nHOME\nGET_POS\n")
    assert exchange.owed()
    exchange.advance(nanoseconds(0.999))
    assert exchange.owed()
    exchange.advance(nanoseconds(1.0))
    assert not exchange.owed()


def test_data_is_received_after_the_wakes_of_the_same_instant(exchange: Exchange) -> None:
    sink = Narrow()
    mover, asker = exchange.open(FACE, Narrow()), exchange.open(FACE, sink)
    exchange.receive(mover, b"HOME\n")
    exchange.advance(nanoseconds(1.0))
    exchange.receive(asker, b"GET_STATUS\n")
    assert bytes(sink.waiting).startswith(b"OK Idle,")


def test_a_peer_that_disconnects_while_it_is_owed_an_answer_leaves_no_session(
    exchange: Exchange,
) -> None:
    sink = Narrow()
    line = exchange.open(FACE, sink)
    exchange.receive(line, b"HOME\nGET_POS\n")
    exchange.closed(line)
    exchange.closed(line)
    assert not exchange.owed()
    exchange.advance(nanoseconds(2.0))
    assert not sink.waiting
    assert not exchange.timed_cell.faces[FACE].sessions()


@pytest.mark.parametrize("garbage", [bytes(range(256)) * 50, b"\n" * 5000, b"x" * 3 * LONGEST_LINE])
def test_garbage_is_answered_and_the_next_command_is_read(garbage: bytes) -> None:
    client = InProcessCell(build_cell(CONFIG)).connect()
    client.say(garbage + b"\n")
    client.received()
    assert client.ask(b"GET_STATUS\n").endswith(b"OK Idle,26.0,0,10\n")
