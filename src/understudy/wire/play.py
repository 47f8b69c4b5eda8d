"""Plays the client's side of a transcript against a cell, for a comparison of the answers."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from understudy.errors import unknown
from understudy.ports import WireMessage
from understudy.ports.decoder import Decoder, decoder_of, messages_in
from understudy.wire.chat import ENDING, INJECT, Chat
from understudy.wire.compare import Difference, Peer, SentAnswer, Stream, Tolerance, compare
from understudy.wire.connection import Event
from understudy.wire.exchange import Client, InProcessCell

CABLE = "cable"
"""The `line` of a recording at a serial device, which sends no greeting."""


def play(
    chat: Chat,
    cell: InProcessCell,
    *,
    tolerance: Tolerance,
    act: Callable[[bytes], None] = lambda data: None,
) -> Difference | None:
    """Sends what the clients sent, at the same times; returns the first different answer. ``act``:
    called with the events of the recorded cell: its end, faults that the operator injected."""
    return compare(play_all(chat, cell, act=act), tolerance).first


def play_all(
    chat: Chat, cell: InProcessCell, *, act: Callable[[bytes], None] = lambda data: None
) -> list[Stream]:
    """Sends what the clients sent, at the same times; returns the answers to each of them."""
    events = [_named(event, cell) for event in chat.events]
    cable = chat.facts.get("line") == CABLE
    clients = _send_all(events, cell, greeted=not cable, act=act)
    streams = []
    for peer in dict.fromkeys((event.endpoint, event.peer) for event in events):
        face = cell.timed_cell.faces.get(peer[0])
        if face is None:
            continue  # an event of the cell
        decoder = decoder_of(face)
        here = (peer[0], clients[peer].peer if peer in clients else "")
        transcript = _without_greeting(cell.transcript, here) if cable else cell.transcript
        expected, got = _answers(events, peer, decoder), _answers(transcript, here, decoder)
        streams.append(Stream(peer, decoder, expected, got))
    return streams


def _named(event: Event, cell: InProcessCell) -> Event:
    """The event at the cell's only endpoint, if the recording uses another name for it."""
    faces = cell.timed_cell.faces
    if event.endpoint in faces or len(faces) != 1 or _acts(event):
        return event
    return replace(event, endpoint=next(iter(faces)))


def _acts(event: Event) -> bool:
    """Whether something happened to the cell, not to a connection."""
    return event.kind == "!" and (event.data == ENDING or event.data.startswith(INJECT))


def _without_greeting(transcript: list[Event], peer: Peer) -> list[Event]:
    """The events from the client's first bytes on: a recording on a cable begins later."""
    said = (n for n, e in enumerate(transcript) if e.kind == ">" and (e.endpoint, e.peer) == peer)
    return transcript[next(said, len(transcript)) :]


def _send_all(
    events: Iterable[Event], cell: InProcessCell, *, greeted: bool, act: Callable[[bytes], None]
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
        if _acts(event):
            cell.transcript.append(replace(event, at=cell.timed_cell.now))
            act(event.data)
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


def _answers(events: Iterable[Event], peer: Peer, decoder: Decoder) -> list[SentAnswer]:
    pieces = [e for e in events if e.kind == "<" and (e.endpoint, e.peer) == peer]
    if any(event.address for event in pieces):
        return [SentAnswer(e.at, e.data, e.address) for e in pieces]
    moments = [event.at for event in pieces for _ in event.data]
    answers, end = [], 0
    for message in messages_in(b"".join(event.data for event in pieces), decoder.cut_answers):
        end += len(message)
        answers.append(SentAnswer(moments[end - 1], message))
    return answers
