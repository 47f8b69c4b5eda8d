"""Steps of a line that do not wait for the motion before them, and what they do.

Each is given the program that runs it; true: it is done.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from understudy.gcode import requests as ask
from understudy.simulation.program.options import ControllerOptions, ProgramHooks
from understudy.simulation.program.steps import (
    MOVES,
    Homed,
    Line,
    ProbeMove,
    Rest,
    State,
    Step,
    Tagged,
)


class Program(Protocol):
    """A program under way, as its steps see it."""

    state: State
    options: ControllerOptions
    hooks: ProgramHooks

    @property
    def number(self) -> int: ...

    @property
    def own_dialect(self) -> bool: ...

    def go_next(self, *steps: Step) -> bool: ...


def choose_path_mode(program: Program, step: ask.PathMode, now: int) -> bool:
    program.state.exact = program.own_dialect and step.name != "G64"
    return True


def go_to_stored(program: Program, step: ask.GoHome, now: int) -> bool:
    """Of an arm G28 is its home: it is homed when it stands there."""
    if not (program.own_dialect and step.name == "G28"):
        return program.go_next(step.move)
    return program.go_next(step.move, Rest(), Homed(tuple(range(len(program.options.home)))))


def announce(program: Program, message: ask.Message, now: int) -> bool:
    """At once, or when the motion of the same line begins."""
    if any(isinstance(step, MOVES) for step in program.state.todo):
        program.state.tagged.append(Tagged(program.number, message))
    else:
        program.hooks.tell(message, now)
    return True


def allow_overrides(program: Program, step: ask.Overrides, now: int) -> bool:
    """The feed's at once, the others when the motion so far has ended."""
    program.hooks.tell(step, now)
    return program.go_next(Rest(), replace(step, rests=False)) if step.rests else True


def is_overridden(program: Program) -> bool:
    """Whether the feed override acts on the move at hand."""
    state = program.state
    if isinstance(state.current, Line) and state.current.how == "jog":
        return False
    probes = isinstance(state.todo[0], ProbeMove)
    return program.options.probes_overridden if probes else state.modal.feed_override


AT_ONCE: dict[type, Callable[[Program, Any, int], bool]] = {
    ask.PathMode: choose_path_mode,
    ask.GoHome: go_to_stored,
    ask.Message: announce,
    ask.Overrides: allow_overrides,
}
