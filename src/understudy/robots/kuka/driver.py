"""A real KUKA's G-code server, or one that is not there: streams jobs of records and follows them.

A record goes out when fewer than four are unconfirmed, at most 32 in a second. A job is done when
the robot says that its last record is. A call that ends, or a robot that falls silent, ends the
job: what the robot did of it is known up to the last confirmed record, and nothing is sent again.

The feedback never tells that a record was refused. Whoever also reads the telemetry passes it to
`observe`: a robot that is not where its records lead then ends the job.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.kuka import KukaReading
from understudy.protocol.client import ConnectionState, ReconnectSchedule
from understudy.protocol.sessions import Outbox
from understudy.robots.kuka.driver_position import PositionTracker, Tolerance
from understudy.robots.kuka.driver_program import Step
from understudy.robots.kuka.frames import (
    FEEDBACK,
    TELEMETRY,
    Frames,
    read_feedback,
    read_telemetry,
    write_command,
)
from understudy.units import DEG, MM, NS_PER_MS, NS_PER_SECOND, nanoseconds

HIGHEST_SEQ = 2**31 - 1
Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=86_400.0)]

NOT_CALLED = Refused("the robot was not reached yet")
NOT_RESTORED = Refused("a real robot cannot be brought back to an earlier moment")
BUSY = Refused("a job is under way")
NOTHING = Refused("a job of no records")
GIVEN_UP = Refused("given up")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """How the driver talks. `silence_s`: how long the robot may say nothing during a job; a real
    one says nothing while it moves. `greeting_ms`: how long to wait for its first word before a
    job is numbered. `reconnect_s`: the pauses between connection attempts. `tolerance_…`:
    how far off its way it is still on it; `sight_s`: how long to wait for telemetry that has fallen
    silent, before a job that is done counts as done unseen."""

    window: Annotated[int, Meta(ge=1, le=512)] = 4
    records_per_s: Annotated[float, Meta(gt=0, le=10_000)] = 32.0
    connect_timeout_ms: Milliseconds = 3000
    greeting_ms: Milliseconds = 200
    silence_s: Delay = 600.0
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)
    tolerance_mm: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    tolerance_deg: Annotated[float, Meta(gt=0, le=180)] = 0.5
    sight_s: Delay = 5.0


class JobProgress(Struct, frozen=True):
    """How far a job is, in records."""

    total: int
    sent: int
    completed: int


@dataclass(frozen=True, slots=True)
class Status:
    """How the conversation goes, and the robot's own words: g_seq and g_queue_size.

    `seen`: the telemetry showed the robot where the last job that is done was to end.
    """

    connection: ConnectionState
    trouble: str
    robot_seq: int | None
    robot_waiting: int
    job: JobProgress | None
    seen: bool


@dataclass(slots=True)
class Job:
    """Steps under way; ``first`` is the sequence number of the first, once that is decided."""

    ticket: Ticket
    steps: Sequence[Step]
    send_at: int
    first: int | None = None
    sent: int = 0
    completed: int = 0
    whereabouts: PositionTracker | None = None

    @property
    def seen(self) -> bool:
        return self.whereabouts is not None and self.whereabouts.seen == len(self.steps)

    def hear(self, seq: int) -> None:
        """The robot has completed a record; news that is old, or not of this job, is none."""
        done = 0 if self.first is None else seq - self.first + 1
        if self.completed < done <= self.sent:
            self.completed = done


class Saved(Struct):
    """What a snapshot holds: the robot itself is not ours to save."""

    now: int
    next_ticket: int
    pending: Ticket | None


class KukaEkiDriver:
    """`Part` and `Caller`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._period = round(NS_PER_SECOND / config.records_per_s)
        self._silence = nanoseconds(config.silence_s)
        self._sight = nanoseconds(config.sight_s)
        self._tolerance = Tolerance(config.tolerance_mm * MM, config.tolerance_deg * DEG)
        self._last = -1
        self._reading: KukaReading | None = None
        self._observed_at = 0
        self._seen = False
        self._listeners: list[Finished] = []
        self._stir_listeners: list[Callable[[], None]] = []
        self._reconnect = ReconnectSchedule(
            timeout=config.connect_timeout_ms * NS_PER_MS,
            pauses=[nanoseconds(pause) for pause in config.reconnect_s],
        )
        self._now = 0
        self._next_ticket = 1
        self._orphan: Ticket | None = None
        self._job: Job | None = None
        self._begin_call(NOT_CALLED)

    def _begin_call(self, trouble: Refused | None) -> None:
        self._trouble = trouble
        self._outbox = Outbox(self._stir)
        self._frames = Frames(FEEDBACK.size)
        self._heard: tuple[int, int] | None = None
        self._heard_at = self._now

    # ── jobs ──

    def run(self, steps: Sequence[Step], now: int) -> Ticket | Refused:
        """Have the steps carried out one after the other; told of the end by `on_finished`."""
        refusal = self._trouble or (BUSY if self._job else None) or (None if steps else NOTHING)
        if refusal is not None:
            return refusal
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._job = Job(ticket, steps, send_at=now, whereabouts=self._whereabouts(steps, now))
        self._heard_at = max(self._heard_at, now)
        self._go_on(now)
        return ticket

    def give_up(self, now: int) -> None:
        """End the job by hanging up; what the robot does with what it has is its own affair."""
        if self._job is not None:
            self._break_off(GIVEN_UP, now)

    def observe(self, reading: KukaReading, now: int) -> None:
        """What the telemetry tells; a job that began after it first spoke is held to it."""
        self._now = now
        self._reading, self._observed_at = reading, now
        self._last = max(self._last, reading.progress.in_flight)
        job = self._job
        if job is None or job.first is None or job.whereabouts is None:
            return
        if astray := job.whereabouts.astray(reading, job.first, job.sent, now):
            self._break_off(Refused(astray), now)
        else:
            self._go_on(now)

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    def progress(self) -> JobProgress | None:
        job = self._job
        return JobProgress(len(job.steps), job.sent, job.completed) if job else None

    # ── part ──

    def busy(self) -> bool:
        return self._job is not None

    def status(self, now: int) -> Status:
        seq, waiting = self._heard or (None, 0)
        trouble = self._trouble.reason if self._trouble else ""
        return Status(self._reconnect.state, trouble, seq, waiting, self.progress(), self._seen)

    def next_wake(self) -> int | None:
        if self._orphan is not None:
            return self._now
        if self._reconnect.state != "connected":
            return self._reconnect.due
        if self._job is None:
            return None
        if self._job.first is None:
            return self._greeting_ends(self._job)
        if self._waits_for_sight(self._job):
            return self._observed_at + self._sight
        silent = self._heard_at + self._silence
        return min(self._job.send_at, silent) if self._may_send(self._job) else silent

    def wake(self, now: int) -> None:
        self._now = now
        orphan, self._orphan = self._orphan, None
        if orphan is not None:
            self._tell(orphan, NOT_RESTORED, now)
        if self._reconnect.state == "connected":
            if self._job is not None and now >= self._heard_at + self._silence:
                self._break_off(Refused(f"silent for {self._config.silence_s:g} s"), now)
            self._go_on(now)
        elif now >= self._reconnect.due and self._reconnect.state == "connecting":
            patience = f"within {self._config.connect_timeout_ms} ms"
            self._break_off(Refused(f"no connection {patience}"), now)
        elif now >= self._reconnect.due:
            self._reconnect.connect(now)
            self._stir()

    def save(self) -> Saved:
        pending = self._job.ticket if self._job else self._orphan
        return Saved(self._now, self._next_ticket, pending)

    def load(self, state: Any) -> None:
        """Begin a new call; a job of the snapshot is refused as soon as time runs."""
        saved = msgspec.convert(state, Saved)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._orphan, self._job = saved.pending, None
        self._reconnect.restart(saved.now)
        self._begin_call(NOT_RESTORED)
        self._stir()

    # ── the line ──

    def wanted(self) -> int | None:
        return self._reconnect.wanted()

    def connected(self, now: int) -> None:
        self._now = now
        self._reconnect.connected()
        self._begin_call(None)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        for frame in self._frames.feed(data):
            self._heard = read_feedback(frame)
            self._heard_at = now
            self._reconnect.answered()
            if self._job is not None:
                self._job.hear(self._heard[0])
        self._go_on(now)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._break_off(Refused(reason), now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._stir_listeners.append(listener)

    # ── one record after the other ──

    def _go_on(self, now: int) -> None:
        job = self._job
        if job is None:
            return
        if job.completed == len(job.steps):
            if self._waits_for_sight(job) and now < self._observed_at + self._sight:
                return
            self._job, self._seen = None, job.seen
            self._tell(job.ticket, None, now)
            return
        if job.first is None and (self._heard or now >= self._greeting_ends(job)):
            heard = self._heard[0] if self._heard else -1
            job.first = first_number(heard, len(job.steps), self._last)
        if job.first is not None and self._may_send(job) and now >= job.send_at:
            self._last = job.first + job.sent
            self._outbox.send(write_command(job.steps[job.sent].numbered(self._last)))
            job.sent += 1
            job.send_at = now + self._period

    def _whereabouts(self, steps: Sequence[Step], now: int) -> PositionTracker | None:
        """From where it stands, if it does; None where no telemetry comes."""
        if self._reading is None or now >= self._observed_at + self._sight:
            return None
        rests = not (self._reading.progress.under_way or self._reading.progress.waiting)
        return PositionTracker(steps, self._reading.pose if rests else None, self._tolerance)

    def _waits_for_sight(self, job: Job) -> bool:
        return job.whereabouts is not None and job.completed == len(job.steps) and not job.seen

    def _may_send(self, job: Job) -> bool:
        return job.sent < len(job.steps) and job.sent - job.completed < self._config.window

    def _greeting_ends(self, job: Job) -> int:
        return job.send_at + self._config.greeting_ms * NS_PER_MS

    # ── how it ends ──

    def _break_off(self, trouble: Refused, now: int) -> None:
        job, self._job = self._job, None
        self._reconnect.failed(now)
        self._begin_call(trouble)
        self._stir()
        if job is not None:
            far = f"{job.completed} of {len(job.steps)} records completed, {job.sent} sent"
            self._tell(job.ticket, Refused(f"{trouble.reason}; {far}", trouble.code), now)

    def _tell(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self._listeners:
            listener(ticket, outcome, now)

    def _stir(self) -> None:
        for listener in self._stir_listeners:
            listener()


def first_number(robot_seq: int, count: int, last: int = -1) -> int:
    """1, as the real client begins; but no number that the robot's own word could be taken for.

    ``last``: the highest that it may still have to carry out from before.
    """
    last = max(robot_seq, last)
    if last < 1 or robot_seq > count:
        return 1
    return last + 1 if last <= HIGHEST_SEQ - count else 1


class TelemetryReader:
    """What a robot tells of itself, out of a stream of bytes."""

    def __init__(self) -> None:
        self._frames = Frames(TELEMETRY.size)
        self.last: KukaReading | None = None

    def feed(self, data: bytes) -> list[KukaReading]:
        readings = [read_telemetry(frame) for frame in self._frames.feed(data)]
        self.last = readings[-1] if readings else self.last
        return readings


def build(config: Config) -> KukaEkiDriver:
    return KukaEkiDriver(config)
