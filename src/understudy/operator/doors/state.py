"""The state socket: what a page draws, in frames that are asked for one by one.

Both ways, a length (4 bytes, big-endian) and a msgpack map:

> {"want": "frame", "trail_from": {"g60": [120, 0]}}
< {"seq": 7, "t": 3.2, "rate": 1.0, "robots": {…}, "trail": {"g60": [120, [[x, y, z], …], 0]}, …}
> {"want": "tea"}
< {"error": {"code": 10, "message": "…"}}

The pace is the client's: nothing is sent that was not asked for, so nothing accumulates.
"""

import struct
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from understudy.operator.doors.beside import FaceBeside
from understudy.ports import HANG_UP
from understudy.ports.hmi import NOT_A_REQUEST, Known, Watch
from understudy.protocol.sessions import Outbox

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

    def __init__(self, watch: Watch, outbox: Outbox, leave: Callable[[], None]) -> None:
        self._watch = watch
        self._outbox = outbox
        self._leave = leave
        self._unread = bytearray()
        self._lost = False

    def receive(self, data: bytes, now: int) -> None:
        self._unread += data
        while not self._lost and (request := self._next()) is not None:
            self._outbox.send(framed(self._answer(request)))

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._leave()

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
            self._outbox.send(framed(_error(reason)))
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
        return _encoder.encode(self._watch.look(asked.trail_from))


def state_face(watch: Watch) -> FaceBeside[StateSession]:
    """Looking at a cell is no part of it."""
    return FaceBeside(lambda outbox, leave: StateSession(watch, outbox, leave))


def framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message


def _error(reason: str) -> bytes:
    return _encoder.encode({"error": {"code": NOT_A_REQUEST, "message": reason}})
