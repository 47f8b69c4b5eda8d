"""The queries `journal` and `message_counts`."""

from typing import Any

from understudy.errors import Refused
from understudy.operator.journal import MOST_AT_ONCE, JournalQueries
from understudy.ports.decoder import TEXT
from understudy.units import NS_PER_SECOND
from understudy.wire.connection import Event
from understudy.wire.journal import WireJournal

ENDS = ("bench.text_tcp", "g60.grblhal")


def noted(count: int, endpoint: str = ENDS[0]) -> WireJournal:
    journal = WireJournal(dict.fromkeys(ENDS, TEXT))
    for n in range(count):
        journal.note(Event(n, endpoint, "1", ">", b"%d\n" % n))
    return journal


def ask(journal: WireJournal, **parameters: Any) -> dict[str, Any]:
    answer = JournalQueries(journal).journal(**parameters)
    assert isinstance(answer, dict)
    return answer


def test_messages_are_written_as_in_a_transcript() -> None:
    journal = noted(0)
    journal.note(Event(2 * NS_PER_SECOND, ENDS[0], "1", ">", b"get_pos 1\n"))
    (row,) = ask(journal)["journal"]
    assert row == {
        "number": 1,
        "time_s": 2.0,
        "endpoint": ENDS[0],
        "peer": "1",
        "kind": ">",
        "names": ("GET_POS",),
        "text": "get_pos 1\\n",
        "size": 10,
        "refused": False,
        "unexpected": "",
    }
    assert ask(journal, fields=True)["journal"][0]["fields"] == {}


def test_only_new_messages_are_returned() -> None:
    journal = noted(10)
    assert [row["number"] for row in ask(journal, since=7)["journal"]] == [8, 9, 10]
    assert ask(journal, since=10) == {"journal": [], "last": 10, "more": 0, "unfinished": []}


def test_a_long_answer_is_continued_without_gaps() -> None:
    journal = noted(MOST_AT_ONCE)
    for n in range(MOST_AT_ONCE):
        journal.note(Event(n, ENDS[1], "1", "<", b"x\n"))
    first = ask(journal)
    assert len(first["journal"]) == MOST_AT_ONCE
    rest = ask(journal, since=first["last"])
    assert rest["more"] == 0
    assert len(first["journal"]) + len(rest["journal"]) == 2 * MOST_AT_ONCE


def test_messages_of_one_name_or_endpoint() -> None:
    journal = noted(3)
    journal.note(Event(9, ENDS[1], "1", ">", b"HOME\n"))
    assert [row["endpoint"] for row in ask(journal, name="HOME")["journal"]] == [ENDS[1]]
    assert len(ask(journal, endpoint=ENDS[0])["journal"]) == 3
    assert ask(journal, unexpected=True)["journal"] == []


def test_a_line_that_has_not_ended_is_shown() -> None:
    journal = noted(1)
    journal.note(Event(9, ENDS[0], "1", ">", b"MOVE_ABS 1"))
    assert ask(journal)["unfinished"] == [
        {"endpoint": ENDS[0], "peer": "1", "kind": ">", "text": "MOVE_ABS 1"}
    ]


def test_messages_are_counted() -> None:
    journal = noted(3)
    journal.note(Event(9, ENDS[0], "1", "<", b"OK\nOK\n"))
    counts = JournalQueries(journal).message_counts()
    assert counts == {
        ENDS[0]: {"received": 3, "sent": 2},
        ENDS[1]: {"received": 0, "sent": 0},
    }


def test_an_unknown_face_is_refused_with_the_known_ones() -> None:
    answer = JournalQueries(noted(0)).journal(endpoint="bench.text_tpc")
    assert isinstance(answer, Refused)
    assert "bench.text_tcp" in answer.reason
