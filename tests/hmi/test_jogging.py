"""The hand that is felt: a jog goes on while it is there, and no longer."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from understudy.hmi.pages import jog
from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.jog import Jogging

ORDER = {"frame": "joint", "axis": 0, "speed": 20.0}


class Desk:
    """A browser that notes what it is asked."""

    def __init__(self, mode: str = "SIMULATION", refuses: str = "") -> None:
        self.robot = "g60"
        self.picture = SimpleNamespace(robots={"g60": {"mode": mode}})
        self.asked: list[str] = []
        self._refuses = refuses
        self.stopped = asyncio.Event()

    async def ask(self, command: str, parameters: Any = None) -> Any:
        self.asked.append(command)
        if command == "stop_jog":
            self.stopped.set()
        return None if command == self._refuses else {}

    async def look(self, command: str, parameters: Any = None) -> Any:
        return await self.ask(command, parameters)

    async def order(self, command: str, parameters: Any = None) -> Any:
        return await self.ask(command, parameters)


def played(scene: Callable[[Desk, Jogging], Awaitable[None]], **desk: str) -> list[str]:
    async def play() -> list[str]:
        browser = Desk(**desk)
        await scene(browser, Jogging(cast(Browser, browser), nullcontext()))
        return browser.asked

    return asyncio.run(asyncio.wait_for(play(), 60.0))


def test_a_hand_that_lets_go_ends_the_jog() -> None:
    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        await jogging.feel()
        jogging.let_go()
        await browser.stopped.wait()
        await jogging.feel()

    assert played(scene) == ["jog", "stop_jog"]


def test_a_hand_that_is_not_felt_any_more_ends_the_jog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jog, "LATE_SECONDS", 0.01)

    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        await browser.stopped.wait()

    assert played(scene) == ["jog", "stop_jog"]


def test_one_axis_at_a_time() -> None:
    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        await jogging.hold({**ORDER, "axis": 1})

    assert played(scene) == ["jog"]


def test_a_jog_that_was_refused_need_not_be_ended() -> None:
    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        jogging.let_go()

    assert played(scene, refuses="jog") == ["jog"]


def test_a_real_robot_feels_the_hand_itself_each_time_it_is_felt() -> None:
    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        for _ in range(3):
            await jogging.feel()

    assert played(scene, mode="REAL") == ["jog", "heartbeat", "heartbeat", "heartbeat"]


def test_a_real_robot_that_does_not_feel_it_is_stopped() -> None:
    async def scene(browser: Desk, jogging: Jogging) -> None:
        await jogging.hold(ORDER)
        await jogging.feel()
        await browser.stopped.wait()

    assert played(scene, mode="REAL", refuses="heartbeat") == ["jog", "heartbeat", "stop_jog"]
