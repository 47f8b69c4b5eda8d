"""In lock-step time waits while the server is behind: no message is lost for lack of room."""

import os
import signal
from typing import Any

import pytest
from tests.wire.nats.bench import (
    PATIENCE,
    SUBJECT,
    TICK,
    RobotFace,
    client_of,
    eventually,
    has_stored,
    run,
    running,
    stored,
    until,
)

from understudy.agenda import Rate
from understudy.ports import UNLIMITED, WireMessage
from understudy.simulation.cell import Cell
from understudy.wire import broker
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump


@pytest.mark.parametrize("bound", [64 * 1024, 1 << 20])
def test_at_max_every_state_is_stored(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 s of time with more bytes than the wire may hold."""
    monkeypatch.setattr(broker, "LARGEST_PENDING", 8 * bound)
    monkeypatch.setattr(broker, "BEHIND", bound)

    async def test() -> None:
        ticks = 400
        face = RobotFace(events=1000, per_tick=3, states_per_tick=10)
        async with running(face, rate="max", until=ticks * TICK) as bench:
            await bench.finished.wait()
            assert bench.cell.now == ticks * TICK
            assert not face.lacked_room
            async with client_of(bench.address) as client:
                await eventually(lambda: has_stored(client, ticks * 10 + 1000))
                assert len(await stored(client, SUBJECT.format("state"))) == ticks * 10
                ids = [m.headers["Nats-Msg-Id"] for m in await stored(client, "robot.*.events")]
                assert sorted(ids) == sorted(face.put_ids)
                assert len(ids) == 1000

    run(test())


def test_at_max_confirmations_come_before_time_goes_on() -> None:
    """No message is sent a second time because simulated time runs faster than the server."""

    async def test() -> None:
        face = RobotFace(events=300, per_tick=1)
        sent: list[str] = []
        put = face.outbox.take_due

        def counted(now: int) -> list[Any]:
            due = put(now)
            sent.extend(entry.message_id for entry in due)
            return due

        face.outbox.take_due = counted  # type: ignore[method-assign]
        async with running(face, rate="max", until=1000 * TICK) as bench:
            await bench.finished.wait()
        assert sent == face.put_ids
        assert face.confirmed == 300

    run(test())


def test_time_waits_for_a_server_that_hangs() -> None:
    async def test() -> None:
        face = RobotFace(events=10_000, per_tick=1)
        async with running(face, rate="max") as bench:
            await until(lambda: face.confirmed > 100)
            os.kill(bench.server_pid, signal.SIGSTOP)
            await until(lambda: len(face.outbox) > 0 and bench.pump._waits())
            stood = bench.cell.now
            for _ in range(20):
                bench.pump.now()
                await until(lambda: True)
            assert bench.cell.now == stood
            os.kill(bench.server_pid, signal.SIGCONT)
            await until(lambda: bench.cell.now > stood + 100 * TICK)
            assert (face.openings, face.closings) == (1, 0)

    run(test())


class SlowBroker:
    """A sink that leads to a broker which takes nothing until it is told to."""

    def __init__(self) -> None:
        self.sent: list[WireMessage] = []
        self.slow = False

    def room(self) -> int:
        return UNLIMITED

    def send(self, message: WireMessage) -> None:
        self.sent.append(message)
        self.slow = True

    def behind(self) -> bool:
        return self.slow

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


@pytest.mark.parametrize(("rate", "waits"), [("max", True), ("step", True), (1.0, False)])
def test_time_waits_in_lock_step_only(rate: Rate, waits: bool) -> None:
    async def test() -> None:
        face = RobotFace(events=100, per_tick=1)
        cell = Cell("bench", digest="", components={"robot": face}, faces={"nats": face})
        cell.clock_state.set_rate(rate)
        wall = [0]
        pump = Pump(Exchange(cell), cell.clock_state, wall=lambda: wall[0])
        sink = SlowBroker()
        connection = pump.open("nats", sink, "nats")
        pump.advance(TICK)
        assert len(sink.sent) == 1
        wall[0] += TICK
        assert pump.now() == (TICK if waits else 2 * TICK)
        sink.slow = False
        pump.drained(connection)
        assert pump.now() == (TICK if waits else 2 * TICK)  # the wait does not count

    run(test())


def test_running_ahead_waits_for_the_broker() -> None:
    async def test() -> None:
        face = RobotFace(events=100, per_tick=1)
        cell = Cell("bench", digest="", components={"robot": face}, faces={"nats": face})
        pump = Pump(Exchange(cell), cell.clock_state, wall=lambda: 0)
        sink = SlowBroker()
        connection = pump.open("nats", sink, "nats")
        later = pump.run_ahead(10 * TICK)
        assert later is not None
        for number in range(1, 11):
            await until(lambda n=number: len(sink.sent) == n)  # type: ignore[misc]
            assert cell.now == number * TICK
            sink.slow = False
            pump.drained(connection)
        done: list[Any] = []
        later.then(done.append)
        await until(lambda: len(done) == 1)
        assert cell.now == 10 * TICK
        pump.stop()

    run(test())


def test_a_broker_does_not_keep_a_cell_from_running_free() -> None:
    """A peer that could send something makes an idle cell wait at `max`; a broker does not."""

    async def test() -> None:
        face = RobotFace()
        async with running(face, rate="max", until=30_000 * TICK) as bench:
            await bench.finished.wait()
            assert bench.pump.real_seconds() < PATIENCE

    run(test())
