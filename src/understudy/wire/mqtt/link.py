"""The session behind the broker: what it sends and what it receives."""

import asyncio
from collections import deque
from typing import Any

from aiomqtt import Client

from understudy.ports import RETAINED, WireMessage
from understudy.wire.broker_queue import BrokerQueue
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents
from understudy.wire.task_shutdown import end_tasks

OVERHEAD = 64
LARGEST_MESSAGE = 256 * 1024
"""Bytes of a received message; a longer one is dropped."""
PEER = "mqtt"


class MqttLink(BrokerQueue):
    """`Sink` of the one session behind the broker."""

    def __init__(self, endpoint: str, client: Client, events: PeerEvents) -> None:
        super().__init__(OVERHEAD)
        self.endpoint = endpoint
        self._client = client
        self._events = events
        self._connection: Connection | None = None
        self._queue: deque[WireMessage] = deque()
        self._sent = asyncio.Event()

    # ── sink ──

    def send(self, message: WireMessage) -> None:
        self._queue.append(message)
        self._note_waiting(self._size(message))

    def close(self) -> None:
        """A broker is not hung up on: it serves others, too."""

    # ── operation ──

    async def open(self) -> None:
        """Subscribes, and opens the session."""
        for topic in self._events.addresses(self.endpoint):
            await self._client.subscribe(topic, qos=1)
        self._connection = self._events.open(self.endpoint, self, PEER)

    async def run(self) -> None:
        """Carries messages both ways until the connection is lost, which raises an error."""
        tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await end_tasks(*tasks)

    async def finish(self) -> None:
        """Returns when everything was sent."""
        while self._pending:
            self._sent.clear()
            await self._sent.wait()

    def closed(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._events.closed(connection)

    # ── inside ──

    async def _send(self) -> None:
        while True:
            await self._sendable.wait()
            self._sendable.clear()
            while self._queue:
                message = self._queue.popleft()
                kept = message.reply_to == RETAINED
                await self._client.publish(
                    message.address, message.payload, qos=1 if kept else 0, retain=kept
                )
                self._pending -= self._size(message)
            self._sent.set()
            if self._connection is not None:
                self._events.drained(self._connection)

    async def _receive(self) -> None:
        async for message in self._client.messages:
            payload: Any = message.payload
            if isinstance(payload, bytes | bytearray) and len(payload) <= LARGEST_MESSAGE:
                await self._readable.wait()
                if self._connection is not None:
                    topic = message.topic.value
                    self._events.receive(self._connection, WireMessage(topic, bytes(payload)))
