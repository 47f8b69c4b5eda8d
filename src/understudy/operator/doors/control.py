"""The control endpoint: one JSON request a line, one JSON reply a line.

> {"id": 1, "do": "advance", "seconds": 3}\\n
< {"id": 1, "ok": true, "result": {"now_s": 3.0}}\\n
> {"id": 2, "do": "rte"}\\n
< {"id": 2, "ok": false, "code": 1, "error": "unknown command 'rte'; …"}\\n
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from understudy.errors import Refused
from understudy.operator.doors.beside import Door, DoorSession
from understudy.ports import CommandTable
from understudy.ports.hmi import Later
from understudy.protocol.sessions import LineReader, Outbox, TextLine

LONGEST_LINE = 64 * 1024 * 1024  # a snapshot fits
OUTBOX_LIMIT = 1024 * 1024
READ_SIZE = 64 * 1024
NOT_A_REQUEST = 10

Late = Callable[[], object]
"""Called when an answer is ready that the client has not just asked for."""


class ControlSession(DoorSession):
    """`Session` of one client; its requests are answered in their order."""

    def __init__(
        self, commands: CommandTable, outbox: Outbox, leave: Callable[[], None], late: Late
    ) -> None:
        self._commands = commands
        self._outbox = outbox
        self._leave = leave
        self._late = late
        self._lines = LineReader(LONGEST_LINE)
        self._unanswered: deque[TextLine] = deque()
        self._waiting = False

    def receive(self, data: bytes, now: int) -> None:
        self._unanswered.extend(self._lines.feed(data))
        self._answer_all()

    def _answer_all(self) -> None:
        """Answers one request after the other; a slow one delays those behind it."""
        while self._unanswered and not self._waiting:
            line = self._unanswered.popleft()
            if line.too_long:
                self._refuse(None, f"a line over {LONGEST_LINE} bytes", NOT_A_REQUEST)
            elif line.data.strip():
                self._answer(line.data)

    def credit(self) -> int:
        full = self._outbox.size >= OUTBOX_LIMIT
        return 0 if full or self._waiting else READ_SIZE

    def owed(self) -> bool:
        return self._waiting

    def _answer(self, line: bytes) -> None:
        try:
            request = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return self._refuse(None, f"not JSON: {problem}", NOT_A_REQUEST)
        if not isinstance(request, dict):
            return self._refuse(None, "a request is an object with 'do'", NOT_A_REQUEST)
        number, name = request.pop("id", None), request.pop("do", None)
        if not isinstance(name, str):
            return self._refuse(number, "'do' names a command", NOT_A_REQUEST)
        result = self._commands.call(name, request, "operator")
        if not isinstance(result, Later):
            return self._reply(number, result)
        self._waiting = True
        return result.then(lambda result: self._reply_late(number, result))

    def _reply_late(self, number: Any, result: Any) -> None:
        self._waiting = False
        self._reply(number, result)
        self._answer_all()
        self._late()

    def _reply(self, number: Any, result: Any) -> None:
        if isinstance(result, Refused):
            self._refuse(number, result.reason, result.code)
        else:
            self._send({"id": number, "ok": True, "result": result})

    def _refuse(self, number: Any, reason: str, code: int) -> None:
        self._send({"id": number, "ok": False, "code": code, "error": reason})

    def _send(self, answer: Mapping[str, Any]) -> None:
        self._outbox.send(msgspec.json.encode(answer) + b"\n")


def control_face(commands: CommandTable, late: Late = lambda: None) -> Door[ControlSession]:
    """The face of the control endpoint."""
    return Door(lambda outbox, leave: ControlSession(commands, outbox, leave, late))
