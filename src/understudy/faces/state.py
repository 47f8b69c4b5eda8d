"""The state socket: what a page draws, in frames that are asked for one by one.

Both ways, a length (4 bytes, big-endian) and a msgpack map:

> {"want": "frame", "trail_from": {"g60": [120, 0]}}
< {"seq": 7, "t": 3.2, "rate": 1.0, "robots": {…}, "trail": {"g60": [120, [[x, y, z], …], 0]}, …}
> {"want": "tea"}
< {"error": {"code": 10, "message": "…"}}

The pace is the client's: nothing is sent that was not asked for, so nothing accumulates.
"""

import struct
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from understudy.faces.outbox import Outbox, Stirred
from understudy.ports import HANG_UP
from understudy.ports.hmi import NOT_A_REQUEST, Known, Watch

LENGTH = struct.Struct(">I")
LONGEST_REQUEST = 64 * 1024
READ_SIZE = 64 * 1024


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """``trail_from``: of which robot's trail how many points are known, and of which version."""

    want: Literal["frame"]
    trail_from: dict[str, Known] = {}


_decoder = msgspec.msgpack.Decoder(Request)
_encoder = msgspec.msgpack.Encoder()


class StateSession:
    """`Session` of one client; one that takes no frames is read no further."""

    def __init__(self, face: "StateFace", peer: str) -> None:
        self._face = face
        self._peer = peer
        self._unread = bytearray()
        self._outbox = Outbox(lambda: face.stir.add(peer))
        self._lost = False

    def receive(self, data: bytes, now: int) -> None:
        self._unread += data
        while not self._lost and (request := self._next()) is not None:
            self._outbox.say(framed(self._answer(request)))

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._face.forget(self._peer)

    def credit(self) -> int:
        if self._outbox.size:
            return 0
        return HANG_UP if self._lost else READ_SIZE

    def owed(self) -> bool:
        return False

    def _next(self) -> bytes | None:
        """The next whole request; after one that is too long nothing can be made out any more."""
        if len(self._unread) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._unread)
        if length > LONGEST_REQUEST:
            self._lost = True
            reason = f"a request of {length} bytes; at most {LONGEST_REQUEST}"
            self._outbox.say(framed(_error(reason)))
            return None
        end = LENGTH.size + length
        if len(self._unread) < end:
            return None
        request = bytes(self._unread[LENGTH.size : end])
        del self._unread[:end]
        return request

    def _answer(self, request: bytes) -> bytes:
        try:
            asked = _decoder.decode(request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return _error(f"{problem}; a request is {{'want': 'frame', 'trail_from': {{…}}}}")
        return _encoder.encode(self._face.watch.look(asked.trail_from))


class StateFace:
    """`Face` beside the cell: looking at a cell is no part of it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.stir = Stirred()
        self._sessions: dict[str, StateSession] = {}

    def open(self, peer: str, now: int) -> StateSession:
        self._sessions[peer] = StateSession(self, peer)
        return self._sessions[peer]

    def sessions(self) -> Mapping[str, StateSession]:
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


def framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message


def _error(reason: str) -> bytes:
    return _encoder.encode({"error": {"code": NOT_A_REQUEST, "message": reason}})
