"""Where lines and sessions meet: bytes go in at the cell's moment, answers are carried out."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from msgspec import Struct

from understudy.errors import ConfigError
from understudy.ports import HANG_UP, UNLIMITED, Face, FaultSource, Session, Snapshot, TimedCell
from understudy.wire.answer_faults import AnswerFaults
from understudy.wire.chat import Event, Kind

__all__ = ["UNLIMITED", "Exchange", "Line", "Nobody", "Sink", "UntimedFaces"]

log = logging.getLogger(__name__)

MOST_HELD = 1 << 20
"""Bytes that rules may hold back from one peer."""


class Sink(Protocol):
    """The way out to a peer."""

    def room(self) -> int:
        """How many bytes can go out now; UNLIMITED when nothing is under way."""
        ...

    def send(self, data: bytes) -> None: ...

    def listen(self, willing: bool) -> None:
        """Whether more bytes from the peer are wanted."""
        ...

    def hang_up(self) -> None: ...


class Nobody:
    """The peer of a session whose wire is gone; what it is told stands in the transcript."""

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes) -> None:
        return None

    def listen(self, willing: bool) -> None:
        return None

    def hang_up(self) -> None:
        return None


@dataclass(eq=False)
class Line:
    """One peer's connection to a face."""

    endpoint: str
    peer: str
    session: Session
    sink: Sink
    unread: bytearray = field(default_factory=bytearray)
    ended: bool = False
    eof_told: bool = False
    listening: bool = True
    held: deque[tuple[int, bytes]] = field(default_factory=deque)
    held_size: int = 0


class NoSession:
    """`Session` of a peer at an endpoint behind which nobody is: it is hung up on."""

    def receive(self, data: bytes, now: int) -> None:
        return None

    def take(self, room: int) -> bytes:
        return b""

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        return None

    def credit(self) -> int:
        return HANG_UP

    def owed(self) -> bool:
        return False


class SavedLine(Struct):
    """What a snapshot holds of a line: what was not yet read, and what goes out later."""

    unread: bytes
    ended: bool
    held: list[tuple[int, bytes]] = []


class Saved(Struct):
    """What a snapshot holds of an endpoint's lines."""

    opened: int
    lines: dict[str, SavedLine]


class UntimedFaces:
    """`TimedCell` of the faces beside a cell: it has no time and no snapshot."""

    def __init__(self, faces: Mapping[str, Face]) -> None:
        self.faces = faces
        self.disturbed: Mapping[str, FaultSource] = {}
        self.now = 0

    def next_wake(self) -> int | None:
        return None

    def advance(self, to: int, settled: Callable[[int], None]) -> None:
        return None

    def busy(self) -> bool:
        return False

    def snapshot(self) -> Snapshot:
        return Snapshot(0, "", "", 0, {})

    def restore(self, snapshot: Snapshot) -> None:
        return None


class Exchange:
    """All lines of a stage."""

    def __init__(
        self, timed_cell: TimedCell, note: Callable[[Event], None] = lambda event: None
    ) -> None:
        self.timed_cell = timed_cell
        self._note = note
        self._opened = dict.fromkeys(timed_cell.faces, 0)
        self._lines: dict[tuple[str, str], Line] = {}
        self._unread: dict[Line, None] = {}
        self._answer_faults = {
            e: AnswerFaults(fault_source, e) for e, fault_source in timed_cell.disturbed.items()
        }
        self._closed: dict[str, str] = {}

    # ── what peers do ──

    def open(self, endpoint: str, sink: Sink) -> Line:
        if why := self._closed.get(endpoint):
            log.info("%s: a client was turned away: %s", endpoint, why)
            sink.hang_up()
            return Line(endpoint, "", NoSession(), sink)
        self._opened[endpoint] += 1
        peer = str(self._opened[endpoint])
        line = Line(
            endpoint, peer, self.timed_cell.faces[endpoint].open(peer, self.timed_cell.now), sink
        )
        self._lines[endpoint, peer] = line
        self._record(line, "!", b"open")
        self.settle()
        return line

    def receive(self, line: Line, data: bytes) -> bool:
        """Hand bytes to the session; true if it answered at once."""
        if not self._holds(line):
            line.sink.hang_up()
            return False
        self._record(line, ">", data)
        line.unread += data
        self._unread[line] = None
        return self.settle(line)

    def eof(self, line: Line) -> None:
        if self._holds(line) and not line.ended:
            line.ended = True
            self._record(line, "!", b"eof")
            self._unread[line] = None
            self.settle()

    def closed(self, line: Line) -> None:
        if self._holds(line):
            self._record(line, "!", b"closed")
            self._drop(line)
            self.settle()

    def drained(self, line: Line) -> None:
        """There is room again on the way to this peer."""
        if self._holds(line):
            self._deliver(line)
            self.settle()

    def close(self, endpoints: Iterable[str], why: str) -> None:
        """Nobody is behind these any more: who is there is hung up on, and who comes; no ``why``:
        they are open again."""
        for endpoint in endpoints:
            self._closed[endpoint] = why
            there = [line for line in self._lines.values() if line.endpoint == endpoint]
            for line in there if why else []:
                self._record(line, "!", b"closed")
                self._drop(line)
                line.sink.hang_up()
        self.settle()

    # ── time ──

    def next_wake(self) -> int | None:
        """When something happens by itself: in the cell, or to an answer that is held back."""
        wake = self.timed_cell.next_wake()
        if not self._answer_faults:
            return wake
        moments = [line.held[0][0] for line in self._lines.values() if line.held]
        return min([*moments, wake] if wake is not None else moments, default=None)

    def advance(self, to: int) -> None:
        while self._answer_faults and (at := self.next_wake()) is not None and at < to:
            self.timed_cell.advance(at, self._settled)
            self._let_go()
        self.timed_cell.advance(to, self._settled)
        self._let_go()

    def owed(self) -> bool:
        """Somebody waits for an answer that needs time."""
        return any(line.held or line.session.owed() for line in self._lines.values())

    def alone(self) -> bool:
        """Nobody is connected who could have a say in what happens."""
        return all(isinstance(line.sink, Nobody) for line in self._lines.values())

    def settle(self, asked: Line | None = None) -> bool:
        """Let all that can happen at this moment happen; did ``asked`` get an answer?"""
        answered = self._carry(asked)
        while (at := self.timed_cell.next_wake()) is not None and at <= self.timed_cell.now:
            self.timed_cell.advance(self.timed_cell.now, lambda now: None)
            answered |= self._carry(asked)
        return answered

    # ── snapshots ──

    def snapshot(self) -> Snapshot:
        lines = {
            endpoint: Saved(
                self._opened[endpoint],
                {
                    line.peer: SavedLine(bytes(line.unread), line.ended, list(line.held))
                    for line in self._lines.values()
                    if line.endpoint == endpoint
                },
            )
            for endpoint in self.timed_cell.faces
        }
        return msgspec.structs.replace(self.timed_cell.snapshot(), lines=msgspec.to_builtins(lines))

    def restore(self, snapshot: Snapshot) -> None:
        """Peers in the snapshot go on, others are closed, those without a wire are detached."""
        try:
            saved = msgspec.convert(snapshot.lines, dict[str, Saved])
        except msgspec.ValidationError as problem:
            raise ConfigError(f"a damaged snapshot: {problem}") from None
        try:
            self.timed_cell.restore(snapshot)
        except ConfigError:
            self._meet_again()
            raise
        live, self._lines = self._lines, {}
        self._unread.clear()
        for endpoint, face in self.timed_cell.faces.items():
            was = saved.get(endpoint, Saved(0, {}))
            self._opened[endpoint] = was.opened
            for peer, session in face.sessions().items():
                line = live.pop((endpoint, peer), None) or Line(endpoint, peer, session, Nobody())
                line.session = session
                self._reattach(line, was.lines.get(peer, SavedLine(b"", False)))
        for line in live.values():
            log.info("%s %s is not in the snapshot: closed", line.endpoint, line.peer)
            line.sink.hang_up()
        self.settle()

    def _meet_again(self) -> None:
        """All is as it was before a restore that failed, but with sessions made anew."""
        for line in self._lines.values():
            line.session = self.timed_cell.faces[line.endpoint].sessions()[line.peer]

    def _reattach(self, line: Line, was: SavedLine) -> None:
        line.unread = bytearray(was.unread)
        line.ended = was.ended
        line.held = deque(was.held)
        line.held_size = sum(len(data) for _, data in was.held)
        line.eof_told = False
        self._lines[line.endpoint, line.peer] = line
        self._unread[line] = None
        self._deliver(line)

    # ── inside ──

    def _settled(self, now: int) -> None:
        self._carry(None)

    def _carry(self, asked: Line | None) -> bool:
        """Feed what is unread and carry what is said, until neither gets on."""
        answered = False
        moved = True
        while moved:
            fed = [self._feed(line) for line in list(self._unread)]
            moved = any(fed)
            for endpoint, face in self.timed_cell.faces.items():
                for peer in face.ready_peers():
                    line = self._lines.get((endpoint, peer))
                    if line is not None and self._deliver(line):
                        moved = True
                        answered |= line is asked
        return answered

    def _feed(self, line: Line) -> bool:
        fed = False
        while line.unread and (credit := line.session.credit()) > 0:
            data = bytes(line.unread[:credit])
            del line.unread[:credit]
            line.session.receive(data, self.timed_cell.now)
            fed = True
        self._listen(line)
        if not line.unread:
            self._unread.pop(line, None)
            if line.ended and not line.eof_told:
                line.eof_told = True
                line.session.eof(self.timed_cell.now)
                fed |= self._deliver(line)
        return fed

    def _deliver(self, line: Line) -> bool:
        told = False
        while data := line.session.take(self._room(line)):
            told |= self._send(line, data)
        self._listen(line)
        if line.session.credit() == HANG_UP and self._holds(line):
            self._drop(line)
            line.sink.hang_up()
        self._end(line)
        return told

    def _room(self, line: Line) -> int:
        return max(0, MOST_HELD - line.held_size) if line.held else line.sink.room()

    def _send(self, line: Line, data: bytes) -> bool:
        """Towards the peer, now or as a rule has it; did it go out?"""
        mischief = self._answer_faults.get(line.endpoint)
        if mischief is None:
            self._hand_over(line, data)
            return True
        after = line.held[-1][0] if line.held else 0
        for held in mischief.schedule(data, self.timed_cell.now, after):
            line.held.append(held)
            line.held_size += len(held[1])
        return self._hand_over_due(line)

    def _let_go(self) -> None:
        for line in [line for line in self._lines.values() if line.held]:
            if self._hand_over_due(line):
                self._deliver(line)
                self._carry(None)

    def _hand_over_due(self, line: Line) -> bool:
        handed = False
        while line.held and line.held[0][0] <= self.timed_cell.now:
            data = line.held.popleft()[1]
            line.held_size -= len(data)
            self._hand_over(line, data)
            handed = True
        return handed

    def _hand_over(self, line: Line, data: bytes) -> None:
        self._record(line, "<", data)
        line.sink.send(data)

    def _listen(self, line: Line) -> None:
        willing = not line.unread and line.session.credit() > 0
        if willing != line.listening:
            line.listening = willing
            line.sink.listen(willing)

    def _end(self, line: Line) -> None:
        """Hang up on a peer that said all and was told all."""
        said_all = line.eof_told and not line.session.owed() and not line.held
        told_all = said_all and line.sink.room() >= UNLIMITED
        if told_all and self._holds(line):
            self._drop(line)
            line.sink.hang_up()

    def _drop(self, line: Line) -> None:
        del self._lines[line.endpoint, line.peer]
        self._unread.pop(line, None)
        line.session.closed(self.timed_cell.now)

    def _holds(self, line: Line) -> bool:
        return self._lines.get((line.endpoint, line.peer)) is line

    def _record(self, line: Line, kind: Kind, data: bytes) -> None:
        self._note(Event(self.timed_cell.now, line.endpoint, line.peer, kind, data))
