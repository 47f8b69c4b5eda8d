"""The shared part of a firmware: its state, its program, alarms, and notices to listeners."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import ArrayLike

from understudy.errors import Refused
from understudy.gcode.dialect import ZERO, Axes
from understudy.motion.path import TOOL, Floats
from understudy.motion.stream import Queue, time_in
from understudy.robots.grblhal import controller
from understudy.robots.grblhal.controller import Field, Listener, Notice
from understudy.robots.grblhal.firmware.conditions import (
    LOCKED,
    SAMPLED,
    STOPPED,
    TRANSITIONS,
    Condition,
    Event,
)
from understudy.robots.grblhal.firmware.homing_run import HomingRun
from understudy.robots.grblhal.numbers import (
    ALL_AXES,
    AXIS_LETTERS,
    CRITICAL_ALARMS,
    AlarmCode,
    ErrorCode,
    HardLimitOption,
    HomingOption,
    SettingNumber,
)
from understudy.simulation.program.runner import Homing, Runner
from understudy.simulation.program.steps import ControllerOptions
from understudy.units import MINUTE, MM, seconds, whole_ns

if TYPE_CHECKING:
    from understudy.robots.grblhal.machine.sensors import MachineSensors

NOT_IDLE = Refused("allowed only while nothing moves and nothing waits", ErrorCode.NOT_IDLE)
IN_ALARM = Refused("no G-code in alarm or while jogging", ErrorCode.LOCKED)

CRITICAL_EVENTS: dict[int, controller.Event] = {
    AlarmCode.ESTOP: "estop",
    AlarmCode.MOTOR_FAULT: "motor fault",
}

SETTABLE: tuple[Condition, ...] = ("Idle", "Alarm", "Critical", "EStop", "Check")
"""Conditions in which settings may be changed."""

SettingValues = Mapping[int, float]
"""Settings by grblHAL's numbers."""


@dataclass(frozen=True)
class ControlledAxes:
    """The axes that a firmware controls, as functions that it calls.

    | field | meaning |
    |---|---|
    | ``unit`` | unit of the axes' paths: 1 for mm and deg; of an arm one per joint, in rad or m |
    | ``defaults`` | settings after "restore defaults" |
    | ``stored`` | settings at the first power-on where they differ from the defaults |
    | ``change`` | returns the settings with one of them changed, or why not |
    | ``build`` | options and queue for settings, position and time; None: they do not change |
    | ``on_steps`` | rounds a position to whole steps |
    | ``sensors`` | limit switches and probe; None: the axes know their home |
    | ``origin`` | position on the machine where the firmware counts zero at power-on |
    | ``homed`` | is called with the mask of the homed axes when it changes |
    | ``jogged`` | whether something other than the program moves the axes |
    | ``where`` | position of the axes; None: that of the program's plan |
    | ``brake``, ``halt`` | brake or stop the axes that something else moves |
    | ``switch`` | turns spindle and coolant on or off for the operator, without a line |
    | ``energize`` | is called with every line |
    | ``first_line`` | the firmware numbers its own lines from here |
    """

    unit: ArrayLike
    defaults: SettingValues
    change: Callable[[SettingValues, int, str], SettingValues | Refused]
    build: Callable[[SettingValues, Floats, float], tuple[ControllerOptions, Queue]] | None = None
    on_steps: Callable[[Floats], Floats] = lambda position: position
    sensors: "MachineSensors | None" = None
    origin: Axes = ZERO
    homed: Callable[[int], None] = lambda axes: None
    jogged: Callable[[], bool] = lambda: False
    where: Callable[[int], Floats] | None = None
    brake: Callable[[int], None] = lambda now: None
    halt: Callable[[int], None] = lambda now: None
    switch: Callable[[bool, bool, int], None] = lambda spindle, coolant, now: None
    energize: Callable[[int], None] = lambda now: None
    first_line: int = 0
    stored: tuple[tuple[int, float], ...] = ()


class FirmwareState(Struct):
    """Everything that a snapshot contains of a firmware besides its program.

    `condition` is the stored condition; `FirmwareCore.condition` takes the motion into account.
    `alarm` is the number of the last alarm. `at_rest` is the pending action for when the axes are
    at rest: the effect of 0x19, of 0x85, or a soft limit alarm. `jogging`: the motion in progress
    is a jog. `restores_at`: when the spindle or the coolant that was started again is up to speed
    (Door:4, or at the end of a hold). `coolant_before`: flood and mist before the operator switched
    them in a hold. `tool` is the tool in the spindle while an M6 waits for the operator;
    `acknowledged`: lines are read meanwhile. `spindle_settings` are the values that the spindle was
    set up with; None: those of the start. `coolant_inverted`: $15 when the coolant was set.
    `checked_speed` is the speed of the spindle in check mode.

    `homing` is the homing cycle in progress, `homed` the mask of the homed axes, `home` the
    positions that homing has set. `origin`: where the axes stand on the machine when the firmware
    counts zero. `position_lost`: the motion was cut off, so that a reset clears `homed`.
    `limit_event`: the limit inputs that raised the last hard limit alarm; `cut_blocks`: the blocks
    of the planner that it cut off, which are counted until a reset. Hard limits act on motion after
    the time `limits_from`.

    M48 … M53 set the fields `…_allowed`; an override that is not allowed is kept and acts again
    later. `system` is the coordinate system of the last notice.
    `numbered` are the N words of queued lines; `starting` and `storing` are start-up lines in
    execution, by number; `unchecked` are blocks of the latter that have not run. `resume_at`: when
    a client that waits may continue. `inhibited`: the cell is stopped.
    """

    settings: list[tuple[int, float]] = []
    startup: list[str] = field(default_factory=lambda: ["", ""])
    label: str = ""
    condition: Condition = "Idle"
    alarm: int = 0
    at_rest: Literal["", "stop", "cancel jog", "soft limit"] = ""
    jogging: bool = False
    restores_at: int | None = None
    coolant_before: tuple[bool, bool] | None = None
    homing: HomingRun | None = None
    homed: int = 0
    home: Axes = ZERO
    origin: list[float] = field(default_factory=lambda: list(ZERO))
    position_lost: bool = False
    limit_event: int = 0
    cut_blocks: int = 0
    limits_from: int = 0
    tool: int | None = None
    feed_allowed: bool = True
    speed_allowed: bool = True
    hold_allowed: bool = True
    feed: int = 100
    rapid: int = 100
    spindle_percent: int = 100
    spindle: str = "M5"
    flood: bool = False
    mist: bool = False
    result: float | None = None
    system: int = 0
    probe: Axes = ZERO
    touched: bool = False
    optional_stop: bool = True
    single_block: bool = False
    block_delete: bool = False
    lines: int = 0
    numbered: list[tuple[int, int]] = []
    starting: list[tuple[int, str]] = []
    storing: tuple[int, int, str] | None = None
    unchecked: list[str] = []
    acknowledged: bool = False
    spindle_settings: list[float] | None = None
    coolant_inverted: int = 0
    checked_speed: float = 0.0
    resume_at: int | None = None
    inhibited: bool = False


class FirmwareCore:
    """State, program and listeners, shared by the parts of a firmware.

    The firmware sets ``runner`` after it has built it.
    """

    runner: Runner

    def __init__(self, axes: ControlledAxes) -> None:
        self.axes = axes
        self.state = FirmwareState(settings=list(axes.stored), origin=list(axes.origin))
        self._known_settings: tuple[list[tuple[int, float]] | None, SettingValues] = (None, {})
        self._listeners: list[Listener] = []

    # ── notices ──

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def emit(self, notice: Notice, now: int) -> None:
        for listener in self._listeners:
            listener(notice, now)

    def answer(self, code: int, now: int) -> None:
        self.emit(Notice("answer", code), now)

    def notify(self, event: controller.Event, now: int) -> None:
        self.emit(Notice("event", text=event), now)

    def changed(self, now: int, *fields: Field) -> None:
        for name in fields:
            self.emit(Notice("changed", text=name), now)

    # ── condition ──

    def condition(self, now: int) -> Condition:
        """The stored condition, or the one that follows from the program and its motion now."""
        state, program = self.state, self.runner.state
        if state.condition in ("Door:0", "Door:2"):
            return "Door:2" if self.under_way(now) else "Door:0"
        if state.condition != "Idle":
            return state.condition
        if state.inhibited:
            return "Inhibited"
        moving = self.moving(now)
        if self.runner.queue.held or program.paused:
            return "Hold:1" if moving else "Hold:0"
        if state.homing is not None or isinstance(program.current, Homing):
            return "Home"
        if state.tool is not None:
            return "Tool"
        if moving or self.axes.jogged():
            return "Jog" if state.jogging or not moving else "Run"
        return "Idle"

    def permits(self, event: Event, now: int) -> bool:
        """Whether the event has an effect in the present condition."""
        return (self.condition(now), event) in TRANSITIONS

    def apply(self, event: Event, now: int) -> bool:
        """Follow the table of transitions; False if the event has no effect."""
        after = TRANSITIONS.get((self.condition(now), event))
        if after is not None:
            self.state.condition = "Idle" if after in SAMPLED else after
        return after is not None

    @property
    def alarm(self) -> int:
        """The number of the active alarm; 0 if there is none."""
        return self.state.alarm if self.state.condition in LOCKED else 0

    @property
    def locked(self) -> bool:
        """An alarm is active, or the cell is stopped."""
        return self.state.inhibited or self.state.condition in LOCKED

    def moving(self, now: int) -> bool:
        """Whether the program moves the axes; a dwell does not."""
        plan = self.runner.queue.plan
        if not len(plan.path) or whole_ns(plan.ends) <= now:
            return False
        return not plan.path.dwell[plan.piece_at(seconds(now))] > 0.0

    def under_way(self, now: int) -> bool:
        """Whether the program or something else moves the axes."""
        return self.moving(now) or self.axes.jogged()

    # ── values ──

    def position(self, now: int) -> Axes:
        """Position as counted in steps, in axis units."""
        return self.runner.mover.axes(self.axes.on_steps(self._where(now)))

    def speed(self, now: int) -> float:
        """Speed along the path, per minute."""
        run = self.state.homing
        if run is not None:
            return 0.0 if run.leg is None else run.leg.speed_at(now) * MINUTE
        plan, t = self.runner.queue.plan, seconds(now)
        if not len(plan.path) or whole_ns(plan.ends) <= now:
            return 0.0
        place = plan.place(t)
        if plan.path.measure[place.piece] == TOOL:
            return place.v / MM * MINUTE
        tangent = plan.path.tangent(place.piece, place.s) / np.asarray(self.axes.unit)
        return place.v * float(np.linalg.norm(tangent)) * MINUTE

    def settings(self) -> SettingValues:
        own, values = self._known_settings
        if own is not self.state.settings:  # a change and a restored state bring another list
            own = self.state.settings
            values = {**self.axes.defaults, **dict(own)}
            self._known_settings = own, values
        return values

    def rpm(self) -> float:
        """Speed of the spindle."""
        state, speed = self.state, self.runner.state.modal.speed
        speed = state.checked_speed if state.condition == "Check" else speed
        if state.spindle == "M5" or speed == 0.0:
            return 0.0
        settings = self.settings()
        percent = state.spindle_percent if state.speed_allowed else 100
        wanted = speed * percent / 100.0
        highest, lowest = SettingNumber.MAXIMUM_RPM, SettingNumber.MINIMUM_RPM
        return max(min(wanted, settings[highest]), settings[lowest])

    # ── homing and limit switches ──

    @property
    def homing_options(self) -> int:
        """The options of the homing cycle, $22."""
        return int(self.settings()[SettingNumber.HOMING_CYCLE])

    @property
    def homing_axes(self) -> int:
        """Mask of the axes that `$H` homes: those of all phases, $44 … $49."""
        settings, mask = self.settings(), 0
        for phase in range(len(AXIS_LETTERS)):
            mask |= int(settings[SettingNumber.HOMING_PHASE + phase])
        return mask

    def homing_required(self, *, cold: bool = False) -> bool:
        """Whether the machine is locked until it is homed; ``cold``: at power-on."""
        options, axes = self.homing_options, self.homing_axes
        needed = HomingOption.ENABLED | HomingOption.REQUIRED
        if self.axes.sensors is None or options & needed != needed:
            return False
        locks = cold or not options & HomingOption.OVERRIDE_LOCKS
        return locks and bool(axes & ~self.state.homed)

    def set_homed(self, axes: int) -> None:
        self.state.homed = axes
        self.axes.homed(axes)

    def on_machine(self, now: int) -> Floats:
        """Position of the axes on the machine, whatever the firmware counts."""
        return np.array(self.position(now)) + self.state.origin

    def limits(self, now: int) -> int:
        """Mask of the engaged limit inputs."""
        return self.limits_at(self.on_machine(now))

    def limits_at(self, position: Floats, inverted: int | None = None) -> int:
        """Mask of the limit inputs that are engaged at a position on the machine.

        ``inverted``: `inverted_limits`, if it is already known.
        """
        if self.axes.sensors is None:
            return 0
        inverted = self.inverted_limits if inverted is None else inverted
        return self.axes.sensors.limits(position) ^ inverted

    @property
    def inverted_limits(self) -> int:
        """The mask of the inverted limit inputs, $5."""
        return int(self.settings()[SettingNumber.INVERT_LIMITS])

    def strictly_engaged(self, now: int) -> bool:
        """Whether an engaged limit input locks the machine."""
        needed = HardLimitOption.ENABLED | HardLimitOption.STRICT
        options = int(self.settings()[SettingNumber.HARD_LIMITS])
        return options & needed == needed and bool(self.limits(now) & self.hard_limits)

    @property
    def hard_limits(self) -> int:
        """Mask of the axes whose limit inputs raise an alarm."""
        settings = self.settings()
        options = int(settings[SettingNumber.HARD_LIMITS])
        if self.axes.sensors is None or not options & HardLimitOption.ENABLED:
            return 0
        rotary = int(settings[SettingNumber.ROTARY_AXES]) << 3
        return ALL_AXES & ~rotary if options & HardLimitOption.NOT_ROTARY else ALL_AXES

    def contact(self, now: int) -> bool:
        """Whether the probe input is on."""
        if self.axes.sensors is None:
            return False
        inverted = bool(self.settings()[SettingNumber.INVERT_PROBE])
        return self.axes.sensors.contact(self.on_machine(now)) != inverted

    def end_homing(self, now: int) -> None:
        """Let the program continue from where the homing cycle has come to."""
        run = self.state.homing
        if run is not None:
            here = self.axes.on_steps(run.position(now))
            self.state.homing = None
            self.runner.continue_from(here, now)

    # ── effects ──

    def apply_overrides(self, now: int) -> None:
        """Set feed and rapid override, unless the program disables both."""
        state = self.state
        feed, rapid = (state.feed, state.rapid) if state.feed_allowed else (100, 100)
        self.runner.override(now, feed=feed / 100.0, rapid=rapid / 100.0)

    def emergency_stop(self, alarm: int, now: int) -> None:
        """Stop the axes at once for an emergency stop or motor fault; a reset does not end it."""
        if self.state.condition in STOPPED:
            return
        self.state.position_lost |= self.under_way(now) or self.state.homing is not None
        self.end_homing(now)
        self.runner.halt(now)
        self.sync(now)
        self.lock("emergency stop", alarm, now)

    def process_failed(self, now: int) -> None:
        """The spindle, or the arc in its place, is not as commanded."""
        if not self.locked:
            self.lock("alarm", AlarmCode.PROCESS_FAULT, now)

    def lock(self, event: Event, alarm: int, now: int) -> None:
        """Raise an alarm: nothing moves until it is unlocked or reset."""
        state = self.state
        self.apply(event, now)
        self.end_homing(now)
        state.alarm, state.restores_at, state.at_rest = alarm, None, ""
        self.emit(Notice("alarm", alarm), now)
        if alarm in CRITICAL_ALARMS:
            self.notify(CRITICAL_EVENTS.get(alarm, "critical"), now)
            self.emit(Notice("flush"), now)
            self.emit(Notice("void"), now)

    def sync(self, now: int) -> None:
        """Let the program continue from the present position of the axes, counted in steps."""
        self.runner.continue_from(self.axes.on_steps(self._where(now)), now)

    def round_position(self, now: int) -> None:
        """Round the position of the axes, which are at rest, to whole steps."""
        self.runner.correct_position(self.axes.on_steps(self._where(now)), now)

    def store_startup(self) -> None:
        """Store the start-up line in execution."""
        if self.state.storing is not None:
            _, index, text = self.state.storing
            self.state.startup[index] = text

    def drop_startup(self) -> None:
        """End the start-up line in execution; one that only pauses is stored."""
        if self.runner.state.paused:
            self.store_startup()
        self.state.storing = None

    def reset_switches(self) -> None:
        """Turn single block and block delete off and optional stops on, as no input sets them."""
        state = self.state
        state.single_block = state.block_delete = False
        state.optional_stop = True

    def switch_off(self, now: int) -> None:
        """Turn spindle and coolant off."""
        state = self.state
        state.spindle, state.flood, state.mist = "M5", False, False
        self.changed(now, "spindle", "coolant")
        self.switch_outputs(now)

    def switch_outputs(self, now: int) -> None:
        """Turn spindle and coolant on or off as in the state, for changes that no line has made."""
        state = self.state
        self.note_coolant()
        self.axes.switch(state.spindle != "M5", state.flood or state.mist, now)

    def note_coolant(self) -> None:
        """The outputs of the coolant are set with the present $15."""
        self.state.coolant_inverted = int(self.settings()[SettingNumber.INVERT_COOLANT])

    @property
    def coolant(self) -> tuple[bool, bool]:
        """Flood and mist as the firmware reads them from its outputs: a change of $15 shows at
        once, and acts when they are set again."""
        state = self.state
        other = int(self.settings()[SettingNumber.INVERT_COOLANT]) ^ state.coolant_inverted
        return state.flood != bool(other & 1), state.mist != bool(other & 2)

    def wake_now(self, now: int) -> None:
        """Request a wake at once, so that waiting clients may continue."""
        self.state.resume_at = now

    def _where(self, now: int) -> Floats:
        if self.state.homing is not None:
            return self.state.homing.position(now)
        if self.axes.where is not None:
            return self.axes.where(now)
        plan = self.runner.queue.plan
        return plan.at(time_in(plan, now)).position
