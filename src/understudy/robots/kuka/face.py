"""The KUKA G-code server on the wire: Ethernet KRL with four sockets of fixed frames.

    command    MAIN  TCP, the robot listens: 48-byte commands in, 48-byte feedback out
    telemetry  EX2   TCP: 128 bytes every 20 ms; the robot listens, or calls a host that does
    ex3        EX3   TCP, the robot listens: commands that are written down and nothing else
    ex4        EX4   UDP: the telemetry every 40 ms, to whoever listens

MAIN has one client: the newest. Feedback goes out after every record that was carried out, and
every 50 ms in between; what a client's socket does not take at once is dropped, never kept.
"""

from collections import deque
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from understudy.ports import HANG_UP, UNLIMITED, Deps, Endpoint, Face, FaultSource, State
from understudy.ports.kuka import GcodeServer, Record
from understudy.protocol.sessions import NotInjectable, ReadyPeers, SessionFace
from understudy.robots.kuka.face_others import EX2, EX4, DryRunFace, TelemetryFace
from understudy.robots.kuka.frames import (
    COMMAND,
    Frames,
    commands_in,
    messages,
    name_field,
    read_command,
    write_feedback,
)
from understudy.units import NS_PER_MS

__all__ = ["ENDPOINTS", "CommandFace", "Config", "build", "messages", "name_field"]

ROBOTS = ("kuka",)
"""Kinds of robot that it stands in front of."""
MAIN = 0
MOST_FRAMES = 1024
PATIENT = 3600.0
"""Seconds: a client that never reads is not hung up on; it only misses what it does not read."""

ENDPOINTS = {
    "command": Endpoint(54601, stalled_after_s=PATIENT),
    "telemetry": Endpoint(60002, local_port=54602, stalled_after_s=PATIENT),
    "ex3": Endpoint(54603, on=False),
    "ex4": Endpoint(60004, local_port=54604, datagrams=True, on=False),
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`ex3_file`: where the commands of EX3 are written down, if that socket is open."""

    feedback_ms: Annotated[int, Meta(ge=1, le=60_000)] = 50
    ex3_file: str = "kuka_ex3.log"


class SavedSession(Struct):
    """What a snapshot holds of one client."""

    part: bytes = b""
    frames: list[bytes] = []
    ended: bool = False


class CommandSession:
    """`Session` of one client; ended when another came, or when it said all."""

    def __init__(self, face: "CommandFace", peer: str, saved: SavedSession | None = None) -> None:
        was = saved or SavedSession()
        self._face = face
        self._peer = peer
        self._commands = Frames(COMMAND.size, was.part)
        self._outbox = deque(was.frames, maxlen=MOST_FRAMES)
        self._ended = was.ended
        if was.frames or was.ended:
            face.ready.add(peer)

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._commands.feed(data):
            self._face.take(read_command(frame), now)

    def take(self, room: int) -> bytes:
        if room < UNLIMITED:
            self._outbox.clear()
        return self._outbox.popleft() if self._outbox else b""

    def eof(self, now: int) -> None:
        """A peer that says nothing more counts as gone: Ethernet KRL closes then."""
        self.end()

    def closed(self, now: int) -> None:
        self._face.forget(self._peer, now)

    def credit(self) -> int:
        if self._ended:
            return HANG_UP
        room = self._face.robot.room()
        return room * COMMAND.size - len(self._commands.part) if room else 0

    def owed(self) -> bool:
        return not self._ended and self._face.robot.progress().under_way

    def say(self, frame: bytes) -> None:
        self._outbox.append(frame)
        self._face.ready.add(self._peer)

    def end(self) -> None:
        self._ended = True
        self._face.ready.add(self._peer)

    def save(self) -> SavedSession:
        return SavedSession(self._commands.part, list(self._outbox), self._ended)


class Saved(Struct):
    """What a snapshot holds of the face."""

    current: str | None
    beat: int
    sessions: dict[str, SavedSession]


class CommandFace(SessionFace[CommandSession], NotInjectable):
    """`Face` of MAIN: the robot, and the one client it listens to."""

    def __init__(
        self, name: str, robot: GcodeServer, period: int, fault_source: FaultSource
    ) -> None:
        self.robot = robot
        self._name = name
        self._fault_source = fault_source
        self.ready = ReadyPeers()
        self._period = period
        self._sessions: dict[str, CommandSession] = {}
        self._current: str | None = None
        self._beat = 0
        robot.on_executed(self._say_feedback)

    # ── face ──

    def open(self, peer: str, now: int) -> CommandSession:
        for session in self._sessions.values():
            session.end()
        self._sessions[peer] = CommandSession(self, peer)
        self._current = peer
        self._beat = (now // self._period + 1) * self._period
        self.robot.connect(MAIN, True, now)
        return self._sessions[peer]

    def take(self, record: Record, now: int) -> None:
        for command in commands_in(record):
            self._fault_source.received(self._name, command, now)
        self.robot.submit(record, now)

    def forget(self, peer: str, now: int) -> None:
        self._sessions.pop(peer, None)
        if peer == self._current:
            self._current = None
            self.robot.connect(MAIN, False, now)

    # ── part ──

    def next_wake(self) -> int | None:
        return None if self._current is None else self._beat

    def wake(self, now: int) -> None:
        self._beat += self._period
        self._say_feedback(now)

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

    def _say_feedback(self, now: int) -> None:
        if self._current is not None:
            done = self.robot.progress()
            self._sessions[self._current].say(write_feedback(done.completed, done.waiting))


def build(name: str, config: Config, robot: GcodeServer, deps: Deps) -> Mapping[str, Face]:
    return {
        "command": CommandFace(
            f"{name}.command", robot, config.feedback_ms * NS_PER_MS, deps.fault_source
        ),
        "telemetry": TelemetryFace(robot, EX2),
        "ex3": DryRunFace(robot, lambda line: deps.append(config.ex3_file, line)),
        "ex4": TelemetryFace(robot, EX4),
    }
