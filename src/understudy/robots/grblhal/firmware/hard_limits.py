"""Hard limits ($21): a limit switch that is engaged in motion stops the axes at once, `ALARM:1`.

The time at which the queued motion engages a switch is found in the plan, so that nothing has to be
polled. During a homing cycle the switches have no effect here.
"""

import itertools

import numpy as np

from understudy.motion.path import Floats
from understudy.motion.plan import Plan
from understudy.robots.grblhal.firmware.core import FirmwareCore
from understudy.robots.grblhal.numbers import AXIS_LETTERS, AlarmCode
from understudy.units import seconds, whole_ns

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
