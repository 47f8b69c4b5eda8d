"""A live cell without sockets, in lock-step: time passes only in `forward`."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports.hmi import Later


class Bench:
    """Calls operator commands by name; `refusal` expects that a command is refused."""

    def __init__(self, cell: str, files: Path | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        options = Options(rate="step", ephemeral=True, files=files)
        self.live = self._loop.run_until_complete(self._made(cell, options))

    async def _made(self, cell: str, options: Options) -> Live:
        return Live(load_config(cell).without_rules(), options)

    def close(self) -> None:
        self._loop.run_until_complete(self.live.stop())
        self._loop.close()

    def ask(self, name: str, /, **parameters: Any) -> Any:
        return self._loop.run_until_complete(self._answer(name, parameters))

    async def _answer(self, name: str, parameters: dict[str, Any]) -> Any:
        answer = self.live.commands.call(name, parameters, "operator")
        if not isinstance(answer, Later):
            return answer
        ended = self._loop.create_future()
        answer.then(ended.set_result)
        return await ended

    def do(self, name: str, /, **parameters: Any) -> Any:
        answer = self.ask(name, **parameters)
        assert not isinstance(answer, Refused), f"{name}: {answer.reason}"
        return answer

    def refusal(self, name: str, /, **parameters: Any) -> str:
        answer = self.ask(name, **parameters)
        assert isinstance(answer, Refused), f"{name} was not refused: {answer}"
        return answer.reason

    def forward(self, seconds: float) -> None:
        self.live.advance(seconds)

    # ── what is seen ──

    def facts(self, robot: str) -> dict[str, Any]:
        return next(each for each in self.do("robots")["robots"] if each["name"] == robot)

    def row(self, robot: str) -> dict[str, Any]:
        """Joints and pose now."""
        rows: list[dict[str, Any]] = self.do("sample", robot=robot, count=1)["rows"]
        return rows[-1]

    def joints(self, robot: str) -> list[float]:
        return [round(value, 4) + 0.0 for value in self.row(robot)["joints_deg"]]

    def pose(self, robot: str) -> list[float]:
        return [round(value, 3) + 0.0 for value in self.row(robot)["pose_mm_deg"]]

    def pin(self, robot: str, bank: str, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.do("io", robot=robot)[bank][number]
        return found


@pytest.fixture
def bench_of() -> Iterator[Callable[[str], Bench]]:
    made: list[Bench] = []

    def make(cell: str) -> Bench:
        made.append(Bench(cell))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(bench_of: Callable[[str], Bench]) -> Bench:
    """A cell with every kind of robot except the machine."""
    return bench_of("default")


@pytest.fixture
def arm(bench_of: Callable[[str], Bench]) -> Bench:
    """The welding arm with its drives on and the torch pointing down."""
    made = bench_of("g60_welding")
    made.do("enable", robot="g60")
    made.do("set_joint_positions", robot="g60", joints_deg=[0, 0, 37, 0, 53, 0])
    return made
