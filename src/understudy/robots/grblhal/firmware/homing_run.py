"""The motion of a homing cycle, as values: it is planned once and sampled.

A cycle homes groups of axes, one after the other. A group has legs: search for the switches at the
seek rate, pull off, and `$43` times locate at the feed rate and pull off. The axes of a group leave
together. Each one stops at once when its switch is engaged, while the others go on; the leg is
over when all have stopped.
"""

import math
from typing import Literal

import numpy as np
from msgspec import Struct, ValidationError

from understudy.motion.path import Floats, Limits
from understudy.motion.saved import LARGEST
from understudy.robots.grblhal.numbers import AXIS_LETTERS
from understudy.units import LATEST, nanoseconds, seconds

AXIS_COUNT = len(AXIS_LETTERS)
LegKind = Literal["seek", "pull off", "locate"]


class Leg(Struct, frozen=True):
    """One motion of a group: a straight line from rest, with a trapezoidal speed.

    `share` is the direction of the line, `length` its length; `stops` is the distance along the
    line at which each axis stops. Speed and acceleration are those along the line.
    """

    kind: LegKind
    begins: int
    start: list[float]
    share: list[float]
    stops: list[float]
    length: float
    speed: float
    acceleration: float

    def position(self, now: int) -> Floats:
        """Counted position of the axes."""
        run = self._distance(seconds(now - self.begins))
        covered = np.minimum(run, np.array(self.stops))
        return np.asarray(np.array(self.start) + np.array(self.share) * covered)

    def speed_at(self, now: int) -> float:
        """Speed along the line, per second."""
        t, (peak, ramp, total) = seconds(now - self.begins), self._law()
        return max(0.0, min(self.acceleration * min(t, total - t), peak)) if ramp else 0.0

    @property
    def ends(self) -> int:
        """When the last axis has stopped."""
        duration = self._time(min(max(self.stops), self.length))
        return min(self.begins + nanoseconds(min(duration, seconds(LATEST))), LATEST)

    def check(self) -> None:
        """Raises ValidationError unless it can be the leg of a snapshot."""
        columns = (self.start, self.share, self.stops)
        law = (self.length, self.speed, self.acceleration)
        if any(len(column) != AXIS_COUNT for column in columns) or min(law) <= 0.0:
            raise ValidationError("firmware.homing.leg: not a motion of the axes")
        if max(map(abs, (*law, *self.start, *self.share, *self.stops))) > LARGEST:
            raise ValidationError(f"firmware.homing.leg: a number beyond {LARGEST:g}")

    def _law(self) -> tuple[float, float, float]:
        """Greatest speed, seconds until it is reached, and seconds of the whole line."""
        peak = min(self.speed, math.sqrt(self.acceleration * self.length))
        ramp = peak / self.acceleration
        return peak, ramp, self.length / peak + ramp if peak else 0.0

    def _distance(self, t: float) -> float:
        peak, ramp, total = self._law()
        if t >= total:
            return self.length
        if t > total - ramp:
            return self.length - 0.5 * self.acceleration * (total - t) ** 2
        return 0.5 * self.acceleration * min(t, ramp) ** 2 + peak * max(t - ramp, 0.0)

    def _time(self, distance: float) -> float:
        peak, ramp, total = self._law()
        ramped = 0.5 * peak * ramp
        if distance <= ramped:
            return math.sqrt(2.0 * distance / self.acceleration)
        left = self.length - distance
        if left < ramped:
            return total - math.sqrt(2.0 * max(left, 0.0) / self.acceleration)
        return ramp + (distance - ramped) / peak


def straight_leg(
    kind: LegKind,
    begins: int,
    start: Floats,
    travel: Floats,
    stops: Floats,
    *,
    rate: float,
    limits: Limits,
) -> Leg:
    """The leg that moves the axes by ``travel``, each of them at ``rate`` per second at most.

    ``stops``: how far each axis gets, at most its travel.
    """
    moves = travel != 0.0
    length = float(np.linalg.norm(travel))
    share = travel / length
    along = np.abs(share[moves])
    speed = min(rate * math.sqrt(float(moves.sum())), float((limits.velocity[moves] / along).min()))
    reach = np.zeros(len(travel))
    reach[moves] = stops[moves] / along
    return Leg(
        kind,
        begins,
        start.tolist(),
        share.tolist(),
        reach.tolist(),
        length,
        speed,
        float((limits.acceleration[moves] / along).min()),
    )


class HomingRun(Struct):
    """A homing cycle in progress.

    `groups`: axes that are not yet homed, the present group first. `legs_done`: of this group.
    `phase`: `report` (a moment for status reports before the motion), `move`, or `settle` (the
    debounce delay). `until`: when the phase ends. `found`: the axes whose switch the leg reaches.
    `here`: the counted position at the end of the last leg. `every`: `$H`, not `$HX`.
    """

    groups: list[tuple[int, ...]]
    every: bool
    here: list[float]
    until: int
    phase: Literal["report", "move", "settle"] = "report"
    legs_done: int = 0
    leg: Leg | None = None
    found: bool = False
    silent: bool = False

    def check(self) -> None:
        """Raises ValidationError unless it can be the cycle of a snapshot."""
        axes = [axis for group in self.groups for axis in group]
        if not all(0 <= axis < AXIS_COUNT for axis in axes) or len(self.here) != AXIS_COUNT:
            raise ValidationError("firmware.homing: axes that the machine does not have")
        if not self.groups and (self.leg is not None or self.legs_done):
            raise ValidationError("firmware.homing.groups: none, in the middle of a group")
        if (self.phase == "move") != (self.leg is not None) or self.legs_done < 0:
            raise ValidationError("firmware.homing.phase: does not fit the leg")
        if self.leg is not None:
            self.leg.check()

    def position(self, now: int) -> Floats:
        return np.array(self.here) if self.leg is None else self.leg.position(now)
