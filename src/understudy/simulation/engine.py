"""SimulationEngine: the whole cell started, stopped, paused, reset; and what it has done so far.

Time itself is not here: scale and pause are asked of the cell's clock_state, which the edge obeys.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus, Injectable, Part, Tally
from understudy.simulation.clock_state import ClockState
from understudy.units import MM, seconds

EngineState = Literal["STOPPED", "RUNNING", "PAUSED", "ERROR"]


@runtime_checkable
class Controller(Protocol):
    """What the engine asks of a controller."""

    def stop(self, now: int) -> Refused | None: ...

    def reset(self, now: int) -> Refused | None: ...

    def status(self, now: int) -> ControllerStatus: ...

    def tally(self, now: int) -> Tally: ...


@runtime_checkable
class Tallying(Protocol):
    """Whoever counts what it does."""

    def tally(self, now: int) -> Tally: ...


@runtime_checkable
class Touching(Protocol):
    """What the engine asks of the watch over a robot's contacts."""

    @property
    def stopped(self) -> bool: ...

    def clear(self) -> None: ...

    def release(self) -> None: ...


class SimulationMetrics(Struct, frozen=True):
    """What the cell has done; real time and the ratio are added at the edge."""

    simulation_time_s: float
    gcode_executed: int
    collisions_detected: int
    total_distance_mm: float


class Status(Struct, frozen=True):
    """The engine at a glance."""

    state: EngineState
    time_scale: float
    metrics: SimulationMetrics


class Saved(Struct):
    """What a snapshot holds of the engine. `since`: the tallies at the last reset."""

    stopped: bool
    since: dict[str, Tally]


class SimulationEngine:
    """A `Part` without a will of its own."""

    def __init__(
        self, parts: Mapping[str, Part], places: Mapping[str, Injectable], clock_state: ClockState
    ):
        self._controllers = {n: part for n, part in parts.items() if isinstance(part, Controller)}
        self._tallying = {n: part for n, part in parts.items() if isinstance(part, Tallying)}
        self._watches = [part for part in parts.values() if isinstance(part, Touching)]
        self._places = places
        self._tempo = clock_state
        self._stopped = False
        self._since: dict[str, Tally] = {}

    # ── control ──

    def start(self, now: int) -> None:
        self._stopped = False
        self._tempo.resume()

    def stop(self, now: int) -> None:
        """Every controller brakes and forgets its program."""
        for controller in self._controllers.values():
            controller.stop(now)
        self._stopped = True

    def pause(self, now: int) -> None:
        self._tempo.pause()

    def resume(self, now: int) -> None:
        self._tempo.resume()

    def reset(self, now: int) -> None:
        """Clear emergency stops, errors and faults, and count from zero again."""
        for place in self._places.values():
            if "emergency_release" in place.faults():
                place.inject("emergency_release", {}, now)
        for controller in self._controllers.values():
            controller.reset(now)
        self._since = {name: part.tally(now) for name, part in self._tallying.items()}
        self.start(now)

    def clear_collisions(self, now: int) -> None:
        """What is touched now is not shown any more."""
        for watch in self._watches:
            watch.clear()

    def emergency_stop(self, now: int) -> None:
        """The cell's own button: every robot stops."""
        for place in self._places.values():
            if "emergency_stop" in place.faults():
                place.inject("emergency_stop", {}, now)

    def set_time_scale(self, scale: float) -> Refused | None:
        return self._tempo.set_scale(scale)

    # ── what it tells ──

    def state(self, now: int) -> EngineState:
        stopped = any(watch.stopped for watch in self._watches)
        if stopped or any(part.status(now).error for part in self._controllers.values()):
            return "ERROR"
        if self._stopped:
            return "STOPPED"
        return "PAUSED" if self._tempo.running_rate == 0.0 else "RUNNING"

    def metrics(self, now: int) -> SimulationMetrics:
        tallies = {name: part.tally(now) for name, part in self._tallying.items()}
        pairs = [(tally, self._since.get(name, Tally())) for name, tally in tallies.items()]
        return SimulationMetrics(
            simulation_time_s=seconds(now),
            gcode_executed=sum(a.gcode_executed - b.gcode_executed for a, b in pairs),
            collisions_detected=sum(
                a.collisions_detected - b.collisions_detected for a, b in pairs
            ),
            total_distance_mm=sum(a.distance - b.distance for a, b in pairs) / MM,
        )

    # ── part ──

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Status:
        return Status(self.state(now), self._tempo.scale, self.metrics(now))

    def save(self) -> Saved:
        return Saved(self._stopped, self._since)

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self._stopped, self._since = saved.stopped, saved.since
