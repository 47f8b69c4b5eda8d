"""The moving side of an arm's controller: delayed orders, the program's motion, and jogging.

Also the parts that follow the motion: odometer, tool offsets, and the hooks of a program.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct, structs

from understudy.errors import Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.modal import Tool
from understudy.gcode.requests import Coolant, Spindle, ToolChange
from understudy.motion.dynamics import Dynamics, Payload, with_payload
from understudy.motion.jog import Range, jog
from understudy.motion.path import Floats
from understudy.motion.plan import Motion, Odometer, OdometerState, Plan
from understudy.motion.profile import Profile
from understudy.motion.saved import plan_from, position_from
from understudy.motion.stream import Queue, Stream, time_in
from understudy.motion.tool_path import axis_speeds
from understudy.ports import ControllerStatus
from understudy.ports.hmi import Pins, RobotView
from understudy.ports.refusals import BUSY, LOCKED
from understudy.ports.workpieces import Load
from understudy.robots.arm.mover import ArmMover
from understudy.robots.grblhal.controller import Override
from understudy.simulation.collision.contact import Contact
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.runner import (
    Entry,
    GcodeLine,
    Homing,
    ProgramHooks,
    Runner,
    RunnerState,
)
from understudy.simulation.program.steps import ControllerOptions, Probed, Step
from understudy.space.kinematics.chain import Frames
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose
from understudy.units import MM, seconds, whole_ns


def tool_row(number: int, length_mm: float) -> Tool:
    """The row of the tool table: its length, which the kinematics has while it is mounted."""
    length = (0.0, 0.0, length_mm, 0.0, 0.0, 0.0)
    return Tool(number, length, built_in=length)


class ToolOffsets:
    """Tool tips: those of the cell file, or `measured` ones (tool → tip from the flange)."""

    def __init__(self, configured: Callable[[int], ArmMover | Refused]) -> None:
        self._configured = configured
        self.measured: dict[int, Pose] = {}
        self.tip_speed = math.inf
        """The largest speed of every tip, in m/s."""

    def mover(self, tool: int) -> ArmMover | Refused:
        """The arm with this tool."""
        mover = self._configured(tool)
        if isinstance(mover, Refused):
            return mover
        if self.tip_speed < mover.tip_speed:
            mover = replace(mover, tip_speed=self.tip_speed)
        if tool not in self.measured:
            return mover
        return replace(mover, frames=Frames(mover.frames.base, matrix(self.measured[tool])))

    def set(self, tool: int, tip: Pose | None) -> None:
        """Sets the measured tip of a tool; None: back to the tip of the cell file."""
        rest = {number: known for number, known in self.measured.items() if number != tool}
        self.measured = rest if tip is None else {**rest, tool: tip}


ARC_START, GAS = 0, 1
ONE_AXIS = Refused("the speed of the tool is limited: jog one axis at a time", LOCKED)
PROBE_FAILED = Refused("the probe touched nothing", 5)
PROBE_TOUCHES = Refused("the probe was triggered before the move", 4)


class ArmHooks:
    """`ProgramHooks` of an arm: the torch on its pins; ``wire``: hooks of the firmware, if any."""

    def __init__(self, io: VirtualIO, failed: Callable[[], None]) -> None:
        self._io = io
        self._failed = failed
        self.wire: ProgramHooks | None = None
        self.tool_changed: Callable[[int], None] = lambda now: None

    def set_spindle(self, step: Spindle, now: int) -> Refused | None:
        if step.direction != "M5" and (refused := self._io.interlocked(ARC_START)):
            return Refused(f"{step.direction}: {refused.reason}", refused.code)
        if self.wire:
            self.wire.set_spindle(step, now)
        return self._io.set_digital_output(ARC_START, step.direction != "M5", now)

    def set_coolant(self, step: Coolant, now: int) -> Refused | None:
        if self.wire:
            self.wire.set_coolant(step, now)
        return self._io.set_digital_output(GAS, step.mist or step.flood, now)

    def switch_off(self, now: int) -> None:
        if self.wire:
            self.wire.switch_off(now)
        for pin in (ARC_START, GAS):
            self._io.set_digital_output(pin, False, now)

    def switch(self, arc: bool, gas: bool, now: int) -> None:
        """Switches the torch for an operator on the wire."""
        self._io.set_digital_output(ARC_START, arc, now)
        self._io.set_digital_output(GAS, gas, now)

    def probe_ended(self, step: Probed, now: int) -> Refused | None:
        if self.wire and step.over_wire:
            return self.wire.probe_ended(step, now)
        if step.early:
            return PROBE_TOUCHES
        return PROBE_FAILED if step.required and not step.touched else None

    def may_pause(self, now: int) -> bool:
        return self.wire is None or self.wire.may_pause(now)

    def report(self, step: Step, now: int) -> None:
        if isinstance(step, ToolChange):
            self.tool_changed(now)
        if self.wire:
            self.wire.report(step, now)

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        if self.wire:
            self.wire.finished(entry, refused, now)
        if refused and (not isinstance(entry, GcodeLine) or entry.how == "program"):
            self._failed()


WRIST = 3
"""Axes from here on home first: the wrist folds before the arm turns."""
PROGRAM = ("line", "home")
CHANGES = 64
"""Number of past plans that are kept for delayed readings."""


@dataclass(frozen=True)
class Arm:
    """The configuration of an arm, ready to be driven. Times in nanoseconds."""

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

    def limited_to(self, tip_speed: float) -> "Arm":
        """The arm with the tips of its tools at this speed at most, m/s."""
        movers = {tool: replace(each, tip_speed=tip_speed) for tool, each in self.movers.items()}
        return replace(self, movers=movers)

    def mover(self, tool: int) -> ArmMover | Refused:
        if tool in self.movers:
            return self.movers[tool]
        there = ", ".join(f"T{number}" for number in sorted(self.movers))
        return Refused(f"there is no tool {tool}; there are: {there}", 38)


class Order(Struct, frozen=True):
    """A command that the controller gets after the command delay."""

    due: int
    name: str
    text: str = ""
    number: int = 0
    value: float = 0.0


class SavedDrives(Struct):
    """Snapshot of the drives."""

    program: RunnerState
    orders: list[Order]
    jog: list[float]
    jog_plan: dict[str, Any] | None
    past: list[tuple[int, dict[str, Any]]]
    odometer: OdometerState
    tool_offsets: dict[int, Pose] = {}


class Drives:
    """Carries out one motion at a time: the program's or a jog's."""

    def __init__(self, arm: Arm, io: VirtualIO) -> None:
        self.arm = arm
        self.tool_offsets = ToolOffsets(arm.mover)
        self.hooks = ArmHooks(io, self._drop_program)
        self._cut: Callable[[int], None] = lambda now: None
        self.runner = Runner(
            arm.options,
            io=io,
            queue=arm.queue(),
            mount=self.tool_offsets.mover,
            hooks=self.hooks,
        )
        self._orders: deque[Order] = deque()
        self._jog: list[float] = [0.0] * len(arm.start)
        self._jog_plan: Plan | None = None
        self._past: deque[tuple[int, Plan]] = deque(maxlen=CHANGES)
        self._load: Load | None = None
        self._loaded: dict[int, Dynamics] = {}
        self.before_change: list[Callable[[int], None]] = []
        self.override: Callable[[Override, int, int], None] = lambda what, percent, now: None
        """Sets an override of the firmware, which owns the overrides."""
        self.collided: Callable[[Contact, int], None] = lambda contact, now: None
        """Called when the collision watch finds a contact that stops the arm."""
        self._odometer = Odometer(self.tip_positions)
        self.runner.queue.before_change = lambda now: self._odometer.mark(now, self.plan.ends)

    # ── orders ──

    def submit(self, order: Order, now: int) -> None:
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
        due = self.next_wake()
        if due is not None and due <= now:  # others are woken too: listeners, 1000 times a second
            self._odometer.mark(now, self.plan.ends)
        if self.runner.postponed:
            self.runner.run(now)
        while self._orders and self._orders[0].due <= now:
            order = self._orders.popleft()
            _CARRY_OUT[order.name](self, order, now)
        if self._jog_plan is not None and whole_ns(self._jog_plan.ends) <= now:
            self._end_jog(now)
        if not self.runner.postponed:
            self.runner.run(now)

    def drop_orders(self, now: int) -> None:
        """Drops the waiting orders; the motion goes on."""
        self._odometer.mark(now, self.plan.ends)
        self._orders.clear()

    def halt(self, now: int) -> None:
        """Ends motion at this instant and drops the waiting orders."""
        self.drop_orders(now)
        if self._jog_plan is not None:
            self.set_position(self.motion(now).position, now)
        self.runner.halt(now)

    def stop_jog(self, now: int) -> None:
        """Brakes all axes that are jogged."""
        if self.jogging():
            self._jog = [0.0] * len(self._jog)
            self._plan_jog(now)

    def set_position(self, position: Floats, now: int) -> None:
        """Sets the joints to a position at once."""
        self._odometer.mark(now, self.plan.ends)
        self._keep_plan(now)
        self._jog_plan = None
        self._jog = [0.0] * len(self._jog)
        self.runner.continue_from(position, now)

    def set_tip(self, tip: Pose | None, now: int) -> Refused | None:
        """Sets the tip of the mounted tool from the flange; None: the tip of the cell file."""
        return self.set_tip_of(self.tool, tip, now)

    def set_tip_of(self, tool: int, tip: Pose | None, now: int) -> Refused | None:
        """Sets the tip of a tool by its number; None: the tip of the cell file."""
        if not self.at_rest(now):
            return BUSY
        if tool != self.tool:
            self.tool_offsets.set(tool, tip)
            return None
        self._odometer.mark(now, self.plan.ends)
        self._notify_before_change(now)
        self.tool_offsets.set(tool, tip)
        self._measure_row(self.tool)
        self.runner.remount()
        self.set_position(self.motion(now).position, now)
        self.hooks.tool_changed(now)
        return None

    def limit_tip_speed(self, limit: float) -> None:
        """Limits the speed of the tip to ``limit`` m/s in moves that are not planned yet."""
        self.tool_offsets.tip_speed = limit
        self.runner.remount()

    def second_jog(self, axis: int, now: int) -> Refused | None:
        """Refuses a jog beside that of another axis, while the speed of the tip is limited: the
        speeds of both would add up."""
        if math.isinf(self.tool_offsets.tip_speed) or not self.jogging():
            return None
        others = np.delete(self.motion(now).velocity, axis)
        return ONE_AXIS if (np.abs(others) > 0.0).any() else None

    def set_work_offsets(self, offsets: Sequence[Axes], now: int) -> Refused | None:
        """Sets G54 … G59.3 (axis units), in the order of `COORDINATE_SYSTEMS`."""
        if not self.at_rest(now):
            return BUSY
        state = self.runner.state
        state.modal = structs.replace(state.modal, offsets=tuple(offsets))
        return None

    def _measure_row(self, tool: int) -> None:
        """Sets the row of the tool table to the present tip of the tool."""
        state, mover = self.runner.state, self.tool_offsets.mover(tool)
        if state.modal.tool_in_table(tool) is None or isinstance(mover, Refused):
            return
        row = tool_row(tool, float(mover.frames.tool[2, 3]) / MM)
        rows = (row if old.number == tool else old for old in state.modal.tools)
        state.modal = structs.replace(state.modal, tools=tuple(rows))

    def on_other_path(self, listener: Callable[[int], None]) -> None:
        """Calls the listener when queued motion is dropped, or runs with another tool."""
        self._cut = self.runner.queue.cut = self.hooks.tool_changed = listener

    # ── readings ──

    @property
    def plan(self) -> Plan:
        """The running motion: the program's or a jog's."""
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
        """The mounted tool; a change that waits for the end of motion is not included."""
        return self.runner.state.mounted

    def motion(self, now: int) -> Motion:
        plan = next((plan for until, plan in self._past if now < until), self.plan)
        return plan.at(time_in(plan, now))

    def tip(self, now: int) -> Pose:
        """The tip of the tool, seen from the robot's base."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        return pose(mover.tip(self.motion(now).position))

    def flange(self, now: int) -> Floats:
        """The flange in the cell, 4×4."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        return mover.flange(self.motion(now).position)

    def carry(self, load: Load | None) -> None:
        """Sets what the flange holds beside the tool, for the torques."""
        self._load, self._loaded = load, {}

    def goal(self, now: int) -> Floats | None:
        """The target of the joints while they move."""
        return self.plan.target if whole_ns(self.plan.ends) > now else None

    def torques(self, motion: Motion) -> Floats:
        """Nm; zero where dynamics are not enabled."""
        if not self.arm.enable_dynamics:
            return np.zeros(len(self.arm.start))
        tool = self.runner.state.modal.tool
        if tool not in self._loaded:
            dynamics = self.arm.dynamics.get(tool, self.arm.dynamics[0])
            if (load := self._load) is not None:
                payload = Payload(load.mass, load.com, load.inertia)
                dynamics = with_payload(dynamics, self.arm.movers[0].chain, payload)
            self._loaded[tool] = dynamics
        return np.asarray(self._loaded[tool].torques(motion)[0])

    def tip_positions(self, times: Floats) -> Floats:
        """Positions of the tip at these times (s): rows of x, y, z."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        tips = mover.chain.flanges(self.plan.positions(times), mover.frames)
        return np.ascontiguousarray(tips[:, :3, 3])

    def distance(self, now: int) -> float:
        """Metres that the tip has moved."""
        return self._odometer.at(now, self.plan.ends)

    def jogging(self) -> bool:
        return self._jog_plan is not None

    def under_way(self) -> bool:
        return bool(self._orders) or self.jogging() or self.runner.under_way()

    def expects_jog(self) -> bool:
        """Whether a jog runs or is about to start."""
        return self.jogging() or self._latest() == "jog"

    def expects_program(self, now: int) -> bool:
        """Whether a program runs, is held, or is about to start."""
        program = self.runner.queue.held or not self.runner.idle(now)
        return program or self._latest() in PROGRAM

    def at_rest(self, now: int) -> bool:
        """Whether nothing runs, nothing waits and no order is delayed."""
        return not (self._orders or self.jogging()) and self.runner.idle(now)

    def moving(self, now: int) -> bool:
        """Whether a motion, a dwell or a wait runs; false in a hold at rest."""
        if self.state_word(now) == "Hold":
            return whole_ns(self.plan.ends) > now
        return not self.at_rest(now)

    def state_word(self, now: int) -> str:
        """The state in the firmware's words."""
        if self.jogging():
            return "Jog"
        if self.runner.queue.held or self.runner.state.paused:
            return "Hold"
        if isinstance(self.runner.state.current, Homing):
            return "Home"
        return "Idle" if self.at_rest(now) else "Run"

    # ── snapshots ──

    def save(self) -> SavedDrives:
        jog = self._jog_plan.to_state() if self._jog_plan else None
        past = [(until, plan.to_state()) for until, plan in self._past]
        program, orders, odometer = self.runner.save(), list(self._orders), self._odometer.state
        tool_offsets = dict(self.tool_offsets.measured)
        return SavedDrives(program, orders, list(self._jog), jog, past, odometer, tool_offsets)

    def load(self, saved: SavedDrives) -> None:
        self.tool_offsets.measured = dict(saved.tool_offsets)
        self.runner.load(saved.program)
        self._orders = deque(saved.orders)
        self._odometer.state = saved.odometer
        self._jog = position_from(saved.jog, len(self._jog), "jog").tolist()
        axes = len(self._jog)
        self._jog_plan = plan_from(saved.jog_plan, axes) if saved.jog_plan else None
        past = ((until, plan_from(plan, axes)) for until, plan in saved.past)
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
        """Holds the program; ends a jog."""
        if self.jogging():
            self.stop_jog(now)
        else:
            self.runner.hold(now)

    def _start_jog(self, order: Order, now: int) -> None:
        if self.second_jog(order.number, now):
            return
        self._jog[order.number] = order.value
        self._plan_jog(now)

    def _plan_jog(self, now: int) -> None:
        mover, here = self.arm.movers[0], self.motion(now)
        self._keep_plan(now)
        self._jog_plan = jog(
            here,
            self._jog_speeds(here.position),
            mover.limits,
            at=seconds(now),
            within=Range.of(mover.chain.lower, mover.chain.upper),
            profile=self.arm.profile,
        )
        self._cut(now)

    def _jog_speeds(self, q: Floats) -> Floats:
        """The speeds of the jog, within the limit of the tip's speed; one axis moves under it."""
        mover = self.runner.mover
        assert isinstance(mover, ArmMover)
        if math.isinf(mover.tip_speed):
            return np.array(self._jog)
        most = axis_speeds(q, mover.tip_speed, mover.chain, mover.frames.tool)
        return np.clip(self._jog, -most, most)

    def _end_jog(self, now: int) -> None:
        assert self._jog_plan is not None
        self.set_position(self._jog_plan.target, now)

    # ── inside ──

    def _keep_plan(self, now: int) -> None:
        """Keeps the present plan for delayed readings."""
        self._notify_before_change(now)
        while self._past and self._past[0][0] <= now - self.arm.feedback_delay:
            self._past.popleft()
        if self.arm.feedback_delay:
            self._past.append((now, self.plan))

    def _notify_before_change(self, now: int) -> None:
        """Notifies the listeners before the plan is replaced."""
        for listener in self.before_change:
            listener(now)

    def _latest(self) -> str:
        """Name of the newest motion order that is still delayed; empty if there is none."""
        names = (order.name for order in reversed(self._orders))
        return next((name for name in names if name == "jog" or name in PROGRAM), "")

    def _drop_program(self) -> None:
        """Drops the delayed program orders after a line has failed."""
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


def status_of(drives: Drives, alarm: Refused | None, now: int) -> ControllerStatus:
    """The status without connection and enabling: the drives do not know them."""
    runner = drives.runner
    error = alarm or runner.error
    used = runner.queue.used(now)
    return ControllerStatus(
        moving=drives.moving(now),
        error=error is not None,
        homed=runner.homed,
        error_message=error.reason if error else "",
        error_code=error.code if error else 0,
        buffer_available=drives.arm.window - used,
        buffer_used=used,
        state="Alarm" if alarm else drives.state_word(now),
        line=runner.queue.line_at(now),
        stops=runner.state.stops,
        at=now,
    )


def view_of(drives: Drives, io: VirtualIO, *, lit: bool, alarm: bool, now: int) -> RobotView:
    """Joints and tip of this instant, without the feedback delay."""
    runner, digital = drives.runner, io.digital()
    mover, joints = runner.mover, drives.motion(now).position
    assert isinstance(mover, ArmMover)
    goal = drives.goal(now)
    return RobotView(
        q=joints.tolist(),
        tcp=pose(mover.tip(joints)),
        state="Alarm" if alarm else drives.state_word(now),
        moving=drives.moving(now),
        tool=runner.state.modal.tool,
        line=runner.queue.line_at(now),
        ghost=None if goal is None else goal.tolist(),
        arc=lit,
        io=Pins(digital.inputs, digital.outputs),
        linear=mover.chain.linear,
    )
