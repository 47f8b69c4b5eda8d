"""Time, faults, snapshots and the engine of a live cell."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from understudy.config.limits import LARGEST_SNAPSHOT
from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, Refused
from understudy.operator.changes import Changes
from understudy.operator.events import EventLog
from understudy.operator.preparation import Preparation
from understudy.operator.robots import Robots
from understudy.operator.table import Command
from understudy.ports import Snapshot
from understudy.ports.faults import Faults
from understudy.simulation.cell import Cell, begins_snapshot, read_snapshot, write_snapshot
from understudy.simulation.clock_state import HIGHEST_RATE
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.scenario import Scenario, declared_faults
from understudy.units import nanoseconds, seconds
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

LONGEST_ADVANCE_SECONDS = 86_400.0
SNAPSHOT_ENDING = ".json"
ENGINE = {
    "start": "let time run and accept motion",
    "pause": "stop time",
    "resume": "let time run again",
}
BUTTONS = {
    "stop": "every robot stops, drops its program and refuses motion until start or reset; "
    "with `robot` that one alone stops",
    "reset": "clear emergency stops, errors, faults, forced inputs and outputs; without `robot` "
    "also the counters",
    "emergency_stop": "the cell's own button: every robot stops; with `robot` that one alone",
}


def commands(cell: "OperatedCell") -> list[Command]:
    return cell.clock.commands()


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
    parameters: dict[str, float | str] = {}


class OneRobot(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str | None = None


class ClockCommands:
    """Turns what is asked of a live cell into what its pump and parts do."""

    def __init__(
        self,
        cell: Cell,
        pump: Pump,
        robots: Robots,
        log: EventLog,
        facts: Callable[[], dict[str, Any]],
        quit_: Callable[[], None],
        files: FilesFolder,
        *,
        changes: Changes,
        preparation: Preparation,
    ) -> None:
        self._changes = changes
        self._preparation = preparation
        self._cell = cell
        self._files = files
        self._pump = pump
        self._robots = robots
        self._log = log
        self._facts = facts
        self._quit = quit_
        fault_source, engine = cell.components["scenario"], cell.components["engine"]
        assert isinstance(fault_source, Scenario)
        assert isinstance(engine, SimulationEngine)
        self._fault_source, self._engine = fault_source, engine

    def commands(self) -> list[Command]:
        viewer: Literal["viewer"] = "viewer"
        return [
            Command("advance", "run ahead by a number of seconds", self._advance, Advance),
            Command("now", "the cell's time", lambda _: self._now(), role=viewer),
            Command("rate", "set the rate of time", self._set_rate, SetRate),
            Command("status", "status of every part", lambda _: self._status(), role=viewer),
            Command("faults", "faults that can be injected", lambda _: self._faults(), role=viewer),
            Command(
                "snapshot",
                "save the state of the cell, after all changes that were asked for before",
                lambda given: self._changes.do(lambda: self._snapshot(given)),
                ToFile,
            ),
            Command(
                "restore",
                "restore a snapshot",
                lambda given: self._changes.do(lambda: self._restore(given)),
                Restore,
            ),
            Command("inject", "inject a fault", self._inject, Inject),
            Command("metrics", "metrics of the engine", lambda _: self._metrics(), role=viewer),
            Command("quit", "end the cell", lambda _: self._quit()),
            *(self._of_engine(name, doc) for name, doc in ENGINE.items()),
            *(self._of_button(name, doc) for name, doc in BUTTONS.items()),
        ]

    # ── the engine ──

    def start(self) -> dict[str, Any]:
        return self._run_engine("start")

    def _of_engine(self, name: str, doc: str) -> Command:
        def run(_: Any) -> Any:
            if name != "start" and (refused := self._on_real(name)):
                return refused
            return self._run_engine(name)

        return Command(name, doc, run)

    def _of_button(self, name: str, doc: str) -> Command:
        """A command for the cell or one robot; the REAL robots are commanded directly."""

        def run(given: OneRobot) -> Any:
            if given.robot is not None:
                return self._robots.do(given.robot, name)
            for robot in self._robots.real():
                robot.do(name)
            if name == "stop":
                for robot in self._robots:
                    robot.end_program()
            return self._run_engine(name)

        always = name == "emergency_stop"  # a stop must not fail for want of a secret
        return Command(name, doc, run, OneRobot, secret="never" if always else "while REAL")

    def _run_engine(self, name: str) -> dict[str, Any]:
        self._pump.act(lambda now: getattr(self._engine, name)(now))
        return self._metrics()

    def _metrics(self) -> dict[str, Any]:
        now = self._pump.now()
        status = to_builtins(self._engine.status(now))
        real = self._pump.real_seconds()
        clock = {"real_time_s": real, "time_ratio": seconds(now) / real if real > 0.0 else 0.0}
        return {"state": status["state"], **status["metrics"], **clock}

    # ── time ──

    def _now(self) -> dict[str, Any]:
        """The rate at which time runs; while it is paused also the one that `resume` returns to."""
        now, clock = self._pump.now(), self._cell.clock_state
        answer: dict[str, Any] = {"now_s": seconds(now), "now_ns": now, "rate": clock.running_rate}
        if clock.paused:
            answer |= {"paused": True, "resumes_at": clock.rate or clock.scale}
        return answer

    def _advance(self, given: Advance) -> Any:
        if refused := self._on_real("advance"):
            return refused
        later = self._pump.run_ahead(nanoseconds(given.seconds))
        return self._now() if later is None else later.turned(lambda _: self._now())

    def _set_rate(self, given: SetRate) -> Any:
        if given.rate != 1.0 and (refused := self._on_real("rate")):
            return refused
        self._cell.clock_state.set_rate(given.rate)
        return self._now()

    def _status(self) -> dict[str, Any]:
        now = self._now()  # first: the cell catches up with the clock
        real, parts = self._pump.real_seconds(), self._cell.status()
        problem = {"problem": self._pump.problem} if self._pump.problem else {}
        return now | self._facts() | problem | {"real_s": real, "parts": parts}

    # ── snapshots and faults ──

    def _snapshot(self, given: ToFile) -> Any:
        """A file is one of the run's folder: a new one, or an older snapshot."""
        if given.file is None:
            return {"snapshot": self._pump.snapshot()}
        if not given.file.endswith(SNAPSHOT_ENDING):
            return Refused(f"{given.file!r}: the name of a snapshot ends in {SNAPSHOT_ENDING}")
        try:
            data = write_snapshot(self._pump.snapshot())
            return {"file": str(self._files.write(given.file, data, begins_snapshot))}
        except ConfigError as problem:
            return Refused(str(problem))

    def _restore(self, given: Restore) -> Any:
        if refused := self._on_real("restore"):
            return refused
        if (given.snapshot is None) == (given.file is None):
            return Refused("give either snapshot or file")
        try:
            snapshot = given.snapshot or self._read(given.file or "")
            return self._preparation.then(snapshot, lambda: self._put_back(snapshot))
        except ConfigError as problem:
            return Refused(str(problem))

    def _put_back(self, snapshot: Snapshot) -> Any:
        try:
            self._pump.restore(snapshot)
        except ConfigError as problem:
            return Refused(str(problem))
        return self._now()

    def _read(self, file: str) -> Snapshot:
        return read_snapshot(self._files.read(file, LARGEST_SNAPSHOT), file=file)

    def _inject(self, given: Inject) -> Any:
        for robot in self._robots.real():
            if given.on.split(".")[0] == robot.name:
                return Refused(f"{robot.name} is REAL: no fault can be injected there")
        refused = self._pump.act(
            lambda now: self._fault_source.inject(given.fault, given.on, given.parameters, now)
        )
        if refused is None:
            self._log.note("fault", given.on, f"injected: {given.fault}", self._pump.now())
        return refused or self._now()

    def _faults(self) -> dict[str, Any]:
        """`places`: the parts of this cell that the fault can be injected into."""
        able: dict[str, Faults] = {
            name: getattr(part, "faults", dict)() for name, part in self._cell.components.items()
        }
        return {
            name: {
                "how": fault.how,
                "acts_on": ", ".join(acts_on),
                "places": [
                    place
                    for place, faults in able.items()
                    if name in faults and fault.how == "brought"
                ],
                "doc": fault.doc,
                "parameters": {key: figure._asdict() for key, figure in fault.figures.items()},
            }
            for name, (fault, acts_on) in declared_faults().items()
        }

    def _on_real(self, name: str) -> Refused | None:
        """The refusal of a command that would change the time of a REAL robot."""
        real = ", ".join(robot.name for robot in self._robots.real())
        return Refused(f"{real} is REAL: no {name} while it is") if real else None
