"""Joins the cell's time to the wall's: sleeps until the earliest wake or the next bytes.

At a numeric rate the wall decides how late it is. In lock-step (`step`, `max`) time runs only
while somebody is owed an answer, or, at `max`, while something is under way.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, runtime_checkable

from understudy.errors import Refused
from understudy.ports import Snapshot
from understudy.ports.hmi import Later
from understudy.wire.clock import Clock, Rate
from understudy.wire.exchange import Exchange, Line, Sink

# How long one turn may keep the event loop from reading bytes.
TURN_SECONDS = 0.02
OVERTAKEN = Refused("another moment was brought back meanwhile", code=4)

Outcome = TypeVar("Outcome")

NONE = re.compile(rb"(?s:.)")


@runtime_checkable
class Patient(Protocol):
    """A session that says after which bytes it never has an answer: `silent` finds them, as many as
    come together, and every other byte by itself."""

    silent: re.Pattern[bytes]


class Pump:
    """One per live cell, on one event loop."""

    def __init__(
        self,
        exchange: Exchange,
        clock: Clock,
        *,
        poll_step: int,
        until: int | None = None,
        finished: Callable[[], None] = lambda: None,
    ) -> None:
        self._exchange = exchange
        self._timed_cell = exchange.timed_cell
        self._clock = clock
        self._poll_step = poll_step
        self._until = until
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._paused = False
        self._ahead: deque[tuple[int, Later]] = deque()

    # ── what wires tell ──

    def open(self, endpoint: str, sink: Sink) -> Line:
        self._catch_up()
        line = self._exchange.open(endpoint, sink)
        self._schedule()
        return line

    def receive(self, line: Line, data: bytes) -> None:
        self._catch_up()
        if self._clock.lock_step:
            self._receive_in_step(line, data)
        else:
            self._exchange.receive(line, data)
        self._schedule()

    def eof(self, line: Line) -> None:
        self._catch_up()
        self._exchange.eof(line)
        self._schedule()

    def closed(self, line: Line) -> None:
        self._catch_up()
        self._exchange.closed(line)
        self._schedule()

    def drained(self, line: Line) -> None:
        self._exchange.drained(line)
        self._schedule()

    # ── what the desk tells ──

    def now(self) -> int:
        """The cell's time, after it was brought to the clock's."""
        self._catch_up()
        return self._timed_cell.now

    @property
    def rate(self) -> Rate:
        return self._clock.rate

    def set_rate(self, rate: Rate) -> None:
        self._catch_up()
        self._clock.set_rate(rate)
        self._clock.set_now(self._timed_cell.now)
        self._schedule()

    def set_paused(self, paused: bool) -> None:
        """Time stands whatever the rate, until it may run again."""
        self._catch_up()
        self._paused = paused
        self._clock.set_now(self._timed_cell.now)
        self._schedule()

    def advance(self, duration: int) -> None:
        """Run ahead by this much, whatever the rate."""
        self._catch_up()
        self._leap_to(self._timed_cell.now + duration)
        self._schedule()

    def run_ahead(self, duration: int) -> Later | None:
        """Like `advance`, but whatever comes meanwhile gets its turn; None if it is done already.

        What was asked for first comes first: this begins where that ends.
        """
        self._catch_up()
        begins = self._ahead[-1][0] if self._ahead else self._timed_cell.now
        self._ahead.append((begins + duration, Later()))
        later = self._ahead[-1][1]
        self._run_ahead()
        self._schedule()
        return later if any(waiting is later for _, waiting in self._ahead) else None

    def act(self, deed: Callable[[int], Outcome]) -> Outcome:
        """Do something to the cell at its present moment, from outside."""
        self._catch_up()
        outcome = deed(self._timed_cell.now)
        self._exchange.settle()
        self._schedule()
        return outcome

    def close(self, endpoints: Iterable[str], why: str) -> None:
        """Nobody is behind these endpoints, until they are closed for no reason."""
        self._catch_up()
        self._exchange.close(endpoints, why)
        self._schedule()

    def snapshot(self) -> Snapshot:
        self._catch_up()
        return self._exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._exchange.restore(snapshot)
        overtaken, self._ahead = self._ahead, deque()
        for _, later in overtaken:
            later.settle(OVERTAKEN)
        self._clock.set_now(self._timed_cell.now)
        self._schedule()

    def real_seconds(self) -> float:
        return self._clock.real_seconds()

    def start(self) -> None:
        self._schedule()

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    # ── inside ──

    def _receive_in_step(self, line: Line, data: bytes) -> None:
        """Byte by byte, so that packets make no difference to when time runs; but bytes that no
        answer can follow go together."""
        session = line.session
        silent = session.silent if isinstance(session, Patient) else NONE
        for part in silent.findall(data):
            answered = self._exchange.receive(line, part)
            runs = answered and not self._paused
            if runs and self._timed_cell.busy() and not self._exchange.owed():
                self._leap_to(self._timed_cell.now + self._poll_step)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stopped:
            return
        delay = self._delay()
        if delay is not None:
            # call_later(0) runs after the bytes that have already arrived.
            self._timer = self._loop.call_later(delay, self._turn)

    def _delay(self) -> float | None:
        """Seconds of wall time until the next turn; None: only bytes can bring it about."""
        if self._done() or self._ahead:
            return 0.0
        at = self._next()
        if at is None or self._paused:
            return None
        return 0.0 if self._runs_free() else self._clock.seconds_until(at)

    def _next(self) -> int | None:
        moments = [m for m in (self._exchange.next_wake(), self._until) if m is not None]
        return min(moments, default=None)

    def _runs_free(self) -> bool:
        if not self._clock.lock_step:
            return False
        if self._exchange.owed():
            return True
        if self._clock.rate != "max":
            return False
        return self._timed_cell.busy() or (self._until is not None and self._exchange.alone())

    def _turn(self) -> None:
        self._timer = None
        deadline = time.monotonic() + TURN_SECONDS
        if self._ahead:
            self._run_ahead()
        elif self._runs_free():
            while self._runs_free() and (at := self._next()) is not None:
                self._leap_to(at)
                if self._done() or not self._exchange.alone() or time.monotonic() > deadline:
                    break  # bytes may have come
        else:
            self._catch_up()
        if self._done():
            self._finished()
            return
        self._schedule()

    def _run_ahead(self) -> None:
        """For as long as a turn may take, towards the first moment that somebody waits for."""
        deadline = time.monotonic() + TURN_SECONDS
        while self._ahead:
            to, later = self._ahead[0]
            at = self._exchange.next_wake()
            self._leap_to(max(to if at is None else min(at, to), self._timed_cell.now))
            if self._timed_cell.now >= to:
                self._ahead.popleft()
                later.settle(None)
            if time.monotonic() > deadline:
                break

    def _done(self) -> bool:
        return self._until is not None and self._timed_cell.now >= self._until

    def _leap_to(self, at: int) -> None:
        self._exchange.advance(at)
        self._clock.set_now(self._timed_cell.now)

    def _catch_up(self) -> None:
        """Bring the cell to the clock's time; a cell that cannot keep up holds the clock back."""
        now = self._timed_cell.now if self._paused else self._clock.now()
        if self._until is not None:
            now = min(now, self._until)
        deadline = time.monotonic() + TURN_SECONDS
        while (at := self._exchange.next_wake()) is not None and at < now:
            self._exchange.advance(at)
            if time.monotonic() > deadline:
                self._clock.set_now(self._timed_cell.now)
                return
        self._exchange.advance(max(now, self._timed_cell.now))
