"""Runs a cell's time against the wall clock: sleeps until the earliest wake or the next bytes.

At a numeric rate the wall clock decides when time runs. In lock-step (`step`, `max`) time runs only
while a peer is owed an answer, and at `max` also while something moves.

If the event loop was kept from running (a loaded machine, slow work), simulated time is late. It
then catches up in small steps, and before each step the bytes that have already arrived are
received: a packet that waited is read whole before the motion of its first record can end. Where
devices answer, the time that is late does not count: they would have to answer in no time at all.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from understudy.agenda import ClockState
from understudy.errors import Refused
from understudy.ports import Epoch, Snapshot, WireMessage
from understudy.ports.hmi import Later
from understudy.units import NS_PER_SECOND
from understudy.wire.connection import Connection, Data, pieces_of
from understudy.wire.exchange import Exchange
from understudy.wire.interface import Recorder, Sink

log = logging.getLogger(__name__)

TURN_SECONDS = 0.02
"""The longest time for which one turn keeps the event loop from reading bytes."""
LATE_STEP = 10_000_000
"""Nanoseconds of wall time: a wake that is overdue by more makes the cell late, and a late cell
advances by as much at a time."""
MOST_TURNS_FOR_BYTES = 64
"""Turns in a row in which a late cell only receives bytes: a flood does not stop time."""
SUPERSEDED = Refused("a snapshot was restored meanwhile", code=4)

Outcome = TypeVar("Outcome")


# ── the clock ───────────────────────────────────────────────────────────────────────────────────


class Clock:
    """Simulated time from wall time and rate; a change of the rate never makes it jump. Without a
    `state` it is real time, for real robots and for the doors."""

    def __init__(
        self,
        state: ClockState | None = None,
        wall: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._state = state or ClockState()
        self._wall = wall
        self._speed = self._speed_now()
        self._since_wall = wall()
        self._since = 0
        self.started = self._since_wall
        self.lost = 0
        """Nanoseconds of wall time that did not count."""
        self._state.on_change(self._rate_changed)

    @property
    def lock_step(self) -> bool:
        """Time runs because a peer is owed an answer, not because wall time passes."""
        return self._state.rate in ("max", "step")

    def now(self) -> int:
        return self._since + round((self._wall() - self._since_wall) * self._speed)

    def set_now(self, now: int) -> None:
        """Simulated time continues from here."""
        self._since = now
        self._since_wall = self._wall()

    def seconds_until(self, at: int) -> float | None:
        """Wall seconds until simulated time reaches ``at``; None if time does not run by itself."""
        if self._speed == 0.0:
            return None
        return max(at - self.now(), 0) / self._speed / NS_PER_SECOND

    def wall_now(self) -> int:
        return self._wall()

    def late_step(self) -> int:
        """Simulated time in which a late cell advances at once."""
        return round(LATE_STEP * self._speed)

    def hold_back(self, since: int, simulated: int) -> None:
        """Counts only as much of the wall time since then as was simulated."""
        if self._speed:
            self._lose(self._wall() - since - round(simulated / self._speed))

    def return_to(self, at: int) -> None:
        """Goes on from a simulated time that has passed already."""
        if self._speed:
            self._lose(round((self.now() - at) / self._speed))

    def _lose(self, wall: int) -> None:
        lost = max(0, wall)
        self._since_wall += lost
        self.lost += lost

    def late_seconds(self, reached: int) -> float:
        """Wall seconds by which a cell that has reached this time is late."""
        late = self.now() - reached
        return max(late, 0) / self._speed / NS_PER_SECOND if self._speed else 0.0

    def real_seconds(self) -> float:
        """Wall seconds since the clock was made."""
        return (self._wall() - self.started) / NS_PER_SECOND

    def _rate_changed(self) -> None:
        self.set_now(self.now())
        self._speed = self._speed_now()

    def _speed_now(self) -> float:
        if self._state.paused or self._state.rate == "step":
            return 0.0
        return 1.0 if self._state.rate == "max" else float(self._state.rate)


# ── the pump ────────────────────────────────────────────────────────────────────────────────────


class Pump:
    """Runs one cell on one event loop; `PeerEvents` of its wires."""

    def __init__(
        self,
        exchange: Exchange,
        state: ClockState | None = None,
        *,
        poll_step: int = 1,
        until: int | None = None,
        finished: Callable[[], None] = lambda: None,
        wall: Callable[[], int] = time.monotonic_ns,
        skip_missed: bool = False,
        held: bool = False,
        epoch: Epoch | None = None,
        real: bool = False,
    ) -> None:
        """With ``skip_missed``, wakes that are late happen once, at the present time. With
        ``real``, parts of the cell wait for answers of devices.

        With ``held``, time does not run before `start`. ``epoch``: is moved on when time begins to
        run, at another rate too, and when a late cell has lost time.
        """
        self.epoch = epoch
        """None: it does not change any more."""
        self._held = held
        self._exchange = exchange
        self._timed_cell = exchange.timed_cell
        self._state = state or ClockState()
        self._clock = Clock(self._state, wall)
        self._poll_step = poll_step
        self._skip_missed = skip_missed
        self._real = real
        self._until = until
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._ahead: deque[tuple[int, Later]] = deque()
        self._recorders: list[Recorder] = []
        self._received = False
        self._turns_for_bytes = 0
        self._put_off = 0
        self._owed_work = 0
        self._questions = 0
        self._broker_behind = False
        exchange.poll_step = self._turn_step
        self._problem: Exception | None = None
        self._state.on_change(self._rate_changed)

    # ── events of the wires ──

    def open(self, endpoint: str, sink: Sink[Any], peer: str = "") -> Connection:
        self._catch_up()
        connection = self._exchange.open(endpoint, sink, peer)
        self._schedule()
        return connection

    def connection(self, endpoint: str, peer: str) -> Connection | None:
        return self._exchange.connection(endpoint, peer)

    def receive(self, connection: Connection, data: Data) -> None:
        self._catch_up()
        self._received = True
        self._receive_one(connection, data)
        self._schedule()

    def receive_many(self, connection: Connection, messages: Sequence[WireMessage]) -> None:
        """In lock-step one by one: an answer to the first may let time pass before the next."""
        self._catch_up()
        self._received = True
        if self._clock.lock_step:
            for message in messages:
                self._receive_one(connection, message)
        else:
            self._exchange.receive_many(connection, messages)
        self._schedule()

    def eof(self, connection: Connection) -> None:
        self._catch_up()
        self._exchange.eof(connection)
        self._schedule()

    def closed(self, connection: Connection) -> None:
        self._catch_up()
        self._exchange.closed(connection)
        self._schedule()

    def drained(self, connection: Connection) -> None:
        self._exchange.drained(connection)
        self._schedule()

    def addresses(self, endpoint: str) -> list[str]:
        return self._exchange.addresses(endpoint)

    def last_will(self, endpoint: str) -> WireMessage | None:
        return self._exchange.last_will(endpoint)

    def record(self, recorder: Recorder) -> None:
        """From now on the recorder reads the cell on its way."""
        self._recorders.append(recorder)

    def forget(self, recorder: Recorder) -> None:
        """The recorder reads the cell no more."""
        self._recorders.remove(recorder)

    # ── commands ──

    def now(self) -> int:
        """The cell's time, after the cell has caught up with the clock, unless it is late."""
        self._catch_up()
        return self._timed_cell.now

    def advance(self, duration: int) -> Later | None:
        """Runs the cell ahead by this much, at any rate, however long it takes; a `Later` if time
        must wait on the way."""
        self._catch_up()
        end, later = self._timed_cell.now + duration, None
        self._leap_to(end)
        if self._questions and self._timed_cell.now < end:
            later = Later()
            self._ahead.append((end, later))
        self._schedule()
        return later

    def run_ahead(self, duration: int) -> Later | None:
        """As `advance`, in turns between which the event loop runs; None if it is done already.

        Requests are served in their order: each begins where the one before ends.
        """
        self._catch_up()
        begins = self._ahead[-1][0] if self._ahead else self._timed_cell.now
        self._ahead.append((begins + duration, Later()))
        later = self._ahead[-1][1]
        self._run_ahead()
        self._schedule()
        waits = any(waiting is later for _, waiting in self._ahead)
        return later if waits or self._problem else None

    def act(self, action: Callable[[int], Outcome]) -> Outcome:
        """Calls ``action`` at the cell's present time, and delivers what follows from it."""
        self._catch_up()
        outcome = action(self._timed_cell.now)
        for recorder in self._recorders:
            recorder.acted(self._timed_cell.now)
        self._exchange.deliver()
        self._schedule()
        return outcome

    def owe(self) -> None:
        """A command has begun that takes wall time and will change the cell: in lock-step time
        waits for it, so that the time of the change does not depend on the machine."""
        self._owed_work += 1

    def paid(self) -> None:
        """A command of `owe` has ended."""
        if self._waits():
            self._clock.set_now(self._timed_cell.now)
        self._owed_work -= 1
        self._schedule()

    def asked(self) -> None:
        """A part has asked another process: in lock-step, and when time runs ahead, time stands
        from this instant until `settled`."""
        self._questions += 1

    def settled(self) -> None:
        """A question of `asked` has its answer, is lost or is not asked any more."""
        if self._waits():
            self._clock.set_now(self._timed_cell.now)
        self._questions -= 1
        self._schedule()

    def close(self, endpoints: Iterable[str], reason: str) -> None:
        """Closes all connections of these endpoints and refuses new ones; no reason: opens them."""
        self._catch_up()
        self._exchange.close(endpoints, reason)
        self._schedule()

    def snapshot(self) -> Snapshot:
        self._catch_up()
        return self._exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._exchange.restore(snapshot)
        self._problem = None
        self._drop_requests(SUPERSEDED)
        self._clock.set_now(self._timed_cell.now)
        self.set_epoch(self._timed_cell.now)
        self._schedule()

    def stop_time(self, problem: Exception) -> None:
        """Time cannot go on, because of a fault in a part."""
        if self._problem is None:
            log.error("%s; commands are still answered", problem)
        self._problem = problem
        self._drop_requests(Refused(str(problem)))
        if self._until is not None:
            self._finished()

    @property
    def problem(self) -> str:
        """Why time cannot go on; empty if it can."""
        return str(self._problem or "")

    def real_seconds(self) -> float:
        return self._clock.real_seconds()

    def late_seconds(self) -> float:
        """Wall seconds by which the cell is late now; it catches up."""
        return 0.0 if self._clock.lock_step else self._clock.late_seconds(self._timed_cell.now)

    def lost_seconds(self) -> float:
        """Wall seconds since the start that were not simulated: the cell could not keep up."""
        return self._clock.lost / NS_PER_SECOND

    def start(self) -> None:
        """Lets time run, from the time that the cell has reached."""
        self._held = False
        self._clock.set_now(self._timed_cell.now)
        self.set_epoch(self._timed_cell.now)
        self._schedule()

    def set_epoch(self, now: int) -> None:
        """Simulated time is the time of day from ``now`` on."""
        if self.epoch is not None:
            self.epoch.ns = max(self.epoch.ns, time.time_ns() - now)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    # ── inside ──

    def _rate_changed(self) -> None:
        self._catch_up()
        self._clock.set_now(self._timed_cell.now)
        if not self._held:
            self.set_epoch(self._timed_cell.now)
        self._exchange.deliver()  # bytes that waited for their turn need not, at another rate
        self._schedule()

    def _turn_step(self) -> int | None:
        """At `step` the bytes of a peer are received in turns; a pause lets no time pass."""
        if self._state.rate != "step":
            return None
        return 0 if self._state.paused else self._poll_step

    def _receive_one(self, connection: Connection, data: Data) -> None:
        if self._state.rate == "max":
            self._receive_at_max(connection, data)
        else:
            self._exchange.receive(connection, data)

    def _receive_at_max(self, connection: Connection, data: Data) -> None:
        """Receives a message whole and bytes one by one: a query while something moves lets time
        pass, as at `step`. Bytes that are never answered are received together."""
        pieces = pieces_of(connection.session).findall(data) if isinstance(data, bytes) else [data]
        for piece in pieces:
            answered = self._exchange.receive(connection, piece)
            runs = answered and not self._state.paused and not self._waits()
            if runs and self._timed_cell.busy() and not self._exchange.owed():
                self._leap_to(self._timed_cell.now + self._poll_step)

    def _schedule(self) -> None:
        self._release()
        if self._timer is not None:
            if self._timer.when() <= self._loop.time():
                most = MOST_TURNS_FOR_BYTES if self._clock.lock_step else 0
                if self._put_off == most:
                    return  # a turn is due: a flood of bytes must not put it off for ever
                self._put_off += 1
            self._timer.cancel()
            self._timer = None
        if self._stopped:
            return
        delay = self._delay()
        if delay is not None:
            # call_later(0) runs after the bytes that have already arrived.
            self._timer = self._loop.call_later(delay, self._turn)

    def _delay(self) -> float | None:
        """Seconds of wall time until the next turn; None: it comes with the next bytes only."""
        if self._waits():
            return None
        if self._done() or self._ahead:
            return 0.0
        at = self._next()
        if at is None or self._problem or self._state.paused or self._held:
            return None
        return 0.0 if self._runs_free() else self._clock.seconds_until(at)

    def _next(self) -> int | None:
        moments = [m for m in (self._exchange.next_wake(), self._until) if m is not None]
        return min(moments, default=None)

    def _waits(self) -> bool:
        """Whether time waits for a command, a broker or the answer to a question; in lock-step, or
        when it runs ahead."""
        if not self._clock.lock_step and not self._ahead:
            return False
        self._broker_behind = self._broker_behind or self._exchange.behind()
        owed = self._owed_work > 0 and self._clock.lock_step
        return self._broker_behind or self._stands() or owed

    def _stands(self) -> bool:
        """Whether time waits for the answer to a question."""
        return self._questions > 0 and (self._clock.lock_step or bool(self._ahead))

    def _release(self) -> None:
        """Time goes on from where it waited for a broker."""
        if self._broker_behind and not self._exchange.behind():
            self._broker_behind = False
            if self._clock.lock_step:
                self._clock.set_now(self._timed_cell.now)

    def _runs_free(self) -> bool:
        """In lock-step time runs now, as fast as it can."""
        if not self._clock.lock_step or self._state.paused or self._waits():
            return False
        if self._exchange.owed() or self._exchange.polled():
            return True
        if self._state.rate != "max":
            return False
        return self._timed_cell.busy() or (self._until is not None and self._exchange.detached())

    def _turn(self) -> None:
        self._timer = None
        if self._waits():
            return
        deadline = time.monotonic() + TURN_SECONDS
        if self._ahead:
            self._run_ahead()
        elif self._runs_free():
            while self._runs_free() and (at := self._next()) is not None:
                while self._step_free(at) and time.monotonic() <= deadline:
                    pass
                awaited = self._exchange.polled() or self._exchange.detached()
                if self._done() or not awaited or time.monotonic() > deadline:
                    break  # bytes may have arrived
        elif self._timed_cell.interrupted():
            self._step(self._timed_cell.now)
        elif self._is_late():
            self._catch_up_late()
        else:
            self._catch_up()
        self._received = False
        self._put_off = 0
        if self._done():
            self._finished()
            return
        self._schedule()

    def _run_ahead(self) -> None:
        """Runs for at most one turn towards the first requested time."""
        deadline = time.monotonic() + TURN_SECONDS
        while self._ahead and not self._waits():
            to, later = self._ahead[0]
            goes_on = self._step_free(max(to, self._timed_cell.now))
            if not goes_on and self._ahead:
                self._ahead.popleft()
                later.settle(None)
            if time.monotonic() > deadline:
                break

    def _drop_requests(self, refused: Refused) -> None:
        """Answers all requests to run ahead."""
        dropped, self._ahead = self._ahead, deque()
        for _, later in dropped:
            later.settle(refused)

    def _done(self) -> bool:
        return self._until is not None and self._timed_cell.now >= self._until

    def _step(self, end: int) -> bool:
        """Runs to the next wake or the next reading of a recorder, at most to ``end``.

        True if the cell has not reached ``end``. Every loop over time is made of these steps, so
        that it can be left after one turn.
        """
        at = self._exchange.next_wake()
        to = max(end if at is None else min(at, end), self._timed_cell.now)
        due = [
            (at, recorder)
            for recorder in self._recorders
            if recorder.due <= to and (at := recorder.next_reading(to)) is not None
        ]
        read_at = min((at for at, _ in due), default=to)
        self._exchange.advance(read_at)
        if self._problem is not None:
            return False
        for at, recorder in due:
            if at == read_at:
                recorder.read(at)
        return self._timed_cell.now < end

    def _step_free(self, end: int) -> bool:
        """As `_step`; the clock goes on from the time reached."""
        goes_on = self._step(end)
        self._clock.set_now(self._timed_cell.now)
        return goes_on

    def _leap_to(self, end: int) -> None:
        while not self._questions and self._step_free(end):
            pass

    def _clock_now(self) -> int:
        now = self._clock.now()
        return now if self._until is None else min(now, self._until)

    def _is_late(self) -> bool:
        """Whether a wake is overdue by more than a step."""
        at = self._exchange.next_wake()
        if at is None or self._skip_missed:
            return False
        return self._clock_now() - at > self._clock.late_step()

    def _catch_up(self) -> None:
        """Brings the cell to the clock's time; if it is late or has work left, the next turns
        do."""
        if self._timed_cell.interrupted() or self._held or self._waits() or self._is_late():
            return
        self._run_to(self._clock_now())

    def _catch_up_late(self) -> None:
        """Advances by one step, unless bytes were received: there may be more of them.

        The clock is held back while the cell works longer than the time it simulates: a cell that
        cannot keep up gets no later.
        """
        if self._received and self._turns_for_bytes < MOST_TURNS_FOR_BYTES:
            self._turns_for_bytes += 1
            return
        self._turns_for_bytes = 0
        overdue = self._exchange.next_wake()
        assert overdue is not None
        if self._real:
            self._clock.return_to(overdue)
        begun, before = self._clock.wall_now(), self._timed_cell.now
        self._run_to(max(overdue, before) + self._clock.late_step())
        self._clock.hold_back(begun, self._timed_cell.now - before)
        self.set_epoch(self._clock.now())

    def _run_to(self, end: int) -> None:
        """Runs to ``end``, for at most one turn."""
        end = max(end, self._timed_cell.now)
        if self._skip_missed:
            self._exchange.advance(end)
            return
        limit = self._clock.wall_now() + round(TURN_SECONDS * NS_PER_SECOND)
        while self._step(end) and self._clock.wall_now() <= limit and not self._stands():
            pass
