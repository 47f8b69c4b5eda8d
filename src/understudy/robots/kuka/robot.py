"""The simulated KUKA: a G-code server that takes records from its buffer and carries them out.

    submit ──▶ waiting (512) ──▶ in flight ──▶ completed
                  │  planned ahead, so that lines pass into each other

A record that takes no time, or is refused, is completed as soon as it is taken up. The states of
the server are in `TRANSITIONS`; docs/robots/kuka.md has the diagram.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.motion.path import Floats, empty_path
from understudy.motion.plan import Odometer, OdometerState, Plan, empty_law
from understudy.ports import Component, State, Tally
from understudy.ports.faults import EMERGENCY_STOP, Faults
from understudy.ports.hmi import PanelRow, Pins, RobotView
from understudy.ports.refusals import INHIBITED
from understudy.robots.kuka.frames import commands_in
from understudy.robots.kuka.motion import KukaModel, ModalState, Outcome, Trajectory
from understudy.robots.kuka.records import KukaReading, Progress, Record, WireInt
from understudy.simulation.collision.contact import Contact
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.transform import matrix, pose
from understudy.units import NS_PER_MS, seconds, whole_ns

# ── welding outputs ───────────────────────────────────────────────────────────────────────────────


ARC, GAS, FIRST_JOB_BIT, JOB_BITS = 1, 9, 65, 16
"""Numbers of the welding outputs: arc $OUT[1], gas $OUT[9], the job on $OUT[65..80], LSB first."""


class OutputState(Struct, frozen=True):
    """The welding outputs. `gas_until`: end of the post-flow, if the gas flows after an arc."""

    job: int = 0
    gas: bool = False
    gas_until: int | None = None


class WeldingOutputs:
    """Arc, gas and job outputs: the arc burns while there is a job, the gas flows until the end of
    the post-flow."""

    def __init__(self, post_flow: int) -> None:
        self._post_flow = post_flow
        self.state = OutputState()

    @property
    def job(self) -> int:
        return self.state.job

    def weld(self, job: int, now: int) -> None:
        """Job 0 turns the arc off; another job number turns it on, or changes the job."""
        if job == self.state.job:
            return
        self.state = OutputState(job, gas=True, gas_until=None if job else now + self._post_flow)
        self.wake(now)

    def next_wake(self) -> int | None:
        return self.state.gas_until

    def wake(self, now: int) -> None:
        if self.state.gas_until is not None and self.state.gas_until <= now:
            self.state = OutputState(self.state.job)

    def high(self) -> tuple[int, ...]:
        """Numbers of the outputs that are on."""
        job = self.state.job
        bits = (FIRST_JOB_BIT + bit for bit in range(JOB_BITS) if job >> bit & 1)
        return (*((ARC,) if job else ()), *((GAS,) if self.state.gas else ()), *bits)

    def switch_off(self) -> None:
        """Switches all outputs off at once, without post-flow."""
        self.state = OutputState()


# ── the server ────────────────────────────────────────────────────────────────────────────────────


Mode = Literal["Idle", "Run", "Stopped"]

TRANSITIONS: Mapping[tuple[Mode, str], Mode] = {
    ("Idle", "submit"): "Run",
    ("Run", "drained"): "Idle",
    ("Idle", "freeze"): "Stopped",
    ("Run", "freeze"): "Stopped",
    ("Stopped", "release"): "Run",
}
"""An event without a row changes nothing. `drained`: no record is in flight or waits.
`release`: the stop is released; `Run` ends at once if no record was kept."""

BUFFER = 512
MAIN = 0
"""The channel of the records."""
CHECK_PERIOD = 500 * NS_PER_MS
MESSAGES_KEPT = 16
NO_PATH, NO_MOTION = empty_path(6), empty_law(0.0)
OUTPUTS_SHOWN = 32
"""Outputs below this number, arc and gas among them, are shown as the bits of a number."""


# ── server ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of the server. `blend`: share of the speed kept at corners."""

    blend: float
    advance_run: int
    on_emergency_stop: Literal["clear", "keep"]
    on_disconnect: Literal["clear", "drain"]
    post_flow: int


class Flight(NamedTuple):
    """The record in flight, and its outcome."""

    record: Record
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Status:
    """Status of the robot. `outputs`: numbers of the outputs that are on."""

    reading: KukaReading
    waiting: int
    stopped: bool
    outputs: tuple[int, ...]
    weld_job: int
    speed_set: float
    messages: tuple[str, ...]


class ServerState(Struct, kw_only=True):
    """The state of the server; motion, outputs and odometer are filled in for a snapshot. `ahead`:
    number of waiting records that are planned already; `pieces_done`: number of path pieces before
    those of the trajectory; `stop_reason`: why the motion is frozen; `inhibited`: the cell is
    stopped."""

    modal: ModalState
    waiting: list[Record] = []
    in_flight: Record | None = None
    ahead: int = 0
    trajectory: dict[str, Any] | None = None
    completed: WireInt = -1
    flying: WireInt = -1
    taken: WireInt = 0
    flags: WireInt = 0
    next_check: int | None = None
    stopped: bool = False
    stop_reason: str = ""
    inhibited: bool = False
    outputs: OutputState = OutputState()
    messages: list[str] = []
    pieces_done: int = 0
    stops: int = 0
    executed: int = 0
    odometer: OdometerState = OdometerState()


class KukaGcodeServer:
    """Carries out records one after the other; `Component`, `Injectable`, and the `Mover` of its
    collision watch."""

    def __init__(
        self, name: str, model: KukaModel, options: ServerOptions, log: Callable[[str], None]
    ) -> None:
        self._name = name
        self.model = model
        self._options = options
        self._log = log
        self._listeners: list[Callable[[int], None]] = []
        self._command_listeners: list[Callable[[str, int], None]] = []
        self._program_listeners: list[Callable[[Record, str, int], None]] = []
        self._mode: Mode = "Idle"
        self._state = ServerState(modal=model.start)
        self._flight: Flight | None = None
        self._ahead: deque[Outcome] = deque()
        self._lookahead_ends = False
        """The next waiting record cannot be joined to the trajectory."""
        self._trajectory: Trajectory | None = None
        self._outputs = WeldingOutputs(options.post_flow)
        self._message_listeners: list[Callable[[str, int], None]] = []
        self._odometer = Odometer(self._tip_positions)
        self.parts: dict[str, Component] = {}
        self.collision: CollisionWatch | None = None

    # ── records ──

    def room(self) -> int:
        """Number of records that fit into the buffer now."""
        return BUFFER - len(self._state.waiting)

    def submit(self, record: Record, now: int) -> None:
        self._mark(now)
        self._state.waiting.append(record)
        self._enter("submit")
        self._advance(now)

    def connect(self, channel: int, up: bool, now: int) -> None:
        """A channel was connected, or closed."""
        bit = 1 << channel
        self._state.flags = self._state.flags | bit if up else self._state.flags & ~bit
        if channel == MAIN:
            self._state.next_check = None if up else _next_check(now)

    def on_executed(self, listener: Callable[[int], None]) -> None:
        """Calls ``listener`` with the time at which each record was completed."""
        self._listeners.append(listener)

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each command, from a client, an operator or a program."""
        self._command_listeners.append(listener)

    def on_program_record(self, listener: Callable[[Record, str, int], None]) -> None:
        """Calls ``listener`` with each completed record of a program, and why it was refused."""
        self._program_listeners.append(listener)

    def stop(self, now: int) -> None:
        """Stops the motion at once and drops all records that are not completed."""
        self._mark(now)
        self._state.stops += 1
        self._state.waiting.clear()
        self._ahead.clear()
        self._state.taken = 0
        if self._trajectory is not None and self._flight is not None:
            here = self._trajectory.at(seconds(now), self.model.chain)
            axes = tuple(here.axes.tolist())
            self._state.modal = replace(self._state.modal, axes=axes, position=here.pose)
        self._flight = None
        self._enter("drained")
        self._end_trajectory()
        self._path_changed(now)
        self._outputs.weld(0, now)

    # ── supervised ──

    def inhibit_motion(self, now: int) -> None:
        """Stops and drops all records; until `permit_motion` records that move are refused."""
        self.stop(now)
        self._state.inhibited = True

    def permit_motion(self, now: int) -> None:
        self._state.inhibited = False

    def reset(self, now: int) -> None:
        """Releases the stop and switches the outputs off."""
        self.inject("emergency_release", {}, now)
        self._outputs.switch_off()

    def fault(self, now: int) -> Refused | None:
        return self._stop_refusal()

    def motion_refusal(self) -> Refused | None:
        """Why no motion is accepted now; None if it is."""
        return INHIBITED if self._state.inhibited else self._stop_refusal()

    def _stop_refusal(self) -> Refused | None:
        return Refused(f"{self._state.stop_reason}: reset first") if self.stopped() else None

    # ── collision watch ──

    def guard(self, watch: CollisionWatch) -> None:
        """Sets the collision watch of the robot, while the cell is built."""
        self.collision = self.parts["collision"] = watch

    @property
    def plan(self) -> Plan:
        """The running motion, or a plan without motion."""
        if self._trajectory is not None:
            return self._trajectory.plan
        return Plan(NO_PATH, NO_MOTION, np.array(self._state.modal.axes))

    @property
    def first(self) -> int:
        """The number of the plan's first piece, counted from the start of the cell."""
        return self._state.pieces_done

    @property
    def held(self) -> bool:
        """The motion is frozen; after the release it continues along the same path."""
        return self.stopped() and self._trajectory is not None

    @property
    def modal(self) -> ModalState:
        """Position, frames and speed after the last completed record."""
        return self._state.modal

    @property
    def tool(self) -> int:
        return self._state.modal.tool

    def collided(self, contact: Contact, now: int) -> None:
        self.freeze(contact.text(), now)

    # ── readings ──

    def tally(self, now: int) -> Tally:
        """Records that were carried out, contacts, and the path of the tool."""
        contacts = self.collision.detected if self.collision else 0
        return Tally(self._state.executed, contacts, self._odometer.at(now, self.plan.ends))

    def stopped(self) -> bool:
        """Whether an emergency stop or a contact froze the motion and was not released yet."""
        return self._mode == "Stopped"

    @property
    def records_ahead(self) -> int:
        """Number of records that lines need to pass into each other: in flight, and planned."""
        return self._options.advance_run + 2

    def stops(self) -> int:
        """Number of stops and emergency stops so far."""
        return self._state.stops

    def line(self) -> int:
        """The program line of the record in flight; 0 if none is, or a client has sent it."""
        return max(self._flight.record.line, 0) if self._flight else 0

    def progress(self) -> Progress:
        return Progress(self._state.completed, self._state.flying, self._state.taken, self.busy())

    def reading(self, now: int) -> KukaReading:
        modal = self._state.modal
        if self._trajectory is None:
            axes, at, speed = modal.axes, pose(matrix(modal.position)), 0.0
        else:
            sample = self._trajectory.at(seconds(now), self.model.chain)
            axes, at, speed = tuple(sample.axes.tolist()), sample.pose, sample.speed
        return KukaReading(
            at, axes, speed, modal.tool, modal.base, self._state.flags, self.progress()
        )

    def busy(self) -> bool:
        return self._mode == "Run"

    def status(self, now: int) -> Status:
        return Status(
            reading=self.reading(now),
            waiting=len(self._state.waiting),
            stopped=self.stopped(),
            outputs=self._outputs.high(),
            weld_job=self._outputs.job,
            speed_set=self._state.modal.speed,
            messages=tuple(self._state.messages),
        )

    def on_message(self, listener: Callable[[str, int], None]) -> None:
        self._message_listeners.append(listener)

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        outputs, high = self._outputs, self._outputs.high()
        last = self._state.messages[-1] if self._state.messages else ""
        return (
            PanelRow("Arc", ARC in high),
            PanelRow("Gas", GAS in high),
            PanelRow("Weld job", outputs.job),
            PanelRow("Outputs on", ", ".join(f"$OUT[{number}]" for number in high) or "–"),
            PanelRow("Records waiting", len(self._state.waiting)),
            PanelRow("Last message", last or "–", state="warn" if last else ""),
        )

    def active_faults(self) -> tuple[str, ...]:
        """None of its own: a stop is the error of the robot."""
        return ()

    def view(self, now: int) -> RobotView:
        """The view for pages; the tool is seen from the foot, not from the active base."""
        trajectory, outputs = self._trajectory, self._outputs
        axes = self.plan.at(seconds(now)).position
        moving = trajectory is not None and not self.stopped()
        return RobotView(
            q=axes.tolist(),
            tcp=self.model.tip(axes, self._state.modal.tool),
            state=self._mode,
            moving=moving,
            tool=self._state.modal.tool,
            line=self.line() or (max(self._state.flying, 0) if self.busy() else 0),
            ghost=trajectory.plan.target.tolist() if trajectory and moving else None,
            arc=outputs.job != 0,
            io=Pins(do=sum(1 << number for number in outputs.high() if number < OUTPUTS_SHOWN)),
        )

    # ── time ──

    def next_wake(self) -> int | None:
        moments = (self._outputs.next_wake(), self._state.next_check, self._segment_ends())
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        self._mark(now)
        self._outputs.wake(now)
        ends = self._segment_ends()
        if self._flight is not None and ends is not None and ends <= now:
            self._complete(self._flight, now)
            self._advance(now)
        if self._state.next_check is not None and self._state.next_check <= now:
            self._handle_disconnect(now)

    def _segment_ends(self) -> int | None:
        if self._trajectory is None or self.stopped():
            return None
        return whole_ns(self._trajectory.ends)

    # ── faults ──

    def faults(self) -> Faults:
        return EMERGENCY_STOP

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        """The emergency stop freezes the motion; the release continues it from there if its records
        were kept."""
        if fault == "emergency_stop":
            self.freeze("emergency stop", now)
        elif fault == "emergency_release" and self.stopped():
            self._mark(now)
            self._enter("release")
            if self.collision is not None:
                self.collision.release()
            self._trajectory = self._trajectory and self._trajectory.resumed(seconds(now))
            self._advance(now)
        return None

    def freeze(self, reason: str, now: int) -> None:
        """Freezes the motion at its present place, until the stop is released; drops all records
        unless the configuration keeps them."""
        if self.stopped():
            return
        self._mark(now)
        self._state.stop_reason = reason
        if self._options.on_emergency_stop == "clear":
            self.stop(now)
        self._enter("freeze")
        self._state.stops += 1
        self._outputs.weld(0, now)
        self._trajectory = self._trajectory and self._trajectory.halted(seconds(now))
        self._report(reason, now)

    # ── snapshots ──

    def save(self) -> ServerState:
        return replace(
            self._state,
            in_flight=self._flight.record if self._flight else None,
            ahead=len(self._ahead),
            trajectory=self._trajectory.to_state() if self._trajectory else None,
            stopped=self.stopped(),
            outputs=self._outputs.state,
            odometer=self._odometer.state,
        )

    def load(self, state: State) -> None:
        self._state = saved = msgspec.convert(state, ServerState)
        self._outputs.state, self._odometer.state = saved.outputs, saved.odometer
        self._flight, self._trajectory, self._lookahead_ends = None, None, False
        self._ahead.clear()
        if saved.in_flight is not None and saved.trajectory is not None:
            self._plan_again(saved.in_flight, saved.ahead, saved.trajectory)
        runs = self._flight is not None or bool(saved.waiting)
        self._mode = "Stopped" if saved.stopped else "Run" if runs else "Idle"

    def _plan_again(self, record: Record, ahead: int, trajectory: State) -> None:
        """Computes the known segments again, from the records they were made of."""
        known = [self.model.carry_out(record, self._state.modal)]
        for waiting in list(self._state.waiting)[:ahead]:
            known.append(self.model.carry_out(waiting, known[-1].after))
        segments = tuple(outcome.segment for outcome in known if outcome.segment is not None)
        if len(segments) != 1 + ahead:
            raise msgspec.ValidationError("the trajectory has records that do not move")
        self._flight = Flight(record, known[0])
        self._ahead.extend(known[1:])
        self._trajectory = Trajectory.from_state(segments, trajectory, self._options.blend)

    # ── odometer ──

    def _mark(self, now: int) -> None:
        """Makes the distance so far final: the plan is about to change."""
        self._odometer.mark(now, self.plan.ends)

    def _tip_positions(self, times: Floats) -> Floats:
        return self.model.tip_positions(self.plan.positions(times), self._state.modal.tool)

    # ── one record after the other ──

    def _enter(self, event: str) -> None:
        self._mode = TRANSITIONS.get((self._mode, event), self._mode)

    def _advance(self, now: int) -> None:
        """Takes up waiting records until one of them takes time; then plans ahead."""
        while self._state.waiting and self._flight is None and not self._waits():
            self._take_up(now)
        self._look_ahead(now)
        if self._flight is None and not self._state.waiting:
            self._state.taken = 0
            self._enter("drained")

    def _take_up(self, now: int) -> None:
        self._state.taken = len(self._state.waiting)
        self._lookahead_ends = False
        record = self._state.waiting.pop(0)
        for command in commands_in(record) if self._command_listeners else ():
            for listener in self._command_listeners:
                listener(command, now)
        self._state.flying = record.seq
        if self._ahead and self._trajectory is not None:
            outcome = self._ahead.popleft()
            self._state.pieces_done += len(self._trajectory.segments[0].path)
            self._trajectory = self._trajectory.advanced(seconds(now))
        else:
            outcome = self._refused(self.model.carry_out(record, self._state.modal))
            if outcome.segment is not None:
                segments, blend = (outcome.segment,), self._options.blend
                self._trajectory = Trajectory.from_rest(segments, seconds(now), blend)
        self._flight = Flight(record, outcome)
        if outcome.message:
            place = f"line {record.line}" if record.line > 0 else f"record {record.seq}"
            self._report(f"{place}: {outcome.message}", now)
        if outcome.job is not None:
            self._outputs.weld(outcome.job, now)
        if outcome.segment is None:
            self._complete(self._flight, now)

    def _waits(self) -> bool:
        """Whether the records wait for the release of an emergency stop."""
        return (
            self.stopped()
            and self._options.on_emergency_stop == "keep"
            and not self._state.inhibited
        )

    def _refused(self, outcome: Outcome) -> Outcome:
        """The outcome; while motion is not allowed that of a record that neither moves nor
        welds."""
        refused = self.motion_refusal()
        if refused is None or (outcome.segment is None and outcome.job is None):
            return outcome
        return Outcome(self._state.modal, message=refused.reason)

    def _complete(self, flight: Flight, now: int) -> None:
        self._state.completed = flight.record.seq
        self._state.executed += not flight.outcome.message
        tool_changed = self._state.modal.tool != flight.outcome.after.tool
        self._state.modal = flight.outcome.after
        self._flight = None
        if not self._state.waiting:
            self._enter("drained")
        if not self._ahead:
            self._end_trajectory()
        if tool_changed:
            self._path_changed(now)
        for listener in self._listeners:
            listener(now)
        for notify in self._program_listeners if flight.record.line else ():
            notify(flight.record, flight.outcome.message, now)

    def _end_trajectory(self) -> None:
        self._state.pieces_done += len(self._trajectory.plan.path) if self._trajectory else 0
        self._trajectory = None

    def _path_changed(self, now: int) -> None:
        """Discards the contacts found ahead: the path or the tool has changed."""
        if self.collision is not None:
            self.collision.cut(now)

    def _look_ahead(self, now: int) -> None:
        """Plans the next records too, as long as they move the tool along lines."""
        while self._flight is not None and self._trajectory is not None and self._can_look_ahead():
            before = self._ahead[-1] if self._ahead else self._flight.outcome
            outcome = self.model.carry_out(self._state.waiting[len(self._ahead)], before.after)
            segment = outcome.segment
            self._lookahead_ends = segment is None or segment.speed == 0.0
            if segment is not None and not self._lookahead_ends:
                self._ahead.append(outcome)
                self._trajectory = self._trajectory.extended(segment, seconds(now))

    def _can_look_ahead(self) -> bool:
        if self._trajectory is None or self.stopped() or self._lookahead_ends:
            return False
        passes = self._options.blend > 0.0 and self._trajectory.segments[-1].speed > 0.0
        return passes and len(self._ahead) < min(
            self._options.advance_run, len(self._state.waiting)
        )

    # ── disconnected client ──

    def _handle_disconnect(self, now: int) -> None:
        self._state.next_check = None
        if self._options.on_disconnect == "clear":
            self._clear_waiting(now)
        if self._options.on_disconnect == "drain" and self.busy():
            self._state.next_check = _next_check(now)
        elif self._outputs.job:
            self._outputs.weld(0, now)
            self._report("connection lost while welding: arc off", now)

    def _clear_waiting(self, now: int) -> None:
        """Drops the waiting records of the client; the record in flight is finished."""
        kept = [record for record in self._state.waiting if record.line]
        cleared = len(self._state.waiting) - len(kept)
        if not cleared:
            return
        self._report(f"connection lost: {cleared} records cleared", now)
        self._state.waiting = kept
        self._lookahead_ends = False
        if self._ahead and self._trajectory is not None:
            self._ahead.clear()
            self._trajectory = self._trajectory.shortened(seconds(now))
            self._path_changed(now)
            if self.stopped():
                self._trajectory = self._trajectory.halted(seconds(now))
        if self._flight is None:
            self._state.taken = 0
        self._advance(now)

    def _report(self, message: str, now: int) -> None:
        self._state.messages = [*self._state.messages, message][-MESSAGES_KEPT:]
        self._log(f"{self._name}: {message}")
        for listener in self._message_listeners:
            listener(message, now)


def _next_check(now: int) -> int:
    return (now // CHECK_PERIOD + 1) * CHECK_PERIOD
