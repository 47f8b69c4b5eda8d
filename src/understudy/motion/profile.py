"""Speed over each piece in closed form: accelerate, cruise, brake.

``trapezoid`` steps the acceleration as grblHAL does; ``jerk_limited`` (module smooth) ramps it.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.motion.law import Law
from understudy.motion.path import Floats, Path
from understudy.space.compiled import compiled

Profile = Literal["trapezoid", "jerk_limited"]

NOISE = 1e-13
"""A stretch shorter than this is what rounding left over."""

Rows = tuple[Floats, NDArray[np.int64], Floats, Floats, Floats]


@compiled
def peak_speed(entry: float, exit_: float, top: float, gain: float) -> float:
    """The square of the highest speed on a piece; all are squares, ``gain`` is 2·a·L."""
    return max(min(0.5 * (entry + exit_ + gain), top), entry, exit_)


@compiled
def ramp(rows: Rows, n: int, piece: int, s: float, state: tuple[float, float, float, float]) -> int:
    """One segment over a distance, from one speed to another; nothing if there is no distance."""
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
    """Write the segments of every piece; ``entry`` are squares; returns how many there are."""
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
            # Braking down to a lower override: then the cruise is at the nominal speed.
            peak = max(top, high)
        v0, v1, vp = math.sqrt(low), math.sqrt(high), math.sqrt(peak)
        up = min(abs(peak - low) / (2.0 * a), rest)
        down = min((peak - high) / (2.0 * a), rest - up)
        n = ramp(rows, n, p, start, (up, v0, vp, a if peak > low else -a))
        n = ramp(rows, n, p, start + up, (rest - up - down, vp, vp, 0.0))
        n = ramp(rows, n, p, length[p] - down, (down, vp, v1, -a))
    return n


def trapezoid(path: Path, nominal: Floats, entry: Floats, *, at: float, run: float = 0.0) -> Law:
    """The law of a path with these entry speeds (squares); ``run`` of the first piece is behind."""
    room = 3 * len(path) + 1
    begins, pieces = np.empty(room), np.empty(room, dtype=np.int64)
    begins[0] = at
    s, v, a = np.empty(room), np.empty(room), np.empty(room)
    rows = (begins, pieces, s, v, a)
    n = trapezoids(path.length, path.acceleration, nominal, path.dwell, entry, run, rows)
    # What is left of the room was never written on: it costs nothing to keep.
    return Law(begins[: n + 1], pieces[:n], s[:n], v[:n], a[:n], np.zeros(n))
