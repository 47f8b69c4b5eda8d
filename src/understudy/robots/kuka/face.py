"""The KUKA G-code server on the wire: Ethernet KRL with four sockets of fixed frames.

    command    MAIN  TCP, the robot listens: 48-byte commands in, 48-byte feedback out
    telemetry  EX2   TCP: 128 bytes every 20 ms; the robot listens, or connects to a host
    ex3        EX3   TCP, the robot listens: commands are written to a file and not run
    ex4        EX4   UDP: the telemetry every 40 ms, broadcast

MAIN has one client: the newest. The robot sends feedback after every completed record, and every
50 ms in between. Frames that a client's socket does not take at once are dropped, never queued.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from understudy.ports import HANG_UP, UNLIMITED, Deps, Endpoint, Face, FaultSource, State
from understudy.ports.exploration import Exploration, Say
from understudy.ports.fault_reactions import Talk
from understudy.protocol.sessions import NotInjectable, ReadyPeers, SessionFace
from understudy.robots.kuka.frames import (
    COMMAND,
    COMMANDS_AND_FEEDBACK,
    TELEMETRY_ONLY,
    UNIT_OF,
    FrameReader,
    commands_in,
    operations,
    read_command,
    write_command,
    write_feedback,
    write_telemetry,
)
from understudy.robots.kuka.records import LINEAR, TOOLS, Record
from understudy.units import NS_PER_MS

if TYPE_CHECKING:
    from understudy.robots.kuka.robot import KukaGcodeServer

MOST_FRAMES = 1024
READ_SIZE = 4096
NO_STALL_S = 3600.0
"""A client that never reads stays connected; it only misses frames."""

OPERATIONS = operations
STREAM = ("tcp", "pty", "tcp_client")
ENDPOINTS = {
    "command": Endpoint(STREAM, {"port": 54601, "stalled_after_s": NO_STALL_S}),
    "telemetry": Endpoint(
        STREAM, {"port": 60002, "local_port": 54602, "stalled_after_s": NO_STALL_S}
    ),
    "ex3": Endpoint(STREAM, {"port": 54603}, enabled=False),
    "ex4": Endpoint(("udp",), {"port": 60004, "local_port": 54604}, enabled=False),
}


TALKS = {
    "command": Talk(lambda trial, number: write_command(Record(number, TOOLS[0], {}))),
    "telemetry": Talk(None),
    "ex3": Talk(lambda trial, number: write_command(Record(number, TOOLS[0], {}))),
    "ex4": Talk(None),
}


def _says(kind: int, words: dict[str, float]) -> Say:
    return lambda robot, number: write_command(Record(number, kind, words))


EXPLORED = Exploration(
    says=tuple(
        _says(*record)
        for record in (
            (TOOLS[0], {}),
            (LINEAR, {"X": 0.5, "Z": 1.0, "F": 0.05}),
            (LINEAR, {"X": 0.6, "Y": 0.1, "F": 0.02}),
        )
    )
)


class TelemetryTimes(NamedTuple):
    """A telemetry channel of the robot, and the times of its frames."""

    channel: int
    first: int
    period: int

    def after(self, now: int) -> int:
        """The time of the next frame."""
        return max(self.first, now + self.period - (now - self.first) % self.period)


MAIN, EX3 = 0, 2
EX2 = TelemetryTimes(channel=1, first=200 * NS_PER_MS, period=20 * NS_PER_MS)
EX4 = TelemetryTimes(channel=3, first=200 * NS_PER_MS, period=40 * NS_PER_MS)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The sockets of the server; `ex3_file` is the file for the commands of EX3, if it is open."""

    feedback_ms: Annotated[int, Meta(ge=1, le=60_000)] = 50
    ex3_file: str = "kuka_ex3.log"


# ── commands and feedback ───────────────────────────────────────────────────────────────────────


class SavedSession(Struct):
    """Snapshot of a MAIN session."""

    part: bytes = b""
    frames: list[bytes] = []
    ended: bool = False


class CommandSession:
    """`Session` of a MAIN client; it ends when the client closes or a newer client connects."""

    def __init__(self, face: "CommandFace", peer: str, saved: SavedSession | None = None) -> None:
        was = saved or SavedSession()
        self._face = face
        self._peer = peer
        self._commands = FrameReader(COMMAND.size, was.part)
        self._outbox = deque(was.frames, maxlen=MOST_FRAMES)
        self._ended = was.ended
        if was.frames or was.ended:
            face.ready.add(peer)

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._commands.feed(data):
            self._face.submit(read_command(frame), now)

    def take(self, room: int) -> bytes:
        if room < UNLIMITED:
            self._outbox.clear()
        return self._outbox.popleft() if self._outbox else b""

    def eof(self, now: int) -> None:
        """Ethernet KRL closes the connection when the client closes its sending side."""
        self.end()

    def closed(self, now: int) -> None:
        self._face.close(self._peer, now)

    def credit(self) -> int:
        if self._ended:
            return HANG_UP
        room = self._face.robot.room()
        return room * COMMAND.size - len(self._commands.part) if room else 0

    def owed(self) -> bool:
        return not self._ended and self._face.robot.progress().under_way

    def send(self, frame: bytes) -> None:
        self._outbox.append(frame)
        self._face.ready.add(self._peer)

    def end(self) -> None:
        self._ended = True
        self._face.ready.add(self._peer)

    def save(self) -> SavedSession:
        return SavedSession(self._commands.part, list(self._outbox), self._ended)


class Saved(Struct):
    """Snapshot of the MAIN face. `beat`: the time of the next periodic feedback."""

    current: str | None
    beat: int
    sessions: dict[str, SavedSession]


class CommandFace(SessionFace[CommandSession], NotInjectable):
    """`Face` of MAIN."""

    decoder = COMMANDS_AND_FEEDBACK

    def __init__(
        self, name: str, robot: "KukaGcodeServer", period: int, fault_source: FaultSource
    ) -> None:
        self.robot = robot
        self._name = name
        self._fault_source = fault_source
        self.ready = ReadyPeers()
        self._period = period
        self._sessions = {}
        self._current: str | None = None
        self._beat = 0
        robot.on_executed(self._send_feedback)

    def open(self, peer: str, now: int) -> CommandSession:
        for session in self._sessions.values():
            session.end()
        self._sessions[peer] = CommandSession(self, peer)
        self._current = peer
        self._beat = (now // self._period + 1) * self._period
        self.robot.connect(MAIN, True, now)
        return self._sessions[peer]

    def close(self, peer: str, now: int) -> None:
        self._sessions.pop(peer, None)
        if peer == self._current:
            self._current = None
            self.robot.connect(MAIN, False, now)

    def submit(self, record: Record, now: int) -> None:
        for command in commands_in(record):
            self._fault_source.received(self._name, command, now)
        self.robot.submit(record, now)

    def next_wake(self) -> int | None:
        return None if self._current is None else self._beat

    def wake(self, now: int) -> None:
        self._beat += self._period
        self._send_feedback(now)

    def save(self) -> Saved:
        sessions = {peer: session.save() for peer, session in self._sessions.items()}
        return Saved(self._current, self._beat, sessions)

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, Saved)
        if saved.current is not None and saved.current not in saved.sessions:
            raise msgspec.ValidationError(f"no session of the client {saved.current!r}")
        self._current, self._beat = saved.current, saved.beat
        self._sessions = {
            peer: CommandSession(self, peer, session) for peer, session in saved.sessions.items()
        }

    def _send_feedback(self, now: int) -> None:
        if self._current is not None:
            progress = self.robot.progress()
            frame = write_feedback(progress.completed, progress.waiting)
            self._sessions[self._current].send(frame)


# ── telemetry ───────────────────────────────────────────────────────────────────────────────────


class TelemetrySession:
    """`Session` of a telemetry client; received bytes are ignored."""

    def __init__(self, face: "TelemetryFace", peer: str, frame: bytes = b"") -> None:
        self._face = face
        self._peer = peer
        self.frame = b""
        if frame:
            self.send(frame)

    def receive(self, data: bytes, now: int) -> None:
        return None

    def take(self, room: int) -> bytes:
        frame, self.frame = self.frame, b""
        return frame if room >= UNLIMITED else b""

    def eof(self, now: int) -> None:
        """Ethernet KRL closes the connection then."""

    def closed(self, now: int) -> None:
        self._face.close(self._peer, now)

    def credit(self) -> int:
        return READ_SIZE

    def owed(self) -> bool:
        return False

    def send(self, frame: bytes) -> None:
        """The newest frame replaces one that was not taken."""
        self.frame = frame
        self._face.ready.add(self._peer)


class SavedTelemetry(Struct):
    """Snapshot of a telemetry face: the time of the next frame, and frames not taken yet."""

    due: int
    frames: dict[str, bytes]


class TelemetryFace(SessionFace[TelemetrySession], NotInjectable):
    """`Face` of EX2 and EX4: the same frame for any number of clients."""

    decoder = TELEMETRY_ONLY

    def __init__(self, robot: "KukaGcodeServer", times: TelemetryTimes) -> None:
        self.ready = ReadyPeers()
        self._robot = robot
        self._times = times
        self._due = 0
        self._sessions = {}

    def open(self, peer: str, now: int) -> TelemetrySession:
        if not self._sessions:
            self._due = self._times.after(now)
            self._robot.connect(self._times.channel, True, now)
        self._sessions[peer] = TelemetrySession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str, now: int) -> None:
        if self._sessions.pop(peer, None) and not self._sessions:
            self._robot.connect(self._times.channel, False, now)

    def next_wake(self) -> int | None:
        return self._due if self._sessions else None

    def wake(self, now: int) -> None:
        self._due = self._times.after(now)
        frame = write_telemetry(self._robot.reading(now))
        for session in self._sessions.values():
            session.send(frame)

    def save(self) -> SavedTelemetry:
        return SavedTelemetry(self._due, {peer: s.frame for peer, s in self._sessions.items()})

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, SavedTelemetry)
        self._due = saved.due
        self._sessions = {
            peer: TelemetrySession(self, peer, frame) for peer, frame in saved.frames.items()
        }


# ── commands that are written to a file ─────────────────────────────────────────────────────────


class DryRunSession:
    """`Session` of an EX3 client; it gets no answer."""

    def __init__(self, face: "DryRunFace", peer: str, part: bytes = b"") -> None:
        self._face = face
        self._peer = peer
        self.commands = FrameReader(COMMAND.size, part)
        self._ended = False

    def receive(self, data: bytes, now: int) -> None:
        for frame in self.commands.feed(data):
            self._face.write(text_of(read_command(frame)))

    def take(self, room: int) -> bytes:
        return b""

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._face.close(self._peer, now)

    def credit(self) -> int:
        return HANG_UP if self._ended else READ_SIZE

    def owed(self) -> bool:
        return False

    def end(self) -> None:
        self._ended = True
        self._face.ready.add(self._peer)


class DryRunFace(SessionFace[DryRunSession], NotInjectable):
    """`Face` of EX3: it has one client, the newest."""

    decoder = COMMANDS_AND_FEEDBACK

    def __init__(self, robot: "KukaGcodeServer", write: Callable[[str], None]) -> None:
        self.write = write
        self.ready = ReadyPeers()
        self._robot = robot
        self._sessions = {}

    def open(self, peer: str, now: int) -> DryRunSession:
        for session in self._sessions.values():
            session.end()
        self._sessions[peer] = DryRunSession(self, peer)
        self._robot.connect(EX3, True, now)
        return self._sessions[peer]

    def close(self, peer: str, now: int) -> None:
        if self._sessions.pop(peer, None) and not self._sessions:
            self._robot.connect(EX3, False, now)

    def save(self) -> dict[str, bytes]:
        return {peer: session.commands.part for peer, session in self._sessions.items()}

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, dict[str, bytes])
        self._sessions = {peer: DryRunSession(self, peer, part) for peer, part in saved.items()}


def text_of(record: Record) -> str:
    """``seq=3 type=0 X=200 F=100``, in the units of the wire."""
    words = (f"{word}={value / UNIT_OF[word]:g}" for word, value in record.words.items())
    flaw = (f"flaw={record.flaw!r}",) if record.flaw else ()
    return " ".join((f"seq={record.seq}", f"type={record.kind}", *words, *flaw))


def build(name: str, config: Config, robot: "KukaGcodeServer", deps: Deps) -> Mapping[str, Face]:
    period = config.feedback_ms * NS_PER_MS
    return {
        "command": CommandFace(f"{name}.command", robot, period, deps.fault_source),
        "telemetry": TelemetryFace(robot, EX2),
        "ex3": DryRunFace(robot, lambda line: deps.append(config.ex3_file, line)),
        "ex4": TelemetryFace(robot, EX4),
    }
