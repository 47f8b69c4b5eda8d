"""Carries lines out: moves go into the motion queue, everything else happens in its turn.

What a line asks for stands in `todo` until it is done. A move waits for room in the planner; a
dwell, a wait or a switch for the motion before it to end. `run` goes as far as it can now, and
`next_wake` says when it can go on.
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from msgspec import structs

from understudy.devices.io.virtual_io import Change, VirtualIO
from understudy.errors import Refused
from understudy.gcode import Dialect, Problem, after_reset, interpret, jog, parse
from understudy.gcode import requests as ask
from understudy.motion.path import Floats, Path
from understudy.simulation.program.at_once import AT_ONCE, is_overridden
from understudy.simulation.program.at_rest import AT_REST
from understudy.simulation.program.options import (
    Arc,
    ControllerOptions,
    Here,
    Mover,
    Probe,
    ProgramHooks,
)
from understudy.simulation.program.pins import throw
from understudy.simulation.program.queue import Queue, as_programmed, blocks, ending_at, slowed
from understudy.simulation.program.steps import (
    DROPPED,
    MOVES,
    TOLD,
    Entry,
    Homed,
    Homing,
    HomingMove,
    Line,
    ProbeMove,
    Rest,
    State,
    Step,
    Switch,
    SystemChosen,
    Tagged,
    Until,
    beyond,
    over_a_wire,
)
from understudy.units import nanoseconds


class Runner:
    """The program side of a controller; owns modal state and motion queue."""

    def __init__(
        self,
        options: ControllerOptions,
        *,
        io: VirtualIO,
        queue: Queue,
        mount: Callable[[int], Mover | Refused],
        hooks: ProgramHooks,
    ) -> None:
        self.queue = queue
        self.state = State(options.modal, mounted=options.modal.tool)
        self.options = options
        self.io = io
        self.mount = mount
        self.hooks = hooks
        self._path: Path | None = None
        self._running = False
        self.arc: Arc | None = None
        self.probe: Probe | None = None
        self._waiting: deque[Entry] = deque()
        self.mover = self._mounted(options.modal.tool)
        io.on_change(self._pin_changed)

    # ── what comes in ──

    def submit(self, entry: Entry, now: int) -> None:
        self._waiting.append(entry)
        if not self.state.todo:
            self.run(now)

    def hold(self, now: int) -> None:
        if not self.queue.held:
            self.state.held_since = now
        self.queue.hold(now)
        self.run(now)

    def cycle_start(self, now: int) -> None:
        state = self.state
        state.paused = False
        if state.held_since is not None and state.waits_since is not None:
            state.waits_since += now - state.held_since
        state.held_since = None
        self.queue.resume(now)
        self.run(now)

    def override(self, now: int, *, feed: float | None = None, rapid: float | None = None) -> None:
        self.queue.override(now, feed=feed, rapid=rapid)
        self.run(now)

    def stop(self, now: int, *, silent: bool = True) -> None:
        """Brake along the path; what waits is forgotten; ``silent``: nothing turns or flows."""
        dropped = self.state.current
        self._forget()
        self.queue.stop(now)
        if silent:
            self.hooks.switch_off(now)
        self._drop(dropped, now)
        self.run(now)

    def halt(self, now: int) -> None:
        """No motion from this instant on; what waits is forgotten, nothing turns or flows."""
        dropped = self.state.current
        self._forget()
        self.queue.halt(now)
        self.hooks.switch_off(now)
        self._drop(dropped, now)
        self.run(now)

    def fail(self, refused: Refused, now: int) -> None:
        """Something from outside ends the program: brake, and keep the reason."""
        self.refuse(refused, now)
        self.stop(now)

    def reset(self, *, stopped: bool = False) -> None:
        """What outlives no reset is as at the start."""
        modal = after_reset(self.state.modal, stopped=stopped)
        self.state.modal = structs.replace(modal, path=self.options.modal.path)
        self.state.exact, self.state.error = False, None

    def go_on_from(self, position: Floats, now: int) -> None:
        """Something else has moved the joints."""
        self.queue.stand_at(position, now)
        self.state.axes = None
        self.run(now)

    def mount_again(self) -> None:
        """The tool in hand is not what it was, at rest."""
        self.mover = self._mounted(self.state.mounted)

    def adopt(self, options: ControllerOptions, queue: Queue) -> None:
        """Other settings, at rest."""
        self.options, self.queue = options, queue
        self.mount_again()

    # ── what can be read ──

    @property
    def error(self) -> Refused | None:
        return Refused(*self.state.error) if self.state.error else None

    @property
    def homed(self) -> bool:
        return len(self.state.homed) == len(self.options.home)

    def idle(self, now: int) -> bool:
        """Nothing is under way, nothing waits."""
        return not (self.state.todo or self._waiting) and self.queue.at_rest(now)

    def under_way(self) -> bool:
        """A program is being carried out, even if it waits for something else just now."""
        waits = bool(self.state.todo or self._waiting) and not self.queue.held
        return not self.state.paused and (self.state.wake is not None or waits)

    def next_wake(self) -> int | None:
        return self.state.wake

    # ── going on ──

    def run(self, now: int) -> None:
        """Throw the switches that are due, and carry out what can be carried out."""
        if self._running:
            return  # an output has moved an input: whoever runs looks at it in its turn
        self._running = True
        self._throw_tagged(now)
        while self._go_on(now):
            pass
        self._throw_tagged(now)
        self.state.wake = self._when(now)
        self._running = False

    def _go_on(self, now: int) -> bool:
        state = self.state
        if state.todo:
            done = self._carry_out(state.todo[0], now)
            if done and state.todo:
                del state.todo[0]
            return done
        if state.current is not None:
            entry, state.current = state.current, None
            state.executed += isinstance(entry, Line) and bool(entry.text.strip())
            self.hooks.finished(entry, None, now)
            return True
        if not self._waiting:
            self._throw_left_over(now)
            return False
        self._begin(self._waiting.popleft(), now)
        return True

    def _begin(self, entry: Entry, now: int) -> None:
        state = self.state
        state.current = entry
        if isinstance(entry, Homing):
            for group in entry.groups:
                state.todo += (HomingMove(group), Rest(), Homed(group))
            return
        dialect = self._dialect(entry)
        block = parse(entry.text, dialect, line=entry.number)
        if isinstance(block, Problem):
            self.refuse(block.refused(), now)
            return
        here = Here(self.mover, self.queue.end, state.axes)
        understand = jog if entry.how == "jog" else interpret
        step = understand(block, state.modal, dialect=dialect, position=here)
        if isinstance(step, Refused):
            self.refuse(step, now)
            return
        state.modal = step.modal
        if step.axes or step.pose:
            state.axes = step.axes
        if "coordinates" in block.commands:
            state.todo.append(SystemChosen())
        state.todo += [s for s in step.requests if entry.how != "check" or isinstance(s, TOLD)]
        if entry.single and any(isinstance(request, MOVES) for request in step.requests):
            state.todo += (Rest(), ask.ProgramPause("M0"))

    def _carry_out(self, step: Step, now: int) -> bool:
        """True when it is done, false when it must wait."""
        if isinstance(step, MOVES):
            return self.move(step, now)
        if isinstance(step, ask.SetOutput | ask.SetAnalog):
            return self._switch(step, now)
        if isinstance(step, ProbeMove):
            return self.move(step.move, now, until=step.until)
        if type(step) in AT_ONCE:
            return AT_ONCE[type(step)](self, step, now)
        if type(step) in AT_REST:
            return self.queue.at_rest(now) and AT_REST[type(step)](self, step, now)
        shifts = isinstance(step, ask.OffsetsChanged | SystemChosen)
        if shifts and self.options.rests_at_offsets and not self.queue.at_rest(now):
            return False
        self.hooks.tell(step, now)
        return True

    def move(
        self, move: ask.Move, now: int, share: float | None = None, until: Until = None
    ) -> bool:
        """Into the planner, as far as it has room."""
        state = self.state
        if not (room := self.queue.room(now)):
            return False
        path = self._path or self._path_of(move, share, until)
        if isinstance(path, Refused):
            self.refuse(beyond(path) if over_a_wire(state.current) else path, now)
            return True
        if len(path) and not state.queued:
            state.tagged += [Tagged(self.number, switch) for switch in state.with_next]
            state.with_next = []
        part, whole = blocks(path, state.queued, room)
        deviation = self.options.deviation
        self.queue.append(part, now, deviation=deviation, exact=state.exact)
        self._throw_tagged(now, told=False)
        self._path = None if whole else path
        state.queued = 0 if whole else state.queued + room
        state.origin = None if whole else state.origin
        return whole or self.move(move, now, share, until)

    def _path_of(self, move: ask.Move, share: float | None, until: Until) -> Path | Refused:
        state = self.state
        if state.origin is None:
            state.origin = self.queue.end.tolist()
        start = np.array(state.origin)
        path = self.mover.path(move, start, line=self.number, exact=state.exact)
        if isinstance(path, Refused):
            return path
        path = ending_at(path, until) if share is None else slowed(path, share)
        return path if is_overridden(self) else as_programmed(path)

    # ── in step with motion ──

    def _switch(self, switch: Switch, now: int) -> bool:
        if switch.with_motion:
            self.state.with_next.append(switch)
        else:
            self._throw(switch, now)
        return True

    def _throw(self, switch: Switch | ask.Message, now: int, *, of_line: int = 0) -> None:
        if isinstance(switch, ask.Message):
            self.hooks.tell(switch, now)
        elif refused := throw(switch, self.io, now):
            place = f"line {of_line}: " if of_line else ""
            self.refuse(Refused(place + refused.reason, refused.code), now)

    def _throw_tagged(self, now: int, *, told: bool = True) -> None:
        """Without ``told`` messages wait: a line is answered before the message of its motion."""
        tagged = self.state.tagged
        if not tagged:
            return
        begun = self.queue.begun({tag.line for tag in tagged}, now)
        ripe = [tag for tag in tagged if told or not isinstance(tag.switch, ask.Message)]
        due = [tag for tag in ripe if tag.line in begun]
        self.state.tagged = [tag for tag in tagged if tag not in due]
        for tag in due:
            self._throw(tag.switch, now, of_line=tag.line)

    def _throw_left_over(self, now: int) -> None:
        """No motion follows: for an arm of its own the queue running empty is the moment."""
        if self.state.with_next and self.own_dialect and self.queue.at_rest(now):
            left, self.state.with_next = self.state.with_next, []
            for switch in left:
                self._throw(switch, now)

    # ── inside ──

    def _pin_changed(self, change: Change) -> None:
        if change.bank == "DI" and self.state.waits_since is not None:
            self.run(change.at)

    @property
    def number(self) -> int:
        return self.state.current.number if self.state.current else 0

    def go_next(self, *steps: Step) -> bool:
        """These come next, before the rest of the line."""
        self.state.todo[1:1] = steps
        return True

    def _mounted(self, tool: int) -> Mover:
        mover = self.mount(tool)
        return self._mounted(0) if isinstance(mover, Refused) else mover

    @property
    def own_dialect(self) -> bool:
        return self.options.dialect.name == "arm" and not over_a_wire(self.state.current)

    def _dialect(self, line: Line) -> Dialect:
        return self.options.wire if over_a_wire(line) else self.options.dialect

    def unless(self, refused: Refused | None, now: int) -> bool:
        if refused:
            self.refuse(refused, now)
        return True

    def refuse(self, refused: Refused, now: int) -> None:
        """The line cannot be carried out: it and all that waits behind it are forgotten.

        What moves already goes on to its end, with the switches that belong to it. A line over a
        wire has nothing behind it, and is answered where it came from.
        """
        state, line, reason = self.state, self.state.current, refused.reason
        if isinstance(line, Line) and not reason.startswith("line "):
            reason = f"{reason} (line {line.number}: {line.text.strip()})"
        tagged, with_next = state.tagged, state.with_next
        if over_a_wire(line):
            waiting, self._waiting = self._waiting, deque()
            self._forget()
            self._waiting, state.with_next = waiting, with_next
        else:
            state.error = (reason, refused.code)
            self._forget()
        state.tagged = tagged
        if line is not None:
            self.hooks.finished(line, Refused(reason, refused.code), now)

    def _drop(self, entry: Entry | None, now: int) -> None:
        """Whoever waits for this line over a wire waits in vain."""
        self.state.stops += 1
        if entry is not None and over_a_wire(entry):
            self.hooks.finished(entry, DROPPED, now)

    def _forget(self) -> None:
        self._waiting.clear()
        state = self.state
        state.todo, state.with_next, state.tagged = [], [], []
        state.current = state.axes = state.origin = self._path = None
        state.waits_since = state.held_since = None
        state.queued = 0
        state.paused = False

    def _when(self, now: int) -> int | None:
        state = self.state
        step = state.todo[0] if state.todo else None
        if state.waits_since is not None and isinstance(step, ask.WaitInput):
            return None if self.queue.held else state.waits_since + nanoseconds(step.timeout)
        return self.queue.next_change(now, room=bool(state.todo), starts=bool(state.tagged))

    # ── snapshots ──

    def save(self) -> State:
        kept = self.state.copied()
        kept.waiting, kept.stream = list(self._waiting), self.queue.save()
        return kept

    def load(self, state: State) -> None:
        self.state = state.copied()
        self.state.waiting, self.state.stream = [], {}
        self._path = None
        self._waiting = deque(state.waiting)
        self.queue.load(state.stream)
        self.mover = self._mounted(state.mounted)
