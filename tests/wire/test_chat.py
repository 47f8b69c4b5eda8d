"""Transcripts are written and read back without loss; malformed ones are errors."""

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import ConfigError
from understudy.wire.chat import ChatWriter, escape, parse, unescape, write
from understudy.wire.connection import Event

NAMES = st.text("abcz019_.-", min_size=1, max_size=8)
SAID = st.tuples(st.sampled_from("<>"), st.binary(max_size=20))
DONE = st.tuples(st.just("!"), st.sampled_from([b"open", b"eof", b"closed"]))
EVENTS = st.builds(
    lambda at, endpoint, peer, what: Event(at, endpoint, peer, *what),
    st.integers(0, 10**15),
    NAMES,
    NAMES,
    SAID | DONE,
)


@given(st.binary())
def test_any_bytes_are_escaped_to_one_printable_line_and_back(data: bytes) -> None:
    text = escape(data)
    assert unescape(text) == data
    assert text == text.rstrip()
    assert text.isascii()
    assert text.isprintable()


@given(st.dictionaries(NAMES, NAMES), st.lists(EVENTS))
def test_what_is_written_is_read_back(facts: dict[str, str], events: list[Event]) -> None:
    chat = parse(write(facts, events))
    assert chat.facts == facts
    assert in_whole_lines(chat.events) == in_whole_lines(events)


def in_whole_lines(events: Iterable[Event]) -> list[Event]:
    """Joins the bytes that a client sends at one time."""
    whole: list[Event] = []
    for event in events:
        last = whole[-1] if whole else None
        if last and event.kind == ">" and replace(last, data=b"") == replace(event, data=b""):
            whole[-1] = replace(last, data=last.data + event.data)
        else:
            whole.append(event)
    return whole


def test_bytes_sent_one_by_one_are_written_as_one_line() -> None:
    said = [Event(0, "bench", "1", ">", bytes([byte])) for byte in b"HOME\nGET"]
    assert write({}, said).splitlines()[1:] == [r"> HOME\n", "> GET"]


def test_the_format() -> None:
    events = [
        Event(0, "bench.text_tcp", "1", "!", b"open"),
        Event(0, "bench.text_tcp", "1", ">", b"GET_POS\r\n"),
        Event(1_500_000_000, "bench.text_tcp", "1", "<", b"\xff\\ \t "),
    ]
    assert write({"face": "text_tcp"}, events).splitlines() == [
        "# face: text_tcp",
        "@ 0.000000000 bench.text_tcp 1",
        "! open",
        r"> GET_POS\r\n",
        "@ 1.500000000 bench.text_tcp 1",
        r"< \xff\\ \t\x20",
    ]


def test_what_waited_is_written_once() -> None:
    writer = ChatWriter()
    assert list(writer.lines(Event(0, "bench", "1", ">", b"GET"))) == []
    assert list(writer.rest()) == ["@ 0.000000000 bench 1\n", "> GET\n"]
    assert list(writer.rest()) == []


def test_endpoint_and_peer_may_be_omitted() -> None:
    text = "# a remark\n\n@ 1\n> A\n@ 1.5 bench\n> B\n@ 2. kuka 7\n> C\n@ 2.25\n> D\n"
    places = [(event.at, event.endpoint, event.peer) for event in parse(text).events]
    assert places == [
        (1_000_000_000, "", "1"),
        (1_500_000_000, "bench", "1"),
        (2_000_000_000, "kuka", "7"),
        (2_250_000_000, "kuka", "7"),
    ]


MALFORMED = {
    "GET_POS": "a line begins with '@', '>', '<', '>>', '<<', '!' or '#' (got 'GET_POS')",
    ">GET_POS": "a line begins with",
    "> a\\qb": "a backslash must be followed by n, r, t, \\ or xNN",
    "> a\\x4": "a backslash must be followed by",
    "> a\\": "a backslash must be followed by",
    "> grüß": "bytes that are not printable ASCII are written as \\xNN",
    "@": "'@' is followed by seconds, endpoint and peer",
    "@ -1": "'@' is followed by seconds",
    "@ 1,5 bench": "'@' is followed by seconds",
    "@ 1e3": "'@' is followed by seconds",
    "@ ² bench": "'@' is followed by seconds",
    "@ 1 bench 1 more": "'@' is followed by seconds",
    "! opened": "a client connects (open), ends (eof) or leaves (closed)",
}


@pytest.mark.parametrize(("line", "problem"), MALFORMED.items(), ids=MALFORMED)
def test_a_malformed_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(f"a.chat:2: {problem}")) as caught:
        parse(f"# face: text_tcp\n{line}\n", "a.chat")
    assert caught.value.value == line


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        parse(text)
    except ConfigError as problem:
        assert problem.line > 0  # noqa: PT017
