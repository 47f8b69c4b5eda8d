"""Programs at the desk: loaded, run, stepped, and looked at before they are run."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, to_builtins

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.motion import OfRobot
from understudy.operator.robots import Robot, Robots
from understudy.operator.slices import Slices, Work
from understudy.operator.table import Command

if TYPE_CHECKING:  # imported where needed: it brings compiled code
    from understudy.gcode.program import ProgramLine
    from understudy.jobs.program_run import ProgramRun
    from understudy.offline.setup import Setup

LONGEST_PROGRAM = 16 * 1024 * 1024
READ_AT_ONCE = 10_000
"""Characters: some hundred lines, some milliseconds."""
Text = Annotated[str, Meta(max_length=LONGEST_PROGRAM)]


class Load(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    text: Text
    name: Annotated[str, Meta(max_length=256)] = ""


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """`from_line`: with what the lines before it put in force. `step`: stop after every line."""

    robot: str
    from_line: Annotated[int, Meta(ge=1)] = 1
    step: bool = False


class Preview(Struct, frozen=True, forbid_unknown_fields=True):
    """`text`: none: what is loaded."""

    robot: str
    text: Text | None = None


class ProgramCommands:
    """Each command answers with the program's state."""

    def __init__(self, config: CellConfig, robots: Robots, slices: Slices) -> None:
        self._config = config
        self._robots = robots
        self._slices = slices
        self._setups: dict[str, Setup] = {}

    def commands(self) -> list[Command]:
        add = Command
        return [
            add("program", "what is loaded, and how far it is", self._show, OfRobot, role="viewer"),
            add("load_program", "text to run; it is checked, and nothing moves", self._load, Load),
            add("run_program", "from a line on, or on after a pause", self._run, Run),
            add("step_program", "one line more", self._of("step"), OfRobot),
            add("pause_program", "hold; run_program goes on", self._of("pause"), OfRobot),
            add("stop_program", "brake and forget the rest", self._of("stop"), OfRobot),
            add("preview", "the way of the tool, not run", self._preview, Preview, role="viewer"),
        ]

    def _show(self, given: OfRobot) -> Any:
        return self._with(given.robot, lambda program, now: None, text=True)

    def _load(self, given: Load) -> Any:
        """A short program is there when this returns; a long one is read in slices."""
        from understudy.gcode.program import program_lines

        program = self._program(given.robot)
        if isinstance(program, Refused):
            return program
        lines = program_lines(given.text, program.dialect)
        if len(given.text) <= READ_AT_ONCE:
            return self._take(given, tuple(lines))
        return self._slices.do(self._reading(given, lines))

    def _reading(self, given: Load, lines: "Iterator[ProgramLine]") -> Work[Any]:
        read = []
        for line in lines:
            read.append(line)
            yield
        return self._take(given, tuple(read))

    def _take(self, given: Load, lines: "tuple[ProgramLine, ...]") -> Any:
        return self._with(
            given.robot, lambda program, now: program.take(given.text, given.name, lines)
        )

    def _run(self, given: Run) -> Any:
        def run(program: "ProgramRun", now: int) -> Refused | None:
            if program.reading(now).state == "paused":
                return program.step(now) if given.step else program.resume(now)
            return program.run(now, from_line=given.from_line, step=given.step)

        return self._with(given.robot, run)

    def _of(self, verb: str) -> Callable[[OfRobot], Any]:
        return lambda given: self._with(
            given.robot, lambda program, now: getattr(program, verb)(now)
        )

    def _with(
        self,
        name: str,
        deed: Callable[["ProgramRun", int], Refused | None],
        *,
        text: bool = False,
    ) -> Any:
        robot, program = self._robots.find(name), self._program(name)
        if isinstance(robot, Refused) or isinstance(program, Refused):
            return program
        time = robot.side.time
        refused = time.act(lambda now: deed(program, now))
        if isinstance(refused, Refused):
            return refused
        shown: dict[str, Any] = to_builtins(program.reading(time.now()))
        return {"robot": name, **shown, **({"text": program.text} if text else {})}

    def _program(self, name: str) -> "ProgramRun | Refused":
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        if robot.side.program is None:
            return Refused(f"{name} ({robot.kind}) runs no programs from the desk")
        return robot.side.program

    # ── looking ahead ──

    def _preview(self, given: Preview) -> Any:
        from understudy.offline.preview import preview

        robot = self._robots.find(given.robot)
        setup = robot if isinstance(robot, Refused) else self._setup(robot)
        if isinstance(robot, Refused) or isinstance(setup, Refused):
            return setup
        text = given.text
        if text is None:
            text = robot.side.program.text if robot.side.program else ""
        here = robot.axis_reading().joints
        known = all(math.isfinite(angle) for angle in here)
        return self._slices.do(preview(text, setup, here if known else ()))

    def _setup(self, robot: Robot) -> "Setup | Refused":
        """What its programs are previewed on, with the tool and offsets of now."""
        from understudy.offline.robot import offline_robot

        if robot.simulated.program is None:
            able = [each.name for each in self._robots if each.simulated.program is not None]
            return Refused(str(unknown("robot that runs programs", robot.name, able)))
        if robot.name not in self._setups:
            try:
                found = offline_robot(self._config, robot.name).setup()
            except ConfigError as problem:
                return Refused(str(problem))
            assert found is not None, "what runs programs from the table runs G-code"
            self._setups[robot.name] = replace(found, devices=None)
        setup = self._setups[robot.name]
        if robot.real is not None:
            return setup
        live: Setup = robot.model.live_setup(setup)
        return live
