"""The moving side of a controller: orders on their way, the program's motion, and jogging."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from numpy.typing import ArrayLike

from understudy.cell.arm.habits import Habits
from understudy.cell.arm.mover import ArmMover
from understudy.cell.arm.runner import Runner, whole_ns
from understudy.cell.arm.steps import Homing, Line, State
from understudy.cell.io import VirtualIO
from understudy.errors import Refused
from understudy.motion.dynamics import Dynamics
from understudy.motion.jog import Range, jog
from understudy.motion.path import Floats
from understudy.motion.plan import Motion, Plan
from understudy.motion.profile import Profile
from understudy.motion.stream import Stream
from understudy.units import seconds

WRIST = 3
"""Axes from here on home first: the hand is out of the way before the arm swings."""
STANDING = 1e-9


@dataclass(frozen=True)
class Arm:
    """What is driven: everything configured, nothing that changes. Times in nanoseconds."""

    habits: Habits
    movers: dict[int, ArmMover]
    dynamics: dict[int, Dynamics]
    window: int
    profile: Profile
    start: tuple[float, ...]
    period: int
    command_delay: int
    feedback_delay: int
    enable_dynamics: bool

    def stream(self, position: ArrayLike, at: float) -> Stream:
        limits = self.movers[0].limits
        return Stream(position, limits, window=self.window, profile=self.profile, at=at)

    def mover(self, tool: int) -> ArmMover | Refused:
        if tool in self.movers:
            return self.movers[tool]
        there = ", ".join(f"T{number}" for number in sorted(self.movers))
        return Refused(f"there is no tool {tool}; there are: {there}", 38)


class Order(Struct, frozen=True):
    """A command on its way to the controller."""

    due: int
    name: str
    text: str = ""
    number: int = 0
    value: float = 0.0


class Saved(Struct):
    """What a snapshot holds of the drives."""

    program: State
    orders: list[Order]
    jog: list[float]
    jog_plan: dict[str, Any] | None


class Drives:
    """One motion at a time: the program's or a jog's."""

    def __init__(self, arm: Arm, io: VirtualIO) -> None:
        self.arm = arm
        self.runner = Runner(arm.habits, io=io, stream=arm.stream(arm.start, 0.0), mount=arm.mover)
        self._orders: list[Order] = []
        self._jog: list[float] = [0.0] * len(arm.start)
        self._jog_plan: Plan | None = None

    # ── orders ──

    def give(self, order: Order, now: int) -> None:
        self._orders.append(order)
        self.wake(now)

    def next_wake(self) -> int | None:
        moments = [self.runner.next_wake()]
        if self._orders:
            moments.append(self._orders[0].due)
        if self._jog_plan is not None:
            moments.append(whole_ns(self._jog_plan.ends))
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        while self._orders and self._orders[0].due <= now:
            order = self._orders.pop(0)
            _CARRY_OUT[order.name](self, order, now)
        if self._jog_plan is not None and whole_ns(self._jog_plan.ends) <= now:
            self._end_jog(now)
        self.runner.run(now)

    def halt(self, now: int) -> None:
        """No motion from this instant on, and no memory of what was to come."""
        self._orders.clear()
        if self._jog_plan is not None:
            self.put(self.motion(now).position, now)
        self.runner.halt(now)

    def put(self, position: Floats, now: int) -> None:
        """The joints are here now, whatever they did before."""
        self._jog_plan = None
        self._jog = [0.0] * len(self._jog)
        self.runner.go_on_from(self.arm.stream(position, seconds(now)), now)

    # ── what can be read ──

    def motion(self, now: int) -> Motion:
        plan = self._jog_plan or self.runner.stream.plan
        return plan.at(max(seconds(now), plan.begins))

    def jogging(self) -> bool:
        return self._jog_plan is not None

    def at_rest(self, now: int) -> bool:
        """Nothing is under way, nothing waits, no order is on its way."""
        return not (self._orders or self.jogging()) and self.runner.idle(now)

    def doing(self, now: int) -> str:
        """In the firmware's words."""
        if self.jogging():
            return "Jog"
        if self.runner.stream.held or self.runner.state.paused:
            return "Hold"
        if isinstance(self.runner.state.current, Homing):
            return "Home"
        return "Idle" if self.at_rest(now) else "Run"

    # ── snapshots ──

    def save(self) -> Saved:
        plan = self._jog_plan.to_state() if self._jog_plan else None
        return Saved(self.runner.save(), list(self._orders), list(self._jog), plan)

    def load(self, saved: Saved) -> None:
        self.runner.load(saved.program)
        self._orders = list(saved.orders)
        self._jog = list(saved.jog)
        self._jog_plan = Plan.from_state(saved.jog_plan) if saved.jog_plan else None

    # ── carrying orders out ──

    def _line(self, order: Order, now: int) -> None:
        self.runner.submit(Line(order.number, order.text), now)

    def _home(self, order: Order, now: int) -> None:
        axes = tuple(range(len(self._jog)))
        groups = (axes[WRIST:], axes[:WRIST]) if order.number < 0 else ((order.number,),)
        self.runner.submit(Homing(0, tuple(group for group in groups if group)), now)

    def _stop(self, order: Order, now: int) -> None:
        self._orders.clear()
        self._stop_jog(order, now)
        self.runner.stop(now)

    def _start_jog(self, order: Order, now: int) -> None:
        if not (self.jogging() or self.runner.idle(now)):
            return
        self._jog[order.number] = order.value
        self._plan_jog(now)

    def _stop_jog(self, order: Order, now: int) -> None:
        if self.jogging():
            self._jog = [0.0] * len(self._jog)
            self._plan_jog(now)

    def _plan_jog(self, now: int) -> None:
        mover = self.arm.movers[0]
        self._jog_plan = jog(
            self.motion(now),
            self._jog,
            mover.limits,
            at=seconds(now),
            within=Range.of(mover.chain.lower, mover.chain.upper),
            profile=self.arm.profile,
        )

    def _end_jog(self, now: int) -> None:
        assert self._jog_plan is not None
        self.put(self._jog_plan.target, now)


_CARRY_OUT: dict[str, Callable[[Drives, Order, int], None]] = {
    "line": Drives._line,
    "home": Drives._home,
    "jog": Drives._start_jog,
    "stop_jog": Drives._stop_jog,
    "stop": Drives._stop,
    "hold": lambda drives, order, now: drives.runner.hold(now),
    "cycle_start": lambda drives, order, now: drives.runner.cycle_start(now),
    "override_feed": lambda drives, order, now: drives.runner.override(now, feed=order.value),
    "override_rapid": lambda drives, order, now: drives.runner.override(now, rapid=order.value),
}
