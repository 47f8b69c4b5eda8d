"""The HMI link: whole JSON messages for panels and pages, in front of the command table.

> {"type": "PING", "id": 1}
< {"type": "PONG", "id": 1, "timestamp": 1754.2, "payload": {}}
> {"type": "COMMAND", "id": 2, "payload": {"command": "rate", "parameters": {"rate": 2}}}
< {"type": "RESULT", "id": 2, "timestamp": 1754.3, "payload": {"result": {"now_s": 3.0, …}}}
> {"type": "COMMAND", "id": 3, "payload": {"command": "rte"}}
< {"type": "ERROR", "id": 3, "timestamp": 1754.4, "payload": {"code": 1, "message": "unknown …"}}

A request may carry the secret of the run: `{"type": "COMMAND", "secret": "…", …}`. On loopback only
orders to a REAL robot need it, on another address every message.

Two message faces: requests and replies, and the status for all subscribers ten times a second. Both
are doors, on wall time: they command the cell's clock (docs/decisions/wire-and-faces.md).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import UNREADABLE, Refused
from understudy.operator.doors import DoorContext, UnsavedFace, real_refusal
from understudy.ports import SUBSCRIBE, UNSUBSCRIBE, Endpoint, MessageFace, WireMessage
from understudy.ports.decoder import (
    LARGEST_DECODED,
    LONGEST_NAME,
    MESSAGES,
    Decoded,
    Operation,
    Sections,
    json_object,
)
from understudy.ports.hmi import (
    BROKEN,
    COMMAND,
    ERROR,
    GET_JOINT_POSITIONS,
    GET_STATUS,
    JOINT_POSITIONS,
    NOT_A_REQUEST,
    PING,
    PONG,
    RESULT,
    STATUS,
    TOO_MUCH_AT_ONCE,
    UNKNOWN_TYPE,
    CellView,
    Later,
    LinkMessage,
    LinkRequest,
    RobotView,
)
from understudy.protocol.sessions import MessageOutbox, ReadyPeers
from understudy.units import DEG, MM, NS_PER_MS
from understudy.wire.connection import Event

ENDPOINTS = {
    "": Endpoint(("zmq_router",), {"port": 5560}, timed=False),
    "status": Endpoint(("zmq_pub",), {"port": 5561}, timed=False),
}
MOST_PENDING = 64
"""Commands of all peers whose answers take time."""
MOST_READ = 100
MOST_ANSWERS = 50
"""Answers that wait for a peer before nothing more is read from it."""
STATUS_PERIOD, SHORTEST_PERIOD = 100 * NS_PER_MS, 10 * NS_PER_MS

Reply = Callable[[str, Any, dict[str, Any]], None]
"""Sends a message: type, id, payload."""


LINK_TESTS = "tests/operator/doors/test_hmi_link.py"


def operations() -> Sections:
    """Types of messages; the commands are those of the cell's table (docs/operator/commands.md)."""
    rows = {
        PING: "answered by PONG",
        GET_STATUS: "the status of the cell, as on the status socket",
        GET_JOINT_POSITIONS: "the axes of a robot",
        COMMAND: "a command of the cell's table",
        STATUS: "sent ten times a second on the status socket",
    }
    return {
        "Messages": [
            Operation(name, text, "emulated", "document", LINK_TESTS) for name, text in rows.items()
        ]
    }


OPERATIONS = operations


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The link has no keys but those of its wires."""


class CommandPayload(Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of COMMAND. A door that knows its user may lower the ``role``."""

    command: str
    parameters: dict[str, Any] = {}
    role: str = "operator"


class WhichRobot(Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of GET_JOINT_POSITIONS: the link's own robot, unless another is named."""

    robot: str | None = None


# ── the decoder, and what is noted ──

_SECRET = re.compile(rb'("secret"\s*:\s*)"(?:[^"\\]|\\.)*"')
_ID = re.compile(rb'"id":\s*("(?:[^"\\]|\\.)*"|[^,}\s]+)')
MOST_UNNOTED = 1000
"""Queries whose answers have not come yet."""


def decode(data: bytes, address: str) -> Decoded:
    """The type of a message, and the command in a COMMAND."""
    fields = json_object(data)
    payload = fields.get("payload")
    command = payload.get("command") if isinstance(payload, dict) else None
    names = [each[:LONGEST_NAME] for each in (fields.get("type"), command) if isinstance(each, str)]
    return Decoded(tuple(names), fields, refused=ERROR in names[:1])


DECODER = replace(
    MESSAGES,
    read_request=decode,
    read_answer=decode,
    volatile=frozenset({"timestamp", "real_s"}),
    alarms_refuse=True,
)


class LinkNotes:
    """Notes what passes at the HMI links of a cell, at its simulated time ``now``. Queries and
    their answers are left out: a page asks many of them each second. Secrets are not shown."""

    def __init__(
        self, note: Callable[[Event], None], now: Callable[[], int], is_query: Callable[[str], bool]
    ) -> None:
        self._note, self._now, self._is_query = note, now, is_query
        self._unnoted: dict[tuple[str, str, bytes], None] = {}

    def __call__(self, event: Event) -> None:
        found = _ID.search(event.data[:LARGEST_DECODED])
        key = (event.endpoint, event.peer, found[1] if found else b"")
        if event.kind == "<" and key in self._unnoted:
            del self._unnoted[key]
            return
        if event.kind == ">" and self._asks(event.data):
            self._unnoted[key] = None
            if len(self._unnoted) > MOST_UNNOTED:
                del self._unnoted[next(iter(self._unnoted))]
            return
        self._note(replace(event, at=self._now(), data=_SECRET.sub(rb'\1"..."', event.data)))

    def _asks(self, data: bytes) -> bool:
        names = decode(data, "").names
        return names[:1] == (COMMAND,) and len(names) > 1 and self._is_query(names[1])


def build_doors(robot: str, config: Config, context: DoorContext) -> Mapping[str, MessageFace]:
    """The link of one robot, or of a whole cell where ``robot`` is empty."""
    return {"": HmiLinkFace(robot, context), "status": StatusFace(robot, context)}


# ── requests and replies ────────────────────────────────────────────────────────────────────────


class LinkSession:
    """`MessageSession` of one peer: one reply to each message, at once or later."""

    def __init__(self, face: "HmiLinkFace", outbox: MessageOutbox, leave: Callable[[], None]):
        self._face = face
        self._outbox = outbox
        self._leave = leave
        self.pending = 0
        self._answers: Mapping[str, Callable[[LinkRequest, Reply], None]] = {
            PING: lambda message, reply: reply(PONG, message.id, {}),
            GET_STATUS: lambda message, reply: reply(STATUS, message.id, self._face.status_now()),
            GET_JOINT_POSITIONS: self._joints,
            COMMAND: self._command,
        }

    def receive(self, message: WireMessage, now: int) -> None:
        reply = self._reply_to(message)
        request = _read(message.payload)
        if isinstance(request, Unreadable):
            return _refuse(reply, request.id, NOT_A_REQUEST, request.reason)
        if isinstance(refused := self._face.context.lock.check(request.secret), Refused):
            return _refuse(reply, request.id, refused.code, refused.reason)
        answer = self._answers.get(request.type)
        if answer is None:
            reason = f"unknown type {request.type!r}; there are: {', '.join(self._answers)}"
            return _refuse(reply, request.id, UNKNOWN_TYPE, reason)
        return answer(request, reply)

    def failed(self, message: WireMessage, now: int) -> None:
        reply = self._reply_to(message)
        _refuse(reply, _read(message.payload).id, BROKEN, "a bug; see the log")

    def take(self, room: int) -> WireMessage | None:
        return self._outbox.take(room)

    def closed(self, now: int) -> None:
        self._leave()

    def credit(self) -> int:
        """A peer that does not take its answers gets no further ones."""
        return MOST_READ if len(self._outbox) < MOST_ANSWERS else 0

    def owed(self) -> bool:
        return self.pending > 0

    def _reply_to(self, message: WireMessage) -> Reply:
        def reply(type_: str, number: Any, payload: dict[str, Any]) -> None:
            written = LinkMessage(type_, number, self._face.context.wall(), payload)
            self._outbox.send(WireMessage(message.reply_to, msgspec.json.encode(written)))

        return reply

    def _joints(self, message: LinkRequest, reply: Reply) -> None:
        which = _payload(message, WhichRobot)
        if isinstance(which, Refused):
            return _refuse(reply, message.id, which.code, which.reason)
        robots = self._face.context.watch.look().robots
        name = which.robot or self._face.robot or next(iter(robots), "")
        if name not in robots:
            reason = f"there is no robot {name!r}; there are: {', '.join(robots)}"
            return _refuse(reply, message.id, NOT_A_REQUEST, reason)
        return reply(JOINT_POSITIONS, message.id, {"robot": name, **_axes(robots[name])})

    def _command(self, message: LinkRequest, reply: Reply) -> None:
        asked = _payload(message, CommandPayload)
        if isinstance(asked, Refused):
            return _refuse(reply, message.id, asked.code, asked.reason)
        if message.secret is None and self._face.context.commands.needs_secret(asked.command):
            return _answer(reply, message.id, real_refusal(asked.command))
        if self._face.pending() >= MOST_PENDING:
            reason = f"{MOST_PENDING} commands are under way; wait for their answers"
            return _refuse(reply, message.id, TOO_MUCH_AT_ONCE, reason)
        answer = self._face.context.commands.call(asked.command, asked.parameters, asked.role)
        if not isinstance(answer, Later):
            return _answer(reply, message.id, answer)
        self.pending += 1
        return answer.then(lambda answer: self._answer_late(reply, message.id, answer))

    def _answer_late(self, reply: Reply, number: Any, answer: Any) -> None:
        self.pending -= 1
        _answer(reply, number, answer)
        self._face.context.late()


class HmiLinkFace(UnsavedFace[LinkSession]):
    """`MessageFace` of the requests; peers are ZeroMQ identities."""

    decoder = DECODER

    def __init__(self, robot: str, context: DoorContext) -> None:
        self.robot = robot
        self.context = context
        self.ready = ReadyPeers()
        self._sessions: dict[str, LinkSession] = {}

    def open(self, peer: str, now: int) -> LinkSession:
        outbox = MessageOutbox(lambda: self.ready.add(peer))
        session = LinkSession(self, outbox, lambda: self._forget(peer))
        self._sessions[peer] = session
        return session

    def pending(self) -> int:
        """Number of commands whose answers take time."""
        return sum(session.pending for session in self._sessions.values())

    def status_now(self) -> dict[str, Any]:
        return _status(self.robot, self.context)

    def addresses(self) -> tuple[str, ...]:
        return ()


# ── the status for subscribers ──────────────────────────────────────────────────────────────────


class StatusSession:
    """`MessageSession` of all subscribers; it receives their subscriptions."""

    def __init__(self, face: "StatusFace", outbox: MessageOutbox) -> None:
        self._face = face
        self.outbox = outbox
        self.subscribers = 0

    def receive(self, message: WireMessage, now: int) -> None:
        if message.payload == SUBSCRIBE:
            self.subscribers += 1
            self._face.publish_soon(now)
        elif message.payload == UNSUBSCRIBE:
            self.subscribers -= 1

    def failed(self, message: WireMessage, now: int) -> None:
        return None

    def take(self, room: int) -> WireMessage | None:
        return self.outbox.take(room)

    def closed(self, now: int) -> None:
        self.subscribers = 0

    def credit(self) -> int:
        return MOST_READ

    def owed(self) -> bool:
        return False


class StatusFace(UnsavedFace[StatusSession]):
    """`MessageFace` that publishes the status: to a new subscriber at once, then every 100 ms."""

    def __init__(self, robot: str, context: DoorContext) -> None:
        self._robot = robot
        self._context = context
        self.ready = ReadyPeers()
        self._sessions: dict[str, StatusSession] = {}
        self._count = 0
        self._due = 0
        self._published = -SHORTEST_PERIOD

    def open(self, peer: str, now: int) -> StatusSession:
        outbox = MessageOutbox(lambda: self.ready.add(peer))
        self._sessions[peer] = StatusSession(self, outbox)
        return self._sessions[peer]

    def next_wake(self) -> int | None:
        subscribed = any(session.subscribers > 0 for session in self._sessions.values())
        return self._due if subscribed else None

    def wake(self, now: int) -> None:
        self.publish(now)

    def publish_soon(self, now: int) -> None:
        """Publishes for a new subscriber; those that come within a moment share the next
        message."""
        soonest = self._published + SHORTEST_PERIOD
        if now >= soonest:
            self.publish(now)
        else:
            self._due = min(self._due, soonest)

    def publish(self, now: int) -> None:
        """Queues the status for all subscribers; its id counts."""
        self._count += 1
        self._published = now
        self._due = now + STATUS_PERIOD
        status = _status(self._robot, self._context)
        written = LinkMessage(STATUS, self._count, self._context.wall(), status)
        message = WireMessage("", msgspec.json.encode(written))
        for session in self._sessions.values():
            session.outbox.send(message)

    def addresses(self) -> tuple[str, ...]:
        return ()


# ── messages ────────────────────────────────────────────────────────────────────────────────────


def _status(robot: str, context: DoorContext) -> dict[str, Any]:
    view = context.watch.look()
    return {"robot": robot or next(iter(view.robots), ""), **_cell(view)}


def _answer(reply: Reply, number: Any, answer: Any) -> None:
    if isinstance(answer, Refused):
        _refuse(reply, number, answer.code, answer.reason)
    else:
        reply(RESULT, number, {"result": answer})


def _refuse(reply: Reply, number: Any, code: int, reason: str) -> None:
    reply(ERROR, number, {"code": code, "message": reason})


class Unreadable(Struct, frozen=True):
    """A message that cannot be read, and its id if there is one."""

    reason: str
    id: Any = None


def _read(data: bytes) -> LinkRequest | Unreadable:
    try:
        value = msgspec.json.decode(data)
    except UNREADABLE as problem:
        return Unreadable(f"not JSON: {problem}")
    number = value.get("id") if isinstance(value, dict) else None
    try:
        return msgspec.convert(value, LinkRequest)
    except msgspec.ValidationError as problem:
        return Unreadable(f"{problem}; a message is {{type, id, timestamp, payload}}", number)


def _payload(message: LinkRequest, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(message.payload, kind)
    except msgspec.ValidationError as problem:
        fields = ", ".join(kind.__struct_fields__)
        reason = f"{message.type}: {problem}; its payload has: {fields}"
        return Refused(reason, NOT_A_REQUEST)


def _cell(view: CellView) -> dict[str, Any]:
    robots = {name: _robot(robot) for name, robot in view.robots.items()}
    return {"time_s": view.t, "real_s": view.real, "rate": view.rate, "robots": robots}


def _robot(view: RobotView) -> dict[str, Any]:
    return {
        "state": view.state,
        "moving": view.moving,
        "line": view.line,
        "tool": view.tool,
        "arc": view.arc,
        "inputs": view.io.di,
        "outputs": view.io.do,
        "tcp_mm_deg": _mm_deg(view.tcp, (0, 1, 2)),
        **_axes(view),
    }


def _axes(view: RobotView) -> dict[str, Any]:
    key = "axes_mm_deg" if view.linear else "joints_deg"
    return {key: _mm_deg(view.q, view.linear)}


def _mm_deg(values: Sequence[float], linear: Sequence[int]) -> list[float]:
    """The values with an index in ``linear`` are lengths, the others angles."""
    return [value / (MM if n in linear else DEG) for n, value in enumerate(values)]
