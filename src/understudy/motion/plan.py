"""A plan: a path with a time law. It is computed once and sampled by all readers.

A plan is immutable. Before it begins the axes rest at its start, after it ends they rest exactly on
its target. `to_state` converts it to lists of numbers for snapshots.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from understudy.motion.path import Floats, Ints, Path, joined
from understudy.space.compiled import compiled
from understudy.units import NS_PER_MS, NS_PER_SECOND


@dataclass(frozen=True, slots=True, eq=False)
class TimeLaw:
    """Piece and distance along it as functions of time.

    Consecutive segments, each on one piece: s(τ) = s + v·τ + a·τ²/2 + j·τ³/6.
    """

    begins: Floats
    """(segments + 1): begin of each segment, and end of the last one."""
    piece: Ints
    s: Floats
    v: Floats
    a: Floats
    j: Floats

    def __len__(self) -> int:
        return len(self.piece)

    def segment(self, t: float) -> int:
        """Index of the segment at t; the first before all, the last after all."""
        k = int(self.begins.searchsorted(t, side="right")) - 1
        return min(max(k, 0), len(self) - 1)

    def until(self, t: float) -> "TimeLaw":
        """The same law, ending at t."""
        count = max(int(np.searchsorted(self.begins[:-1], t, side="left")), min(len(self), 1))
        begins = self.begins[: count + 1].copy()
        begins[-1] = min(max(t, begins[0]), begins[-1])
        return TimeLaw(begins, self.piece[:count], *(c[:count] for c in self.columns()))

    def since(self, t: float) -> "TimeLaw":
        """The time law without the segments that end before t."""
        first = min(max(int(np.searchsorted(self.begins, t, side="right")) - 1, 0), len(self))
        return TimeLaw(
            self.begins[first:], self.piece[first:], *(c[first:] for c in self.columns())
        )

    def then(self, other: "TimeLaw") -> "TimeLaw":
        """This law followed by another, which begins at the end of this one."""
        columns = (
            np.concatenate(pair) for pair in zip(self.columns(), other.columns(), strict=True)
        )
        return TimeLaw(
            np.concatenate([self.begins[:-1], other.begins]),
            np.concatenate([self.piece, other.piece]),
            *columns,
        )

    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.s, self.v, self.a, self.j

    def numbered(self, shift: int) -> "TimeLaw":
        """The same law with ``shift`` added to its piece numbers."""
        return TimeLaw(self.begins, self.piece + shift, *self.columns())

    def to_state(self) -> dict[str, Any]:
        return {column.name: getattr(self, column.name).tolist() for column in fields(self)}

    @staticmethod
    def from_state(state: dict[str, Any]) -> "TimeLaw":
        kinds: dict[str, Any] = {"piece": np.int64}
        return TimeLaw(
            **{
                c.name: np.array(state[c.name], dtype=kinds.get(c.name, float))
                for c in fields(TimeLaw)
            }
        )


def empty_law(at: float) -> TimeLaw:
    none = np.zeros(0)
    return TimeLaw(np.array([at]), np.zeros(0, dtype=np.int64), none, none, none, none)


# ── plans ─────────────────────────────────────────────────────────────────────────────────────────


class Motion(NamedTuple):
    """Position, velocity and acceleration of every axis; one row per time if there are several."""

    position: Floats
    velocity: Floats
    acceleration: Floats


class PathPosition(NamedTuple):
    """Position, speed and acceleration of a plan along its path."""

    piece: int
    s: float = 0.0
    v: float = 0.0
    a: float = 0.0


Columns = tuple[Floats, Ints, Floats, Floats, Floats, Floats]


@compiled
def segment_at(begins: Floats, t: float, guess: int) -> int:
    """The segment at t: near a guess, else by bisection."""
    last = len(begins) - 2
    if guess <= last and begins[guess] <= t:
        if t < begins[guess + 1]:
            return guess
        if guess < last and t < begins[guess + 2]:
            return guess + 1
        low, high = guess, last
    else:
        low, high = 0, last
    while low < high:
        middle = (low + high + 1) >> 1
        if begins[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def positions_at(  # kernel
    times: Floats, law: Columns, shape: Floats, target: Floats, position: Floats
) -> None:
    """Positions at each time, for a 1 kHz log, a sweep or a preview."""
    begins, piece, s0, v0, a0, j0 = law
    axes = shape.shape[2]
    degree = shape.shape[1] - 1
    last = len(piece) - 1
    k = 0
    for n in range(len(times)):
        t = times[n]
        if last < 0 or t >= begins[last + 1]:
            for i in range(axes):
                position[n, i] = target[i]
            continue
        k = segment_at(begins, t, k)
        x = max(t - begins[k], 0.0)
        s = s0[k] + x * (v0[k] + x * (0.5 * a0[k] + x * j0[k] / 6.0))
        row = shape[piece[k]]
        if degree == 1:
            for i in range(axes):
                position[n, i] = row[0, i] + row[1, i] * s
        else:
            for i in range(axes):
                value = row[degree, i]
                for d in range(degree - 1, -1, -1):
                    value = row[d, i] + value * s
                position[n, i] = value


@compiled
def motions_at(  # kernel
    times: Floats,
    law: Columns,
    shape: Floats,
    target: Floats,
    out: tuple[Floats, Floats, Floats],
) -> None:
    """Position, velocity and acceleration at each time, by the chain rule along the path."""
    begins, piece, s0, v0, a0, j0 = law
    position, velocity, acceleration = out
    axes = shape.shape[2]
    degree = shape.shape[1] - 1
    last = len(piece) - 1
    k = 0
    for n in range(len(times)):
        t = times[n]
        if last < 0 or t >= begins[last + 1]:
            for i in range(axes):
                position[n, i] = target[i]
                velocity[n, i] = acceleration[n, i] = 0.0
            continue
        k = segment_at(begins, t, k)
        x = max(t - begins[k], 0.0)
        s = s0[k] + x * (v0[k] + x * (0.5 * a0[k] + x * j0[k] / 6.0))
        v = max(v0[k] + x * (a0[k] + 0.5 * x * j0[k]), 0.0)
        a = a0[k] + x * j0[k]
        if t < begins[0]:
            v = a = 0.0
        row = shape[piece[k]]
        for i in range(axes):
            value = row[degree, i]
            slope = curve = 0.0
            for d in range(degree - 1, -1, -1):
                curve = 2.0 * slope + curve * s
                slope = value + slope * s
                value = row[d, i] + value * s
            position[n, i] = value
            velocity[n, i] = slope * v
            acceleration[n, i] = slope * a + curve * v * v


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A path with a time law; times are in seconds since the cell started."""

    path: Path
    law: TimeLaw
    target: Floats
    """Position in which it ends."""

    @property
    def begins(self) -> float:
        return float(self.law.begins[0])

    @property
    def ends(self) -> float:
        return float(self.law.begins[-1])

    @property
    def duration(self) -> float:
        return self.ends - self.begins

    def at(self, t: float) -> Motion:
        """Position, velocity and acceleration of the axes at one time."""
        return Motion(*(values[0] for values in self.sample(np.array([t]))))

    def sample(self, times: ArrayLike) -> Motion:
        """One row per time; fastest if the times are sorted."""
        when = np.ascontiguousarray(times, dtype=np.float64)
        out = (self._rows(when), self._rows(when), self._rows(when))
        motions_at(when, *self.columns, out)
        return Motion(*out)

    def positions(self, times: ArrayLike, out: Floats | None = None) -> Floats:
        """Positions only, one row per time; filled into ``out`` if given."""
        when = np.ascontiguousarray(times, dtype=np.float64)
        rows = self._rows(when) if out is None else out
        positions_at(when, *self.columns, rows)
        return rows

    def piece_at(self, t: float) -> int:
        """The piece executed at t."""
        return int(self.law.piece[self.law.segment(t)]) if len(self.law) else 0

    def place(self, t: float) -> PathPosition:
        """Piece, distance and speed at t; in a dwell s is the time in seconds."""
        if not len(self.law):
            return PathPosition(0)
        law, k = self.law, self.law.segment(t)
        piece = int(law.piece[k])
        x = min(max(t, law.begins[0]), self.ends) - law.begins[k]
        if self.path.dwell[piece] > 0.0:
            return PathPosition(piece, float(law.s[k] + x), 0.0, 0.0)
        s = law.s[k] + x * (law.v[k] + x * (0.5 * law.a[k] + x * law.j[k] / 6.0))
        s = float(min(s, self.path.length[piece]))
        if not self.begins <= t < self.ends:
            return PathPosition(piece, s)
        v = max(law.v[k] + x * (law.a[k] + 0.5 * x * law.j[k]), 0.0)
        return PathPosition(piece, s, float(v), float(law.a[k] + x * law.j[k]))

    def speed(self, t: float) -> float:
        """The speed along the path."""
        return self.place(t).v

    def distance(self, t: float) -> float:
        """Distance along the whole path at t."""
        here = self.place(t)
        on_piece = min(here.s, float(self.path.length[here.piece])) if len(self.path) else 0.0
        return float(self.path.length[: here.piece].sum()) + on_piece

    def line_at(self, t: float) -> int | None:
        """The line executed at t; None before the plan begins, in a gap, or after it ends."""
        if not self.begins <= t < self.ends:
            return None
        segment = self.law.segment(t)
        return (
            int(self.path.line[self.law.piece[segment]]) if self._runs(self.law)[segment] else None
        )

    def lines(self) -> tuple[Ints, Floats]:
        """Line of each block in the order of execution, and when each begins."""
        return self._lines(self.law)

    def lines_since(self, t: float) -> tuple[Ints, Floats]:
        """Like `lines`, for blocks that begin at t or later; may include the one executed at t."""
        return self._lines(self.law.since(t))

    def _lines(self, law: TimeLaw) -> tuple[Ints, Floats]:
        running = np.flatnonzero(self._runs(law))
        piece = law.piece[running]
        block = self.path.block[piece]
        first = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]])[: len(block)])
        return self.path.line[piece[first]], law.begins[running[first]]

    def _runs(self, law: TimeLaw) -> NDArray[np.bool_]:
        """Which segments are motion or dwell, not a wait before a block."""
        waiting = (law.v == 0.0) & (law.a == 0.0) & (law.j == 0.0) & (law.s == 0.0)
        return np.asarray(~waiting | (self.path.dwell[law.piece] > 0.0))

    def until(self, t: float) -> "Plan":
        """The plan cut at t: at rest from then on, in the position at t."""
        if t >= self.ends:
            return self
        return Plan(self.path, self.law.until(t), self.at(t).position)

    def then(self, other: "Plan") -> "Plan":
        """This plan followed by another, which begins when and where this one ends."""
        follow = other.law.numbered(len(self.path))
        return Plan(joined([self.path, other.path]), self.law.then(follow), other.target)

    def to_state(self) -> dict[str, Any]:
        return {
            "path": self.path.to_state(),
            "law": self.law.to_state(),
            "target": self.target.tolist(),
        }

    @staticmethod
    def from_state(state: dict[str, Any]) -> "Plan":
        path, law = Path.from_state(state["path"]), TimeLaw.from_state(state["law"])
        return Plan(path, law, np.array(state["target"], dtype=np.float64))

    @property
    def columns(self) -> tuple[Columns, Floats, Floats]:
        """What kernels read: the time law, the shapes of the pieces, and where the plan ends."""
        law = self.law
        return (law.begins, law.piece, law.s, law.v, law.a, law.j), self.path.shape, self.target

    def _rows(self, times: Floats) -> Floats:
        return np.empty((len(times), len(self.target)))


# ── passing times ─────────────────────────────────────────────────────────────────────────────────


HALVINGS = 60
SHORT = 1e-9
"""Share of a piece that may be missing at its end because of rounding."""


def passing_time(plan: Plan, piece: int, s: float) -> float | None:
    """Time at which a plan passes the distance s along a piece.

    Waiting there before moving does not count. None: the plan ends before, as after a hold.
    """
    law = plan.law
    first, beyond = np.searchsorted(law.piece, [piece, piece + 1])
    for k in range(int(first), int(beyond)):
        if (at := _on_segment(plan, k, s)) is not None:
            return at
    if beyond < len(law):
        return float(law.begins[beyond])
    at_end = first < beyond and s >= plan.path.length[piece] * (1.0 - SHORT)
    return plan.ends if at_end and _has_run_out(plan, piece) else None


def _on_segment(plan: Plan, k: int, s: float) -> float | None:
    law = plan.law
    begins, lasts = float(law.begins[k]), float(law.begins[k + 1] - law.begins[k])
    if law.v[k] == law.a[k] == law.j[k] == 0.0 and not plan.path.dwell[law.piece[k]]:
        return None
    if s <= law.s[k]:
        return begins
    if _run(plan, k, lasts) < s:
        return None
    low, high = 0.0, lasts
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _run(plan, k, middle) < s else (low, middle)
    return begins + high


def _run(plan: Plan, k: int, x: float) -> float:
    """Distance along the piece at x seconds after the begin of a segment."""
    law = plan.law
    if plan.path.dwell[law.piece[k]] > 0.0:
        return float(law.s[k])
    return float(law.s[k] + x * (law.v[k] + x * (0.5 * law.a[k] + x * law.j[k] / 6.0)))


def _has_run_out(plan: Plan, piece: int) -> bool:
    """Whether the plan rests exactly at the end of this piece."""
    return bool(np.array_equal(plan.target, plan.path.end[piece]))


# ── distance of the tool ──────────────────────────────────────────────────────────────────────────


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
