"""The seam: where the arc burned, how long, how far; and what was wrong about it."""

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.ports.hmi import Known, Trail
from understudy.units import MM, NS_PER_MS, NS_PER_SECOND, nanoseconds, seconds

Floats = NDArray[np.float64]
ToolWay = Callable[[NDArray[np.float64]], Floats]
"""Times in seconds (rows) → where the tip of the tool is then, in metres (rows of x, y, z)."""

STEP = 10 * NS_PER_MS
"""How closely the tool's way is looked at."""
LOOK = 800 * NS_PER_MS
"""How long a burning arc goes on before the seam is looked at; plans remember a second."""
POINT_DISTANCE = 1.0 * MM
MOST_POINTS = 20_000
MOST_ISSUES = 1000
STANDING = 0.1 * MM
"""A tip that moves less per second stands."""

Point = tuple[float, float, float]


class ProcessIssue(Struct, frozen=True):
    """Something a weld must not have."""

    at: int
    kind: str
    message: str


class State(Struct):
    """What is remembered of the seam: times in ns, lengths in m.

    `burning`, `wanted`: the arc, since `seen`. `standing_since`: the tip, under the arc.
    `cold_told`, `standing_told`: each is told once until the arc burns, or the tip moves, again.
    """

    seen: int = 0
    burning: bool = False
    wanted: bool = False
    arc_on: int = 0
    length: float = 0.0
    trail: list[Point] = []
    standing_since: int | None = None
    standing_told: bool = False
    cold_told: bool = False
    issues: list[ProcessIssue] = []


class Seam:
    """Looks at the tool's way while an arc is wanted or burns."""

    def __init__(self, way: ToolWay, standing_limit_s: float) -> None:
        self._way = way
        self._standing_limit = nanoseconds(standing_limit_s)
        self.state = State()
        self._version = 0

    def watch(self, now: int, *, burning: bool, wanted: bool) -> None:
        """From now on the arc burns, or is wanted, or neither."""
        self.look(now)
        state = self.state
        if burning != state.burning:
            state.standing_since, state.standing_told = None, False
        if burning or not wanted:
            state.cold_told = False
        state.burning, state.wanted = burning, wanted

    def look(self, now: int) -> None:
        """Take in what happened since last time."""
        state = self.state
        begins, state.seen = state.seen, now
        if now <= begins or not (state.burning or state.wanted):
            return
        times, points, steps = self._since(begins, now)
        stands = steps / np.diff(times) * NS_PER_SECOND < STANDING
        if state.burning:
            state.arc_on += now - begins
            state.length += float(steps.sum())
            self._extend(points)
            self._check_standing(times, stands)
        elif not (stands.all() or state.cold_told):
            state.cold_told = True
            self.note(now, "cold", "the tool moved on a seam while the arc did not burn")

    def next_look(self) -> int | None:
        watched = self.state.burning or self.state.wanted
        return self.state.seen + LOOK if watched else None

    def arc_on(self, now: int) -> int:
        """How long the arc has burned so far, in ns."""
        return self.state.arc_on + (now - self.state.seen if self.state.burning else 0)

    def length(self, now: int) -> float:
        """How far the tool has gone under the arc so far, in m."""
        state = self.state
        if not state.burning or now <= state.seen:
            return state.length
        return state.length + float(self._since(state.seen, now)[2].sum())

    def load(self, state: State) -> None:
        self.state = state
        self._version += 1

    def clear_trail(self) -> None:
        self._replace_trail([])

    def trail_since(self, known: Known) -> Trail:
        count, version = (known, self._version) if isinstance(known, int) else known
        trail = self.state.trail
        held = count if version == self._version and 0 <= count <= len(trail) else 0
        return held, trail[held:], self._version

    def _replace_trail(self, trail: list[Point]) -> None:
        self.state.trail = trail
        self._version += 1

    def note(self, now: int, kind: str, message: str) -> None:
        self.state.issues = [
            *self.state.issues[1 - MOST_ISSUES :],
            ProcessIssue(now, kind, message),
        ]

    def _since(self, begins: int, now: int) -> tuple[Floats, Floats, Floats]:
        """Times in ns, where the tip was then, and how far it went from each to the next."""
        count = max(2, -(-(now - begins) // STEP) + 1)
        times = np.linspace(begins, now, count)
        points = self._way(times / NS_PER_SECOND)
        return times, points, np.sqrt(np.square(np.diff(points, axis=0)).sum(axis=1))

    def _extend(self, points: Floats) -> None:
        trail = self.state.trail
        for x, y, z in points.tolist():
            if not trail or math.dist((x, y, z), trail[-1]) >= POINT_DISTANCE:
                trail.append((x, y, z))
        if len(trail) > MOST_POINTS:
            self._replace_trail(trail[::2])

    def _check_standing(self, times: Floats, stands: NDArray[np.bool_]) -> None:
        state = self.state
        if not stands.any():
            state.standing_since, state.standing_told = None, False
            return
        for begin, end, still in zip(times[:-1].tolist(), times[1:].tolist(), stands, strict=True):
            if not still:
                state.standing_since, state.standing_told = None, False
                continue
            if state.standing_since is None:
                state.standing_since = int(begin)
            stood = int(end) - state.standing_since
            if stood > self._standing_limit and not state.standing_told:
                state.standing_told = True
                limit = seconds(self._standing_limit)
                self.note(int(end), "standing", f"the arc burned over {limit:g} s in one place")
