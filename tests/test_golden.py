"""Golden chats: what was said and answered, when; played in process on virtual time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.wire.chat import Chat, parse
from understudy.wire.compare import Tolerance
from understudy.wire.connection import Event
from understudy.wire.exchange import InProcessCell
from understudy.wire.play import play

GOLDEN = Path(__file__).parent / "golden"
CHATS = sorted(GOLDEN.rglob("*.chat"))


def as_written(events: Iterable[Event]) -> Iterable[Event]:
    return events


def byte_by_byte(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        pieces = [event.data]
        if event.kind == ">":
            pieces = [event.data[n : n + 1] for n in range(len(event.data))]
        yield from (replace(event, data=piece) for piece in pieces)


def in_one_packet(events: Iterable[Event]) -> Iterator[Event]:
    """What a client said at one moment without waiting for an answer."""
    said: Callable[[Event], tuple[int, str, str, str]]
    said = lambda event: (event.at, event.endpoint, event.peer, event.kind)  # noqa: E731
    for (*_, kind), group in groupby(events, key=said):
        same = list(group)
        if kind != ">":
            yield from same
        else:
            yield replace(same[0], data=b"".join(event.data for event in same))


@pytest.mark.parametrize("cut", [as_written, byte_by_byte, in_one_packet])
@pytest.mark.parametrize("path", CHATS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_chat(path: Path, cut: Callable[[Iterable[Event]], Iterable[Event]]) -> None:
    chat = parse(path.read_text(), path.name)
    beside = path.parent / chat.facts["cell"]
    config = load_config(str(beside) if beside.is_file() else chat.facts["cell"])
    if chat.facts.get("rules") == "off":
        config = config.without_rules()
    difference = play(
        Chat(chat.facts, tuple(cut(chat.events))),
        InProcessCell(build_cell(config)),
        tolerance=Tolerance(),
    )
    assert difference is None, str(difference)


def test_there_are_chats() -> None:
    assert {path.parent.name for path in CHATS} >= {"text_tcp"}
