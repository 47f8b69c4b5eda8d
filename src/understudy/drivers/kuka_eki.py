"""A real KUKA's G-code server, or one that is not there: streams jobs of records and follows them.

A record goes out when fewer than four are unconfirmed, at most 32 in a second. A job is done when
the robot says that its last record is. A call that ends, or a robot that falls silent, ends the
job: what the robot did of it is known up to the last confirmed record, and nothing is sent again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.drivers.kuka_eki_program import Step
from understudy.drivers.redial import Phase, Redial
from understudy.errors import Refused
from understudy.faces.kuka_eki_frames import (
    FEEDBACK,
    TELEMETRY,
    Frames,
    read_feedback,
    read_telemetry,
    write_command,
)
from understudy.faces.outbox import Outbox
from understudy.ports import Finished, Ticket
from understudy.ports.kuka import KukaReading
from understudy.units import NS_PER_MS, NS_PER_SECOND, nanoseconds

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
    job is numbered. `redial_s`: the rests between calls; the last one is repeated."""

    window: Annotated[int, Meta(ge=1, le=512)] = 4
    records_per_s: Annotated[float, Meta(gt=0, le=10_000)] = 32.0
    connect_timeout_ms: Milliseconds = 3000
    greeting_ms: Milliseconds = 200
    silence_s: Delay = 600.0
    redial_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)


class JobProgress(Struct, frozen=True):
    """How far a job is, in records."""

    total: int
    sent: int
    completed: int


@dataclass(frozen=True, slots=True)
class Status:
    """How the conversation goes, and the robot's own words: g_seq and g_queue_size."""

    line: Phase
    trouble: str
    robot_seq: int | None
    robot_waiting: int
    job: JobProgress | None


@dataclass(slots=True)
class Job:
    """Steps under way; ``first`` is the sequence number of the first, once that is decided."""

    ticket: Ticket
    steps: Sequence[Step]
    send_at: int
    first: int | None = None
    sent: int = 0
    completed: int = 0

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
        self._listeners: list[Finished] = []
        self._stir_listeners: list[Callable[[], None]] = []
        self._redial = Redial(
            patience=config.connect_timeout_ms * NS_PER_MS,
            rests=[nanoseconds(rest) for rest in config.redial_s],
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
        self._job = Job(ticket, steps, send_at=now)
        self._heard_at = max(self._heard_at, now)
        self._go_on(now)
        return ticket

    def give_up(self, now: int) -> None:
        """End the job by hanging up; what the robot does with what it has is its own affair."""
        if self._job is not None:
            self._break_off(GIVEN_UP, now)

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
        return Status(self._redial.phase, trouble, seq, waiting, self.progress())

    def next_wake(self) -> int | None:
        if self._orphan is not None:
            return self._now
        if self._redial.phase != "talking":
            return self._redial.due
        if self._job is None:
            return None
        if self._job.first is None:
            return self._greeting_ends(self._job)
        silent = self._heard_at + self._silence
        return min(self._job.send_at, silent) if self._may_send(self._job) else silent

    def wake(self, now: int) -> None:
        self._now = now
        orphan, self._orphan = self._orphan, None
        if orphan is not None:
            self._tell(orphan, NOT_RESTORED, now)
        if self._redial.phase == "talking":
            if self._job is not None and now >= self._heard_at + self._silence:
                self._break_off(Refused(f"silent for {self._config.silence_s:g} s"), now)
            self._go_on(now)
        elif now >= self._redial.due and self._redial.phase == "calling":
            patience = f"within {self._config.connect_timeout_ms} ms"
            self._break_off(Refused(f"no connection {patience}"), now)
        elif now >= self._redial.due:
            self._redial.call(now)
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
        self._redial.begin_anew(saved.now)
        self._begin_call(NOT_RESTORED)
        self._stir()

    # ── the line ──

    def wanted(self) -> int | None:
        return self._redial.wanted()

    def connected(self, now: int) -> None:
        self._now = now
        self._redial.connected()
        self._begin_call(None)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        for frame in self._frames.feed(data):
            self._heard = read_feedback(frame)
            self._heard_at = now
            self._redial.answered()
            if self._job is not None:
                self._job.hear(self._heard[0])
        self._go_on(now)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._break_off(Refused(reason), now)

    def on_stir(self, listener: Callable[[], None]) -> None:
        self._stir_listeners.append(listener)

    # ── one record after the other ──

    def _go_on(self, now: int) -> None:
        job = self._job
        if job is None:
            return
        if job.completed == len(job.steps):
            self._job = None
            self._tell(job.ticket, None, now)
            return
        if job.first is None and (self._heard or now >= self._greeting_ends(job)):
            job.first = first_number(self._heard[0] if self._heard else -1, len(job.steps))
        if job.first is not None and self._may_send(job) and now >= job.send_at:
            self._outbox.say(write_command(job.steps[job.sent].numbered(job.first + job.sent)))
            job.sent += 1
            job.send_at = now + self._period

    def _may_send(self, job: Job) -> bool:
        return job.sent < len(job.steps) and job.sent - job.completed < self._config.window

    def _greeting_ends(self, job: Job) -> int:
        return job.send_at + self._config.greeting_ms * NS_PER_MS

    # ── how it ends ──

    def _break_off(self, trouble: Refused, now: int) -> None:
        job, self._job = self._job, None
        self._redial.failed(now)
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


def first_number(robot_seq: int, count: int) -> int:
    """1, as the real client begins; but no number that the robot's own word could be taken for."""
    if not 1 <= robot_seq <= count:
        return 1
    return robot_seq + 1 if robot_seq <= HIGHEST_SEQ - count else 1


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
