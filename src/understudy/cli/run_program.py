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
"""How often it is looked whether the rate is another one."""


class Errand:
    """A program to be run once everything listens, and how that went: None until it is over."""

    def __init__(self, file: Path, robot: str, *, leave: bool) -> None:
        self._file = file
        self._robot = robot
        self._leave = leave
        self._text = read_program(file).decode("utf-8", "replace")
        self._task: asyncio.Task[None] | None = None
        self.outcome: bool | None = None

    @property
    def failed(self) -> bool:
        """Whoever waited for it has waited in vain."""
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
            await self._see_through(live, robot)
        problem, seconds = (refused.reason, 0.0) if refused else _outcome(robot)
        self.outcome = not problem
        if problem:
            print(f"{self._file}: {problem}", file=sys.stderr)
        else:
            print(f"{self._file}: done in {seconds:.3f} s")
        if self._leave:
            live.finished.set()

    async def _begin(self, live: Live, robot: Robot) -> Refused | None:
        """Simulated drives are enabled for it; real ones by hand, and that is waited for."""
        whom = {"robot": robot.name}
        load = {**whom, "text": self._text, "name": self._file.name}
        refused = await _told(live, "load_program", load)
        if robot.real is None:
            refused = refused or await _told(live, "enable", whom)
        elif not robot.condition().enabled:
            print(f"{self._file}: waits until the drives of {robot.name} are enabled")
        while robot.real is not None and not robot.condition().enabled:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return refused or await _told(live, "run_program", whom)

    async def _see_through(self, live: Live, robot: Robot) -> None:
        """In lock-step nobody is owed anything while a program runs: its time is let run here."""
        program, ended = robot.side.program, asyncio.Event()
        assert program is not None
        program.on_end(lambda text, now: ended.set())
        paused = False
        while program.under_way():
            before, paused = paused, _paused(robot)
            if paused and not before:
                print(f"{self._file}: waits for cycle_start", flush=True)
            if live.rate == "step":
                live.advance(STEP_SECONDS)
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_SECONDS)


async def _told(live: Live, name: str, parameters: dict[str, Any]) -> Refused | None:
    """A command, and why it was refused; one that takes long is waited for."""
    answer = live.desk.call(name, parameters, "operator")
    if isinstance(answer, Later):
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.then(ended.set_result)
        answer = await ended
    return answer if isinstance(answer, Refused) else None


def _runner(live: Live, name: str) -> Robot:
    able = {r.name: r for r in live.cell_desk.robots if r.side.program is not None}
    if not able:
        raise ConfigError(f"no robot of the cell {live.config.name} runs programs from the desk")
    if name and name not in able:
        raise unknown("robot that runs programs", name, able)
    return able[name] if name else next(iter(able.values()))


def _paused(robot: Robot) -> bool:
    """At M0, in a hold, or between two steps: somebody has to let it go on."""
    assert robot.side.program is not None
    return robot.side.program.reading(robot.side.time.now()).state == "paused"


def _outcome(robot: Robot) -> tuple[str, float]:
    """What went wrong, and how long it took."""
    assert robot.side.program is not None
    reading = robot.side.program.reading(robot.side.time.now())
    problem = "" if reading.state == "done" else reading.error or f"stopped at line {reading.line}"
    return problem, reading.elapsed_s
