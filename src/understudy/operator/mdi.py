"""Manual data input: single lines in the language of a robot, their answers and their history."""

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.program import LineState
from understudy.units import seconds

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

MOST_ENTRIES = 100
Line = Annotated[str, Meta(min_length=1, max_length=256)]
Outcome = LineState | Literal["refused"]


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(MdiCommands(cell.robots))


class Entry(Struct, frozen=True):
    """A line, when it was given, and what became of it. `answer`: why it failed."""

    number: int
    time_s: float
    line: str
    state: Outcome
    answer: str = ""


class MdiCommands:
    """The history is of this run of the cell; snapshots do not hold it."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots
        self._entries: dict[str, deque[Entry]] = defaultdict(lambda: deque(maxlen=MOST_ENTRIES))
        self._count = 0

    @command()
    def mdi(self, robot: str, line: Line) -> Any:
        """Run one line in the language of the robot; refused while a program runs."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        self._settle(found)
        refused = _refusal(found, line)
        self._count += 1
        at = seconds(found.side.time.now())
        state: Outcome = "refused" if refused else "running"
        answer = _without_count(refused.reason) if refused else ""
        entries = self._entries[robot]
        entries.append(Entry(self._count, at, line.strip(), state, answer))
        self._settle(found)
        return to_builtins(entries[-1])

    @query()
    def mdi_history(self, robot: str) -> Any:
        """The last lines and answers."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        self._settle(found)
        return {"entries": [to_builtins(entry) for entry in self._entries[robot]]}

    def _settle(self, robot: Robot) -> None:
        """Notes the outcome of the line that was carried out last, once the robot has ended it;
        refused lines may have come since."""
        entries, program = self._entries[robot.name], robot.side.program
        places = range(len(entries) - 1, -1, -1)
        at = next((place for place in places if entries[place].state == "running"), None)
        if at is None or program is None:
            return
        state, reason = program.line_outcome(robot.side.time.now())
        if state != "running":
            entries[at] = replace(entries[at], state=state, answer=_without_count(reason))


def _refusal(robot: Robot, line: str) -> Refused | None:
    program = robot.side.program
    if program is None:
        return Refused(f"{robot.name} ({robot.kind}) takes no lines")
    if refused := robot.motion_refusal("send_gcode"):
        return refused
    if program.under_way():
        return Refused(f"a program is running on {robot.name}: no MDI line until it ends")
    if error := robot.condition().error:
        return Refused(f"not started, reset first: an earlier error is active ({error})")
    return robot.side.time.act(lambda now: program.run_line(line, now))


def _without_count(reason: str) -> str:
    """A reason without the number of its line: the controller counts all lines of the session."""
    return re.sub(r"\bline \d+(?:, (?=column)|: ?)", "", reason)
