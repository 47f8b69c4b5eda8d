"""Links between robots: an output of one robot sets an input of another one.

Every edge arrives after the delay of its link, so that robots that signal each other always let
simulated time pass.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.io import PinChange
from understudy.simulation.io.virtual_io import LONGEST_DELAY_MS, Number, VirtualIO
from understudy.units import ms_to_ns

SHORTEST_MS = 1.0
MOST_LINKS = 256
MOST_EDGES = 10_000
"""Edges that are on their way at the same time, but for one of each input."""


class RobotLink(Struct, frozen=True, forbid_unknown_fields=True):
    """An output of a robot sets an input of another one: `left.DO4`, `left.GAS` or `left.4`."""

    output: Annotated[str, Meta(max_length=256)]
    input: Annotated[str, Meta(max_length=256)]
    delay_ms: Annotated[float, Meta(ge=SHORTEST_MS, le=LONGEST_DELAY_MS)] = SHORTEST_MS


class RobotWire(Struct, frozen=True):
    """A link by robots and numbers of pins; delay in ns."""

    source: str
    pin: Number
    target: str
    to: Number
    delay: int


def robot_wires(links: Sequence[RobotLink], pins: Mapping[str, Any]) -> tuple[RobotWire, ...]:
    """The links of a cell; ``pins``: the `VirtualIO` of each robot that has one."""
    wires: list[RobotWire] = []
    for at, link in enumerate(links):
        source, pin = _end(link.output, f"links.{at}.output", pins, output=True)
        target, to = _end(link.input, f"links.{at}.input", pins, output=False)
        if source == target:
            raise ConfigError(
                "a link within one robot belongs to its own section",
                key=f"links.{at}.input",
                value=link.input,
                allowed=f"an input of another robot, or robots.{source}.io.links",
            )
        owner = pins[target].owner(to)
        taken = any((each.target, each.to) == (target, to) for each in wires)
        if owner or taken:
            raise ConfigError(
                f"this input follows {f'a {owner}' if owner else 'another link'} already",
                key=f"links.{at}.input",
                value=link.input,
                allowed="an input that nothing else drives",
            )
        wires.append(RobotWire(source, pin, target, to, ms_to_ns(link.delay_ms)))
    return tuple(wires)


def _end(named: str, key: str, pins: Mapping[str, Any], *, output: bool) -> tuple[str, int]:
    """The robot and the number of a pin."""
    robot, _, pin = named.rpartition(".")
    if robot not in pins:
        raise unknown("robot with pins", robot or named, pins, key=key)
    bank = pins[robot].do if output else pins[robot].di
    number = bank.number(int(pin) if pin.isdecimal() else pin)
    if isinstance(number, Refused):
        raise ConfigError(number.reason, key=key, value=named)
    return robot, number


class Edge(Struct, frozen=True, order=True):
    """An edge on its way to an input."""

    due: int
    number: int
    target: str
    pin: Number
    value: bool


class State(Struct):
    """The state in a snapshot: edges that have not arrived."""

    waiting: list[Edge] = []
    count: int = 0


class Status(Struct, frozen=True):
    """Number of edges on their way, and of all edges so far."""

    waiting: int
    edges: int


class RobotLinks:
    """A component of a cell with links between robots."""

    def __init__(self, links: Sequence[RobotLink], pins: Mapping[str, VirtualIO]) -> None:
        self._pins = pins
        self._wires = robot_wires(links, pins)
        self.state = State()
        for wire in self._wires:
            pins[wire.target].own(wire.to)
        for robot in dict.fromkeys(wire.source for wire in self._wires):
            self._listen(robot)

    def next_wake(self) -> int | None:
        return self.state.waiting[0].due if self.state.waiting else None

    def wake(self, now: int) -> None:
        waiting = self.state.waiting
        while waiting and waiting[0].due <= now:
            edge = waiting.pop(0)
            self._pins[edge.target].drive(edge.pin, edge.value, now)

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Status:
        return Status(len(self.state.waiting), self.state.count)

    def _listen(self, robot: str) -> None:
        wires = [wire for wire in self._wires if wire.source == robot]

        def changed(change: PinChange) -> None:
            for wire in wires:
                if change.bank == "DO" and change.pin == wire.pin:
                    self._send(wire, change.value, change.at)

        self._pins[robot].on_change(changed)

    def _send(self, wire: RobotWire, value: bool, now: int) -> None:
        state = self.state
        if len(state.waiting) >= MOST_EDGES:
            # Edges of one input alternate, so its last one and this one cancel each other out.
            own = (
                e for e in reversed(state.waiting) if (e.target, e.pin) == (wire.target, wire.to)
            )
            if (last := next(own, None)) is not None:
                state.waiting.remove(last)
                return
        state.count += 1
        insort(state.waiting, Edge(now + wire.delay, state.count, wire.target, wire.to, value))
