"""Commands for programs: load, run, step, pause, stop, preview."""

import asyncio
import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, to_builtins

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.operator.robots import OfRobot, Robot, Robots
from understudy.operator.table import Command
from understudy.ports.device import NamesSwitches
from understudy.ports.hmi import Later
from understudy.ports.program import LONGEST_PROGRAM, ProgramControl, SourceLine

if TYPE_CHECKING:  # imported where needed: it brings compiled code
    from understudy.offline.setup import Setup

READ_AT_ONCE = 10_000
"""Characters: some hundred lines, some milliseconds."""
Outcome = TypeVar("Outcome")
Work = Generator[None, None, Outcome]
"""Long work: it yields wherever it may be interrupted, and returns the answer of the command."""
Text = Annotated[str, Meta(max_length=LONGEST_PROGRAM)]


class LoadProgram(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    text: Text
    name: Annotated[str, Meta(max_length=256)] = ""


class RunProgram(Struct, frozen=True, forbid_unknown_fields=True):
    """`from_line`: start there, with the modes that earlier lines set. `step`: line by line.
    `process`: what to do about arc, gas and outputs that earlier lines switched on; without it such
    a start is refused."""

    robot: str
    from_line: Annotated[int, Meta(ge=1)] = 1
    step: bool = False
    process: Literal["restore", "leave"] | None = None


class StartLine(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    from_line: Annotated[int, Meta(ge=1)]


class Preview(Struct, frozen=True, forbid_unknown_fields=True):
    """`text`: None: the loaded program."""

    robot: str
    text: Text | None = None


NO_PREVIEW = Refused("programs of this robot have no preview")

# ── long commands ───────────────────────────────────────────────────────────────────────────────

SLICE_SECONDS = 0.01
MOST_AT_ONCE = 4
ENDED = Refused("the cell has ended")
TOO_MUCH = Refused(f"{MOST_AT_ONCE} long commands are under way: try again when one has ended")


class Slices:
    """Runs long commands in slices on the event loop, so that a stop never waits behind one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._stopped = False

    def do(self, work: Work[Outcome]) -> Outcome | Later | Refused:
        """The answer if the first slice gives it, else a `Later`."""
        if self._under_way >= MOST_AT_ONCE:
            return TOO_MUCH
        over, answer = _one_slice(work)
        if over:
            assert answer is not None
            return answer
        self._under_way += 1
        later = Later()
        self._loop.call_soon(self._go_on, work, later)
        return later

    def stop(self) -> None:
        self._stopped = True

    def _go_on(self, work: Work[Outcome], later: Later) -> None:
        over, answer = _one_slice(work)
        if over or self._stopped:
            self._under_way -= 1
            later.settle(answer if over else ENDED)
        else:
            self._loop.call_soon(self._go_on, work, later)


def _one_slice(work: Work[Outcome]) -> tuple[bool, Outcome | None]:
    """Whether the work is over, and its answer."""
    deadline = time.monotonic() + SLICE_SECONDS
    try:
        while time.monotonic() < deadline:
            next(work)
    except StopIteration as end:
        return True, end.value
    return False, None


# ── commands ────────────────────────────────────────────────────────────────────────────────────


class ProgramCommands:
    """Each command answers with the state of the program."""

    def __init__(self, config: CellConfig, robots: Robots, slices: Slices) -> None:
        self._config = config
        self._robots = robots
        self._slices = slices
        self._setups: dict[str, Setup] = {}

    def commands(self) -> list[Command]:
        add = Command
        return [
            add(
                "program", "the loaded program and its progress", self._show, OfRobot, role="viewer"
            ),
            add("load_program", "load and check a text; nothing moves", self.load, LoadProgram),
            add("run_program", "run from a line on, or go on after a pause", self.run, RunProgram),
            add(
                "process_before",
                "what lines before a line switch on and is off now",
                self._process_before,
                StartLine,
                role="viewer",
            ),
            add("step_program", "run one more line", self._of("step"), OfRobot),
            add("pause_program", "hold; run_program goes on", self._of("pause"), OfRobot),
            add("stop_program", "brake and drop the rest", self._of("stop"), OfRobot),
            add(
                "preview",
                "the path of the tool, computed and not run",
                self._preview,
                Preview,
                role="viewer",
            ),
        ]

    def _show(self, given: OfRobot) -> Any:
        return self._with(given.robot, lambda program, now: None, text=True)

    def load(self, given: LoadProgram) -> Any:
        """Reads a short program at once, a long one in slices."""
        program = self._program(given.robot)
        if isinstance(program, Refused):
            return program
        lines = program.read_lines(given.text)
        if len(given.text) <= READ_AT_ONCE:
            return self._take(given, tuple(lines))
        return self._slices.do(self._reading(given, lines))

    def _reading(self, given: LoadProgram, lines: Iterator[SourceLine]) -> Work[Any]:
        read = []
        for line in lines:
            read.append(line)
            yield
        return self._take(given, tuple(read))

    def _take(self, given: LoadProgram, lines: tuple[SourceLine, ...]) -> Any:
        return self._with(
            given.robot, lambda program, now: program.load_lines(given.text, given.name, lines)
        )

    def run(self, given: RunProgram) -> Any:
        def run(program: ProgramControl, now: int) -> Refused | None:
            if program.reading(now).state == "paused":
                return program.step(now) if given.step else program.resume(now)
            return program.run(
                now, from_line=given.from_line, step=given.step, process=given.process
            )

        return self._with(given.robot, run, moves=True)

    def _process_before(self, given: StartLine) -> Any:
        robot, program = self._robots.find(given.robot), self._program(given.robot)
        if isinstance(robot, Refused) or isinstance(program, Refused):
            return program
        names: dict[str, str] = {}
        for device in robot.devices.values():
            names |= device.switch_names() if isinstance(device, NamesSwitches) else {}
        return [
            {"word": each.word, "line": each.line, "name": names.get(each.word, "")}
            for each in program.missing_process(given.from_line)
        ]

    def _of(self, verb: str) -> Callable[[OfRobot], Any]:
        return lambda given: self._with(
            given.robot, lambda program, now: getattr(program, verb)(now), moves=verb == "step"
        )

    def _with(
        self,
        name: str,
        action: Callable[[ProgramControl, int], Refused | None],
        *,
        text: bool = False,
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
        return {"robot": name, **shown, **({"text": program.text} if text else {})}

    def _program(self, name: str) -> ProgramControl | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        if robot.side.program is None:
            return Refused(f"{name} ({robot.kind}) runs no programs")
        return robot.side.program

    # ── preview ──

    def _preview(self, given: Preview) -> Any:
        from understudy.offline.preview import without_approach

        robot, program = self._robots.find(given.robot), self._program(given.robot)
        if isinstance(robot, Refused) or isinstance(program, Refused):
            return program
        work = self._planned(robot, program.text if given.text is None else given.text)
        if isinstance(work, Refused):
            return work
        if given.text is None and program.under_way():
            work = without_approach(work)
        return self._slices.do(work)

    def _planned(self, robot: Robot, text: str) -> "Work[dict[str, Any]] | Refused":
        """The preview of a text, from where the robot is."""
        from understudy.offline.preview import preview, preview_of_events

        if (events := robot.model.program_events) is not None:
            return preview_of_events(events(text, robot.axis_reading()), robot.model.tip)
        setup = self._setup(robot)
        if isinstance(setup, Refused):
            return setup
        here = robot.axis_reading().joints
        known = all(math.isfinite(angle) for angle in here)
        return preview(text, setup, here if known else ())

    def _setup(self, robot: Robot) -> "Setup | Refused":
        """The robot that a preview is computed on, with the tool and offsets of now."""
        from understudy.offline.robot import can_be_checked, offline_robot

        if robot.name not in self._setups:
            if not can_be_checked(self._config, robot.name):
                return NO_PREVIEW
            try:
                found = offline_robot(self._config, robot.name).setup()
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
