"""Commands of the mode managers: request of a mode, confirmation of a tool, retry, abort."""

from functools import partial
from typing import TYPE_CHECKING, Any

from understudy.errors import Refused
from understudy.jobs.modes.manager import ModeManager
from understudy.operator.events import EventLog
from understudy.operator.robots import Jobs
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.modes import OperationMode, TargetMode

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell


def commands(cell: "OperatedCell") -> list[Command]:
    managers = Jobs(cell.robots, ModeManager, "modes")
    return commands_of(OperationModeCommands(managers, cell.log)) if managers else []


class OperationModeCommands:
    """`robot` can be left out if one robot of the cell has modes of operation."""

    def __init__(self, managers: Jobs[ModeManager], log: EventLog) -> None:
        self._managers = managers
        for name, manager in managers.all().items():
            manager.on_mode_changed(partial(_note_change, name, log))

    @query()
    def operation_mode(self, robot: str = "") -> Any:
        """Mode of operation and changeover."""
        return self._managers.look(robot)

    @command()
    def request_mode(self, mode: TargetMode, robot: str = "", check: bool = False) -> Any:
        """Change the mode of operation.

        `check`: change nothing; the answer says whether it would be refused now.
        """

        def request(manager: ModeManager, now: int) -> Refused | None:
            if check:
                return manager.can_change_to(mode, now)
            return manager.request_mode_change(mode, now)

        return self._managers.act(robot, request)

    @command()
    def confirm_tool(self, robot: str = "") -> Any:
        """The tool that was asked for is mounted."""
        return self._managers.act(robot, ModeManager.confirm_tool)

    @command()
    def retry_changeover(self, robot: str = "") -> Any:
        """Start a failed changeover again."""
        return self._managers.act(robot, ModeManager.retry)

    @command()
    def abort_changeover(self, robot: str = "") -> Any:
        """End a changeover; back, or to MANUAL."""
        return self._managers.act(robot, ModeManager.abort)


def _note_change(
    name: str, log: EventLog, old: OperationMode, new: OperationMode, now: int
) -> None:
    log.note("mode", name, f"{old} → {new}", now)
