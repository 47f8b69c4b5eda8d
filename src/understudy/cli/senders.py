"""How a program is streamed to a robot of each dialect, and seen through to its end."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from understudy.cli.telemetry import Telemetry, observed
from understudy.config import load_config
from understudy.errors import Refused
from understudy.gcode.blocks import Problem
from understudy.ports import Caller, Ticket
from understudy.robots.grblhal import driver as grblhal
from understudy.robots.kuka import driver as kuka_eki
from understudy.robots.kuka import program as kuka_eki_program
from understudy.robots.kuka.records import KukaReading
from understudy.robots.text_robot import driver as text_tcp
from understudy.robots.text_robot import program as text_program
from understudy.simulation.cell import Cell
from understudy.wire.clock import Clock
from understudy.wire.dial import Dial, Place
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump
from understudy.wire.signals import on_signals

LOOK_SECONDS = 0.05
POLL_MS = 50


@dataclass(frozen=True)
class Job:
    """What is sent where; `dialect` and `cell` matter to those who reckon with an arm, `telemetry`
    to those whose robot does not say otherwise that it has not moved."""

    program: str
    place: Place
    dialect: str = "grblhal"
    cell: str = ""
    telemetry: Telemetry | None = None


@contextlib.asynccontextmanager
async def _called(driver: Caller, place: Place) -> AsyncIterator[Pump]:
    """The driver on the wall's time, and on its line."""
    cell = Cell("send", digest="", parts={"robot": driver}, faces={})
    pump = Pump(Exchange(cell), Clock(), poll_step=1)
    dial = Dial(driver, place, pump)
    pump.start()
    dial.start()
    try:
        yield pump
    finally:
        await dial.stop()
        pump.stop()


class Watch:
    """A bar that is moved on until the end is told; Ctrl-C and SIGTERM give up."""

    def __init__(self, what: str, total: int, give_up: Callable[[], object]) -> None:
        self._what, self._total = what, total
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Refused | None] = loop.create_future()
        on_signals(give_up)

    @property
    def over(self) -> bool:
        return self._ended.done()

    def end(self, outcome: Refused | None) -> None:
        if not self._ended.done():
            self._ended.set_result(outcome)

    def finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        self.end(outcome)

    async def see_through(self, done: Callable[[], int | None]) -> Refused | None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        console = Console(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task(self._what, total=self._total)
            while not self._ended.done():
                if (completed := done()) is not None:
                    progress.update(task, completed=completed)
                await asyncio.wait([self._ended], timeout=LOOK_SECONDS)
            if self._ended.result() is None:
                progress.update(task, completed=self._total)
        return self._ended.result()


# ── KUKA ──


UNSEEN = "whether the robot went where it was sent is not known"


async def send_kuka(job: Job) -> Refused | None:
    steps = kuka_eki_program.read_program(job.program)
    if isinstance(steps, Problem):
        return steps.refused()
    if not steps:
        return None
    driver = kuka_eki.build(kuka_eki.Config())
    async with _called(driver, job.place) as pump:
        if job.telemetry is None:
            outcome, blind = await _stream(driver, pump, steps), "--telemetry would show it"
        else:
            tell = partial(_observe, driver, pump)
            async with observed(job.telemetry, tell) as blind:
                if blind and job.telemetry.wanted:
                    return Refused(blind)
                outcome = await _stream(driver, pump, steps)
    if outcome is None and not driver.status(0).seen:
        print(f"{UNSEEN}: {blind or 'the telemetry fell silent'}", file=sys.stderr)
    return outcome


def _observe(driver: kuka_eki.KukaEkiDriver, pump: Pump, reading: KukaReading) -> None:
    pump.act(lambda now: driver.observe(reading, now))


async def _stream(
    driver: kuka_eki.KukaEkiDriver, pump: Pump, steps: list[kuka_eki_program.Step]
) -> Refused | None:
    watch = Watch("records", len(steps), lambda: pump.act(driver.give_up))
    driver.on_finished(watch.finished)
    while isinstance(started := pump.act(lambda now: driver.run(steps, now)), Refused):
        if started != kuka_eki.NOT_CONNECTED:
            return started
        await asyncio.sleep(LOOK_SECONDS)

    def completed() -> int | None:
        progress = driver.progress()
        return progress.completed if progress else None

    return await watch.see_through(completed)


# ── grblHAL ──


async def send_grblhal(job: Job) -> Refused | None:
    """Nothing is unlocked, homed or reset: a controller in alarm is left in it."""
    from understudy.robots.arm.real import driver_of

    lines = job.program.splitlines()
    settings = grblhal.Config(dialect="arm" if job.dialect == "arm" else "grblhal", poll_ms=POLL_MS)
    driver = driver_of(load_config(job.cell), "", settings) if job.cell else grblhal.build(settings)
    async with _called(driver, job.place) as pump:
        pump.act(driver.connect)
        while not driver.is_connected():
            if message := driver.status(0).error_message:
                return Refused(message)
            await asyncio.sleep(LOOK_SECONDS)
        if refused := pump.act(driver.enable):
            return refused
        watch = Watch("lines", len(lines), lambda: pump.act(driver.stop))
        driver.on_finished(watch.finished)
        started = pump.act(lambda now: driver.run(lines, now))
        if isinstance(started, Refused):
            return started

        def taken() -> int | None:
            progress = driver.progress()
            return progress.taken if progress else None

        outcome = await watch.see_through(taken)
        if outcome is not None:  # what still moves is stopped before we leave
            pump.act(driver.disconnect)
            await _while(lambda: driver.wanted() is not None)
        return outcome


async def _while(condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if not condition():
            return
        await asyncio.sleep(LOOK_SECONDS)


# ── text ──


async def send_text(job: Job) -> Refused | None:
    moves = text_program.read_program(job.program)
    if isinstance(moves, Refused):
        return moves
    if not moves:
        return None
    driver = text_tcp.build(text_tcp.Config())
    async with _called(driver, job.place) as pump:
        while (trouble := driver.stopped()) is not None:
            if trouble not in (text_tcp.NOT_CONNECTED, text_tcp.STATE_UNKNOWN):
                return trouble
            await asyncio.sleep(LOOK_SECONDS)
        watch = Watch("moves", len(moves), lambda: pump.act(driver.stop))
        run = TextRun(driver, moves, watch.end)
        driver.on_finished(run.finished)
        pump.act(run.go_on)
        return await watch.see_through(lambda: run.done)


class TextRun:
    """One move after the other; the first that is refused is the last."""

    def __init__(
        self,
        driver: text_tcp.TextTcpDriver,
        moves: list[text_program.Move],
        end: Callable[[Refused | None], None],
    ) -> None:
        self._driver, self._moves, self._end = driver, moves, end
        self.done = 0

    def go_on(self, now: int) -> None:
        if self.done == len(self._moves):
            self._end(None)
            return
        ticket = self._moves[self.done].submit(self._driver, now)
        if isinstance(ticket, Refused):
            self._fail(ticket)

    def finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        if outcome is not None:
            self._fail(outcome)
            return
        self.done += 1
        self.go_on(now)

    def _fail(self, why: Refused) -> None:
        line = self._moves[self.done].line
        self._end(replace(why, reason=f"line {line}: {why.reason}"))
