"""Plays the client's side of a transcript and finds the first byte of the answers that differs."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest

from understudy.errors import unknown
from understudy.ports import WireMessage
from understudy.ports.decoder import MESSAGES, Decoder, decoder_of, messages_in
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import ENDING, Chat, escape
from understudy.wire.connection import Event
from understudy.wire.exchange import Client, InProcessCell

_NUMBER = re.compile(rb"([+-]?\d+\.?\d*)")
Peer = tuple[str, str]
CABLE = "cable"
"""The `line` of a recording at a serial device, which sends no greeting."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed difference of numbers and of times; ``seconds`` None: times are not compared."""

    number: float = 0.0
    seconds: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One message, and when its last byte was sent."""

    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Difference:
    """The first answer that differs."""

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
            f"  expected {_written(self.expected)}\n"
            f"  got      {_written(self.got)}"
        )


def play(
    chat: Chat,
    cell: InProcessCell,
    *,
    tolerance: Tolerance,
    end: Callable[[int], None] = lambda now: None,
) -> Difference | None:
    """Sends what the clients sent, at the same times; returns the first different answer. ``end``:
    called where the cell of the recording ended."""
    events = [_named(event, cell) for event in chat.events]
    cable = chat.facts.get("line") == CABLE
    clients = _send_all(events, cell, greeted=not cable, end=end)
    for peer in dict.fromkeys((event.endpoint, event.peer) for event in events):
        face = cell.timed_cell.faces.get(peer[0])
        decoder = decoder_of(face) if face else MESSAGES  # `! ending` is an event of the cell
        expected = _answers(events, peer, decoder)
        here = (peer[0], clients[peer].peer if peer in clients else "")
        transcript = _without_greeting(cell.transcript, here) if cable else cell.transcript
        got = _answers(transcript, here, decoder)
        for number, (a, b) in enumerate(zip_longest(expected, got), 1):
            difference = _difference(a, b, decoder=decoder, tolerance=tolerance)
            if difference is not None:
                return Difference(peer, number, *difference, a, b)
    return None


def _named(event: Event, cell: InProcessCell) -> Event:
    """The event at the cell's only endpoint, if the recording uses another name for it."""
    faces = cell.timed_cell.faces
    if event.endpoint in faces or len(faces) != 1:
        return event
    return replace(event, endpoint=next(iter(faces)))


def _without_greeting(transcript: list[Event], peer: Peer) -> list[Event]:
    """The events from the client's first bytes on: a recording on a cable begins later."""
    said = (n for n, e in enumerate(transcript) if e.kind == ">" and (e.endpoint, e.peer) == peer)
    return transcript[next(said, len(transcript)) :]


def _send_all(
    events: Iterable[Event], cell: InProcessCell, *, greeted: bool, end: Callable[[int], None]
) -> dict[Peer, Client]:
    clients: dict[Peer, Client] = {}
    due: dict[Peer, int] = {}
    for event in events:
        peer = (event.endpoint, event.peer)
        if event.kind == "<":
            due[peer] = due.get(peer, 0) + len(event.data)
            continue
        if event.at > cell.timed_cell.now:  # at the start nothing has happened yet
            cell.advance_to(event.at)
        if event.data == ENDING:
            end(cell.timed_cell.now)
            cell.exchange.deliver()
            continue
        if event.endpoint not in cell.timed_cell.faces:
            raise unknown("endpoint", event.endpoint, cell.timed_cell.faces)
        if peer not in clients:
            clients[peer] = cell.connect(event.endpoint)
            clients[peer].count = clients[peer].count if greeted else 0
        client = clients[peer]
        # A client that waited for an answer before it went on waits for it here too.
        while client.count < due.get(peer, 0) and cell.run_to_next_answer():
            pass
        if event.kind == ">":
            client.say(_data(event))
        elif event.data == b"eof":
            client.end()
        elif event.data == b"closed":
            client.leave()
    cell.run_while_owed()
    last = max((event.at for event in events), default=0)
    cell.advance_to(max(last, cell.timed_cell.now))
    return clients


def _data(event: Event) -> bytes | WireMessage:
    if event.address is None:
        return event.data
    return WireMessage(event.address[0], event.data, event.address[1])


def _answers(events: Iterable[Event], peer: Peer, decoder: Decoder) -> list[Answer]:
    pieces = [e for e in events if e.kind == "<" and (e.endpoint, e.peer) == peer]
    if any(event.address for event in pieces):
        return [Answer(e.at, f"{e.address} ".encode() + e.data) for e in pieces]
    moments = [event.at for event in pieces for _ in event.data]
    answers, end = [], 0
    for message in messages_in(b"".join(event.data for event in pieces), decoder.cut_answers):
        end += len(message)
        answers.append(Answer(moments[end - 1], message))
    return answers


def _difference(
    a: Answer | None, b: Answer | None, *, decoder: Decoder, tolerance: Tolerance
) -> tuple[int, str] | None:
    """The first byte of ``a`` that differs, and the field it belongs to."""
    if a is None or b is None:
        return 0, "the whole answer"
    byte = _first_difference(a.data, b.data, tolerance.number)
    if byte is not None:
        return byte, decoder.name_field(a.data, min(byte, len(a.data) - 1))
    if tolerance.seconds is not None and abs(a.at - b.at) > nanoseconds(tolerance.seconds):
        return 0, "the time"
    return None


def _first_difference(a: bytes, b: bytes, tolerance: float) -> int | None:
    """Index of the first different byte; numbers between the words may differ by the tolerance."""
    at = 0
    for index, (x, y) in enumerate(zip_longest(_NUMBER.split(a), _NUMBER.split(b), fillvalue=b"")):
        numbers = index % 2 == 1 and x and y and tolerance > 0.0
        if x != y and not (numbers and abs(float(x) - float(y)) <= tolerance):
            return at + next(n for n, (i, j) in enumerate(zip_longest(x, y)) if i != j)
        at += len(x)
    return None


def _written(answer: Answer | None) -> str:
    return "nothing" if answer is None else f"{seconds(answer.at):.6f} s  {escape(answer.data)}"
