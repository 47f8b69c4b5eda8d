"""Pins, devices and scenario rules of a cell for the offline check."""

from collections.abc import Mapping, Sequence

from understudy.agenda import Wakes, advance, earliest
from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.requests import Output, WaitInput
from understudy.ports.io import PinChange
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.runner import (
    TIMED_OUT,
    RunnerState,
    input_wait_is_over,
    set_output,
)
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import When
from understudy.units import nanoseconds, seconds

MOST_EVENTS = 1000
"""Events that are kept between two calls of `take_events`."""


def rules_of(rules: Rules, places: Sequence[str]) -> Rules:
    """The rules that act on these places and are triggered there or by time alone."""
    kept = {
        name: rule
        for name, rule in rules.rules.items()
        if rule.on in places and (rule.when is None or _is_triggered(rule.when, places))
    }
    return Rules(kept)


def _pin(io: VirtualIO, fault: str, pin: float | str) -> int:
    """The number of a pin; -1 if there is none with this name, which the scenario refuses."""
    number = io.fault_pin(fault, pin) if isinstance(pin, str) else round(pin)
    return number if isinstance(number, int) else -1


def _is_triggered(when: When, places: Sequence[str]) -> bool:
    """Whether the check sees the trigger: it runs no commands."""
    return when.of in places and when.command is None


class OfflinePins:
    """The pins, devices and scenario rules of a cell, advanced to the times of a program."""

    def __init__(self, io: VirtualIO, rules: Rules, place: str) -> None:
        """``rules`` that act on the ``place`` of the pins may force them."""
        self.io = io
        self.now = 0
        self.events: list[tuple[int, str]] = []
        self._parts: list[Wakes] = [io]
        self._forced = {
            _pin(io, rule.fault, rule.parameters["pin"])
            for rule in rules.rules.values()
            if rule.on == place and "pin" in rule.parameters
        }
        self._waiting: tuple[WaitInput, RunnerState] | None = None
        io.on_change(self._pin_changed)

    def join(self, *parts: Wakes) -> None:
        """Adds parts on the same time axis, after the existing ones."""
        self._parts += parts

    def advance_to(self, now: int) -> None:
        advance(self._parts, now, self._settled)
        self._settled(now)

    def next_wake(self) -> int | None:
        return earliest(self._parts)

    def set_output(self, output: Output) -> Refused | None:
        return set_output(output, self.io, self.now)

    def wait(self, request: WaitInput) -> str:
        """Advances until an input wait is over; if it timed out, returns a remark."""
        state = RunnerState(Modal())
        deadline = self.now + nanoseconds(request.timeout)
        if not input_wait_is_over(request, state, self.io, self.now):
            self._waiting = request, state
            while self._waiting and not input_wait_is_over(request, state, self.io, self.now):
                at = self.next_wake()
                self.advance_to(deadline if at is None else min(at, deadline))
            self._waiting = None
        if state.result != TIMED_OUT:
            return ""
        moved = request.pin in self._forced or self.io.owner(request.pin) != ""
        said = f"input {request.pin} did not change within {request.timeout:g} s"
        return said if moved else f"{said}: no link, device or scenario rule of the cell changes it"

    def note(self, at: int, text: str) -> None:
        """Notes an event of a device or rule for the report."""
        if len(self.events) < MOST_EVENTS:
            self.events.append((at, text))

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        """Notes a fault that a scenario injects into the robot itself."""
        if fault != "emergency_release":
            self.note(now, f"the scenario injects {fault}: the program is cut off")
        return None

    def take_events(self) -> list[tuple[int, str]]:
        taken, self.events = self.events, []
        return taken

    def seconds(self) -> float:
        return seconds(self.now)

    def _pin_changed(self, change: PinChange) -> None:
        """Checks the wait at every change of its input, also at a pulse of zero length."""
        if change.bank == "DI" and self._waiting is not None:
            request, state = self._waiting
            if input_wait_is_over(request, state, self.io, change.at):
                self._waiting = None

    def _settled(self, at: int) -> None:
        self.now = max(self.now, at)
