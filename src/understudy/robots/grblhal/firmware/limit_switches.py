"""Limit switches of a machine: homing cycles (`$H` and `$HX` … `$HC`) and hard limits (`$21`).

The numbers are the firmware's: a search covers 1.5 times the travel, a locate move ten times the
pull-off; a pull-off is followed by 2 ms before the switch is read. At the start the firmware sends
one status report and waits 0.1 s; then it sends none until the end, unless $10 has the bit for it.

Hard limits: a limit switch that is engaged in motion stops the axes at once, `ALARM:1`. The time at
which the queued motion engages a switch is found in the plan, so that nothing has to be polled.
During a homing cycle the switches have no such effect.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from understudy.gcode.work import six
from understudy.motion.path import Floats
from understudy.motion.plan import Plan
from understudy.robots.grblhal.controller import Notice
from understudy.robots.grblhal.firmware.core import FirmwareCore
from understudy.robots.grblhal.firmware.homing_run import HomingRun, LegKind, straight_leg
from understudy.robots.grblhal.numbers import (
    ALL_AXES,
    AXIS_LETTERS,
    REPORT_WHEN_HOMING,
    AlarmCode,
    ErrorCode,
    HomingOption,
    SettingNumber,
)
from understudy.robots.grblhal.settings import Settings
from understudy.units import MINUTE, NS_PER_MS, seconds, whole_ns

SEARCH, LOCATE = 1.5, 10.0
"""Length of a search in travels, and of a locate move in pull-offs."""
FULL_TURN = 360.0
"""Travel of a rotary axis that has none ($133 … $135)."""
REPORT_NS, CLEAR_NS = 100 * NS_PER_MS, 2 * NS_PER_MS
EDGE = 1e-6
"""Tolerance of a switch in mm or deg."""


class FirmwareHoming:
    """Runs homing cycles; ``fail`` ends one with an alarm."""

    def __init__(
        self,
        core: FirmwareCore,
        fail: Callable[[int, int], None],
        run_startup: Callable[[Sequence[str], int], None],
    ) -> None:
        self._core = core
        self._fail = fail
        self._run_startup = run_startup

    def wake(self, now: int) -> None:
        """Carry out what is due."""
        run = self._core.state.homing
        while run is not None and run.until <= now:
            if run.phase == "move":
                self._end_leg(run, now)
            else:
                self._next_leg(run, now)
            run = self._core.state.homing

    def home(self, axes: str, now: int) -> None:
        """Home the axes with these letters, or all that the settings name; the answer may come
        later."""
        core, options = self._core, self._core.homing_options
        chosen = tuple(AXIS_LETTERS.index(axis) for axis in axes)
        if chosen and not options & HomingOption.SINGLE_AXIS:
            core.answer(ErrorCode.NO_HOMING, now)
        elif not core.permits("home", now):
            core.answer(ErrorCode.NOT_IDLE, now)
        elif not self._enabled(options):
            core.answer(ErrorCode.NO_HOMING, now)
        elif options & HomingOption.MANUAL and not self._automatic(chosen):
            core.apply("home", now)
            self._set_home(chosen or range(len(AXIS_LETTERS)), 0.0, now)
            self._succeed(now)
        elif not self._settings()[SettingNumber.HOMING_SEEK_RATE]:
            core.answer(ErrorCode.NO_HOMING, now)
        elif options & HomingOption.TWO_SWITCHES and core.limits(now):
            core.state.limit_event = 0
            core.lock("critical alarm", AlarmCode.HARD_LIMIT, now)
        else:
            self._begin(chosen, now)

    # ── inside ──

    def _enabled(self, options: int) -> bool:
        possible = HomingOption.SINGLE_AXIS | HomingOption.MANUAL
        on = options & HomingOption.ENABLED and (self._core.homing_axes or options & possible)
        return bool(on)

    def _automatic(self, chosen: tuple[int, ...]) -> bool:
        """Whether a switch is searched for: a phase of the cycle has one of these axes."""
        wanted = _mask(chosen) or ALL_AXES
        return bool(self._core.homing_axes & wanted)

    def _begin(self, chosen: tuple[int, ...], now: int) -> None:
        core, state = self._core, self._core.state
        core.apply("home", now)
        state.limit_event = 0
        state.homing = HomingRun(
            groups=[chosen] if chosen else self._groups(),
            every=not chosen,
            here=list(core.position(now)),
            until=now,
        )
        modal = core.runner.state.modal
        core.runner.state.modal = replace(modal, spindle="M5", flood=False, mist=False)
        if state.spindle != "M5" or state.flood or state.mist:
            core.switch_off(now)
        if not chosen:
            core.set_homed(state.homed & ~core.homing_axes)
        if not int(core.settings()[SettingNumber.REPORT_OPTIONS]) & REPORT_WHEN_HOMING:
            state.homing.until = now + REPORT_NS
            core.emit(Notice("status"), now)
        else:
            self.wake(now)

    def _groups(self) -> list[tuple[int, ...]]:
        """Axes of the phases $44 … $49."""
        count = len(AXIS_LETTERS)
        masks = (int(self._core.settings()[SettingNumber.HOMING_PHASE + n]) for n in range(count))
        return [tuple(a for a in range(count) if mask >> a & 1) for mask in masks if mask]

    def _next_leg(self, run: HomingRun, now: int) -> None:
        """Begin the next leg; at the end of a group the next group, at the end of all finish."""
        settings = self._settings()
        run.silent = not int(settings[SettingNumber.REPORT_OPTIONS]) & REPORT_WHEN_HOMING
        passes = int(settings[SettingNumber.HOMING_PASSES])
        if not settings[SettingNumber.HOMING_FEED_RATE]:
            passes = 0  # the firmware skips the locate moves, and sets no position
        if run.legs_done >= 2 * passes + 2:
            self._finish_group(run, now, sets_position=passes > 0)
        if not run.groups:
            self._finish(run, now)
            return
        kind: LegKind = (
            "seek" if not run.legs_done else ("pull off", "locate")[1 - run.legs_done % 2]
        )
        away = -1.0 if kind == "pull off" else 1.0
        lengths = self._lengths(run.groups[0], kind)
        travel = self._on_steps(away * self._search_direction() * lengths)
        if travel.any():
            self._begin_leg(run, kind, travel, now)
        elif kind == "seek":  # axes without travel count as done
            run.groups.pop(0)
        elif self._core.limits(now) & _mask(run.groups[0]):
            self._fail(AlarmCode.PULL_OFF, now)
        else:
            run.legs_done += 1

    def _begin_leg(self, run: HomingRun, kind: LegKind, travel: Floats, now: int) -> None:
        core, settings, group = self._core, self._settings(), run.groups[0]
        origin, here = np.array(core.state.origin), np.array(run.here)
        for axis in group:  # the firmware counts each leg from zero
            origin[axis] += here[axis]
            here[axis] = 0.0
        core.state.origin, run.here = origin.tolist(), here.tolist()
        stops = np.abs(travel)
        run.found = True
        if kind != "pull off":
            for axis in group:
                found = self._to_switch(axis, math.copysign(1.0, travel[axis]), stops[axis])
                run.found &= found is not None
                stops[axis] = stops[axis] if found is None else found
        locates = kind == "locate"
        number = SettingNumber.HOMING_FEED_RATE if locates else SettingNumber.HOMING_SEEK_RATE
        rate, limits = settings[number] / MINUTE, settings.limits
        run.leg = straight_leg(kind, now, here, travel, stops, rate=rate, limits=limits)
        waits = kind == "pull off" or not run.found
        run.phase, run.until = "move", run.leg.ends + (CLEAR_NS if waits else 0)

    def _end_leg(self, run: HomingRun, now: int) -> None:
        assert run.leg is not None
        kind, group = run.leg.kind, _mask(run.groups[0])
        run.here = self._on_steps(run.leg.position(now)).tolist()
        run.leg = None
        if kind == "pull off" and self._core.limits(now) & group:
            self._fail(AlarmCode.PULL_OFF, now)
        elif not run.found:
            self._fail(AlarmCode.NO_SWITCH, now)
        else:
            run.legs_done += 1
            delay = int(self._settings()[SettingNumber.HOMING_DEBOUNCE])
            run.phase, run.until = "settle", now + delay * NS_PER_MS

    def _finish_group(self, run: HomingRun, now: int, *, sets_position: bool) -> None:
        group = run.groups.pop(0)
        run.legs_done = 0
        if sets_position:
            self._set_home(group, self._settings()[SettingNumber.HOMING_PULL_OFF], now)
        else:
            self._core.set_homed(self._core.state.homed | _mask(group))

    def _finish(self, run: HomingRun, now: int) -> None:
        core, automatic = self._core, self._core.homing_axes
        if run.every and core.homing_options & HomingOption.MANUAL:
            others = [axis for axis in range(len(AXIS_LETTERS)) if not automatic >> axis & 1]
            self._set_home(others, 0.0, now)
        run.silent = False
        core.emit(Notice("status", 1), now)
        core.end_homing(now)
        self._succeed(now)

    def _succeed(self, now: int) -> None:
        """Answer the command; then all axes homed run the start-up lines."""
        core, state = self._core, self._core.state
        core.changed(now, "homed")
        if core.strictly_engaged(now):
            core.notify("limits engaged", now)
            core.answer(ErrorCode.LIMITS_ENGAGED, now)
            core.wake_now(now)
            return
        core.notify("homed", now)
        if core.homing_axes and core.homing_axes & ~state.homed == 0:
            self._run_startup([line for line in state.startup if line], now)
        elif core.homing_required():
            core.apply("alarm", now)
            state.alarm = AlarmCode.HOMING_REQUIRED
        core.answer(0, now)
        core.wake_now(now)

    def _set_home(self, axes: Sequence[int], pull_off: float, now: int) -> None:
        """Set the counted position of axes that stand ``pull_off`` away from their switch."""
        core, state, settings = self._core, self._core.state, self._settings()
        reverse = int(settings[SettingNumber.HOMING_DIRECTION])
        before, home = np.array(core.position(now)), np.array(state.home)
        here = before.copy()
        for axis in axes:
            home[axis] = pull_off - settings.travel[axis] if reverse >> axis & 1 else -pull_off
            if core.homing_options & HomingOption.ORIGIN_ZERO:
                home[axis] = 0.0
            here[axis] = home[axis]
        here = self._on_steps(here)
        state.origin = (np.array(state.origin) + before - here).tolist()
        state.home = six(home.tolist())
        if state.homing is not None:
            state.homing.here = here.tolist()
        else:
            core.runner.continue_from(here, now)
        core.set_homed(state.homed | _mask(axes))

    def _settings(self) -> Settings:
        return Settings(self._core.settings())

    def _on_steps(self, position: Floats) -> Floats:
        return self._core.axes.on_steps(position)

    def _search_direction(self) -> Floats:
        """+1 for an axis that is homed in positive direction, otherwise -1."""
        reverse = int(self._settings()[SettingNumber.HOMING_DIRECTION])
        return np.array([-1.0 if reverse >> axis & 1 else 1.0 for axis in range(len(AXIS_LETTERS))])

    def _lengths(self, group: tuple[int, ...], kind: LegKind) -> Floats:
        """How far each axis moves at most; in a search all move as far as the longest one."""
        settings, lengths = self._settings(), np.zeros(len(AXIS_LETTERS))
        pull_off = settings[SettingNumber.HOMING_PULL_OFF]
        travel = np.where((settings.travel == 0.0) & settings.rotary, FULL_TURN, settings.travel)
        longest = {
            "seek": SEARCH * float(travel[list(group)].max()),
            "locate": LOCATE * pull_off,
            "pull off": pull_off,
        }[kind]
        lengths[list(group)] = longest
        return lengths

    def _to_switch(self, axis: int, direction: float, longest: float) -> float | None:
        """Distance in whole steps until the input of an axis is engaged; None if it is not."""
        core, steps = self._core, float(self._settings().steps[axis])
        sensors = core.axes.sensors
        assert sensors is not None
        here = np.array(core.state.origin) + np.array(core.state.homing.here)  # type: ignore[union-attr]
        distances = [0.0]
        for edge in sensors.limit_edges(axis):
            run = direction * (edge - here[axis])
            distances += [
                max(0.0, math.ceil((run - EDGE) * steps) / steps) + n / steps for n in (0, 1)
            ]
        for distance in sorted(distances):
            there = here.copy()
            there[axis] += direction * distance
            if distance <= longest and core.limits_at(there) >> axis & 1:
                return distance
        return None


def _mask(axes: Sequence[int]) -> int:
    return sum(1 << axis for axis in axes)


# ── hard limits ───────────────────────────────────────────────────────────────────────────────────


HALVINGS = 40


class HardLimits:
    """Watches the limit inputs of the axes that $21 names."""

    def __init__(self, core: FirmwareCore) -> None:
        self._core = core
        self._known: tuple[Plan, tuple[object, ...], int | None] | None = None
        self._origin = np.zeros(len(AXIS_LETTERS))
        self._inverted = 0

    def next_wake(self) -> int | None:
        """When the queued motion engages a switch."""
        core, state = self._core, self._core.state
        axes = core.hard_limits
        if not axes or core.locked or state.homing is not None:
            return None
        plan = core.runner.queue.plan
        if not len(plan.path):
            return None
        basis = (axes, tuple(state.origin), state.limits_from, tuple(state.settings))
        if self._known is None or self._known[0] is not plan or self._known[1] != basis:
            self._known = plan, basis, self._first_engaged(plan, axes)
        return self._known[2]

    def wake(self, now: int) -> None:
        due = self.next_wake()
        if due is not None and due <= now:
            self.trip(now)

    def input_changed(self, before: int, now: int) -> None:
        """A limit input may have changed without motion; ``before``: the inputs until now."""
        core = self._core
        self._known = None
        engaged = core.limits(now) & ~before & core.hard_limits
        if engaged and not core.locked and core.state.homing is None:
            self.trip(now)

    def trip(self, now: int) -> None:
        """Stop at once and raise the alarm."""
        core, state = self._core, self._core.state
        state.limit_event, state.limits_from = core.limits(now), now
        state.position_lost |= core.under_way(now)
        state.cut_blocks = core.runner.queue.used(now)
        core.axes.halt(now)
        core.runner.halt(now)
        core.sync(now)
        core.lock("critical alarm", AlarmCode.HARD_LIMIT, now)

    # ── inside ──

    def _first_engaged(self, plan: Plan, axes: int) -> int | None:
        """The first time of a plan, after `limits_from`, at which an input becomes engaged."""
        state = self._core.state
        after = seconds(state.limits_from)
        self._origin, self._inverted = np.array(state.origin), self._core.inverted_limits
        corners = np.vstack([plan.path.start[None], plan.path.end])
        inputs = [self._inputs(corner) & axes for corner in corners]
        for piece, (before, there) in enumerate(itertools.pairwise(inputs)):
            if not there & ~before:
                continue
            at = self._time_on(plan, piece, there & ~before)
            if at is not None and at > after:
                return whole_ns(at)
        return None

    def _time_on(self, plan: Plan, piece: int, wanted: int) -> float | None:
        """When a wanted input becomes engaged on a piece; None if the plan ends before."""
        segments = np.flatnonzero(plan.law.piece == piece)
        if not len(segments):
            return None
        low, high = float(plan.law.begins[segments[0]]), float(plan.law.begins[segments[-1] + 1])
        if not self._at(plan, high) & wanted:
            return None
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._at(plan, middle) & wanted else (middle, high)
        return high

    def _at(self, plan: Plan, t: float) -> int:
        return self._inputs(plan.positions(np.array([t]))[0])

    def _inputs(self, counted: Floats) -> int:
        core = self._core
        return core.limits_at(core.axes.on_steps(counted) + self._origin, self._inverted)
