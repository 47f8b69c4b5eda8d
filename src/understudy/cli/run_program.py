"""`understudy run --program`: a program on a live cell, without the page."""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

from understudy.app.live import Live
from understudy.config.files import read_program
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.robots import Robot
from understudy.ports.hmi import Later

STEP_SECONDS = 0.01
LOOK_SECONDS = 0.5
"""Seconds between two looks at the rate and the drives."""


class ProgramOnStart:
    """A program that runs once everything listens. `outcome`: None until it has ended."""

    def __init__(self, file: Path, robot: str, *, leave: bool) -> None:
        self._file = file
        self._robot = robot
        self._leave = leave
        self._text = read_program(file).decode("utf-8", "replace")
        self._task: asyncio.Task[None] | None = None
        self.outcome: bool | None = None

    @property
    def failed(self) -> bool:
        """The command waits for the program (--exit), and the program was not done."""
        return self._leave and not self.outcome

    def start(self, live: Live) -> None:
        robot = _runner(live, self._robot)
        self._task = asyncio.get_running_loop().create_task(self._run(live, robot))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, live: Live, robot: Robot) -> None:
        refused = await self._begin(live, robot)
        if refused is None:
            await self._follow(live, robot)
        problem, seconds = (refused.reason, 0.0) if refused else _outcome(robot)
        self.outcome = not problem
        if problem:
            print(f"{self._file}: {problem}", file=sys.stderr)
        else:
            print(f"{self._file}: done in {seconds:.3f} s")
        if self._leave:
            live.finished.set()

    async def _begin(self, live: Live, robot: Robot) -> Refused | None:
        """Loads and starts the program; enables simulated drives, waits for real ones."""
        target = {"robot": robot.name}
        load = {**target, "text": self._text, "name": self._file.name}
        refused = await _call(live, "load_program", load)
        if robot.real is None:
            refused = refused or await _call(live, "enable", target)
        elif not robot.condition().enabled:
            print(f"{self._file}: waiting for the drives of {robot.name} to be enabled")
        while robot.real is not None and not robot.condition().enabled:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return refused or await _call(live, "run_program", target)

    async def _follow(self, live: Live, robot: Robot) -> None:
        """Waits for the end; advances time in lock step, where no client waits for an answer."""
        program, ended = robot.side.program, asyncio.Event()
        assert program is not None
        program.on_end(lambda text, now: ended.set())
        paused = False
        while program.under_way():
            before, paused = paused, _paused(robot)
            if paused and not before:
                print(f"{self._file}: waiting for cycle_start", flush=True)
            if live.rate == "step":
                live.advance(STEP_SECONDS)
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_SECONDS)


async def _call(live: Live, name: str, parameters: dict[str, Any]) -> Refused | None:
    """Calls a command, waits for a late answer, returns the refusal if there is one."""
    answer = live.commands.call(name, parameters, "operator")
    if isinstance(answer, Later):
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.then(ended.set_result)
        answer = await ended
    return answer if isinstance(answer, Refused) else None


def _runner(live: Live, name: str) -> Robot:
    able = {r.name: r for r in live.operator.robots if r.side.program is not None}
    if not able:
        raise ConfigError(f"no robot of the cell {live.config.name} runs programs")
    if name and name not in able:
        raise unknown("robot that runs programs", name, able)
    return able[name] if name else next(iter(able.values()))


def _paused(robot: Robot) -> bool:
    """The program stands at M0, in a feed hold or between two single steps."""
    assert robot.side.program is not None
    return robot.side.program.reading(robot.side.time.now()).state == "paused"


def _outcome(robot: Robot) -> tuple[str, float]:
    """The problem (empty if the program is done) and the elapsed seconds."""
    assert robot.side.program is not None
    reading = robot.side.program.reading(robot.side.time.now())
    problem = "" if reading.state == "done" else reading.error or f"stopped at line {reading.line}"
    return problem, reading.elapsed_s
