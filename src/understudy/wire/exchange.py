"""Where lines and sessions meet: bytes go in at the cell's moment, answers are carried out."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from msgspec import Struct

from understudy.errors import ConfigError
from understudy.ports import Face, Session, Snapshot, Stage
from understudy.wire.chat import Event, Kind

log = logging.getLogger(__name__)

UNLIMITED = 1 << 40


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


class SavedLine(Struct):
    """What a snapshot holds of a line: what was received and not yet read."""

    unread: bytes
    ended: bool


class Saved(Struct):
    """What a snapshot holds of an endpoint's lines."""

    opened: int
    lines: dict[str, SavedLine]


class Lobby:
    """`Stage` of faces that stand beside the cell: there is no time in it, and nothing to save."""

    def __init__(self, faces: Mapping[str, Face]) -> None:
        self.faces = faces
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

    def __init__(self, stage: Stage, note: Callable[[Event], None] = lambda event: None) -> None:
        self.stage = stage
        self._note = note
        self._opened = dict.fromkeys(stage.faces, 0)
        self._lines: dict[tuple[str, str], Line] = {}
        self._unread: dict[Line, None] = {}

    # ── what peers do ──

    def open(self, endpoint: str, sink: Sink) -> Line:
        self._opened[endpoint] += 1
        peer = str(self._opened[endpoint])
        line = Line(endpoint, peer, self.stage.faces[endpoint].open(peer, self.stage.now), sink)
        self._lines[endpoint, peer] = line
        self._record(line, "!", b"open")
        self.settle()
        return line

    def receive(self, line: Line, data: bytes) -> bool:
        """Hand bytes to the session; true if it answered at once."""
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

    # ── time ──

    def advance(self, to: int) -> None:
        self.stage.advance(to, self._settled)

    def owed(self) -> bool:
        """Somebody waits for an answer that needs time."""
        return any(line.session.owed() for line in self._lines.values())

    def alone(self) -> bool:
        """Nobody is connected who could have a say in what happens."""
        return all(isinstance(line.sink, Nobody) for line in self._lines.values())

    def settle(self, asked: Line | None = None) -> bool:
        """Let all that can happen at this moment happen; did ``asked`` get an answer?"""
        answered = self._carry(asked)
        while (at := self.stage.next_wake()) is not None and at <= self.stage.now:
            self.stage.advance(self.stage.now, lambda now: None)
            answered |= self._carry(asked)
        return answered

    # ── snapshots ──

    def snapshot(self) -> Snapshot:
        lines = {
            endpoint: Saved(
                self._opened[endpoint],
                {
                    line.peer: SavedLine(bytes(line.unread), line.ended)
                    for line in self._lines.values()
                    if line.endpoint == endpoint
                },
            )
            for endpoint in self.stage.faces
        }
        return msgspec.structs.replace(self.stage.snapshot(), lines=msgspec.to_builtins(lines))

    def restore(self, snapshot: Snapshot) -> None:
        """Peers in the snapshot go on, others are closed, those without a wire are detached."""
        try:
            saved = msgspec.convert(snapshot.lines, dict[str, Saved])
        except msgspec.ValidationError as problem:
            raise ConfigError(f"a damaged snapshot: {problem}") from None
        self.stage.restore(snapshot)
        live, self._lines = self._lines, {}
        self._unread.clear()
        for endpoint, face in self.stage.faces.items():
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

    def _reattach(self, line: Line, was: SavedLine) -> None:
        line.unread = bytearray(was.unread)
        line.ended = was.ended
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
            for endpoint, face in self.stage.faces.items():
                for peer in face.stirred():
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
            line.session.receive(data, self.stage.now)
            fed = True
        self._listen(line)
        if not line.unread:
            self._unread.pop(line, None)
            if line.ended and not line.eof_told:
                line.eof_told = True
                line.session.eof(self.stage.now)
                fed |= self._deliver(line)
        return fed

    def _deliver(self, line: Line) -> bool:
        told = False
        while data := line.session.take(line.sink.room()):
            self._record(line, "<", data)
            line.sink.send(data)
            told = True
        self._listen(line)
        self._end(line)
        return told

    def _listen(self, line: Line) -> None:
        willing = not line.unread and line.session.credit() > 0
        if willing != line.listening:
            line.listening = willing
            line.sink.listen(willing)

    def _end(self, line: Line) -> None:
        """Hang up on a peer that said all and was told all."""
        told_all = line.eof_told and not line.session.owed() and line.sink.room() >= UNLIMITED
        if told_all and self._holds(line):
            self._drop(line)
            line.sink.hang_up()

    def _drop(self, line: Line) -> None:
        del self._lines[line.endpoint, line.peer]
        self._unread.pop(line, None)
        line.session.closed(self.stage.now)

    def _holds(self, line: Line) -> bool:
        return self._lines.get((line.endpoint, line.peer)) is line

    def _record(self, line: Line, kind: Kind, data: bytes) -> None:
        self._note(Event(self.stage.now, line.endpoint, line.peer, kind, data))
