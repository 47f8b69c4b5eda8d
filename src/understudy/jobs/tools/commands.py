"""The tool table of a robot with jobs, and changes at the docks of its tool changer."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.errors import Refused
from understudy.jobs.tools.change import ToolChanger
from understudy.jobs.tools.manager import ToolManager
from understudy.operator.robots import Jobs
from understudy.operator.table import Command, command, commands_of, query

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

ToolNumber = Annotated[int, Meta(ge=0, le=99)]


def commands(cell: "OperatedCell") -> list[Command]:
    tables = Jobs(cell.robots, ToolManager, "tools")
    changers = Jobs(cell.robots, ToolChanger, "tool_change")
    found = commands_of(ToolTableCommands(tables)) if tables else []
    return found + (commands_of(ToolChangeCommands(changers)) if changers else [])


class ToolTableCommands:
    """`robot` can be left out if one robot of the cell has a tool table."""

    def __init__(self, tables: Jobs[ToolManager]) -> None:
        self._tables = tables

    @query()
    def tool_table(self, robot: str = "") -> Any:
        """The tool table and the active tool (m, rad, kg)."""
        return self._tables.look(robot)


class ToolChangeCommands:
    """`robot` can be left out if one robot of the cell has a tool changer."""

    def __init__(self, changers: Jobs[ToolChanger]) -> None:
        self._changers = changers

    @query()
    def tool_change(self, robot: str = "") -> Any:
        """State of a tool change."""
        return self._changers.look(robot)

    @command()
    def change_tool(self, tool: ToolNumber, robot: str = "", check: bool = False) -> Any:
        """Change the tool at the docks.

        `check`: change nothing; the answer says whether it would be refused now.
        """

        def change(changer: ToolChanger, now: int) -> Refused | None:
            outcome = changer.planned(tool, now) if check else changer.change(tool, now)
            return outcome if isinstance(outcome, Refused) else None

        return self._changers.act_at_rest(robot, change, "tools are changed at rest only")

    @command()
    def cancel_tool_change(self, robot: str = "") -> Any:
        """End a change where it is."""
        return self._changers.act(robot, ToolChanger.cancel)
