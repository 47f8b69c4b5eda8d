"""The moving side of a controller: orders on their way, the program's motion, and jogging."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.motion.dynamics import Dynamics
from understudy.motion.jog import Range, jog
from understudy.motion.path import Floats
from understudy.motion.plan import Motion, Plan
from understudy.motion.profile import Profile
from understudy.motion.stream import Stream
from understudy.robots.arm import refusals as why
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.odometer import Odometer
from understudy.robots.arm.odometer import State as OdometerState
from understudy.robots.arm.program_hooks import ArmAttendant
from understudy.robots.arm.tool_offsets import ToolOffsets
from understudy.robots.grblhal.controller import Override
from understudy.simulation.program.queue import Queue, time_in, whole_ns
from understudy.simulation.program.runner import Runner
from understudy.simulation.program.steps import ControllerOptions, GcodeLine, Homing, State
from understudy.space.pose import Pose
from understudy.space.transform import pose
from understudy.units import seconds

WRIST = 3
"""Axes from here on home first: the hand is out of the way before the arm swings."""
PROGRAM = ("line", "home")
CHANGES = 64
"""So many changes of plan within the feedback delay are remembered."""


@dataclass(frozen=True)
class Arm:
    """What is driven: everything configured, nothing that changes. Times in nanoseconds."""

    options: ControllerOptions
    movers: dict[int, ArmMover]
    dynamics: dict[int, Dynamics]
    window: int
    profile: Profile
    start: tuple[float, ...]
    period: int
    command_delay: int
    feedback_delay: int
    enable_dynamics: bool

    def queue(self) -> Queue:
        limits = self.movers[0].limits
        return Queue(Stream(self.start, limits, window=self.window, profile=self.profile))

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
    past: list[tuple[int, dict[str, Any]]]
    odometer: OdometerState
    tips: dict[int, Pose] = {}


class Drives:
    """One motion at a time: the program's or a jog's."""

    def __init__(self, arm: Arm, io: VirtualIO) -> None:
        self.arm = arm
        self.tips = ToolOffsets(arm.mover)
        self.hooks = ArmAttendant(io, self._drop_program)
        self._cut: Callable[[int], None] = lambda now: None
        self.runner = Runner(
            arm.options,
            io=io,
            queue=arm.queue(),
            mount=self.tips.mover,
            hooks=self.hooks,
        )
        self._orders: deque[Order] = deque()
        self._jog: list[float] = [0.0] * len(arm.start)
        self._jog_plan: Plan | None = None
        self._past: deque[tuple[int, Plan]] = deque(maxlen=CHANGES)
        self.before_change: list[Callable[[int], None]] = []
        self.override: Callable[[Override, int, int], None] = lambda what, percent, now: None
        """The firmware's knobs, so that there is one truth about them."""
        self._odometer = Odometer(self.tool_way)

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
        self._odometer.mark(now, self.plan.ends)
        while self._orders and self._orders[0].due <= now:
            order = self._orders.popleft()
            _CARRY_OUT[order.name](self, order, now)
        if self._jog_plan is not None and whole_ns(self._jog_plan.ends) <= now:
            self._end_jog(now)
        self.runner.run(now)

    def halt(self, now: int) -> None:
        """No motion from this instant on, and no memory of what was to come."""
        self._odometer.mark(now, self.plan.ends)
        self._orders.clear()
        if self._jog_plan is not None:
            self.put(self.motion(now).position, now)
        self.runner.halt(now)

    def stop_jog(self, now: int) -> None:
        """Brake all axes that are jogged."""
        if self.jogging():
            self._jog = [0.0] * len(self._jog)
            self._plan_jog(now)

    def put(self, position: Floats, now: int) -> None:
        """The joints are here now, whatever they did before."""
        self._odometer.mark(now, self.plan.ends)
        self._remember(now)
        self._jog_plan = None
        self._jog = [0.0] * len(self._jog)
        self.runner.continue_from(position, now)

    def set_tip(self, tip: Pose | None, now: int) -> Refused | None:
        """The tool in hand ends there, seen from the flange; None: where the cell's file says."""
        if not self.at_rest(now):
            return why.BUSY
        self._odometer.mark(now, self.plan.ends)
        self._announce_change(now)
        self.tips.take(self.tool, tip)
        self.runner.remount()
        self.put(self.motion(now).position, now)
        self.hooks.retooled(now)
        return None

    def on_other_path(self, listener: Callable[[int], None]) -> None:
        """Be told when what was to be run is not run any more, or is run with another tool."""
        self._cut = self.runner.queue.cut = self.hooks.retooled = listener

    # ── what can be read ──

    @property
    def plan(self) -> Plan:
        """The motion under way: the program's or a jog's."""
        return self._jog_plan or self.runner.queue.plan

    @property
    def first(self) -> int:
        """The number of the plan's first piece."""
        return 0 if self.jogging() else self.runner.queue.first

    @property
    def held(self) -> bool:
        return not self.jogging() and self.runner.queue.held

    @property
    def tool(self) -> int:
        """The number of the tool in hand; a change that waits for motion to end has yet to come."""
        return self.runner.state.mounted

    def motion(self, now: int) -> Motion:
        plan = next((plan for until, plan in self._past if now < until), self.plan)
        return plan.at(time_in(plan, now))

    def tip(self, now: int) -> Pose:
        """Where the tip of the tool is, from the robot's base."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        return pose(mover.frames.tcp(mover.chain.flange(self.motion(now).position)))

    def goal(self, now: int) -> Floats | None:
        """Where the joints go, while they go there."""
        return self.plan.target if whole_ns(self.plan.ends) > now else None

    def torques(self, motion: Motion) -> Floats:
        """Nm; nothing where nobody asked for dynamics."""
        if not self.arm.enable_dynamics:
            return np.zeros(len(self.arm.start))
        tool = self.runner.state.modal.tool
        dynamics = self.arm.dynamics.get(tool, self.arm.dynamics[0])
        return np.asarray(dynamics.torques(motion)[0])

    def tool_way(self, times: Floats) -> Floats:
        """Where the tip of the tool was at these times (s): rows of x, y, z."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        tips = mover.chain.flanges(self.plan.positions(times), mover.frames)
        return np.ascontiguousarray(tips[:, :3, 3])

    def distance(self, now: int) -> float:
        """Metres that the tip has gone."""
        return self._odometer.at(now, self.plan.ends)

    def jogging(self) -> bool:
        return self._jog_plan is not None

    def under_way(self) -> bool:
        return bool(self._orders) or self.jogging() or self.runner.under_way()

    def expects_jog(self) -> bool:
        """Jogging, or about to."""
        return self.jogging() or self._latest() == "jog"

    def expects_program(self, now: int) -> bool:
        """A program is under way, held, or about to be."""
        program = self.runner.queue.held or not self.runner.idle(now)
        return program or self._latest() in PROGRAM

    def at_rest(self, now: int) -> bool:
        """Nothing is under way, nothing waits, no order is on its way."""
        return not (self._orders or self.jogging()) and self.runner.idle(now)

    def moving(self, now: int) -> bool:
        """Something goes on by itself: a motion, a dwell, a wait; not a hold that stands."""
        if self.doing(now) == "Hold":
            return whole_ns(self.plan.ends) > now
        return not self.at_rest(now)

    def doing(self, now: int) -> str:
        """In the firmware's words."""
        if self.jogging():
            return "Jog"
        if self.runner.queue.held or self.runner.state.paused:
            return "Hold"
        if isinstance(self.runner.state.current, Homing):
            return "Home"
        return "Idle" if self.at_rest(now) else "Run"

    # ── snapshots ──

    def save(self) -> Saved:
        jog = self._jog_plan.to_state() if self._jog_plan else None
        past = [(until, plan.to_state()) for until, plan in self._past]
        program, orders, odometer = self.runner.save(), list(self._orders), self._odometer.state
        tips = dict(self.tips.measured)
        return Saved(program, orders, list(self._jog), jog, past, odometer, tips)

    def load(self, saved: Saved) -> None:
        self.tips.measured = dict(saved.tips)
        self.runner.load(saved.program)
        self._orders = deque(saved.orders)
        self._odometer.state = saved.odometer
        self._jog = list(saved.jog)
        self._jog_plan = Plan.from_state(saved.jog_plan) if saved.jog_plan else None
        past = ((until, Plan.from_state(plan)) for until, plan in saved.past)
        self._past = deque(past, maxlen=CHANGES)

    # ── carrying orders out ──

    def _line(self, order: Order, now: int) -> None:
        self.runner.submit(GcodeLine(order.number, order.text), now)

    def _home(self, order: Order, now: int) -> None:
        axes = tuple(range(len(self._jog)))
        groups = (axes[WRIST:], axes[:WRIST]) if order.number < 0 else ((order.number,),)
        self.runner.submit(Homing(0, tuple(group for group in groups if group)), now)

    def _stop(self, order: Order, now: int) -> None:
        self.stop_jog(now)
        self.runner.stop(now)

    def _hold(self, order: Order, now: int) -> None:
        """A jog that is held is over."""
        if self.jogging():
            self.stop_jog(now)
        else:
            self.runner.hold(now)

    def _start_jog(self, order: Order, now: int) -> None:
        self._jog[order.number] = order.value
        self._plan_jog(now)

    def _plan_jog(self, now: int) -> None:
        mover, here = self.arm.movers[0], self.motion(now)
        self._remember(now)
        self._jog_plan = jog(
            here,
            self._jog,
            mover.limits,
            at=seconds(now),
            within=Range.of(mover.chain.lower, mover.chain.upper),
            profile=self.arm.profile,
        )
        self._cut(now)

    def _end_jog(self, now: int) -> None:
        assert self._jog_plan is not None
        self.put(self._jog_plan.target, now)

    # ── inside ──

    def _remember(self, now: int) -> None:
        """What moved so far is still seen for as long as readings are late."""
        self._announce_change(now)
        while self._past and self._past[0][0] <= now - self.arm.feedback_delay:
            self._past.popleft()
        if self.arm.feedback_delay:
            self._past.append((now, self.plan))

    def _announce_change(self, now: int) -> None:
        """Calls those that read the plan so far before it is replaced."""
        for listener in self.before_change:
            listener(now)

    def _latest(self) -> str:
        """The motion that was ordered last and is still on its way."""
        names = (order.name for order in reversed(self._orders))
        return next((name for name in names if name == "jog" or name in PROGRAM), "")

    def _drop_program(self) -> None:
        """What was sent behind a line that failed is not carried out."""
        self._orders = deque(order for order in self._orders if order.name not in PROGRAM)


_CARRY_OUT: dict[str, Callable[[Drives, Order, int], None]] = {
    "line": Drives._line,
    "home": Drives._home,
    "jog": Drives._start_jog,
    "stop_jog": lambda drives, order, now: drives.stop_jog(now),
    "stop": Drives._stop,
    "hold": Drives._hold,
    "cycle_start": lambda drives, order, now: drives.runner.cycle_start(now),
    "override_feed": lambda drives, order, now: drives.override("feed", order.number, now),
    "override_rapid": lambda drives, order, now: drives.override("rapid", order.number, now),
}
