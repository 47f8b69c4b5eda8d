"""The fingers of an electric gripper: they move evenly and stop at a part.

A move is planned once: it ends at its goal or at the part between the fingers. Where they are is
computed from the plan.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper import Config
from understudy.devices.gripper.hardware import STANDARD_GRAVITY, Grasp, span_along
from understudy.devices.gripper.modbus.interface import Jaws, Opening
from understudy.ports.device import Mount
from understudy.ports.workpieces import WorkpieceReading
from understudy.units import MM, seconds, whole_ns

Rest = Literal["moving", "reached", "stopped", "blocked", "touching"]
TRANSITIONS: Mapping[tuple[Rest, str], Rest] = {
    **{(rest, "go"): "moving" for rest in ("moving", "reached", "stopped", "blocked")},
    ("touching", "open"): "moving",
    ("touching", "lost"): "moving",
    ("moving", "arrived"): "reached",
    ("moving", "part"): "touching",
    ("moving", "halt"): "stopped",
    ("moving", "obstacle"): "blocked",
}
"""`touching`: a part between the fingers has stopped them, and they press on it. `blocked`: an
obstacle has stopped them. An event without a row changes nothing."""
TOUCH = 1e-4
"""Metres: the fingers touch a part that is this much thinner than their opening."""


class FingerState(Struct):
    """A move from `start` to `end` since `begun`; `goal`: where the device wants to go.

    `lost`: a part was between the fingers since the last command, and is not there any more.
    """

    start: Opening
    end: Opening
    goal: Opening
    rest: Rest = "reached"
    speed: Annotated[float, Meta(gt=0.0, le=10.0)] = 1.0
    force: Annotated[float, Meta(ge=0.0, le=10_000.0)] = 0.0
    begun: int = 0
    closing: bool = False
    lost: bool = False


class Fingers:
    """Two fingers, `stroke` metres apart when they are open."""

    def __init__(self, stroke: float, jaws: Jaws) -> None:
        self._stroke = stroke
        self._jaws = jaws
        self._listeners: list[Callable[[int], None]] = []
        self.state = FingerState(stroke, stroke, stroke)

    def on_rest(self, listener: Callable[[int], None]) -> None:
        """Calls ``listener(now)`` when a move has ended."""
        self._listeners.append(listener)

    # ── readings ──

    def opening(self, now: int) -> float:
        state = self.state
        if state.rest != "moving":
            return state.end
        way = state.speed * seconds(max(now - state.begun, 0))
        return state.start + min(max(state.end - state.start, -way), way)

    @property
    def moving(self) -> bool:
        return self.state.rest == "moving"

    @property
    def touching(self) -> bool:
        return self.state.rest == "touching"

    def force(self) -> float:
        """What they press with, N."""
        return self.state.force if self.touching else 0.0

    # ── commands ──

    def go(self, goal: float, speed: float, force: float, now: int) -> None:
        """Moves to an opening; while they press on a part, closing changes the force only."""
        at = self.opening(now)
        goal = min(max(goal, 0.0), self._stroke)
        opens = goal > at
        self.state = msgspec.structs.replace(
            self.state, goal=goal, speed=speed, force=force, closing=goal < at, lost=False
        )
        if self.touching:
            if not opens:
                self._jaws.take(self._stroke, force, now)
                return
            self._jaws.let_go(now)
        self._plan("open" if self.touching else "go", now, at)

    def halt(self, now: int) -> None:
        """Stops where they are."""
        self._stop("halt", now)

    def block(self, now: int) -> None:
        """An obstacle stops them."""
        self._stop("obstacle", now)

    def drop(self, now: int) -> None:
        """The part slips out from between the fingers."""
        self._jaws.let_go(now)
        if self.touching:
            self._lose(now)

    def look(self, now: int) -> None:
        """Notices that the part between the fingers is gone: they go on to their goal."""
        if self.touching and not self._jaws.holds() and self._jaws.width(self._stroke, now) is None:
            self._lose(now)

    # ── time ──

    def next_wake(self) -> int | None:
        state = self.state
        if state.rest != "moving":
            return None
        return state.begun + whole_ns(abs(state.end - state.start) / state.speed)

    def wake(self, now: int) -> None:
        """Ends the move, if its part is there; without it the fingers go on."""
        state = self.state
        if state.rest != "moving":
            return
        if state.end == state.goal:
            self._rest("arrived", now)
        elif self._jaws.width(state.start + TOUCH, now) is not None:
            self._jaws.take(state.start + TOUCH, state.force, now)
            self._rest("part", now)
        else:
            self._plan("go", now, state.end)

    def restored(self) -> None:
        state = self.state
        if max(state.start, state.end, state.goal) > self._stroke:
            raise ValueError(f"an opening beyond the stroke of {self._stroke} m")

    # ── inside ──

    def _plan(self, event: str, now: int, at: float, *, empty: bool = False) -> None:
        """``empty``: nothing is between the fingers any more."""
        state = self.state
        state.start, state.begun = at, now
        state.end = state.goal
        state.rest = TRANSITIONS[state.rest, event]
        looks = state.goal < at and not empty
        width = self._jaws.width(at + TOUCH, now) if looks else None
        if width is not None and width > state.goal:
            state.end = min(width, at)
        if state.end == at:  # no way to go: what follows must not wait for a wake of this instant
            self.wake(now)

    def _lose(self, now: int) -> None:
        """The fingers close behind the part."""
        self.state.lost = True
        self._plan("lost", now, self.state.end, empty=True)

    def _stop(self, event: str, now: int) -> None:
        if self.moving:
            at = self.opening(now)
            self.state.start = self.state.end = at
            self._rest(event, now)

    def _rest(self, event: str, now: int) -> None:
        self.state.rest = TRANSITIONS[self.state.rest, event]
        for listener in self._listeners:
            listener(now)


class PartJaws:
    """`Jaws`: the tool point is in the middle between the finger pads."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._fingers = config.fingers
        self._grasp = Grasp(mount)
        self._fault_source = mount.fault_source

    def width(self, opening: float, now: int) -> float | None:
        found = self._between(opening, now)
        return None if found is None else found[1]

    def take(self, opening: float, force: float, now: int) -> bool:
        """The part is held if the friction at both fingers carries its weight."""
        found = self._between(opening, now)
        if self.holds() or found is None:
            return self.holds()
        part = found[0]
        if self._fault_source.draw_fault("grip_miss", self._name, now) is not None:
            return False
        if 2.0 * self._fingers.friction * force < part.mass * STANDARD_GRAVITY:
            return False
        self._grasp.take(part.name, now)
        return True

    def let_go(self, now: int) -> None:
        self._grasp.let_go(now)

    def holds(self) -> bool:
        return bool(self._grasp.held())

    def _between(self, opening: float, now: int) -> tuple[WorkpieceReading, float] | None:
        """The part that fits between fingers with this opening, and its width."""
        axis, tool = self._fingers.axis, self._grasp.tool(now)
        if tool is None:
            return None
        width, height = (size * MM for size in self._fingers.pad_mm)
        region = (opening, width, height) if axis == "x" else (width, opening, height)
        for part in self._grasp.found(region, now):
            span = span_along(tool, part, axis)
            if span.fits(opening):
                return part, span.width
        return None
