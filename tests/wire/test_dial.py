"""The driver on real sockets, against a live cell in the same event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import structs

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.robots.text_robot.driver import Config, build
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config as NoScenario
from understudy.space.pose import Pose
from understudy.units import MM
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump
from understudy.wire.tcp import stop_accepting

Outcome = TypeVar("Outcome")
PATIENCE_SECONDS = 60.0
QUICK = Config(poll_ms=5, reconnect_s=(0.01, 0.02))
ENDPOINT = "bench.text_tcp"
THERE = Pose(100 * MM, 0.0, 100 * MM, 0.0, 0.0, 0.0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within_patience() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test()

    asyncio.run(within_patience())


@contextlib.asynccontextmanager
async def robot(port: int = 0) -> AsyncIterator[int]:
    """A live text robot whose time runs fifty times as fast, and its port."""
    config = load_config("text_robot")
    config = replace(config, head=structs.replace(config.head, scenario=NoScenario()))
    live = Live(config, Options(rate=50.0, ephemeral=True, ports={ENDPOINT: port}))
    await live.start()
    try:
        yield int(live.endpoints[ENDPOINT].rsplit(":", 1)[1])
    finally:
        await live.stop()


class Station:
    """A driver on wall time, and its connection."""

    def __init__(self, port: int, config: Config = QUICK) -> None:
        self.driver = build(config)
        self._stirred = asyncio.Event()
        self.driver.on_ready(self._stirred.set)
        self.driver.on_finished(self._finished)
        self._ends: dict[Ticket, asyncio.Future[Refused | None]] = {}
        self.cell = Cell("station", digest="", components={"robot": self.driver}, faces={})
        self.pump = Pump(Exchange(self.cell))
        self.dial = Dial(self.driver, Destination("127.0.0.1", port), self.pump)

    async def __aenter__(self) -> "Station":
        self.pump.start()
        self.dial.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.dial.stop()
        self.pump.stop()

    @property
    def state(self) -> str:
        return self.driver.reading(self.cell.now).state

    @property
    def trouble(self) -> str:
        return self.driver.status(self.cell.now).trouble

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition; the driver polls, so it is checked often."""
        while not condition():
            self._stirred.clear()
            await self._stirred.wait()

    def submit(self, deed: Callable[[int], Ticket | Refused]) -> Awaitable[Refused | None]:
        ticket = self.pump.act(deed)
        assert not isinstance(ticket, Refused), ticket
        return self._end_of(ticket)

    def _end_of(self, ticket: Ticket) -> asyncio.Future[Refused | None]:
        return self._ends.setdefault(ticket, asyncio.get_running_loop().create_future())

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        self._end_of(ticket).set_result(outcome)


def test_a_driver_moves_the_robot_and_reads_its_pose() -> None:
    async def test() -> None:
        async with robot() as port, Station(port) as station:
            await station.until(lambda: station.state == "Idle")
            assert await station.submit(lambda now: station.driver.move_to(THERE, now)) is None
            await station.until(lambda: station.driver.reading(0).pose == THERE)

    run(test)


def test_a_driver_stops_a_moving_robot_and_resets_it() -> None:
    async def test() -> None:
        async with robot() as port, Station(port) as station:
            await station.until(lambda: station.state == "Idle")
            move = station.submit(station.driver.home)
            station.pump.act(station.driver.stop)
            assert await move == Refused("Robot in emergency stop state", code=4)
            await station.until(lambda: station.state == "EmergencyStopped")
            station.pump.act(station.driver.reset)
            assert await station.submit(station.driver.home) is None

    run(test)


def test_two_drivers_share_a_robot() -> None:
    async def test() -> None:
        async with robot() as port, Station(port) as one, Station(port) as other:
            await one.until(lambda: one.state == "Idle")
            await other.until(lambda: other.state == "Idle")
            moves = [station.submit(station.driver.home) for station in (one, other)]
            assert await asyncio.gather(*moves) == [None, None]
            one.pump.act(one.driver.stop)
            await other.until(lambda: other.state == "EmergencyStopped")

    run(test)


def test_a_driver_reconnects_when_the_robot_is_back() -> None:
    async def test() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with robot() as port:
                station = await stack.enter_async_context(Station(port))
                await station.until(lambda: station.state == "Idle")
                move = station.submit(station.driver.home)
            refused = await move
            assert refused is not None
            assert refused.code == 5
            await station.until(lambda: "cannot be reached" in station.trouble)
            await stack.enter_async_context(robot(port))
            await station.until(lambda: station.state == "Idle")
            assert await station.submit(station.driver.home) is None

    run(test)


def test_a_driver_disconnects_from_a_peer_of_another_protocol() -> None:
    async def test() -> None:
        calls: list[bool] = []

        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\n" * 1000)
            with contextlib.closing(writer), contextlib.suppress(ConnectionError):
                while await reader.read(4096):
                    pass
            calls.append(True)

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with Station(port) as station:
            await station.until(lambda: len(calls) >= 2)
            assert "HTTP/1.1 400" in station.trouble
        await stop_accepting(server)

    run(test)


def test_a_driver_disconnects_from_a_peer_that_never_answers() -> None:
    async def test() -> None:
        gone = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(ConnectionError):
                while await reader.read(4096):
                    pass
            gone.set()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        config = Config(command_timeout_ms=20, reconnect_s=(0.01,))
        async with Station(port, config) as station:
            await gone.wait()
            await station.until(lambda: "no answer to GET_POS within 20 ms" in station.trouble)
        await stop_accepting(server)

    run(test)


def test_an_unknown_host_name_is_reported() -> None:
    async def test() -> None:
        station = Station(1)
        station.dial.destination = Destination("no..such", 1)
        async with station:
            await station.until(lambda: "tcp://no..such:1 cannot be reached" in station.trouble)

    run(test)


def test_a_dial_stops_cleanly_in_every_phase() -> None:
    async def test() -> None:
        async with robot() as port:
            async with Station(port):
                pass
            async with Station(port) as station:
                await station.until(lambda: station.driver.wanted() is not None)
            async with Station(port) as station:
                await station.until(lambda: station.state == "Idle")
                move = station.submit(station.driver.home)
            refused = await move
            assert refused is not None
            assert refused.reason.endswith("Connection lost: hung up")
            assert refused.code == 5

    run(test)


def test_a_stop_sent_just_before_closing_is_delivered() -> None:
    async def test() -> None:
        async with robot() as port:
            async with Station(port) as station:
                await station.until(lambda: station.state == "Idle")
                station.pump.act(station.driver.stop)
            async with Station(port) as station:
                await station.until(lambda: station.state != "Unknown")
                assert station.state == "EmergencyStopped"

    run(test)
