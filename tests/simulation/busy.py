"""Shipped cells at work: clients on all faces, programs, jogs, welding, faults by rule and by hand.

The script of a cell follows from a seed. Time passes in `run` only.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import yaml
from tests.robots.kuka.kuka_wire import command
from tests.wire.streams import ARM, TEXT, lines, with_bytes

from understudy.app.build import repeatable_run
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.config.cell import CellConfig
from understudy.config.files import shipped_cells
from understudy.ports import UNLIMITED, Snapshot
from understudy.ports.hmi import Later
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_MS, NS_PER_SECOND
from understudy.wire.connection import Connection, Event
from understudy.wire.exchange import Exchange

CELLS = ("default", "g60_welding", "grblhal_6axis", "kuka_eki", "text_robot")
LENGTH = 24 * NS_PER_SECOND


class Action(NamedTuple):
    """Bytes for an endpoint, or an operator's command."""

    at: int
    endpoint: str = ""
    data: bytes = b""
    command: str = ""
    parameters: Mapping[str, Any] = MappingProxyType({})


class Taker:
    """`Sink` of a client that takes everything."""

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: Any) -> None:
        return None

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


def with_faults(name: str, folder: Path) -> CellConfig:
    """The shipped cell, with rules that also delay, lose and repeat answers and requests."""
    shipped = shipped_cells()[name].read_text()
    document = yaml.safe_load(shipped.replace(" on: ", ' "on": '))  # YAML 1.1 reads on as true
    rules = document.setdefault("scenario", {}).setdefault("rules", {})
    endpoints = [name for name in load_config(name).endpoints() if "hmi_link" not in name]
    for number, endpoint in enumerate(endpoints):
        on = {"on": endpoint, "probability": 0.05}
        rules[f"late_{number}"] = {"fault": "message_delay", **on}
        rules[f"late_request_{number}"] = {"fault": "request_delay", **on}
        rules[f"twice_{number}"] = {"fault": "message_duplicate", **on}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    return load_config(str(file))


class BusyCell:
    """A cell in this process, its clients and its operator."""

    def __init__(self, config: CellConfig) -> None:
        self.events: list[Event] = []
        self._loop = asyncio.new_event_loop()
        self._live = self._loop.run_until_complete(self._made(config))
        self._live.load()
        self._ask("snapshot", {})  # it is taken when all programs are loaded

    async def _made(self, config: CellConfig) -> Live:
        run = repeatable_run(config)
        return Live(config, Options(rate=0.0, ephemeral=True, note=self.events.append, run=run))

    def close(self) -> None:
        self._loop.run_until_complete(self._live.stop())
        self._loop.close()

    @property
    def exchange(self) -> Exchange:
        return self._live._pump._exchange

    @property
    def cell(self) -> Cell:
        return self._live._cell

    # ── work ──

    def run(self, script: list[Action], to: int) -> None:
        """Carries out the actions after the present time, up to and including ``to``."""
        for action in script:
            if self.cell.now < action.at <= to:
                self._live._pump.advance(action.at - self.cell.now)
                self._do(action)
        self._live._pump.advance(to - self.cell.now)

    def _do(self, action: Action) -> None:
        if action.endpoint:
            self._live._pump.receive(self._client(action.endpoint), action.data)
            return
        self._ask(action.command, dict(action.parameters))

    def _ask(self, name: str, parameters: dict[str, Any]) -> None:
        """Calls a command and waits for its end; a refusal is an outcome like any other."""
        answer = self._live.commands.call(name, parameters, "operator")
        if isinstance(answer, Later):
            ended = self._loop.create_future()
            answer.then(ended.set_result)
            self._loop.run_until_complete(ended)

    def _client(self, endpoint: str) -> Connection:
        """The newest client of the endpoint; a new one if there is none."""
        there = [c for c in self.exchange._connections.values() if c.endpoint == endpoint]
        return there[-1] if there else self._live._pump.open(endpoint, Taker())

    # ── what is compared ──

    def sent(self, start: int = 0) -> list[tuple[Any, ...]]:
        return [(e.at, e.endpoint, e.peer, e.data) for e in self.events[start:] if e.kind == "<"]

    def status(self) -> bytes:
        return msgspec.json.encode(msgspec.to_builtins(self.cell.status()))

    def snapshot(self) -> Snapshot:
        return self._live._pump.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._live._pump.restore(snapshot)


# ── scripts ──


def script_of(config: CellConfig, seed: int) -> list[Action]:
    """Actions of clients and operator, in order of time."""
    chance = Random(f"{config.name} {seed}")
    endpoints = [name for name in config.endpoints() if "hmi_link" not in name]
    actions = [Action(1, endpoint, b"") for endpoint in endpoints]
    for robot, of in config.robots.items():
        own = [name for name in endpoints if name.startswith(robot)]
        actions += _operator(robot, chance)
        actions += _clients(own, of.kind, chance)
    return sorted(actions, key=lambda action: action.at)


def _operator(robot: str, chance: Random) -> list[Action]:
    def act(at: float, name: str, **parameters: Any) -> Action:
        return Action(round(at * NS_PER_SECOND), command=name, parameters=parameters)

    def of(at: float, name: str, **parameters: Any) -> Action:
        return act(at, name, robot=robot, **parameters)

    begin = 0.1 + chance.random()
    actions = [of(begin, "enable"), of(begin + 0.01, "run_program")]
    faults = {
        "emergency_stop": robot, "arc_fault": f"{robot}.welder", "gas_fault": f"{robot}.welder",
        "overheat": robot, "axis_fault": robot,
    }  # fmt: skip
    for fault, place in faults.items():
        actions.append(act(chance.uniform(9, 22), "inject", fault=fault, on=place))
    pulse = {"pin": 10.0, "duration_s": 0.3}
    actions.append(
        act(
            chance.uniform(1, 20), "inject", fault="pulse_input", on=f"{robot}.io", parameters=pulse
        )
    )
    for at in sorted(chance.uniform(5, 23) for _ in range(4)):
        actions += [of(at, "reset"), of(at + 0.02, "enable")]
        actions.append(of(at + 0.2, chance.choice(["run_program", "home"])))
        frame, axis = chance.choice(["joint", "base"]), chance.randrange(3)
        actions.append(of(at + 0.1, "jog", frame=frame, axis=axis, speed=10, step=3))
    for at in sorted(chance.uniform(2, 20) for _ in range(2)):
        actions += [of(at, "pause_program"), of(at + 0.5, "resume_program")]
        actions.append(of(at + 0.7, "override", feed_percent=chance.randrange(20, 150)))
    return actions


def _clients(endpoints: list[str], kind: str, chance: Random) -> list[Action]:
    """Packets of clients that send when they like, cut at any byte."""
    actions = []
    for endpoint in endpoints:
        for _ in range(20):
            at = round(chance.uniform(0.01, 23.5) * 1000) * NS_PER_MS
            data = _said(endpoint, kind, chance)
            cut = chance.randrange(len(data) + 1)
            actions += [
                Action(at, endpoint, data[:cut]),
                Action(at + 3 * NS_PER_MS, endpoint, data[cut:]),
            ]
    return actions


MACHINE = [
    "G21 G90",
    "G1 X9 F600",
    "G0 Y2 Z1",
    "G4 P0.3",
    "M3 S500",
    "M62 P1",
    "M0",
    "$J=G91 X2 F90",
]


def _said(endpoint: str, kind: str, chance: Random) -> bytes:
    if "kuka" in endpoint:
        number = chance.randrange(1, 50)
        return b"".join(command(number + n, X=chance.randrange(40), F=100) for n in range(3))
    if "text" in endpoint:
        return lines(TEXT, chance, 3)
    said = lines(ARM if kind == "arm" else MACHINE, chance, 3)
    return with_bytes(said, b"???!~~\x90\x91\x85\x87", chance, 3)
