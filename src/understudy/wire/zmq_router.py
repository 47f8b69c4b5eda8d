"""A ZeroMQ ROUTER socket: request and reply with any number of peers, each with its identity.

The identity of a peer is its name; the frames between identity and payload (REQ clients send an
empty one) are the reply address of its messages, in hexadecimal, each after a slash. A session
lives as long as its connection.
"""

import itertools
from typing import Any

from understudy.ports import WireMessage
from understudy.wire import tcp, zmtp
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Server
from understudy.wire.zmtp import ZmtpPeer, ZmtpServer

SELECTED_BY: dict[str, Any] = {}
LARGEST_ENVELOPE = 4096
"""Bytes of the frames before the payload."""


class Config(tcp.Config, frozen=True, forbid_unknown_fields=True):
    """Where a ZeroMQ socket listens; the keys are those of TCP."""

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return ZmtpServer(endpoint, self, b"ROUTER", ZmqRouter(endpoint, events))


class ZmqRouter:
    """`ZmtpSocket` of one endpoint; plain REQ clients are served as well as DEALERs."""

    def __init__(self, endpoint: str, events: PeerEvents) -> None:
        self._endpoint = endpoint
        self._events = events
        self._connections: dict[ZmtpPeer, Connection] = {}
        self._identities: set[bytes] = set()
        self._numbers = itertools.count(1)

    def joined(self, peer: ZmtpPeer) -> None:
        """A peer without an identity gets one; one that is in use is refused, as libzmq does."""
        identity = peer.reader.identity or b"\0" + next(self._numbers).to_bytes(4, "big")
        if identity in self._identities:
            raise zmtp.ZmtpError("its identity belongs to another client")
        self._identities.add(identity)
        peer.reader.identity = identity
        self._connections[peer] = self._events.open(
            self._endpoint, RouterPeer(peer), identity.hex()
        )

    def heard(self, peer: ZmtpPeer, frames: list[bytes]) -> None:
        *envelope, payload = frames
        if sum(map(len, envelope)) > LARGEST_ENVELOPE:
            raise zmtp.ZmtpError(f"an envelope of more than {LARGEST_ENVELOPE} bytes")
        reply_to = "".join(f"/{frame.hex()}" for frame in envelope)
        self._events.receive(self._connections[peer], WireMessage("", payload, reply_to))

    def drained(self, peer: ZmtpPeer) -> None:
        self._events.drained(self._connections[peer])

    def left(self, peer: ZmtpPeer) -> None:
        self._identities.remove(peer.reader.identity)
        self._events.closed(self._connections.pop(peer))


class RouterPeer:
    """`Sink` of one peer: sends messages in their envelope."""

    def __init__(self, peer: ZmtpPeer) -> None:
        self._peer = peer

    def room(self) -> int:
        return self._peer.sink.room()

    def send(self, message: WireMessage) -> None:
        envelope = [bytes.fromhex(frame) for frame in message.address.split("/")[1:]]
        self._peer.sink.send(zmtp.message([*envelope, message.payload, *message.more]))

    def read_more(self, wanted: bool) -> None:
        self._peer.read_more(wanted)

    def close(self) -> None:
        self._peer.sink.close()
