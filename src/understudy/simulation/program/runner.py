"""Carries out lines: queues moves in the motion queue, runs all other steps in order.

The steps of the current line are in `todo` until they are done. A move waits for room in the
planner; a `Rest` waits for the motion before it to end. `run` carries out all steps that need
no wait, and `next_wake` returns when the next one can run.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import (
    Block,
    Dialect,
    Interpretation,
    Modal,
    Problem,
    after_refusal,
    after_reset,
    interpret,
    jog,
    parse,
    requests,
)
from understudy.gcode.blocks import commands_in
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import (
    MOVES,
    Message,
    Output,
    Request,
    SetOutput,
    WaitInput,
    homes_arm,
    rests_motion,
    sets_outputs_without_move,
    stops_at_corners,
)
from understudy.motion.path import Floats, Path, dwell_path
from understudy.motion.saved import position_from
from understudy.motion.stream import Queue, as_programmed, blocks, ending_at, slowed
from understudy.ports.device import Process
from understudy.ports.io import PinChange
from understudy.ports.refusals import SOFT_LIMIT
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.steps import (
    EXECUTED_IN_CHECK,
    ControllerOptions,
    Homed,
    HomingMove,
    LineRefused,
    Mover,
    Paused,
    Probe,
    Probed,
    ProbeMove,
    ProcessWait,
    Rest,
    Step,
    Until,
)
from understudy.units import nanoseconds

MOST_WORK = 2000
"""Pieces of path that are planned before the lines after them wait for the next wake, at the same
time: arcs with many turns have thousands, straight lines about five."""
REFUSED_WORK = 500
"""The same for a path that is refused: its length is not known."""
TIMED_OUT = -1.0
"""The result of an M66 after its timeout."""
DROPPED = Refused("dropped before it was carried out", -1)


# ── entries of the queue of lines, and the state ──────────────────────────────────────────────────


class GcodeLine(Struct, frozen=True, tag=True):
    """A waiting line of G-code.

    `how`: a line of a `program`, a single line over a `wire`, a line to `check` only, or a `jog`
    (the text after `$J=`). `single`: the program pauses after it; `ends`: the word that would have
    ended it. `optional`: M1 pauses (a program reads that from its controller instead).
    """

    number: int
    text: str
    how: Literal["program", "wire", "check", "jog"] = "program"
    single: bool = False
    optional: bool = True
    ends: str = ""


class Homing(Struct, frozen=True, tag=True):
    """A waiting homing request: groups of axes, one after the other."""

    number: int
    groups: tuple[tuple[int, ...], ...]


Entry = GcodeLine | Homing


def over_a_wire(entry: Entry | None) -> bool:
    """Whether a client waits for the answer to this entry alone."""
    if isinstance(entry, Homing):
        return entry.number > 0
    return entry is not None and entry.how != "program"


class StartAction(Struct, frozen=True):
    """An output that is set, or a message that is reported, when the motion of a line begins."""

    line: int
    action: Output | Message


class RunnerState(Struct):
    """The state of a runner, without its configuration.

    `axes`: the commanded joints in degrees as the program wrote them, while they are known.
    `mounted`: the present tool; the modal one may be ahead of it until the change is carried out.
    `waits_since`, `level`: when an M66 began to wait, and the level of its input at the last check;
    `held_since`: the time since which its timeout is suspended.
    `origin`, `queued`: the start of a move that is only partly in the planner, and the number
    of its blocks there.
    """

    modal: Modal
    mounted: int = 0
    waiting: list[Entry] = []
    current: Entry | None = None
    todo: list[Step] = []
    stream: dict[str, Any] = {}
    axes: Axes | None = None
    with_next_move: list[Output] = []
    origin: list[float] | None = None
    queued: int = 0
    start_actions: list[StartAction] = []
    exact: bool = False
    waits_since: int | None = None
    held_since: int | None = None
    level: bool = False
    result: float = 0.0
    paused: bool = False
    optional_stop: bool = False
    homed: list[int] = []
    executed: int = 0
    acts: bool = False
    stops: int = 0
    error: tuple[str, int] | None = None
    wake: int | None = None

    @property
    def number(self) -> int:
        """The number of the current line."""
        return self.current.number if self.current else 0

    @property
    def over_wire(self) -> bool:
        """Whether a client waits for the answer to the current line alone."""
        return over_a_wire(self.current)


class ProgramHooks(Protocol):
    """The controller around a program: spindle, coolant, and reports of what was carried out."""

    def set_spindle(self, step: requests.Spindle, now: int) -> Refused | None: ...

    def set_coolant(self, step: requests.Coolant, now: int) -> Refused | None: ...

    def switch_off(self, now: int) -> None:
        """Switches spindle and coolant off: the program has ended or was cut off."""
        ...

    def probe_ended(self, step: Probed, now: int) -> Refused | None: ...

    def may_pause(self, now: int) -> bool:
        """Whether the program can pause now; in an alarm, for instance, it does not."""
        ...

    def report(self, step: Step, now: int) -> None:
        """A step was carried out."""
        ...

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        """An entry was carried out, or was refused."""
        ...


# ── the runner ────────────────────────────────────────────────────────────────────────────────────


class QueueEnd:
    """`Position` at the end of the queue; the pose is computed only if a line needs it."""

    def __init__(self, mover: Mover, q: Floats, axes: Axes | None) -> None:
        self._mover = mover
        self._q = q
        self._axes = axes

    @property
    def axes(self) -> Axes:
        return self._axes or self._mover.axes(self._q)

    @property
    def pose(self) -> Axes:
        return self._mover.pose(self._q)


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
        self.state = RunnerState(options.modal, mounted=options.modal.tool)
        self.options = options
        self.io = io
        self.mount = mount
        self.hooks = hooks
        self._path: Path | None = None
        self._running = False
        self._work = 0
        self._work_at = 0
        self._postponed = False
        self.process: Process | None = None
        self.confirm_tool: Callable[[int], Refused | None] = lambda tool: None
        """Asks a tool changer whether M6 can mount a tool."""
        self.probe: Probe | None = None
        self.command_listeners: list[Callable[[str, int], None]] = []
        self._waiting: deque[Entry] = deque()
        self.mover = self._mounted(options.modal.tool)
        io.on_change(self._pin_changed)

    # ── commands ──

    def submit(self, entry: Entry, now: int) -> None:
        self._waiting.append(entry)
        if not self.state.todo and not self._postponed:
            self._go_on(now)

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
        """Brakes along the path and drops the waiting lines; ``silent``: spindle and coolant go
        off."""
        dropped = self.state.current
        self._forget()
        self.queue.stop(now)
        if silent:
            self.hooks.switch_off(now)
        self._drop(dropped, now)
        self.run(now)

    def halt(self, now: int) -> None:
        """Ends motion at this instant, drops the waiting lines, and switches spindle and coolant
        off."""
        dropped = self.state.current
        self._forget()
        self.queue.halt(now)
        self.hooks.switch_off(now)
        self._drop(dropped, now)
        self.run(now)

    def fail(self, refused: Refused, now: int) -> None:
        """Ends the program because of a fault elsewhere: brakes and keeps the reason."""
        self.refuse(refused, now)
        self.stop(now)

    def reset(self, *, stopped: bool = False) -> None:
        """Resets the modal state that a controller reset clears."""
        modal = after_reset(self.state.modal, stopped=stopped)
        self.state.modal = replace(modal, path=self.options.modal.path)
        self.state.exact, self.state.error = False, None

    def continue_from(self, position: Floats, now: int) -> None:
        """Continues from another position: something else has moved the joints."""
        self.correct_position(position, now)
        self.run(now)

    def correct_position(self, position: Floats, now: int) -> None:
        """Sets the position of the axes, which are at rest; the program may be in a step."""
        self.queue.set_position(position, now)
        self.state.axes = None

    def remount(self) -> None:
        """Applies changed data of the mounted tool; called at rest."""
        self.mover = self._mounted(self.state.mounted)

    def adopt(self, options: ControllerOptions, queue: Queue) -> None:
        """Applies other settings; called at rest."""
        self.options, self.queue = options, queue
        self.remount()

    # ── readings ──

    @property
    def error(self) -> Refused | None:
        return Refused(*self.state.error) if self.state.error else None

    @property
    def homed(self) -> bool:
        return len(self.state.homed) == len(self.options.home)

    def idle(self, now: int) -> bool:
        """Whether nothing runs and nothing waits."""
        return not (self.state.todo or self._waiting) and self.queue.at_rest(now)

    def under_way(self) -> bool:
        """Whether a program runs, even if it waits for something now."""
        waits = bool(self.state.todo or self._waiting) and not self.queue.held
        return not self.state.paused and (self.state.wake is not None or waits)

    @property
    def pause(self) -> str:
        """The word at which the program waits for the operator; empty if there is none."""
        step = self.state.todo[0] if self.state.todo else None
        return step.name if isinstance(step, Paused) else ""

    def next_wake(self) -> int | None:
        return self.state.wake

    @property
    def postponed(self) -> bool:
        """Whether lines wait because those before them took much work; a wake is due now."""
        return self._postponed

    # ── execution ──

    def run(self, now: int) -> None:
        """Sets the outputs that are due, and carries out the steps that need no wait."""
        if self._running:
            return  # an output has changed an input; the outer call handles it
        self._work = 0
        self._go_on(now)

    def _go_on(self, now: int) -> None:
        if self._running:
            return
        self._running, self._postponed = True, False
        if now != self._work_at:
            self._work, self._work_at = 0, now
        self._run_start_actions(now)
        while self._advance(now):
            pass
        self._run_start_actions(now)
        self.state.wake = now if self._postponed else self._when(now)
        self._running = False

    def _advance(self, now: int) -> bool:
        state = self.state
        if state.todo:
            done = self._carry_out(state.todo[0], now)
            if done and state.todo:
                del state.todo[0]
            return done
        if state.current is not None:
            self._report_without_motion(now)
            entry, state.current = state.current, None
            state.executed += state.acts
            self.hooks.finished(entry, None, now)
            return True
        if not self._waiting:
            self._set_outputs_left(now)
            return False
        if self._work >= MOST_WORK:
            self._postponed = True
            return False
        self._begin(self._waiting.popleft(), now)
        return True

    def _begin(self, entry: Entry, now: int) -> None:
        state = self.state
        state.current, state.acts = entry, False
        self._report_commands(entry, now)
        if isinstance(entry, Homing):
            for group in entry.groups:
                state.todo += (Rest(), HomingMove(group), Rest(), Homed(group))
            return
        block = parse(entry.text, self.dialect, line=entry.number)
        if isinstance(block, Problem):
            self.refuse_if(block.refused(), now, in_place=True)
            return
        state.acts = block.acts
        here = QueueEnd(self.mover, self.queue.end, state.axes)
        understand = jog if entry.how == "jog" else interpret
        found = understand(block, state.modal, dialect=self.dialect, position=here)
        if isinstance(found, Refused):
            self.refuse_if(found, now, in_place=True)
            return
        if entry.how == "check":
            found = self._checked(block, found, now)
        self._queue_steps(entry, block, found)

    def _queue_steps(self, entry: GcodeLine, block: Block, found: Interpretation) -> None:
        """Puts the steps of an interpreted line into `todo`."""
        state, refusal = self.state, found.refusal
        before, state.modal = state.modal, found.modal
        if found.axes or found.pose:
            state.axes = found.axes
        pauses = [each for each in found.requests if isinstance(each, requests.ProgramPause)]
        single = entry.single and refusal is None and not found.ends_early
        for request in found.requests:
            if not (single and request in pauses):
                state.todo += self._steps(request, before)
        if single:
            names = [each.name for each in pauses if each.name != "M1" or entry.optional]
            state.todo += (Rest(), requests.ProgramPause(entry.ends or "".join(names)))
        if refusal is not None and (refusal.in_check or entry.how != "check"):
            state.todo += (LineRefused(refusal.refused.reason, refusal.refused.code),)

    def _checked(self, block: Block, found: Interpretation, now: int) -> Interpretation:
        """What a line does in check mode; the tool stays, and a spindle that is on in the modal
        state gets a new speed, as in the firmware, but not that which M72 restores."""
        before, after = self.state.modal, found.modal
        restores = before.saved is not None and block.commands.get("modal state") == "M72"
        if after.speed != before.speed and before.spindle != "M5" and not restores:
            self.hooks.set_spindle(requests.Spindle(before.spindle, after.speed), now)
        carried_out = tuple(each for each in found.requests if isinstance(each, EXECUTED_IN_CHECK))
        kept = replace(after, tool=before.tool)
        return replace(found, modal=kept, requests=carried_out)

    def _report_commands(self, entry: Entry, now: int) -> None:
        """Names the commands of a line to the listeners; also those of a line that is refused."""
        if not self.command_listeners:
            return
        names = ["$H"] if isinstance(entry, Homing) else commands_in(entry.text)
        if isinstance(entry, GcodeLine) and entry.how == "jog":
            names = ["$J"]
        for name in names:
            for listener in self.command_listeners:
                listener(name, now)

    def _steps(self, request: Request, before: Modal) -> tuple[Step, ...]:
        """The steps of a request: with a `Rest` before it if motion must end first."""
        if isinstance(request, MOVES) or not rests_motion(
            request,
            before,
            self.state.modal,
            dialect=self.dialect,
            at_offsets=self.options.rests_at_offsets,
        ):
            return (request,)
        if isinstance(request, requests.Overrides):
            # The feed override is allowed or disabled at once, the other two after the queued
            # motion.
            return request, Rest(), replace(request, rests=False)
        return Rest(), request

    def _carry_out(self, step: Step, now: int) -> bool:
        """Carries out a step; true when it is done, false when it must wait."""
        if isinstance(step, MOVES):
            return self.move(step, now)
        if isinstance(step, requests.SetOutput | requests.SetAnalog):
            return self._output(step, now)
        if isinstance(step, ProbeMove):
            return self.move(step.move, now, until=step.until)
        return ACTIONS[type(step)](self, step, now)

    def move(
        self, move: requests.Move, now: int, share: float | None = None, until: Until = None
    ) -> bool:
        """Puts a move into the planner, as far as the planner has room."""
        state = self.state
        if not (room := self.queue.room(now)):
            return False
        path = self._path or self._path_of(move, share, until)
        if isinstance(path, Refused):
            if path.code == SOFT_LIMIT and state.over_wire:  # an alarm has a negative code
                path = Refused(path.reason, -SOFT_LIMIT)
            self.refuse(path, now)
            return True
        if len(path) and not state.queued:
            state.start_actions += [
                StartAction(self.state.number, each) for each in state.with_next_move
            ]
            state.with_next_move = []
        part, whole = blocks(path, state.queued, room)
        deviation = self.options.deviation
        self.queue.append(part, now, deviation=deviation, exact=state.exact)
        self._run_start_actions(now, messages=False)
        self._path = None if whole else path
        state.queued = 0 if whole else state.queued + room
        state.origin = None if whole else state.origin
        return whole or self.move(move, now, share, until)

    def _path_of(self, move: requests.Move, share: float | None, until: Until) -> Path | Refused:
        state = self.state
        if state.origin is None:
            state.origin = self.queue.end.tolist()
        start = np.array(state.origin)
        path = self.mover.path(move, start, line=self.state.number, exact=state.exact)
        self._work += REFUSED_WORK if isinstance(path, Refused) else len(path)
        if isinstance(path, Refused):
            return path
        path = ending_at(path, until) if share is None else slowed(path, share)
        return path if self._is_overridden() else as_programmed(path)

    def _is_overridden(self) -> bool:
        """Whether the feed override acts on the current move."""
        state = self.state
        if isinstance(state.current, GcodeLine) and state.current.how == "jog":
            return False
        probes = isinstance(state.todo[0], ProbeMove)
        return self.options.probes_overridden if probes else state.modal.feed_override

    # ── in step with motion ──

    def _output(self, output: requests.Output, now: int) -> bool:
        if output.with_motion:
            on = isinstance(output, SetOutput) and output.on
            if on and (locked := self.io.interlocked(output.pin)):
                return self.refuse_if(locked, now)
            self.state.with_next_move.append(output)
        else:
            self._act(output, now)
        return True

    def _act(self, action: requests.Output | requests.Message, now: int, *, line: int = 0) -> None:
        if isinstance(action, requests.Message):
            self.hooks.report(action, now)
        elif refused := set_output(action, self.io, now):
            place = f"line {line}: " if line else ""
            self.refuse(Refused(place + refused.reason, refused.code), now)

    def _run_start_actions(self, now: int, *, messages: bool = True) -> None:
        """Carries out the actions of lines whose motion has started.

        Without ``messages`` they wait: a line is answered before the message of its motion.
        """
        actions = self.state.start_actions
        if not actions:
            return
        begun = self.queue.begun({each.line for each in actions}, now)
        due = [
            each
            for each in actions
            if each.line in begun and (messages or not isinstance(each.action, requests.Message))
        ]
        self.state.start_actions = [each for each in actions if each not in due]
        for each in due:
            self._act(each.action, now, line=each.line)

    def _report_without_motion(self, now: int) -> None:
        """Reports the message of a line whose moves have no length, before it is answered."""
        state = self.state
        if state.start_actions and state.number not in self.queue.lines_ahead():
            self._run_start_actions(now)

    def _set_outputs_left(self, now: int) -> None:
        """Sets outputs that wait for a move when the queue runs empty, if the dialect requires
        it."""
        waiting = self.state.with_next_move and self.queue.at_rest(now)
        if waiting and sets_outputs_without_move(self.dialect):
            left, self.state.with_next_move = self.state.with_next_move, []
            for output in left:
                self._act(output, now)

    # ── inside ──

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank == "DI" and self.state.waits_since is not None:
            self.run(change.at)

    def go_next(self, *steps: Step) -> bool:
        """Puts steps next, before the rest of the line."""
        self.state.todo[1:1] = steps
        return True

    def _mounted(self, tool: int) -> Mover:
        mover = self.mount(tool)
        return self._mounted(0) if isinstance(mover, Refused) else mover

    @property
    def dialect(self) -> Dialect:
        """The dialect of the current line."""
        return self.options.wire if self.state.over_wire else self.options.dialect

    def refuse_if(self, refused: Refused | None, now: int, *, in_place: bool = False) -> bool:
        """Refuses the current line; ``in_place``: its motion is as commanded, and the commanded
        position is kept."""
        if refused and in_place:
            axes = self.state.axes
            self.state.modal = after_refusal(self.state.modal)
            self.refuse(refused, now)
            self.state.axes = axes
        elif refused:
            self.refuse(refused, now)
        return True

    def refuse(self, refused: Refused, now: int) -> None:
        """Refuses the current line: drops it and all lines after it.

        Queued motion runs to its end, with the outputs that belong to it. A line over a wire has no
        lines after it; its client gets the answer.
        """
        state, line, reason = self.state, self.state.current, refused.reason
        if isinstance(line, GcodeLine) and not reason.startswith("line "):
            reason = f"{reason} (line {line.number}: {line.text.strip()})"
        start_actions, with_next = state.start_actions, state.with_next_move
        if over_a_wire(line):
            waiting, self._waiting = self._waiting, deque()
            self._forget()
            self._waiting, state.with_next_move = waiting, with_next
        else:
            state.error = (reason, refused.code)
            self._forget()
        state.start_actions = start_actions
        if line is not None:
            self.hooks.finished(line, Refused(reason, refused.code), now)

    def _drop(self, entry: Entry | None, now: int) -> None:
        """Reports an entry over a wire that will not be carried out."""
        self.state.stops += 1
        if entry is not None and over_a_wire(entry):
            self.hooks.finished(entry, DROPPED, now)

    def _forget(self) -> None:
        self._waiting.clear()
        state = self.state
        state.todo, state.with_next_move, state.start_actions = [], [], []
        state.current = state.axes = state.origin = self._path = None
        state.waits_since = state.held_since = None
        state.queued = 0
        state.paused = False

    def _when(self, now: int) -> int | None:
        state = self.state
        step = state.todo[0] if state.todo else None
        if state.waits_since is not None and isinstance(step, requests.WaitInput):
            return None if self.queue.held else state.waits_since + nanoseconds(step.timeout)
        return self.queue.next_change(now, room=bool(state.todo), starts=bool(state.start_actions))

    # ── snapshots ──

    def save(self) -> RunnerState:
        return replace(self.state, waiting=list(self._waiting), stream=self.queue.save())

    def load(self, state: RunnerState) -> None:
        self.state = replace(state)
        self.state.waiting, self.state.stream = [], {}
        self._path, self._postponed = None, False
        self._waiting = deque(state.waiting)
        self.queue.load(state.stream)
        if state.origin is not None:
            position_from(state.origin, len(self.queue.end), "origin")
        self.mover = self._mounted(state.mounted)


# ── what each step does ───────────────────────────────────────────────────────────────────────────


def set_output(request: Output, io: VirtualIO, now: int) -> Refused | None:
    """M62 … M65, M67, M68."""
    if isinstance(request, SetOutput):
        return io.set_digital_output(request.pin, request.on, now)
    return io.set_analog_output(request.pin, request.value, now)


def input_wait_is_over(step: WaitInput, state: RunnerState, io: VirtualIO, now: int) -> bool:
    """M66: true when its result is in ``state``; false while it waits."""
    if step.kind == "analog":
        state.result = io.analog_input(step.pin, now)
        return True
    level = io.digital_input(step.pin)
    if state.waits_since is None:
        state.waits_since, state.level = now, level
    rises, falls = level and not state.level, state.level and not level
    met = {"read": True, "rise": rises, "fall": falls, "high": level, "low": not level}
    state.level = level
    if not met[step.mode] and now < state.waits_since + nanoseconds(step.timeout):
        return False
    state.result = float(level) if met[step.mode] else TIMED_OUT
    state.waits_since = None
    return True


def choose_path_mode(program: Runner, step: requests.PathMode, now: int) -> bool:
    program.state.exact = stops_at_corners(step, program.dialect)
    return True


def go_to_stored(program: Runner, step: requests.GoHome, now: int) -> bool:
    if not homes_arm(step, program.dialect):
        return program.go_next(step.move)
    return program.go_next(step.move, Rest(), Homed(tuple(range(len(program.options.home)))))


def report_message(program: Runner, message: requests.Message, now: int) -> bool:
    """Reports a message at once, before a tool change, or when the motion of the same line
    begins."""
    todo = program.state.todo
    changes_tool = any(isinstance(step, requests.ToolChange) and step.physical for step in todo)
    if changes_tool and not program.queue.at_rest(now):
        return program.go_next(Rest(), message)
    if not changes_tool and any(isinstance(step, (*MOVES, requests.Probe)) for step in todo):
        program.state.start_actions.append(StartAction(program.state.number, message))
    else:
        program.hooks.report(message, now)
    return True


def dwell(program: Runner, step: requests.Dwell, now: int) -> bool:
    rest = dwell_path(program.queue.end, step.seconds, line=program.state.number)
    program.queue.append(rest, now, deviation=0.0, exact=True)
    return program.go_next(Rest())


def wait_for_input(program: Runner, step: WaitInput, now: int) -> bool:
    if program.queue.held or not input_wait_is_over(step, program.state, program.io, now):
        return False
    program.hooks.report(step, now)
    return True


def set_spindle(program: Runner, step: requests.Spindle, now: int) -> bool:
    refused = program.hooks.set_spindle(step, now)
    if refused:  # it stays off: no later word may switch it on again
        program.state.modal = replace(program.state.modal, spindle="M5")
        return program.refuse_if(refused, now)
    process = (ProcessWait(step.direction != "M5"),) if program.options.process_wait else ()
    return program.go_next(*process, *_waiting(program, step))


def wait_for_process(program: Runner, step: ProcessWait, now: int) -> bool:
    over = program.process is None or program.process.reached(step.on)
    if isinstance(over, Refused):
        program.fail(over, now)
    return bool(over)


def set_coolant(program: Runner, step: requests.Coolant, now: int) -> bool:
    refused = program.hooks.set_coolant(step, now)
    return program.refuse_if(refused, now) if refused else program.go_next(*_waiting(program, step))


def _waiting(program: Runner, step: requests.Spindle | requests.Coolant) -> tuple[Step, ...]:
    """The dwell after a switch that takes time."""
    seconds = program.options.switch_seconds(step)
    return (requests.Dwell(seconds),) if seconds else ()


def _tool_refusal(program: Runner, tool: int) -> Refused | None:
    """Over a wire the operator changes the tool after M6, so that no sensor can see it yet."""
    by_hand = program.state.over_wire
    return program.options.tool_refusal() or (None if by_hand else program.confirm_tool(tool))


def change_tool(program: Runner, step: requests.ToolChange, now: int) -> bool:
    state = program.state
    if step.physical and (refused := _tool_refusal(program, step.tool)):
        state.modal = replace(state.modal, tool=step.previous)
        return program.refuse_if(refused, now)
    mover = program.mount(step.tool)
    if isinstance(mover, Refused):
        mounted = step.previous
        state.modal = replace(state.modal, tool=mounted, selected=mounted)
        return program.refuse_if(mover, now)
    program.mover, state.mounted = mover, step.tool
    program.hooks.report(step, now)
    return True


def pause(program: Runner, step: requests.ProgramPause, now: int) -> bool:
    line = program.state.current
    wanted = program.state.optional_stop
    if isinstance(line, GcodeLine) and over_a_wire(line):
        wanted = line.optional
    if (step.name == "M1" and not wanted) or not program.hooks.may_pause(now):
        return True
    program.state.paused = True
    return program.go_next(Paused(step.name))


def end_program(program: Runner, step: requests.ProgramEnd, now: int) -> bool:
    line = program.state.current
    if isinstance(line, GcodeLine) and line.how == "check":
        program.hooks.report(step, now)
        return True
    if program.process is not None:
        program.process.program_ended(now)
    program.hooks.switch_off(now)
    program.hooks.report(step, now)
    return program.go_next(ProcessWait(False)) if program.options.process_wait else True


def move_home(program: Runner, step: HomingMove, now: int) -> bool:
    q = program.queue.end.copy()
    for axis in step.axes:
        q[axis] = program.options.home[axis] * program.options.dialect.units[axis]
    a, b, c, u, v, w = q.tolist()
    program.state.axes = None
    return program.move(requests.JointMove((a, b, c, u, v, w)), now, program.options.homing_share)


def note_home(program: Runner, step: Homed, now: int) -> bool:
    program.state.homed = sorted({*program.state.homed, *step.axes})
    return True


def begin_probing(program: Runner, step: requests.Probe, now: int) -> bool:
    """Finds the contact before the move begins; without a probe the move runs to its target."""
    probe, q = program.probe, program.queue.end
    over_wire, away = program.state.over_wire, not step.toward
    probed = Probed(step.required, over_wire, away=away)
    if probe is None:
        return program.go_next(ProbeMove(step.move), Rest(), probed)
    path = program.mover.path(step.move, q, line=program.state.number, exact=False)
    if probe.touches(q) == step.toward:
        program.state.axes = None
        end = q if isinstance(path, Refused) or not len(path) else path.end[-1]
        return program.go_next(replace(probed, early=True, place=program.mover.axes(end)))
    if isinstance(path, Refused) or not len(path):  # not even one step of a motor
        return program.go_next(ProbeMove(step.move), Rest(), probed)
    until = probe.trigger_place(path, toward=step.toward)
    if until is None:
        return program.go_next(ProbeMove(step.move), Rest(), probed)
    program.state.axes = None
    probed = replace(probed, touched=True, place=program.mover.axes(path.position(*until)))
    return program.go_next(ProbeMove(step.move, probe.rest_place(path, until)), Rest(), probed)


def end_probing(program: Runner, step: Probed, now: int) -> bool:
    return program.refuse_if(program.hooks.probe_ended(step, now), now)


def report(program: Runner, step: Step, now: int) -> bool:
    program.hooks.report(step, now)
    return True


ACTIONS: dict[type, Callable[[Runner, Any, int], bool]] = {
    requests.PathMode: choose_path_mode,
    requests.GoHome: go_to_stored,
    requests.Message: report_message,
    requests.Dwell: dwell,
    requests.WaitInput: wait_for_input,
    requests.Spindle: set_spindle,
    requests.Coolant: set_coolant,
    requests.ToolChange: change_tool,
    requests.ProgramPause: pause,
    requests.ProgramEnd: end_program,
    requests.Probe: begin_probing,
    requests.Overrides: report,
    requests.OffsetsChanged: report,
    requests.ScalingChanged: report,
    requests.SetHome: report,
    requests.ToolSelect: report,
    requests.KinematicsMode: report,
    LineRefused: lambda program, step, now: program.refuse_if(
        Refused(step.reason, step.code), now, in_place=True
    ),
    ProcessWait: wait_for_process,
    HomingMove: move_home,
    Homed: note_home,
    Probed: end_probing,
    Paused: lambda program, step, now: not program.state.paused,
    Rest: lambda program, step, now: program.queue.at_rest(now),
}
