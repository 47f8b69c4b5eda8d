"""Seam: the trail, length and arc time of a weld, and the process rules that it broke."""

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.ports.device import ToolPath
from understudy.ports.hmi import Known, Trail
from understudy.units import MM, NS_PER_MS, NS_PER_SECOND, nanoseconds, seconds

Floats = NDArray[np.float64]

STEP = 10 * NS_PER_MS
"""The time between two samples of the tool path."""
LOOK = 800 * NS_PER_MS
"""The time between two samples of a burning seam; plans keep one second of the past."""
POINT_DISTANCE = 1.0 * MM
MOST_POINTS = 20_000
MOST_ISSUES = 1000
STANDING = 0.1 * MM
"""Speed in m/s below which the tip counts as at rest."""

Point = tuple[float, float, float]


class ProcessIssue(Struct, frozen=True):
    """A process rule that the weld broke."""

    at: int
    kind: str
    message: str


class State(Struct):
    """The state of the seam in a snapshot: times in ns, lengths in m.

    `burning`, `wanted`: the arc since `seen`. `standing_since`: when the tip stopped under the arc.
    `cold_noted`, `standing_noted`: the rule was noted; reset when the arc burns, or the tip moves.
    `cleared_at`: the tip when the trail was cleared under this arc; the next point is away from it.
    """

    seen: int = 0
    burning: bool = False
    wanted: bool = False
    arc_on: int = 0
    length: float = 0.0
    trail: list[Point] = []
    cleared_at: Point | None = None
    standing_since: int | None = None
    standing_noted: bool = False
    cold_noted: bool = False
    issues: list[ProcessIssue] = []


class Seam:
    """Samples the tool path while an arc is wanted or burns."""

    def __init__(self, path: ToolPath, standing_limit_s: float) -> None:
        self._path = path
        self._standing_limit = nanoseconds(standing_limit_s)
        self.state = State()
        self._version = 0

    def watch(self, now: int, *, burning: bool, wanted: bool) -> None:
        """Sets whether the arc burns and whether it is wanted, from now on."""
        self.look(now)
        state = self.state
        if burning != state.burning:
            state.standing_since, state.standing_noted = None, False
            state.cleared_at = None
        if burning or not wanted:
            state.cold_noted = False
        state.burning, state.wanted = burning, wanted

    def look(self, now: int) -> None:
        """Adds the tool path since the last call."""
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
        elif not (stands.all() or state.cold_noted):
            state.cold_noted = True
            self.note(now, "cold", "the tool moved along a seam without an arc")

    def next_look(self) -> int | None:
        watched = self.state.burning or self.state.wanted
        return self.state.seen + LOOK if watched else None

    def arc_on(self, now: int) -> int:
        """The arc time so far, in ns."""
        return self.state.arc_on + (now - self.state.seen if self.state.burning else 0)

    def length(self, now: int) -> float:
        """The length of tool path under the arc so far, in m."""
        state = self.state
        if not state.burning or now <= state.seen:
            return state.length
        return state.length + float(self._since(state.seen, now)[2].sum())

    def load(self, state: State) -> None:
        self.state = state
        self._version += 1

    def clear_trail(self, now: int) -> None:
        """Drops the trail so far. An arc that burns on where the tip stands draws no point."""
        self.look(now)
        if self.state.burning:
            x, y, z = self._path(np.array([seconds(now)]))[0].tolist()
            self.state.cleared_at = (x, y, z)
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
        """Sample times in ns, positions of the tip, and distances between consecutive samples."""
        count = max(2, -(-(now - begins) // STEP) + 1)
        times = np.linspace(begins, now, count)
        points = self._path(times / NS_PER_SECOND)
        return times, points, np.sqrt(np.square(np.diff(points, axis=0)).sum(axis=1))

    def _extend(self, points: Floats) -> None:
        trail = self.state.trail
        last = trail[-1] if trail else self.state.cleared_at
        for x, y, z in points.tolist():
            if last is None or math.dist((x, y, z), last) >= POINT_DISTANCE:
                last = (x, y, z)
                trail.append(last)
        if len(trail) > MOST_POINTS:
            self._replace_trail(trail[::2])

    def _check_standing(self, times: Floats, stands: NDArray[np.bool_]) -> None:
        state = self.state
        if not stands.any():
            state.standing_since, state.standing_noted = None, False
            return
        for begin, end, still in zip(times[:-1].tolist(), times[1:].tolist(), stands, strict=True):
            if not still:
                state.standing_since, state.standing_noted = None, False
                continue
            if state.standing_since is None:
                state.standing_since = int(begin)
            stood = int(end) - state.standing_since
            if stood > self._standing_limit and not state.standing_noted:
                state.standing_noted = True
                limit = seconds(self._standing_limit)
                self.note(int(end), "standing", f"the arc burned over {limit:g} s in one place")
