"""A ZeroMQ PUB socket: messages to every subscriber of their topic.

The socket is an XPUB, which reports subscriptions: its one session receives them as messages. A
message with an address goes out as two frames, topic and payload; one without an address as one
frame.

A subscriber says nothing that a face could check. Where other machines can reach the socket, it
asks for a password by ZeroMQ's PLAIN mechanism (RFC 24), which a ZAP handler (RFC 27) checks.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from understudy.ports import SUBSCRIBE, UNLIMITED, UNSUBSCRIBE, WireMessage
from understudy.ports.access import is_key
from understudy.wire import zmq_router
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Server

if TYPE_CHECKING:
    import zmq.asyncio

SELECTED_BY: dict[str, Any] = {}
SUBSCRIBERS = "subscribers"
"""Name of the one peer."""
REPORTS = {b"\x01": SUBSCRIBE, b"\x00": UNSUBSCRIBE}
"""First byte of what an XPUB receives; the topic follows."""


class Config(zmq_router.Config, frozen=True, forbid_unknown_fields=True):
    """Where a ZeroMQ PUB socket listens; port 0: any free one."""

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return ZmqPublisher(endpoint, self, events)


class ZmqPublisher:
    """One endpoint on one PUB socket; `Sink` of its one connection. `passwords`: a
    subscriber needs one of them; empty: none."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self.passwords: tuple[str, ...] = ()
        self._socket: zmq_router.ZmqSocket | None = None

    async def start(self) -> str:
        check = self._is_password if self.passwords else None
        self._socket = await zmq_router.bind(self.endpoint, self._config, "XPUB", check)
        connection = self._events.open(self.endpoint, self, SUBSCRIBERS)
        self._socket.begin(self._serve(self._socket.raw, connection))
        return self._socket.where

    async def stop(self) -> None:
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    async def _serve(self, raw: "zmq.asyncio.Socket", connection: Connection) -> None:
        while True:
            data = await raw.recv()
            if (report := REPORTS.get(data[:1])) is not None:
                topic = data[1:].decode(errors="replace")
                self._events.receive(connection, WireMessage(topic, report))
            await asyncio.sleep(0)

    def _is_password(self, given: bytes) -> bool:
        return is_key(given.decode("utf-8", "replace"), self.passwords)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, message: WireMessage) -> None:
        topic = [message.address.encode()] if message.address else []
        if self._socket is not None:
            self._socket.send([*topic, message.payload])

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None
