"""The state socket: frames for a page to draw, each sent on request.

Both ways, a length (4 bytes, big-endian) and a msgpack map:

> {"want": "frame", "trail_from": {"g60": [120, 0]}, "secret": "…"}
< {"seq": 7, "t": 3.2, "rate": 1.0, "robots": {…}, "trail": {"g60": [120, [[x, y, z], …], 0]}, …}
> {"want": "fleet"}
< {"seq": 8, "t": 3.2, "real": 3.4, "count": 10, "pose": …, "speed": …, …}
> {"want": "tea"}
< {"error": {"code": 10, "message": "…"}}

The client sets the pace: each frame answers a request, so no frames queue up. The first request
carries the secret of the run, as on the control endpoint.
"""

import struct
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from understudy.errors import UNREADABLE, Refused
from understudy.operator.doors import OPEN, Admission, Door, DoorSession, Lock
from understudy.ports import HANG_UP
from understudy.ports.hmi import NO_GROUP, NOT_A_REQUEST, Known, Watch, WatchesGroup
from understudy.protocol.sessions import Outbox

LENGTH = struct.Struct(">I")
LONGEST_REQUEST = 64 * 1024
READ_SIZE = 64 * 1024


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """What a client asks for. ``trail_from`` says how many trail points of each robot the client
    has, and their version."""

    want: Literal["frame", "fleet"]
    trail_from: dict[str, Known] = {}
    secret: str | None = None


_decoder = msgspec.msgpack.Decoder(Request)
_encoder = msgspec.msgpack.Encoder()


class StateSession(DoorSession):
    """`Session` of one client; it reads no further request until the client takes its frame."""

    def __init__(
        self, watch: Watch, outbox: Outbox, leave: Callable[[], None], *, lock: Lock
    ) -> None:
        self._watch = watch
        self.admission = Admission(lock)
        self._outbox = outbox
        self._leave = leave
        self._unread = bytearray()
        self._broken = False

    def receive(self, data: bytes, now: int) -> None:
        self._unread += data
        while not self._broken and (request := self._next()) is not None:
            self._outbox.send(framed(self._answer(request)))

    def credit(self) -> int:
        if self._outbox.size:
            return 0
        return HANG_UP if self._broken else READ_SIZE

    def hang_up(self) -> None:
        self._broken = True
        self._unread.clear()
        self._outbox.end()

    def _next(self) -> bytes | None:
        """The next whole request; after one that is too long the stream cannot be read any more."""
        if len(self._unread) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._unread)
        if length > LONGEST_REQUEST:
            reason = f"a request of {length} bytes; at most {LONGEST_REQUEST}"
            self._outbox.send(framed(_error(reason)))
            self.hang_up()
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
        except UNREADABLE as problem:
            if not self.admission.admitted:
                self.hang_up()
            return _error(f"{problem}; a request is {{'want': 'frame', 'trail_from': {{…}}}}")
        if isinstance(refused := self.admission.check(asked.secret), Refused):
            self.hang_up()
            return _error(refused.reason, refused.code)
        if asked.want == "frame":
            return _encoder.encode(self._watch.look(asked.trail_from))
        watch = self._watch
        group = watch.look_at_group() if isinstance(watch, WatchesGroup) else NO_GROUP
        if isinstance(group, Refused):
            return _error(group.reason)
        return _encoder.encode(group)


def state_face(watch: Watch, *, lock: Lock = OPEN) -> Door[StateSession]:
    """The face of the state socket."""
    return Door(lambda outbox, leave: StateSession(watch, outbox, leave, lock=lock))


def framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message


def _error(reason: str, code: int = NOT_A_REQUEST) -> bytes:
    return _encoder.encode({"error": {"code": code, "message": reason}})
