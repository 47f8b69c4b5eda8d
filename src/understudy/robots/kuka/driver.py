"""The driver of a KUKA's G-code server, real or simulated: streams jobs of records.

The driver sends a record when fewer than four are unconfirmed, and at most 32 per second. A job is
done when the robot confirms its last record. A lost connection, or a robot that sends nothing for
too long, ends the job: its progress is known up to the last confirmed record, and the driver never
sends a record again.

The feedback does not report that a record was refused. A caller that also reads the telemetry
passes it to `observe`: a robot that is not where its records lead then ends the job.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.gcode.blocks import Problem
from understudy.ports import Finished, Ticket
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.protocol.client import ConnectionState, ReconnectSchedule
from understudy.protocol.sessions import Outbox
from understudy.robots.kuka.frames import (
    FEEDBACK,
    TELEMETRY,
    FrameReader,
    read_feedback,
    read_telemetry,
    write_command,
)
from understudy.robots.kuka.program import Step, read_program
from understudy.robots.kuka.records import LINEAR, POSITION, KukaReading
from understudy.space.pose import Pose
from understudy.space.transform import angle_between, matrix
from understudy.units import DEG, MM, NS_PER_MS, NS_PER_SECOND, nanoseconds, seconds

HIGHEST_SEQ = 2**31 - 1
Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=86_400.0)]

NOT_CONNECTED = Refused("the robot was not reached yet")
NOT_RESTORED = Refused("a real robot cannot be restored from a snapshot")
BUSY = Refused("a job is already running")
EMPTY_JOB = Refused("the job has no records")
GIVEN_UP = Refused("the job was cancelled")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits, timeouts and tolerances of the driver.

    `greeting_ms`: how long to wait for the first feedback before a job is numbered.
    `silence_s`: how long the robot may send no feedback during a job; a real robot sends none while
    it moves.
    `reconnect_s`: the pauses between connection attempts; the last one is repeated.
    `tolerance_…`: how far the robot may be off its line.
    `sight_s`: how long to wait for missing telemetry at the end of a job; after that the job counts
    as done without proof.
    """

    window: Annotated[int, Meta(ge=1, le=512)] = 4
    records_per_s: Annotated[float, Meta(gt=0, le=10_000)] = 32.0
    connect_timeout_ms: Milliseconds = 3000
    greeting_ms: Milliseconds = 200
    silence_s: Delay = 600.0
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)
    tolerance_mm: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    tolerance_deg: Annotated[float, Meta(gt=0, le=180)] = 0.5
    sight_s: Delay = 5.0


# ── position of the robot, from its telemetry ───────────────────────────────────────────────────

KnownPose = tuple[float | None, ...]
"""A pose with None for the coordinates that no record has given."""
UNKNOWN: KnownPose = (None,) * 6
FASTEST = 3.0
"""Metres per second: no arm of this kind is faster."""
FRAME_SECONDS = 0.02
"""Time between two telemetry frames."""


class Tolerance(NamedTuple):
    """Allowed distance from a line (m), and allowed angle from a target orientation (rad)."""

    distance: float
    angle: float


class PositionTracker:
    """Compares the telemetry with the positions to which the records of a job lead.

    The feedback counts records and does not report refusals: a target that is out of reach, below
    the soft limit, or commanded with an undefined tool is completed as soon as it is taken from
    the buffer. The telemetry shows this: the robot rests at or starts from another place, or no
    frame shows it on a line that takes longer than the time between two frames.
    """

    def __init__(self, steps: Sequence[Step], start: Pose | None, tolerance: Tolerance) -> None:
        self._steps = steps
        self._tolerance = tolerance
        self._after = [UNKNOWN if start is None else tuple(start)]
        for step in steps:
            self._after.append(_after(step, self._after[-1]))
        self.seen = 0
        """Number of completed steps at whose end the robot was seen."""
        self._started = 0
        self._last: tuple[Sequence[float], int] | None = None

    def deviation(self, reading: KukaReading, first: int, sent: int, now: int) -> str:
        """A message if the robot is not where it should be; ``first``: number of the first step."""
        flying = reading.progress.in_flight - first
        done = reading.progress.completed - first + 1
        done = done if 0 <= done <= sent else 0  # the last completed record belongs to another job
        if not all(map(math.isfinite, reading.pose)):
            return ""
        if (missed := self._missed(done, reading.pose, now)) is not None:
            return _message(f"line {self._steps[missed].line}", reading.pose)
        self._last = reading.pose[:3], now
        if flying == done < sent:
            there = self._on_line(done, reading.pose)
        elif done and flying == done - 1:
            there = self._at_rest(done, reading.pose)
        else:
            return ""
        if not there:
            return self._blamed(done, reading.pose)
        self.seen = max(self.seen, done)
        self._started = max(self._started, flying + 1)  # a refused record is never in flight
        return ""

    def _missed(self, done: int, here: Pose, now: int) -> int | None:
        """A completed step that was never seen in flight, and whose end the robot cannot have
        reached since the last frame."""
        if self._last is None:
            return None
        before, at = self._last
        possible = FASTEST * (FRAME_SECONDS + seconds(now - at))
        for step in range(self._started, done):
            end = [value for value in self._after[step + 1][:3] if value is not None]
            if self._steps[step].kind != LINEAR or len(end) < 3:
                return None
            if math.dist(before, end) + math.dist(end, here[:3]) > possible:
                return step
        return None

    def _on_line(self, step: int, here: Pose) -> bool:
        """Whether the robot is on the line of this step; True if its ends are not known."""
        start, end = self._after[step][:3], self._after[step + 1][:3]
        a = [value for value in start if value is not None]
        b = [value for value in end if value is not None]
        if len(a) + len(b) < 6:
            return True
        return _distance(here[:3], a, b) <= self._tolerance.distance

    def _at_rest(self, done: int, here: Pose) -> bool:
        """Whether the robot is at the end of ``done`` steps, as far as this end is known."""
        wanted = self._after[done]
        pairs = zip(wanted[:3], here[:3], strict=True)
        if any(w is not None and abs(w - h) > self._tolerance.distance for w, h in pairs):
            return False
        turned = [value for value in wanted[3:] if value is not None]
        if len(turned) < 3:
            return True
        goal = matrix(Pose(0.0, 0.0, 0.0, *turned))
        apart = angle_between(goal[:3, :3], matrix(here)[:3, :3])
        return apart <= self._tolerance.angle

    def _blamed(self, done: int, here: Pose) -> str:
        """Names the moves that were completed, but not seen in flight, since the robot was last
        seen where it should be."""
        moves = [s for s in self._steps[self._started : done] if s.words.keys() & set(POSITION)]
        lines = sorted({step.line for step in moves}) or [self._steps[max(done - 1, 0)].line]
        which = f"line {lines[0]}" if len(lines) == 1 else f"one of lines {lines[0]}…{lines[-1]}"
        return _message(which, here)


def _message(which: str, here: Pose) -> str:
    at = " ".join(f"{w}{v / MM:.1f}" for w, v in zip("XYZ", here[:3], strict=True))
    return f"{which}: the robot did not go there (it is at {at}); its log has the reason"


def _after(step: Step, before: KnownPose) -> KnownPose:
    """The known pose after a step. After home, or with another tool or base, nothing is known."""
    if step.kind != LINEAR:
        return UNKNOWN
    return tuple(step.words.get(word, was) for word, was in zip(POSITION, before, strict=True))


def _distance(p: Sequence[float], a: Sequence[float], b: Sequence[float]) -> float:
    """Distance of a point from the line between two others."""
    way = [y - x for x, y in zip(a, b, strict=True)]
    length = math.hypot(*way)
    along = sum(w * (q - x) for w, q, x in zip(way, p, a, strict=True))
    share = min(max(along / length**2, 0.0), 1.0) if length > 0.0 else 0.0
    return math.dist(p, [x + share * w for x, w in zip(a, way, strict=True)])


class TelemetryReader:
    """Reads telemetry from a stream of bytes; keeps the last reading."""

    def __init__(self) -> None:
        self._frames = FrameReader(TELEMETRY.size)
        self.last: KukaReading | None = None

    def feed(self, data: bytes) -> list[KukaReading]:
        readings = [read_telemetry(frame) for frame in self._frames.feed(data)]
        self.last = readings[-1] if readings else self.last
        return readings


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────


class JobProgress(Struct, frozen=True):
    """Progress of a job, in records."""

    total: int
    sent: int
    completed: int


@dataclass(frozen=True, slots=True)
class Status:
    """State of the connection, the last feedback (g_seq and g_queue_size), progress of the job.

    `seen`: the telemetry showed the robot at the end of the last completed job.
    """

    connection: ConnectionState
    trouble: str
    robot_seq: int | None
    robot_waiting: int
    job: JobProgress | None
    seen: bool


@dataclass(slots=True)
class Job:
    """The running job; ``first`` is the sequence number of its first step, once it is chosen."""

    ticket: Ticket
    steps: Sequence[Step]
    send_at: int
    first: int | None = None
    sent: int = 0
    completed: int = 0
    tracker: PositionTracker | None = None

    @property
    def done(self) -> bool:
        return self.completed == len(self.steps)

    @property
    def seen(self) -> bool:
        return self.tracker is not None and self.tracker.seen == len(self.steps)

    @property
    def awaits_telemetry(self) -> bool:
        """All records are completed, but the telemetry has not shown the robot at their end."""
        return self.tracker is not None and self.done and not self.seen

    def confirm(self, seq: int) -> None:
        """The robot has completed a record; numbers of other jobs are ignored."""
        done = 0 if self.first is None else seq - self.first + 1
        if self.completed < done <= self.sent:
            self.completed = done


class Saved(Struct):
    """Snapshot of the driver. The real robot cannot be saved."""

    now: int
    next_ticket: int
    pending: Ticket | None


class KukaEkiDriver:
    """`Component` and `Caller`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._period = round(NS_PER_SECOND / config.records_per_s)
        self._silence = nanoseconds(config.silence_s)
        self._sight = nanoseconds(config.sight_s)
        self._tolerance = Tolerance(config.tolerance_mm * MM, config.tolerance_deg * DEG)
        self._last_seq = -1
        """Highest sequence number that the robot may still have to carry out."""
        self._reading: KukaReading | None = None
        self._observed_at = 0
        self._seen = False
        self._listeners: list[Finished] = []
        self._ready_listeners: list[Callable[[], None]] = []
        self._reconnect = ReconnectSchedule(
            timeout=config.connect_timeout_ms * NS_PER_MS,
            pauses=[nanoseconds(pause) for pause in config.reconnect_s],
        )
        self._now = 0
        self._next_ticket = 1
        self._restored: Ticket | None = None
        """Ticket of a snapshot, to be refused when time runs."""
        self._job: Job | None = None
        self._begin_connection(NOT_CONNECTED)

    def _begin_connection(self, trouble: Refused | None) -> None:
        self._trouble = trouble
        self._outbox = Outbox(self._ready)
        self._frames = FrameReader(FEEDBACK.size)
        self._feedback: tuple[int, int] | None = None
        self._feedback_at = self._now

    # ── jobs ──

    def run(self, steps: Sequence[Step], now: int) -> Ticket | Refused:
        """Starts a job: the steps are carried out one after the other."""
        refusal = self._trouble or (BUSY if self._job else None) or (None if steps else EMPTY_JOB)
        if refusal is not None:
            return refusal
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._job = Job(ticket, steps, send_at=now, tracker=self._tracker(steps, now))
        self._feedback_at = max(self._feedback_at, now)
        self._advance(now)
        return ticket

    def give_up(self, now: int) -> None:
        """Ends the job by disconnecting; the robot keeps or drops the records already sent."""
        if self._job is not None:
            self._disconnect(GIVEN_UP, now)

    def observe(self, reading: KukaReading, now: int) -> None:
        """Takes a telemetry frame. A job that began after the first frame is compared with it."""
        self._now = now
        self._reading, self._observed_at = reading, now
        self._last_seq = max(self._last_seq, reading.progress.in_flight)
        job = self._job
        if job is None or job.first is None or job.tracker is None:
            return
        if deviation := job.tracker.deviation(reading, job.first, job.sent, now):
            self._disconnect(Refused(deviation), now)
        else:
            self._advance(now)

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    def progress(self) -> JobProgress | None:
        job = self._job
        return JobProgress(len(job.steps), job.sent, job.completed) if job else None

    # ── part ──

    def busy(self) -> bool:
        return self._job is not None

    def status(self, now: int) -> Status:
        seq, waiting = self._feedback or (None, 0)
        trouble = self._trouble.reason if self._trouble else ""
        return Status(self._reconnect.state, trouble, seq, waiting, self.progress(), self._seen)

    def next_wake(self) -> int | None:
        if self._restored is not None:
            return self._now
        if self._reconnect.state != "connected":
            return self._reconnect.due
        if self._job is None:
            return None
        if self._job.first is None:
            return self._greeting_ends(self._job)
        if self._job.awaits_telemetry:
            return self._observed_at + self._sight
        silent = self._feedback_at + self._silence
        return min(self._job.send_at, silent) if self._may_send(self._job) else silent

    def wake(self, now: int) -> None:
        self._now = now
        restored, self._restored = self._restored, None
        if restored is not None:
            self._finish(restored, NOT_RESTORED, now)
        if self._reconnect.state == "connected":
            if self._job is not None and now >= self._feedback_at + self._silence:
                self._disconnect(Refused(f"silent for {self._config.silence_s:g} s"), now)
            self._advance(now)
        elif now >= self._reconnect.due and self._reconnect.state == "connecting":
            within = f"within {self._config.connect_timeout_ms} ms"
            self._disconnect(Refused(f"no connection {within}"), now)
        elif now >= self._reconnect.due:
            self._reconnect.connect(now)
            self._ready()

    def save(self) -> Saved:
        pending = self._job.ticket if self._job else self._restored
        return Saved(self._now, self._next_ticket, pending)

    def load(self, state: Any) -> None:
        """Connects again; a job of the snapshot is refused as soon as time runs."""
        saved = msgspec.convert(state, Saved)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._restored, self._job = saved.pending, None
        self._reconnect.restart(saved.now)
        self._begin_connection(NOT_RESTORED)
        self._ready()

    # ── connection ──

    def wanted(self) -> int | None:
        return self._reconnect.wanted()

    def connected(self, now: int) -> None:
        self._now = now
        self._reconnect.connected()
        self._begin_connection(None)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        for frame in self._frames.feed(data):
            self._feedback = read_feedback(frame)
            self._feedback_at = now
            self._reconnect.answered()
            if self._job is not None:
                self._job.confirm(self._feedback[0])
        self._advance(now)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._disconnect(Refused(reason), now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._ready_listeners.append(listener)

    # ── one record after the other ──

    def _advance(self, now: int) -> None:
        """Ends the job if it is done, else sends the next record if it is time."""
        job = self._job
        if job is None:
            return
        if job.done:
            if job.awaits_telemetry and now < self._observed_at + self._sight:
                return
            self._job, self._seen = None, job.seen
            self._finish(job.ticket, None, now)
            return
        if job.first is None and (self._feedback or now >= self._greeting_ends(job)):
            robot_seq = self._feedback[0] if self._feedback else -1
            job.first = first_number(robot_seq, len(job.steps), self._last_seq)
        if job.first is not None and self._may_send(job) and now >= job.send_at:
            self._last_seq = job.first + job.sent
            self._outbox.send(write_command(job.steps[job.sent].numbered(self._last_seq)))
            job.sent += 1
            job.send_at = now + self._period

    def _tracker(self, steps: Sequence[Step], now: int) -> PositionTracker | None:
        """A tracker, or None without recent telemetry. Its start is known if the robot rests."""
        if self._reading is None or now >= self._observed_at + self._sight:
            return None
        rests = not (self._reading.progress.under_way or self._reading.progress.waiting)
        return PositionTracker(steps, self._reading.pose if rests else None, self._tolerance)

    def _may_send(self, job: Job) -> bool:
        return job.sent < len(job.steps) and job.sent - job.completed < self._config.window

    def _greeting_ends(self, job: Job) -> int:
        return job.send_at + self._config.greeting_ms * NS_PER_MS

    # ── end of a connection and of a job ──

    def _disconnect(self, trouble: Refused, now: int) -> None:
        job, self._job = self._job, None
        self._reconnect.failed(now)
        self._begin_connection(trouble)
        self._ready()
        if job is not None:
            progress = f"{job.completed} of {len(job.steps)} records completed, {job.sent} sent"
            self._finish(job.ticket, Refused(f"{trouble.reason}; {progress}", trouble.code), now)

    def _finish(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self._listeners:
            listener(ticket, outcome, now)

    def _ready(self) -> None:
        for listener in self._ready_listeners:
            listener()


def first_number(robot_seq: int, count: int, last: int = -1) -> int:
    """The sequence number of the first record of a job.

    It is 1, as with the real client, unless the last g_seq of the robot could be taken for a
    confirmation. ``last``: the highest number that the robot may still have to carry out.
    """
    last = max(robot_seq, last)
    if last < 1 or robot_seq > count:
        return 1
    return last + 1 if last <= HIGHEST_SEQ - count else 1


def build(config: Config) -> KukaEkiDriver:
    return KukaEkiDriver(config)


# ── `understudy send`: records, confirmed by the robot's telemetry ────────────────────────────────


class RecordStream:
    """`ProgramStream` that `WatchesTelemetry`."""

    def __init__(self, steps: list[Step]) -> None:
        self.driver = build(Config())
        self.total = len(steps)
        self._steps = steps
        self._ended: StreamEnded = lambda outcome: None
        self.driver.on_finished(lambda ticket, outcome, now: self._ended(outcome))

    def start(self, now: int, ended: StreamEnded) -> bool | Refused:
        self._ended = ended
        started = self.driver.run(self._steps, now)
        if not isinstance(started, Refused):
            return True
        return False if started == NOT_CONNECTED else started

    def progress(self) -> int | None:
        progress = self.driver.progress()
        return progress.completed if progress else None

    def give_up(self, now: int) -> None:
        self.driver.give_up(now)

    def closing(self, now: int) -> bool:
        return False

    def telemetry_reader(self) -> Callable[[bytes, int], bool]:
        reader = TelemetryReader()

        def read(data: bytes, now: int) -> bool:
            readings = reader.feed(data)
            for reading in readings:
                self.driver.observe(reading, now)
            return bool(readings)

        return read

    def confirmed(self) -> bool:
        return self.driver.status(0).seen


def stream(text: str, options: SendOptions) -> RecordStream | Refused | None:
    steps = read_program(text)
    if isinstance(steps, Problem):
        return steps.refused()
    return RecordStream(steps) if steps else None


SENDER = Sender(
    "kuka", "kuka_eki.command", unit="records", read=stream, telemetry="kuka_eki.telemetry"
)
