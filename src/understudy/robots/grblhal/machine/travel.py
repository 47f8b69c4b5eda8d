"""Soft limits: what lies beyond the travel of an axis is refused before it moves ($20, $130 …)."""

from dataclasses import dataclass

import numpy as np

from understudy.errors import Refused
from understudy.gcode.dialect import AXIS_LETTERS, Axes
from understudy.gcode.requests import Move
from understudy.motion.path import Floats, Limits, Path
from understudy.robots.grblhal.machine.mover import MachineMover
from understudy.robots.grblhal.machine.settings import Settings

SOFT_LIMIT = 2
SOFT_LIMITS = 20
"""The setting that switches them on."""
ON_LIMIT = 1e-6


@dataclass(frozen=True)
class TravelMover:
    """A machine's mover with an eye on its travel: from -$130 … up to zero, as homing leaves it."""

    mover: MachineMover
    settings: Settings

    @property
    def limits(self) -> Limits:
        return self.mover.limits

    @property
    def deviation(self) -> float:
        return self.mover.deviation

    def axes(self, position: Floats) -> Axes:
        return self.mover.axes(position)

    def pose(self, position: Floats) -> Axes:
        return self.mover.pose(position)

    def on_steps(self, position: Floats) -> Floats:
        return self.mover.on_steps(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        path = self.mover.path(move, start, line=line, exact=exact)
        if isinstance(path, Refused) or not self.settings[SOFT_LIMITS] or not len(path):
            return path
        travel = self.settings.travel
        over = (path.end > ON_LIMIT) | (path.end < -travel - ON_LIMIT)
        over &= travel > 0.0
        if not over.any():
            return path
        row, axis = np.argwhere(over)[0]
        reason = f"{AXIS_LETTERS[axis]} {path.end[row, axis]:g} is outside {-travel[axis]:g}…0"
        return Refused(reason, SOFT_LIMIT)
