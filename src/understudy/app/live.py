"""A live cell: its faces on sockets, its time against the wall, and a desk to command it."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from understudy.app.build import build_cell
from understudy.config import CellConfig, Wire
from understudy.config.files import name_of_cell
from understudy.errors import ConfigError, unknown
from understudy.operator import OperatorApi
from understudy.operator.background import KINDS, Runs, run_commands
from understudy.operator.doors.control import control_face
from understudy.operator.doors.hmi_link import HmiLinkFace
from understudy.operator.doors.state import state_face
from understudy.operator.table import Commands
from understudy.operator.traffic import Traffic
from understudy.operator.views import CellWatch
from understudy.units import duration_ns, nanoseconds, seconds
from understudy.wire import zmq
from understudy.wire.chat import Event
from understudy.wire.clock import Clock, Rate
from understudy.wire.exchange import Exchange, UntimedFaces
from understudy.wire.outbound import Outbound, OutboundWire
from understudy.wire.pty import PtyServer
from understudy.wire.pump import Pump
from understudy.wire.tcp import Address, Switchboard, TcpServer
from understudy.wire.udp import Broadcast, UdpOutlet
from understudy.wire.zmq import Bound, ZmqPublisher, ZmqRouter

log = logging.getLogger(__name__)

Server = TcpServer | PtyServer | OutboundWire | UdpOutlet | ZmqRouter | ZmqPublisher
LINK = "hmi_link"


@dataclass(frozen=True)
class Options:
    """How a cell is run, as opposed to what it is."""

    rate: Rate = 1.0
    ephemeral: bool = False
    ports: dict[str, int] = field(default_factory=dict)
    for_seconds: float | None = None
    hmi: bool = True
    real: bool = False
    note: Callable[[Event], None] = lambda event: None


class Live:
    """Runs on the event loop it is made on, until `finished`."""

    def __init__(self, config: CellConfig, options: Options) -> None:
        self.config = config
        self.endpoints: dict[str, str] = {}
        self.finished = asyncio.Event()
        self._cell = build_cell(config)
        self._traffic = Traffic(self._cell.faces)
        self._exchange = Exchange(self._cell, self._noted(options.note))
        self._pump = Pump(
            self._exchange,
            Clock(options.rate),
            poll_step=nanoseconds(config.head.poll_step_ms / 1000.0),
            until=None if options.for_seconds is None else nanoseconds(options.for_seconds),
            finished=self.finished.set,
        )
        self._cell.clock_state.keep_up(options.rate)
        self._cell.clock_state.on_change(self._obey_tempo)
        self.operator = OperatorApi(
            config, self._cell, self._pump, self._facts, self.finished.set, real=options.real
        )
        self._runs = Runs(KINDS, {"cell": self._name()})
        traffic = self._traffic.commands()
        self.commands = Commands([*self.operator.commands(), *run_commands(self._runs), *traffic])
        self.watch = CellWatch(self._cell.parts, self._pump, self.operator.real_views)
        self._links: dict[str, HmiLinkFace] = {}
        self._servers = self._make_servers(options)

    @property
    def rate(self) -> Rate:
        return self._pump.rate

    @property
    def now(self) -> float:
        return seconds(self._pump.now())

    async def start(self) -> None:
        """Listen everywhere, then let time run."""
        await self.listen()
        self.go()

    async def listen(self) -> None:
        """Everybody can call; time stands yet."""
        self.watch.look()  # compiled code is loaded before anybody looks, and not while one waits
        try:
            for server in self._servers:
                self.endpoints[server.endpoint] = await server.start()
            await self.operator.modes.begin()
        except ConfigError:
            await self.stop()
            raise

    def go(self) -> None:
        """Let time run."""
        self._pump.start()

    def prepare(self) -> Iterator[None]:
        """A piece at a time, what a first motion would have to wait for."""
        from understudy.motion.warm import warm, warm_tool_paths
        from understudy.simulation.collision.watch import CollisionWatch

        warm()
        for part in self._cell.parts.values():
            if isinstance(part, CollisionWatch):
                yield
                warm_tool_paths(part.body.chain)
                yield
                yield from part.prepare()

    async def stop(self) -> None:
        await self.operator.stop()
        self._pump.stop()
        await asyncio.gather(self._runs.stop(), *(server.stop() for server in self._servers))

    def advance(self, duration: float) -> None:
        self._pump.advance(duration_ns(duration))

    def _noted(self, note: Callable[[Event], None]) -> Callable[[Event], None]:
        def both(event: Event) -> None:
            self._traffic.note(event)
            note(event)

        return both

    def _facts(self) -> dict[str, Any]:
        config = self.config
        return {"cell": config.name, "digest": config.digest, "endpoints": self.endpoints}

    def _name(self) -> dict[str, Any]:
        """What another process needs to build the same cell."""
        config = self.config
        seed, digest = config.head.seed, config.digest
        return {"file": name_of_cell(config.document.file), "seed": seed, "digest": digest}

    def _obey_tempo(self) -> None:
        """What a controller asks of the clock; lock-step knows no scale, but it can pause."""
        clock_state = self._cell.clock_state
        self._pump.set_paused(clock_state.paused)
        if self.rate not in ("max", "step"):
            self._pump.set_rate(0.0 if clock_state.paused else clock_state.scale)

    def _make_servers(self, options: Options) -> list[Server]:
        head = self.config.head
        untimed = self._lobby()
        wires: dict[str, tuple[Wire, Switchboard]] = {"control": (head.control, untimed)}
        if head.hmi is not None and options.hmi:
            wires["state"] = (head.state, untimed)
        for endpoint, wire in self._wires(options).items():
            wires[endpoint] = (wire, self._pump)
        for endpoint in options.ports:
            if endpoint not in wires:
                raise unknown("endpoint", endpoint, wires)
        return [
            self._server(endpoint, _placed(endpoint, wire, options), board)
            for endpoint, (wire, board) in wires.items()
        ]

    def _lobby(self) -> Exchange:
        """The doors beside the cell, where nobody waits for its time."""
        loop = asyncio.get_running_loop()
        control = control_face(self.commands, late=lambda: loop.call_soon(untimed.settle))
        untimed = Exchange(UntimedFaces({"control": control, "state": state_face(self.watch)}))
        return untimed

    def _wires(self, options: Options) -> dict[str, Wire]:
        """Those of the faces; a page has a link of its own where no robot has one."""
        wires = self.config.endpoints()
        linked = any(isinstance(wire, Bound) for wire in wires.values())
        if self.config.head.hmi is not None and options.hmi and not linked:
            wires |= dict.fromkeys((LINK, f"{LINK}.status"), Bound())
        if zmq.is_installed():
            return wires
        for endpoint in [name for name, wire in wires.items() if isinstance(wire, Bound)]:
            log.warning("%s is not opened: it %s", endpoint, zmq.MISSING)
            del wires[endpoint]
        return wires

    def _server(self, endpoint: str, wire: Wire, board: Switchboard) -> Server:
        if not isinstance(wire, Bound):
            return _server(endpoint, wire, board)
        robot, _, socket = endpoint.rpartition(LINK)
        face = self._links.setdefault(robot, self._link(robot.removesuffix(".")))
        return (ZmqPublisher if socket else ZmqRouter)(endpoint, wire, face)

    def _link(self, robot: str) -> HmiLinkFace:
        return HmiLinkFace(robot, self.commands, self.watch, time.time)


def _server(endpoint: str, wire: Address | Outbound | Broadcast, board: Switchboard) -> Server:
    if isinstance(wire, Outbound):
        return OutboundWire(endpoint, wire, board)
    if isinstance(wire, Broadcast):
        return UdpOutlet(endpoint, wire, board)
    return PtyServer(endpoint, board) if wire.pty else TcpServer(endpoint, wire, board)


def _placed(endpoint: str, wire: Wire, options: Options) -> Wire:
    """Where it listens; a wire that calls goes where it is sent, from a port of its own."""
    if isinstance(wire, Bound):
        port = options.ports.get(endpoint, 0 if options.ephemeral else wire.port)
        return msgspec.structs.replace(wire, port=port)
    if isinstance(wire, Address):
        port = options.ports.get(endpoint, 0 if options.ephemeral else wire.port)
        pty = wire.pty and endpoint not in options.ports
        return msgspec.structs.replace(wire, port=port, pty=pty)
    port = options.ports.get(endpoint, wire.port)
    own = 0 if options.ephemeral else wire.local_port
    return msgspec.structs.replace(wire, port=port, local_port=own)
