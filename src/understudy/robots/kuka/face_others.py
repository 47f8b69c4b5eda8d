"""The KUKA's other sockets: telemetry by stream or datagram, and the log of commands not run."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from understudy.ports import HANG_UP, UNLIMITED, State
from understudy.ports.kuka import GcodeServer, Record
from understudy.protocol.sessions import NotInjectable, ReadyPeers, SessionFace
from understudy.robots.kuka.frames import (
    COMMAND,
    UNIT_OF,
    Frames,
    read_command,
    write_telemetry,
)
from understudy.units import NS_PER_MS

READ_SIZE = 4096
EX3_CHANNEL = 2


class Beat(NamedTuple):
    """A channel of the robot's, and when it speaks."""

    channel: int
    first: int
    period: int

    def after(self, now: int) -> int:
        """The next moment of the grid."""
        return max(self.first, now + self.period - (now - self.first) % self.period)


EX2 = Beat(channel=1, first=200 * NS_PER_MS, period=20 * NS_PER_MS)
EX4 = Beat(channel=3, first=200 * NS_PER_MS, period=40 * NS_PER_MS)


# ── telemetry ───────────────────────────────────────────────────────────────────────────────────


class Watcher:
    """`Session` of one who is told; what it says is not listened to."""

    def __init__(self, face: "TelemetryFace", peer: str, frame: bytes = b"") -> None:
        self._face = face
        self._peer = peer
        self.frame = b""
        if frame:
            self.say(frame)

    def receive(self, data: bytes, now: int) -> None:
        return None

    def take(self, room: int) -> bytes:
        frame, self.frame = self.frame, b""
        return frame if room >= UNLIMITED else b""

    def eof(self, now: int) -> None:
        """Ethernet KRL closes then."""

    def closed(self, now: int) -> None:
        self._face.forget(self._peer, now)

    def credit(self) -> int:
        return READ_SIZE

    def owed(self) -> bool:
        return False

    def say(self, frame: bytes) -> None:
        """The newest frame counts; one that was not taken is dropped."""
        self.frame = frame
        self._face.ready.add(self._peer)


class SavedTelemetry(Struct):
    """What a snapshot holds of a telemetry face: the next moment, and frames not yet taken."""

    due: int
    frames: dict[str, bytes]


class TelemetryFace(SessionFace[Watcher], NotInjectable):
    """`Face` of EX2 and EX4: any number of watchers, one frame for all of them."""

    def __init__(self, robot: GcodeServer, beat: Beat) -> None:
        self.ready = ReadyPeers()
        self._robot = robot
        self._beat = beat
        self._due = 0
        self._sessions: dict[str, Watcher] = {}

    def open(self, peer: str, now: int) -> Watcher:
        if not self._sessions:
            self._due = self._beat.after(now)
            self._robot.connect(self._beat.channel, True, now)
        self._sessions[peer] = Watcher(self, peer)
        return self._sessions[peer]

    def forget(self, peer: str, now: int) -> None:
        if self._sessions.pop(peer, None) and not self._sessions:
            self._robot.connect(self._beat.channel, False, now)

    def next_wake(self) -> int | None:
        return self._due if self._sessions else None

    def wake(self, now: int) -> None:
        self._due = self._beat.after(now)
        frame = write_telemetry(self._robot.reading(now))
        for session in self._sessions.values():
            session.say(frame)

    def save(self) -> SavedTelemetry:
        return SavedTelemetry(self._due, {peer: s.frame for peer, s in self._sessions.items()})

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, SavedTelemetry)
        self._due = saved.due
        self._sessions = {peer: Watcher(self, peer, frame) for peer, frame in saved.frames.items()}


# ── commands that are only written down ─────────────────────────────────────────────────────────


class Scribe:
    """`Session` of a client whose commands are written down; it is told nothing."""

    def __init__(self, face: "DryRunFace", peer: str, part: bytes = b"") -> None:
        self._face = face
        self._peer = peer
        self.commands = Frames(COMMAND.size, part)
        self._ended = False

    def receive(self, data: bytes, now: int) -> None:
        for frame in self.commands.feed(data):
            self._face.write(written_down(read_command(frame)))

    def take(self, room: int) -> bytes:
        return b""

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._face.forget(self._peer, now)

    def credit(self) -> int:
        return HANG_UP if self._ended else READ_SIZE

    def owed(self) -> bool:
        return False

    def end(self) -> None:
        self._ended = True
        self._face.ready.add(self._peer)


class DryRunFace(SessionFace[Scribe], NotInjectable):
    """`Face` of EX3: the newest client is listened to."""

    def __init__(self, robot: GcodeServer, write: Callable[[str], None]) -> None:
        self.write = write
        self.ready = ReadyPeers()
        self._robot = robot
        self._sessions: dict[str, Scribe] = {}

    def open(self, peer: str, now: int) -> Scribe:
        for session in self._sessions.values():
            session.end()
        self._sessions[peer] = Scribe(self, peer)
        self._robot.connect(EX3_CHANNEL, True, now)
        return self._sessions[peer]

    def forget(self, peer: str, now: int) -> None:
        if self._sessions.pop(peer, None) and not self._sessions:
            self._robot.connect(EX3_CHANNEL, False, now)

    def save(self) -> dict[str, bytes]:
        return {peer: session.commands.part for peer, session in self._sessions.items()}

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, dict[str, bytes])
        self._sessions = {peer: Scribe(self, peer, part) for peer, part in saved.items()}


def written_down(record: Record) -> str:
    """``seq=3 type=0 X=200 F=100``, in the units of the wire."""
    words = (f"{word}={value / UNIT_OF[word]:g}" for word, value in record.words.items())
    flaw = (f"flaw={record.flaw!r}",) if record.flaw else ()
    return " ".join((f"seq={record.seq}", f"type={record.kind}", *words, *flaw))
