"""Pins, devices and chance beside a robot that is only reckoned, on virtual time."""

from collections.abc import Mapping, Sequence

from understudy.agenda import Wakes, advance, earliest
from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.gcode import Modal, requests
from understudy.simulation.program.actions import TIMED_OUT, input_wait_is_over, set_output
from understudy.simulation.program.steps import State
from understudy.simulation.scenario import Config as Rules
from understudy.units import nanoseconds, seconds

OFTEN = 1000
"""So many events are kept between two questions."""


def of_places(rules: Rules, places: Sequence[str]) -> Rules:
    """The rules that act there, and are set off from there or by time alone."""
    kept = {
        name: rule
        for name, rule in rules.rules.items()
        if rule.on in places and (rule.when is None or rule.when.of in places)
    }
    return Rules(kept)


class Pinboard:
    """The cell's own pins and what moves them, brought to each moment at which a program looks."""

    def __init__(self, io: VirtualIO, rules: Rules, place: str) -> None:
        """``rules`` that act on the ``place`` of the pins may force them."""
        self.io = io
        self.now = 0
        self.events: list[tuple[int, str]] = []
        self._parts: list[Wakes] = [io]
        self._forced = {
            round(rule.parameters["pin"])
            for rule in rules.rules.values()
            if rule.on == place and "pin" in rule.parameters
        }

    def join(self, *parts: Wakes) -> None:
        """They live on the same time from now on, after those that are there already."""
        self._parts += parts

    def to(self, now: int) -> None:
        advance(self._parts, now, self._settled)
        self._settled(now)

    def next_wake(self) -> int | None:
        return earliest(self._parts)

    def throw(self, switch: requests.SetOutput | requests.SetAnalog) -> Refused | None:
        return set_output(switch, self.io, self.now)

    def wait(self, request: requests.WaitInput) -> str:
        """Lets time run until an input is met; the reason if it never is."""
        state = State(Modal())
        deadline = self.now + nanoseconds(request.timeout)
        while not input_wait_is_over(request, state, self.io, self.now):
            at = self.next_wake()
            self.to(deadline if at is None else min(at, deadline))
        if state.result != TIMED_OUT:
            return ""
        moved = request.pin in self._forced or self.io.owner(request.pin) != ""
        said = f"input {request.pin} did not come within {request.timeout:g} s"
        return said if moved else f"{said}: no link, device or scenario rule of the cell moves it"

    def note(self, at: int, said: str) -> None:
        """Something that happens by itself, and of which a report is to tell."""
        if len(self.events) < OFTEN:
            self.events.append((at, said))

    def cut_off(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        """`inject` of a robot: what a scenario does to it."""
        if fault != "emergency_release":
            self.note(now, f"the scenario brings about {fault}: the program is cut off")
        return None

    def take_events(self) -> list[tuple[int, str]]:
        taken, self.events = self.events, []
        return taken

    def seconds(self) -> float:
        return seconds(self.now)

    def _settled(self, at: int) -> None:
        self.now = max(self.now, at)
