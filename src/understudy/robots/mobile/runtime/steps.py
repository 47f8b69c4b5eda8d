"""The steps of a mission or of a route, carried out one after the other.

MOVE and TURN are MOVE_TO_POSE commands, each action of ARRIVE_ACTIONS is an EXECUTE_ACTION command,
and WAIT needs no command. While the robot is held (TRAFFIC_HOLD, MANUAL_HOLD) no command begins;
another safety stop refuses the next command and so ends the work.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.runtime.commands import COMMANDS, read_parameters
from understudy.robots.mobile.runtime.messages import NotNegative, Pose, RouteStep
from understudy.robots.mobile.runtime.modules import RobotContext
from understudy.robots.mobile.runtime.outbox import Time
from understudy.robots.mobile.runtime.traffic import NodeHold
from understudy.units import nanoseconds, seconds

STEPS_AT_ONCE = 10
"""Steps that end at one tick; those that take no time go on at the next tick."""
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
HOLDS = ("TRAFFIC_HOLD", "MANUAL_HOLD")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "MOVE": ("x", "y"),
    "TURN": ("yaw",),
    "WAIT": ("seconds",),
    "ARRIVE_ACTIONS": ("actions",),
}
"""The keys that each type of step must have."""


class Order(NamedTuple):
    command_type: CommandType
    parameters: dict[str, Any]


def check_steps(steps: Sequence[RouteStep]) -> Refused | None:
    """The first thing that is wrong with some steps."""
    for number, step in enumerate(steps):
        for key in NEEDED[step.type]:
            if getattr(step, key) is None:
                return Refused(f"steps.{number} ({step.type}): {key} is missing")
        for each in step.actions or ():
            problem = read_parameters(COMMANDS["EXECUTE_ACTION"], each)
            if isinstance(problem, Refused):
                return Refused(f"steps.{number} ({step.type}): {problem.reason}")
    return None


def orders_of(step: RouteStep, pose: Pose) -> list[Order]:
    """The commands of a step; ``pose``: of the robot, which TURN keeps."""
    if step.type == "ARRIVE_ACTIONS":
        return [Order("EXECUTE_ACTION", each) for each in step.actions or ()]
    if step.type == "WAIT":
        return []
    x = pose.x if step.x is None else step.x
    y = pose.y if step.y is None else step.y
    yaw = {} if step.yaw is None else {"yaw": step.yaw}
    return [Order("MOVE_TO_POSE", {"x": x, "y": y} | yaw)]


class StepsState(Struct, forbid_unknown_fields=True):
    """Snapshot. ``done``: steps that are done. ``order``: commands of the step that are done.
    ``tag``: of the command under way; ``over``: it has ended, with ``problem``."""

    steps: list[RouteStep] = field(default_factory=list)
    route_id: str | None = None
    eta_seconds: NotNegative | None = None
    began: Time = 0
    done: Count = 0
    order: Count = 0
    tag: str = ""
    over: bool = False
    problem: str | None = None
    until: Time | None = None
    """When the WAIT ends that has begun."""
    node_id: str | None = None
    serial: Count = 0

    def __post_init__(self) -> None:
        wrong = check_steps(self.steps)
        if wrong is not None or self.done > len(self.steps):
            raise ValueError(wrong.reason if wrong else f"done: {self.done} of {len(self.steps)}")


class Steps:
    """Carries out steps. ``step_done`` is called after each of them."""

    def __init__(
        self, context: RobotContext, hold: NodeHold, step_done: Callable[[int], None]
    ) -> None:
        self._context = context
        self._hold = hold
        self._step_done = step_done
        self._state = StepsState()

    @property
    def route_id(self) -> str | None:
        return self._state.route_id

    @property
    def node_id(self) -> str | None:
        return self._state.node_id

    @property
    def counted(self) -> tuple[int, int]:
        """Steps that are done, and all of them."""
        return self._state.done, len(self._state.steps)

    def way_left(self) -> list[tuple[float, float]]:
        """The places that are still to be reached."""
        left = self._state.steps[self._state.done :]
        return [(step.x, step.y) for step in left if step.x is not None and step.y is not None]

    def eta_seconds(self, now: int) -> float | None:
        """What is left of the time that the route takes, as its planner estimated it."""
        total = self._state.eta_seconds
        return None if total is None else max(0.0, total - seconds(now - self._state.began))

    def begin(
        self, steps: Sequence[RouteStep], now: int, *, route_id: str | None = None,
        eta_seconds: float | None = None,
    ) -> None:  # fmt: skip
        node = None if route_id else self._state.node_id
        self._state = StepsState(
            list(steps), route_id, eta_seconds, began=now, node_id=node, serial=self._state.serial
        )

    def end(self) -> None:
        """Forgets the steps; the node stays the one that was reached last."""
        self._state = StepsState(node_id=self._state.node_id, serial=self._state.serial)

    def ended(self, tag: str, outcome: Refused | None) -> None:
        if tag == self._state.tag:
            self._state.over = True
            self._state.problem = outcome.reason if outcome else None

    def next_wake(self) -> int | None:
        if self._state.tag:
            return 0 if self._state.over else None
        return self._state.until or 0

    def advance(self, now: int) -> Refused | bool:
        """Goes on as far as possible; returns whether all steps are done, or why one failed."""
        state = self._state
        if state.tag:
            if not state.over:
                return False
            if state.problem is not None:
                return Refused(state.problem)
            state.tag, state.over = "", False
            state.order += 1
        for _ in range(STEPS_AT_ONCE):
            if state.done == len(state.steps):
                return True
            step = state.steps[state.done]
            orders = orders_of(step, self._context.pose)
            if state.order < len(orders):
                return self._give(orders[state.order], now) or False
            if not self._has_waited(step, now):
                return False
            self._count(step, now)
        return False

    # ── snapshot ──

    def save(self) -> StepsState:
        return replace(self._state)

    def load(self, saved: Any) -> None:
        self._state = msgspec.convert(saved, StepsState)

    # ── inside ──

    def _give(self, order: Order, now: int) -> Refused | None:
        if self._hold.holds or self._context.stop_reason in HOLDS:
            return None
        self._state.serial += 1
        self._state.tag = f"step:{self._state.serial}"
        refused = self._context.command(*order, self._state.tag, now)
        if refused is not None:
            self._state.tag = ""
        return refused

    def _has_waited(self, step: RouteStep, now: int) -> bool:
        if step.type != "WAIT" or step.seconds is None:
            return True
        if self._state.until is None:
            self._state.until = now + nanoseconds(step.seconds)
        return now >= self._state.until

    def _count(self, step: RouteStep, now: int) -> None:
        state = self._state
        state.done, state.order, state.until = state.done + 1, 0, None
        if step.node_id is not None:
            state.node_id = step.node_id
            self._hold.reached(step.node_id, now)
        self._step_done(now)
