"""The journal: messages of any stream, bounded, in their order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import load_cell
from understudy.ports import WireMessage
from understudy.ports.decoder import (
    MESSAGES,
    TEXT,
    Decoded,
    Decoder,
    Operation,
    json_object,
    operations_by_name,
)
from understudy.wire.connection import Event, Kind, event_of
from understudy.wire.journal import (
    KEPT,
    LONGEST_TEXT,
    LONGEST_UNFINISHED,
    MANY_SENT,
    MOST_BYTES,
    MOST_WAITING,
    NotReceivedError,
    Wanted,
    WireJournal,
)

END = "bench.text_tcp"
KNOWN = operations_by_name(
    [
        Operation("G38.2"),
        Operation("G1", status="partly"),
        Operation("M6", status="refused", note="there is no tool changer"),
        Operation("M7", status="formal"),
    ]
)


def journal_of(decoder: Decoder = TEXT, *, watching: bool = False) -> WireJournal:
    return WireJournal({END: decoder}, watching=watching)


def note(journal: WireJournal, data: bytes, kind: Kind = ">", at: int = 0, peer: str = "1") -> None:
    journal.note(Event(at, END, peer, kind, data))


def texts(journal: WireJournal) -> list[str]:
    return [f"{entry.kind}{entry.text}" for entry in journal.entries()]


@given(st.lists(st.binary(max_size=20), max_size=20), st.lists(st.integers(1, 9), max_size=60))
def test_the_pieces_of_a_stream_make_no_difference(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    whole, pieces = journal_of(), journal_of()
    note(whole, stream)
    at = 0
    for number, size in enumerate(cuts):
        note(pieces, stream[at : at + size], at=number // 3)
        at += size
        if number % 5 == 0:
            pieces.entries()
    note(pieces, stream[at:], at=99)
    assert texts(pieces) == texts(whole)
    assert len(texts(whole)) == len(lines)
    assert not whole.unfinished()


def test_a_message_has_the_time_of_its_last_byte() -> None:
    journal = journal_of()
    note(journal, b"MOVE_", at=1_000_000_000)
    assert list(journal.unfinished().values()) == [b"MOVE_"]
    note(journal, b"ABS\nGET", at=3_000_000_000)
    (entry,) = journal.entries()
    assert (entry.time_s, entry.names) == (3.0, ("MOVE_ABS",))


def test_peers_and_directions_are_apart_and_in_order() -> None:
    journal = journal_of()
    for data, kind, peer in [
        (b"open", "!", "1"),
        (b"A", ">", "1"),
        (b"B\n", ">", "2"),
        (b"OK", "<", "2"),
        (b"\n", ">", "1"),
        (b"\n", "<", "2"),
        (b"C", ">", "1"),
        (b"eof", "!", "1"),
        (b"D\n", "<", "1"),
    ]:
        note(journal, data, kind, peer=peer)  # type: ignore[arg-type]
    assert texts(journal) == ["!open", ">B\\n", ">A\\n", "<OK\\n", ">C", "!eof", "<D\\n"]


def test_frequent_answers_displace_no_request() -> None:
    journal = journal_of()
    note(journal, b"HOME\n")
    for at in range(3 * MOST_WAITING):
        note(journal, b"x\n", "<", at)
    entries = journal.entries()
    assert len(entries) == KEPT + 1
    assert entries[0].names == ("HOME",)
    assert all(a.number < b.number for a, b in pairwise(entries))
    assert journal.counts()[END] == {">": 1, "<": 3 * MOST_WAITING, "!": 0}


def test_large_messages_and_endless_ones_are_bounded() -> None:
    journal = journal_of()
    for at in range(10):
        note(journal, b"x" * (MOST_BYTES // 4) + b"\n", at=at)
    for at in range(20):
        note(journal, b"y" * (LONGEST_UNFINISHED // 4), at=at)
    entries = journal.entries()
    assert sum(entry.size for entry in entries) <= MOST_BYTES
    assert all(len(entry.text) <= LONGEST_TEXT + 1 for entry in entries)
    assert all(len(rest) <= LONGEST_UNFINISHED for rest in journal.unfinished().values())


def test_many_peers_that_leave_half_a_line_are_forgotten() -> None:
    journal = journal_of(watching=True)
    for peer in range(3000):
        note(journal, b"half", at=peer, peer=str(peer))
        note(journal, b"closed", "!", at=peer, peer=str(peer))
    assert not journal.unfinished()
    assert not journal._wires[END].unfinished


def test_a_pause_gives_up_an_unfinished_request() -> None:
    journal = journal_of(Decoder(pause=50))
    note(journal, b"half", at=0)
    note(journal, b" of it\n", at=49)
    note(journal, b"half", at=100)
    note(journal, b"whole", at=150)
    note(journal, b" again\n", at=199)
    assert texts(journal) == [">half of it\\n", ">half", ">whole again\\n"]


@given(
    st.lists(st.tuples(st.sampled_from((">", "<")), st.binary(max_size=300)), max_size=30),
    st.sampled_from(("text_robot", "grblhal_6axis", "kuka_eki")),
)
def test_no_bytes_break_a_decoder(events: list[tuple[Kind, bytes]], cell: str) -> None:
    faces = FACES[cell]
    for endpoint, decoder in faces.items():
        journal = WireJournal({endpoint: decoder}, watching=True)
        for at, (kind, data) in enumerate(events):
            journal.note(Event(at, endpoint, "1", kind, data))
        journal.entries()


def test_deep_json_has_no_fields() -> None:
    assert json_object(b'{"a": [1, {"b": 2}]}') == {"a": [1, {"b": 2}]}
    assert json_object(b'{"a":' * 40 + b"1" + b"}" * 40) == {}
    assert json_object(b'{"a":' * 100_000) == {}
    assert json_object(b"[1]") == {}


# ── received ──


def test_received_requests_are_found_by_name_and_fields() -> None:
    journal = journal_of(MESSAGES)
    for x in (1, 2, 2):
        payload = b'{"goal": {"pose": [{"x": %d}]}, "status": "new"}' % x
        journal.note(Event(0, END, "nats", ">", payload, ("robot.1.go", "")))
    journal.note(Event(0, END, "nats", "<", b"{}", ("robot.1.go", "")))
    assert len(journal.received(Wanted("robot.1.go"))) == 3
    assert len(journal.received(Wanted(fields={"x": 2}), times=2)) == 2
    assert journal.received(Wanted(fields={"x": 3}), times=0) == []
    assert len(journal.received(Wanted(fields={"x": pytest.approx(1.0), "status": "new"}))) == 1
    with pytest.raises(NotReceivedError, match=r"robot.1.og was received 0 times; .* \(3\); did"):
        journal.received(Wanted("robot.1.og"))
    with pytest.raises(NotReceivedError, match="x=2 was received 2 times, not once"):
        journal.received(Wanted(fields={"x": 2}), times=1)


def test_a_number_that_cannot_be_known_is_no_answer() -> None:
    journal = journal_of()
    for at in range(KEPT + 5):
        note(journal, b"A\n", at=at)
    assert len(journal.received(Wanted("A"))) == KEPT
    with pytest.raises(NotReceivedError, match="5 older requests are not kept"):
        journal.received(Wanted("A"), times=KEPT)


# ── what is not expected ──


def refuse(data: bytes, address: str) -> Decoded:
    return Decoded(("answer",), {}, refused=data.startswith(b"ERROR"))


STRICT = Decoder(read_answer=refuse, operations=lambda: KNOWN)


def test_unknown_and_refused_requests_are_found_before_they_are_displaced() -> None:
    journal = journal_of(STRICT, watching=True)
    for line in (b"G38.9\n", b"G1\n", b"M6\n", b"M7\n", b"JUMP\n"):
        note(journal, line)
    note(journal, b"ERROR no\r\n", "<")
    for at in range(KEPT + MOST_WAITING):
        note(journal, b"G1\n", at=at)
    assert [str(each) for each in journal.findings()] == [
        f"{END}: G38.9 is unknown; G38.2?",
        f"{END}: M6 is not emulated: there is no tool changer",
        f"{END}: M7 is only accepted, it has no effect",
        f"{END}: JUMP is unknown",
        f"{END}: JUMP → ERROR no",
    ]
    assert [each.unexpected for each in journal.findings()] == [True] * 4 + [False]


FACES = {
    name: {end: face.decoder for end, face in load_cell(name).timed_cell.faces.items()}  # type: ignore[union-attr]
    for name in ("text_robot", "grblhal_6axis", "kuka_eki")
}


@given(
    st.lists(
        st.tuples(st.sampled_from([1, MANY_SENT, 900, KEPT + 5]), st.booleans(), st.booleans()),
        max_size=12,
    )
)
def test_messages_that_are_sent_together_are_noted_as_one_by_one(
    batches: list[tuple[int, bool, bool]],
) -> None:
    together, one_by_one = journal_of(MESSAGES), journal_of(MESSAGES)
    for at, (count, asked, looks) in enumerate(batches):
        sent = [WireMessage(f"robot.{n}.state", b"%d" % at) for n in range(count)]
        together.note_sent(at, END, "1", sent)
        for message in sent:
            one_by_one.note(event_of(at, END, "1", "<", message))
        for journal in (together, one_by_one) if asked else ():
            journal.note(event_of(at, END, "1", ">", WireMessage("robot.1.command", b"{}")))
        if looks:
            assert together.counts() == one_by_one.counts()
    assert [p[1:] for p in together.passed()] == [p[1:] for p in one_by_one.passed()]
    assert (together.last, together.counts()) == (one_by_one.last, one_by_one.counts())
