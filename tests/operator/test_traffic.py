"""The query `traffic`."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import Refused
from understudy.operator.traffic import KEPT, LONGEST, MOST_AT_ONCE, Traffic
from understudy.ports import WireMessage
from understudy.units import NS_PER_SECOND
from understudy.wire.connection import Event, event_of

ENDS = ("bench.text_tcp", "g60.grblhal")


def query(traffic: Traffic, since: int = 0, endpoint: str = "") -> Any:
    return traffic.traffic(since, endpoint)


def noted(count: int, endpoint: str = ENDS[0]) -> Traffic:
    traffic = Traffic(ENDS)
    for n in range(count):
        traffic.note(Event(n, endpoint, "1", ">", b"%d" % n))
    return traffic


def test_bytes_are_written_as_in_a_transcript() -> None:
    traffic = Traffic(ENDS)
    traffic.note(Event(2 * NS_PER_SECOND, ENDS[0], "1", ">", b"GET_POS\n"))
    (piece,) = query(traffic)["traffic"]
    assert (piece.number, piece.time_s, piece.endpoint, piece.peer) == (1, 2.0, ENDS[0], "1")
    assert (piece.kind, piece.text, piece.size) == (">", "GET_POS\\n", 8)


def test_only_new_messages_are_returned() -> None:
    traffic = noted(10)
    assert [piece.number for piece in query(traffic, since=7)["traffic"]] == [8, 9, 10]
    assert query(traffic, since=10) == {"traffic": [], "last": 10, "more": 0}


def test_messages_are_kept_per_face() -> None:
    traffic = noted(1, ENDS[1])
    for n in range(3 * KEPT):
        traffic.note(Event(n, ENDS[0], "1", "<", b"x"))
    assert len(query(traffic, endpoint=ENDS[1])["traffic"]) == 1
    assert len(query(traffic, endpoint=ENDS[0])["traffic"]) == KEPT


def test_a_long_answer_is_continued_without_gaps() -> None:
    traffic = noted(KEPT)
    for n in range(KEPT):
        traffic.note(Event(n, ENDS[1], "1", "<", b"x"))
    first = query(traffic)
    assert len(first["traffic"]) == MOST_AT_ONCE
    rest = query(traffic, since=first["last"])
    assert rest["more"] == 0
    assert len(first["traffic"]) + len(rest["traffic"]) == 2 * KEPT


@given(st.binary(max_size=4 * LONGEST))
def test_any_bytes_are_escaped_and_long_ones_are_cut(data: bytes) -> None:
    traffic = Traffic(ENDS)
    traffic.note(Event(0, ENDS[0], "1", ">", data))
    (piece,) = query(traffic)["traffic"]
    assert piece.size == len(data)
    assert len(piece.text) <= 4 * LONGEST + 1
    assert piece.text.endswith("…") == (len(data) > LONGEST)


def test_an_unknown_face_is_refused_with_the_known_ones() -> None:
    answer = query(noted(0), endpoint="bench.text_tpc")
    assert isinstance(answer, Refused)
    assert "bench.text_tcp" in answer.reason


def test_many_messages_at_once_are_noted_as_one_by_one() -> None:
    together, alone = Traffic(ENDS), Traffic(ENDS)
    for count in (3, 2 * KEPT, 1):
        messages = [WireMessage(f"s.{n}", b"%d" % n * (n % 300)) for n in range(count)]
        together.note_sent(count, ENDS[0], "nats", messages)
        for message in messages:
            alone.note(event_of(count, ENDS[0], "nats", "<", message))
        for since in (0, 2, 10, 2 * KEPT):
            assert query(together, since=since) == query(alone, since=since)
