"""Plays the client's side of a transcript and finds the first byte that is answered otherwise."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from understudy.errors import unknown
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import Chat, Event, escape
from understudy.wire.in_process import Client, InProcessCell

_NUMBER = re.compile(rb"([+-]?\d+\.?\d*)")
Peer = tuple[str, str]
CABLE = "cable"
"""The `line` of a recording at a serial device, which greets nobody."""


class Dialect(Protocol):
    """How a face's answers are cut into messages, and what their parts are called."""

    def messages(self, stream: bytes) -> list[bytes]: ...

    def name_field(self, answer: bytes, byte: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far answers may be off: numbers by ``number``, moments by ``seconds`` (None: at will)."""

    number: float = 0.0
    seconds: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One message, and the moment its last byte came."""

    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the answers part."""

    peer: Peer
    number: int
    byte: int
    field: str
    expected: Answer | None
    got: Answer | None

    def __str__(self) -> str:
        endpoint, peer = self.peer
        return (
            f"{endpoint} {peer}, answer {self.number}: byte {self.byte} ({self.field}) differs\n"
            f"  expected {_tell(self.expected)}\n"
            f"  got      {_tell(self.got)}"
        )


def play(
    chat: Chat, virtual_cell: InProcessCell, *, dialect: Dialect, tolerance: Tolerance
) -> Difference | None:
    """Say what was said, when it was said; the first difference in what was answered."""
    events = [_named(event, virtual_cell) for event in chat.events]
    cable = chat.facts.get("line") == CABLE
    clients = _say_all(events, virtual_cell, greeted=not cable)
    for peer in dict.fromkeys((event.endpoint, event.peer) for event in events):
        expected = _answers(events, peer, dialect)
        here = (peer[0], clients[peer].peer if peer in clients else "")
        heard = _once_spoken_to(virtual_cell.transcript, here) if cable else virtual_cell.transcript
        got = _answers(heard, here, dialect)
        for number, (a, b) in enumerate(zip_longest(expected, got), 1):
            difference = _difference(a, b, dialect=dialect, tolerance=tolerance)
            if difference is not None:
                return Difference(peer, number, *difference, a, b)
    return None


def _named(event: Event, virtual_cell: InProcessCell) -> Event:
    """A recording may name its endpoint otherwise than the cell does, if there is only one."""
    faces = virtual_cell.timed_cell.faces
    if event.endpoint in faces or len(faces) != 1:
        return event
    return Event(event.at, next(iter(faces)), event.peer, event.kind, event.data)


def _once_spoken_to(transcript: list[Event], peer: Peer) -> list[Event]:
    """Without the greeting: a cable was plugged in long before the recording began."""
    said = (n for n, e in enumerate(transcript) if e.kind == ">" and (e.endpoint, e.peer) == peer)
    return transcript[next(said, len(transcript)) :]


def _say_all(
    events: Iterable[Event], virtual_cell: InProcessCell, *, greeted: bool
) -> dict[Peer, Client]:
    clients: dict[Peer, Client] = {}
    due: dict[Peer, int] = {}
    for event in events:
        peer = (event.endpoint, event.peer)
        if event.kind == "<":
            due[peer] = due.get(peer, 0) + len(event.data)
            continue
        virtual_cell.advance_to(max(event.at, virtual_cell.timed_cell.now))
        if event.endpoint not in virtual_cell.timed_cell.faces:
            raise unknown("endpoint", event.endpoint, virtual_cell.timed_cell.faces)
        if peer not in clients:
            clients[peer] = virtual_cell.connect(event.endpoint)
            clients[peer].count = clients[peer].count if greeted else 0
        client = clients[peer]
        # A client that waited for an answer before it went on waits for it here too.
        while client.count < due.get(peer, 0) and virtual_cell.run_to_next_answer():
            pass
        if event.kind == ">":
            client.say(event.data)
        elif event.data == b"eof":
            client.end()
        elif event.data == b"closed":
            client.leave()
    virtual_cell.run_while_owed()
    last = max((event.at for event in events), default=0)
    virtual_cell.advance_to(max(last, virtual_cell.timed_cell.now))
    return clients


def _answers(events: Iterable[Event], peer: Peer, dialect: Dialect) -> list[Answer]:
    pieces = [e for e in events if e.kind == "<" and (e.endpoint, e.peer) == peer]
    moments = [event.at for event in pieces for _ in event.data]
    answers, end = [], 0
    for message in dialect.messages(b"".join(event.data for event in pieces)):
        end += len(message)
        answers.append(Answer(moments[end - 1], message))
    return answers


def _difference(
    a: Answer | None, b: Answer | None, *, dialect: Dialect, tolerance: Tolerance
) -> tuple[int, str] | None:
    """The byte of ``a`` from which on the two differ, and the field it belongs to."""
    if a is None or b is None:
        return 0, "the whole answer"
    byte = _first_unlike(a.data, b.data, tolerance.number)
    if byte is not None:
        return byte, dialect.name_field(a.data, min(byte, len(a.data) - 1))
    if tolerance.seconds is not None and abs(a.at - b.at) > nanoseconds(tolerance.seconds):
        return 0, "the moment"
    return None


def _first_unlike(a: bytes, b: bytes, tolerance: float) -> int | None:
    """Words must be the same; numbers, which stand between them, may be off by the tolerance."""
    at = 0
    for index, (x, y) in enumerate(zip_longest(_NUMBER.split(a), _NUMBER.split(b), fillvalue=b"")):
        numbers = index % 2 == 1 and x and y and tolerance > 0.0
        if x != y and not (numbers and abs(float(x) - float(y)) <= tolerance):
            return at + next(n for n, (i, j) in enumerate(zip_longest(x, y)) if i != j)
        at += len(x)
    return None


def _tell(answer: Answer | None) -> str:
    return "nothing" if answer is None else f"{seconds(answer.at):.6f} s  {escape(answer.data)}"
