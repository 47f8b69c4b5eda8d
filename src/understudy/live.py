"""A live cell: its faces on sockets, its time against the wall, and a desk to command it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from understudy.app import build_cell
from understudy.cell.cell import read_snapshot, write_snapshot
from understudy.cell.faults import FAULTS
from understudy.cell.scenario import Scenario
from understudy.config import CellConfig
from understudy.desk import Command, Commands
from understudy.errors import ConfigError, Refused, unknown
from understudy.faces.control import ControlFace
from understudy.ports import Snapshot
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import Event
from understudy.wire.clock import HIGHEST_RATE, Clock, Rate
from understudy.wire.exchange import Exchange, Lobby
from understudy.wire.pty import PtyServer
from understudy.wire.pump import Pump
from understudy.wire.tcp import Address, Switchboard, TcpServer

LONGEST_ADVANCE_SECONDS = 86_400.0


@dataclass(frozen=True)
class Options:
    """How a cell is run, as opposed to what it is."""

    rate: Rate = 1.0
    ephemeral: bool = False
    ports: dict[str, int] = field(default_factory=dict)
    for_seconds: float | None = None
    note: Callable[[Event], None] = lambda event: None


class Advance(Struct, frozen=True, forbid_unknown_fields=True):
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_ADVANCE_SECONDS)]


class SetRate(Struct, frozen=True, forbid_unknown_fields=True):
    rate: Annotated[float, Meta(ge=0, le=HIGHEST_RATE)] | Literal["max", "step"]


class ToFile(Struct, frozen=True, forbid_unknown_fields=True):
    file: str | None = None


class Restore(Struct, frozen=True, forbid_unknown_fields=True):
    snapshot: Snapshot | None = None
    file: str | None = None


class Inject(Struct, frozen=True, forbid_unknown_fields=True):
    fault: str
    on: str
    parameters: dict[str, float] = {}


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
        self._cell.tempo.on_change(self._obey_tempo)
        self.desk = self._make_desk()
        self._servers = self._make_servers(options)

    @property
    def rate(self) -> Rate:
        return self._pump.rate

    @property
    def now(self) -> float:
        return seconds(self._pump.now)

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
        self._pump.stop()
        await asyncio.gather(*(server.stop() for server in self._servers))

    def advance(self, duration: float) -> None:
        self._pump.advance(nanoseconds(duration))

    def _obey_tempo(self) -> None:
        """What a controller asks of the clock; lock-step knows no scale."""
        tempo = self._cell.tempo
        if self.rate not in ("max", "step"):
            self._pump.set_rate(0.0 if tempo.paused else tempo.scale)

    def _make_servers(self, options: Options) -> list[TcpServer | PtyServer]:
        lobby = Exchange(Lobby({"control": ControlFace(self.desk)}))
        wires: dict[str, tuple[Address, Switchboard]] = {
            "control": (self.config.head.control, lobby)
        }
        for name, robot in self.config.robots.items():
            for face_name, face in robot.faces.items():
                wires[f"{name}.{face_name}"] = (face.address, self._pump)
        for endpoint in options.ports:
            if endpoint not in wires:
                raise unknown("endpoint", endpoint, wires)
        return [
            PtyServer(endpoint, board)
            if address.pty and endpoint not in options.ports
            else TcpServer(endpoint, _placed(endpoint, address, options), board)
            for endpoint, (address, board) in wires.items()
        ]

    # ── the desk ──

    def _make_desk(self) -> Commands:
        viewer: Literal["viewer"] = "viewer"
        return Commands(
            [
                Command("advance", "run ahead by seconds", self._advance, Advance),
                Command("now", "the cell's time", lambda _: self._now(), role=viewer),
                Command("rate", "set the rate of time", self._set_rate, SetRate),
                Command("status", "what everything is at", lambda _: self._status(), role=viewer),
                Command("faults", "what can be injected", lambda _: _faults(), role=viewer),
                Command("snapshot", "the cell at this moment", self._snapshot, ToFile),
                Command("restore", "bring a snapshot back", self._restore, Restore),
                Command("inject", "bring a fault about", self._inject, Inject),
                Command("quit", "end the cell", lambda _: self.finished.set()),
            ]
        )

    def _now(self) -> dict[str, Any]:
        return {"now_s": seconds(self._pump.now), "now_ns": self._pump.now, "rate": self.rate}

    def _advance(self, given: Advance) -> dict[str, Any]:
        self.advance(given.seconds)
        return self._now()

    def _set_rate(self, given: SetRate) -> dict[str, Any]:
        self._pump.set_rate(given.rate)
        return self._now()

    def _status(self) -> dict[str, Any]:
        return self._now() | {
            "cell": self.config.name,
            "digest": self.config.digest,
            "real_s": self._pump.real_seconds(),
            "endpoints": self.endpoints,
            "parts": self._cell.status(),
        }

    def _snapshot(self, given: ToFile) -> Any:
        snapshot = self._pump.snapshot()
        if given.file is None:
            return {"snapshot": snapshot}
        try:
            Path(given.file).write_bytes(write_snapshot(snapshot))
        except OSError as problem:
            return Refused(f"{given.file} cannot be written: {problem.strerror}")
        return {"file": given.file}

    def _restore(self, given: Restore) -> Any:
        if (given.snapshot is None) == (given.file is None):
            return Refused("give either snapshot or file")
        try:
            snapshot = given.snapshot or read_snapshot(Path(given.file or "").read_bytes())
            self._pump.restore(snapshot)
        except OSError as problem:
            return Refused(f"{given.file} cannot be read: {problem.strerror}")
        except (ConfigError, msgspec.ValidationError) as problem:
            return Refused(str(problem))
        return self._now()

    def _inject(self, given: Inject) -> Any:
        luck = self._cell.parts["scenario"]
        assert isinstance(luck, Scenario)
        refused = self._pump.act(
            lambda now: luck.bring(given.fault, given.on, given.parameters, now)
        )
        return refused or self._now()


def _faults() -> dict[str, Any]:
    return {
        name: {
            "how": fault.how,
            "acts_on": fault.acts_on,
            "doc": fault.doc,
            "parameters": {key: figure._asdict() for key, figure in fault.figures.items()},
        }
        for name, fault in FAULTS.items()
    }


def _placed(endpoint: str, address: Address, options: Options) -> Address:
    port = options.ports.get(endpoint, 0 if options.ephemeral else address.port)
    return msgspec.structs.replace(address, port=port)
