"""Commands of the job that welds seams."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.errors import Refused
from understudy.jobs.weld.sequencer import WeldingSequencer
from understudy.operator.robots import Jobs
from understudy.operator.table import Command, command, commands_of, query
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

MOST_LINES = 10_000
Seam = Annotated[
    list[Annotated[str, Meta(max_length=250)]], Meta(min_length=1, max_length=MOST_LINES)
]


def commands(cell: "OperatedCell") -> list[Command]:
    sequencers = Jobs(cell.robots, WeldingSequencer, "weld job")
    return commands_of(WeldCommands(sequencers)) if sequencers else []


class WeldCommands:
    """`robot` can be left out if one robot of the cell has a weld job."""

    def __init__(self, sequencers: Jobs[WeldingSequencer]) -> None:
        self._sequencers = sequencers

    @query()
    def weld_job(self, robot: str = "") -> Any:
        """Phase of the seam, and the reason of a fault."""
        return self._sequencers.look(robot)

    @command()
    def continue_seam(
        self, robot: str = "", overlap_mm: Annotated[float, Meta(ge=0, le=1000)] = 5.0
    ) -> Any:
        """Weld the rest of a seam whose arc was lost.

        `overlap_mm`: so far before that place the arc is ignited again. The torch must be turned
        as it was on the seam.
        """
        return self._start(robot, lambda job, now: job.go_on(overlap_mm * MM, now))

    @command()
    def weld_seam(self, lines: Seam, robot: str = "") -> Any:
        """Weld along moves, from where the robot is.

        Gas and arc first; the moves are sent when the arc burns.
        """
        return self._start(robot, lambda job, now: job.start(lines, now))

    def _start(self, robot: str, start: Callable[[WeldingSequencer, int], Refused | None]) -> Any:
        return self._sequencers.act_at_rest(robot, start, "a seam starts at rest")
