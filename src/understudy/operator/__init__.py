"""The operator API of a live cell: one table of commands and queries, filled subject by subject."""

from collections.abc import Callable
from typing import Any

from understudy.config import CellConfig
from understudy.operator.clock import BUTTONS, ENGINE, ClockCommands
from understudy.operator.devices import DeviceQuery
from understudy.operator.environment import EnvironmentCommands
from understudy.operator.events import EventLog, EventSources
from understudy.operator.history import History
from understudy.operator.models import RobotQuery, view_of
from understudy.operator.modes import ModeCommands
from understudy.operator.motion import MotionCommands
from understudy.operator.pins import PinCommands
from understudy.operator.points import PointCommands, TeachCommands
from understudy.operator.programs import ProgramCommands, Slices
from understudy.operator.robots import Robots
from understudy.operator.scene import SceneQuery
from understudy.operator.table import Commands
from understudy.ports.hmi import RobotView
from understudy.simulation.cell import Cell
from understudy.simulation.clock_state import ClockState
from understudy.wire.pump import Pump

__all__ = ["BUTTONS", "ENGINE", "OperatorApi"]


class OperatorApi:
    """All commands and queries of a live cell; it must be made on the event loop of the cell."""

    def __init__(
        self,
        config: CellConfig,
        cell: Cell,
        pump: Pump,
        facts: Callable[[], dict[str, Any]],
        quit_: Callable[[], None],
        *,
        real: bool = False,
    ) -> None:
        self.robots = Robots(config, cell.parts, pump)
        self.log = EventLog()
        self.events = EventSources(cell, self.robots, self.log, pump.now)
        self.history = History(self.robots, pump.now)
        self.slices = Slices()
        self.modes = ModeCommands(
            config, self.robots, self.events, self.log,
            allowed=real,
            real_time=lambda: _real_time(cell.clock_state),
            close=lambda robot, why: pump.close(_faces_of(robot, cell), why),
            now=pump.now,
        )  # fmt: skip
        around = EnvironmentCommands(config, cell.parts, pump)
        self._subjects = (
            ClockCommands(cell, pump, self.robots, self.log, facts, quit_),
            RobotQuery(self.robots),
            DeviceQuery(config, cell.parts, pump.now),
            SceneQuery(config, self.robots, around.here, cell.parts),
            around,
            self.events,
            self.history,
            self.modes,
            MotionCommands(self.robots, self.modes.dead_man),
            PinCommands(self.robots),
            ProgramCommands(config, self.robots, self.slices),
            PointCommands(self.robots, cell.parts),
            TeachCommands(self.robots),
        )

    def commands(self) -> Commands:
        return Commands(command for subject in self._subjects for command in subject.commands())

    def real_views(self) -> dict[str, RobotView]:
        """The REAL robots, as pages draw them."""
        return {robot.name: view_of(robot) for robot in self.robots.real()}

    async def stop(self) -> None:
        self.history.stop()
        self.slices.stop()
        await self.modes.stop()


def _faces_of(robot: str, cell: Cell) -> list[str]:
    return [endpoint for endpoint in cell.faces if endpoint.split(".")[0] == robot]


def _real_time(clock: ClockState) -> None:
    """Sets the rate of real time and ends a pause."""
    clock.set_rate(1.0)
    clock.resume()
