"""Commands for programs: load, run, step, pause, stop, preview; and all of them at once."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Raw, to_builtins
from msgspec.json import encode

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.operator.background import BackgroundRuns, Slices, Work
from understudy.operator.clock import ClockCommands
from understudy.operator.robots import Jobs, Robot, Robots
from understudy.operator.table import Changes, Command, command, commands_of, query, safely
from understudy.ports.device import NamesSwitches
from understudy.ports.hmi import Later
from understudy.ports.jobs import Played
from understudy.ports.program import LONGEST_PROGRAM, MOST_BREAKPOINTS, ProgramControl
from understudy.registry import module_of
from understudy.units import MM

if TYPE_CHECKING:  # the offline check is imported where it is needed: it loads compiled code
    from understudy.offline.setup import Setup
    from understudy.operator.cell import OperatedCell

log = logging.getLogger(__name__)

WRITE_AT_ONCE = 1_000_000
"""Characters of a text that are written as JSON at once: some milliseconds."""
LOOK_BACK_AT_ONCE = 500
"""Lines before a start that are looked at on the event loop: some milliseconds."""
Text = Annotated[str, Meta(max_length=LONGEST_PROGRAM)]
Line = Annotated[int, Meta(ge=1)]
Lines = Annotated[tuple[Line, ...], Meta(max_length=MOST_BREAKPOINTS)]
NO_PREVIEW = Refused("programs of this robot have no preview")


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.programs) + commands_of(cell.all_programs)


def _with_text(shown: dict[str, Any], text: str) -> Work[dict[str, Any]]:
    """The program with its text as JSON, so that the door need not write it at once."""
    parts = []
    for first in range(0, len(text), WRITE_AT_ONCE):
        parts.append(encode(text[first : first + WRITE_AT_ONCE])[1:-1])
        yield
    return {**shown, "text": Raw(b'"' + b"".join(parts) + b'"')}


def _switch_names(robot: Robot) -> dict[str, str]:
    """Words of programs → what they switch on, of all devices of a robot."""
    names: dict[str, str] = {}
    for device in robot.devices.values():
        names |= device.switch_names() if isinstance(device, NamesSwitches) else {}
    return names


def _listed(work: Work[Any]) -> Work[dict[str, Any]]:
    return {"problems": (yield from work)}


def _drawn(
    work: "Work[dict[str, Any] | Refused]", *, runs: bool
) -> "Work[dict[str, Any] | Refused]":
    """The preview as it is shown; of a program that runs without the way to its first point."""
    from understudy.offline.preview import without_approach

    found = yield from work
    return found if isinstance(found, Refused) or not runs else without_approach(found)


# ── commands ────────────────────────────────────────────────────────────────────────────────────


class ProgramCommands:
    """Each command answers with the state of the program."""

    def __init__(
        self,
        config: CellConfig,
        robots: Robots,
        slices: Slices,
        runs: BackgroundRuns,
        changes: Changes,
    ) -> None:
        self._config = config
        self._robots = robots
        self._slices = slices
        self._runs = runs
        self._changes = changes
        self._setups: dict[str, Setup] = {}

    @query(large=True)
    def program(self, robot: str) -> Any:
        """The loaded program and its progress."""
        program = self._program(robot)
        if isinstance(program, Refused):
            return program
        shown = self._with(robot, lambda program, now: None)
        if len(program.text) <= WRITE_AT_ONCE:
            return {**shown, "text": program.text}
        return self._slices.do(_with_text(shown, program.text), "program")

    @command()
    def load_program(
        self,
        robot: str,
        text: Text,
        name: Annotated[str, Meta(max_length=256)] = "",
        breakpoints: Lines = (),
    ) -> Any:
        """Load and check a text; nothing moves.

        `breakpoints`: lines before which a run stops.
        """

        def reading() -> Work[Any]:  # at once, or in slices if it is long
            program = self._program(robot)
            if isinstance(program, Refused):
                return program
            refused = yield from program.prepare(text)
            if refused is not None:
                return refused
            return self._with(robot, lambda program, now: program.load_prepared(name, breakpoints))

        return self._changes.do(lambda: self._slices.do(reading(), "load_program"))

    @command()
    def run_program(
        self,
        robot: str,
        from_line: Line = 1,
        step: bool = False,
        process: Literal["restore", "leave"] | None = None,
    ) -> Any:
        """Run from a line on, or go on after a pause.

        `from_line`: start there, with the modes that earlier lines set. `step`: line by line.
        `process`: what to do about arc, gas and outputs that earlier lines switched on; without it
        such a start is refused.
        """

        def run(program: ProgramControl, now: int) -> Refused | None:
            if program.reading(now).state == "paused":
                return program.step(now) if step else program.resume(now)
            return program.run(now, from_line=from_line, step=step, process=process)

        return self._changes.do(
            lambda: self._at_line(robot, from_line, lambda: self._with(robot, run, moves=True))
        )

    def _at_line(self, robot: str, line: int, then: Callable[[], Any]) -> Any:
        """Calls ``then`` when it is known what a start at this line needs."""
        program = self._program(robot)
        if isinstance(program, Refused) or line <= LOOK_BACK_AT_ONCE:
            return then()

        def use(start: Any) -> Any:
            program.use_start(start)
            return then()

        find = program.starting(line)
        later = self._runs.in_thread("start_line", lambda _: find())
        return later if isinstance(later, Refused) else later.turned(safely(use, "start_line"))

    @query()
    def process_before(self, robot: str, from_line: Line) -> Any:
        """What lines before a line switch on and is off now."""
        found, program = self._robots.find(robot), self._program(robot)
        if isinstance(found, Refused) or isinstance(program, Refused):
            return program
        names = _switch_names(found)

        def missing() -> list[dict[str, Any]]:
            return [
                {"word": each.word, "line": each.line, "name": names.get(each.word, "")}
                for each in program.missing_process(from_line)
            ]

        return self._at_line(robot, from_line, missing)

    @command()
    def continue_weld(
        self, robot: str, overlap_mm: Annotated[float, Meta(ge=0, le=1000)] = 5.0
    ) -> Any:
        """Go on where the arc was lost that has ended the program.

        `overlap_mm`: so far before that place the arc is ignited again.
        """
        return self._changes.do(
            lambda: self._with(
                robot, lambda program, now: program.go_on(overlap_mm * MM, now), moves=True
            )
        )

    @command()
    def step_program(self, robot: str) -> Any:
        """Run one more line."""
        return self._with(robot, lambda program, now: program.step(now), moves=True)

    @command()
    def pause_program(self, robot: str) -> Any:
        """Hold; run_program goes on."""
        return self._with(robot, lambda program, now: program.pause(now))

    @command()
    def stop_program(self, robot: str) -> Any:
        """Brake and drop the rest."""
        return self._with(robot, lambda program, now: program.stop(now))

    @command()
    def set_breakpoints(self, robot: str, lines: Lines) -> Any:
        """Set the lines before which a run stops; run_program goes on.

        `late` in the answer: lines that the controller of a running program has already; there it
        stops from the next run on.
        """
        late: list[int] = []

        def put(program: ProgramControl, now: int) -> None:
            late.extend(program.set_breakpoints(lines, now))

        answer = self._with(robot, put)
        return answer if isinstance(answer, Refused) else {**answer, "late": late}

    @query()
    def check_program(self, robot: str, text: Text) -> Any:
        """The lines of a text that cannot be read; nothing is loaded."""
        program = self._program(robot)
        if isinstance(program, Refused):
            return program
        return self._slices.do(_listed(program.problems(text)), "check_program")

    @query()
    def program_words(self, robot: str) -> Any:
        """The words of the robot's language, each with its meaning.

        `switches` in the answer: the device that the word switches in this cell, such as an arc.
        """
        found, program = self._robots.find(robot), self._program(robot)
        if isinstance(found, Refused) or isinstance(program, Refused):
            return program
        names = _switch_names(found)
        return [
            {**to_builtins(each), "switches": names.get(each.word, "")} for each in program.words()
        ]

    @query()
    def preview(self, robot: str, text: Text | None = None) -> Any:
        """The path of the tool, computed and not run.

        `text`: None: the loaded program.
        """
        found, program = self._robots.find(robot), self._program(robot)
        if isinstance(found, Refused) or isinstance(program, Refused):
            return program
        work = self._planned(found, program.text if text is None else text)
        runs = text is None and program.under_way()
        return self._slices.do(_drawn(work, runs=runs), "preview")

    def _with(
        self,
        name: str,
        action: Callable[[ProgramControl, int], Refused | None],
        *,
        moves: bool = False,
    ) -> Any:
        robot, program = self._robots.find(name), self._program(name)
        if isinstance(robot, Refused) or isinstance(program, Refused):
            return program
        if moves and (refused := robot.motion_refusal("run_program")):
            return refused
        time = robot.side.time
        refused = time.act(lambda now: action(program, now))
        if isinstance(refused, Refused):
            return refused
        shown: dict[str, Any] = to_builtins(program.reading(time.now()))
        return {"robot": name, **shown}

    def _program(self, name: str) -> ProgramControl | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        if robot.side.program is None:
            return Refused(f"{name} ({robot.kind}) runs no programs")
        return robot.side.program

    # ── preview ──

    def _planned(self, robot: Robot, text: str) -> "Work[dict[str, Any] | Refused]":
        """The preview of a text, from where the robot is. The first one loads its modules."""
        from understudy.offline.preview import preview, preview_of_events

        yield
        if (events := robot.model.program_events) is not None:
            found = events(text, robot.axis_reading())
            return (yield from preview_of_events(found, robot.model.tip))
        setup = yield from self._setup(robot)
        if isinstance(setup, Refused):
            return setup
        here = robot.axis_reading().joints
        known = all(math.isfinite(angle) for angle in here)
        return (yield from preview(text, setup, here if known else ()))

    def _setup(self, robot: Robot) -> "Work[Setup | Refused]":
        """The robot that a preview is computed on, with the tool and offsets of now."""
        from understudy.offline.robot import can_be_checked, offline_robot

        if robot.name not in self._setups:
            if not can_be_checked(self._config, robot.name):
                return NO_PREVIEW
            yield
            try:
                offline = offline_robot(self._config, robot.name)
                yield
                found = offline.setup()
            except ConfigError as problem:
                return Refused(str(problem))
            if found is None:
                return NO_PREVIEW
            self._setups[robot.name] = replace(found, devices=None)
        setup = self._setups[robot.name]
        if robot.real is not None:
            return setup
        live: Setup = robot.model.live_setup(setup)
        return live


# ── all programs ────────────────────────────────────────────────────────────────────────────────


class AllPrograms:
    """The programs of all robots: loaded when the cell starts, and run by one command."""

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
        """Loads the programs that the cell file names; logs those that cannot be loaded. A robot
        that drives gets its program from its backend."""
        for robot in self._robots:
            named = self._config.robots[robot.name].program
            drives = hasattr(module_of("robots", robot.kind), "recorded_runs")
            if named is not None and not drives:
                answer = self._programs.load_program(robot.name, named.text, named.name)
                log_refusal = partial(_log_refusal, robot.name, named.name)
                if isinstance(answer, Later):
                    answer.then(log_refusal)
                else:
                    log_refusal(answer)

    @command()
    def run_programs(self) -> dict[str, Any]:
        """Let time run and switch drives on; if no robot moves, run the loaded program of every
        simulated robot, or its pick & place job."""
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
    """A REAL robot is never started by `run_programs`."""
    program = robot.side.program
    return robot.real is None and program is not None and bool(program.text.strip())
