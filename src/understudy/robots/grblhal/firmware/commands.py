"""The operator's side of a firmware: real-time commands, switches and overrides, stored data."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.blocks import normalized
from understudy.gcode.dialect import ZERO, Axes, firmware_delay
from understudy.motion.path import Floats
from understudy.robots.grblhal.controller import Event, Notice, Override, Restored, Toggle
from understudy.robots.grblhal.firmware.conditions import CRITICAL, HELD_JOG, SLEEP, TRANSITIONS
from understudy.robots.grblhal.firmware.core import NOT_IDLE, SETTABLE, FirmwareCore
from understudy.robots.grblhal.numbers import (
    AXIS_LETTERS,
    LONGEST_STORED,
    OVERRIDE_RANGES,
    RESTORE_AFTER_HOLD,
    AlarmCode,
    ErrorCode,
    HomingOption,
    SettingNumber,
)
from understudy.units import nanoseconds, seconds

CLEAR_RAPID_OVERRIDE, CLEAR_FEED_OVERRIDE = 4, 8
"""Bits of $676: overrides that a reset sets to 100 %."""
NO_SLEEP = Refused("sleep is switched off ($62=0)", ErrorCode.UNKNOWN_COMMAND)
ENGAGED = Refused("a limit switch is engaged: only homing is allowed", ErrorCode.LIMITS_ENGAGED)
HOME_FIRST = Refused("home the machine first ($H)", ErrorCode.HOMING_REQUIRED)
START_ALARMS: dict[int, Event] = {
    AlarmCode.HOMING_REQUIRED: "homing required",
    AlarmCode.LIMITS_ENGAGED: "limits engaged",
}
FORGET_HOME = 1
"""Bit of $676: a reset that cuts off motion clears the homed status."""


SPINDLE_SETTINGS = (
    SettingNumber.PWM_OPTIONS,
    SettingNumber.MAXIMUM_RPM,
    SettingNumber.MINIMUM_RPM,
    33,
    34,
    35,
    36,
    SettingNumber.SPINDLE_DELAY,
    SettingNumber.SPINDLE_OFF_DELAY,
)
"""$33 … $36 are those of the PWM."""


class FirmwareRealtime:
    """Commands of a single byte that act at once, ahead of all lines; ``run_startup`` executes the
    start-up lines after a reset."""

    def __init__(
        self, core: FirmwareCore, run_startup: Callable[[Sequence[str], int], None]
    ) -> None:
        self._core = core
        self._run_startup = run_startup

    def hold(self, now: int) -> None:
        state = self._core.state
        listens = state.hold_allowed and not state.at_rest
        if listens and self._core.permits("hold", now):
            self._core.runner.hold(now)

    def start(self, now: int) -> None:
        core, state = self._core, self._core.state
        condition = core.condition(now)
        braking = condition == "Jog:Held" and core.under_way(now)
        if state.restores_at is not None or braking or not core.apply("start", now):
            return
        if condition == "Tool":
            state.tool = None
            core.changed(now, "tool")
            core.emit(Notice("report"), now)
        else:
            self.restore_outputs(now)
        core.wake_now(now)

    def reset(self, now: int) -> None:
        core = self._core
        condition = core.condition(now)
        homing = condition == "Home"
        in_motion = core.under_way(now) or homing or condition in HELD_JOG
        if in_motion and core.permits("reset in motion", now):
            self._cut_off(now)
            alarm = AlarmCode.HOMING_RESET if homing else AlarmCode.RESET_IN_MOTION
            core.lock("reset in motion", alarm, now)
        if not core.permits("reset", now):
            return
        core.drop_startup()
        core.runner.halt(now)
        core.sync(now)
        core.runner.reset()
        core.apply("reset", now)
        self._clear(now)
        self._greet(now)
        core.wake_now(now)

    def fail_homing(self, alarm: int, now: int) -> None:
        """End the homing cycle with an alarm, and restart."""
        self._cut_off(now)
        self._core.lock("alarm", alarm, now)
        self.reset(now)

    def release(self, now: int, *, unlock: bool = False) -> None:
        """Release the emergency stop and reset; ``unlock`` also ends the alarm."""
        self._core.apply("release", now)
        if unlock:
            self._core.apply("unlock", now)
        self.reset(now)

    def stop(self, now: int) -> None:
        if self._core.permits("stop", now):
            self._core.drop_startup()
            self._core.state.at_rest = "stop"
            self._core.axes.brake(now)
            self._core.runner.stop(now)
            self.rest(now)

    def inhibit(self, now: int) -> None:
        """Brake, drop the program and the lines that wait, and refuse motion until `permit`."""
        core, state = self._core, self._core.state
        if state.inhibited:
            return
        if core.permits("inhibit", now):
            self.stop(now)
        core.end_homing(now)
        state.inhibited = True
        core.emit(Notice("flush"), now)
        core.emit(Notice("void"), now)
        core.wake_now(now)

    def permit(self, now: int) -> None:
        """Accept motion again."""
        core = self._core
        if not core.state.inhibited:
            return
        core.state.inhibited = False
        if not core.locked:
            core.notify("unlocked", now)
        core.wake_now(now)

    def door(self, now: int) -> None:
        core, state = self._core, self._core.state
        condition = core.condition(now)
        if condition == "Home":
            self.fail_homing(AlarmCode.HOMING_DOOR, now)
            return
        if not core.permits("door", now):
            return
        core.notify("door", now)
        ends_jog = condition == "Jog" and (core.axes.jogged() or bool(state.at_rest))
        if ends_jog:  # a jog of the cell, or one that is cancelled: it is not held as `$J=` is
            state.condition = TRANSITIONS["Run", "door"]
        elif condition != "Jog:Held" or not core.under_way(now):
            core.apply("door", now)
        state.restores_at = None
        core.axes.brake(now)
        if state.jogging and (ends_jog or condition == "Tool"):
            core.runner.stop(now, silent=False)
        else:
            core.runner.hold(now)
        self.rest(now)

    def cancel_jog(self, now: int) -> None:
        if self._core.condition(now) == "Jog":
            self._core.state.at_rest = "cancel jog"
            self._core.axes.brake(now)
            self._core.runner.stop(now, silent=False)
            self.rest(now)

    def restore_outputs(self, now: int) -> None:
        """Start the spindle, then the coolant, then the motion, after a hold or a closed door."""
        core, state = self._core, self._core.state
        held = state.condition != "Door:4"
        if held and not int(core.settings()[SettingNumber.HOLD_ACTIONS]) & RESTORE_AFTER_HOLD:
            self._keep_outputs(now)
            return
        for restore in (self._restore_spindle, self._restore_coolant):
            setting = restore(now, held=held)
            delay = 0.0 if setting is None else firmware_delay(core.settings()[setting])
            if delay > 0.0:
                state.restores_at = now + nanoseconds(delay)
                return
        state.restores_at = state.coolant_before = None
        if held:
            core.notify("resumed", now)
        else:
            core.apply("restored", now)
        core.runner.cycle_start(now)
        core.wake_now(now)

    def _keep_outputs(self, now: int) -> None:
        """Go on after a hold with spindle and coolant as they are."""
        core, state = self._core, self._core.state
        state.coolant_before = None
        if state.spindle == "M5":
            modal = core.runner.state.modal
            core.runner.state.modal = replace(modal, spindle="M5", speed=0.0)
            core.changed(now, "spindle")
        core.runner.cycle_start(now)
        core.wake_now(now)

    def rest(self, now: int) -> None:
        """Carry out the pending action (`State.at_rest`) if the axes are at rest."""
        core, state = self._core, self._core.state
        if core.under_way(now):
            return
        state.jogging = False
        opened = state.condition == "Door:2"
        at_rest, state.at_rest = state.at_rest, ""
        if at_rest:
            core.sync(now)
            core.wake_now(now)
        if at_rest == "soft limit":
            core.lock("critical alarm", AlarmCode.SOFT_LIMIT, now)
        elif at_rest == "stop":
            self._finish_stop(now)
        elif opened:
            state.condition = TRANSITIONS["Door:2", "rest"]
        if opened and state.condition != "Idle":
            core.switch_off(now)

    # ── inside ──

    def _cut_off(self, now: int) -> None:
        """Stop the axes at this instant; they may have lost steps."""
        core = self._core
        core.state.position_lost = True
        core.end_homing(now)
        core.axes.halt(now)
        core.runner.halt(now)

    def _greet(self, now: int) -> None:
        """Report the restart; then lock the machine if it must be homed or stands on a switch, or
        run the start-up lines."""
        core, state = self._core, self._core.state
        lock = self.start_alarm(now)
        core.emit(Notice("reset", int(core.locked and not lock)), now)
        core.switch_off(now)
        if lock and core.alarm != lock:
            core.lock("alarm", lock, now)
        if lock:
            core.notify(START_ALARMS[lock], now)
        elif not core.locked and not core.homing_options & HomingOption.STARTUP_AFTER_HOMING:
            self._run_startup([line for line in state.startup if line], now)

    def start_alarm(self, now: int, *, cold: bool = False) -> int:
        """The alarm that locks the machine after a restart; 0 if none does."""
        core = self._core
        if core.condition(now) in CRITICAL or core.condition(now) in SLEEP:
            return 0
        if core.homing_required(cold=cold):
            return AlarmCode.HOMING_REQUIRED
        return AlarmCode.LIMITS_ENGAGED if core.strictly_engaged(now) else 0

    def _restore_spindle(self, now: int, *, held: bool) -> int | None:
        """Start a spindle that is off; the setting of its delay, None if there is nothing to do."""
        core, state = self._core, self._core.state
        wanted = core.runner.state.modal.spindle
        if state.spindle == wanted:
            return None
        if held:
            core.notify("restoring spindle", now)
        state.spindle = wanted
        core.changed(now, "spindle")
        core.switch_outputs(now)
        return SettingNumber.SPINDLE_DELAY if held else SettingNumber.DOOR_SPINDLE_DELAY

    def _restore_coolant(self, now: int, *, held: bool) -> int | None:
        """Switch the coolant as before the hold; the setting of its delay, None if it is so."""
        core, state = self._core, self._core.state
        modal = core.runner.state.modal
        wanted = state.coolant_before if held else (modal.flood, modal.mist)
        if wanted is None or wanted == (state.flood, state.mist):
            return None
        state.flood, state.mist = wanted
        core.runner.state.modal = replace(modal, flood=state.flood, mist=state.mist)
        core.changed(now, "coolant")
        core.switch_outputs(now)
        if held and not any(wanted):
            return None
        return SettingNumber.COOLANT_DELAY if held else SettingNumber.DOOR_COOLANT_DELAY

    def _drop_tool_change(self) -> None:
        """The tool of before an M6 that still waits stays in the spindle."""
        state, runner = self._core.state, self._core.runner
        if state.tool is not None:
            modal = runner.state.modal
            runner.state.modal = replace(modal, tool=state.tool, selected=state.tool)
            runner.state.mounted = state.tool
            runner.remount()
            state.tool = None

    def _clear(self, now: int) -> None:
        """Reset the state that a reset of the controller clears."""
        core, state = self._core, self._core.state
        state.jogging, state.at_rest = False, ""
        self._drop_tool_change()
        state.coolant_before = None
        state.result = state.restores_at = None
        state.probe, state.touched, state.cut_blocks = ZERO, False, 0
        if state.position_lost and int(core.settings()[SettingNumber.RESET_ACTIONS]) & FORGET_HOME:
            core.set_homed(0)
        state.position_lost = False
        state.numbered, state.starting = [], []
        state.system = core.runner.state.modal.coordinates
        core.reset_switches()
        state.feed_allowed = state.speed_allowed = state.hold_allowed = True
        cleared = int(core.settings()[SettingNumber.RESET_ACTIONS])
        state.feed = 100 if cleared & CLEAR_FEED_OVERRIDE else state.feed
        state.rapid = 100 if cleared & CLEAR_RAPID_OVERRIDE else state.rapid
        state.spindle_percent = 100
        core.apply_overrides(now)

    def _finish_stop(self, now: int) -> None:
        core, state = self._core, self._core.state
        core.runner.reset(stopped=True)
        core.switch_off(now)
        self._drop_tool_change()
        state.restores_at = state.coolant_before = None
        if core.alarm not in START_ALARMS:
            core.apply("stop", now)
            core.notify("stop", now)


class FirmwareSwitches:
    """The switches of an operator: overrides, toggles, check mode, lock and sleep."""

    def __init__(self, core: FirmwareCore) -> None:
        self._core = core

    def override(self, what: Override, percent: int, now: int) -> None:
        core, state = self._core, self._core.state
        low, high = OVERRIDE_RANGES[what]
        percent = max(low, min(high, percent))
        name = "spindle_percent" if what == "spindle" else what
        if getattr(state, name) == percent:
            return
        setattr(state, name, percent)
        if what != "spindle":
            core.apply_overrides(now)
        core.changed(now, "overrides")
        if what == "spindle" and state.spindle != "M5":
            core.changed(now, "spindle")

    def toggle(self, what: Toggle, now: int) -> bool:
        """Toggle a switch and return its new position."""
        state = self._core.state
        if what in ("flood", "mist"):
            return self._toggle_coolant(what, now)
        if what == "spindle":
            return self._toggle_spindle(now)
        name = what.replace(" ", "_")
        setattr(state, name, not getattr(state, name))
        on = bool(getattr(state, name))
        return not on if what == "optional stop" else on

    def unlock(self, now: int) -> Refused | None:
        core = self._core
        if core.locked and core.strictly_engaged(now):
            core.notify("limits engaged", now)
            return ENGAGED
        if core.locked and core.homing_required():
            return HOME_FIRST
        if core.apply("unlock", now):
            core.notify("unlocked", now)
        return None

    def check(self, now: int) -> Refused | None:
        """Enter check mode; or leave it, in which case the caller resets the controller."""
        core = self._core
        if core.state.condition == "Check":
            core.notify("disabled", now)
            return None
        if not core.apply("check", now):
            return NOT_IDLE
        core.state.checked_speed = core.runner.state.modal.speed
        core.notify("enabled", now)
        return None

    def sleep(self, now: int) -> Refused | None:
        core = self._core
        if not core.settings()[SettingNumber.SLEEP_ENABLED]:
            return NO_SLEEP
        if not core.apply("sleep", now):
            return NOT_IDLE
        core.switch_off(now)
        core.emit(Notice("flush"), now)
        return None

    def acknowledge(self, now: int) -> bool:
        """Accept lines while the operator changes a tool; whether that has an effect."""
        state = self._core.state
        new = self._core.condition(now) == "Tool" and not state.acknowledged
        state.acknowledged = state.acknowledged or new
        return new

    def _toggle_coolant(self, what: str, now: int) -> bool:
        core, state = self._core, self._core.state
        condition = core.condition(now)
        if condition in ("Idle", "Run", "Hold:0", "Hold:1"):
            if condition in ("Hold:0", "Hold:1") and state.coolant_before is None:
                state.coolant_before = (state.flood, state.mist)
            setattr(state, what, not getattr(state, what))
            modal = core.runner.state.modal
            core.runner.state.modal = replace(modal, flood=state.flood, mist=state.mist)
            core.changed(now, "coolant")
            core.switch_outputs(now)
        return bool(getattr(state, what))

    def _toggle_spindle(self, now: int) -> bool:
        """Stop or restart the spindle; only possible in a hold at rest."""
        core, state = self._core, self._core.state
        modal = core.runner.state.modal
        if core.condition(now) == "Hold:0" and modal.spindle != "M5":
            if state.spindle == "M5":
                core.notify("restoring spindle", now)
            state.spindle = "M5" if state.spindle != "M5" else modal.spindle
            core.changed(now, "spindle")
            core.switch_outputs(now)
        return state.spindle != "M5"


class FirmwareStorage:
    """Data that a reset keeps; ``check_startup`` runs a start-up line (its index and text), stores
    it if it is accepted, and answers."""

    def __init__(self, core: FirmwareCore, check_startup: Callable[[int, str, int], None]) -> None:
        self._core = core
        self._check_startup = check_startup

    def settings(self) -> Mapping[int, float]:
        return self._core.settings()

    def store(self, number: int, text: str, now: int) -> Refused | None:
        core = self._core
        if core.condition(now) not in SETTABLE:
            return NOT_IDLE
        settings = core.settings()
        before = settings.get(number, 0.0)
        changed = core.axes.change(settings, number, text)
        if isinstance(changed, Refused):
            return changed
        here = np.array(core.runner.queue.end, dtype=float)
        self._adopt(changed, now, rescaled(here, settings, changed))
        self._rescale_marks(settings, changed)
        self._set_up_spindle(number, now)
        if number == SettingNumber.REPORT_INCHES:
            core.changed(now, "offset")
        if number in (SettingNumber.HARD_LIMITS, SettingNumber.INVERT_LIMITS):
            core.state.limits_from = now
        if number == SettingNumber.CONTROL_INVERT:
            core.reset_switches()
        self._check_homed(number, before, now)
        return None

    def _check_homed(self, number: int, before: float, now: int) -> None:
        """Clear the homed status of an axis whose travel has changed, or that is not homed any
        more."""
        core, axis = self._core, number - SettingNumber.TRAVEL
        if 0 <= number - SettingNumber.HOMING_PHASE < len(AXIS_LETTERS):
            core.set_homed(core.state.homed & core.homing_axes)
        if not 0 <= axis < len(AXIS_LETTERS) or core.settings()[number] == before:
            return
        core.set_homed(core.state.homed & ~(1 << axis))
        core.changed(now, "homed")
        if core.homing_required():
            if core.alarm != AlarmCode.HOMING_REQUIRED:
                core.lock("alarm", AlarmCode.HOMING_REQUIRED, now)
            core.notify("homing required", now)

    def startup(self) -> tuple[str, ...]:
        return tuple(self._core.state.startup)

    def store_startup(self, index: int, text: str, now: int) -> None:
        """Run a start-up line and store it if it is accepted; the answer comes as a notice."""
        core = self._core
        line = normalized(text)
        if line and core.condition(now) not in SETTABLE:
            core.answer(NOT_IDLE.code, now)
        elif len(line) > LONGEST_STORED:
            core.answer(ErrorCode.TOO_LONG, now)
        elif line:
            self._check_startup(index, line, now)
        else:
            core.state.startup = ["" if n == index else s for n, s in enumerate(self.startup())]
            core.answer(0, now)

    def restore(self, what: Restored, now: int) -> Refused | None:
        """Restore defaults; the caller resets the controller afterwards."""
        core, state = self._core, self._core.state
        if core.condition(now) not in SETTABLE or state.condition == "Check":
            return NOT_IDLE
        if what in ("settings", "all"):
            self._adopt(core.axes.defaults, now)
        if what in ("parameters", "all"):
            blank = Modal()
            core.runner.state.modal = replace(
                core.runner.state.modal,
                offsets=blank.offsets,
                g92=blank.g92,
                g92_kept=blank.g92_kept,
                g28=blank.g28,
                g30=blank.g30,
            )
        if what == "all":
            state.startup, state.label = ["", ""], ""
        core.notify("restored", now)
        return None

    def label(self, text: str | None = None) -> str:
        """Store the text of ``$I=`` if one is given; return the stored text."""
        if text is not None:
            self._core.state.label = text
        return self._core.state.label

    def _set_up_spindle(self, number: int, now: int) -> None:
        """A change of its settings turns the spindle off."""
        core, state = self._core, self._core.state
        own = [core.settings()[setting] for setting in SPINDLE_SETTINGS]
        before = state.spindle_settings
        if before is None:
            at_start = {**core.axes.defaults, **dict(core.axes.stored)}
            before = [at_start[setting] for setting in SPINDLE_SETTINGS]
        state.spindle_settings = own
        if own == before and number != SettingNumber.MODE:
            return
        runner = core.runner.state
        if state.spindle != "M5" or runner.modal.spindle != "M5":
            runner.modal = replace(runner.modal, spindle="M5", speed=0.0)
            state.spindle = "M5"
            core.changed(now, "spindle")
            core.switch_outputs(now)

    def _rescale_marks(self, before: Mapping[int, float], after: Mapping[int, float]) -> None:
        """The firmware multiplies the places of the last touch and of home as the position."""
        state = self._core.state
        state.probe = _axes(rescaled(np.array(state.probe), before, after))
        state.home = _axes(np.array(state.home) * _ratios(before, after))

    def _adopt(self, settings: Mapping[int, float], now: int, here: Floats | None = None) -> None:
        core = self._core
        defaults = core.axes.defaults
        core.state.settings = [(n, v) for n, v in settings.items() if defaults[n] != v]
        if core.axes.build is not None:
            here = core.runner.queue.end if here is None else here
            core.runner.adopt(*core.axes.build(core.settings(), here, seconds(now)))
            core.apply_overrides(now)


def rescaled(place: Floats, before: Mapping[int, float], after: Mapping[int, float]) -> Floats:
    """A place that is counted in steps after a change of steps per unit; a part of a step is
    lost."""
    ratios, place = _ratios(before, after), place.copy()
    for axis in np.flatnonzero(ratios != 1.0):
        old, new = (v[SettingNumber.STEPS_PER_UNIT + int(axis)] for v in (before, after))
        place[axis] = np.trunc(np.round(place[axis] * old) * ratios[axis]) / (new or 1.0)
    return place


def _ratios(before: Mapping[int, float], after: Mapping[int, float]) -> Floats:
    """New steps per unit by old ones, for each axis."""
    numbers = range(SettingNumber.STEPS_PER_UNIT, SettingNumber.STEPS_PER_UNIT + len(AXIS_LETTERS))
    return np.array([after[n] / before[n] if before[n] > 0.0 else 1.0 for n in numbers])


def _axes(values: Floats) -> Axes:
    x, y, z, a, b, c = values.tolist()
    return x, y, z, a, b, c
