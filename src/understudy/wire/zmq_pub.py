"""A ZeroMQ PUB socket: messages to every subscriber of their topic.

The socket is an XPUB, which reports subscriptions: its one session receives them as messages. A
message with an address goes out as two frames, topic and payload; one without an address as one
frame. A subscriber that does not take its messages misses some.

A subscriber says nothing that a face could check. Where other machines can reach the socket, it
asks for a password by ZeroMQ's PLAIN mechanism (RFC 24).
"""

from typing import Any

from understudy.ports import SUBSCRIBE, UNLIMITED, UNSUBSCRIBE, WireMessage
from understudy.ports.access import is_key
from understudy.wire import tcp, zmtp
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Server
from understudy.wire.zmtp import ZmtpPeer, ZmtpServer

SELECTED_BY: dict[str, Any] = {}
SUBSCRIBERS = "subscribers"
"""Name of the one peer."""
MOST_TOPICS, LONGEST_TOPIC = 100, 255
"""Subscriptions of one subscriber, and bytes of each."""


class Config(tcp.Config, frozen=True, forbid_unknown_fields=True):
    """Where a ZeroMQ PUB socket listens; the keys are those of TCP."""

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return ZmqPublisher(endpoint, self, events)


class ZmqPublisher:
    """One endpoint as a PUB socket; `Sink` of its one connection. A subscriber needs one of the
    `passwords`, if there are any."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._events = events
        self.passwords: tuple[str, ...] = ()
        self._server = ZmtpServer(endpoint, config, b"XPUB", self)
        self._topics: dict[ZmtpPeer, list[bytes]] = {}
        self._connection: Connection | None = None

    async def start(self) -> str:
        if self.passwords:
            self._server.password = self._is_password
        where = await self._server.start()
        self._connection = self._events.open(self.endpoint, self, SUBSCRIBERS)
        return where

    async def stop(self) -> None:
        await self._server.stop()

    def limit_clients(self, most: int) -> None:
        self._server.limit_clients(most)

    def _is_password(self, given: bytes) -> bool:
        return is_key(given.decode("utf-8", "replace"), self.passwords)

    # ── subscribers ──

    def joined(self, peer: ZmtpPeer) -> None:
        self._topics[peer] = []

    def heard(self, peer: ZmtpPeer, frames: list[bytes]) -> None:
        """A subscription (1 and the topic) or its end (0 and the topic); all else is ignored."""
        kind, topic = frames[0][:1], frames[0][1:]
        topics = self._topics[peer]
        if kind == b"\x01":
            if len(topics) >= MOST_TOPICS or len(topic) > LONGEST_TOPIC:
                reason = f"more than {MOST_TOPICS} subscriptions, or {LONGEST_TOPIC} bytes of one"
                raise zmtp.ZmtpError(reason)
            topics.append(topic)
            self._report(topic, SUBSCRIBE)
        elif kind == b"\x00" and topic in topics:
            topics.remove(topic)
            self._report(topic, UNSUBSCRIBE)

    def drained(self, peer: ZmtpPeer) -> None:
        return None

    def left(self, peer: ZmtpPeer) -> None:
        for topic in self._topics.pop(peer):
            self._report(topic, UNSUBSCRIBE)

    def _report(self, topic: bytes, report: bytes) -> None:
        if self._connection is not None:
            message = WireMessage(topic.decode(errors="replace"), report)
            self._events.receive(self._connection, message)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, message: WireMessage) -> None:
        topic = [message.address.encode()] if message.address else []
        frames = [*topic, message.payload]
        data = zmtp.message(frames)
        for peer, topics in self._topics.items():
            if any(map(frames[0].startswith, topics)) and peer.sink.room() >= len(data):
                peer.sink.send(data)

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None
