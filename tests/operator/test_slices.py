"""Long work in slices: other tasks run between them, and the number of works is limited."""

import asyncio
import time
from collections.abc import Generator

from understudy.operator.background import ENDED, MOST_AT_ONCE, TOO_MUCH, Slices
from understudy.ports.hmi import Later


def work(slices: int, answer: str = "done") -> Generator[None, None, str]:
    """Work that pauses after each slice."""
    for _ in range(slices):
        begun = time.monotonic()
        while time.monotonic() < begun + 0.011:
            pass
        yield
    return answer


def test_quick_work_is_answered_at_once() -> None:
    async def test() -> None:
        assert Slices().do(work(0)) == "done"

    asyncio.run(test())


def test_other_tasks_run_between_slices() -> None:
    async def test() -> None:
        said: list[str] = []
        slices = Slices()
        for name in ("first", "second"):
            later = slices.do(work(3, name))
            assert isinstance(later, Later)
            later.then(said.append)
        for turn in range(10):
            said.append(f"turn {turn}")
            await asyncio.sleep(0)
        assert [word for word in said if not word.startswith("turn")] == ["first", "second"]
        assert said.index("turn 1") < said.index("first")

    asyncio.run(test())


def test_too_much_work_is_refused_and_stop_ends_all() -> None:
    async def test() -> None:
        slices = Slices()
        answers: list[object] = []
        for _ in range(MOST_AT_ONCE):
            later = slices.do(work(1000))
            assert isinstance(later, Later)
            later.then(answers.append)
        assert slices.do(work(0)) is TOO_MUCH
        slices.stop()
        for _ in range(3):
            await asyncio.sleep(0)
        assert answers == [ENDED] * MOST_AT_ONCE
        assert slices.do(work(0)) == "done"

    asyncio.run(test())
