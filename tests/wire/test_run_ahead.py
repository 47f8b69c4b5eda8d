"""Running far ahead in slices: whatever comes meanwhile has its turn, and ends where it should."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports.hmi import Later
from understudy.wire import pump

Scene = Callable[[Live], Awaitable[None]]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every wake is a slice of its own; and a client of telemetry makes many."""
    monkeypatch.setattr(pump, "TURN_SECONDS", -1.0)


def play(scene: Scene) -> None:
    async def run() -> None:
        live = Live(load_config("kuka_eki"), Options(rate="step", ephemeral=True))
        await live.start()
        where = address(live, "kuka.kuka_eki.telemetry")
        _, writer = await asyncio.open_connection(*where)
        try:
            await asyncio.wait_for(scene(live), 60.0)
        finally:
            writer.transport.abort()
            await live.stop()

    asyncio.run(run())


def address(live: Live, endpoint: str) -> tuple[str, int]:
    host, _, port = live.endpoints[endpoint].removeprefix("tcp://").rpartition(":")
    return host, int(port)


def advance(live: Live, seconds: float) -> Any:
    return live.commands.call("advance", {"seconds": seconds}, "operator")


async def answer(later: Any) -> Any:
    assert isinstance(later, Later)
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    later.then(future.set_result)
    return await future


def test_time_ends_where_it_was_to_end() -> None:
    async def scene(live: Live) -> None:
        assert (await answer(advance(live, 7.5)))["now_s"] == 7.5
        assert live.now == 7.5

    play(scene)


def test_what_is_asked_for_meanwhile_begins_where_that_ends() -> None:
    async def scene(live: Live) -> None:
        first, second = advance(live, 5.0), advance(live, 2.0)
        assert (await answer(first))["now_s"] == 5.0
        assert (await answer(second))["now_s"] == 7.0

    play(scene)


def test_a_stop_acts_between_two_slices() -> None:
    async def scene(live: Live) -> None:
        later = advance(live, 60.0)
        live.commands.call("emergency_stop", {}, "operator")
        at = live.now
        assert at < 60.0
        await answer(later)
        assert live.watch.look().robots["kuka"].state == "Stopped"

    play(scene)


def test_a_moment_that_is_brought_back_overtakes_it() -> None:
    async def scene(live: Live) -> None:
        taken = live.commands.call("snapshot", {}, "operator")
        assert not isinstance(taken, Refused)
        kept = taken["snapshot"]
        later = advance(live, 60.0)
        live.commands.call("restore", {"snapshot": kept}, "operator")
        refused = await answer(later)
        assert isinstance(refused, Refused)
        assert refused.code == 4
        assert live.now == 0.0

    play(scene)


def test_on_one_control_line_answers_keep_their_order_and_others_do_not_wait() -> None:
    async def scene(live: Live) -> None:
        slow, slow_writer = await asyncio.open_connection(*address(live, "control"))
        slow_writer.write(b'{"id": 1, "do": "advance", "seconds": 3}\n{"id": 2, "do": "now"}\n')
        quick, quick_writer = await asyncio.open_connection(*address(live, "control"))
        quick_writer.write(b'{"id": 3, "do": "now"}\n')
        at = json.loads(await quick.readline())["result"]["now_s"]
        assert at < 3.0
        said = [json.loads(await slow.readline()) for _ in range(2)]
        assert [(line["id"], line["result"]["now_s"]) for line in said] == [(1, 3.0), (2, 3.0)]
        for writer in (slow_writer, quick_writer):
            writer.transport.abort()

    play(scene)
