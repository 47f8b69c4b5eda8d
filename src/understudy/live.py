"""A live cell: its faces on sockets, its time against the wall, and a desk to command it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from understudy.app import build_cell
from understudy.commands import CellDesk
from understudy.config import CellConfig, Wire
from understudy.errors import ConfigError, unknown
from understudy.faces.control import ControlFace
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import Event
from understudy.wire.clock import Clock, Rate
from understudy.wire.exchange import Exchange, Lobby
from understudy.wire.outbound import Outbound, OutboundWire
from understudy.wire.pty import PtyServer
from understudy.wire.pump import Pump
from understudy.wire.tcp import Address, Switchboard, TcpServer
from understudy.wire.udp import Broadcast, UdpOutlet

Server = TcpServer | PtyServer | OutboundWire | UdpOutlet


@dataclass(frozen=True)
class Options:
    """How a cell is run, as opposed to what it is."""

    rate: Rate = 1.0
    ephemeral: bool = False
    ports: dict[str, int] = field(default_factory=dict)
    for_seconds: float | None = None
    note: Callable[[Event], None] = lambda event: None


class Live:
    """Runs on the event loop it is made on, until `finished`."""

    def __init__(self, config: CellConfig, options: Options) -> None:
        self.config = config
        self.endpoints: dict[str, str] = {}
        self.finished = asyncio.Event()
        self._cell = build_cell(config)
        self._exchange = Exchange(self._cell, options.note)
        self._pump = Pump(
            self._exchange,
            Clock(options.rate),
            poll_step=nanoseconds(config.head.poll_step_ms / 1000.0),
            until=None if options.for_seconds is None else nanoseconds(options.for_seconds),
            finished=self.finished.set,
        )
        self._cell.tempo.keep_up(options.rate)
        self._cell.tempo.on_change(self._obey_tempo)
        self.cell_desk = CellDesk(config, self._cell, self._pump, self._facts, self.finished.set)
        self.desk = self.cell_desk.commands()
        self._servers = self._make_servers(options)

    @property
    def rate(self) -> Rate:
        return self._pump.rate

    @property
    def now(self) -> float:
        return seconds(self._pump.now())

    async def start(self) -> None:
        """Listen everywhere, then let time run."""
        try:
            for server in self._servers:
                self.endpoints[server.endpoint] = await server.start()
        except ConfigError:
            await self.stop()
            raise
        self._pump.start()

    async def stop(self) -> None:
        self.cell_desk.stop()
        self._pump.stop()
        await asyncio.gather(*(server.stop() for server in self._servers))

    def advance(self, duration: float) -> None:
        self._pump.advance(nanoseconds(duration))

    def _facts(self) -> dict[str, Any]:
        config = self.config
        return {"cell": config.name, "digest": config.digest, "endpoints": self.endpoints}

    def _obey_tempo(self) -> None:
        """What a controller asks of the clock; lock-step knows no scale, but it can pause."""
        tempo = self._cell.tempo
        self._pump.set_paused(tempo.paused)
        if self.rate not in ("max", "step"):
            self._pump.set_rate(0.0 if tempo.paused else tempo.scale)

    def _make_servers(self, options: Options) -> list[Server]:
        lobby = Exchange(Lobby({"control": ControlFace(self.desk)}))
        wires: dict[str, tuple[Wire, Switchboard]] = {"control": (self.config.head.control, lobby)}
        for endpoint, wire in self.config.endpoints().items():
            wires[endpoint] = (wire, self._pump)
        for endpoint in options.ports:
            if endpoint not in wires:
                raise unknown("endpoint", endpoint, wires)
        return [
            _server(endpoint, _placed(endpoint, wire, options), board)
            for endpoint, (wire, board) in wires.items()
        ]


def _server(endpoint: str, wire: Wire, board: Switchboard) -> Server:
    if isinstance(wire, Outbound):
        return OutboundWire(endpoint, wire, board)
    if isinstance(wire, Broadcast):
        return UdpOutlet(endpoint, wire, board)
    return PtyServer(endpoint, board) if wire.pty else TcpServer(endpoint, wire, board)


def _placed(endpoint: str, wire: Wire, options: Options) -> Wire:
    """Where it listens; a wire that calls goes where it is sent, from a port of its own."""
    if isinstance(wire, Address):
        port = options.ports.get(endpoint, 0 if options.ephemeral else wire.port)
        pty = wire.pty and endpoint not in options.ports
        return msgspec.structs.replace(wire, port=port, pty=pty)
    port = options.ports.get(endpoint, wire.port)
    own = 0 if options.ephemeral else wire.local_port
    return msgspec.structs.replace(wire, port=port, local_port=own)
