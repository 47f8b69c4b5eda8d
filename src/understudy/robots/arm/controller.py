"""`ArmController`: a simulated arm with the controller that a real grblHAL-driven one has.

Commands act after the command delay, readings are as old as the feedback delay, both in simulated
time. The emergency stop is hard-wired and has no delay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from understudy.agenda import ClockState
from understudy.errors import ConfigError, Refused
from understudy.gcode import Problem, parse
from understudy.motion.path import Floats
from understudy.ports import AnalogIO, Component, ControllerStatus, DigitalIO, JointState, Tally
from understudy.ports.controller import JointListener, StatusListener
from understudy.ports.device import (
    Device,
    FollowsTool,
    LightsTool,
    LosesProcess,
    Process,
    ToolPath,
)
from understudy.ports.faults import Faults
from understudy.ports.hmi import RobotView
from understudy.ports.modes import ModeGuard
from understudy.ports.refusals import (
    BUSY,
    HARD_LIMIT,
    INHIBITED,
    JOGGING,
    MOTOR_FAULT,
    NOT_CONNECTED,
    NOT_ENABLED,
    STOPPED,
)
from understudy.ports.tools import ChangesTools, ToolTable
from understudy.robots.arm import FAULTS
from understudy.robots.arm.drives import (
    ARC_START,
    Arm,
    Drives,
    Order,
    SavedDrives,
    status_of,
    view_of,
)
from understudy.robots.arm.mover import ContactProbe
from understudy.robots.grblhal.controller import Notice
from understudy.robots.grblhal.firmware import (
    IN_ALARM,
    ControlledAxes,
    Firmware,
    FirmwareState,
    SettingValues,
)
from understudy.robots.grblhal.numbers import ErrorCode, SettingNumber
from understudy.robots.grblhal.settings import DEFAULTS, Settings
from understudy.simulation.collision.body import Body
from understudy.simulation.collision.contact import WIRE_LINES, Contact
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.runner import ProgramHooks, Runner
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, seconds

# ── listeners ─────────────────────────────────────────────────────────────────────────────────────


Flags = tuple[bool, bool, bool, bool, bool, bool, str]


class ListenerState(Struct):
    """The last reported status, and the time of the next joint report."""

    flags: Flags | None = None
    beat: int | None = None


class Listeners:
    """Listeners to a controller: to its status when it changes, to its joints periodically.

    A snapshot holds only what was reported last, not the listeners.
    """

    def __init__(self, period: int) -> None:
        self._period = period
        self._status: list[StatusListener] = []
        self._joints: list[JointListener] = []
        self.state = ListenerState()

    def on_status(self, listener: StatusListener) -> None:
        self._status.append(listener)

    def on_joints(self, listener: JointListener, now: int) -> None:
        self._joints.append(listener)
        self.state.beat = self.state.beat or self._after(now)

    @property
    def next_beat(self) -> int | None:
        return self.state.beat if self._joints else None

    def report_status(self, read: Callable[[], ControllerStatus]) -> None:
        """Reports the status if it has changed."""
        if not self._status:
            return
        status = read()
        drives = (status.connected, status.enabled, status.inhibited)
        flags = (*drives, status.moving, status.error, status.homed, status.state)
        if flags != self.state.flags:
            self.state.flags = flags
            for listener in self._status:
                listener(status)

    def report_joints(self, now: int, read: Callable[[], JointState]) -> None:
        """Reports the joints if a report is due."""
        if self.next_beat is None or now < self.next_beat:
            return
        self.state.beat = self._after(now)
        joints = read()
        for listener in self._joints:
            listener(joints)

    def _after(self, now: int) -> int:
        return (now // self._period + 1) * self._period


# ── the controller ────────────────────────────────────────────────────────────────────────────────


def no_axis(axis: int, dof: int) -> Refused | None:
    if isinstance(axis, int | np.integer) and 0 <= axis < dof:
        return None
    return Refused(f"there is no axis {axis}; there are 0…{dof - 1}")


def no_positions(target: Floats, dof: int) -> Refused | None:
    if target.shape != (dof,):
        return Refused(f"{dof} joint positions are needed")
    return None if np.isfinite(target).all() else Refused("joint positions must be finite numbers")


def out_of_bounds(percent: float, bounds: tuple[float, float]) -> Refused | None:
    low, high = bounds
    if low <= percent <= high:
        return None
    return Refused(f"{percent:g} % is outside {low:g}…{high:g} %")


class ArmState(Struct):
    """Snapshot of a controller.

    `alarm`: why nothing is accepted until reset. `fresh`: the earliest time of a delayed reading.
    """

    connected: bool
    enabled: bool
    alarm: tuple[str, int] | None
    lines: int
    fresh: int
    listeners: ListenerState
    drives: SavedDrives
    firmware: FirmwareState


CHANGEABLE = (1, 10, 30, 31, 39, 62, 392, 393, 481)
"""Settings that can be changed; the others belong to the model of the arm."""


def firmware_of(arm: Arm, drives: Drives, energize: Callable[[int], None]) -> Firmware:
    """The arm behind a grblHAL wire: X Y Z A B C are its joints in degrees."""
    axes = ControlledAxes(
        unit=arm.movers[0].chain.units,
        defaults=setting_values(arm),
        change=_changed,
        jogged=drives.jogging,
        where=lambda now: drives.motion(now).position,
        brake=drives.stop_jog,
        halt=drives.halt,
        switch=drives.hooks.switch,
        energize=energize,
        first_line=WIRE_LINES,
    )

    def with_hooks(hooks: ProgramHooks) -> Runner:
        drives.hooks.wire = hooks
        return drives.runner

    firmware = Firmware(axes, with_hooks)
    drives.override = firmware.switches.override
    return firmware


def setting_values(arm: Arm) -> Mapping[int, float]:
    """The values of grblHAL's settings for the arm: soft limits are on, homing needs no
    switches."""
    chain, limits = arm.movers[0].chain, arm.movers[0].limits
    own = {
        SettingNumber.JUNCTION_DEVIATION: arm.options.deviation / DEG,
        SettingNumber.SOFT_LIMITS: 1.0,
        SettingNumber.HOMING_CYCLE: 1.0,
        SettingNumber.PLANNER_BLOCKS: float(arm.window),
    }
    for axis in range(len(arm.start)):
        unit = float(chain.units[axis])
        own[SettingNumber.MAXIMUM_RATE + axis] = limits.velocity[axis] / unit * MINUTE
        own[SettingNumber.ACCELERATION + axis] = limits.acceleration[axis] / unit
        own[SettingNumber.TRAVEL + axis] = (chain.upper[axis] - chain.lower[axis]) / unit
    return {**DEFAULTS, **own}


def _changed(values: SettingValues, number: int, text: str) -> SettingValues | Refused:
    changed = Settings(dict(values)).changed(number, text)
    if isinstance(changed, Refused):
        return changed
    if number not in CHANGEABLE:
        return Refused(f"${number} belongs to the arm's model", ErrorCode.SETTING_NOT_AVAILABLE)
    return dict(changed.given)


class ArmController:
    """The document's IMotionController on simulated time; a `Component` of the cell."""

    def __init__(self, name: str, arm: Arm, *, io: VirtualIO, clock_state: ClockState) -> None:
        self.name = name
        self.io = io
        self._devices: dict[str, Device] = {}
        self._arm = arm
        self._clock_state = clock_state
        self._drives = Drives(arm, io)
        self.tool_offsets, self.set_tcp = self._drives.tool_offsets, self._drives.set_tip
        self.set_tcp_of = self._drives.set_tip_of
        self.set_work_offsets = self._drives.set_work_offsets
        self.flange, self.carry = self._drives.flange, self._drives.carry
        self.firmware = firmware_of(arm, self._drives, self._energize)
        self.firmware.listen(self._on_notice)
        self.tools: ToolTable | None = None
        """The tool table, set when the cell is built."""
        self.collision: CollisionWatch | None = None
        self._connected = self._enabled = False
        self._alarm: Refused | None = None
        self._lines = self._fresh = 0
        self._listeners = Listeners(arm.period)
        io.on_change(lambda change: self._report(change.at))

    def mount(self, kind: str, device: Device) -> None:
        """Adds a device; programs wait for one whose process M3 and M5 switch."""
        self._devices[kind] = device
        if isinstance(device, FollowsTool):
            self._drives.before_change.append(device.catch_up)
        if isinstance(device, ChangesTools):
            self._drives.runner.confirm_tool = device.confirm_tool
        if isinstance(device, Process):
            if self._drives.runner.process is not None:
                raise ConfigError("M3 and M5 can switch one device of a robot", key=kind)
            self._drives.runner.process = device
            device.on_process(self._process_changed)

    def _on_notice(self, notice: Notice, now: int) -> None:
        """A reset of the firmware, also by a client on the wire, clears faults of the devices."""
        if notice.kind == "reset":
            for device in self._devices.values():
                device.reset(now)

    def guard(self, body: Body, log: Callable[[str], None]) -> None:
        """Adds the collision watch, when the cell is built."""
        self._drives.collided = self._collided
        self.collision = CollisionWatch(self.name, body, self._drives, log)
        self._drives.on_other_path(self.collision.cut)
        self._drives.runner.probe = ContactProbe(self.collision, self._drives.runner)

    def obey(self, guard: ModeGuard) -> None:
        """Applies the modes of operation: the arc is locked and the speed limited as they say."""
        self.io.interlock(ARC_START, guard.arc_refusal)
        guard.on_limit(self._drives.limit_tip_speed)

    @property
    def doubts(self) -> Sequence[str]:
        """Limits that the description of the arm does not have, and what stands in their place."""
        return self.arm.movers[0].chain.model.doubts

    @property
    def parts(self) -> dict[str, Component]:
        """The parts of this robot by name: pins, devices, collision watch."""
        watch: dict[str, Component] = {"collision": self.collision} if self.collision else {}
        return {"io": self.io, **self._devices, **watch}

    @property
    def tool_path(self) -> ToolPath:
        return self._drives.tip_positions

    @property
    def arm(self) -> Arm:
        return self._arm

    # ── connection and drives ──

    def connect(self, now: int) -> Refused | None:
        self._connected = True
        return self._done(now)

    def disconnect(self, now: int) -> Refused | None:
        self.disable(now)
        self._connected = False
        return self._done(now)

    def is_connected(self) -> bool:
        return self._connected

    def enable(self, now: int) -> Refused | None:
        if not self._connected:
            return NOT_CONNECTED
        if self._alarm:
            return self._alarm
        self._enabled = True
        return self._done(now)

    def disable(self, now: int) -> Refused | None:
        """Switches the drives, arc and gas off at once, and drops the waiting lines."""
        self._halt(now)
        self._enabled = False
        return self._done(now)

    def is_enabled(self) -> bool:
        return self._enabled

    def is_simulation(self) -> bool:
        return True

    # ── motion ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        """Queues a line; one that cannot be read is refused at once and not queued.

        After a line that failed later, every line is refused until an empty one or a reset.
        """
        if refused := self._not_ready() or (JOGGING if self._drives.expects_jog() else None):
            return refused
        if len(lines := text.splitlines()) > 1:
            place = f"line {self._lines + 1}, column {len(lines[0]) + 1}"
            return Refused(f"{place}: a line break; send one line at a time", 1)
        state = self._drives.runner.state
        state.error = state.error if text.strip() else None
        if state.error:
            return self._drives.runner.error
        block = parse(text, self._arm.options.dialect, line=self._lines + 1)
        if isinstance(block, Problem):
            return block.refused()
        self._lines += 1
        return self._order("line", now, text=text, number=self._lines)

    def jog(self, axis: int, velocity: float, now: int) -> Refused | None:
        """Moves one axis at a speed in rad/s until `stop_jog` or the end of its range."""
        if refused := self._not_ready() or self._no_axis(axis):
            return refused
        if self._drives.expects_program(now):
            return BUSY
        if not np.isfinite(velocity):
            return Refused(f"{velocity} rad/s is not a speed")
        if refused := self._drives.second_jog(int(axis), now):
            return refused
        return self._order("jog", now, number=int(axis), value=velocity)

    def stop_jog(self, now: int) -> Refused | None:
        """Brakes all axes that are jogged."""
        return self._order("stop_jog", now)

    def stop(self, now: int) -> Refused | None:
        """Brakes along the path and drops the waiting lines."""
        return self._order("stop", now)

    def emergency_stop(self, now: int) -> Refused | None:
        """Switches the drives off at once; nothing is accepted until `reset`."""
        return self._trip(STOPPED, now)

    def home(self, now: int, axis: int = -1) -> Refused | None:
        """Queues the homing of one axis, or of all: the wrist first."""
        if refused := self._not_ready() or (self._no_axis(axis) if axis != -1 else None):
            return refused
        if self._drives.expects_jog():
            return JOGGING
        return self._order("home", now, number=int(axis))

    def is_homed(self) -> bool:
        return self._drives.runner.homed

    # ── operator ──

    def hold(self, now: int) -> Refused | None:
        """Brakes along the path and waits for `cycle_start`; ends a jog."""
        return self._order("hold", now) if self._enabled else self._done(now)

    def cycle_start(self, now: int) -> Refused | None:
        """Continues after `hold`, M0, M1 or M60."""
        return self._not_ready() or self._order("cycle_start", now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        return self._override("override_feed", percent, (10.0, 200.0), now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        return self._override("override_rapid", percent, (5.0, 100.0), now)

    def set_optional_stop(self, wanted: bool) -> None:
        """Sets whether M1 pauses."""
        self._drives.runner.state.optional_stop = wanted

    # ── supervised ──

    def inhibit_motion(self, now: int) -> None:
        self._drives.drop_orders(now)
        self.firmware.inhibit(now)
        self._report(now)

    def permit_motion(self, now: int) -> None:
        self.firmware.permit(now)
        self._report(now)

    def fault(self, now: int) -> Refused | None:
        return self._alarm or self._drives.runner.error or self.firmware.fault()

    def reset(self, now: int) -> Refused | None:
        """Clears emergency stop and errors, faults of the devices and what was forced or switched
        on the pins; ends any motion at once."""
        self._release(now)
        for device in (*self._devices.values(), self.io):
            device.reset(now)
        return self._done(now)

    def _release(self, now: int) -> Refused | None:
        """Clears emergency stop and errors of the controller alone."""
        self._halt(now)
        self._drives.runner.reset()
        self._alarm = None
        if self.collision is not None:
            self.collision.release()
        self.firmware.release(now, unlock=True)
        return self._done(now)

    def set_joint_positions(self, positions: ArrayLike, now: int) -> Refused | None:
        """Sets the joints without a motion; possible only in simulation."""
        target = np.array(positions, dtype=np.float64)
        if refused := no_positions(target, self._dof):
            return refused
        if not self._drives.at_rest(now):
            return BUSY
        if refused := self._arm.movers[0].beyond(target):
            return refused
        self._drives.set_position(target, now)
        if self.collision is not None:
            self.collision.restart(now)
        self._fresh = now
        return self._done(now)

    # ── pins ──

    def digital_io(self) -> DigitalIO:
        return self.io.digital()

    def analog_io(self, now: int) -> AnalogIO:
        return self.io.analog(now)

    def input_result(self) -> float:
        """The result of the last M66; -1 after its timeout."""
        return self._drives.runner.state.result

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None:
        return self.io.set_digital_output(pin, value, now)

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None:
        return self.io.set_analog_output(channel, value, now)

    # ── readings ──

    def joint_state(self, now: int) -> JointState:
        """The joints, as old as the feedback delay; an emergency stop shows at once."""
        motion = self._drives.motion(max(now - self._arm.feedback_delay, self._fresh))
        parts = (*motion, self._drives.torques(motion))
        return JointState(*(tuple(part.tolist()) for part in parts))

    def tcp(self, now: int) -> Pose:
        """The tip of the tool, seen from the robot's base."""
        return self._drives.tip(now)

    def process_lost(self) -> tuple[float, float, float] | None:
        """Where the tool was when the process of M3 went out by itself."""
        process = self._drives.runner.process
        return process.lost_at() if isinstance(process, LosesProcess) else None

    def tally(self, now: int) -> Tally:
        """Lines, contacts and distance so far."""
        executed = self._drives.runner.state.executed
        contacts = self.collision.detected if self.collision else 0
        return Tally(executed, contacts, self._drives.distance(now))

    def status(self, now: int) -> ControllerStatus:
        known = status_of(self._drives, self._alarm, now)
        return replace(
            known,
            connected=self._connected,
            enabled=self._enabled,
            accepted=self._lines,
            inhibited=self.firmware.inhibited,
        )

    def view(self, now: int) -> RobotView:
        lit = any(each.lit for each in self._devices.values() if isinstance(each, LightsTool))
        return view_of(self._drives, self.io, lit=lit, alarm=self._alarm is not None, now=now)

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each command, from a client, an operator or a program."""
        self._drives.runner.command_listeners.append(listener)

    def on_status(self, listener: StatusListener) -> None:
        """Calls the listener whenever the controller connects, moves, stops, fails or homes."""
        self._listeners.on_status(listener)

    def on_joint_state(self, listener: JointListener, now: int) -> None:
        """Calls the listener at update_rate_hz, from the next period on."""
        self._listeners.on_joints(listener, now)

    # ── simulated time ──

    def set_time_scale(self, scale: float) -> Refused | None:
        return self._clock_state.set_scale(scale)

    def pause(self) -> None:
        self._clock_state.pause()

    def resume(self) -> None:
        self._clock_state.resume()

    def simulation_time(self, now: int) -> float:
        return seconds(now)

    # ── part ──

    def next_wake(self) -> int | None:
        moments = (self._drives.next_wake(), self.firmware.next_wake(), self._listeners.next_beat)
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        self._drives.wake(now)
        if not self.postponed():
            self.firmware.wake(now)
        self._report(now)
        self._listeners.report_joints(now, lambda: self.joint_state(now))

    def postponed(self) -> bool:
        return self._drives.runner.postponed

    def busy(self) -> bool:
        return self._drives.under_way() or self.firmware.restoring

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault != "axis_fault":
            return self.emergency_stop(now) if fault == "emergency_stop" else self._release(now)
        axis = round(parameters["axis"])
        if refused := self._no_axis(axis):
            return refused
        joint = self._arm.movers[0].chain.names[axis]
        return self._trip(Refused(f"motor fault of {joint}: reset first", MOTOR_FAULT), now)

    def save(self) -> ArmState:
        return ArmState(
            connected=self._connected,
            enabled=self._enabled,
            alarm=(self._alarm.reason, self._alarm.code) if self._alarm else None,
            lines=self._lines,
            fresh=self._fresh,
            listeners=self._listeners.state,
            drives=self._drives.save(),
            firmware=self.firmware.save(),
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, ArmState)
        self._connected, self._enabled = saved.connected, saved.enabled
        self._alarm = Refused(*saved.alarm) if saved.alarm else None
        self._lines, self._fresh = saved.lines, saved.fresh
        self._listeners.state = saved.listeners
        self._drives.load(saved.drives)
        self.firmware.load(saved.firmware)

    # ── inside ──

    def _collided(self, contact: Contact, now: int) -> None:
        self._trip(Refused(f"{contact.text()}: reset first", HARD_LIMIT), now)

    def _process_changed(self, now: int) -> None:
        runner = self._drives.runner
        failure = runner.process.failure() if runner.process else None
        if failure and not runner.idle(now):
            line = runner.queue.line_at(now)
            place = f"line {line}: " if line else ""
            runner.fail(Refused(place + failure.reason, failure.code), now)
            if line is not None and line >= WIRE_LINES:
                self.firmware.process_failed(now)
        runner.run(now)
        self._report(now)

    @property
    def _dof(self) -> int:
        return len(self._arm.start)

    def _not_ready(self) -> Refused | None:
        if not self._connected:
            return NOT_CONNECTED
        if self._alarm:
            return self._alarm
        if self.firmware.inhibited:
            return INHIBITED
        if not self._enabled:
            return NOT_ENABLED
        return IN_ALARM if self.firmware.locked else None

    def _energize(self, now: int) -> None:
        """Enables the drives at a line over the wire, as the real controller does."""
        self._connected, self._enabled = True, self._alarm is None

    def _no_axis(self, axis: int) -> Refused | None:
        return no_axis(axis, self._dof)

    def _override(
        self, name: str, percent: float, bounds: tuple[float, float], now: int
    ) -> Refused | None:
        """Sets an override in whole percent, like the firmware."""
        refused = out_of_bounds(percent, bounds)
        return refused or self._order(name, now, number=round(percent))

    def _order(
        self, name: str, now: int, *, text: str = "", number: int = 0, value: float = 0.0
    ) -> Refused | None:
        due = now + self._arm.command_delay
        self._drives.submit(Order(due, name, text, number, value), now)
        return self._done(now)

    def _trip(self, alarm: Refused, now: int) -> Refused | None:
        """Switches drives and process off at once."""
        self._halt(now)
        if self._drives.runner.process is not None:
            self._drives.runner.process.cut(now)
        self._enabled, self._alarm = False, alarm
        self.firmware.emergency_stop(alarm.code, now)
        return self._done(now)

    def _halt(self, now: int) -> None:
        self._drives.halt(now)
        self._fresh = now

    def _done(self, now: int) -> Refused | None:
        """Reports the status and returns None: nothing was refused."""
        self._report(now)
        return None

    def _report(self, now: int) -> None:
        """Reports the status to its listeners if it has changed."""
        self._listeners.report_status(lambda: self.status(now))
