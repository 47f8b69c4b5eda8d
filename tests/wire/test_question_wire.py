"""Questions of a cell to another process: time stands while one is out, whatever makes time run."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.free_ports import free_port
from tests.wire.zmq_server import Server

from understudy.agenda import ClockState, Rate
from understudy.ports import Component
from understudy.sight.lens import CameraModel
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config, build
from understudy.space.pose import ORIGIN
from understudy.units import NS_PER_MS, NS_PER_SECOND
from understudy.vision.bridge import ProcessVision
from understudy.wire import zmq_request
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump
from understudy.wire.zmq_request import CONNECT_SECONDS, AskedProcess, QuestionWire

pytestmark = pytest.mark.usefixtures("patient_connection")
PATIENCE = 60.0
END = 1900 * NS_PER_MS
EVERY, LATENCY, TIMEOUT = 400 * NS_PER_MS, 50 * NS_PER_MS, 300 * NS_PER_MS
Scene = Callable[["Stand"], Awaitable[None]]


def answer(request: bytes) -> bytes:
    return b'{"success": true, "frame_id": 1, "objects": []}'


class Ticks:
    """A part with a wake each millisecond, so that time could pass while a question is out."""

    def __init__(self) -> None:
        self._next = 0

    def next_wake(self) -> int | None:
        return self._next

    def wake(self, now: int) -> None:
        self._next = now + NS_PER_MS

    def busy(self) -> bool:
        return True

    def status(self, now: int) -> int:
        return self._next

    def save(self) -> int:
        return self._next

    def load(self, state: Any) -> None:
        self._next = state


class Looks(Ticks):
    """Asks for a picture every 400 ms and keeps what comes, with the time."""

    def __init__(self, vision: ProcessVision) -> None:
        super().__init__()
        self._vision = vision
        self.log: list[tuple[int, str]] = []
        vision.on_result(lambda ticket, result, now: self._came(type(result).__name__, now))

    def _came(self, what: str, now: int) -> None:
        self.log = [*self.log, (now, what)]

    def wake(self, now: int) -> None:
        self._vision.request("", now)
        self._next = now + EVERY


class Stand:
    """A cell that asks, on a pump."""

    def __init__(self, rate: Rate, address: str, until: float | None = None) -> None:
        self.vision = ProcessVision(
            "vision", address, lambda now: ORIGIN, camera=CameraModel(), latency=LATENCY,
            timeout=TIMEOUT, patience_s=PATIENCE, fault_source=build(Config({}), seed=1),
        )  # fmt: skip
        self.looks = Looks(self.vision)
        parts: dict[str, Component] = {"ticks": Ticks(), "vision": self.vision, "looks": self.looks}
        self.clock = ClockState(rate)
        self.cell = Cell("asks", digest="", components=parts, faces={}, clock_state=self.clock)
        self.finished = asyncio.Event()
        end = None if until is None else round(until * NS_PER_SECOND)
        self.pump = Pump(
            Exchange(self.cell), self.clock, until=end, finished=self.finished.set
        )  # fmt: skip
        self.wire = QuestionWire(self.vision, self.pump)
        self.wire.start()

    async def come(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)


def play(scene: Scene, rate: Rate, address: str, until: float | None = None) -> Stand:
    async def run() -> Stand:
        stand = Stand(rate, address, until)
        try:
            await asyncio.wait_for(scene(stand), PATIENCE)
        finally:
            stand.pump.stop()
            await stand.wire.stop()
        return stand

    return asyncio.run(run())


@pytest.fixture
def address() -> str:
    return f"tcp://127.0.0.1:{free_port()}"


async def to_the_end(stand: Stand) -> None:
    stand.pump.start()
    await stand.finished.wait()


async def by_command(stand: Stand) -> None:
    """As `understudy ctl advance` does."""
    stand.pump.start()
    if (later := stand.pump.run_ahead(END)) is not None:
        done = asyncio.Event()
        later.then(lambda _: done.set())
        await done.wait()


async def by_advance(stand: Stand) -> None:
    """As `StandIn.forward` does."""
    stand.pump.start()
    if (later := stand.pump.advance(END)) is not None:
        done = asyncio.Event()
        later.then(lambda _: done.set())
        await done.wait()


EXPECTED = [(n * EVERY + LATENCY, "FoundObjects") for n in range(5)]
WAYS: dict[str, tuple[Scene, Rate, float | None]] = {
    "run --rate max --for": (to_the_end, "max", 1.9),
    "advance in step": (by_command, "step", None),
    "advance at rate 0": (by_command, 0.0, None),
    "forward in step": (by_advance, "step", None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("delay", [0.0, 0.03])
def test_time_stands_from_question_to_answer(way: str, delay: float, address: str) -> None:
    """However long the process takes, the cell does the same at the same simulated time."""
    scene, rate, until = WAYS[way]

    def slow(request: bytes) -> bytes:
        time.sleep(delay)
        return answer(request)

    with Server(address, slow) as server:
        stand = play(scene, rate, address, until)
    assert stand.looks.log == EXPECTED
    assert server.heard == len(EXPECTED)
    assert stand.cell.now == END


def test_without_a_process_questions_are_lost_at_the_time_out_and_time_runs_on(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zmq_request, "CONNECT_SECONDS", CONNECT_SECONDS)
    stand = play(to_the_end, "max", address, 0.5)
    assert stand.looks.log == [(TIMEOUT, "Refused")]


def test_the_answer_of_this_process_is_the_same_as_that_of_another(address: str) -> None:
    async def local(stand: Stand) -> None:
        stand.cell.answer_questions("vision", answer)
        stand.cell.advance(END)

    assert play(local, 1.0, address).looks.log == EXPECTED


def test_an_answer_of_this_process_may_be_lost(address: str) -> None:
    async def local(stand: Stand) -> None:
        stand.cell.answer_questions("vision", lambda request: None)
        stand.cell.advance(TIMEOUT)

    assert play(local, 1.0, address).looks.log == [(TIMEOUT, "Refused")]


def test_at_a_numeric_rate_time_runs_on_and_the_deadline_is_simulated_time(address: str) -> None:
    """The process is silent: the question is lost although its wall time is not over."""

    async def scene(stand: Stand) -> None:
        stand.pump.start()
        await stand.come(lambda: bool(stand.looks.log))

    with Server(address, lambda request: None):
        stand = play(scene, 50.0, address)
    assert stand.looks.log[0] == (TIMEOUT, "Refused")


def test_a_cell_ends_while_a_question_is_out(address: str) -> None:
    async def scene(stand: Stand) -> None:
        stand.pump.start()
        await stand.come(lambda: server.heard == 1)
        assert stand.cell.now == 0, "time stands"

    with Server(address, lambda request: None) as server:
        stand = play(scene, "max", address)
    assert stand.vision.busy()


def test_a_snapshot_with_a_question_out_asks_it_again(address: str) -> None:
    """Taken while the process is silent, restored when it answers; then once more, to and fro."""
    silent = threading.Event()
    silent.set()

    async def scene(stand: Stand) -> None:
        stand.pump.start()
        await stand.come(lambda: server.heard == 1)
        kept = stand.pump.snapshot()
        stand.clock.pause()
        stand.vision.unanswered(1, "the process has ended", stand.cell.now)
        silent.clear()
        logs = []
        for _ in range(2):
            stand.looks.log = []
            stand.pump.restore(kept)
            assert stand.vision.question() is not None
            stand.clock.resume()
            await stand.come(lambda: len(stand.looks.log) >= 3)
            stand.clock.pause()
            logs.append(stand.looks.log[:3])
        assert logs[0] == logs[1] == EXPECTED[:3]

    with Server(address, lambda request: None if silent.is_set() else answer(request)) as server:
        play(scene, "max", address)


def test_a_restore_asks_again_what_is_out_already(address: str) -> None:
    """The answer to the question before the restore may show another state of the cell."""

    async def scene(stand: Stand) -> None:
        stand.pump.start()
        await stand.come(lambda: server.heard == 1)
        kept = stand.pump.snapshot()
        stand.looks.log = []
        stand.pump.restore(kept)
        await stand.come(lambda: len(stand.looks.log) >= 2)
        assert stand.looks.log[:2] == EXPECTED[:2]

    with Server(address, lambda request: answer(request) if server.heard > 1 else None) as server:
        play(scene, "max", address)


def test_another_process_at_the_port_of_a_dead_one_is_not_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zmq_request, "CONNECT_SECONDS", 0.05)

    async def scene(stand: Stand) -> None:
        stand.wire.ask(AskedProcess(address, lambda: None))
        await to_the_end(stand)

    with Server(address, answer) as impostor:
        stand = play(scene, "max", address, 0.5)
    assert impostor.heard == 0
    assert stand.looks.log == [(TIMEOUT, "Refused")]
    assert "does not run" in stand.vision.state.problem


def test_an_answer_counts_only_if_the_process_still_runs_when_it_has_come(address: str) -> None:
    """The process dies after the question, and another one takes its port and answers."""
    running: list[int | None] = [1]

    def impostor(request: bytes) -> bytes:
        running[0] = None
        return answer(request)

    async def scene(stand: Stand) -> None:
        stand.wire.ask(AskedProcess(address, lambda: running[0]))
        await to_the_end(stand)

    with Server(address, impostor):
        stand = play(scene, "max", address, 0.35)
    assert stand.looks.log == [(TIMEOUT, "Refused")]
    assert "has ended" in stand.vision.state.problem
