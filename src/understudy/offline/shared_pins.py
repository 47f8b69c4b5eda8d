"""Handshakes between programs of several robots, walked one after the other.

A program is walked with the edges that its inputs get from the other robots, and gives the edges of
its own outputs. All programs are walked again until no edge changes: the first edges are right from
the beginning, and each round makes at least the next handshake right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from understudy.errors import ConfigError
from understudy.gcode.requests import WaitInput
from understudy.offline.walk import Event
from understudy.ports.io import PinChange
from understudy.simulation.io.robot_links import RobotWire
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.scenario import Config as Rules
from understudy.units import seconds

MOST_ROUNDS = 1000
MOST_EDGES = 100_000


class PinEdge(NamedTuple):
    """An edge of an output, or of an input; time in ns."""

    at: int
    pin: int
    value: bool


@dataclass(frozen=True, slots=True)
class InputWait:
    """An M66 of a program on an input that another robot drives. Times in ns."""

    line: int
    request: WaitInput
    began: int
    ended: int
    timed_out: bool


@dataclass
class SharedPins:
    """What a program shares with the programs of other robots: a component on its time axis.

    `inputs`: edges that the others bring; `pins`: the inputs that they drive. `outputs` and `waits`
    are filled by the walk.
    """

    pins: frozenset[int]
    inputs: Sequence[PinEdge] = ()
    outputs: list[PinEdge] = field(default_factory=list)
    waits: list[InputWait] = field(default_factory=list)
    _io: VirtualIO | None = None
    _next: int = 0

    def join(self, io: VirtualIO) -> None:
        self._io = io
        for pin in sorted(self.pins):
            io.own(pin)
        io.on_change(self._changed)

    def next_wake(self) -> int | None:
        return self.inputs[self._next].at if self._next < len(self.inputs) else None

    def wake(self, now: int) -> None:
        while self._next < len(self.inputs) and self.inputs[self._next].at <= now:
            edge = self.inputs[self._next]
            self._next += 1
            assert self._io is not None
            self._io.drive(edge.pin, edge.value, now)

    def waited(self, wait: InputWait) -> None:
        if wait.request.kind == "digital" and wait.request.pin in self.pins:
            self.waits.append(wait)

    def _changed(self, change: PinChange) -> None:
        if change.bank == "DO" and len(self.outputs) < MOST_EDGES:
            self.outputs.append(PinEdge(change.at, change.pin, change.value))


@runtime_checkable
class SharesPins(Protocol):
    """An `OfflineRobot` whose inputs other robots of the cell can drive."""

    def pins(self) -> VirtualIO:
        """Its pins, to read numbers and names."""
        ...

    def events_with(
        self, text: str | bytes, dialect: str, rules: Rules, shared: SharedPins
    ) -> Iterator[Event]:
        """The events of a program that shares pins with those of other robots."""
        ...


Walk = Callable[[SharedPins], list[Event]]


def walk_together(
    walks: Mapping[str, Walk], wires: Sequence[RobotWire]
) -> tuple[dict[str, list[Event]], dict[str, SharedPins]]:
    """The events of programs that wait for each other, and what they shared."""
    driven = {name: frozenset(wire.to for wire in wires if wire.target == name) for name in walks}
    shared: dict[str, SharedPins] = {}
    events: dict[str, list[Event]] = {}
    inputs: dict[str, tuple[PinEdge, ...]] = dict.fromkeys(walks, ())
    due = set(walks)
    for _ in range(MOST_ROUNDS):
        for name in due:
            shared[name] = SharedPins(driven[name], inputs[name])
            events[name] = walks[name](shared[name])
        brought = {name: _brought(name, wires, shared) for name in walks}
        due = {name for name in walks if brought[name] != inputs[name]}
        inputs = brought
        if not due:
            return events, shared
    waits = ", ".join(sorted(due))
    raise ConfigError(
        f"the handshakes of {waits} did not settle after {MOST_ROUNDS} rounds",
        key="links",
        allowed="programs with fewer handshakes, or without a ring of signals",
    )


def _brought(
    name: str, wires: Sequence[RobotWire], shared: Mapping[str, SharedPins]
) -> tuple[PinEdge, ...]:
    """The edges that the other programs bring to the inputs of one."""
    found = [
        PinEdge(edge.at + wire.delay, wire.to, edge.value)
        for wire in wires
        if wire.target == name and wire.source in shared
        for edge in shared[wire.source].outputs
        if edge.pin == wire.pin
    ]
    return tuple(sorted(found))


# ── which timings a handshake allows ──────────────────────────────────────────────────────────────


class Handshake(NamedTuple):
    """Robot `waits` passes its wait at ``passed`` of its plan, not before robot `signals` is at
    ``signal`` of its own; s."""

    waits: str
    line: int
    passed: float
    signals: str
    signal: float


def handshakes(wires: Sequence[RobotWire], shared: Mapping[str, SharedPins]) -> list[Handshake]:
    """What every timing keeps to: a wait is passed only after the edge that can end it.

    The waits of one robot on one input see the edges of the other robot in their order. So each
    wait ends at the earliest level or edge that fits, not before the one of the wait before.
    """
    found: list[Handshake] = []
    for wire in wires:
        waiting, signalling = shared.get(wire.target), shared.get(wire.source)
        if waiting is None or signalling is None:
            continue
        edges = [each for each in signalling.outputs if each.pin == wire.pin]
        since = 0
        for wait in waiting.waits:
            if wait.request.pin != wire.to or wait.request.mode == "read":
                continue
            if wait.timed_out:
                break  # its program has gone on without the signal
            since = _earliest(wait.request, edges, since)
            if since > 0:
                passed = seconds(wait.ended)
                found.append(Handshake(wire.target, wait.line, passed, wire.source, seconds(since)))
    return found


def _earliest(request: WaitInput, edges: Sequence[PinEdge], since: int) -> int:
    """The earliest time, from ``since`` on, at which the level or edge of a wait is there."""
    wanted = request.mode in ("high", "rise")
    if request.mode in ("high", "low"):
        level = False
        for edge in edges:
            if edge.at <= since:
                level = edge.value
        if level == wanted:
            return since
    for edge in edges:
        if edge.at >= since and edge.value == wanted:
            return edge.at
    return since
