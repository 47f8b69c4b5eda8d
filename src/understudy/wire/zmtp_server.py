"""The peers of a ZeroMQ socket: handshake, limits, and flow control over TCP connections."""

import asyncio
import logging
from typing import Any, Protocol

from understudy.ports import UNLIMITED
from understudy.wire import tcp
from understudy.wire.interface import Sink
from understudy.wire.zmtp import PasswordCheck, ZmtpError, ZmtpReader

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
"""From the connection to the end of the handshake."""
ALL_UNFINISHED = 64 * 1024 * 1024
"""Bytes of all incomplete messages of an endpoint; the peer that has most of them is closed."""


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
        self._endpoint = endpoint
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
        log.info("%s: a client was disconnected: %s", self._endpoint, reason)
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
