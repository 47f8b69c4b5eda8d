"""Frames for browsers: the same for all, one slot each, trails without gaps."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.browsers import TIMEOUT_SECONDS
from tests.free_ports import free_port

from understudy.hmi.state import StateFeed, StateFrame, Subscriber
from understudy.operator.doors import Doors
from understudy.operator.doors.state import state_face
from understudy.ports.hmi import CellView, Known
from understudy.wire.exchange import Exchange
from understudy.wire.tcp import Config, TcpServer


class Seam:
    """A cell view of a robot whose trail grows or is cleared by the test."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float, float]] = []
        self.version = 0
        self.asked = 0

    def grow(self, count: int) -> None:
        start = len(self.points)
        self.points = [*self.points, *((float(start + n), 0.0, 0.0) for n in range(count))]

    def clear(self, marked: float) -> None:
        self.points = [(marked, 1.0, 0.0)]
        self.version += 1

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        self.asked += 1
        known = (trail_from or {}).get("g60", (0, 0))
        assert isinstance(known, tuple)
        held = known[0] if known[1] == self.version else 0
        trail = (held, self.points[held:], self.version)
        return CellView(self.asked, 0.0, 0.0, 1.0, {}, {"g60": trail})


class Browser:
    """Reads frames as a page does: extends its trail, or replaces it."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._listener = subscriber
        self.trail: list[Any] = []

    async def read(self) -> bytes:
        data = await self._listener.take()
        first, points, _ = msgspec.msgpack.decode(data)["trail"]["g60"]
        assert first in (0, len(self.trail)), "a gap in the trail, or a point twice"
        self.trail = [*(self.trail if first else []), *map(tuple, points)]
        return data


Scene = Callable[[Seam, StateFeed], Awaitable[None]]


def play(scene: Scene, rate_hz: float = 500.0) -> None:
    async def run() -> None:
        seam = Seam()
        untimed = Exchange(Doors({"state": state_face(seam)}))
        server = TcpServer("state", Config(), untimed)
        feed = StateFeed(await server.start(), rate_hz=rate_hz)
        await feed.start()
        try:
            await asyncio.wait_for(scene(seam, feed), TIMEOUT_SECONDS)
        finally:
            await feed.stop()
            await server.stop()

    asyncio.run(run())


def test_two_browsers_get_the_same_bytes() -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        with feed.subscribed() as one, feed.subscribed() as two:
            for _ in range(5):
                assert await one.take() == await two.take()

    play(scene)


def test_a_restart_discards_the_frame_in_the_slot() -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        subscriber = Subscriber()
        taking = asyncio.create_task(subscriber.take())
        await asyncio.sleep(0)
        subscriber.offer(StateFrame(b"of the cell before", {}, {}))
        subscriber.restart()
        await asyncio.sleep(0)
        subscriber.offer(StateFrame(b"of the cell now", {}, {}))
        assert await taking == b"of the cell now"

    play(scene)


def test_no_frames_are_requested_without_a_browser() -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        assert seam.asked == 0
        with feed.subscribed() as one:
            await one.take()
        assert seam.asked >= 1

    play(scene)


def test_a_browser_that_joins_late_gets_the_whole_trail() -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        seam.grow(5)
        with feed.subscribed() as early:
            first = Browser(early)
            await first.read()
            with feed.subscribed() as late:
                second = Browser(late)
                seam.grow(3)
                while len(second.trail) < 8 or len(first.trail) < 8:
                    await first.read()
                    await second.read()
            assert first.trail == second.trail == seam.points

    play(scene)


def test_a_browser_that_does_not_read_holds_one_frame_and_slows_no_other() -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        with feed.subscribed() as slow, feed.subscribed() as quick:
            stalled, reader = Browser(slow), Browser(quick)
            await stalled.read()
            for _ in range(10):
                seam.grow(1)
                await reader.read()
            while len(reader.trail) < 10:
                await reader.read()
            asked = seam.asked
            while len(stalled.trail) < 10:
                await stalled.read()
                await reader.read()
            assert seam.asked - asked <= 10
            assert stalled.trail == seam.points

    play(scene)


@given(
    steps=st.lists(
        st.sampled_from(["grow", "clear", "one", "two"]),
        max_size=25,
    )
)
def test_the_trail_is_complete_in_any_order_of_reading(steps: list[str]) -> None:
    async def scene(seam: Seam, feed: StateFeed) -> None:
        with feed.subscribed() as first, feed.subscribed() as second:
            browsers = {"one": Browser(first), "two": Browser(second)}
            for number, step in enumerate(steps):
                if step == "grow":
                    seam.grow(3)
                elif step == "clear":
                    seam.clear(float(number))
                else:
                    await browsers[step].read()
            for browser in browsers.values():
                while browser.trail != seam.points:
                    await browser.read()

    play(scene, rate_hz=5000.0)


def test_frames_come_again_from_a_restarted_cell() -> None:
    async def run() -> None:
        seam, port = Seam(), free_port()
        seam.grow(4)
        untimed = Exchange(Doors({"state": state_face(seam)}))
        server = TcpServer("state", Config(port=port), untimed)
        feed = StateFeed(await server.start(), rate_hz=500.0)
        await feed.start()
        with feed.subscribed() as subscriber:
            browser = Browser(subscriber)
            await browser.read()
            await server.stop()
            other = Seam()
            other.clear(7.0)
            untimed = Exchange(Doors({"state": state_face(other)}))
            again = TcpServer("state", Config(port=port), untimed)
            await again.start()
            while browser.trail != other.points:
                await browser.read()
        await feed.stop()
        await again.stop()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))
