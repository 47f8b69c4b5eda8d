"""Trapezoidal speed profiles as in grblHAL: look-ahead over all pieces, then accelerate, cruise and
brake on each of them; and braking to a hold.

The look-ahead finds the entry speed of each piece, such that braking is always possible. The square
of the entry speed is bounded by the corner, by the nominal speeds of both neighbours, by braking
(backward pass; the last known block ends at rest) and by acceleration (forward pass). The
controller knows a window of blocks, the executing one included; when a block finishes the next one
enters the window. So a block's exit speed is what a backward pass from the end of *its own* window
allows. All windows together cost as much as one pass: a block maps the square of the speed at its
exit to that at its entry by x ↦ min(M, x + W), and such maps compose.

The acceleration changes in steps. `smooth` has the jerk-limited alternative.

A hold brakes along the path, as hard as its pieces allow. A plan never brakes harder than that, so
the hold is nowhere faster than the plan was, and the limits of corners and axes are kept.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from understudy.motion.path import Floats, Ints, Path
from understudy.motion.plan import Plan, TimeLaw
from understudy.space.compiled import compiled

Profile = Literal["trapezoid", "jerk_limited"]

# ── look-ahead ────────────────────────────────────────────────────────────────────────────────────


ENDLESS = 1 << 40
"""Window size that no program exceeds."""

SLACK = 1e-9
"""Relative amount by which braking may miss a bound because of rounding."""


@compiled
def ceilings(junction: Floats, nominal: Floats, dwell: Floats, out: Floats) -> None:
    """Square of the speed that corner and both neighbours allow at each piece's start."""
    before = np.inf
    for k in range(len(junction)):
        speed = nominal[k] * nominal[k]
        out[k] = 0.0 if dwell[k] > 0.0 else min(junction[k], before, speed)
        before = speed


@compiled
def windows(  # kernel
    ceiling: Floats, gain: Floats, first: Ints, window: int, bound: Floats
) -> None:
    """Square of the entry speed of each block, with the window of the block before it.

    ``gain`` is 2·a·L of each piece; ``first``: first piece of each block, and the number of pieces.
    The blocks are divided into chunks of window - 1, the number of known blocks after the executing
    one; a window is then the tail of one chunk and the head of the next.
    """
    blocks = len(first) - 1
    ahead = min(window - 1, blocks)
    bound[blocks] = 0.0
    if ahead < 1:
        bound[:] = 0.0
        return
    head = np.empty(blocks)
    tail_top = np.empty(blocks)
    tail_gain = np.empty(blocks)
    for start in range(0, blocks, ahead):
        stop = min(start + ahead, blocks)
        top, added = np.inf, 0.0
        for b in range(start, stop):
            for p in range(first[b], first[b + 1]):
                top = min(top, ceiling[p] + added)
                added += gain[p]
            head[b] = min(top, added)
        top, added = np.inf, 0.0
        for b in range(stop - 1, start - 1, -1):
            for p in range(first[b + 1] - 1, first[b] - 1, -1):
                top = min(ceiling[p], top + gain[p])
                added += gain[p]
            tail_top[b] = top
            tail_gain[b] = added
    for b in range(blocks):
        last = b + ahead - 1
        beyond = head[last] if b % ahead != 0 and last < blocks else 0.0
        if last >= blocks and b // ahead != (blocks - 1) // ahead:
            beyond = head[blocks - 1]
        bound[b] = min(tail_top[b], beyond + tail_gain[b])


@compiled
def forward(  # kernel
    ceiling: Floats,
    gain: Floats,
    first: Ints,
    bound: Floats,
    entry: Floats,
) -> None:
    """Square of the speed at each piece's start and at the end of the last, from entry[0] on.

    If a lower override has put the ceiling below the current speed, the pieces brake as hard as
    they can until the speed is below the ceiling.
    """
    for b in range(len(first) - 1):
        start, stop = first[b], first[b + 1]
        entry[stop] = bound[b + 1]
        for p in range(stop - 1, start, -1):
            entry[p] = min(ceiling[p], entry[p + 1] + gain[p])
        for p in range(start, stop):
            lowest = entry[p] - gain[p] * (1.0 + SLACK)
            entry[p + 1] = max(min(entry[p + 1], entry[p] + gain[p]), lowest)


@compiled
def block_starts(block: Ints, first: Ints) -> int:
    """Sets the first piece of each block, then the number of pieces; returns how many blocks."""
    n = 0
    for p in range(len(block)):
        if p == 0 or block[p] != block[p - 1]:
            first[n] = p
            n += 1
    first[n] = len(block)
    return n


def entries(
    path: Path, nominal: Floats, *, window: int = ENDLESS, entry: float = 0.0, run: float = 0.0
) -> Floats:
    """Square of the speed at the start of each piece, and at the end of the last.

    The motion is at the distance ``run`` along the first piece; ``entry``: square of its speed.
    """
    gain = 2.0 * path.acceleration * path.length
    gain[:1] -= 2.0 * path.acceleration[:1] * run
    return passes(path, nominal, gain=gain, window=window, entry=entry)


def passes(path: Path, nominal: Floats, *, gain: Floats, window: int, entry: float) -> Floats:
    """Ceilings, then the backward pass over every window, then the forward pass."""
    count = len(path)
    ceiling = np.empty(count)
    ceilings(path.junction, nominal, path.dwell, ceiling)
    first = np.empty(count + 1, dtype=np.int64)
    blocks = block_starts(path.block, first)
    first = first[: blocks + 1]
    bound = np.empty(blocks + 1)
    windows(ceiling, gain, first, window, bound)
    speeds = np.empty(count + 1)
    speeds[0] = entry
    forward(ceiling, gain, first, bound, speeds)
    return speeds


# ── speed on a piece ──────────────────────────────────────────────────────────────────────────────


NOISE = 1e-13
"""Distances below this are rounding errors."""

Rows = tuple[Floats, Ints, Floats, Floats, Floats]


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
    rows: Rows,
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
