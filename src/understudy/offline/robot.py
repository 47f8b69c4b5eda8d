"""A robot of a cell as programs are checked on it, without a running cell.

Each robot's package offers `offline_robot(config, name)`; the kinds are looked up in the registry.
`OfflinePins` has the pins, the devices and the scenario rules of the cell for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from understudy.agenda import Wakes, advance, earliest
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused, unknown
from understudy.gcode import Modal
from understudy.gcode.requests import Output, WaitInput
from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Limits
from understudy.motion.plan import Plan
from understudy.motion.tool_path import tip_way
from understudy.offline.setup import Setup
from understudy.offline.walk import Event
from understudy.ports.io import PinChange
from understudy.registry import module_of
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.runner import (
    TIMED_OUT,
    RunnerState,
    input_wait_is_over,
    set_output,
)
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import When
from understudy.simulation.workpieces.workpieces import WorkpieceStage
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.model.environment import CollisionConfig, Environment
from understudy.space.model.shapes import CollisionObject
from understudy.space.transform import Array
from understudy.units import MINUTE, MM, nanoseconds, seconds

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


def length_of(tips: Floats) -> float:
    """Length in metres of the polyline through the points."""
    return float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())


# ── what programs are judged by: an arm with a tool in its environment, or a machine ──────────────


EMPTY = Environment()


@dataclass(frozen=True, slots=True)
class AxisUnit:
    """Display units of an axis: the size and name of its unit, and of the time."""

    unit: float
    name: str
    seconds: float
    per: str


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm with one tool. `foot`: pose of its base in the cell. `detector`, `sweeper`: collision
    checks; no sweeper if contacts are not checked. `stopping`: deceleration of independent joint
    braking, if it is not the joint's limit. `tool`: number of the tool; `tool_shapes`: its shapes
    in the frame of the flange."""

    chain: Chain
    limits: Limits
    frames: Frames
    foot: Array
    detector: CollisionDetector
    dynamics: Dynamics | None = None
    sweeper: Sweeper | None = None
    stopping: Floats | None = None
    tool: int = 0
    tool_shapes: tuple[CollisionObject, ...] = ()
    limits_feed: bool = False

    @property
    def braking(self) -> Floats:
        """Deceleration of each joint in a stop off the path."""
        return self.limits.acceleration if self.stopping is None else self.stopping

    @property
    def has_shapes(self) -> bool:
        """Whether a link that moves has a shape that can touch anything."""
        return any(body.collision for body in self.chain.bodies[1:])

    @property
    def names(self) -> tuple[str, ...]:
        return self.chain.names

    @property
    def range(self) -> tuple[Floats, Floats]:
        return self.chain.lower, self.chain.upper

    def unit_of(self, joint: int) -> AxisUnit:
        return AxisUnit(float(self.chain.units[joint]), self.chain.unit_names[joint], 1.0, "s")

    def slowed_text(self, speed: float, joint: int) -> str:
        """What the controller does where a joint is too slow; ``speed`` of the tool in m/s."""
        return f"the controller slows down to {speed / MM:.3g} mm/s here"

    def tips(self, q: Floats) -> Floats:
        """(n, 3): positions of the tool, in metres."""
        return self.chain.tips(q, self.frames)

    def way(self, plan: Plan, times: Floats) -> float:
        """Metres along the polyline through the tool at each time."""
        arm = (self.chain.rest, self.chain.slides, self.chain.tip_of(self.frames))
        return float(tip_way(times, *plan.columns, arm))

    def skeleton(self, q: Floats) -> Floats:
        """(n, points, 3): positions of the axes and the tool tip, in metres, in the cell."""
        axes = self.chain.axes_of(q)[:, :, :3, 3]
        tips = self.chain.flanges(q, Frames(np.eye(4), self.frames.tool))
        points = np.concatenate([axes, tips[:, None, :3, 3]], axis=1)
        return np.asarray(points @ self.foot[:3, :3].T + self.foot[:3, 3])


@dataclass(frozen=True, eq=False)
class Machine:
    """Axes without a body, in mm and deg: no collision and no torque checks.

    `range`: the travel that its firmware checks. `limits_feed`: the firmware limits the feed of a
    line to what the axes can do, as users of such machines expect.
    """

    names: tuple[str, ...]
    limits: Limits
    range: tuple[Floats, Floats]
    rotary: tuple[bool, ...]
    dynamics: None = None
    sweeper: None = None
    has_shapes: bool = False
    tool: int = 0
    limits_feed: bool = True

    @property
    def braking(self) -> Floats:
        return self.limits.acceleration

    def unit_of(self, axis: int) -> AxisUnit:
        return AxisUnit(1.0, "deg" if self.rotary[axis] else "mm", MINUTE, "min")

    def slowed_text(self, speed: float, axis: int) -> str:
        """What the firmware does where an axis is too slow; ``speed`` along the path per second."""
        unit = self.unit_of(axis)
        return f"the firmware runs the line at {speed * unit.seconds:.0f} {unit.name}/{unit.per}"

    def tips(self, q: Floats) -> Floats:
        return q[:, :3] * MM

    def way(self, plan: Plan, times: Floats) -> float:
        """Metres along the polyline through the tool at each time."""
        return length_of(self.tips(plan.positions(times)))

    def skeleton(self, q: Floats) -> Floats:
        return self.tips(q)[:, None]


@dataclass(frozen=True, eq=False)
class Subject:
    """A program on a robot of a cell. `arm(n)`: what moves, with tool n. `notes`: notes of every
    report on this robot. `numbered`: refusals carry the numbers of a firmware. `start`: joints and
    tool before the first line, if contacts are checked."""

    program: str
    cell: str
    robot: str
    arm: Callable[[int], Arm | Machine]
    environment: Environment = EMPTY
    notes: tuple[str, ...] = ()
    numbered: bool = False
    start: tuple[Floats, int] | None = None


# ── robots of a cell ──────────────────────────────────────────────────────────────────────────────


NO_RULES = Rules()


class OfflineRobot(Protocol):
    """What `validate`, `cycle-time` and `reach` ask of a robot."""

    has_body: bool
    """It has links that reach somewhere and can touch something."""
    obeys_rules: bool
    """Scenario rules act on its programs."""

    def subject(self, program: str) -> Subject:
        """What programs are judged by: model, limits, environment, notes of the report."""
        ...

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        """What happens in a program, in order."""
        ...

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> Setup | None:
        """What G-code is walked on; None for a robot with a language of its own."""
        ...


@runtime_checkable
class MovesWorkpieces(Protocol):
    """A robot whose jobs move the parts of the cell."""

    def arm_at(self, stage: WorkpieceStage, tool: int) -> Arm:
        """What moves, with a tool and the held part, among the parts that rest around it."""
        ...


def offline_robot(config: CellConfig, robot: str) -> OfflineRobot:
    found: OfflineRobot = module_of("robots", config.robots[robot].kind).offline_robot(
        config, robot
    )
    return found


def can_be_checked(config: CellConfig, robot: str) -> bool:
    return hasattr(module_of("robots", config.robots[robot].kind), "offline_robot")


def chosen_robot(config: CellConfig, robot: str, *, with_body: bool = False) -> str:
    """The robot that is meant: the named one; else the first with a body, or else the first."""
    able = [name for name in config.robots if can_be_checked(config, name)]
    bodies = [name for name in able if offline_robot(config, name).has_body]
    if with_body:
        able = bodies
    if not able:
        what = "has a body" if with_body else "runs programs"
        raise ConfigError(f"no robot of the cell {config.name} {what}")
    if robot and robot not in able:
        raise unknown("robot that runs programs", robot, able)
    return robot or (bodies or able)[0]


def refuse_dialect(dialect: str, kind: str) -> None:
    """Raises a ConfigError if a dialect is asked of a robot with a language of its own."""
    if dialect:
        allowed = f"none: a robot of kind {kind} has a language of its own"
        raise ConfigError("--dialect", value=dialect, allowed=allowed)


def collision_notes(
    detector: CollisionDetector, rules: CollisionConfig, environment: Environment
) -> tuple[str, ...]:
    """Notes of a report: which collision checks this cell leaves out."""
    if not rules.enable:
        return ("collision checks are off in this cell: no clearance is proven",)
    notes = []
    links = () if detector.chain is None else detector.chain.bodies[1:]
    bare = [link.name for link in links if not link.collision]
    if len(bare) == len(links):
        notes.append("no link of this robot has a collision shape: no clearance is proven")
    elif bare:
        notes.append(f"links without a collision shape are not checked: {', '.join(bare)}")
    listed = rules.check_self_collision and rules.self_collision_pairs != "auto"
    if listed and (left := detector.unproven_pairs()):
        pairs = ", ".join(f"{a}-{b}" for a, b in left)
        notes.append(f"self_collision_pairs does not list, so these links are not checked: {pairs}")
    if not rules.check_self_collision:
        notes.append("check_self_collision is off in this cell: links may touch each other")
    if not rules.check_environment and environment.everything():
        notes.append("check_environment is off in this cell: what stands around is not looked at")
    return tuple(notes)
