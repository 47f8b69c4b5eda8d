"""A live cell as its commands see it: what the subjects share, and the table of them all."""

import asyncio
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from understudy.config import CellConfig
from understudy.config.outside_files import FilesFolder
from understudy.operator.background import BackgroundRuns, Slices
from understudy.operator.clock import ClockCommands, Preparation
from understudy.operator.environment import EnvironmentCommands
from understudy.operator.events import EventLog, EventSources
from understudy.operator.history import History
from understudy.operator.mesh_builder import MeshBuilder
from understudy.operator.models import view_of
from understudy.operator.programs import AllPrograms, ProgramCommands
from understudy.operator.project import ProjectCommands, ProjectFolder
from understudy.operator.robots import Robots
from understudy.operator.run_modes import ModeCommands
from understudy.operator.table import Changes, Commands
from understudy.operator.views import CellWatch
from understudy.operator.workpieces import workpieces_in
from understudy.ports import Run
from understudy.ports.hmi import RobotView
from understudy.ports.jobs import has_jobs
from understudy.registry import CAPABILITIES, EVERY_CELL, module_of, outside
from understudy.simulation.cell import Cell
from understudy.wire.connection import Note
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.simulation.workpieces.workpieces import Workpieces


class OperatedCell:
    """What the modules of the table `commands` are given; it must be made on the event loop of the
    cell. ``facts``: about the run; ``quit_``: ends the cell; ``real``: REAL robots are allowed;
    ``fix_run``: what a replay needs beside the configuration, which does not change any more;
    ``notes``: are called for everything that passes at the wires."""

    def __init__(
        self,
        config: CellConfig,
        cell: Cell,
        pump: Pump,
        runs: BackgroundRuns,
        files: FilesFolder,
        *,
        facts: Callable[[], dict[str, Any]],
        quit_: Callable[[], None],
        fix_run: Callable[[], Run],
        notes: list[Note],
        real: bool = False,
    ) -> None:
        self.config = config
        self.cell = cell
        self.components = cell.components
        self.pump = pump
        self.runs = runs
        self.files = files
        self.loop = asyncio.get_running_loop()
        self.facts = facts
        self.fix_run = fix_run
        self.notes = notes
        self.workpieces: Workpieces | None = workpieces_in(cell.components)
        self.robots = Robots(config, cell.components, pump)
        self.log = EventLog()
        self.events = EventSources(cell, self.robots, self.log, pump.now)
        self.slices = Slices(runs)
        self.history = History(self.robots, cell, pump, self.slices)
        self.watch = CellWatch(cell.components, pump, cell.clock_state, self.real_views)
        self.on_stop: list[Callable[[], None]] = []
        """Called when the cell ends: ends what a module of the table `commands` has started."""
        self.table = Commands(())
        """All commands of the live cell, once it is built."""
        self.on_table: list[Callable[[Commands], None]] = []
        """Called with the table of all commands; may raise a ConfigError for what it lacks."""
        self.modes = ModeCommands(
            config,
            self.robots,
            self.events,
            self.log,
            allowed=real,
            real_time=cell.clock_state.run_in_real_time,
            close=lambda robot, why: pump.close(
                [endpoint for endpoint in cell.faces if endpoint.split(".")[0] == robot], why
            ),
            now=pump.now,
            changed=self.history.follow_real,
        )
        self.changes = Changes(pump)
        self.environment = EnvironmentCommands(
            config, cell.components, pump, runs, self.changes, files
        )
        preparation = Preparation(self.robots, MeshBuilder(runs), self.slices)
        self.clock = ClockCommands(
            cell,
            pump,
            self.robots,
            self.log,
            facts,
            quit_,
            files,
            changes=self.changes,
            preparation=preparation,
        )
        self.programs = ProgramCommands(config, self.robots, self.slices, runs, self.changes)
        self.all_programs = AllPrograms(config, self.robots, self.clock, self.programs)
        self.folder = ProjectFolder(config, files)
        self.project = ProjectCommands(
            config, self.robots, cell.components, self.folder, self.programs
        )

    def commands(self) -> Commands:
        return Commands(command for module in self._modules() for command in module.commands(self))

    def _modules(self) -> Iterator[ModuleType]:
        """The modules of the table `commands`, without those of capabilities that are not in this
        cell: they need not be imported."""
        robots = self.config.robots.values()
        kinds = {robot.kind for robot in robots} | self.config.devices.keys()
        kinds |= {kind for robot in robots for kind in robot.devices}
        kinds |= self.config.sections.keys()
        with_jobs = any(has_jobs(robot.kind) for robot in robots)
        for each in (EVERY_CELL, *CAPABILITIES):
            own = {*each.robots, *each.devices, *each.sections}
            may_be_absent = each is not EVERY_CELL and (own or each.jobs)
            if not may_be_absent or own & kinds or (with_jobs and each.jobs):
                yield from (module_of("commands", name) for name in each.commands)
        yield from (module_of("commands", name) for name in outside("commands"))

    def real_views(self) -> dict[str, RobotView]:
        """The REAL robots, as pages draw them."""
        return {robot.name: view_of(robot) for robot in self.robots.real()}

    async def stop(self) -> None:
        for end in self.on_stop:
            end()
        self.history.stop()
        self.slices.stop()
        await self.modes.stop()
