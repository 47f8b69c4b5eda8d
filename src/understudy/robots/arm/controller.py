"""VirtualController: what a real grblHAL-driven arm would do with what it is told.

Commands act after the command delay, readings are as old as the feedback delay, both in simulated
time. The emergency stop is hard-wired: it knows no delay.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import ConfigError, Refused
from understudy.gcode import Problem, parse
from understudy.ports import (
    AnalogIO,
    ClockState,
    ControllerStatus,
    DigitalIO,
    JointState,
    Part,
    Tally,
)
from understudy.ports.controller import JointListener, StatusListener
from understudy.ports.device import Device, FollowsTool, LightsTool, Process, ToolPath
from understudy.ports.faults import Faults
from understudy.ports.hmi import RobotView
from understudy.robots.arm import refusals as why
from understudy.robots.arm.config import FAULTS
from understudy.robots.arm.drives import Arm, Drives, Order
from understudy.robots.arm.guarded import Guarded
from understudy.robots.arm.listeners import Listeners
from understudy.robots.arm.probe import ContactProbe
from understudy.robots.arm.saved import Saved
from understudy.robots.arm.view import status_of, view_of
from understudy.robots.arm.wired import firmware_of
from understudy.robots.grblhal.firmware import IN_ALARM
from understudy.simulation.collision.body import Body
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.pose import Pose
from understudy.units import seconds


class VirtualController:
    """The document's IMotionController on simulated time; a `Part` of the cell."""

    def __init__(self, name: str, arm: Arm, *, io: VirtualIO, clock_state: ClockState) -> None:
        self.name = name
        self.io = io
        self._devices: dict[str, Device] = {}
        self._arm = arm
        self._tempo = clock_state
        self._drives = Drives(arm, io)
        self.tips, self.set_tcp = self._drives.tips, self._drives.set_tip
        self.firmware = firmware_of(arm, self._drives, self._energize)
        self.collision: CollisionWatch | None = None
        self._connected = self._enabled = False
        self._alarm: Refused | None = None
        self._lines = self._fresh = 0
        self._audience = Listeners(arm.period)
        io.on_change(lambda change: self._tell(change.at))

    def mount(self, kind: str, device: Device) -> None:
        """Adds a device; programs wait for one whose process M3 and M5 switch."""
        self._devices[kind] = device
        if isinstance(device, FollowsTool):
            self._drives.before_change.append(device.catch_up)
        if isinstance(device, Process):
            if self._drives.runner.process is not None:
                raise ConfigError("M3 and M5 can switch one device of a robot", key=kind)
            self._drives.runner.process = device
            device.on_process(self._process_changed)

    def guard(self, body: Body, tell: Callable[[str], None]) -> None:
        """Told once, when the cell is put together: what it touches is watched."""
        guarded = Guarded(self._drives, self._trip)
        self.collision = CollisionWatch(self.name, body, guarded, tell)
        self._drives.on_other_path(self.collision.cut)
        self._drives.runner.probe = ContactProbe(self.collision, self._drives.runner)

    @property
    def parts(self) -> dict[str, Part]:
        """The parts of this robot by name: pins, devices, collision watch."""
        watch: dict[str, Part] = {"collision": self.collision} if self.collision else {}
        return {"io": self.io, **self._devices, **watch}

    @property
    def tool_path(self) -> ToolPath:
        return self._drives.tool_way

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
            return why.NOT_CONNECTED
        if self._alarm:
            return self._alarm
        self._enabled = True
        return self._done(now)

    def disable(self, now: int) -> Refused | None:
        """The drives drop at once: arc and gas go off, what waits is forgotten."""
        self._halt(now)
        self._enabled = False
        return self._done(now)

    def is_enabled(self) -> bool:
        return self._enabled

    def is_simulation(self) -> bool:
        return True

    # ── motion ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        """Queue a line; one that cannot be read is refused at once and not queued.

        After a line that failed later, every line is refused until an empty one or a reset.
        """
        if refused := self._not_ready() or (why.JOGGING if self._drives.expects_jog() else None):
            return refused
        if len(lines := text.splitlines()) > 1:
            place = f"line {self._lines + 1}, column {len(lines[0]) + 1}"
            return Refused(f"{place}: the line ends here; one line at a time", 1)
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
        """Move one axis at a speed in rad/s until `stop_jog` or the end of its range."""
        if refused := self._not_ready() or self._no_axis(axis):
            return refused
        if self._drives.expects_program(now):
            return why.BUSY
        if not np.isfinite(velocity):
            return Refused(f"{velocity} rad/s is no speed")
        return self._order("jog", now, number=int(axis), value=velocity)

    def stop_jog(self, now: int) -> Refused | None:
        """Brake all axes that are jogged."""
        return self._order("stop_jog", now)

    def stop(self, now: int) -> Refused | None:
        """Brake along the path, and forget what waits."""
        return self._order("stop", now)

    def emergency_stop(self, now: int) -> Refused | None:
        """The drives drop at once; nothing is accepted until `reset`."""
        return self._trip(why.STOPPED, now)

    def home(self, now: int, axis: int = -1) -> Refused | None:
        """Queue the homing of one axis, or of all: the wrist first."""
        if refused := self._not_ready() or (self._no_axis(axis) if axis != -1 else None):
            return refused
        if self._drives.expects_jog():
            return why.JOGGING
        return self._order("home", now, number=int(axis))

    def is_homed(self) -> bool:
        return self._drives.runner.homed

    # ── the operator's ──

    def hold(self, now: int) -> Refused | None:
        """Brake along the path and wait for `cycle_start`; a jog ends."""
        return self._order("hold", now) if self._enabled else self._done(now)

    def cycle_start(self, now: int) -> Refused | None:
        """Go on after `hold`, M0, M1 or M60."""
        return self._not_ready() or self._order("cycle_start", now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        return self._override("override_feed", percent, (10.0, 200.0), now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        return self._override("override_rapid", percent, (5.0, 100.0), now)

    def set_optional_stop(self, wanted: bool) -> None:
        """Whether M1 pauses."""
        self._drives.runner.state.optional_stop = wanted

    def reset(self, now: int) -> Refused | None:
        """Clear emergency stop and errors; whatever moves is cut off."""
        self._halt(now)
        self._drives.runner.reset()
        self._alarm = None
        if self.collision is not None:
            self.collision.release()
        self.firmware.release(now, unlock=True)
        return self._done(now)

    def set_joint_positions(self, positions: ArrayLike, now: int) -> Refused | None:
        """Put the arm there without moving it; only a simulation can."""
        target = np.array(positions, dtype=np.float64)
        if refused := why.no_positions(target, self._dof):
            return refused
        if not self._drives.at_rest(now):
            return why.BUSY
        if refused := self._arm.movers[0].beyond(target):
            return refused
        self._drives.put(target, now)
        if self.collision is not None:
            self.collision.stir(now)
        self._fresh = now
        return self._done(now)

    # ── pins ──

    def digital_io(self) -> DigitalIO:
        return self.io.digital()

    def analog_io(self, now: int) -> AnalogIO:
        return self.io.analog(now)

    def input_result(self) -> float:
        """What the last M66 read; -1 when its time was over."""
        return self._drives.runner.state.result

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None:
        return self.io.set_digital_output(pin, value, now)

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None:
        return self.io.set_analog_output(channel, value, now)

    # ── what it tells ──

    def joint_state(self, now: int) -> JointState:
        """As old as the feedback delay; an emergency stop shows at once."""
        motion = self._drives.motion(max(now - self._arm.feedback_delay, self._fresh))
        parts = (*motion, self._drives.torques(motion))
        return JointState(*(tuple(part.tolist()) for part in parts))

    def tcp(self, now: int) -> Pose:
        """Where the tip of the tool is, from the robot's base."""
        return self._drives.tip(now)

    def tally(self, now: int) -> Tally:
        """What was done so far."""
        executed = self._drives.runner.state.executed
        contacts = self.collision.detected if self.collision else 0
        return Tally(executed, contacts, self._drives.distance(now))

    def status(self, now: int) -> ControllerStatus:
        told = status_of(self._drives, self._alarm, now)
        return replace(told, connected=self._connected, enabled=self._enabled, accepted=self._lines)

    def view(self, now: int) -> RobotView:
        lit = any(each.lit for each in self._devices.values() if isinstance(each, LightsTool))
        return view_of(self._drives, self.io, lit=lit, alarm=self._alarm is not None, now=now)

    def on_status(self, listener: StatusListener) -> None:
        """Told whenever the controller connects, moves, stops, fails, homes."""
        self._audience.on_status(listener)

    def on_joint_state(self, listener: JointListener, now: int) -> None:
        """Told on the grid of update_rate_hz, from the next point on."""
        self._audience.on_joints(listener, now)

    # ── simulated time ──

    def set_time_scale(self, scale: float) -> Refused | None:
        return self._tempo.set_scale(scale)

    def pause(self) -> None:
        self._tempo.pause()

    def resume(self) -> None:
        self._tempo.resume()

    def simulation_time(self, now: int) -> float:
        return seconds(now)

    # ── part ──

    def next_wake(self) -> int | None:
        moments = (self._drives.next_wake(), self.firmware.next_wake(), self._audience.next_beat)
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        self._drives.wake(now)
        self.firmware.wake(now)
        self._tell(now)
        self._audience.tell_joints(now, lambda: self.joint_state(now))

    def busy(self) -> bool:
        return self._drives.under_way() or self.firmware.restoring

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault != "axis_fault":
            return self.emergency_stop(now) if fault == "emergency_stop" else self.reset(now)
        axis = round(parameters["axis"])
        if refused := self._no_axis(axis):
            return refused
        joint = self._arm.movers[0].chain.names[axis]
        return self._trip(Refused(f"motor fault of {joint}: reset first", why.MOTOR_FAULT), now)

    def save(self) -> Saved:
        return Saved(
            connected=self._connected,
            enabled=self._enabled,
            alarm=(self._alarm.reason, self._alarm.code) if self._alarm else None,
            lines=self._lines,
            fresh=self._fresh,
            audience=self._audience.state,
            drives=self._drives.save(),
            firmware=self.firmware.save(),
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self._connected, self._enabled = saved.connected, saved.enabled
        self._alarm = Refused(*saved.alarm) if saved.alarm else None
        self._lines, self._fresh = saved.lines, saved.fresh
        self._audience.state = saved.audience
        self._drives.load(saved.drives)
        self.firmware.load(saved.firmware)

    # ── inside ──

    def _process_changed(self, now: int) -> None:
        runner = self._drives.runner
        failure = runner.process.failure() if runner.process else None
        if failure and not runner.idle(now):
            line = runner.queue.line_at(now)
            place = f"line {line}: " if line else ""
            runner.fail(Refused(place + failure.reason, failure.code), now)
        runner.run(now)
        self._tell(now)

    @property
    def _dof(self) -> int:
        return len(self._arm.start)

    def _not_ready(self) -> Refused | None:
        if not self._connected:
            return why.NOT_CONNECTED
        if self._alarm:
            return self._alarm
        if not self._enabled:
            return why.NOT_ENABLED
        return IN_ALARM if self.firmware.locked else None

    def _energize(self, now: int) -> None:
        """A line over the wire brings the drives up, as on the real controller."""
        self._connected, self._enabled = True, self._alarm is None

    def _no_axis(self, axis: int) -> Refused | None:
        return why.no_axis(axis, self._dof)

    def _override(
        self, name: str, percent: float, bounds: tuple[float, float], now: int
    ) -> Refused | None:
        """In whole percent, as the firmware has it: the wire tells the same."""
        refused = why.out_of_bounds(percent, bounds)
        return refused or self._order(name, now, number=round(percent))

    def _order(
        self, name: str, now: int, *, text: str = "", number: int = 0, value: float = 0.0
    ) -> Refused | None:
        due = now + self._arm.command_delay
        self._drives.give(Order(due, name, text, number, value), now)
        return self._done(now)

    def _trip(self, alarm: Refused, now: int) -> Refused | None:
        """The drives drop at once, and the arc with them."""
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
        """Nothing was refused."""
        self._tell(now)
        return None

    def _tell(self, now: int) -> None:
        """Whoever listens, if something is different now."""
        self._audience.tell_status(lambda: self.status(now))
