"""Jog dead-man: a held jog goes on while the browser keeps it alive."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from understudy.hmi.frame.browser import Browser
from understudy.hmi.pages.program import jog
from understudy.hmi.pages.program.jog import Jogging

JOG = {"frame": "joint", "axis": 0, "speed": 20.0}


class FakeBrowser:
    """A browser that records its commands."""

    def __init__(self, mode: str = "SIMULATION", refuses: str = "") -> None:
        self.robot = "g60"
        self.cell = SimpleNamespace(robots={"g60": {"mode": mode}})
        self.asked: list[str] = []
        self._refuses = refuses
        self.stopped = asyncio.Event()

    async def command(self, command: str, parameters: Any = None) -> Any:
        self.asked.append(command)
        if command == "stop_jog":
            self.stopped.set()
        return None if command == self._refuses else {}

    async def query(self, command: str, parameters: Any = None) -> Any:
        return await self.command(command, parameters)

    async def robot_command(self, command: str, parameters: Any = None) -> Any:
        return await self.command(command, parameters)


def sent(scene: Callable[[FakeBrowser, Jogging], Awaitable[None]], **options: str) -> list[str]:
    async def run() -> list[str]:
        browser = FakeBrowser(**options)
        await scene(browser, Jogging(cast(Browser, browser), nullcontext()))
        return browser.asked

    return asyncio.run(asyncio.wait_for(run(), 60.0))


def test_a_release_ends_the_jog() -> None:
    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        await jogging.keep_alive()
        jogging.release()
        await browser.stopped.wait()
        await jogging.keep_alive()

    assert sent(scene) == ["jog", "stop_jog"]


def test_the_timeout_ends_the_jog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jog, "TIMEOUT_SECONDS", 0.01)

    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        await browser.stopped.wait()

    assert sent(scene) == ["jog", "stop_jog"]


def test_one_axis_at_a_time() -> None:
    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        await jogging.hold({**JOG, "axis": 1})

    assert sent(scene) == ["jog"]


def test_a_refused_jog_is_not_stopped() -> None:
    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        jogging.release()

    assert sent(scene, refuses="jog") == ["jog"]


def test_a_real_robot_gets_a_heartbeat_with_every_keep_alive() -> None:
    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        for _ in range(3):
            await jogging.keep_alive()

    assert sent(scene, mode="REAL") == ["jog", "heartbeat", "heartbeat", "heartbeat"]


def test_a_refused_heartbeat_stops_the_jog() -> None:
    async def scene(browser: FakeBrowser, jogging: Jogging) -> None:
        await jogging.hold(JOG)
        await jogging.keep_alive()
        await browser.stopped.wait()

    assert sent(scene, mode="REAL", refuses="heartbeat") == ["jog", "heartbeat", "stop_jog"]
