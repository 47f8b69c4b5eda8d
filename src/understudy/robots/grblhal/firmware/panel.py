"""The operator's side of a firmware: hold, start, reset, stop, door; overrides and switches."""

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode.modal import work_offset
from understudy.gcode.wire import Notice, Override, Toggle
from understudy.robots.grblhal.firmware.core import NOT_IDLE, Core
from understudy.robots.grblhal.firmware.lines import FirmwareLines
from understudy.robots.grblhal.firmware.state import (
    COOLANT_REVIVES_S,
    HOMING_RESET,
    RESET_IN_MOTION,
    SLEEP_ALLOWED,
    SPINDLE_REVIVES_S,
    STAYING,
    UNKNOWN,
)
from understudy.units import nanoseconds

NO_SLEEP = Refused("sleep is switched off ($62=0)", UNKNOWN)
BOUNDS = {"feed": (10, 200), "rapid": (5, 100), "spindle": (10, 200)}


class FirmwarePanel:
    """`Panel` and `Knobs`."""

    def __init__(self, core: Core, lines: FirmwareLines) -> None:
        self._core = core
        self._lines = lines

    # ── panel ──

    def hold(self, now: int) -> None:
        state = self._core.state
        listens = state.hold_allowed and not state.ending
        if listens and self._core.condition(now) in ("Idle", "Run"):
            self._core.runner.hold(now)

    def start(self, now: int) -> None:
        core, state = self._core, self._core.state
        condition = core.condition(now)
        if condition == "Tool":
            state.tool = None
            core.changed(now, "tool")
            core.emit(Notice("report"), now)
        elif condition == "Door:0":
            self.revive(now)
        elif condition == "Hold:0":
            core.news("resumed", now)
            core.runner.cycle_start(now)
        else:
            return
        core.stir(now)

    def reset(self, now: int) -> None:
        core, state = self._core, self._core.state
        if state.pressed:
            return
        homing = core.condition(now) == "Home"
        if (core.under_way(now) or homing) and not state.locked:
            core.plant.halt(now)
            core.runner.halt(now)
            core.lock(HOMING_RESET if homing else RESET_IN_MOTION, now)
        core.runner.halt(now)
        core.sync(now)
        core.runner.reset()
        self._begin_anew(now)
        core.emit(Notice("reset", int(state.locked)), now)
        core.silence(now)
        if not state.locked:
            self._lines.run_own([line for line in state.startup if line], now)
        core.stir(now)

    def release(self, now: int, *, unlock: bool = False) -> None:
        """The emergency stop is pulled out again, and a reset follows; ``unlock``: no alarm."""
        state = self._core.state
        state.pressed = False
        state.locked = state.locked and not unlock
        self.reset(now)

    def stop(self, now: int) -> None:
        if not self._core.state.critical:
            self._core.state.ending = "stop"
            self._core.plant.brake(now)
            self._core.runner.stop(now)
            self.rest(now)

    def door(self, now: int) -> None:
        core, state = self._core, self._core.state
        condition = core.condition(now)
        if condition in ("Alarm", "Sleep", "Check", "Door:0", "Door:2", "Home"):
            return
        core.news("door", now)
        state.door, state.dark, state.reviving = True, False, None
        core.plant.brake(now)
        if state.jogging:
            core.runner.stop(now, silent=False)
        else:
            core.runner.hold(now)
        self.rest(now)

    def cancel_jog(self, now: int) -> None:
        if self._core.condition(now) == "Jog":
            self._core.state.ending = "cancel"
            self._core.plant.brake(now)
            self._core.runner.stop(now, silent=False)
            self.rest(now)

    def revive(self, now: int) -> None:
        """The door is shut: the spindle comes back, then the coolant, then the motion goes on."""
        core, state = self._core, self._core.state
        modal, figures = core.runner.state.modal, core.figures()
        if state.spindle != modal.spindle:
            state.spindle = modal.spindle
            core.changed(now, "spindle")
            core.throw(now)
            state.reviving = now + nanoseconds(figures[SPINDLE_REVIVES_S])
        elif (state.flood, state.mist) != (modal.flood, modal.mist):
            state.flood, state.mist = modal.flood, modal.mist
            core.changed(now, "coolant")
            core.throw(now)
            state.reviving = now + nanoseconds(figures[COOLANT_REVIVES_S])
        else:
            state.door, state.dark, state.reviving = False, False, None
            core.runner.cycle_start(now)
            core.stir(now)

    # ── knobs ──

    def override(self, what: Override, percent: int, now: int) -> None:
        core, state = self._core, self._core.state
        low, high = BOUNDS[what]
        percent = max(low, min(high, percent))
        name = "spindle_percent" if what == "spindle" else what
        if getattr(state, name) == percent:
            return
        setattr(state, name, percent)
        if what != "spindle":
            core.set_pace(now)
        core.changed(now, "overrides")
        if what == "spindle" and state.spindle != "M5":
            core.changed(now, "spindle")

    def toggle(self, what: Toggle, now: int) -> bool:
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
        state = self._core.state
        if state.locked:
            state.locked = False
            self._core.news("unlocked", now)
        return None

    def check(self, now: int) -> Refused | None:
        core, state = self._core, self._core.state
        if state.checking:
            core.news("disabled", now)
            return None
        if core.condition(now) != "Idle":
            return NOT_IDLE
        state.checking = True
        core.news("enabled", now)
        return None

    def sleep(self, now: int) -> Refused | None:
        core = self._core
        if not core.figures()[SLEEP_ALLOWED]:
            return NO_SLEEP
        if core.condition(now) not in ("Idle", "Alarm"):
            return NOT_IDLE
        core.state.asleep = True
        core.silence(now)
        core.emit(Notice("flush"), now)
        return None

    # ── when motion has ended ──

    def rest(self, now: int) -> None:
        """Carry out what was to happen once the axes stand."""
        core, state = self._core, self._core.state
        if core.under_way(now):
            return
        state.jogging = False
        ending, state.ending = state.ending, ""
        if ending in ("stop", "cancel", "alarm"):
            core.sync(now)
            core.stir(now)
        if ending == "alarm":
            core.lock(state.pending, now)
        elif ending == "stop":
            self._stopped(now)
        if state.door and not state.dark:
            state.dark = True
            core.silence(now)

    # ── inside ──

    def _begin_anew(self, now: int) -> None:
        """What no reset leaves as it was; sleep becomes a lock."""
        state = self._core.state
        state.locked = state.locked or state.asleep
        state.critical = state.checking = state.asleep = state.jogging = False
        state.door = state.dark = False
        state.tool = state.homing_until = state.result = state.storing = state.reviving = None
        state.ending, state.pending = "", 0
        state.numbered, state.starting = [], []
        modal = self._core.runner.state.modal
        state.system, state.shift = modal.coordinates, work_offset(modal)
        state.single_block = state.block_delete = False
        state.optional_stop = True
        state.feed_allowed = state.speed_allowed = state.hold_allowed = True
        state.feed = state.rapid = state.spindle_percent = 100
        self._core.set_pace(now)

    def _stopped(self, now: int) -> None:
        core, state = self._core, self._core.state
        core.runner.reset(stopped=True)
        core.silence(now)
        if state.locked and state.alarm in STAYING:
            return
        state.locked = state.checking = state.asleep = state.door = state.dark = False
        state.tool = state.reviving = None
        core.news("stop", now)

    def _toggle_coolant(self, what: str, now: int) -> bool:
        core, state = self._core, self._core.state
        if core.condition(now) in ("Idle", "Run", "Hold:0", "Hold:1"):
            setattr(state, what, not getattr(state, what))
            modal = core.runner.state.modal
            core.runner.state.modal = replace(modal, flood=state.flood, mist=state.mist)
            core.changed(now, "coolant")
            core.throw(now)
        return bool(getattr(state, what))

    def _toggle_spindle(self, now: int) -> bool:
        """The spindle rests while the operator looks at the work, in a hold only."""
        core, state = self._core, self._core.state
        modal = core.runner.state.modal
        if core.condition(now) == "Hold:0" and modal.spindle != "M5":
            state.spindle = "M5" if state.spindle != "M5" else modal.spindle
            core.changed(now, "spindle")
            core.throw(now)
        return state.spindle != "M5"
