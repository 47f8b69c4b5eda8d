"""The HMI link: whole JSON messages for panels and pages, in front of the desk.

> {"type": "PING", "id": 1}
< {"type": "PONG", "id": 1, "timestamp": 1754.2, "payload": {}}
> {"type": "COMMAND", "id": 2, "payload": {"command": "rate", "parameters": {"rate": 2}}}
< {"type": "RESULT", "id": 2, "timestamp": 1754.3, "payload": {"result": {"now_s": 3.0, …}}}
> {"type": "COMMAND", "id": 3, "payload": {"command": "rte"}}
< {"type": "ERROR", "id": 3, "timestamp": 1754.4, "payload": {"code": 1, "message": "unknown …"}}

It stands beside the cell, as the control endpoint does: it commands the clock, so it is no part of
what the clock drives.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import CommandTable, Endpoint
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
    Message,
    RobotView,
    Watch,
)
from understudy.units import DEG, MM

ENDPOINTS = {
    "": Endpoint(port=5560, messages=True),
    "status": Endpoint(port=5561, messages=True),
}
BESIDE_THE_CELL = True
MOST_PENDING = 64

Reply = Callable[[bytes], None]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing but where it listens."""


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of COMMAND. A door that knows who asks may lower the ``role``."""

    command: str
    parameters: dict[str, Any] = {}
    role: str = "operator"


class Whose(Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of GET_JOINT_POSITIONS: the link's own robot, unless another is named."""

    robot: str | None = None


class HmiLinkFace:
    """`MessageFace`: the link of one robot, or of a whole cell where ``robot`` is empty."""

    def __init__(
        self, robot: str, commands: CommandTable, watch: Watch, wall: Callable[[], float]
    ) -> None:
        """``wall``: what time it is outside, in seconds, for the timestamps."""
        self._robot = robot
        self._commands = commands
        self._watch = watch
        self._wall = wall
        self._pending = 0
        self._news = 0
        self._answers: Mapping[str, Callable[[Message, Reply], None]] = {
            PING: lambda message, reply: self._say(reply, PONG, message.id, {}),
            GET_STATUS: self._status,
            GET_JOINT_POSITIONS: self._joints,
            COMMAND: self._command,
        }

    def receive(self, data: bytes, reply: Reply) -> None:
        message = _read(data)
        if isinstance(message, Unread):
            return self._refuse(reply, message.id, NOT_A_REQUEST, message.reason)
        answer = self._answers.get(message.type)
        if answer is None:
            reason = f"unknown type {message.type!r}; there are: {', '.join(self._answers)}"
            return self._refuse(reply, message.id, UNKNOWN_TYPE, reason)
        return answer(message, reply)

    def apology(self, data: bytes) -> bytes:
        number = _read(data).id
        return self._written(ERROR, number, {"code": BROKEN, "message": "a bug; see the log"})

    def news(self) -> bytes:
        """The status, as it is told to all who listen; its id counts."""
        self._news += 1
        return self._written(STATUS, self._news, self._told())

    # ── one kind of message each ──

    def _status(self, message: Message, reply: Reply) -> None:
        self._say(reply, STATUS, message.id, self._told())

    def _joints(self, message: Message, reply: Reply) -> None:
        whose = _payload(message, Whose)
        if isinstance(whose, Refused):
            return self._refuse(reply, message.id, whose.code, whose.reason)
        robots = self._watch.look().robots
        name = whose.robot or self._robot or next(iter(robots), "")
        if name not in robots:
            reason = f"there is no robot {name!r}; there are: {', '.join(robots)}"
            return self._refuse(reply, message.id, NOT_A_REQUEST, reason)
        return self._say(reply, JOINT_POSITIONS, message.id, {"robot": name, **_axes(robots[name])})

    def _command(self, message: Message, reply: Reply) -> None:
        asked = _payload(message, Command)
        if isinstance(asked, Refused):
            return self._refuse(reply, message.id, asked.code, asked.reason)
        if self._pending >= MOST_PENDING:
            reason = f"{MOST_PENDING} commands are under way; wait for their answers"
            return self._refuse(reply, message.id, TOO_MUCH_AT_ONCE, reason)
        answer = self._commands.call(asked.command, asked.parameters, asked.role)
        if not isinstance(answer, Later):
            return self._answer(reply, message.id, answer)
        self._pending += 1
        return answer.then(lambda answer: self._answer_late(reply, message.id, answer))

    # ── inside ──

    def _told(self) -> dict[str, Any]:
        view = self._watch.look()
        return {"robot": self._robot or next(iter(view.robots), ""), **_cell(view)}

    def _answer_late(self, reply: Reply, number: Any, answer: Any) -> None:
        self._pending -= 1
        self._answer(reply, number, answer)

    def _answer(self, reply: Reply, number: Any, answer: Any) -> None:
        if isinstance(answer, Refused):
            self._refuse(reply, number, answer.code, answer.reason)
        else:
            self._say(reply, RESULT, number, {"result": answer})

    def _refuse(self, reply: Reply, number: Any, code: int, reason: str) -> None:
        self._say(reply, ERROR, number, {"code": code, "message": reason})

    def _say(self, reply: Reply, type_: str, number: Any, payload: dict[str, Any]) -> None:
        reply(self._written(type_, number, payload))

    def _written(self, type_: str, number: Any, payload: dict[str, Any]) -> bytes:
        return msgspec.json.encode(Message(type_, number, self._wall(), payload))


class Unread(Struct, frozen=True):
    """A message that says nothing; its id, if that much can be made out."""

    reason: str
    id: Any = None


def _read(data: bytes) -> Message | Unread:
    try:
        said = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return Unread(f"not JSON: {problem}")
    number = said.get("id") if isinstance(said, dict) else None
    try:
        return msgspec.convert(said, Message)
    except msgspec.ValidationError as problem:
        return Unread(f"{problem}; a message is {{type, id, timestamp, payload}}", number)


def _payload(message: Message, kind: type[Any]) -> Any:
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
        "tcp_mm_deg": _mm_deg(view.tcp, 3),
        **_axes(view),
    }


def _axes(view: RobotView) -> dict[str, Any]:
    key = "axes_mm_deg" if view.linear else "joints_deg"
    return {key: _mm_deg(view.q, view.linear)}


def _mm_deg(values: Any, linear: int) -> list[float]:
    """The first ones are lengths, the others angles."""
    return [v / MM for v in values[:linear]] + [v / DEG for v in values[linear:]]
