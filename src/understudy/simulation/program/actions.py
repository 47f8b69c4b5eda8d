"""Actions of the steps of a line, except moves.

Each action gets the program that runs it; it returns true when the step is done, false when the
step must wait. `gcode.meaning` defines whether motion comes to rest before a request.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import Dialect, Modal, requests
from understudy.gcode.meaning import MOVES, homes_arm, rests_motion, stops_at_corners
from understudy.gcode.requests import Output, Request, SetOutput, WaitInput
from understudy.motion.path import dwell_path
from understudy.motion.stream import Queue
from understudy.ports.device import Process
from understudy.ports.io import ProgramPins
from understudy.simulation.program.steps import (
    ControllerOptions,
    GcodeLine,
    Homed,
    HomingMove,
    LineRefused,
    Mover,
    Paused,
    Probe,
    Probed,
    ProbeMove,
    ProcessWait,
    ProgramHooks,
    Rest,
    StartAction,
    State,
    Step,
    SystemChosen,
    over_a_wire,
)
from understudy.units import nanoseconds

TIMED_OUT = -1.0
"""The result of an M66 after its timeout."""


class Program(Protocol):
    """A running program, as its steps see it."""

    state: State
    queue: Queue
    mover: Mover
    options: ControllerOptions
    io: ProgramPins
    hooks: ProgramHooks
    process: Process | None
    confirm_tool: Callable[[int], Refused | None]
    probe: Probe | None

    @property
    def dialect(self) -> Dialect: ...

    def go_next(self, *steps: Step) -> bool: ...

    def move(self, move: requests.Move, now: int, share: float | None = None) -> bool: ...

    def mount(self, tool: int) -> Mover | Refused: ...

    def refuse_if(self, refused: Refused | None, now: int, *, in_place: bool = False) -> bool: ...

    def fail(self, refused: Refused, now: int) -> None: ...


def steps_of(
    request: Request, before: Modal, after: Modal, *, dialect: Dialect, at_offsets: bool
) -> tuple[Step, ...]:
    """The steps of a request: with a `Rest` before it if motion must end first."""
    rests = rests_motion(request, before, after, dialect=dialect, at_offsets=at_offsets)
    if not rests:
        return (request,)
    if isinstance(request, requests.Overrides):
        # The feed override is allowed or disabled at once, the other two after the queued motion.
        return request, Rest(), replace(request, rests=False)
    return Rest(), request


# ── pins and process ──


def set_output(request: Output, io: ProgramPins, now: int) -> Refused | None:
    """M62 … M65, M67, M68."""
    if isinstance(request, SetOutput):
        return io.set_digital_output(request.pin, request.on, now)
    return io.set_analog_output(request.pin, request.value, now)


def input_wait_is_over(step: WaitInput, state: State, io: ProgramPins, now: int) -> bool:
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


# ── actions ──


def choose_path_mode(program: Program, step: requests.PathMode, now: int) -> bool:
    program.state.exact = stops_at_corners(step, program.dialect)
    return True


def go_to_stored(program: Program, step: requests.GoHome, now: int) -> bool:
    if not homes_arm(step, program.dialect):
        return program.go_next(step.move)
    return program.go_next(step.move, Rest(), Homed(tuple(range(len(program.options.home)))))


def report_message(program: Program, message: requests.Message, now: int) -> bool:
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


def dwell(program: Program, step: requests.Dwell, now: int) -> bool:
    rest = dwell_path(program.queue.end, step.seconds, line=program.state.number)
    program.queue.append(rest, now, deviation=0.0, exact=True)
    return program.go_next(Rest())


def wait_for_input(program: Program, step: WaitInput, now: int) -> bool:
    if program.queue.held or not input_wait_is_over(step, program.state, program.io, now):
        return False
    program.hooks.report(step, now)
    return True


def set_spindle(program: Program, step: requests.Spindle, now: int) -> bool:
    refused = program.hooks.set_spindle(step, now)
    if refused:  # it stays off: no later word may switch it on again
        program.state.modal = replace(program.state.modal, spindle="M5")
        return program.refuse_if(refused, now)
    process = (ProcessWait(step.direction != "M5"),) if program.options.process_wait else ()
    return program.go_next(*process, *_waiting(program, step))


def wait_for_process(program: Program, step: ProcessWait, now: int) -> bool:
    over = program.process is None or program.process.reached(step.on)
    if isinstance(over, Refused):
        program.fail(over, now)
    return bool(over)


def set_coolant(program: Program, step: requests.Coolant, now: int) -> bool:
    refused = program.hooks.set_coolant(step, now)
    return program.refuse_if(refused, now) if refused else program.go_next(*_waiting(program, step))


def _waiting(program: Program, step: requests.Spindle | requests.Coolant) -> tuple[Step, ...]:
    """The dwell after a switch that takes time."""
    seconds = program.options.switch_seconds(step)
    return (requests.Dwell(seconds),) if seconds else ()


def _tool_refusal(program: Program, tool: int) -> Refused | None:
    """Over a wire the operator changes the tool after M6, so that no sensor can see it yet."""
    by_hand = over_a_wire(program.state.current)
    return program.options.tool_refusal() or (None if by_hand else program.confirm_tool(tool))


def change_tool(program: Program, step: requests.ToolChange, now: int) -> bool:
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


def pause(program: Program, step: requests.ProgramPause, now: int) -> bool:
    line = program.state.current
    wanted = program.state.optional_stop
    if isinstance(line, GcodeLine) and over_a_wire(line):
        wanted = line.optional
    if (step.name == "M1" and not wanted) or not program.hooks.may_pause(now):
        return True
    program.state.paused = True
    return program.go_next(Paused(step.name))


def end_program(program: Program, step: requests.ProgramEnd, now: int) -> bool:
    line = program.state.current
    if isinstance(line, GcodeLine) and line.how == "check":
        program.hooks.report(step, now)
        return True
    if program.process is not None:
        program.process.program_ended(now)
    program.hooks.switch_off(now)
    program.hooks.report(step, now)
    return program.go_next(ProcessWait(False)) if program.options.process_wait else True


def move_home(program: Program, step: HomingMove, now: int) -> bool:
    q = program.queue.end.copy()
    for axis in step.axes:
        q[axis] = program.options.home[axis] * program.options.dialect.units[axis]
    a, b, c, u, v, w = q.tolist()
    program.state.axes = None
    return program.move(requests.JointMove((a, b, c, u, v, w)), now, program.options.homing_share)


def note_home(program: Program, step: Homed, now: int) -> bool:
    program.state.homed = sorted({*program.state.homed, *step.axes})
    return True


def begin_probing(program: Program, step: requests.Probe, now: int) -> bool:
    """Finds the contact before the move begins; without a probe the move runs to its target."""
    probe, q = program.probe, program.queue.end
    over_wire, away = over_a_wire(program.state.current), not step.toward
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


def end_probing(program: Program, step: Probed, now: int) -> bool:
    return program.refuse_if(program.hooks.probe_ended(step, now), now)


def report(program: Program, step: Step, now: int) -> bool:
    program.hooks.report(step, now)
    return True


ACTIONS: dict[type, Callable[[Program, Any, int], bool]] = {
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
    SystemChosen: report,
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
