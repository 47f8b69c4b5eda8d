"""The text robot's dialect: one command per line, one answer per line, in the order of commands.

    > MOVE_ABS 100,200,150,0,0,90\\n        < OK Movement completed\\n     (when the motion ends)
    > GET_STATUS\\n                         < OK Idle,27.5,0,10\\n
    > STOP\\n                               acts when it is read, before commands that wait

A session carries out its commands one after the other; only STOP acts at once.
"""

import math
import re
from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Deps, Endpoint, FaultSource, Ticket
from understudy.ports.decoder import (
    Decoded,
    Decoder,
    Operation,
    Sections,
    all_rows,
    read_line,
)
from understudy.ports.faults import Fault, Faults
from understudy.protocol.sessions import (
    LineReader,
    NotInjectable,
    Outbox,
    ReadyPeers,
    SavedLine,
    SessionFace,
    TextLine,
)
from understudy.robots.text_robot.interface import (
    PARAMETER_ERROR,
    TIMEOUT_ERROR,
    PoseRobot,
    submit_move,
)
from understudy.robots.text_robot.reactions import FACE_EXPLORED, FACE_REACTIONS
from understudy.robots.text_robot.reactions import TALKS as TALKS
from understudy.space.pose import pose_mm_deg

FAULTS: Faults = {
    "communication_timeout": Fault(
        "asked", "the command is not carried out and answered as timed out"
    )
}
REACTIONS = FACE_REACTIONS
EXPLORED = FACE_EXPLORED
LONGEST_LINE = 4096
LONGEST_ECHO = 32
WAITING_LIMIT = 1024
OUTBOX_LIMIT = 64 * 1024
READ_SIZE = 4096
SILENT = re.compile(rb"[^\n]+|\n")
"""Splits a stream into the text of lines, and line ends."""

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
ANSWER_FIELDS = {len(POSE_FIELDS): POSE_FIELDS, len(STATUS_FIELDS): STATUS_FIELDS}


ENDPOINTS = {"": Endpoint()}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The face has no settings of its own."""


class Request(Struct, frozen=True):
    """A command that was received and waits; ``stops``: emergency stops of the robot until then."""

    verb: str
    parameters: bytes
    known: bool
    timed_out: bool
    stops: int


class SavedSession(Struct):
    """Snapshot of a session."""

    line: SavedLine
    waiting: list[Request]
    pending: Request | None
    ticket: Ticket | None
    outbox: list[bytes]
    ended: bool


class TextSession:
    """`Session` of one client."""

    silent = SILENT

    def __init__(self, face: "TextTcpFace", peer: str, saved: SavedSession | None = None) -> None:
        was = saved or SavedSession(SavedLine(), [], None, None, [], False)
        self._face = face
        self._peer = peer
        self._lines = LineReader(LONGEST_LINE, was.line)
        self._waiting = deque(was.waiting)
        self._pending = was.pending
        self._ticket = was.ticket
        self._outbox = Outbox(lambda: face.ready.add(peer), was.outbox)
        self._ended = was.ended

    # ── session ──

    def receive(self, data: bytes, now: int) -> None:
        for line in self._lines.feed(data):
            self._read(line, now)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        self._ended = True

    def closed(self, now: int) -> None:
        self._face.close(self._peer)

    def credit(self) -> int:
        full = len(self._waiting) >= WAITING_LIMIT or self._outbox.size >= OUTBOX_LIMIT
        return 0 if full or self._ended else READ_SIZE

    def owed(self) -> bool:
        return self._ticket is not None

    def save(self) -> SavedSession:
        return SavedSession(
            line=self._lines.save(),
            waiting=list(self._waiting),
            pending=self._pending,
            ticket=self._ticket,
            outbox=self._outbox.save(),
            ended=self._ended,
        )

    # ── commands ──

    def finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        if ticket != self._ticket or self._pending is None:
            return
        verb = self._pending.verb
        self._ticket = self._pending = None
        self._answer(DONE[verb] if outcome is None else f"ERROR {outcome.reason}")
        self._serve(now)

    def _read(self, line: TextLine, now: int) -> None:
        words = line.data.split(None, 1)
        if not words and not line.too_long:
            return
        verb = words[0] if words else b""
        if line.too_long:
            verb = verb[:LONGEST_ECHO]
        name = "".join(chr(byte) if byte < 0x80 else "?" for byte in verb.upper())
        parameters = words[1] if len(words) > 1 else b""
        known = name in COMMANDS and not line.too_long
        request = self._face.request(name, parameters, known, now)
        self._waiting.append(request)
        self._face.received(request, now)
        self._serve(now)

    def _serve(self, now: int) -> None:
        """Carries out the waiting commands, up to the next one whose answer needs time."""
        while self._waiting and self._ticket is None:
            request = self._waiting.popleft()
            outcome = self._face.carry_out(request, now)
            if isinstance(outcome, str):
                self._answer(outcome)
            else:
                self._pending, self._ticket = request, outcome

    def _answer(self, answer: str) -> None:
        self._outbox.send(answer.encode("ascii") + b"\n")


# ── the decoder ─────────────────────────────────────────────────────────────────────────────────


def read_request(line: bytes, address: str) -> Decoded:
    """The command, and its parameters by name."""
    decoded = read_line(line, address)
    name = decoded.names[0] if decoded.names else ""
    keys = EXPECTED.get(name, "").split(",")
    values = numbers(line.strip()[len(name) :], count=len(keys)) if keys[0] else None
    return decoded._replace(fields=dict(zip(keys, values or (), strict=False)))


def read_answer(line: bytes, address: str) -> Decoded:
    head, _, text = line.decode("ascii", "replace").strip().partition(" ")
    values = text.split(",")
    names = ANSWER_FIELDS.get(len(values)) if head == "OK" else None
    fields = dict(zip(names, values, strict=True)) if names else {"message": text}
    return Decoded((head,), fields, refused=head == "ERROR")


def name_field(answer: bytes, byte: int) -> str:
    """Name of the field of an answer to which a byte belongs; used to compare transcripts."""
    head, _, values = answer.partition(b" ")
    if byte <= len(head):
        return "verdict"
    names = ANSWER_FIELDS.get(values.count(b",") + 1)
    if head != b"OK" or names is None:
        return "message"
    return names[min(values[: byte - len(head) - 1].count(b","), len(names) - 1)]


CHAT = "tests/golden/text_tcp/commands.chat"
MEANINGS = {
    "MOVE_ABS": "go to a pose",
    "MOVE_REL": "go on by a distance and turns",
    "GET_POS": "the pose now, with noise",
    "GET_STATUS": "state, temperature, error code, load",
    "STOP": "emergency stop, at once",
    "HOME": "go home",
    "RESET": "clear an emergency stop",
}


def operations() -> Sections:
    rows = [Operation(name, MEANINGS[name], "emulated", "document", CHAT) for name in COMMANDS]
    return {"Commands": rows}


OPERATIONS = operations
DECODER = Decoder(
    read_request=read_request,
    read_answer=read_answer,
    name_field=name_field,
    operations=lambda: all_rows(operations()),
)


# ── the face ────────────────────────────────────────────────────────────────────────────────────


class FaceState(Struct):
    """Snapshot of the face."""

    sessions: dict[str, SavedSession]


class TextTcpFace(SessionFace[TextSession], NotInjectable):
    """`Face`: the sessions of all clients of one robot."""

    decoder = DECODER

    def __init__(self, name: str, robot: PoseRobot, fault_source: FaultSource) -> None:
        self._name = name
        self._robot = robot
        self._fault_source = fault_source
        self._sessions = {}
        self.ready = ReadyPeers()
        robot.on_finished(self._finished)

    # ── face ──

    def open(self, peer: str, now: int) -> TextSession:
        self._sessions[peer] = TextSession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def faults(self) -> Faults:
        return FAULTS

    def save(self) -> FaceState:
        return FaceState({peer: session.save() for peer, session in self._sessions.items()})

    def load(self, state: Any) -> None:
        sessions = msgspec.convert(state, FaceState).sessions
        self._sessions = {peer: TextSession(self, peer, saved) for peer, saved in sessions.items()}

    # ── commands ──

    def request(self, verb: str, parameters: bytes, known: bool, now: int) -> Request:
        fault = "communication_timeout"
        timed_out = verb != "STOP" and bool(self._fault_source.draw_fault(fault, self._name, now))
        return Request(verb, parameters, known, timed_out, self._robot.stops())

    def received(self, request: Request, now: int) -> None:
        """Reports a command to the scenario rules; STOP acts now, before commands that wait."""
        self._fault_source.received(self._name, request.verb, now)
        if request.known and request.verb == "STOP":
            self._robot.stop(now)

    def carry_out(self, request: Request, now: int) -> str | Ticket:
        """The answer; or a ticket, whose end is answered later."""
        if request.timed_out:
            self._robot.note_error(TIMEOUT_ERROR)
            return "ERROR Communication timeout"
        if not request.known:
            return f"ERROR Unknown command: {request.verb}"
        if request.verb in DONE:
            return self._move(request, now)
        if request.verb == "GET_POS":
            values = pose_mm_deg(self._robot.reading(now).pose)
            return f"OK {','.join(map(two_decimals, values))}"
        if request.verb == "GET_STATUS":
            reading = self._robot.reading(now)
            temperature = f"{reading.temperature_c:.1f}"
            return f"OK {reading.state},{temperature},{reading.error_code},{reading.load_percent}"
        if request.verb == "RESET":
            # A STOP that was received after this RESET stays active.
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
        values: list[float] | None = []
        if expected := EXPECTED.get(request.verb, ""):
            values = numbers(request.parameters, count=expected.count(",") + 1)
        if values is None:
            return Refused(f"Invalid parameters (expected: {expected})", code=PARAMETER_ERROR)
        return submit_move(self._robot, request.verb, values, now)

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for session in list(self._sessions.values()):
            session.finished(ticket, outcome, now)


def numbers(text: bytes, *, count: int) -> list[float] | None:
    """Exactly ``count`` plain decimals with commas between them, or None."""
    fields = [field.strip() for field in text.split(b",")]
    if len(fields) != count or not all(PLAIN_DECIMAL.fullmatch(field) for field in fields):
        return None
    values = [float(field) for field in fields]
    return values if all(map(math.isfinite, values)) else None


def two_decimals(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text


def build(name: str, config: Config, robot: PoseRobot, deps: Deps) -> TextTcpFace:
    return TextTcpFace(name, robot, deps.fault_source)
