"""PickPlaceManager: the cycle that scans, picks, places, retries and recovers.

Commands act at once. Reports of the arm, the gripper and vision are kept as notes and handled in
`wake` at the same instant, because the reporting part is busy. Each state is a list of steps; the
table says which state follows.
"""

from collections.abc import Callable, Mapping

from understudy.errors import Refused
from understudy.jobs.pick_place.choice import Chosen, Exhausted, TargetChoice, Unfit
from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.safety import PickPlaceSafety, PictureWatchdog
from understudy.jobs.pick_place.state import (
    BEFORE_PAUSE,
    CARRYING,
    RUNNING,
    TRANSITIONS,
    UNLIMITED,
    Event,
    Note,
    NoteKind,
    Saved,
    State,
    check_saved,
    statistics,
)
from understudy.jobs.pick_place.status import (
    ADVICE,
    ALARMS,
    GOOD_ENDS,
    HAND_FAULT,
    NO_PICTURE,
    NOTICES,
    PickPlaceError,
    PickPlaceStatus,
)
from understudy.jobs.pick_place.steps import (
    CycleScript,
    Equipment,
    Release,
    Rest,
    Step,
    Work,
    arm_code,
)
from understudy.ports import Ticket
from understudy.ports.io import PinChange
from understudy.ports.job_arm import ReachCheck
from understudy.ports.jobs import CycleReport
from understudy.ports.object_finder import FoundObjects
from understudy.units import NS_PER_MS

CycleListener = Callable[[int, bool, int], None]
"""Called with the number of the cycle, its success and the time."""
StateListener = Callable[[State, State, int], None]
"""Called with the old state, the new one and the time."""
IS_RUNNING = Refused("pick & place is running: stop it first")
NOT_RUNNING = Refused("pick & place is not running")
IN_ERROR = Refused("pick & place has a fault: reset it first (reset_pick_place)")
NOT_PAUSED = Refused("pick & place is not paused")
NO_ERROR = Refused("pick & place has no fault to reset")
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")
PART_IN_HAND = Refused("the hand has a part: release it first (release_part)")
NO_PART = Refused("the hand has no part of the last run")
NO_CYCLES = Refused("give at least one cycle, or -1 for a run without an end")
REFILL: Mapping[Exhausted, str] = {
    "PALLET_FULL": "put an empty pallet there, then give the command reset_pallet",
    "SOURCE_EMPTY": "put a full pallet there, then give the command reset_pallet with source: true",
}
"""What to do when a pallet ends a run."""
NOTHING_LEFT = ("NO_OBJECT", "PICK_OUT_OF_ZONE")
"""Scans after which a run that has placed parts has placed all: what is outside the zone stays."""
REFILL_SOURCE = "bring parts, then start"
RECOVERS: tuple[PickPlaceError, ...] = (NO_PICTURE, "FORCE_LIMIT")
"""Faults after which the arm retracts by itself."""
URGENT: tuple[NoteKind, ...] = ("lost", "arm_fault")
"""Notes that are handled also in a pause."""


class PickPlaceManager:
    """A component of the cell: the pick & place job of one arm."""

    def __init__(
        self,
        config: CycleConfig,
        safety: PickPlaceSafety,
        choice: TargetChoice,
        equipment: Equipment,
        reach: ReachCheck,
    ) -> None:
        self.config = config
        self.safety = safety
        self._choice = choice
        self._arm, self._hand = equipment.arm, equipment.hand
        self._script = CycleScript(config, safety, equipment, reach)
        self._work = Work(config, safety, equipment, self)
        self.watchdog = PictureWatchdog()
        self.watchdog.set_timeout_action(lambda now: self._fail(NO_PICTURE, self._no_answer(), now))
        self.state = Saved(work=self._work.state, watchdog=self.watchdog.state)
        self._on_cycle: list[CycleListener] = []
        self._on_state: list[StateListener] = []
        self.may_start: Callable[[int], Refused | None] = lambda now: None
        """Why the mode of operation does not allow the job; None if it does."""
        self._listen(equipment)

    def _listen(self, equipment: Equipment) -> None:
        arm, hand = equipment.arm, equipment.hand
        arm.on_finished(lambda ticket, refused, now: self._note("arm", now, ticket, refused))
        arm.on_fault(lambda refused, now: self._note("arm_fault", now, 0, refused))
        hand.on_finished(lambda ticket, refused, now: self._note("hand", now, ticket, refused))
        hand.on_lost(lambda now: self._note("lost", now))
        if equipment.finder is not None:
            equipment.finder.on_result(self._answered)
        if equipment.pins is not None:
            equipment.pins.on_change(self._pin_changed)

    # ── commands ──

    def run_single_cycle(self, now: int) -> Refused | None:
        return self.start(now, max_cycles=1)

    def run_continuous(self, now: int, max_cycles: int = UNLIMITED) -> Refused | None:
        return self.start(now, max_cycles=max_cycles)

    def play(self, now: int) -> Refused | None:
        return self.start(now)

    def start(self, now: int, *, max_cycles: int = UNLIMITED) -> Refused | None:
        """Runs cycle after cycle until it is stopped, or there is nothing left to do; with the part
        of the last run in the hand it goes on with that. ``max_cycles``: -1 means without an end.
        """
        if max_cycles < 1 and max_cycles != UNLIMITED:
            return NO_CYCLES
        if refused := self._not_startable(now):
            return refused
        part = self._part_in_hand(now)
        carried = part and self._choice.from_hand(part, now)
        if isinstance(carried, Unfit):
            return Refused(f"the part in the hand: {carried.reason}")
        state = self.state
        state.last_error, state.code, state.reason = "", "", ""
        state.left, state.placed = max_cycles, 0
        self._begin_cycle(now)
        if carried is None:
            self._go("start", now)
        else:
            state.target, state.went_on = carried, True
            self._set_holding(True, now)
            self._go("go_on", now)
        return None

    def finish(self, now: int) -> Refused | None:
        """Ends the run after the present cycle."""
        if not self.is_running():
            return NOT_RUNNING
        self.state.left = 0
        return None

    def put_back(self, now: int) -> Refused | None:
        """Puts the part of the last run, which the hand has, back where it was picked."""
        if refused := self._not_ready(now):
            return refused
        part = self._part_in_hand(now)
        if part is None:
            return NO_PART
        carried = self._choice.from_hand(part, now, back=True)
        if isinstance(carried, Unfit):
            return Refused(f"the part in the hand: {carried.reason}")
        self.state.puts_back = True
        self._work.begin(self._script.put_back(carried), now)
        return None

    def stop(self, now: int) -> Refused | None:
        """Brakes the arm and ends the run; the hand keeps what it has."""
        state = self.state
        if not self.is_running():
            idle = not self._work.under_way
            self._work.abandon(now)
            state.puts_back = False
            return NOT_RUNNING if idle else None
        state.last_error, state.ended_in = f"stopped in {self._at}", self._at
        state.reason = "STOPPED"
        self._abandon(now)
        self._go("stop", now)
        self._end_cycle(False, now)
        return None

    def pause(self, now: int) -> Refused | None:
        """Feed hold; `resume` goes on from there."""
        state = self.state
        if state.state not in RUNNING:
            return NOT_RUNNING
        if refused := self._arm.hold(now):
            return refused
        state.before, state.paused_at = state.state, now
        self._change("PAUSED", now)
        return None

    def resume(self, now: int) -> Refused | None:
        state = self.state
        if state.state != "PAUSED":
            return NOT_PAUSED
        if refused := self._arm.resume(now):
            return refused
        self._work.delay(now - state.paused_at)
        self.watchdog.delay(now - state.paused_at)
        self._change(state.before, now)
        state.due = now
        return None

    def reset(self, now: int) -> Refused | None:
        """Clears the fault, or the alarm of a run that has ended; refused while the arm cannot move
        or still retracts."""
        if self.state.state != "ERROR":
            if self.is_running() or self.state.reason not in ALARMS:
                return NO_ERROR
            self.state.reason, self.state.last_error = "", ""
            return None
        if refused := self._arm.unready(now):
            return refused
        if self._work.under_way:
            return AT_REST_ONLY
        self.state.last_error, self.state.code, self.state.target = "", "", None
        self._go("reset", now)
        return None

    def emergency_retract(self, now: int) -> Refused | None:
        """Moves the tool straight up to the safe height; the hand keeps what it has."""
        if self.is_running() or self._work.under_way:
            return IS_RUNNING
        if refused := self._arm.unready(now):
            return refused
        if not self._arm.at_rest(now):
            return AT_REST_ONLY
        self._work.begin(self._script.up(self.state.target, now), now)
        return None

    def release_part(self, now: int) -> Refused | None:
        """Opens the hand on an operator's command, where the arm is."""
        if self.is_running() or self._work.under_way:
            return IS_RUNNING
        self._work.begin([Release()], now)
        return None

    def is_running(self) -> bool:
        return self.state.state in (*RUNNING, "PAUSED")

    def occupied(self, now: int) -> Refused | None:
        """Why other commands may not move the arm now."""
        return IS_RUNNING if self.is_running() or self._work.under_way else None

    def on_cycle(self, listener: CycleListener) -> None:
        self._on_cycle.append(listener)

    def on_state(self, listener: StateListener) -> None:
        self._on_state.append(listener)

    # ── component ──

    def next_wake(self) -> int | None:
        state = self.state
        times = [state.due, state.monitor]
        if state.state != "PAUSED":
            times += [self._work.state.deadline, self.watchdog.expires]
        return min((time for time in times if time is not None), default=None)

    def wake(self, now: int) -> None:
        self._handle_notes(now)
        state = self.state
        if state.monitor is not None and now >= state.monitor:
            self._monitor(now)
        if state.state == "PAUSED":
            return
        self.watchdog.wake(now)
        deadline = self._work.state.deadline
        if deadline is not None and now >= deadline:
            self._work.deadline_come(now)

    def busy(self) -> bool:
        return self.is_running() or self._work.under_way or self.state.due is not None

    def report(self, now: int) -> CycleReport:
        status = self.status(now)
        done, failed, mean_s = status.success_count, status.fail_count, status.statistics.mean_s
        if status.running:
            problem = f"{status.state} when the time was over"
        elif status.state == "ERROR" or status.reason not in GOOD_ENDS:
            problem = status.last_error or status.code
        else:
            problem = "" if done else f"no part was placed; {status.last_error}"
        return CycleReport(done, failed, mean_s, problem)

    def status(self, now: int) -> PickPlaceStatus:
        state, at = self.state, self._at
        paused, target = state.state == "PAUSED", state.target
        holding = state.holding if self.is_running() else self._hand.status(now).part_detected
        end = "" if self.is_running() else state.code or state.reason
        return PickPlaceStatus(
            state.state,
            state.cycles,
            state.successes,
            state.failures,
            target.seen if target else None,
            state.last_error,
            state.code,
            state.reason,
            self.is_running(),
            state.left,
            holding,
            not self.is_running() and self._part_in_hand(now) is not None,
            state.scan_misses,
            state.grip_misses,
            RUNNING.index(at) / len(RUNNING) if at in RUNNING else 0.0,
            state.before if paused else "",
            ALARMS.get(end, ""),
            ADVICE.get(end, ""),
            "reset_pick_place" if end in ALARMS else "",
            NOTICES.get(end, ""),
            statistics(state),
        )

    def restored(self) -> None:
        check_saved(self.state)
        self._work.state = self.state.work
        self.watchdog.state = self.state.watchdog

    # ── start and end of a cycle ──

    @property
    def _at(self) -> State:
        """The state of the cycle, also in a pause."""
        state = self.state
        return state.before if state.state == "PAUSED" else state.state

    def _not_ready(self, now: int) -> Refused | None:
        if self.state.state == "ERROR":
            return IN_ERROR
        if self.is_running() or self._work.under_way:
            return IS_RUNNING
        if refused := self.may_start(now) or self._arm.unready(now):
            return refused
        return None if self._arm.at_rest(now) else AT_REST_ONLY

    def _not_startable(self, now: int) -> Refused | None:
        if refused := self._not_ready(now):
            return refused
        if self._part_in_hand(now) is not None:
            return None
        if self._hand.status(now).part_detected:
            return PART_IN_HAND
        if spent := self._choice.exhausted():
            return Refused(f"{spent}: {REFILL[spent]}")
        return None

    def _part_in_hand(self, now: int) -> Chosen | None:
        """The part of the last run, if the hand still has it."""
        sensed = self._hand.status(now).part_detected or not self.safety.require_part_sensor
        return self.state.target if self.state.holding and sensed else None

    def _begin_cycle(self, now: int) -> None:
        state = self.state
        state.cycles += 1
        state.left -= 1 if state.left > 0 else 0
        state.started, state.target, state.miss, state.went_on = now, None, "", False
        state.scan_misses = state.grip_misses = 0
        self._set_holding(False, now)

    def _end_cycle(self, success: bool, now: int) -> None:
        state = self.state
        state.successes += success
        state.failures += not success
        if success and state.target is not None:
            state.placed += 1
            state.times.add(now - state.started, whole=not state.went_on)
            kind = state.target.class_name
            state.by_class = {**state.by_class, kind: state.by_class.get(kind, 0) + 1}
        for listener in self._on_cycle:
            listener(state.cycles, success, now)

    # ── states ──

    def _go(self, event: Event, now: int) -> None:
        """Changes the state by the table and begins the steps of the new one."""
        new = TRANSITIONS[self.state.state, event]
        assert new != BEFORE_PAUSE
        self.watchdog.stop()
        self._change(new, now)
        if new == "SCANNING" and self.config.looks:
            self.watchdog.start(self.safety.picture_timeout, now)
        if new in RUNNING:
            target, state = self.state.target, self.state
            steps: list[Step] | Unfit
            if event == "go_on" and target is not None:
                steps = self._script.go_on(target, state.ended_in)
            else:
                steps = self._script.steps(new, target, state.holding, now)
            if isinstance(steps, Unfit):
                self._fail(steps.code, steps.reason, now)
            else:
                self._work.begin(steps, now)

    def _change(self, new: State, now: int) -> None:
        old, self.state.state = self.state.state, new
        for listener in self._on_state:
            listener(old, new, now)

    def steps_done(self, now: int) -> None:
        state = self.state
        if state.state in RUNNING:
            _DONE[state.state](self, now)
        elif state.puts_back:
            state.puts_back = False
            source, part = self._choice.source, state.target
            if source is not None and part is not None:
                source.skip_to_position(part.source_cell)
            state.target, state.last_error, state.reason = None, "", ""

    def step_failed(self, code: PickPlaceError, reason: str, now: int) -> None:
        """A fault of the cycle, or the end of a retract or release on command."""
        if self.is_running():
            self._fail(code, reason, now)
            return
        self._abandon(now)
        self.state.puts_back = False
        before = f"{self.state.last_error}; " if self.state.last_error else ""
        self.state.last_error = f"{before}{code}: {reason}"

    def _fail(self, code: PickPlaceError, text: str, now: int) -> None:
        """Stops the cycle; the hand keeps what it has."""
        state = self.state
        state.ended_in = self._at
        braking = self._abandon(now)
        state.code, state.last_error = code, f"{code}: {text}; {ADVICE[code]}"
        state.reason = ""
        self._go("fault", now)
        self._end_cycle(False, now)
        if code in RECOVERS:
            rest: list[Step] = [Rest()] if braking else []
            away = self._script.up(state.target, now)
            if code == NO_PICTURE:
                away += self._script.fallback()
            self._work.begin([*rest, *away], now, ticket=braking)

    def _abandon(self, now: int) -> int:
        state = self.state
        state.monitor, state.notes = None, []
        self.watchdog.stop()
        return self._work.abandon(now)

    # ── the end of each state ──

    def _scanned(self, now: int) -> None:
        """A source with known positions: there is nothing to look for."""
        chosen = self._choice.from_source(now)
        if isinstance(chosen, Unfit):
            self._fail(chosen.code, chosen.reason, now)
            return
        self.state.target = chosen
        self._go("found", now)

    def _retracted(self, now: int) -> None:
        state = self.state
        if state.holding:
            if state.target is not None and self._choice.source is not None:
                self._choice.source.skip_to_position(state.target.source_cell + 1)
            self._carried(now)
        elif state.grip_misses >= self.config.max_grip_retries:
            self._fail("GRIP_FAILED", f"{state.grip_misses} grips failed: {state.miss}", now)
        else:
            self._go("rescan", now)

    def _carried(self, now: int) -> None:
        if lost := self.safety.check_part_presence(self._hand.status(now)):
            self._fail("PART_LOST", lost.reason, now)
        else:
            self._go("done", now)

    def _released(self, now: int) -> None:
        pallet, target = self._choice.pallet, self.state.target
        if pallet is not None and target is not None and target.cell >= 0:
            pallet.skip_to_position(target.cell + 1)
        self._go("done", now)

    def _finished(self, now: int) -> None:
        state = self.state
        self._end_cycle(True, now)
        spent = self._choice.exhausted()
        if spent or state.left == 0:
            state.reason = spent or "DONE"
            self._go("done", now)
        else:
            self._begin_cycle(now)
            self._go("next_cycle", now)

    # ── gripper ──

    def grip_ended(self, refused: str | None, now: int) -> None:
        """The hand has closed: goes on with the next step, or retracts without a part. What counts
        is the part sensor, if the job needs it."""
        state, status = self.state, self._hand.status(now)
        sensor = self.safety.require_part_sensor
        if status.part_detected or (not sensor and status.state != "ERROR"):
            self._set_holding(True, now)
            self._work.step_done(now)
            return
        state.miss = refused or "no part detected after the grip"
        state.grip_misses += 1
        self._go("missed", now)

    def release_ended(self, refused: str | None, now: int) -> None:
        still = self.safety.require_part_sensor and self._hand.status(now).part_detected
        if refused is None and not still:
            self._set_holding(False, now)
            self._work.step_done(now)
        else:
            code: PickPlaceError = "PART_NOT_RELEASED" if self.state.holding else HAND_FAULT
            self.step_failed(code, refused or "the part sensor is still on", now)

    def _set_holding(self, holding: bool, now: int) -> None:
        self.state.holding = holding
        self.state.monitor = now + self.safety.monitor_interval if holding else None

    def _monitor(self, now: int) -> None:
        """Checks force and presence of a held part; the next check follows."""
        self.state.monitor = None
        if not self.state.holding or self._at not in (*CARRYING, "GRIPPING"):
            return
        status = self._hand.status(now)
        if pressed := self.safety.monitor_grip_force(status):
            self._fail("FORCE_LIMIT", pressed.reason, now)
        elif lost := self.safety.check_part_presence(status):
            self._lost(lost.reason, now)
        else:
            self.state.monitor = now + self.safety.monitor_interval

    def _lost(self, reason: str, now: int) -> None:
        self._set_holding(False, now)
        self._fail("PART_LOST", reason, now)

    # ── notes ──

    def _note(
        self, kind: NoteKind, now: int, ticket: int = 0, refused: Refused | None = None
    ) -> None:
        reason = None if refused is None else refused.reason
        self._add(Note(kind, ticket, reason), now)

    def _answered(self, ticket: Ticket, result: FoundObjects | Refused, now: int) -> None:
        if isinstance(result, Refused):
            self._note("finder", now, ticket, result)
        else:
            self._add(Note("finder", ticket, None, result), now)

    def _add(self, note: Note, now: int) -> None:
        self.state.notes = [*self.state.notes, note]
        self.state.due = now

    def _pin_changed(self, change: PinChange) -> None:
        if self._work.awaits_input() and change.bank == "DI":
            self.state.due = change.at

    def _handle_notes(self, now: int) -> None:
        state = self.state
        if state.due is None or now < state.due:
            return
        state.due = None
        notes, state.notes = state.notes, []
        kept: list[Note] = []
        for note in notes:
            if state.state == "PAUSED" and note.kind not in URGENT:
                kept.append(note)
            else:
                _HANDLE[note.kind](self, note, now)
        if state.state == "PAUSED":
            state.notes = [*kept, *state.notes]
        else:
            self._work.look_at_inputs(now)

    def _finder_note(self, note: Note, now: int) -> None:
        state = self.state
        if not self._work.awaits_picture(note.ticket):
            return
        if note.result is None:
            self._work.look_later(note.refused or "", now)
            return
        self.watchdog.feed(now)
        chosen = self._choice.from_picture(note.result, now)
        if isinstance(chosen, Unfit):
            self._not_found(chosen, now)
            return
        state.target = chosen
        self._go("found", now)

    def _not_found(self, unfit: Unfit, now: int) -> None:
        state = self.state
        if unfit.code:
            self._fail(unfit.code, unfit.reason, now)
            return
        state.miss = unfit.reason
        state.scan_misses += 1
        if state.scan_misses < self.config.max_scan_retries:
            self._go("not_found", now)
            return
        if state.placed and unfit.miss in NOTHING_LEFT:
            self._emptied(now)
            return
        state.reason = unfit.miss
        missed = f"{state.scan_misses} scans without a part: {state.miss}"
        state.last_error = f"{unfit.miss}: {missed}; {ADVICE[unfit.miss]}"
        self._abandon(now)
        self._go("scans_used_up", now)
        self._end_cycle(False, now)

    def _emptied(self, now: int) -> None:
        """All parts are placed: the cycle that would have followed is none."""
        state = self.state
        state.cycles -= 1
        state.reason = "SOURCE_EMPTY"
        parts = f"{state.placed} part{'s' * (state.placed > 1)} placed, no more seen"
        state.last_error = f"SOURCE_EMPTY: {parts}; {REFILL_SOURCE}"
        self._abandon(now)
        self._go("scans_used_up", now)

    def _lost_note(self, note: Note, now: int) -> None:
        if not self.state.holding or not self.safety.require_part_sensor:
            return
        if self._at in (*CARRYING, "GRIPPING"):
            self._lost("the part sensor went off between pick and place", now)
        else:
            self._set_holding(False, now)

    def _arm_fault_note(self, note: Note, now: int) -> None:
        reason = note.refused or "the arm cannot move"
        if self.is_running() or self._work.under_way:
            self.step_failed(arm_code(reason), reason, now)

    def _no_answer(self) -> str:
        problem = self._work.state.problem
        waited = f"no valid answer in {self.safety.picture_timeout / NS_PER_MS:g} ms"
        return f"{waited} ({problem})" if problem else waited


_DONE: Mapping[State, Callable[[PickPlaceManager, int], None]] = {
    "MOVE_TO_SCAN": lambda job, now: job._go("done", now),
    "SCANNING": PickPlaceManager._scanned,
    "MOVE_TO_PICK": lambda job, now: job._go("done", now),
    "APPROACH_PICK": lambda job, now: job._go("done", now),
    "GRIPPING": lambda job, now: job._go("done", now),
    "RETRACT_PICK": PickPlaceManager._retracted,
    "MOVE_TO_PLACE": PickPlaceManager._carried,
    "APPROACH_PLACE": PickPlaceManager._carried,
    "RELEASING": PickPlaceManager._released,
    "RETRACT_PLACE": PickPlaceManager._finished,
}
_HANDLE: Mapping[NoteKind, Callable[[PickPlaceManager, Note, int], None]] = {
    "arm": lambda job, note, now: job._work.arm_ended(note.ticket, note.refused, now),
    "hand": lambda job, note, now: job._work.hand_ended(note.ticket, note.refused, now),
    "finder": PickPlaceManager._finder_note,
    "lost": PickPlaceManager._lost_note,
    "arm_fault": PickPlaceManager._arm_fault_note,
}
