"""Running far ahead in slices: whatever comes meanwhile has its turn, and ends where it should."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from understudy.app import load_config
from understudy.errors import Refused
from understudy.live import Live, Options
from understudy.ports.hmi import Later
from understudy.wire import pump

Scene = Callable[[Live], Awaitable[None]]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every wake is a slice of its own."""
    monkeypatch.setattr(pump, "TURN_SECONDS", -1.0)


def play(scene: Scene) -> None:
    async def run() -> None:
        live = Live(load_config("text_robot"), Options(rate="step", ephemeral=True))
        await live.start()
        try:
            await asyncio.wait_for(scene(live), 20.0)
        finally:
            await live.stop()

    asyncio.run(run())


def advance(live: Live, seconds: float) -> Any:
    return live.desk.call("advance", {"seconds": seconds}, "operator")


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
        moved = live.desk.call("home", {"robot": "bench"}, "operator")
        assert not isinstance(moved, Refused)
        later = advance(live, 60.0)
        live.desk.call("emergency_stop", {}, "operator")
        at = live.now
        assert at < 60.0
        await answer(later)
        assert live.watch.look().robots["bench"].state == "EmergencyStopped"

    play(scene)


def test_a_moment_that_is_brought_back_overtakes_it() -> None:
    async def scene(live: Live) -> None:
        kept = live.desk.call("snapshot", {}, "operator")["snapshot"]
        later = advance(live, 60.0)
        live.desk.call("restore", {"snapshot": kept}, "operator")
        refused = await answer(later)
        assert isinstance(refused, Refused)
        assert refused.code == 4
        assert live.now == 0.0

    play(scene)


async def _lines(live: Live, *requests: bytes) -> list[bytes]:
    host, _, port = live.endpoints["control"].removeprefix("tcp://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"".join(requests))
    said = [await reader.readline() for _ in requests]
    writer.close()
    return said


def test_on_one_control_line_answers_keep_their_order_and_others_do_not_wait() -> None:
    async def scene(live: Live) -> None:
        slow = b'{"id": 1, "do": "advance", "seconds": 3}\n{"id": 2, "do": "now"}\n'
        one = asyncio.create_task(_lines(live, slow, b'{"id": 3, "do": "now"}\n', b""))
        said = await one
        assert [line[:8] for line in said] == [b'{"id":1,', b'{"id":2,', b'{"id":3,']
        assert all(b'"now_s":3.0' in line for line in said)

    play(scene)
