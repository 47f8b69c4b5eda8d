"""The G-code server on the robot: takes records from its buffer and carries them out in order.

    submit ──▶ waiting (512) ──▶ in flight ──▶ completed
                  │  looked at ahead, so that moves pass into each other

A record that takes no time, or is refused, is completed in the moment it is taken up.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.motion.path import empty_path
from understudy.motion.plan import Plan, empty_law
from understudy.ports import Part, State, Tally
from understudy.ports.hmi import Pins, RobotView
from understudy.ports.kuka import KukaReading, Progress, Record
from understudy.robots.kuka import course as motion
from understudy.robots.kuka.course import Course
from understudy.robots.kuka.moves import Outcome, Robot
from understudy.robots.kuka.outputs import Outputs
from understudy.robots.kuka.saved import Saved, Status
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.transform import matrix, pose
from understudy.units import NS_PER_MS, seconds, whole_ns

BUFFER = 512
MAIN = 0
"""The channel that records come by."""
FLAG_PERIOD = 500 * NS_PER_MS
MESSAGES_KEPT = 16
NOWHERE, NOT_MOVING = empty_path(6), empty_law(0.0)
WORD = 32
"""So many outputs, arc and gas among them, are shown as the bits of a number."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How the server works through its records. `blend`: the share of the speed left at corners."""

    blend: float
    advance_run: int
    on_disconnect: Literal["clear", "drain"]
    post_flow: int


class Flight(NamedTuple):
    """The record that is being carried out, and what it comes to."""

    record: Record
    outcome: Outcome


class KukaGcodeServer:
    """`GcodeServer` and `Part`."""

    def __init__(
        self, name: str, robot: Robot, manners: Manners, tell: Callable[[str], None]
    ) -> None:
        self._name = name
        self._robot = robot
        self._manners = manners
        self._tell = tell
        self._listeners: list[Callable[[int], None]] = []
        self._standing = robot.start
        self._waiting: deque[Record] = deque()
        self._flight: Flight | None = None
        self._ahead: deque[Outcome] = deque()
        self._sight_ends = False
        self._course: Course | None = None
        self._completed = self._flying = -1
        self._taken = 0
        self._flags = 0
        self._next_check: int | None = None
        self._stopped = False
        self._outputs = Outputs(manners.post_flow)
        self._messages: deque[str] = deque(maxlen=MESSAGES_KEPT)
        self._behind = 0
        self.parts: dict[str, Part] = {}
        self.collision: CollisionWatch | None = None

    def guard(self, watch: CollisionWatch) -> None:
        """Told once, when the cell is put together: what it touches is watched."""
        self.collision = self.parts["collision"] = watch

    # ── records ──

    def room(self) -> int:
        return BUFFER - len(self._waiting)

    def submit(self, record: Record, now: int) -> None:
        self._waiting.append(record)
        self._go_on(now)

    def connect(self, channel: int, up: bool, now: int) -> None:
        bit = 1 << channel
        self._flags = self._flags | bit if up else self._flags & ~bit
        if channel == MAIN:
            self._next_check = None if up else _next_look(now)

    def on_executed(self, listener: Callable[[int], None]) -> None:
        self._listeners.append(listener)

    def stop(self, now: int) -> None:
        """It stands at once, and every record that is not completed is forgotten."""
        self._waiting.clear()
        self._ahead.clear()
        self._taken = 0
        if self._course is not None and self._flight is not None:
            here = self._course.at(seconds(now), self._robot.chain)
            axes = tuple(here.axes.tolist())
            self._standing = replace(self._standing, axes=axes, position=here.pose)
        self._flight = None
        self._end_course()
        self._on_other_path(now)
        self._outputs.weld(0, now)

    # ── what it tells ──

    @property
    def plan(self) -> Plan:
        """The motion under way, or that there is none."""
        if self._course is not None:
            return self._course.plan
        return Plan(NOWHERE, NOT_MOVING, np.array(self._standing.axes))

    @property
    def first(self) -> int:
        """The number of the plan's first piece, counted from the beginning."""
        return self._behind

    @property
    def tool(self) -> int:
        return self._standing.tool

    def tally(self, now: int) -> Tally:
        """What was touched so far; records are not counted here."""
        return Tally(collisions_detected=self.collision.detected if self.collision else 0)

    @property
    def robot(self) -> Robot:
        return self._robot

    def stopped(self) -> bool:
        """By the emergency stop, until it is released."""
        return self._stopped

    def progress(self) -> Progress:
        return Progress(self._completed, self._flying, self._taken, self.busy())

    def reading(self, now: int) -> KukaReading:
        here, standing = self._course, self._standing
        if here is None:
            axes, at, speed = standing.axes, pose(matrix(standing.position)), 0.0
        else:
            sample = here.at(seconds(now), self._robot.chain)
            axes, at, speed = tuple(sample.axes.tolist()), sample.pose, sample.speed
        progress = self.progress()
        return KukaReading(at, axes, speed, standing.tool, standing.base, self._flags, progress)

    def busy(self) -> bool:
        return not self._stopped and (self._flight is not None or bool(self._waiting))

    def status(self, now: int) -> Status:
        return Status(
            reading=self.reading(now),
            waiting=len(self._waiting),
            stopped=self._stopped,
            outputs=self._outputs.high(),
            weld_job=self._outputs.job,
            speed_set=self._standing.speed,
            messages=tuple(self._messages),
        )

    def view(self, now: int) -> RobotView:
        """The tool in the foot's frame, whichever base is told of."""
        course, outputs = self._course, self._outputs
        axes = self.plan.at(seconds(now)).position
        moving = course is not None and not self._stopped
        return RobotView(
            q=axes.tolist(),
            tcp=self._robot.tip(axes, self._standing.tool),
            state="Stopped" if self._stopped else "Run" if self.busy() else "Idle",
            moving=moving,
            tool=self._standing.tool,
            line=max(self._flying, 0) if self.busy() else 0,
            ghost=course.plan.target.tolist() if course and moving else None,
            arc=outputs.welding,
            io=Pins(do=sum(1 << number for number in outputs.high() if number < WORD)),
        )

    # ── time ──

    def next_wake(self) -> int | None:
        moments = (self._outputs.next_wake(), self._next_check, self._leg_ends())
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        self._outputs.wake(now)
        ends = self._leg_ends()
        if self._flight is not None and ends is not None and ends <= now:
            self._complete(self._flight, now)
            self._go_on(now)
        if self._next_check is not None and self._next_check <= now:
            self._look_at_flag(now)

    def _leg_ends(self) -> int | None:
        if self._course is None or self._stopped:
            return None
        return whole_ns(self._course.ends)

    # ── faults ──

    def faults(self) -> tuple[str, ...]:
        return ("emergency_stop", "emergency_release")

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        """The stop freezes the motion where it is; the release lets it go on from there."""
        if fault == "emergency_stop":
            self.freeze("Emergency stop", now)
        elif fault == "emergency_release" and self._stopped:
            self._stopped = False
            if self.collision is not None:
                self.collision.release()
            t, blend = seconds(now), self._manners.blend
            self._course = self._course and motion.resumed(self._course, t, blend)
            self._go_on(now)
        return None

    def freeze(self, why: str, now: int) -> None:
        """The motion freezes where it is, until the stop is released."""
        if self._stopped:
            return
        self._stopped = True
        self._outputs.weld(0, now)
        self._course = self._course and motion.halted(self._course, seconds(now))
        self._say(why)

    # ── snapshots ──

    def save(self) -> Saved:
        return Saved(
            standing=self._standing,
            waiting=list(self._waiting),
            in_flight=self._flight.record if self._flight else None,
            ahead=len(self._ahead),
            course=self._course.to_state() if self._course else None,
            completed=self._completed,
            flying=self._flying,
            taken=self._taken,
            flags=self._flags,
            next_check=self._next_check,
            stopped=self._stopped,
            outputs=self._outputs.save(),
            messages=list(self._messages),
            behind=self._behind,
        )

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, Saved)
        self._standing = saved.standing
        self._waiting = deque(saved.waiting)
        self._completed, self._flying, self._taken = saved.completed, saved.flying, saved.taken
        self._flags, self._next_check = saved.flags, saved.next_check
        self._stopped, self._behind = saved.stopped, saved.behind
        self._outputs.load(saved.outputs)
        self._messages = deque(saved.messages, maxlen=MESSAGES_KEPT)
        self._flight, self._course, self._sight_ends = None, None, False
        self._ahead.clear()
        if saved.in_flight is not None and saved.course is not None:
            self._plan_again(saved.in_flight, saved.ahead, saved.course)

    def _plan_again(self, record: Record, ahead: int, course: State) -> None:
        """The legs that were known, from the records they were made of."""
        known = [self._robot.carry_out(record, self._standing)]
        for waiting in list(self._waiting)[:ahead]:
            known.append(self._robot.carry_out(waiting, known[-1].after))
        legs = tuple(outcome.leg for outcome in known if outcome.leg is not None)
        if len(legs) != 1 + ahead:
            raise msgspec.ValidationError("records in motion that do not move")
        self._flight = Flight(record, known[0])
        self._ahead.extend(known[1:])
        self._course = motion.restored(legs, course, self._manners.blend)

    # ── one record after the other ──

    def _go_on(self, now: int) -> None:
        """Take up what waits, until a record takes time; then look ahead."""
        while self._waiting and self._flight is None and not self._stopped:
            self._take_up(now)
        self._look_ahead(now)
        if self._flight is None and not self._waiting:
            self._taken = 0

    def _take_up(self, now: int) -> None:
        self._taken = len(self._waiting)
        self._sight_ends = False
        record = self._waiting.popleft()
        self._flying = record.seq
        if self._ahead and self._course is not None:
            outcome = self._ahead.popleft()
            self._behind += len(self._course.legs[0].path)
            self._course = motion.advanced(self._course, seconds(now), self._manners.blend)
        else:
            outcome = self._robot.carry_out(record, self._standing)
            if outcome.leg is not None:
                self._course = motion.begin(outcome.leg, seconds(now), self._manners.blend)
        self._flight = Flight(record, outcome)
        if outcome.message:
            self._say(f"record {record.seq}: {outcome.message}")
        if outcome.job is not None:
            self._outputs.weld(outcome.job, now)
        if outcome.leg is None:
            self._complete(self._flight, now)

    def _complete(self, flight: Flight, now: int) -> None:
        self._completed = flight.record.seq
        retooled = self._standing.tool != flight.outcome.after.tool
        self._standing = flight.outcome.after
        self._flight = None
        if not self._ahead:
            self._end_course()
        if retooled:
            self._on_other_path(now)
        for listener in self._listeners:
            listener(now)

    def _end_course(self) -> None:
        self._behind += len(self._course.plan.path) if self._course else 0
        self._course = None

    def _on_other_path(self, now: int) -> None:
        """What was known ahead is not run any more, or with another tool."""
        if self.collision is not None:
            self.collision.cut(now)

    def _look_ahead(self, now: int) -> None:
        """Plan the next moves too, as long as they are moves of the tool."""
        while self._flight is not None and self._course is not None and self._sees_another():
            before = self._ahead[-1] if self._ahead else self._flight.outcome
            outcome = self._robot.carry_out(self._waiting[len(self._ahead)], before.after)
            self._sight_ends = outcome.leg is None or outcome.leg.pace == 0.0
            if outcome.leg is not None and not self._sight_ends:
                self._ahead.append(outcome)
                blend = self._manners.blend
                self._course = motion.extended(self._course, outcome.leg, seconds(now), blend)

    def _sees_another(self) -> bool:
        if self._course is None or self._stopped or self._sight_ends:
            return False
        passes = self._manners.blend > 0.0 and self._course.legs[-1].pace > 0.0
        return passes and len(self._ahead) < min(self._manners.advance_run, len(self._waiting))

    # ── when the client is gone ──

    def _look_at_flag(self, now: int) -> None:
        self._next_check = None
        if self._manners.on_disconnect == "clear":
            self._forget_waiting(now)
        if self._manners.on_disconnect == "drain" and self.busy():
            self._next_check = _next_look(now)
        elif self._outputs.welding:
            self._outputs.weld(0, now)
            self._say("connection lost while welding: arc off")

    def _forget_waiting(self, now: int) -> None:
        """What is in flight ends; nothing comes after it."""
        if not self._waiting:
            return
        self._say(f"connection lost: {len(self._waiting)} records cleared")
        self._waiting.clear()
        self._sight_ends = False
        if self._ahead and self._course is not None:
            self._ahead.clear()
            self._course = motion.shortened(self._course, seconds(now), self._manners.blend)
            self._on_other_path(now)
            if self._stopped:
                self._course = motion.halted(self._course, seconds(now))
        if self._flight is None:
            self._taken = 0

    def _say(self, message: str) -> None:
        self._messages.append(message)
        self._tell(f"{self._name}: {message}")


def _next_look(now: int) -> int:
    return (now // FLAG_PERIOD + 1) * FLAG_PERIOD
