"""A cell whose robot is the REAL robot of another cell, and the operator of that one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

from msgspec import structs

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.config.cell import RealPlace
from understudy.errors import Refused
from understudy.ports.hmi import Later
from understudy.ports.operation import AxisReading
from understudy.units import DEG, MM

PATIENCE_SECONDS = 180.0
"""For a whole test: its robots move in real time."""


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within_patience() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test()

    asyncio.run(within_patience())


class Operator:
    """An operator of a cell whose robot has a REAL sibling at a port."""

    def __init__(self, live: Live, robot: str) -> None:
        self.live = live
        self.robot = robot

    def ask(self, name: str, /, **parameters: Any) -> Any:
        return self.live.commands.call(name, parameters, "operator")

    def do(self, name: str, /, **parameters: Any) -> Any:
        answer = self.ask(name, **parameters)
        assert not isinstance(answer, Refused), f"{name}: {answer.reason}"
        return answer

    def on(self, name: str, /, **parameters: Any) -> Any:
        return self.do(name, robot=self.robot, **parameters)

    async def later(self, name: str, /, **parameters: Any) -> Any:
        """The answer of a command that may answer later."""
        answer = self.on(name, **parameters)
        if isinstance(answer, Later):
            answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            answer.then(answered.set_result)
            answer = await answered
        assert not isinstance(answer, Refused), f"{name}: {answer.reason}"
        return answer

    def refusal(self, name: str, /, **parameters: Any) -> str:
        answer = self.ask(name, **parameters)
        assert isinstance(answer, Refused), f"{name} was not refused: {answer}"
        return answer.reason

    @property
    def facts(self) -> dict[str, Any]:
        robots = self.do("robots")["robots"]
        return next(each for each in robots if each["name"] == self.robot)

    async def until(self, seen: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not seen(facts := self.facts):  # noqa: ASYNC110 - a robot is looked at, as a page does
            await asyncio.sleep(0.005)
        return facts

    async def ended(self) -> dict[str, Any]:
        """The program, once it has begun and ended."""
        while (shown := self.on("program"))["state"] in ("idle", "running"):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return dict(shown)

    async def connected(self) -> None:
        await self.until(lambda facts: facts["connected"] and not facts["error"])
        await self.at_rest()

    async def at_rest(self) -> None:
        await self.until(lambda facts: not facts["moving"])

    def axis_reading(self) -> AxisReading:
        robot = self.live.operator.robots.find(self.robot)
        assert not isinstance(robot, Refused)
        return robot.axis_reading()

    def joints(self) -> list[float]:
        return [round(value / DEG, 2) for value in self.axis_reading().joints]

    def pose(self) -> list[float]:
        return [value / MM for value in self.axis_reading().pose[:3]]


@contextlib.asynccontextmanager
async def alive(
    cell: str,
    robot: str,
    *,
    at: RealPlace | None = None,
    controller: str = "simulation",
    **options: Any,
) -> AsyncIterator[Live]:
    """A live cell; ``at``: the address of the REAL robot."""
    config = load_config(cell).without_rules()
    if at:
        robots = dict(config.robots)
        robots[robot] = structs.replace(robots[robot], real=at)
        config = replace(config, robots=robots)
    config = replace(config, head=structs.replace(config.head, controller=controller))
    live = Live(config, Options(**{"ephemeral": True, "hmi": False, **options}))
    await live.start()
    try:
        yield live
    finally:
        await live.stop()
