"""Steps of a line that wait for the motion before them to end, and what they do then.

Each is given the program that runs it; true when it is done, false when it must wait on.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.gcode import requests as ask
from understudy.motion.path import dwell_path
from understudy.simulation.program.options import Arc, ControllerOptions, Mover, Probe, ProgramHooks
from understudy.simulation.program.pins import arc_is_met, input_is_met
from understudy.simulation.program.queue import Queue
from understudy.simulation.program.steps import (
    ArcWait,
    Homed,
    HomingMove,
    Line,
    Paused,
    Probed,
    ProbeMove,
    Rest,
    State,
    Step,
    over_a_wire,
)
from understudy.units import DEG


class Program(Protocol):
    """A program at rest, as its steps see it."""

    state: State
    queue: Queue
    mover: Mover
    options: ControllerOptions
    io: VirtualIO
    hooks: ProgramHooks
    arc: Arc | None
    probe: Probe | None

    @property
    def number(self) -> int: ...

    def go_next(self, *steps: Step) -> bool: ...

    def move(self, move: ask.Move, now: int, share: float | None = None) -> bool: ...

    def mount(self, tool: int) -> Mover | Refused: ...

    def unless(self, refused: Refused | None, now: int) -> bool: ...

    def fail(self, refused: Refused, now: int) -> None: ...


def dwell(program: Program, step: ask.Dwell, now: int) -> bool:
    rest = dwell_path(program.queue.end, step.seconds, line=program.number)
    program.queue.append(rest, now, deviation=0.0, exact=True)
    return program.go_next(Rest())


def wait_for_input(program: Program, step: ask.WaitInput, now: int) -> bool:
    if program.queue.held or not input_is_met(step, program.state, program.io, now):
        return False
    program.hooks.tell(step, now)
    return True


def spin(program: Program, step: ask.Spindle, now: int) -> bool:
    refused = program.hooks.spin(step, now)
    if refused or not program.options.arc_wait:
        return program.unless(refused, now)
    return program.go_next(ArcWait(step.direction != "M5"))


def wait_for_arc(program: Program, step: ArcWait, now: int) -> bool:
    met = arc_is_met(step, program.arc)
    if isinstance(met, Refused):
        program.fail(met, now)
    return bool(met)


def cool(program: Program, step: ask.Coolant, now: int) -> bool:
    return program.unless(program.hooks.cool(step, now), now)


def change_tool(program: Program, step: ask.ToolChange, now: int) -> bool:
    mover, state = program.mount(step.tool), program.state
    if isinstance(mover, Refused):
        mounted = step.previous
        state.modal = replace(state.modal, tool=mounted, selected=mounted)
        return program.unless(mover, now)
    program.mover, state.mounted = mover, step.tool
    program.hooks.tell(step, now)
    return True


def hold_up(program: Program, step: ask.ProgramPause, now: int) -> bool:
    line = program.state.current
    wanted = program.state.optional_stop
    if isinstance(line, Line) and over_a_wire(line):
        wanted = line.optional
    if step.name == "M1" and not wanted:
        return True
    program.state.paused = True
    return program.go_next(Paused())


def end(program: Program, step: ask.ProgramEnd, now: int) -> bool:
    if program.arc is not None:
        program.arc.program_ended(now)
    program.hooks.switch_off(now)
    program.hooks.tell(step, now)
    return program.go_next(ArcWait(False)) if program.options.arc_wait else True


def go_home(program: Program, step: HomingMove, now: int) -> bool:
    q = program.queue.end.copy()
    for axis in step.axes:
        q[axis] = program.options.home[axis] * DEG
    a, b, c, u, v, w = q.tolist()
    program.state.axes = None
    return program.move(ask.JointMove((a, b, c, u, v, w)), now, program.options.homing_share)


def note_home(program: Program, step: Homed, now: int) -> bool:
    program.state.homed = sorted({*program.state.homed, *step.axes})
    return True


def begin_probing(program: Program, step: ask.Probe, now: int) -> bool:
    """Where the move will end is known before it begins; without a probe it is run to its end."""
    probe, line = program.probe, program.state.current
    over_wire, q = over_a_wire(line), program.queue.end
    probed = Probed(step.required, over_wire)
    if probe is None:
        return program.go_next(ProbeMove(step.move), Rest(), probed)
    program.state.axes = None
    if probe.touches(q) == step.toward:
        return program.go_next(replace(probed, early=True))
    path = program.mover.path(step.move, q, line=program.number, exact=False)
    until = None if isinstance(path, Refused) else probe.answers(path, toward=step.toward)
    probed = replace(probed, touched=until is not None)
    return program.go_next(ProbeMove(step.move, until), Rest(), probed)


def end_probing(program: Program, step: Probed, now: int) -> bool:
    return program.unless(program.hooks.probed(step, now), now)


AT_REST: dict[type, Callable[[Program, Any, int], bool]] = {
    ask.Dwell: dwell,
    ask.WaitInput: wait_for_input,
    ask.Spindle: spin,
    ask.Coolant: cool,
    ask.ToolChange: change_tool,
    ask.ProgramPause: hold_up,
    ask.ProgramEnd: end,
    ArcWait: wait_for_arc,
    HomingMove: go_home,
    ask.Probe: begin_probing,
    Homed: note_home,
    Probed: end_probing,
    Paused: lambda program, step, now: not program.state.paused,
    Rest: lambda program, step, now: True,
}
