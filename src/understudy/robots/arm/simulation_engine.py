"""`SimulationEngine` of the design document: one arm of a cell with its pins, devices and time."""

from pathlib import Path

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
from understudy.robots.arm.virtual_controller import VirtualController
from understudy.simulation.engine import EngineState, SimulationMetrics
from understudy.simulation.engine import SimulationEngine as EnginePart
from understudy.simulation.scenario import Scenario


class SimulationEngine:
    """A whole cell in this process, on virtual time, around one of its arms.

    `controller`, `io` and the devices (`welder`) belong to that arm; `start`, `stop`, `pause`,
    `reset` and the metrics to the whole cell. Time passes only in `advance`, `wait` and
    `run_until_idle`. Scenario rules of the cell act only with ``rules=True``.
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
        self.advance = self.controller.advance
        self.wait = self.controller.wait
        self.run_until_idle = self.controller.run_until_idle

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

    # ── readings ──

    def state(self) -> EngineState:
        return self._engine.state(self.cell.now)

    def metrics(self) -> SimulationMetrics:
        """Seconds, executed lines, contacts and millimetres since the last reset."""
        return self._engine.metrics(self.cell.now)

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
