"""The endpoint of a cell at a NATS server: connects, and connects again when it is lost."""

import asyncio
import contextlib
import itertools
import logging
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from understudy.errors import ConfigError, NotInstalledError, install_command
from understudy.wire.interface import PeerEvents
from understudy.wire.nats import library
from understudy.wire.nats.config import Config
from understudy.wire.nats.server import OwnServer
from understudy.wire.task_shutdown import end_tasks

if TYPE_CHECKING:
    from understudy.wire.nats.client import NatsClient
    from understudy.wire.nats.link import NatsLink

log = logging.getLogger(__name__)

PACKAGES = {"nats": "nats-py", "nkeys": "nkeys"}
"""Module → package; the second is needed for nkeys and JWT only."""
LAST_MESSAGES_SECONDS = 2.0
"""Wall time for the last messages when the cell ends."""


class NatsEndpoint:
    """`Server` of the wire."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self.own_server: OwnServer | None = None
        self._link: NatsLink | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried: asyncio.Future[None] | None = None
        """Done when the first attempt has succeeded or failed."""
        self._addresses: Iterator[str] = itertools.cycle(_in_turn(config))
        self._unhandled: dict[str, None] = {}
        self._said = ""

    async def start(self) -> str:
        """Starts the own server, and tries to connect once; later attempts come by themselves.

        ConfigError: the server cannot start, or its streams are not as the cell needs them.
        """
        self._check_packages()
        if not self._config.servers:
            self.own_server = OwnServer(self.endpoint, self._config)
            await self.own_server.start()
            self._addresses = itertools.cycle([self.own_server.address])
        self._tried = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())
        try:
            await self._tried
        except ConfigError:
            await self.stop()
            raise
        return self._where()

    async def stop(self) -> None:
        """Sends the last messages, disconnects, and ends the own server."""
        if self._link is not None and self._task is not None:
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._link.finish(), LAST_MESSAGES_SECONDS)
        if self._task is not None:
            await end_tasks(self._task)
        if self.own_server is not None:
            await self.own_server.stop()

    # ── inside ──

    def _check_packages(self) -> None:
        signs = self._config.creds_file or self._config.nkey_file
        for module in PACKAGES if signs else ("nats",):
            if find_spec(module) is None:
                raise NotInstalledError(
                    f"needs the package {PACKAGES[module]}: {install_command(*PACKAGES.values())}"
                )

    def _where(self) -> str:
        library.load()
        from understudy.wire.nats.client import shown

        addresses = [self.own_server.address] if self.own_server else self._config.servers
        return ",".join(map(shown, addresses))

    async def _run(self) -> None:
        """Connects again and again; only a ConfigError of the first attempt ends it."""
        assert self._tried is not None
        while True:
            try:
                await self._serve()
            except ConfigError as problem:
                if not self._tried.done():
                    self._tried.set_exception(problem)
                    return
                self._say(str(problem))
            except OSError as problem:
                self._say(str(problem))
            except Exception:
                log.exception("%s: a bug; the connection is made anew", self.endpoint)
            if not self._tried.done():
                self._tried.set_result(None)
            await asyncio.sleep(self._config.reconnect_wait_s if self.own_server is None else 0.05)
            if self.own_server is not None:
                await self.own_server.ready()

    async def _serve(self) -> None:
        """One connection from its begin to its end."""
        library.load()
        from understudy.wire.nats.client import NatsError, connect, shown

        address = next(self._addresses)
        try:
            client = await connect(self._config, address)
        except ConnectionError as problem:
            raise ConnectionError(f"no connection to {shown(address)}: {problem}") from None
        try:
            reason = await self._use(client, shown(address))
        except NatsError as problem:
            reason = str(problem) or type(problem).__name__
        finally:
            await client.end()
        self._said = ""
        raise ConnectionError(f"the connection to {shown(address)} is lost: {reason}")

    async def _use(self, client: "NatsClient", address: str) -> str:
        from understudy.wire.nats.link import NatsLink
        from understudy.wire.nats.streams import (
            StreamDiffersError,
            ensure_consumer,
            ensure_streams,
        )

        assert self._tried is not None
        problems = await ensure_streams(client, self._config)
        if problems:
            text = f"{self.endpoint}: {address}: {'; '.join(problems)}"
            if not self._tried.done():
                raise StreamDiffersError(f"{text}. Change or remove the stream, or the cell file")
            log.warning("%s", text)
        addresses = self._events.addresses(self.endpoint)
        if addresses and await ensure_consumer(client, self._config, addresses):
            log.warning(
                "%s: another process takes messages from the consumer %s: give each cell a name "
                "of its own with nats: {durable: NAME}",
                self.endpoint, self._config.durable,
            )  # fmt: skip
        level = logging.INFO if self._tried.done() or self.own_server is None else logging.DEBUG
        log.log(level, "%s: connected to %s", self.endpoint, address)
        self._said = ""
        self._link = NatsLink(self.endpoint, client, self._config, self._events, self._unhandled)
        try:
            await self._link.open()
            if not self._tried.done():
                self._tried.set_result(None)
            return await self._link.run(pulls=bool(addresses))
        finally:
            self._link = None

    def _say(self, text: str) -> None:
        """Logs a problem once, not at every attempt."""
        if text != self._said:
            again = f"; trying again every {self._config.reconnect_wait_s:g} s"
            log.warning("%s: %s%s", self.endpoint, text, "" if self.own_server else again)
            self._said = text


def _in_turn(config: Config) -> tuple[str, ...]:
    """The given servers in the order in which they are tried. Cells begin at different ones, by the
    names of their consumers: so the shards of a fleet are spread over a cluster."""
    if not config.servers:
        return ()
    first = zlib.crc32(config.durable.encode()) % len(config.servers)
    return config.servers[first:] + config.servers[:first]
