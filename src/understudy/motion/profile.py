"""Trapezoidal speed profiles as in grblHAL: accelerate, cruise, brake; and braking to a hold.

The acceleration changes in steps. `smooth` has the jerk-limited alternative.

A hold brakes along the path, as hard as its pieces allow. A plan never brakes harder than that, so
the hold is nowhere faster than the plan was, and the limits of corners and axes are kept.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan, TimeLaw
from understudy.space.compiled import compiled

Profile = Literal["trapezoid", "jerk_limited"]

NOISE = 1e-13
"""Distances below this are rounding errors."""

Rows = tuple[Floats, NDArray[np.int64], Floats, Floats, Floats]


@compiled
def peak_speed(entry: float, exit_: float, top: float, gain: float) -> float:
    """Square of the highest speed on a piece; all speeds are squared, ``gain`` is 2·a·L."""
    return max(min(0.5 * (entry + exit_ + gain), top), entry, exit_)


@compiled
def ramp(rows: Rows, n: int, piece: int, s: float, state: tuple[float, float, float, float]) -> int:
    """Writes one segment over a distance, from one speed to another; none if the distance is 0."""
    begins, pieces, starts, speeds, accelerations = rows
    distance, v0, v1, a = state
    if distance <= NOISE or v0 + v1 <= 0.0:
        return n
    begins[n + 1] = begins[n] + 2.0 * distance / (v0 + v1)
    pieces[n] = piece
    starts[n] = s
    speeds[n] = v0
    accelerations[n] = a
    return n + 1


@compiled
def trapezoids(  # kernel
    length: Floats,
    acceleration: Floats,
    nominal: Floats,
    dwell: Floats,
    entry: Floats,
    run: float,
    rows: Rows,
) -> int:
    """Writes the segments of every piece; ``entry`` are squares; returns the number of segments."""
    n = 0
    for p in range(len(length)):
        start = run if p == 0 else 0.0
        rest = length[p] - start
        if dwell[p] > 0.0:
            rows[0][n + 1] = rows[0][n] + max(dwell[p] - start, 0.0)
            rows[1][n] = p
            rows[2][n] = start
            rows[3][n] = rows[4][n] = 0.0
            n += 1
            continue
        a = acceleration[p]
        top = nominal[p] * nominal[p]
        low, high = entry[p], entry[p + 1]
        peak = peak_speed(low, high, top, 2.0 * a * rest)
        if low > top:
            # Braking after a lower override: the cruise is at the nominal speed.
            peak = max(top, high)
        v0, v1, vp = math.sqrt(low), math.sqrt(high), math.sqrt(peak)
        up = min(abs(peak - low) / (2.0 * a), rest)
        down = min((peak - high) / (2.0 * a), rest - up)
        n = ramp(rows, n, p, start, (up, v0, vp, a if peak > low else -a))
        n = ramp(rows, n, p, start + up, (rest - up - down, vp, vp, 0.0))
        n = ramp(rows, n, p, length[p] - down, (down, vp, v1, -a))
    return n


def trapezoid(
    path: Path, nominal: Floats, entry: Floats, *, at: float, run: float = 0.0
) -> TimeLaw:
    """Time law of a path with these entry speeds (squares), from ``run`` along the first piece."""
    room = 3 * len(path) + 1
    begins, pieces = np.empty(room), np.empty(room, dtype=np.int64)
    begins[0] = at
    s, v, a = np.empty(room), np.empty(room), np.empty(room)
    rows = (begins, pieces, s, v, a)
    n = trapezoids(path.length, path.acceleration, nominal, path.dwell, entry, run, rows)
    # Unused rows of the buffers were never touched: they take no memory.
    return TimeLaw(begins[: n + 1], pieces[:n], s[:n], v[:n], a[:n], np.zeros(n))


# ── braking ───────────────────────────────────────────────────────────────────────────────────────


class Stop(NamedTuple):
    """How and where on the path a motion comes to rest."""

    law: TimeLaw
    """The whole motion up to the rest."""
    piece: int
    s: float


@compiled
def braking(  # kernel
    length: Floats,
    acceleration: Floats,
    place: tuple[int, float, float],
    rows: tuple[Floats, NDArray[np.int64], Floats, Floats, Floats],
) -> tuple[int, float]:
    """Writes one segment per piece until the speed is 0; number of segments, and s of the stop."""
    begins, pieces, starts, speeds, accelerations = rows
    p, s, v = place
    n = 0
    while v > 0.0 and p < len(length):
        a = acceleration[p]
        rest = length[p] - s
        need = v * v / (2.0 * a)
        distance = min(need, rest)
        # At the end of the path the speed is 0 except for rounding.
        after = math.sqrt(max(v * v - 2.0 * a * rest, 0.0)) if rest < need else 0.0
        if distance > 0.0:
            begins[n + 1] = begins[n] + 2.0 * distance / (v + after)
            pieces[n], starts[n], speeds[n], accelerations[n] = p, s, v, -a
            n += 1
        s += distance
        # A speed that is 0 at the piece's end except for rounding stops there, not on the next.
        if rest < need and after > 0.0:
            p += 1
            if p == len(length):
                break
            s = 0.0
        v = after
    return n, s


def brake(plan: Plan, at: float) -> Stop:
    """The plan up to a time, then braking to rest along its path."""
    path, place = plan.path, plan.place(at)
    room = len(path) - place.piece + 1
    begins, pieces = np.empty(room + 1), np.empty(room, dtype=np.int64)
    begins[0] = at
    columns = np.zeros((3, room))
    rows = (begins, pieces, columns[0], columns[1], columns[2])
    n, s = braking(path.length, path.acceleration, (place.piece, place.s, place.v), rows)
    s0, v0, a0 = (column[:n] for column in columns)
    law = plan.law.until(at).then(TimeLaw(begins[: n + 1], pieces[:n], s0, v0, a0, np.zeros(n)))
    return Stop(law, int(pieces[n - 1]) if n else place.piece, float(s))
