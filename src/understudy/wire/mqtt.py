"""An MQTT broker: the wire connects to it as one client.

All peers behind the broker are one session of the message face, whose peer name is `mqtt`. The
session is opened when the connection is made and closed when it is lost; then the broker publishes
the last will of the face, if it has one (`ports.LeavesWill`).

Messages are sent with QoS 0. A message with `reply_to` RETAINED is sent with QoS 1, and the broker
keeps it for later subscribers. A message that the broker has kept comes with it, too.
"""

import asyncio
import ssl
from collections import deque
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from understudy.errors import ConfigError, NotInstalledError, needs
from understudy.ports import RETAINED, WireMessage
from understudy.wire.broker import BrokerConnection, BrokerQueue
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Server, Wire
from understudy.wire.task_shutdown import end_tasks

if TYPE_CHECKING:
    from aiomqtt import Client

SELECTED_BY: dict[str, Any] = {}

NEEDED_KEYS = {"cert_file": "ca_file", "key_file": "cert_file", "password": "username"}
"""Key → the key without which it has no meaning."""
MOST_RECEIVED = 1024
"""Messages that were received and wait for the session; more are dropped by the client."""
OVERHEAD = 64
LARGEST_MESSAGE = 256 * 1024
"""Bytes of a received message; a longer one is dropped."""
PEER = "mqtt"

Text = Annotated[str, Meta(max_length=1024)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The broker, and how to log in. `client_id`: without it the name of the endpoint, after
    `understudy-`. `ca_file`: checks the broker's certificate, and switches TLS on."""

    host: Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65535)] = 1883
    client_id: Text | None = None
    username: Text | None = None
    password: Text | None = None
    ca_file: Text | None = None
    cert_file: Text | None = None
    key_file: Text | None = None
    keepalive_s: Annotated[int, Meta(ge=1, le=3600)] = 15
    connect_timeout_s: Seconds = 5.0
    reconnect_wait_s: Seconds = 2.0

    def __post_init__(self) -> None:
        for key, needed in NEEDED_KEYS.items():
            if getattr(self, key) is not None and getattr(self, needed) is None:
                raise ValueError(f"{key} needs {needed}")

    def placed(self, port: int | None, *, ephemeral: bool) -> Wire:
        """A broker of others: it has its port, whatever is free here."""
        return self if port is None else replace(self, port=port)

    def listens_on(self) -> tuple[str, int] | None:
        return None

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return MqttEndpoint(endpoint, self, events)


class MqttEndpoint:
    """`Server` of the wire."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self._connection: BrokerConnection | None = None

    async def start(self) -> str:
        """Tries to connect once; later attempts come by themselves."""
        if find_spec("aiomqtt") is None:
            raise NotInstalledError(needs("aiomqtt"))
        self._tls()
        self._connection = BrokerConnection(
            self.endpoint, self._serve, lambda: asyncio.sleep(self._config.reconnect_wait_s)
        )
        await self._connection.start()
        return self._address()

    async def stop(self) -> None:
        """Sends the last messages, and disconnects."""
        if self._connection is not None:
            await self._connection.stop()

    # ── inside ──

    def _address(self) -> str:
        return f"mqtt://{self._config.host}:{self._config.port}"

    async def _serve(self) -> None:
        """One connection from its begin to its end."""
        from aiomqtt import MqttError

        connection = self._connection
        assert connection is not None
        try:
            async with self._client() as client:
                connection.link = link = MqttLink(self.endpoint, client, self._events)
                try:
                    await link.open()
                    connection.connected()
                    await link.run()
                finally:
                    connection.link = None
                    link.closed()
        except (MqttError, OSError) as problem:
            raise ConnectionError(f"no connection to {self._address()}: {problem}") from None

    def _client(self) -> "Client":
        from aiomqtt import Client, Will

        config, will = self._config, self._events.last_will(self.endpoint)
        return Client(
            config.host,
            config.port,
            identifier=config.client_id or f"understudy-{self.endpoint}",
            username=config.username,
            password=config.password,
            tls_context=self._tls(),
            timeout=config.connect_timeout_s,
            keepalive=config.keepalive_s,
            max_queued_incoming_messages=MOST_RECEIVED,
            will=None if will is None else Will(will.address, will.payload, qos=1, retain=True),
        )

    def _tls(self) -> ssl.SSLContext | None:
        config = self._config
        if config.ca_file is None:
            return None
        key = "ca_file"
        try:
            context = ssl.create_default_context(cafile=config.ca_file)
            if config.cert_file is not None:
                key = "cert_file"
                context.load_cert_chain(config.cert_file, config.key_file)
        except OSError as problem:  # ssl.SSLError is one
            raise ConfigError(
                f"the certificate cannot be used: {problem}",
                key=f"{self.endpoint}.{key}",
                value=getattr(config, key),
            ) from None
        return context


class MqttLink(BrokerQueue):
    """`Sink` of the one session behind the broker."""

    def __init__(self, endpoint: str, client: "Client", events: PeerEvents) -> None:
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
                    kept = RETAINED if message.retain else ""
                    received = WireMessage(message.topic.value, bytes(payload), kept)
                    self._events.receive(self._connection, received)
