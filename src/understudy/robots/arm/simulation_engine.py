"""`SimulationEngine` of the design document: one arm of a cell with its pins, devices and time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from msgspec import structs

from understudy.app.at_now import AtNow
from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.config.files import read_model, read_text
from understudy.config.include import read_environment
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports import Snapshot
from understudy.ports.device import Device
from understudy.robots.arm import Config as ArmConfig
from understudy.robots.arm.offline import arm_setup
from understudy.robots.arm.offline_classes import CollisionDetector
from understudy.robots.arm.virtual_controller import IDLE_TIMEOUT, VirtualController
from understudy.simulation.engine import EngineState, SimulationMetrics
from understudy.simulation.engine import SimulationEngine as EnginePart
from understudy.simulation.scenario import Scenario


class EngineMetrics(SimulationMetrics, frozen=True):
    """`real_time_s`: seconds that the computer needed for the simulated time; `time_ratio`:
    simulated seconds in each of them."""

    real_time_s: float
    time_ratio: float


class SimulationEngine:
    """A whole cell in this process, on virtual time, around one of its arms.

    `controller`, `io` and the devices (`welder`) belong to that arm; `start`, `stop`, `pause`,
    `reset` and the metrics to the whole cell. Before `start` the engine is STOPPED and refuses
    motion. Time passes only in `advance`, `wait` and `run_until_idle`. Scenario rules of the cell
    act only with ``rules=True``.
    """

    def __init__(
        self,
        cell: str = "g60_welding",
        *,
        robot: str = "",
        seed: int | None = None,
        rules: bool = False,
    ) -> None:
        config = load_config(cell, seed=seed)
        arms = [n for n, each in config.robots.items() if isinstance(each.config, ArmConfig)]
        if not arms:
            raise ConfigError(f"the cell {cell} has no arm", allowed="a cell with kind: arm")
        if robot and robot not in arms:
            raise unknown("arm", robot, arms)
        self.robot = robot or arms[0]
        self.cell = build_cell(config if rules else config.without_rules())
        engine, scenario = self.cell.components["engine"], self.cell.components["scenario"]
        assert isinstance(engine, EnginePart)
        assert isinstance(scenario, Scenario)
        self._engine, self._scenario = engine, scenario
        names = {kind: f"{self.robot}.{kind}" for kind in config.robots[self.robot].devices}
        found = {kind: self.cell.components[name] for kind, name in names.items()}
        devices = {kind: part for kind, part in found.items() if isinstance(part, Device)}
        delay = config.robots[self.robot].config.simulation.feedback_delay_ms / 1000.0
        self.controller = VirtualController.of_cell(
            self.cell,
            self.robot,
            devices,
            feedback_delay=delay,
            planned=arm_setup(config, self.robot),
        )
        self._config = config
        self._real_s = 0.0
        self._engine.stop(self.cell.now)

    @property
    def io(self) -> AtNow:
        """The pins of the arm: `docs/devices/io.md` lists their methods."""
        return self.controller.io

    def __getattr__(self, name: str) -> AtNow:
        if name == "controller":  # not made yet
            raise AttributeError(name)
        return getattr(self.controller, name)  # type: ignore[no-any-return]

    # ── control ──

    def start(self) -> None:
        self._engine.start(self.cell.now)

    def stop(self) -> None:
        self._engine.stop(self.cell.now)

    def pause(self) -> None:
        self._engine.pause(self.cell.now)

    def resume(self) -> None:
        self._engine.resume(self.cell.now)

    def reset(self) -> None:
        self._engine.reset(self.cell.now)

    def emergency_stop(self) -> None:
        self._engine.emergency_stop(self.cell.now)

    def set_time_scale(self, scale: float) -> Refused | None:
        """The factor of `wait`."""
        return self._engine.set_time_scale(scale)

    def time_scale(self) -> float:
        return self._engine.status(self.cell.now).time_scale

    def inject(self, fault: str, on: str = "", **parameters: float) -> Refused | None:
        """Injects a fault into a part of the cell; into the arm if none is named."""
        return self._scenario.inject(fault, on or self.robot, parameters, self.cell.now)

    # ── time ──

    def advance(self, duration: float) -> None:
        """Lets simulated seconds pass."""
        with self._timed():
            self.controller.advance(duration)

    def wait(self, duration: float) -> None:
        """Lets seconds of wall time pass: simulated time advances by them times the time scale."""
        with self._timed():
            self.controller.wait(duration)

    def run_until_idle(self, timeout: float = IDLE_TIMEOUT) -> None:
        """Lets time pass until nothing is under way."""
        with self._timed():
            self.controller.run_until_idle(timeout)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self._real_s += perf_counter() - begun

    # ── readings ──

    @property
    def collision_detector(self) -> CollisionDetector:
        """The arm with its tool among what stands around it now."""
        detector = CollisionDetector(self._config, robot=self.robot)
        detector.clear_environment()
        for thing in self.controller.surroundings.environment.everything():
            detector.add_object(thing)
        return detector

    def state(self) -> EngineState:
        return self._engine.state(self.cell.now)

    def metrics(self) -> EngineMetrics:
        """Seconds, and executed lines, contacts and millimetres since the last reset."""
        counted = self._engine.metrics(self.cell.now)
        ratio = counted.simulation_time_s / self._real_s if self._real_s > 0.0 else 1.0
        return EngineMetrics(**structs.asdict(counted), real_time_s=self._real_s, time_ratio=ratio)

    # ── snapshots and environment ──

    def snapshot(self) -> Snapshot:
        """The whole cell at this moment."""
        return self.cell.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.cell.restore(snapshot)

    def load_environment(self, file: str | Path) -> None:
        """Replaces what stands around the robots; a file with an error changes nothing."""
        found = read_environment(read_text(Path(file)), str(file))
        there = found.build(lambda name: read_model(name, beside=str(file)))
        self.controller.surroundings.replace(there, self.cell.now)
