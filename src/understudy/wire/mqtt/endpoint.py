"""The endpoint of a cell at an MQTT broker: connects, and connects again when it is lost."""

import asyncio
import contextlib
import logging
import ssl
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from understudy.errors import ConfigError, NotInstalledError, install_command
from understudy.wire.interface import PeerEvents
from understudy.wire.mqtt.config import Config
from understudy.wire.task_shutdown import end_tasks

if TYPE_CHECKING:
    from aiomqtt import Client

log = logging.getLogger(__name__)

LAST_MESSAGES_SECONDS = 2.0
"""Wall time for the last messages when the cell ends."""
MOST_RECEIVED = 1024
"""Messages that were received and wait for the session; more are dropped by the client."""


class MqttEndpoint:
    """`Server` of the wire."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self._task: asyncio.Task[None] | None = None
        self._tried: asyncio.Future[None] | None = None
        """Done when the first attempt has succeeded or failed."""
        self._link: Any = None
        self._said = ""

    async def start(self) -> str:
        """Tries to connect once; later attempts come by themselves."""
        if find_spec("aiomqtt") is None:
            raise NotInstalledError(f"needs the package aiomqtt: {install_command('aiomqtt')}")
        self._tls()
        self._tried = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())
        await self._tried
        return f"mqtt://{self._config.host}:{self._config.port}"

    async def stop(self) -> None:
        """Sends the last messages, and disconnects."""
        if self._link is not None:
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._link.finish(), LAST_MESSAGES_SECONDS)
        if self._task is not None:
            await end_tasks(self._task)

    # ── inside ──

    async def _run(self) -> None:
        from aiomqtt import MqttError

        assert self._tried is not None
        while True:
            try:
                await self._serve()
            except (MqttError, OSError, TimeoutError) as problem:
                self._say(f"mqtt://{self._config.host}:{self._config.port}: {problem}")
            except Exception:
                log.exception("%s: a bug; the connection is made anew", self.endpoint)
            if not self._tried.done():
                self._tried.set_result(None)
            await asyncio.sleep(self._config.reconnect_wait_s)

    async def _serve(self) -> None:
        """One connection from its begin to its end."""
        from understudy.wire.mqtt.link import MqttLink

        async with self._client() as client:
            self._said = ""
            link = self._link = MqttLink(self.endpoint, client, self._events)
            try:
                await link.open()
                assert self._tried is not None
                if not self._tried.done():
                    self._tried.set_result(None)
                await link.run()
            finally:
                self._link = None
                link.closed()

    def _client(self) -> "Client":
        from aiomqtt import Client, Will

        config, will = self._config, self._events.last_will(self.endpoint)
        return Client(
            config.host, config.port,
            identifier=config.client_id or f"understudy-{self.endpoint}",
            username=config.username, password=config.password,
            tls_context=self._tls(), timeout=config.connect_timeout_s,
            keepalive=config.keepalive_s, max_queued_incoming_messages=MOST_RECEIVED,
            will=None if will is None else Will(will.address, will.payload, qos=1, retain=True),
        )  # fmt: skip

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
            raise ConfigError(f"the certificate cannot be used: {problem}",
                              key=f"{self.endpoint}.{key}",
                              value=getattr(config, key)) from None  # fmt: skip
        return context

    def _say(self, text: str) -> None:
        """Logs a problem once, not at every attempt."""
        if text != self._said:
            log.warning("%s: no connection to %s", self.endpoint, text)
            self._said = text
