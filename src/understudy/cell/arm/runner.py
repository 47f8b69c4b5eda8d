"""Carries lines out: moves go into the motion queue, everything else happens in its turn.

What a line asks for stands in `todo` until it is done. A move waits for room in the planner; a
dwell, a wait or a switch for the motion before it to end. `run` goes as far as it can now, and
`next_wake` says when it can go on.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from understudy.cell.arm import steps
from understudy.cell.arm.habits import Arc, Habits, Here, Mover
from understudy.cell.arm.pins import arc_is_met, input_is_met, throw
from understudy.cell.arm.queue import Queue
from understudy.cell.arm.refusals import PROBE_FAILED
from understudy.cell.io import Change, VirtualIO
from understudy.errors import Refused
from understudy.gcode import Problem, after_reset, interpret, parse
from understudy.gcode import requests as ask
from understudy.motion.path import Floats, pause
from understudy.units import DEG, nanoseconds

ARC_START, GAS = 0, 1
MOVES = (ask.JointMove, ask.JointArc, ask.LineMove, ask.ArcMove, ask.AxisMove, ask.AxisArc)


class Runner:
    """The program side of a controller; owns modal state and motion queue."""

    def __init__(
        self,
        habits: Habits,
        *,
        io: VirtualIO,
        queue: Queue,
        mount: Callable[[int], Mover | Refused],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.queue = queue
        self.state = steps.State(habits.modal)
        self._habits = habits
        self._io = io
        self._mount = mount
        self._failed = failed
        self._waiting: deque[steps.Entry] = deque()
        self._running = False
        self.arc: Arc | None = None
        self.mover = self._mounted(habits.modal.tool)
        io.on_change(self._pin_changed)

    # ── what comes in ──

    def submit(self, entry: steps.Entry, now: int) -> None:
        self._waiting.append(entry)
        if not self.state.todo:
            self.run(now)

    def hold(self, now: int) -> None:
        self.queue.hold(now)
        self.run(now)

    def cycle_start(self, now: int) -> None:
        self.state.paused = False
        self.queue.resume(now)
        self.run(now)

    def override(self, now: int, *, feed: float | None = None, rapid: float | None = None) -> None:
        self.queue.override(now, feed=feed, rapid=rapid)
        self.run(now)

    def stop(self, now: int) -> None:
        """Brake along the path; what waits is forgotten, arc and gas go off."""
        self._forget()
        self.queue.stop(now)
        self._process_off(now)
        self.run(now)

    def halt(self, now: int) -> None:
        """No motion from this instant on; what waits is forgotten, arc and gas go off."""
        self._forget()
        self.queue.halt(now)
        self._process_off(now)
        self.run(now)

    def fail(self, refused: Refused, now: int) -> None:
        """Something from outside ends the program: brake, and keep the reason."""
        self._fail(refused)
        self.stop(now)

    def reset(self) -> None:
        """What outlives no reset is as at the start."""
        modal = after_reset(self.state.modal)
        self.state.modal = structs.replace(modal, path=self._habits.modal.path)
        self.state.exact, self.state.error = False, None

    def go_on_from(self, position: Floats, now: int) -> None:
        """Something else has moved the joints."""
        self.queue.stand_at(position, now)
        self.state.axes = None
        self.run(now)

    # ── what can be read ──

    @property
    def error(self) -> Refused | None:
        return Refused(*self.state.error) if self.state.error else None

    @property
    def homed(self) -> bool:
        return len(self.state.homed) == len(self._habits.home)

    def idle(self, now: int) -> bool:
        """Nothing is under way, nothing waits."""
        return not (self.state.todo or self._waiting) and self.queue.at_rest(now)

    def under_way(self) -> bool:
        """A program is being carried out, even if it waits for something else just now."""
        return bool(self.state.todo or self._waiting or self.state.wake) and not self.state.paused

    def next_wake(self) -> int | None:
        return self.state.wake

    # ── going on ──

    def run(self, now: int) -> None:
        """Throw the switches that are due, and carry out what can be carried out."""
        if self._running:
            return  # an output that was just set has moved an input: seen in its turn
        self._running = True
        self._throw_tagged(now)
        while self._go_on(now):
            pass
        self._running = False
        self.state.wake = self._when(now)

    def _go_on(self, now: int) -> bool:
        state = self.state
        if state.todo:
            done = self._carry_out(state.todo[0], now)
            if done and state.todo:
                del state.todo[0]
            return done
        if state.current is not None:
            state.executed += isinstance(state.current, steps.Line) and bool(
                state.current.text.strip()
            )
            state.current = None
        if not self._waiting:
            self._throw_left_over(now)
            return False
        self._begin(self._waiting.popleft())
        return True

    def _begin(self, entry: steps.Entry) -> None:
        state = self.state
        state.current = entry
        if isinstance(entry, steps.Homing):
            for group in entry.groups:
                state.todo += (steps.HomingMove(group), steps.Rest(), steps.Homed(group))
            return
        block = parse(entry.text, self._habits.dialect, line=entry.number)
        if isinstance(block, Problem):
            self._fail(block.refused())
            return
        here = Here(self.mover, self.queue.end, state.axes)
        step = interpret(block, state.modal, dialect=self._habits.dialect, position=here)
        if isinstance(step, Refused):
            self._fail(step)
            return
        state.modal = step.modal
        if step.axes or step.pose:
            state.axes = step.axes
        state.todo += step.requests

    def _carry_out(self, step: steps.Step, now: int) -> bool:
        """True when it is done, false when it must wait."""
        dialect = self._habits.dialect
        if isinstance(step, MOVES):
            return self._move(step, now)
        if isinstance(step, ask.SetOutput | ask.SetAnalog):
            return self._switch(step, now)
        if isinstance(step, ask.PathMode):
            self.state.exact = dialect.name == "seed" and step.name != "G64"
            return True
        if isinstance(step, ask.GoHome):
            counts = dialect.name == "seed" and step.name == "G28"
            homed = tuple(range(len(self._habits.home))) if counts else ()
            return self._next(step.move, steps.Rest(), steps.Homed(homed))
        if isinstance(step, ask.Probe):
            return self._next(step.move, steps.Rest(), steps.Probed(step.required))
        if type(step) not in _AT_REST:
            return True  # the modal state holds all there is to it
        return self.queue.at_rest(now) and _AT_REST[type(step)](self, step, now)

    def _move(self, move: ask.Move, now: int, share: float | None = None) -> bool:
        state = self.state
        if self.queue.full(now):
            return False
        path = self.mover.path(move, self.queue.end, line=self._number, exact=state.exact)
        if isinstance(path, Refused):
            self._fail(path)
            return True
        if share is not None:
            rapid = np.zeros(len(path), dtype=np.bool_)
            path = replace(path, feed=path.fastest * share, rapid=rapid)
        if len(path):
            state.tagged += [steps.Tagged(self._number, switch) for switch in state.with_next]
            state.with_next = []
        deviation = self._habits.deviation
        self.queue.append(path, now, deviation=deviation, exact=state.exact)
        self._throw_tagged(now)
        return True

    # ── in step with motion ──

    def _switch(self, switch: steps.Switch, now: int) -> bool:
        if switch.with_motion:
            self.state.with_next.append(switch)
        else:
            self._throw(switch, now)
        return True

    def _throw(self, switch: steps.Switch, now: int, *, of_line: int = 0) -> None:
        if refused := throw(switch, self._io, now):
            place = f"line {of_line}: " if of_line else ""
            self._fail(Refused(place + refused.reason, refused.code))

    def _throw_tagged(self, now: int) -> None:
        if not self.state.tagged:
            return
        begun = self.queue.begun({tag.line for tag in self.state.tagged}, now)
        due = [tag for tag in self.state.tagged if tag.line in begun]
        self.state.tagged = [tag for tag in self.state.tagged if tag.line not in begun]
        for tag in due:
            self._throw(tag.switch, now, of_line=tag.line)

    def _throw_left_over(self, now: int) -> None:
        """No motion follows: the queue running empty is the moment."""
        if self.state.with_next and self.queue.at_rest(now):
            left, self.state.with_next = self.state.with_next, []
            for switch in left:
                self._throw(switch, now)

    # ── when the motion before has ended ──

    def _dwell(self, step: ask.Dwell, now: int) -> bool:
        rest = pause(self.queue.end, step.seconds, line=self._number)
        self.queue.append(rest, now, deviation=0.0, exact=True)
        return self._next(steps.Rest())

    def _wait_for_input(self, step: ask.WaitInput, now: int) -> bool:
        return input_is_met(step, self.state, self._io, now)

    def _spin(self, step: ask.Spindle, now: int) -> bool:
        on = step.direction != "M5"
        self._throw(ask.SetOutput(ARC_START, on, False), now)
        return self._next(steps.ArcWait(on)) if self._habits.arc_wait else True

    def _wait_for_arc(self, step: steps.ArcWait, now: int) -> bool:
        met = arc_is_met(step, self.arc)
        if isinstance(met, Refused):
            self.fail(met, now)
        return bool(met)

    def _cool(self, step: ask.Coolant, now: int) -> bool:
        self._throw(ask.SetOutput(GAS, step.mist or step.flood, False), now)
        return True

    def _change_tool(self, step: ask.ToolChange, now: int) -> bool:
        mover = self._mount(step.tool)
        if isinstance(mover, Refused):
            mounted = step.previous
            self.state.modal = structs.replace(self.state.modal, tool=mounted, selected=mounted)
            self._fail(mover)
        else:
            self.mover = mover
        return True

    def _pause(self, step: ask.ProgramPause, now: int) -> bool:
        if step.name == "M1" and not self.state.optional_stop:
            return True
        self.state.paused = True
        return self._next(steps.Paused())

    def _end(self, step: ask.ProgramEnd, now: int) -> bool:
        if self.arc is not None:
            self.arc.program_ended(now)
        self._process_off(now)
        return self._next(steps.ArcWait(False)) if self._habits.arc_wait else True

    def _home(self, step: steps.HomingMove, now: int) -> bool:
        q = self.queue.end.copy()
        for axis in step.axes:
            q[axis] = self._habits.home[axis] * DEG
        a, b, c, u, v, w = q.tolist()
        self.state.axes = None
        return self._move(ask.JointMove((a, b, c, u, v, w)), now, self._habits.homing_share)

    def _homed(self, step: steps.Homed, now: int) -> bool:
        self.state.homed = sorted({*self.state.homed, *step.axes})
        return True

    def _probed(self, step: steps.Probed, now: int) -> bool:
        if step.required:
            self._fail(PROBE_FAILED)
        return True

    # ── inside ──

    def _pin_changed(self, change: Change) -> None:
        if change.bank == "DI" and self.state.waits_since is not None:
            self.run(change.at)

    @property
    def _number(self) -> int:
        return self.state.current.number if self.state.current else 0

    def _next(self, *first: steps.Step) -> bool:
        """These come next, before the rest of the line."""
        self.state.todo[1:1] = first
        return True

    def _mounted(self, tool: int) -> Mover:
        mover = self._mount(tool)
        return self._mounted(0) if isinstance(mover, Refused) else mover

    def _process_off(self, now: int) -> None:
        for pin in (ARC_START, GAS):
            self._io.set_digital_output(pin, False, now)

    def _fail(self, refused: Refused) -> None:
        """The line cannot be carried out: it and all that waits behind it are forgotten.

        What moves already goes on to its end, with the switches that belong to it.
        """
        line, reason = self.state.current, refused.reason
        if isinstance(line, steps.Line) and not reason.startswith("line "):
            reason = f"{reason} (line {line.number}: {line.text.strip()})"
        self.state.error = (reason, refused.code)
        tagged = self.state.tagged
        self._forget()
        self.state.tagged = tagged
        self._failed()

    def _forget(self) -> None:
        self._waiting.clear()
        state = self.state
        state.todo, state.with_next, state.tagged = [], [], []
        state.current = state.axes = state.waits_since = None
        state.paused = False

    def _when(self, now: int) -> int | None:
        state = self.state
        if state.waits_since is not None and isinstance(state.todo[0], ask.WaitInput):
            return state.waits_since + nanoseconds(state.todo[0].timeout)
        return self.queue.next_change(now, blocks=bool(state.todo or state.tagged))

    # ── snapshots ──

    def save(self) -> steps.State:
        kept = self.state.copied()
        kept.waiting, kept.stream = list(self._waiting), self.queue.save()
        return kept

    def load(self, state: steps.State) -> None:
        self.state = state.copied()
        self.state.waiting, self.state.stream = [], {}
        self._waiting = deque(state.waiting)
        self.queue.load(state.stream)
        self.mover = self._mounted(state.modal.tool)


_AT_REST: dict[type, Callable[[Runner, Any, int], bool]] = {
    ask.Dwell: Runner._dwell,
    ask.WaitInput: Runner._wait_for_input,
    ask.Spindle: Runner._spin,
    ask.Coolant: Runner._cool,
    ask.ToolChange: Runner._change_tool,
    ask.ProgramPause: Runner._pause,
    ask.ProgramEnd: Runner._end,
    steps.ArcWait: Runner._wait_for_arc,
    steps.HomingMove: Runner._home,
    steps.Homed: Runner._homed,
    steps.Probed: Runner._probed,
    steps.Paused: lambda runner, step, now: not runner.state.paused,
    steps.Rest: lambda runner, step, now: True,
}
