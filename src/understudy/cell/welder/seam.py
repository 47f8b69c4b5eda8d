"""The seam: where the arc burned, how long, how far; and what was wrong about it."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.units import MM, NS_PER_MS, nanoseconds, seconds

Floats = NDArray[np.float64]
ToolWay = Callable[[NDArray[np.float64]], Floats]
"""Times in seconds (rows) → where the tip of the tool is then, in metres (rows of x, y, z)."""

STEP = 10 * NS_PER_MS
"""How closely the tool's way is looked at."""
LOOK = 500 * NS_PER_MS
"""How long a burning arc goes on before the seam is looked at again."""
POINT_DISTANCE = 1.0 * MM
MOST_POINTS = 20_000
STANDING = 0.01 * MM
"""A tip that moves less in one step stands."""

Point = tuple[float, float, float]


class ProcessIssue(Struct, frozen=True):
    """Something a weld must not have."""

    at: int
    kind: str
    message: str


class State(Struct):
    """What is remembered of the seam."""

    seen: int = 0
    arc_on: int = 0
    length: float = 0.0
    trail: list[Point] = []
    standing_since: int | None = None
    issues: list[ProcessIssue] = []


class Seam:
    """Looks at the tool's way while an arc is wanted or burns."""

    def __init__(self, way: ToolWay, standing_limit_s: float) -> None:
        self._way = way
        self._standing_limit = nanoseconds(standing_limit_s)
        self.state = State()

    def look(self, now: int, *, burning: bool, wanted: bool) -> None:
        """Take in what happened since last time; the arc has not changed in between."""
        state = self.state
        begins, state.seen = state.seen, now
        if now <= begins or not (burning or wanted):
            state.standing_since = None
            return
        count = max(2, -(-(now - begins) // STEP) + 1)
        times = np.linspace(begins, now, count)
        points = self._way(times / 1e9)
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        if burning:
            state.arc_on += now - begins
            state.length += float(steps.sum())
            self._extend(points)
            self._check_standing(times, steps)
        elif steps.max() > STANDING:
            self.note(now, "cold", "the tool moved on a seam while the arc did not burn")

    def note(self, now: int, kind: str, message: str) -> None:
        """Each kind is told once per second at most, so that a long fault is not a flood."""
        last = next((issue for issue in reversed(self.state.issues) if issue.kind == kind), None)
        if last is None or now - last.at >= nanoseconds(1.0):
            self.state.issues = [*self.state.issues[-999:], ProcessIssue(now, kind, message)]

    def _extend(self, points: Floats) -> None:
        trail = self.state.trail
        for x, y, z in points.tolist():
            if not trail or np.linalg.norm(np.subtract((x, y, z), trail[-1])) >= POINT_DISTANCE:
                trail.append((x, y, z))
        if len(trail) > MOST_POINTS:
            self.state.trail = trail[::2]

    def _check_standing(self, times: Floats, steps: Floats) -> None:
        state = self.state
        for end, step in zip(times[1:].tolist(), steps.tolist(), strict=True):
            if step > STANDING:
                state.standing_since = None
            elif state.standing_since is None:
                state.standing_since = int(end)
            elif end - state.standing_since > self._standing_limit:
                stood = seconds(int(end) - state.standing_since)
                self.note(int(end), "standing", f"the arc burned {stood:.2f} s in one place")
