"""The control endpoint: one JSON request a line, one JSON reply a line.

> {"id": 1, "do": "advance", "seconds": 3, "secret": "…"}\\n
< {"id": 1, "ok": true, "result": {"now_s": 3.0}}\\n
> {"id": 2, "do": "rte"}\\n
< {"id": 2, "ok": false, "code": 1, "error": "unknown command 'rte'; …"}\\n

The first request carries the secret of the run. The connection is closed after a missing or wrong
secret, and after a line that is no JSON object: it is not from a client of this endpoint.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from understudy.errors import UNREADABLE, Refused
from understudy.operator.doors import (
    OPEN,
    Admission,
    Door,
    DoorSession,
    Lock,
    real_refusal,
)
from understudy.ports import HANG_UP, CommandTable
from understudy.ports.hmi import NOT_A_REQUEST, Later
from understudy.protocol.sessions import LineReader, Outbox, TextLine

LONGEST_LINE = 64 * 1024 * 1024  # a snapshot fits
LONGEST_FIRST_LINE = 16 * 1024
"""Bytes of the first request, which is read before the client has given the secret."""
NO_COMMAND = 'a request names its command under the key "do", for example {"do": "status"}'
OUTBOX_LIMIT = 1024 * 1024
READ_SIZE = 64 * 1024

Late = Callable[[], object]
"""Called when an answer is ready that the client has not just asked for."""


class ControlSession(DoorSession):
    """`Session` of one client; its requests are answered in their order."""

    def __init__(
        self,
        commands: CommandTable,
        outbox: Outbox,
        leave: Callable[[], None],
        late: Late,
        *,
        lock: Lock,
    ) -> None:
        self._commands = commands
        self._outbox = outbox
        self._leave = leave
        self._late = late
        self.admission = Admission(lock)
        self._first_line = bytearray()
        self._lines = LineReader(LONGEST_LINE)
        self._unanswered: deque[TextLine] = deque()
        self._waiting = False
        self._over = False

    def receive(self, data: bytes, now: int) -> None:
        while data and not self._over:
            if self.admission.admitted:
                self._unanswered.extend(self._lines.feed(data))
                data = b""
            else:
                data = self._read_first(data)
            self._answer_all()

    def _read_first(self, data: bytes) -> bytes:
        """Reads to the end of the line; returns what comes after it."""
        line, ended, rest = data.partition(b"\n")
        self._first_line += line
        if len(self._first_line) > LONGEST_FIRST_LINE:
            reason = f"the first request has over {LONGEST_FIRST_LINE} bytes; give the secret first"
            self._refuse(None, f'{reason}, for instance with {{"do": "now"}}', NOT_A_REQUEST)
            self.hang_up()
        elif ended:
            self._unanswered.append(TextLine(bytes(self._first_line), too_long=False))
            self._first_line.clear()
        return rest

    def _answer_all(self) -> None:
        """Answers one request after the other; a slow one delays those behind it."""
        while self._unanswered and not self._waiting:
            line = self._unanswered.popleft()
            if line.too_long:
                self._not_a_request(f"a line over {LONGEST_LINE} bytes")
            elif line.data.strip():
                self._answer(line.data)

    def credit(self) -> int:
        if self._over:
            return 0 if self._outbox.size else HANG_UP
        full = self._outbox.size >= OUTBOX_LIMIT
        return 0 if full or self._waiting else READ_SIZE

    def owed(self) -> bool:
        return self._waiting

    def hang_up(self) -> None:
        self._over = True
        self._unanswered.clear()
        self._first_line.clear()
        self._outbox.end()

    def _answer(self, line: bytes) -> None:
        try:
            request = msgspec.json.decode(line)
        except UNREADABLE as problem:
            return self._not_a_request(f"not JSON: {problem}")
        if not isinstance(request, dict):
            return self._not_a_request(f"a request is a JSON object; {NO_COMMAND}")
        number, name = request.pop("id", None), request.pop("do", None)
        if refused := self.admission.check(request.pop("secret", None)):
            self._refuse(number, refused.reason, refused.code)
            return self.hang_up()
        if not isinstance(name, str):
            return self._refuse(number, NO_COMMAND, NOT_A_REQUEST)
        return self._call(number, name, request)

    def _call(self, number: Any, name: str, parameters: dict[str, Any]) -> None:
        if not self.admission.trusted and self._commands.needs_secret(name):
            return self._reply(number, real_refusal(name))
        result = self._commands.call(name, parameters, "operator")
        if not isinstance(result, Later):
            return self._reply(number, result)
        self._waiting = True
        return result.then(lambda result: self._reply_late(number, result))

    def _reply_late(self, number: Any, result: Any) -> None:
        self._waiting = False
        self._reply(number, result)
        self._answer_all()
        self._late()

    def _not_a_request(self, reason: str) -> None:
        """Hangs up; a client that was never admitted gets no answer."""
        if self.admission.admitted:
            self._refuse(None, f"{reason}; the connection is closed", NOT_A_REQUEST)
        self.hang_up()

    def _reply(self, number: Any, result: Any) -> None:
        if isinstance(result, Refused):
            self._refuse(number, result.reason, result.code)
        else:
            self._send({"id": number, "ok": True, "result": result})

    def _refuse(self, number: Any, reason: str, code: int) -> None:
        self._send({"id": number, "ok": False, "code": code, "error": reason})

    def _send(self, answer: Mapping[str, Any]) -> None:
        self._outbox.send(msgspec.json.encode(answer) + b"\n")


def control_face(
    commands: CommandTable,
    late: Late = lambda: None,
    *,
    lock: Lock = OPEN,
) -> Door[ControlSession]:
    """The face of the control endpoint."""

    def session(outbox: Outbox, leave: Callable[[], None]) -> ControlSession:
        return ControlSession(commands, outbox, leave, late, lock=lock)

    return Door(session)
