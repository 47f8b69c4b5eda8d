"""`advance` in slices: other commands act between the slices, and time ends exactly."""

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
    """Makes every wake a slice of its own; the telemetry client causes many wakes."""
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


def test_an_advance_ends_at_its_exact_time() -> None:
    async def scene(live: Live) -> None:
        assert (await answer(advance(live, 7.5)))["now_s"] == 7.5
        assert live.now == 7.5

    play(scene)


def test_a_second_advance_starts_where_the_first_ends() -> None:
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


def test_a_restore_cancels_a_waiting_advance() -> None:
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


def test_answers_on_one_control_connection_keep_their_order_and_other_connections_do_not_wait() -> (
    None
):
    async def scene(live: Live) -> None:
        slow, slow_writer = await asyncio.open_connection(*address(live, "control"))
        first = {"id": 1, "do": "advance", "seconds": 3, "secret": live.secret}
        slow_writer.write(json.dumps(first).encode() + b'\n{"id": 2, "do": "now"}\n')
        quick, quick_writer = await asyncio.open_connection(*address(live, "control"))
        third = {"id": 3, "do": "now", "secret": live.secret}
        quick_writer.write(json.dumps(third).encode() + b"\n")
        at = json.loads(await quick.readline())["result"]["now_s"]
        assert at < 3.0
        said = [json.loads(await slow.readline()) for _ in range(2)]
        assert [(line["id"], line["result"]["now_s"]) for line in said] == [(1, 3.0), (2, 3.0)]
        for writer in (slow_writer, quick_writer):
            writer.transport.abort()

    play(scene)
