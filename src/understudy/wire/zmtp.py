"""ZMTP 3, the protocol of ZeroMQ, as a server speaks it, and the peers of such a server.

`ZmtpReader` turns bytes into messages, all of it bounded; `ZmtpServer` has the peers of a socket
over TCP, with handshake, limits and flow control.

libzmq limits the size of a frame, but neither the number of frames of a message nor the number of
connections: a message that never ends takes all memory. This reader knows every limit. It speaks
ZMTP 3.0 and 3.1 (libzmq 4 and later, 2013) with the mechanism NULL, or with PLAIN (RFC 24) where a
password is needed. Older versions have no greeting: an HTTP request could be read as messages.

    greeting   FF 00×8 7F | major minor | mechanism, 20 bytes | as-server | 31 bytes
    frame      flags (1 MORE, 2 LONG, 4 COMMAND) | size, 1 byte or 8 if LONG | body
    command    size of the name | name | data
    READY      data is properties: size of the name | name | size, 4 bytes | value
    PLAIN      client HELLO (user, password), server WELCOME, client INITIATE (properties), server
               READY; with NULL each side sends READY at once
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from understudy.ports import UNLIMITED
from understudy.wire import tcp
from understudy.wire.interface import Sink

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 8 * 1024 * 1024
"""Bytes of all frames of a message."""
MOST_FRAMES = 64
LARGEST_COMMAND = 4096
LONGEST_IDENTITY = 255
LONGEST_PING = 16
"""Bytes of a ping's context, as the specification says."""

HANDSHAKE_SECONDS = 10.0
"""Longest time from the connection to the end of the handshake."""
ALL_UNFINISHED = 64 * 1024 * 1024
"""Bytes of all incomplete messages of an endpoint; the peer that has most of them is closed."""

MORE, LONG, COMMAND = 1, 2, 4
SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
GREETING_SIZE = 64
NULL, PLAIN = b"NULL".ljust(20, b"\0"), b"PLAIN".ljust(20, b"\0")
ACCEPTED = {b"ROUTER": (b"REQ", b"DEALER", b"ROUTER"), b"XPUB": (b"SUB", b"XSUB")}
"""Kind of socket → kinds of the peers that it serves."""
SUBSCRIPTIONS = {b"SUBSCRIBE": b"\x01", b"CANCEL": b"\x00"}
"""Commands of ZMTP 3.1 → first byte of the message that means the same in ZMTP 3.0."""

_long = struct.Struct(">Q")
_value_size = struct.Struct(">I")


PasswordCheck = Callable[[bytes], bool]


def greeting(mechanism: bytes = NULL, *, server: bool = False) -> bytes:
    head = SIGNATURE + b"\x03\x01" + mechanism + bytes([server])
    return head.ljust(GREETING_SIZE, b"\0")


class ZmtpError(Exception):
    """The peer broke the protocol or a limit; the connection is to be closed."""


class ZmtpReader:
    """Reads the stream of one peer; `replies` are bytes to send to it."""

    def __init__(self, kind: bytes, password: PasswordCheck | None = None) -> None:
        """``kind`` is `ROUTER` or `XPUB`; ``password`` checks the password that is then needed."""
        self._kind = kind
        self._password = password
        self._mechanism = NULL if password is None else PLAIN
        self._steps = iter((self._ready,) if password is None else (self._hello, self._initiate))
        self._unread = bytearray()
        self._frames: list[bytes] = []
        self._size = 0
        self._greeted = False
        self.ready = False
        self.identity = b""
        self.replies = bytearray(greeting(self._mechanism, server=password is not None))
        if password is None:
            self.replies += command(b"READY", _properties(kind))

    @property
    def unfinished(self) -> int:
        """Bytes that are kept of a message that is not complete."""
        return len(self._unread) + self._size

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """The messages that are complete with these bytes, as their frames."""
        self._unread += data
        if not self._greeted and not self._greet():
            return
        while (frame := self._next_frame()) is not None:
            flags, body = frame
            if flags & COMMAND:
                subscription = self._obey(body)
                if subscription is not None:
                    yield [subscription]
                continue
            if not self.ready:
                raise ZmtpError("a message before READY")
            self._frames.append(body)
            self._size += len(body)
            if not flags & MORE:
                message, self._frames, self._size = self._frames, [], 0
                yield message

    def _greet(self) -> bool:
        """Reads the greeting; a wrong one is refused at its first wrong byte."""
        head = bytes(self._unread[: len(SIGNATURE) + 1])
        for at, byte in enumerate(head):
            wanted = 3 if at == len(SIGNATURE) else SIGNATURE[at]
            # Bytes 1 to 8 are a size in older versions, and not defined in this one.
            wrong = byte < wanted if at == len(SIGNATURE) else byte != wanted and at in (0, 9)
            if wrong:
                raise ZmtpError("not ZMTP 3")
        if len(self._unread) < GREETING_SIZE:
            return False
        if bytes(self._unread[12:32]) != self._mechanism:
            needed = self._mechanism.rstrip(b"\0").decode()
            raise ZmtpError(f"a security mechanism other than {needed}")
        del self._unread[:GREETING_SIZE]
        self._greeted = True
        return True

    def _next_frame(self) -> tuple[int, bytes] | None:
        if len(self._unread) < 2:
            return None
        flags = self._unread[0]
        begin = 9 if flags & LONG else 2
        if flags > 7 or (flags & COMMAND and flags & MORE):
            raise ZmtpError(f"flags {flags}")
        if len(self._unread) < begin:
            return None
        size = _long.unpack_from(self._unread, 1)[0] if flags & LONG else self._unread[1]
        self._check(flags, size)
        if len(self._unread) < begin + size:
            return None
        body = bytes(self._unread[begin : begin + size])
        del self._unread[: begin + size]
        return flags, body

    def _check(self, flags: int, size: int) -> None:
        """Refuses a frame by its size, before its body has arrived."""
        if flags & COMMAND:
            if size > LARGEST_COMMAND:
                raise ZmtpError(f"a command of {size} bytes; at most {LARGEST_COMMAND}")
        elif self._size + size > LARGEST_MESSAGE:
            raise ZmtpError(f"a message of more than {LARGEST_MESSAGE} bytes")
        elif len(self._frames) >= MOST_FRAMES:
            raise ZmtpError(f"a message of more than {MOST_FRAMES} frames")

    def _obey(self, body: bytes) -> bytes | None:
        """Carries out a command; returns the message that a subscription means."""
        length = body[0] if body else 0
        name, data = body[1 : 1 + length], body[1 + length :]
        if name == b"ERROR":
            raise ZmtpError("the client refuses this socket")
        if not self.ready:
            next(self._steps)(name, data)
        elif name == b"PING":
            self.replies += command(b"PONG", data[2 : 2 + LONGEST_PING])
        elif name in SUBSCRIPTIONS:
            return SUBSCRIPTIONS[name] + data
        return None

    # ── handshake: one step for each command of the client ──

    def _ready(self, name: bytes, data: bytes) -> None:
        _expect(b"READY", name)
        self._join(data)

    def _hello(self, name: bytes, data: bytes) -> None:
        _expect(b"HELLO", name)
        after_user = data[1 + data[0] :] if data else b""
        given = after_user[1 : 1 + after_user[0]] if after_user else b""
        assert self._password is not None
        if not self._password(given):
            reason = b"wrong password"
            self.replies += command(b"ERROR", bytes([len(reason)]) + reason)
            raise ZmtpError(reason.decode())
        self.replies += command(b"WELCOME", b"")

    def _initiate(self, name: bytes, data: bytes) -> None:
        _expect(b"INITIATE", name)
        self._join(data)
        self.replies += command(b"READY", _properties(self._kind))

    def _join(self, data: bytes) -> None:
        found = dict(_read_properties(data))
        peer = found.get(b"socket-type", b"")
        self.identity = found.get(b"identity", b"")
        if len(self.identity) > LONGEST_IDENTITY:
            raise ZmtpError(f"an identity of more than {LONGEST_IDENTITY} bytes")
        if peer not in ACCEPTED[self._kind]:
            raise ZmtpError(f"a socket {peer[:20]!r} at a {self._kind.decode()}")
        self.ready = True


def _expect(wanted: bytes, name: bytes) -> None:
    if name != wanted:
        raise ZmtpError(f"the command {name[:20]!r} before {wanted.decode()}")


def message(frames: list[bytes]) -> bytes:
    """The bytes of a message."""
    last = len(frames) - 1
    return b"".join(_frame(MORE if at < last else 0, body) for at, body in enumerate(frames))


def command(name: bytes, data: bytes) -> bytes:
    return _frame(COMMAND, bytes([len(name)]) + name + data)


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) > 255:
        return bytes([flags | LONG]) + _long.pack(len(body)) + body
    return bytes([flags, len(body)]) + body


def _properties(kind: bytes) -> bytes:
    pairs = ((b"Socket-Type", kind), (b"Identity", b""))
    return b"".join(
        bytes([len(name)]) + name + _value_size.pack(len(value)) + value for name, value in pairs
    )


def _read_properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names in lower case, with their values."""
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        value_at = name_end + _value_size.size
        if value_at > len(data):
            raise ZmtpError("damaged properties")
        end = value_at + _value_size.unpack_from(data, name_end)[0]
        if end > len(data):
            raise ZmtpError("damaged properties")
        yield data[at + 1 : name_end].lower(), data[value_at:end]
        at = end


# ── peers of a socket ───────────────────────────────────────────────────────────────────────────


class ZmtpPeer:
    """One connection of a ZeroMQ socket."""

    def __init__(self, sink: Sink[bytes], reader: ZmtpReader) -> None:
        self.sink = sink
        self.reader = reader
        self.joined = False
        self.closed = False
        self.unfinished = 0
        self.handshake: asyncio.TimerHandle | None = None
        self._wanted = self._reading = True
        self._waiting = False

    def is_admitted(self) -> bool:
        return self.joined

    def read_more(self, wanted: bool) -> None:
        self._wanted = wanted
        self._set_reading()

    def send_replies(self) -> None:
        """Answers the handshake and pings; a peer that does not take them is not read from."""
        if self.reader.replies:
            self.sink.send(bytes(self.reader.replies))
            self.reader.replies.clear()
            self._waiting = self.sink.room() < UNLIMITED
            self._set_reading()

    def drained(self) -> None:
        self._waiting = False
        self._set_reading()

    def _set_reading(self) -> None:
        reading = self._wanted and not self._waiting
        if reading != self._reading and not self.closed:
            self._reading = reading
            self.sink.read_more(reading)


class ZmtpSocket(Protocol):
    """A kind of ZeroMQ socket; a ZmtpError of `joined` or `heard` closes the peer."""

    def joined(self, peer: ZmtpPeer) -> None:
        """The handshake is complete."""
        ...

    def heard(self, peer: ZmtpPeer, frames: list[bytes]) -> None: ...

    def drained(self, peer: ZmtpPeer) -> None: ...

    def left(self, peer: ZmtpPeer) -> None:
        """A peer that had joined is gone."""
        ...


class ZmtpServer:
    """Listens for the peers of one socket; `ConnectionEvents` of its TCP server."""

    def __init__(self, endpoint: str, config: tcp.Config, kind: bytes, owner: ZmtpSocket) -> None:
        self.endpoint = endpoint
        self._kind = kind
        self._owner = owner
        self._peers: set[ZmtpPeer] = set()
        self._unfinished = 0
        self.password: PasswordCheck | None = None
        """Set before `start`: checks the password that each peer has to send."""
        self._tcp = tcp.TcpServer(endpoint, config, self)

    async def start(self) -> str:
        return await self._tcp.start()

    async def stop(self) -> None:
        await self._tcp.stop()

    def limit_clients(self, most: int) -> None:
        self._tcp.limit_clients(most)

    # ── events of TCP ──

    def open(self, endpoint: str, sink: Sink[Any], peer: str = "") -> Any:
        joining = ZmtpPeer(sink, ZmtpReader(self._kind, self.password))
        self._peers.add(joining)
        reason = f"no handshake within {HANDSHAKE_SECONDS:g} s"
        joining.handshake = asyncio.get_running_loop().call_later(
            HANDSHAKE_SECONDS, self._close, joining, reason
        )
        joining.send_replies()
        return joining

    def receive(self, connection: Any, data: Any) -> None:
        peer: ZmtpPeer = connection
        if peer.closed:
            return
        try:
            for frames in peer.reader.feed(data):
                self._join(peer)
                self._owner.heard(peer, frames)
            self._join(peer)
        except ZmtpError as problem:
            peer.send_replies()
            self._close(peer, str(problem))
            return
        peer.send_replies()
        self._count(peer, peer.reader.unfinished)
        if self._unfinished > ALL_UNFINISHED:
            largest = max(self._peers, key=lambda each: each.unfinished)
            self._close(largest, f"more than {ALL_UNFINISHED} bytes of incomplete messages")

    def eof(self, connection: Any) -> None:
        connection.sink.close()

    def closed(self, connection: Any) -> None:
        self._forget(connection)

    def drained(self, connection: Any) -> None:
        connection.drained()
        if connection.joined:
            self._owner.drained(connection)

    # ── inside ──

    def _join(self, peer: ZmtpPeer) -> None:
        if peer.joined or not peer.reader.ready:
            return
        _cancel_handshake(peer)
        self._owner.joined(peer)
        peer.joined = True

    def _close(self, peer: ZmtpPeer, reason: str) -> None:
        log.info("%s: a client was disconnected: %s", self.endpoint, reason)
        self._forget(peer)
        peer.sink.close()

    def _forget(self, peer: ZmtpPeer) -> None:
        if peer not in self._peers:
            return
        self._peers.remove(peer)
        peer.closed = True
        _cancel_handshake(peer)
        self._count(peer, 0)
        if peer.joined:
            self._owner.left(peer)

    def _count(self, peer: ZmtpPeer, unfinished: int) -> None:
        self._unfinished += unfinished - peer.unfinished
        peer.unfinished = unfinished


def _cancel_handshake(peer: ZmtpPeer) -> None:
    if peer.handshake is not None:
        peer.handshake.cancel()
        peer.handshake = None
