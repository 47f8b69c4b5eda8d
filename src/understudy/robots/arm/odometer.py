"""How far the tip of the tool has gone: chords between moments 10 ms apart, and those of a change.

Only what happens by itself adds to it; looking at it, however often, changes nothing.
"""

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from understudy.motion.path import Floats
from understudy.units import NS_PER_MS, NS_PER_SECOND

GRID = 10 * NS_PER_MS
CHORDS = 1024
"""Of a stretch."""
CLOSELY = 100
"""So many stretches (a quarter of an hour) without a change, then chords are twice as long."""
MOST_DOUBLINGS = 20

ToolWay = Callable[[Floats], Floats]
"""Times in seconds → where the tip is then: rows of x, y, z in metres."""


class State(Struct):
    """Up to when the way is reckoned, and how long it is, in metres."""

    seen: int = 0
    distance: float = 0.0


class Odometer:
    """Told before every change of a plan, so that it always reckons on the plan that was run.

    The way is reckoned in stretches of many chords. Whole ones are kept, so that looking again and
    again at a long motion costs little.
    """

    def __init__(self, way: ToolWay) -> None:
        self._way = way
        self._stretches: list[float] = []
        self._state = State()

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state, self._stretches = state, []

    def mark(self, now: int, ends: float) -> None:
        """The plan up to here is final; ``ends``: when its motion is over, in seconds."""
        self.state = State(now, self.at(now, ends))

    def at(self, now: int, ends: float) -> float:
        """Metres up to a moment."""
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
        moments = np.concatenate([[begins], grid, [end]]) / NS_PER_SECOND
        chords = np.diff(self._way(moments), axis=0)
        return float(np.linalg.norm(chords, axis=1).sum())
