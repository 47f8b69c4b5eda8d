"""A late event loop: time slips and catches up in small steps, arrived bytes are received first."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from tests.robots.kuka.kuka_wire import command, feedback

from understudy.agenda import ClockState
from understudy.app.build import build_cell, load_cell
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.robots.kuka.motion import KukaModel, ModalState, Outcome
from understudy.robots.kuka.records import Record
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_MS, NS_PER_SECOND
from understudy.wire.connection import Event
from understudy.wire.exchange import Exchange
from understudy.wire.pump import LATE_STEP, Pump

COMMAND = "kuka.kuka_eki.command"
RECORDS = [command(n, X=5.0 * n, F=100.0) for n in range(1, 7)]
"""Six lines of 60 ms each."""
STALL = 3 * NS_PER_SECOND


class Wall:
    """A wall clock that the test sets."""

    now = 0

    def __call__(self) -> int:
        return self.now


class Peer:
    """A client without a socket."""

    def __init__(self) -> None:
        self.data = b""

    def room(self) -> int:
        return 1 << 40

    def send(self, data: bytes) -> None:
        self.data += data

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


class LateCell:
    """A KUKA at rate 1 on a wall clock that the test sets."""

    def __init__(self, rate: float = 1.0, *, held: bool = False) -> None:
        self.wall = Wall()
        self.heard: list[Event] = []
        self.cell: Cell = build_cell(load_config("kuka_eki").without_rules())
        exchange = Exchange(self.cell, [self.heard.append])
        self.state = ClockState(rate)
        self.pump = Pump(exchange, self.state, wall=self.wall, held=held)
        self.peer = Peer()
        self.line = self.pump.open(COMMAND, self.peer, "1")

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    async def catch_up(self) -> list[int]:
        """Turns until the cell is at the clock's time; the times it reached."""
        reached = [self.cell.now]
        while reached[-1] < self.wall.now:
            await asyncio.sleep(0)
            reached.append(self.pump.now())
            assert len(reached) < 10_000
        return reached


def kuka_progress(cell: Cell) -> tuple[int, int]:
    status = cell.components["kuka"].status(cell.now)
    return status.reading.progress.completed, status.waiting


def smooth_transcript() -> list[tuple[int, str, bytes]]:
    """The conversation of a cell whose loop is never late."""
    cell = load_cell("kuka_eki")
    client = cell.connect(COMMAND, "1")
    client.say(b"".join(RECORDS))
    cell.advance(3.0)
    return [(e.at, e.kind, e.data) for e in cell.transcript if e.kind == "<"]


def test_records_that_wait_in_the_socket_are_received_before_time_goes_on() -> None:
    async def run() -> None:
        late = LateCell()
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL  # planning the first motion took three seconds
        for record in RECORDS[1:]:
            late.pump.receive(late.line, record)
            await late.turns(1)
        assert (late.cell.now, kuka_progress(late.cell)) == (0, (-1, 5))
        await late.catch_up()
        late.pump.stop()
        answers = [(e.at, e.kind, e.data) for e in late.heard if e.kind == "<"]
        assert answers == smooth_transcript()
        assert kuka_progress(late.cell) == (6, 0)

    asyncio.run(run())


@pytest.mark.parametrize("rate", [1.0, 50.0])
def test_a_late_cell_advances_in_small_steps(rate: float) -> None:
    async def run() -> None:
        late = LateCell(rate)
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL
        reached = [late.cell.now]
        while late.pump._is_late():
            await late.turns(1)
            reached.append(late.cell.now)
        late.pump.stop()
        steps = [b - a for a, b in pairwise(reached)]
        assert len(reached) > STALL // LATE_STEP / 10
        # A step is counted from the overdue wake, which is at most a feedback period away.
        assert max(steps) <= LATE_STEP * rate + 50 * NS_PER_MS
        assert late.pump.now() == STALL * rate, "nothing is lost"

    asyncio.run(run())


def test_a_late_cell_hears_what_comes_between_its_steps() -> None:
    """A client that answers at once is heard one step later, not after the whole stall."""

    async def run() -> None:
        late = LateCell()
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL
        while kuka_progress(late.cell)[0] < 1:
            await late.turns(1)
        assert late.cell.now < STALL / 10
        late.pump.receive(late.line, RECORDS[1])
        said = [e.at for e in late.heard if e.kind == ">"]
        done = next(e.at for e in late.heard if e.kind == "<" and feedback(e.data)[0][0] == 1)
        assert said[1] - done <= LATE_STEP
        late.pump.stop()

    asyncio.run(run())


def test_a_flood_of_bytes_does_not_stop_the_time_of_a_late_cell() -> None:
    async def run() -> None:
        late = LateCell()
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL
        for _ in range(2000):
            late.pump.receive(late.line, b"")
            await late.turns(1)
        assert late.cell.now > 0
        late.pump.stop()

    asyncio.run(run())


def test_a_cell_that_cannot_keep_up_holds_its_clock_back() -> None:
    async def run() -> None:
        late = LateCell()
        late.pump.receive(late.line, RECORDS[0])
        advance = late.cell.advance

        def slow(to: int, settled: Callable[[int], None] = lambda now: None) -> None:
            late.wall.now += 100 * NS_PER_MS  # a wake takes longer than it simulates
            advance(to, settled)

        late.cell.advance = slow  # type: ignore[method-assign]
        late.wall.now += STALL
        await late.turns(50)
        behind = late.pump._clock.now() - late.cell.now
        assert behind <= STALL
        late.pump.stop()

    asyncio.run(run())


def test_time_does_not_run_before_the_start() -> None:
    async def run() -> None:
        late = LateCell(held=True)
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL
        await late.turns(5)
        assert late.pump.now() == 0
        late.pump.start()
        assert late.pump.now() == 0
        late.wall.now += LATE_STEP
        assert late.pump.now() == LATE_STEP
        late.pump.stop()

    asyncio.run(run())


def test_a_pause_forgets_the_lateness() -> None:
    async def run() -> None:
        late = LateCell()
        late.pump.receive(late.line, RECORDS[0])
        late.wall.now += STALL
        late.state.pause()
        stands = late.cell.now
        late.state.resume()
        await late.turns(5)
        assert late.pump.now() == stands
        late.pump.stop()

    asyncio.run(run())


class Device:
    """Is asked every 20 ms, and has failed if no answer came within 100 ms."""

    PERIOD, PATIENCE = 20 * NS_PER_MS, 100 * NS_PER_MS

    def __init__(self) -> None:
        self.at = 0
        self.asked: int | None = None
        self.failed = False

    def next_wake(self) -> int | None:
        return self.at

    def wake(self, now: int) -> None:
        self.at = now + self.PERIOD
        if self.asked is None:
            self.asked = now
        self.failed |= now - self.asked > self.PATIENCE

    def answer(self) -> None:
        self.asked = None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> bool:
        return self.failed


@pytest.mark.parametrize("real", [True, False])
def test_a_stall_leaves_devices_of_a_real_robot_time_to_answer(real: bool) -> None:
    async def run() -> None:
        wall, device = Wall(), Device()
        cell = Cell("real", digest="", components={"device": device}, faces={})
        pump = Pump(Exchange(cell), wall=wall, real=real)
        pump.start()
        wall.now += STALL
        for _ in range(400):  # far quicker than a device answers
            await asyncio.sleep(0)
        assert device.failed is not real
        for _ in range(100):
            device.answer()
            wall.now += Device.PERIOD
            pump.now()
        late_s = 0.0 if real else STALL / NS_PER_SECOND
        assert pump.now() / NS_PER_SECOND == pytest.approx(2.0 + late_s, abs=0.05)
        assert pump.lost_seconds() == pytest.approx(3.0 - late_s, abs=0.05)
        assert device.failed is not real
        pump.stop()

    asyncio.run(run())


# ── on a socket ──


@pytest.fixture
def live_kuka() -> Iterator[StandIn]:
    with StandIn("kuka_eki", rate=1.0) as cell:
        yield cell


def test_six_records_in_one_packet_are_one_motion_after_a_stall(
    live_kuka: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packet has arrived whole; then planning its first record takes five seconds."""
    jump = [0]
    live_kuka._running()._pump._clock._wall = lambda: time.monotonic_ns() + jump[0]
    plan = KukaModel.carry_out

    def slow(model: KukaModel, record: Record, state: ModalState) -> Outcome:
        jump[0] = 5 * NS_PER_SECOND
        return plan(model, record, state)

    monkeypatch.setattr(KukaModel, "carry_out", slow)
    standing, arrived = threading.Event(), threading.Event()

    def stall() -> None:
        standing.set()
        arrived.wait()

    with socket.create_connection(live_kuka.address(COMMAND), 60.0) as line:
        line.recv(48, socket.MSG_WAITALL)  # the client is connected
        live_kuka._loop.call_soon_threadsafe(stall)
        standing.wait()
        line.sendall(b"".join(RECORDS))
        arrived.set()
        seen: list[tuple[int, int]] = []
        while not seen or seen[-1] != (6, 0):
            seen += feedback(line.recv(48, socket.MSG_WAITALL))
    smooth = [feedback(data)[0] for _, _, data in smooth_transcript()]
    assert changes(seen) == changes(smooth)


def changes(frames: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The frames of the records, without periodic repetitions and those before the first record."""
    kept = [frame for frame in frames if frame[0] >= 1]
    return [frame for frame, before in zip(kept, [(0, 0), *kept], strict=False) if frame != before]
