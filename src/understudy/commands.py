"""What the desk of a live cell offers: time, faults, snapshots, the engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from understudy.cell.cell import Cell, read_snapshot, write_snapshot
from understudy.cell.engine import SimulationEngine
from understudy.cell.faults import FAULTS
from understudy.cell.scenario import Scenario
from understudy.desk import Command, Commands
from understudy.errors import ConfigError, Refused
from understudy.ports import Snapshot
from understudy.ports.hmi import Later
from understudy.units import nanoseconds, seconds
from understudy.wire.clock import HIGHEST_RATE
from understudy.wire.pump import Pump

LONGEST_ADVANCE_SECONDS = 86_400.0
ENGINE = {
    "start": "let time run, accept programs",
    "stop": "every controller brakes and forgets its program",
    "pause": "time stands",
    "resume": "time runs again",
    "reset": "clear emergency stops, errors and faults; count from zero",
    "emergency_stop": "the cell's own button: every robot stops",
}


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


class CellDesk:
    """Turns what is asked of a live cell into what its pump and parts do."""

    def __init__(
        self,
        cell: Cell,
        pump: Pump,
        facts: Callable[[], dict[str, Any]],
        quit_: Callable[[], None],
    ) -> None:
        self._cell = cell
        self._pump = pump
        self._facts = facts
        self._quit = quit_
        luck, engine = cell.parts["scenario"], cell.parts["engine"]
        assert isinstance(luck, Scenario)
        assert isinstance(engine, SimulationEngine)
        self._luck, self._engine = luck, engine

    def commands(self) -> Commands:
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
                Command("metrics", "what was done so far", lambda _: self._metrics(), role=viewer),
                Command("quit", "end the cell", lambda _: self._quit()),
                *(self._of_engine(name, doc) for name, doc in ENGINE.items()),
            ]
        )

    def _of_engine(self, name: str, doc: str) -> Command:
        def run(_: Any) -> Any:
            self._pump.act(lambda now: getattr(self._engine, name)(now))
            return self._metrics()

        return Command(name, doc, run)

    def _metrics(self) -> dict[str, Any]:
        now = self._pump.now()
        status = to_builtins(self._engine.status(now))
        real = self._pump.real_seconds()
        clock = {"real_time_s": real, "time_ratio": seconds(now) / real if real > 0.0 else 0.0}
        return {"state": status["state"], **status["metrics"], **clock}

    def _now(self) -> dict[str, Any]:
        now = self._pump.now()
        return {"now_s": seconds(now), "now_ns": now, "rate": self._pump.rate}

    def _advance(self, given: Advance) -> dict[str, Any] | Later:
        later = self._pump.run_ahead(nanoseconds(given.seconds))
        return self._now() if later is None else later.turned(lambda _: self._now())

    def _set_rate(self, given: SetRate) -> dict[str, Any]:
        self._pump.set_rate(given.rate)
        self._cell.tempo.keep_up(given.rate)
        return self._now()

    def _status(self) -> dict[str, Any]:
        now = self._now()  # first: it brings the cell to the clock's time
        real, parts = self._pump.real_seconds(), self._cell.status()
        return now | self._facts() | {"real_s": real, "parts": parts}

    def _snapshot(self, given: ToFile) -> Any:
        snapshot = self._pump.snapshot()
        if given.file is None:
            return {"snapshot": snapshot}
        try:
            Path(given.file).write_bytes(write_snapshot(snapshot))
        except (OSError, ValueError) as problem:
            return Refused(f"{given.file} cannot be written: {_why(problem)}")
        return {"file": given.file}

    def _restore(self, given: Restore) -> Any:
        if (given.snapshot is None) == (given.file is None):
            return Refused("give either snapshot or file")
        try:
            snapshot = given.snapshot or read_snapshot(Path(given.file or "").read_bytes())
            self._pump.restore(snapshot)
        except (OSError, ValueError) as problem:
            return Refused(f"{given.file} cannot be read: {_why(problem)}")
        except ConfigError as problem:
            return Refused(str(problem))
        return self._now()

    def _inject(self, given: Inject) -> Any:
        refused = self._pump.act(
            lambda now: self._luck.bring(given.fault, given.on, given.parameters, now)
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


def _why(problem: Exception) -> str:
    """ValueError: a name that no file can have."""
    return getattr(problem, "strerror", None) or str(problem)
