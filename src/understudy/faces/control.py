"""The control endpoint: JSON lines, one reply a line.

> {"id": 1, "do": "advance", "seconds": 3}\\n
< {"id": 1, "ok": true, "result": {"now_s": 3.0}}\\n
> {"id": 2, "do": "rte"}\\n
< {"id": 2, "ok": false, "code": 1, "error": "unknown command 'rte'; …"}\\n
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from understudy.errors import Refused
from understudy.faces.lines import LineReader
from understudy.faces.outbox import Outbox, Stirred
from understudy.ports import Desk

LONGEST_LINE = 64 * 1024 * 1024  # a snapshot fits
OUTBOX_LIMIT = 1024 * 1024
READ_SIZE = 64 * 1024
NOT_A_REQUEST = 10


class ControlSession:
    """`Session` of one client; it is answered at once, always."""

    def __init__(self, face: "ControlFace", peer: str) -> None:
        self._face = face
        self._peer = peer
        self._lines = LineReader(LONGEST_LINE)
        self._outbox = Outbox(lambda: face.stir.add(peer))

    def receive(self, data: bytes, now: int) -> None:
        for line in self._lines.feed(data):
            if line.too_long:
                self._refuse(None, f"a line over {LONGEST_LINE} bytes", NOT_A_REQUEST)
            elif line.data.strip():
                self._answer(line.data)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._face.forget(self._peer)

    def credit(self) -> int:
        return READ_SIZE if self._outbox.size < OUTBOX_LIMIT else 0

    def owed(self) -> bool:
        return False

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
        result = self._face.desk.call(name, request, "operator")
        if isinstance(result, Refused):
            return self._refuse(number, result.reason, result.code)
        return self._say({"id": number, "ok": True, "result": result})

    def _refuse(self, number: Any, reason: str, code: int) -> None:
        self._say({"id": number, "ok": False, "code": code, "error": reason})

    def _say(self, answer: Mapping[str, Any]) -> None:
        self._outbox.say(msgspec.json.encode(answer) + b"\n")


class ControlFace:
    """`Face` beside the cell: it commands the clock, so it is no part of what the clock drives."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.stir = Stirred()
        self._sessions: dict[str, ControlSession] = {}

    def open(self, peer: str, now: int) -> ControlSession:
        self._sessions[peer] = ControlSession(self, peer)
        return self._sessions[peer]

    def sessions(self) -> Mapping[str, ControlSession]:
        return self._sessions

    def stirred(self) -> list[str]:
        return self.stir.drain()

    def forget(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> dict[str, int]:
        return {"clients": len(self._sessions)}

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None
