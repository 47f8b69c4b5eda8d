"""How far the tip of the tool has gone: chords between moments 10 ms apart, and those of a change.

Only what happens by itself adds to it; looking at it, however often, changes nothing.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from understudy.motion.path import Floats
from understudy.units import NS_PER_MS, NS_PER_SECOND

GRID = 10 * NS_PER_MS

ToolWay = Callable[[Floats], Floats]
"""Times in seconds → where the tip is then: rows of x, y, z in metres."""


class State(Struct):
    """Up to when the way is reckoned, and how long it is, in metres."""

    seen: int = 0
    distance: float = 0.0


class Odometer:
    """Told before every change of a plan, so that it always reckons on the plan that was run."""

    def __init__(self, way: ToolWay) -> None:
        self._way = way
        self.state = State()

    def mark(self, now: int, ends: float) -> None:
        """The plan up to here is final; ``ends``: when its motion is over, in seconds."""
        self.state = State(now, self.at(now, ends))

    def at(self, now: int, ends: float) -> float:
        """Metres up to a moment."""
        begins = self.state.seen
        if now <= begins or ends * NS_PER_SECOND <= begins:
            return self.state.distance
        grid = np.arange((begins // GRID + 1) * GRID, now, GRID, dtype=np.float64)
        moments = np.concatenate([[begins], grid, [now]]) / NS_PER_SECOND
        steps = np.diff(self._way(moments), axis=0)
        return self.state.distance + float(np.linalg.norm(steps, axis=1).sum())
