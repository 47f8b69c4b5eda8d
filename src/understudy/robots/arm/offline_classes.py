"""The offline classes of the design document, each built in one call.

``source`` is a shipped cell, the path of a cell file, a shipped robot, the path of a URDF, or a
loaded cell configuration.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from understudy.app.reach import arm_with_initial_tool
from understudy.config import CellConfig, load_config
from understudy.config.cell import read_config
from understudy.config.files import shipped_cells, shipped_robots
from understudy.errors import ConfigError, Refused
from understudy.motion.path import Floats
from understudy.offline import cycle_time, motion_simulator
from understudy.offline.cycle_time import CycleTime
from understudy.offline.motion_simulator import INTERNAL_RATE_HZ, SimulationResult
from understudy.offline.robot import Arm
from understudy.offline.setup import Setup
from understudy.offline.waypoints import Waypoint
from understudy.ports import ControllerStatus, JointState
from understudy.robots.arm.offline import arm_setup
from understudy.robots.arm.virtual_controller import VirtualController
from understudy.space.collision import detector
from understudy.space.given import given_positive
from understudy.space.reach import reach_map
from understudy.units import MM

Source = str | Path | CellConfig
TRAVEL_MM_S, PROCESS_MM_S = 250.0, 10.0
"""Speeds of the tool to a waypoint that has none of its own."""
SOURCES = "a shipped cell or robot, a cell file, a URDF"


def config_of(source: Source) -> CellConfig:
    """The cell of a source; of a robot model: a cell with nothing but this arm, called `arm`."""
    if isinstance(source, CellConfig):
        return source
    if not isinstance(source, str | Path):
        raise ConfigError("neither a cell nor a robot", value=source, allowed=SOURCES)
    name = str(source)
    if name in shipped_cells() or name.endswith((".yaml", ".yml")):
        return load_config(name)
    if name not in shipped_robots() and not name.endswith((".urdf", ".xacro")):
        raise ConfigError("neither a cell nor a robot", value=name, allowed=SOURCES)
    path = Path(name)
    beside = path.parent / "cell.yaml" if path.suffix else Path("cell.yaml")
    text = f"robots: {{arm: {{kind: arm, model: {path.name!r}}}}}\n"
    return read_config(text, str(beside))


def setup_of(source: Source | VirtualController, robot: str = "") -> Setup:
    """How programs and waypoints are planned on an arm, with its pins and devices."""
    if isinstance(source, VirtualController):
        return source.planned
    return arm_setup(config_of(source), robot)


def arm_of(source: Source, robot: str = "") -> Arm:
    """A robot with a body, and the tool that it starts with."""
    return arm_with_initial_tool(config_of(source), robot)[1]


class CycleTimeEstimator(cycle_time.CycleTimeEstimator):
    """Cycle time of a program or of waypoints: ``CycleTimeEstimator("g60").estimate(waypoints)``.

    Speeds of the tool where a waypoint has none of its own.
    """

    def __init__(
        self,
        source: Source | VirtualController = "g60",
        *,
        robot: str = "",
        travel_speed_mm_s: float = TRAVEL_MM_S,
        process_speed_mm_s: float = PROCESS_MM_S,
    ) -> None:
        super().__init__(setup_of(source, robot))
        self._speeds = (
            given_positive(travel_speed_mm_s, "travel_speed_mm_s"),
            given_positive(process_speed_mm_s, "process_speed_mm_s"),
        )

    def estimate(self, program: str | bytes | Sequence[Waypoint]) -> CycleTime:
        if isinstance(program, str | bytes):
            return super().estimate(program)
        return self.estimate_waypoints(program, *self._speeds)


class MotionSimulator(motion_simulator.MotionSimulator):
    """Waypoints computed (`dry_run`), or executed by a `VirtualController` and logged
    (`simulate_trajectory`), with the torques of the joints.

    The speeds are those of the tool where a waypoint has none of its own; None: as fast as the
    joints can.
    """

    def __init__(
        self,
        source: Source | VirtualController = "g60",
        *,
        robot: str = "",
        travel_speed_mm_s: float | None = TRAVEL_MM_S,
        process_speed_mm_s: float | None = PROCESS_MM_S,
        rate_hz: float = INTERNAL_RATE_HZ,
    ) -> None:
        speeds = tuple(
            None if speed is None else given_positive(speed, name) * MM
            for name, speed in (
                ("travel_speed_mm_s", travel_speed_mm_s),
                ("process_speed_mm_s", process_speed_mm_s),
            )
        )
        self._clocked = _OnItsOwnTime(source) if isinstance(source, VirtualController) else None
        super().__init__(
            setup_of(source, robot), self._clocked, speeds=(speeds[0], speeds[1]), rate_hz=rate_hz
        )

    def simulate_trajectory(
        self, waypoints: Sequence[Waypoint], now: int | None = None
    ) -> SimulationResult:
        """Executes the waypoints on the controller; its time passes."""
        start = self._clocked.now if self._clocked and now is None else now or 0
        return super().simulate_trajectory(waypoints, start)


class _OnItsOwnTime:
    """A `VirtualController` as `MotionSimulator` drives it: every call is given the time."""

    def __init__(self, controller: VirtualController) -> None:
        self._cell, self._arm = controller.timed()

    @property
    def now(self) -> int:
        return self._cell.now

    def send_gcode(self, line: str, now: int) -> Refused | None:
        return self._arm.send_gcode(line, now)

    def joint_state(self, now: int) -> JointState:
        return self._arm.joint_state(now)

    def status(self, now: int) -> ControllerStatus:
        return self._arm.status(now)

    def busy(self) -> bool:
        return self._arm.busy()

    def next_wake(self) -> int | None:
        return self._cell.next_wake()

    def wake(self, now: int) -> None:
        self._cell.advance(now)


class CollisionDetector(detector.CollisionDetector):
    """An arm with its tool among the objects of its cell."""

    def __init__(self, source: Source = "g60_welding", *, robot: str = "") -> None:
        super().__init__()
        self.equip_like(arm_of(source, robot).detector)


class ReachabilityAnalyzer(reach_map.ReachabilityAnalyzer):
    """Reach of an arm with the tool that it starts with; what its cell has around is avoided."""

    def __init__(self, source: Source = "g60_welding", *, robot: str = "") -> None:
        arm = arm_of(source, robot)
        self.foot: Floats = np.array(arm.foot[:3, 3])
        super().__init__(arm.chain, arm.detector, frames=arm.frames)
