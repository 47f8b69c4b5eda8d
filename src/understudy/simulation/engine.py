"""SimulationEngine: starts, stops, pauses and resets the whole cell, and measures its work.

The engine stores only the fact `stopped`; pause and time scale belong to the cell's clock,
faults to robots and devices. Its state follows from these facts by the tables below.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from understudy.agenda import ClockState
from understudy.errors import Refused
from understudy.ports import Component, Injectable, Tally
from understudy.ports.device import CountsUse, Device
from understudy.ports.operation import Supervised
from understudy.units import MM, seconds

EngineState = Literal["STOPPED", "RUNNING", "PAUSED", "ERROR"]
Fact = Literal["failed", "stopped", "paused"]

STATES: Mapping[Fact, EngineState] = {"failed": "ERROR", "stopped": "STOPPED", "paused": "PAUSED"}
"""The state by the first fact that is true; RUNNING if none is."""

COMMANDS: Mapping[str, Mapping[Fact, bool]] = {
    "start": {"stopped": False, "paused": False},
    "stop": {"stopped": True},
    "pause": {"paused": True},
    "resume": {"paused": False},
    "reset": {"failed": False, "stopped": False, "paused": False},
}
"""The facts that each command sets."""


def state_of(facts: Mapping[Fact, bool]) -> EngineState:
    return next((state for fact, state in STATES.items() if facts.get(fact)), "RUNNING")


def transitions() -> dict[tuple[EngineState, str], EngineState]:
    """The state after each command and after an error, where it differs from the state before."""
    causes: dict[str, Mapping[Fact, bool]] = {**COMMANDS, "error": {"failed": True}}
    found: dict[tuple[EngineState, str], EngineState] = {}
    for fact, before in (*STATES.items(), (None, state_of({}))):
        facts: dict[Fact, bool] = {} if fact is None else {fact: True}
        for cause, change in causes.items():
            if (after := state_of({**facts, **change})) != before:
                found[before, cause] = after
    return found


class EmergencyStopOnly:
    """`Supervised` of a robot that does not implement it: stopped by its emergency stop."""

    def __init__(self, robot: Injectable) -> None:
        self._robot = robot

    def inhibit_motion(self, now: int) -> None:
        self._robot.inject("emergency_stop", {}, now)

    def permit_motion(self, now: int) -> None:
        """Does nothing: the robot may have been in emergency stop before, so a reset is needed."""

    def reset(self, now: int) -> None:
        self._robot.inject("emergency_release", {}, now)

    def fault(self, now: int) -> Refused | None:
        return None


def supervised(robot: Injectable) -> Supervised:
    return robot if isinstance(robot, Supervised) else EmergencyStopOnly(robot)


@runtime_checkable
class Tallying(Protocol):
    """A part with counters."""

    def tally(self, now: int) -> Tally: ...


@runtime_checkable
class WatchesContacts(Protocol):
    """The collision watch of a robot, as the engine sees it."""

    @property
    def stopped(self) -> bool: ...

    def clear(self) -> None: ...


class SimulationMetrics(Struct, frozen=True):
    """Metrics of the cell since the last reset; the operator adds real time and their ratio."""

    simulation_time_s: float
    gcode_executed: int
    collisions_detected: int
    total_distance_mm: float


class Status(Struct, frozen=True):
    """State, time scale and metrics."""

    state: EngineState
    time_scale: float
    metrics: SimulationMetrics


class Saved(Struct):
    """The state of the engine in a snapshot. `since`: the tallies at the last reset."""

    stopped: bool
    since: dict[str, Tally]


class SimulationEngine:
    """A `Component` that acts only when it is called."""

    def __init__(
        self,
        components: Mapping[str, Component],
        places: Mapping[str, Injectable],
        clock_state: ClockState,
    ):
        self._robots = [
            supervised(place) for place in places.values() if "emergency_stop" in place.faults()
        ]
        self._tallying = {
            n: component for n, component in components.items() if isinstance(component, Tallying)
        }
        self._watches = [
            component for component in components.values() if isinstance(component, WatchesContacts)
        ]
        self._devices = [
            component for component in components.values() if isinstance(component, Device)
        ]
        self._places = places
        self._clock = clock_state
        self._stopped = False
        self._since: dict[str, Tally] = {}

    # ── control ──

    def start(self, now: int) -> None:
        self._permit_motion(now)
        self._apply("start")

    def stop(self, now: int) -> None:
        """Every robot stops, drops its program and refuses motion until `start` or `reset`."""
        for robot in self._robots:
            robot.inhibit_motion(now)
        self._apply("stop")

    def pause(self, now: int) -> None:
        self._apply("pause")

    def resume(self, now: int) -> None:
        self._apply("resume")

    def reset(self, now: int) -> None:
        """Clears faults, emergency stops, errors, and what was forced or switched on pins; metrics
        count from zero again."""
        self._permit_motion(now)
        for robot in self._robots:
            robot.reset(now)
        for device in self._devices:
            device.reset(now)
            if isinstance(device, CountsUse):
                device.zero_counters(now)
        self._since = {name: component.tally(now) for name, component in self._tallying.items()}
        self._apply("reset")

    def _permit_motion(self, now: int) -> None:
        if self._stopped:
            for robot in self._robots:
                robot.permit_motion(now)

    def _apply(self, command: str) -> None:
        facts = COMMANDS[command]
        self._stopped = facts.get("stopped", self._stopped)
        if "paused" in facts:
            (self._clock.pause if facts["paused"] else self._clock.resume)()

    def clear_collisions(self, now: int) -> None:
        """Hides the contacts that exist now."""
        for watch in self._watches:
            watch.clear()

    def emergency_stop(self, now: int) -> None:
        """The emergency stop of the cell: every robot stops."""
        for place in self._places.values():
            if "emergency_stop" in place.faults():
                place.inject("emergency_stop", {}, now)

    def set_time_scale(self, scale: float) -> Refused | None:
        return self._clock.set_scale(scale)

    # ── readings ──

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called, and neither `start` nor `reset` since."""
        return self._stopped

    def state(self, now: int) -> EngineState:
        failed = (
            any(watch.stopped for watch in self._watches)
            or any(robot.fault(now) for robot in self._robots)
            or any(device.active_faults() for device in self._devices)
        )
        paused = self._clock.running_rate == 0.0
        return state_of({"failed": failed, "stopped": self._stopped, "paused": paused})

    def metrics(self, now: int) -> SimulationMetrics:
        tallies = {name: component.tally(now) for name, component in self._tallying.items()}
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

    def status(self, now: int) -> Status:
        return Status(self.state(now), self._clock.scale, self.metrics(now))

    def save(self) -> Saved:
        return Saved(self._stopped, self._since)

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self._stopped, self._since = saved.stopped, saved.since
