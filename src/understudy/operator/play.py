"""`play`: lets time run, runs loaded programs and starts pick & place; programs that a cell file
names."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.operator.clock import ClockCommands
from understudy.operator.jobs import Jobs
from understudy.operator.programs import ProgramCommands
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, command, commands_of
from understudy.ports.hmi import Later
from understudy.ports.jobs import Played

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

log = logging.getLogger(__name__)


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.play)


class PlayCommands:
    """Play, as the button of a page: one command for time, programs and jobs."""

    def __init__(
        self,
        config: CellConfig,
        robots: Robots,
        clock: ClockCommands,
        programs: ProgramCommands,
    ) -> None:
        self._config = config
        self._robots = robots
        self._clock = clock
        self._programs = programs
        self._jobs = Jobs(robots, Played, "a job to play")

    def load_named_programs(self) -> None:
        """Loads the programs that the cell file names; logs those that cannot be loaded."""
        for robot in self._robots:
            named = self._config.robots[robot.name].program
            if named is not None:
                answer = self._programs.load_program(robot.name, named.text, named.name)
                log_refusal = partial(_log_refusal, robot.name, named.name)
                if isinstance(answer, Later):
                    answer.then(log_refusal)
                else:
                    log_refusal(answer)

    @command()
    def play(self) -> dict[str, Any]:
        """Let time run; if no robot moves, run the loaded program of every simulated robot, or its
        pick & place job."""
        answer = self._clock.start()
        jobs = self._jobs.all().values()
        if any(robot.under_way() for robot in self._robots) or any(j.is_running() for j in jobs):
            return {**answer, "started": [], "refused": {}, "under_way": True}
        ready = [robot for robot in self._robots if _has_program(robot) or self._has_job(robot)]
        refusals: Mapping[str, Refused | None] = {r.name: self._begin(r) for r in ready}
        return {
            **answer,
            "started": [name for name, refused in refusals.items() if refused is None],
            "refused": {name: refused.reason for name, refused in refusals.items() if refused},
            "under_way": False,
        }

    def _begin(self, robot: Robot) -> Refused | None:
        """Switches the drives on where they are switched, and runs the program from its start, or
        the job of a robot without a program."""
        if "drives" in robot.skills() and not robot.condition().enabled:
            refused = robot.do("enable")
            if refused is not None:
                return refused
        if not _has_program(robot):
            answer = self._jobs.act(robot.name, lambda job, now: job.play(now))
        else:
            answer = self._programs.run_program(robot.name)
        return answer if isinstance(answer, Refused) else None

    def _has_job(self, robot: Robot) -> bool:
        return robot.real is None and robot.name in self._jobs.all()


def _log_refusal(robot: str, program: str, answer: Any) -> None:
    if isinstance(answer, Refused):
        log.warning("%s: the program %s is not loaded: %s", robot, program, answer.reason)


def _has_program(robot: Robot) -> bool:
    """A REAL robot is never started by `play`."""
    program = robot.side.program
    return robot.real is None and program is not None and bool(program.text.strip())
