"""Odometer: the distance that the tip of a tool has moved along its plans."""

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from understudy.motion.path import Floats
from understudy.units import NS_PER_MS, NS_PER_SECOND

TipPositions = Callable[[Floats], Floats]
"""Times in seconds → positions of the tip in metres, rows of x, y, z."""
GRID = 10 * NS_PER_MS
CHORDS = 1024
"""Number of chords in a stretch."""
CLOSELY = 100
"""Stretches (a quarter of an hour) without a change, after which chords are twice as long."""
MOST_DOUBLINGS = 20


class OdometerState(Struct, frozen=True):
    """The time up to which the distance is final, and the distance in metres."""

    seen: int = 0
    distance: float = 0.0


class Odometer:
    """Distance that the tool tip has moved: the sum of chords of 10 ms, cut at changes of the plan.

    `mark` is called before every change of a plan, so that the distance is computed on the plan
    that was run. It is computed in stretches of many chords; whole stretches are kept, so that
    repeated reading of a long motion costs little. Reading does not change the state.
    """

    def __init__(self, tip_positions: TipPositions) -> None:
        self._tip_positions = tip_positions
        self._stretches: list[float] = []
        self._state = OdometerState()

    @property
    def state(self) -> OdometerState:
        return self._state

    @state.setter
    def state(self, state: OdometerState) -> None:
        self._state, self._stretches = state, []

    def mark(self, now: int, ends: float) -> None:
        """Makes the distance up to now final; ``ends``: the end of the plan in seconds."""
        self.state = OdometerState(now, self.at(now, ends))

    def at(self, now: int, ends: float) -> float:
        """The distance in metres up to a time."""
        last = min(now, math.ceil(ends * NS_PER_SECOND))
        begins, distance, number = self._state.seen, self._state.distance, 0
        while begins < last:
            step = GRID << min(number // CLOSELY, MOST_DOUBLINGS)
            end = (begins // step + CHORDS) * step
            if end >= last:
                return distance + self._length(begins, last, step)
            if number == len(self._stretches):
                self._stretches.append(self._length(begins, end, step))
            distance += self._stretches[number]
            begins, number = end, number + 1
        return distance

    def _length(self, begins: int, end: int, step: int) -> float:
        grid = np.arange((begins // step + 1) * step, end, step, dtype=np.float64)
        times = np.concatenate([[begins], grid, [end]]) / NS_PER_SECOND
        chords = np.diff(self._tip_positions(times), axis=0)
        return float(np.linalg.norm(chords, axis=1).sum())
