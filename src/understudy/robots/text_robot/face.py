"""The text robot's dialect: one command a line, one answer a line, in the order of the commands.

    > MOVE_ABS 100,200,150,0,0,90\\n        < OK Movement completed\\n     (when it is there)
    > GET_STATUS\\n                         < OK Idle,27.5,0,10\\n
    > STOP\\n                               read at once, whatever waits before it

A session carries out its commands one after the other; only STOP acts when it is read.
"""

import math
import re
from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Deps, FaultSource, PoseRobot, Ticket
from understudy.protocol.sessions import (
    LineReader,
    NotInjectable,
    Outbox,
    ReadyPeers,
    SavedLine,
    SessionFace,
    TextLine,
)
from understudy.space.pose import Pose
from understudy.units import DEG, MM

ROBOTS = ("text_robot",)
"""Kinds of robot that it stands in front of."""
LONGEST_LINE = 4096
LONGEST_ECHO = 32
WAITING_LIMIT = 1024
OUTBOX_LIMIT = 64 * 1024
READ_SIZE = 4096

TIMEOUT_ERROR, PARAMETER_ERROR = 1, 3
PLAIN_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)")
COMMANDS = ("MOVE_ABS", "MOVE_REL", "GET_POS", "GET_STATUS", "STOP", "HOME", "RESET")
EXPECTED = {"MOVE_ABS": "x,y,z,rx,ry,rz", "MOVE_REL": "dx,dy,dz"}
DONE = {
    "MOVE_ABS": "OK Movement completed",
    "MOVE_REL": "OK Movement completed",
    "HOME": "OK Homing completed",
}
POSE_FIELDS = ("x", "y", "z", "rx", "ry", "rz")
STATUS_FIELDS = ("state", "temperature", "errorCode", "loadPercentage")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to choose: the dialect is what it is."""


class Request(Struct, frozen=True):
    """A command that was read and waits its turn; ``stops``: how often it was stopped by then."""

    verb: str
    parameters: bytes
    known: bool
    timed_out: bool
    stops: int


class Saved(Struct):
    """What a snapshot holds of one conversation."""

    line: SavedLine
    waiting: list[Request]
    pending: Request | None
    ticket: Ticket | None
    outbox: list[bytes]
    ended: bool


class Conversation:
    """`Session` of one client."""

    def __init__(self, face: "TextTcpFace", peer: str) -> None:
        self._face = face
        self._peer = peer
        self._lines = LineReader(LONGEST_LINE)
        self._waiting: deque[Request] = deque()
        self._pending: Request | None = None
        self._ticket: Ticket | None = None
        self._outbox = Outbox(lambda: face.ready.add(peer))
        self._ended = False

    # ── session ──

    def receive(self, data: bytes, now: int) -> None:
        for line in self._lines.feed(data):
            self._read(line, now)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        self._ended = True

    def closed(self, now: int) -> None:
        self._face.forget(self._peer)

    def credit(self) -> int:
        full = len(self._waiting) >= WAITING_LIMIT or self._outbox.size >= OUTBOX_LIMIT
        return 0 if full or self._ended else READ_SIZE

    def owed(self) -> bool:
        return self._ticket is not None

    # ── commands ──

    def finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        if ticket != self._ticket or self._pending is None:
            return
        verb = self._pending.verb
        self._ticket = self._pending = None
        self._say(DONE[verb] if outcome is None else f"ERROR {outcome.reason}")
        self._serve(now)

    def _read(self, line: TextLine, now: int) -> None:
        words = line.data.split(None, 1)
        if not words and not line.too_long:
            return
        verb = words[0] if words else b""
        if line.too_long:
            verb = verb[:LONGEST_ECHO]
        name = "".join(chr(byte) if byte < 0x80 else "?" for byte in verb.upper())
        request = Request(
            verb=name,
            parameters=words[1] if len(words) > 1 else b"",
            known=name in COMMANDS and not line.too_long,
            timed_out=name != "STOP" and self._face.fails(now),
            stops=self._face.stops(),
        )
        self._waiting.append(request)
        self._face.heard(name, now)
        if request.known and name == "STOP":
            self._face.stop(now)
        self._serve(now)

    def _serve(self, now: int) -> None:
        """Carry out what waits, up to the next command that needs time."""
        while self._waiting and self._ticket is None:
            request = self._waiting.popleft()
            outcome = self._face.carry_out(request, now)
            if isinstance(outcome, str):
                self._say(outcome)
            else:
                self._pending, self._ticket = request, outcome

    def _say(self, answer: str) -> None:
        self._outbox.send(answer.encode("ascii") + b"\n")

    # ── snapshots ──

    def save(self) -> Saved:
        return Saved(
            line=self._lines.save(),
            waiting=list(self._waiting),
            pending=self._pending,
            ticket=self._ticket,
            outbox=self._outbox.save(),
            ended=self._ended,
        )

    def load(self, saved: Saved) -> "Conversation":
        self._lines = LineReader(LONGEST_LINE, saved.line)
        self._waiting = deque(saved.waiting)
        self._pending = saved.pending
        self._ticket = saved.ticket
        self._outbox = Outbox(lambda: self._face.ready.add(self._peer), saved.outbox)
        self._ended = saved.ended
        return self


class FaceSaved(Struct):
    """What a snapshot holds of the face."""

    sessions: dict[str, Saved]


class TextTcpFace(SessionFace[Conversation], NotInjectable):
    """`Face`: what the conversations share is the robot."""

    def __init__(self, name: str, robot: PoseRobot, fault_source: FaultSource) -> None:
        self._name = name
        self._robot = robot
        self._fault_source = fault_source
        self._sessions: dict[str, Conversation] = {}
        self.ready = ReadyPeers()
        robot.on_finished(self._finished)

    # ── face ──

    def open(self, peer: str, now: int) -> Conversation:
        self._sessions[peer] = Conversation(self, peer)
        return self._sessions[peer]

    def forget(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def faults(self) -> tuple[str, ...]:
        return ("communication_timeout",)

    def save(self) -> FaceSaved:
        return FaceSaved({peer: s.save() for peer, s in self._sessions.items()})

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, FaceSaved)
        self._sessions = {
            peer: Conversation(self, peer).load(session) for peer, session in saved.sessions.items()
        }

    # ── commands ──

    def heard(self, command: str, now: int) -> None:
        self._fault_source.heard(self._name, command, now)

    def fails(self, now: int) -> bool:
        return self._fault_source.draw_fault("communication_timeout", self._name, now) is not None

    def stops(self) -> int:
        return self._robot.stops()

    def stop(self, now: int) -> None:
        self._robot.stop(now)

    def carry_out(self, request: Request, now: int) -> str | Ticket:
        """The answer, or the ticket whose end will be the answer."""
        if request.timed_out:
            self._robot.note_error(TIMEOUT_ERROR)
            return "ERROR Communication timeout"
        if not request.known:
            return f"ERROR Unknown command: {request.verb}"
        if request.verb in DONE:
            return self._move(request, now)
        if request.verb == "GET_POS":
            return f"OK {self._position(now)}"
        if request.verb == "GET_STATUS":
            reading = self._robot.reading(now)
            temperature = f"{reading.temperature_c:.1f}"
            return f"OK {reading.state},{temperature},{reading.error_code},{reading.load_percent}"
        if request.verb == "RESET":
            # A STOP read after this RESET, while it waited its turn, stays in force.
            if request.stops == self._robot.stops():
                self._robot.reset(now)
            return "OK Error reset"
        return "OK Emergency stop executed"

    def _move(self, request: Request, now: int) -> str | Ticket:
        outcome = self._robot.stopped() or self._submit(request, now)
        if isinstance(outcome, Refused):
            self._robot.note_error(outcome.code)
            return f"ERROR {outcome.reason}"
        return outcome

    def _submit(self, request: Request, now: int) -> Ticket | Refused:
        if request.verb == "HOME":
            return self._robot.home(now)
        expected = EXPECTED[request.verb]
        values = numbers(request.parameters, count=expected.count(",") + 1)
        if values is None:
            return Refused(f"Invalid parameters (expected: {expected})", code=PARAMETER_ERROR)
        if request.verb == "MOVE_REL":
            dx, dy, dz = (value * MM for value in values)
            return self._robot.move_by(dx, dy, dz, now)
        x, y, z, rx, ry, rz = values
        pose = Pose(x * MM, y * MM, z * MM, rx * DEG, ry * DEG, rz * DEG)
        return self._robot.move_to(pose, now)

    def _position(self, now: int) -> str:
        pose = self._robot.reading(now).pose
        units = (MM, MM, MM, DEG, DEG, DEG)
        return ",".join(two_decimals(v / unit) for v, unit in zip(pose, units, strict=True))

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for session in list(self._sessions.values()):
            session.finished(ticket, outcome, now)


def numbers(text: bytes, *, count: int) -> list[float] | None:
    """Exactly ``count`` plain decimals with commas between them."""
    fields = [field.strip() for field in text.split(b",")]
    if len(fields) != count or not all(PLAIN_DECIMAL.fullmatch(field) for field in fields):
        return None
    values = [float(field) for field in fields]
    return values if all(map(math.isfinite, values)) else None


def two_decimals(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text


def messages(stream: bytes) -> list[bytes]:
    """Cut a stream of answers into answers."""
    return stream.splitlines(keepends=True)


def name_field(answer: bytes, byte: int) -> str:
    """Which field of an answer a byte belongs to, for people who compare transcripts."""
    head, _, values = answer.partition(b" ")
    if byte <= len(head):
        return "verdict"
    fields = values.strip().split(b",")
    names = {len(POSE_FIELDS): POSE_FIELDS, len(STATUS_FIELDS): STATUS_FIELDS}.get(len(fields))
    if head != b"OK" or names is None:
        return "message"
    return names[min(values[: byte - len(head) - 1].count(b","), len(names) - 1)]


def build(name: str, config: Config, robot: PoseRobot, deps: Deps) -> TextTcpFace:
    return TextTcpFace(name, robot, deps.fault_source)
