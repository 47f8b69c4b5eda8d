"""Time, faults, snapshots and the engine of a live cell."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, ValidationError, convert, to_builtins

from understudy.agenda import HIGHEST_RATE
from understudy.config.limits import LARGEST_SNAPSHOT
from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, Refused
from understudy.operator.background import Slices, Work
from understudy.operator.events import EventLog
from understudy.operator.mesh_builder import MeshBuilder
from understudy.operator.robots import Robots
from understudy.operator.table import Changes, Command, command, commands_of, query, safely
from understudy.ports import Snapshot
from understudy.ports.faults import Faults
from understudy.ports.hmi import Later
from understudy.simulation.cell import Cell, begins_snapshot, read_snapshot, write_snapshot
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import SavedObject
from understudy.simulation.scenario import Scenario, declared_faults
from understudy.units import nanoseconds, seconds
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

LONGEST_ADVANCE_SECONDS = 86_400.0
SNAPSHOT_ENDING = ".json"
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_ADVANCE_SECONDS)]
Rate = Annotated[float, Meta(ge=0, le=HIGHEST_RATE)] | Literal["max", "step"]


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.clock)


class Preparation:
    """The long work of a restore, done before the state of the cell is replaced.

    Reads the programs of a snapshot in slices and repairs its meshes in a worker process. What the
    cell has already is not read again.
    """

    def __init__(self, robots: Robots, meshes: MeshBuilder, slices: Slices) -> None:
        self._robots = robots
        self._meshes = meshes
        self._slices = slices

    def then(self, snapshot: Snapshot, restore: Callable[[], Any]) -> Any:
        """Calls ``restore`` when everything is prepared; its answer, or a `Later`."""
        ready = self._meshes.prepared(list(saved_objects(snapshot.parts)))

        def go_on(_: object) -> Any:
            read = self._slices.do(self._read_programs(snapshot.parts), "restore")
            if isinstance(read, Later):
                return read.turned(safely(lambda _: restore(), "restore"))
            return restore()

        return go_on(None) if ready is None else ready.turned(safely(go_on, "restore"))

    def _read_programs(self, parts: Mapping[str, Any]) -> Work[bool]:
        for robot in self._robots:
            program, saved = robot.simulated.program, parts.get(f"{robot.name}.program")
            text = saved.get("text") if isinstance(saved, dict) else None
            if program is not None and isinstance(text, str) and text != program.text:
                yield from program.prepare(text)
        return True


def saved_objects(parts: Mapping[str, Any]) -> Iterator[SavedObject]:
    """The objects around and on the robots; a damaged one is left to the restore, which refuses."""
    for state in parts.values():
        saved = state if isinstance(state, dict) else {}
        groups = [saved.get(key) for key in ("objects", "zones", "held")]
        for each in (one for group in groups if isinstance(group, list) for one in group):
            try:
                yield convert(each, SavedObject)
            except (ValidationError, ValueError):
                continue


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

    # ── time ──

    @command()
    def advance(self, seconds: Seconds) -> Any:
        """Run ahead by a number of seconds."""
        if refused := self._on_real("advance"):
            return refused
        later = self._pump.run_ahead(nanoseconds(seconds))
        return self.now() if later is None else later.turned(lambda _: self.now())

    @query()
    def now(self) -> dict[str, Any]:
        """The cell's time."""
        now, clock = self._pump.now(), self._cell.clock_state
        answer: dict[str, Any] = {"now_s": seconds(now), "now_ns": now, "rate": clock.running_rate}
        if clock.paused:
            answer |= {"paused": True, "resumes_at": clock.rate or clock.scale}
        return answer

    @command()
    def rate(self, rate: Rate) -> Any:
        """Set the rate of time."""
        if rate != 1.0 and (refused := self._on_real("rate")):
            return refused
        self._cell.clock_state.set_rate(rate)
        return self.now()

    @query()
    def status(self) -> dict[str, Any]:
        """Status of every part."""
        now = self.now()  # first: the cell catches up with the clock
        real, parts = self._pump.real_seconds(), self._cell.status()
        problem = {"problem": self._pump.problem} if self._pump.problem else {}
        return now | self._facts() | problem | {"real_s": real, "parts": parts}

    # ── faults and snapshots ──

    @query()
    def faults(self) -> dict[str, Any]:
        """Faults that can be injected."""
        able: dict[str, Faults] = {
            name: getattr(part, "faults", dict)() for name, part in self._cell.components.items()
        }
        return {
            name: {
                "how": fault.how,
                "acts_on": ", ".join(acts_on),
                # the parts of this cell that the fault can be injected into
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

    @command()
    def snapshot(self, file: str | None = None) -> Any:
        """Save the state of the cell, after all changes that were asked for before."""
        return self._changes.do(lambda: self._saved(file))

    def _saved(self, file: str | None) -> Any:
        """A file is one of the run's folder: a new one, or an older snapshot."""
        if file is None:
            return {"snapshot": self._pump.snapshot()}
        if not file.endswith(SNAPSHOT_ENDING):
            return Refused(f"{file!r}: the name of a snapshot ends in {SNAPSHOT_ENDING}")
        try:
            data = write_snapshot(self._pump.snapshot())
            return {"file": str(self._files.write(file, data, begins_snapshot))}
        except ConfigError as problem:
            return Refused(str(problem))

    @command()
    def restore(self, snapshot: Snapshot | None = None, file: str | None = None) -> Any:
        """Restore a snapshot."""
        return self._changes.do(lambda: self._restored(snapshot, file))

    def _restored(self, given: Snapshot | None, file: str | None) -> Any:
        if refused := self._on_real("restore"):
            return refused
        if (given is None) == (file is None):
            return Refused("give either snapshot or file")

        def put_back() -> Any:
            try:
                self._pump.restore(snapshot)
            except ConfigError as problem:
                return Refused(str(problem))
            return self.now()

        try:
            snapshot = given or self._read(file or "")
            return self._preparation.then(snapshot, put_back)
        except ConfigError as problem:
            return Refused(str(problem))

    def _read(self, file: str) -> Snapshot:
        return read_snapshot(self._files.read(file, LARGEST_SNAPSHOT), file=file)

    @command()
    def inject(self, fault: str, on: str, parameters: Mapping[str, float | str] = {}) -> Any:
        """Inject a fault."""
        for robot in self._robots.real():
            if on.split(".")[0] == robot.name:
                return Refused(f"{robot.name} is REAL: no fault can be injected there")
        refused = self._pump.act(lambda now: self._fault_source.inject(fault, on, parameters, now))
        if refused is None:
            self._log.note("fault", on, f"injected: {fault}", self._pump.now())
        return refused or self.now()

    # ── the engine ──

    @query()
    def metrics(self) -> dict[str, Any]:
        """Metrics of the engine."""
        now = self._pump.now()
        status = to_builtins(self._engine.status(now))
        real = self._pump.real_seconds()
        clock = {"real_time_s": real, "time_ratio": seconds(now) / real if real > 0.0 else 0.0}
        clock |= {"late_s": self._pump.late_seconds(), "lost_s": self._pump.lost_seconds()}
        return {"state": status["state"], **status["metrics"], **clock}

    @command()
    def quit(self) -> None:
        """End the cell."""
        self._quit()

    @command()
    def start(self) -> dict[str, Any]:
        """Let time run and accept motion."""
        return self._run_engine(self._engine.start)

    @command()
    def pause(self) -> Any:
        """Stop time."""
        return self._on_real("pause") or self._run_engine(self._engine.pause)

    @command()
    def resume(self) -> Any:
        """Let time run again."""
        return self._on_real("resume") or self._run_engine(self._engine.resume)

    @command()
    def stop(self, robot: str | None = None) -> Any:
        """Every robot stops, drops its program and refuses motion until start or reset; with
        `robot` that one alone stops."""
        return self._do(robot, "stop", self._engine.stop)

    @command()
    def reset(self, robot: str | None = None) -> Any:
        """Clear emergency stops, errors, faults, forced inputs and outputs; without `robot` also
        the counters."""
        return self._do(robot, "reset", self._engine.reset)

    @command(secret="never")  # a stop must not fail for want of a secret
    def emergency_stop(self, robot: str | None = None) -> Any:
        """The cell's own button: every robot stops; with `robot` that one alone."""
        return self._do(robot, "emergency_stop", self._engine.emergency_stop)

    def _do(self, name: str | None, action: str, engine: Callable[[int], object]) -> Any:
        """An action of one robot, or of all: the engine acts on the simulated ones only."""
        if name is not None:
            return self._robots.do(name, action)
        for robot in self._robots.real():
            robot.do(action)
        for robot in self._robots if action == "stop" else ():
            robot.end_program()
        return self._run_engine(engine)

    def _run_engine(self, action: Callable[[int], object]) -> dict[str, Any]:
        self._pump.act(action)
        return self.metrics()

    def _on_real(self, name: str) -> Refused | None:
        """The refusal of a command that would change the time of a REAL robot."""
        real = ", ".join(robot.name for robot in self._robots.real())
        return Refused(f"{real} is REAL: no {name} while it is") if real else None
