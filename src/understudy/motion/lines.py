"""Straight lines of the axes, with length, limits and corner speeds computed as in grblHAL.

Targets are first rounded to whole steps (half away from zero). The length is the Euclidean norm
over all axes, mm and deg mixed. Direction u = d/|d|; acceleration = min aᵢ/|uᵢ|; fastest =
min vᵢ/|uᵢ|. A corner allows v² = a_j·JD·h/(1-h), with the junction deviation JD, h the sine of half
the angle and a_j the acceleration along the change of direction. A reversal stops; a straight
continuation has no limit, also with JD = 0.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import Floats, Ints, Limits, Path, PerLine, floats, path_of
from understudy.space.compiled import compiled

Columns = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats]
"""shape, end, length, acceleration, jerk, fastest and junction of a path."""

STRAIGHT = 0.999999
"""Cosine above which two directions count as equal, or as opposite."""

SAME_PACE = 1e-3
"""Relative difference up to which two speeds of the axes count as equal."""


def corner(before: Floats, after: Floats, acceleration: Floats, deviation: float) -> float:
    """Square of the speed allowed at the junction of two unit directions."""
    return float(corner_speed(before, after, 1.0 / acceleration, deviation))


@compiled
def corner_speed(before: Floats, after: Floats, slow: Floats, deviation: float) -> float:  # kernel
    """Kernel of `corner`; ``slow``: reciprocals of the accelerations."""
    cosine = 0.0
    for i in range(len(before)):
        cosine -= before[i] * after[i]
    if cosine > STRAIGHT:
        return 0.0
    if cosine < -STRAIGHT:
        return np.inf
    if deviation == 0.0:
        return 0.0
    norm, slowest = 0.0, 0.0
    for i in range(len(before)):
        turn = after[i] - before[i]
        norm += turn * turn
        slowest = max(slowest, abs(turn) * slow[i])
    along = math.sqrt(norm) / slowest
    half = math.sqrt(0.5 * (1.0 - cosine))
    return along * deviation * half / (1.0 - half)


@compiled
def on_steps(value: float, steps: float) -> float:
    """A coordinate rounded to whole steps, half away from zero; not rounded if steps is 0."""
    if steps == 0.0:
        return value
    scaled = value * steps
    return math.floor(abs(scaled) + 0.5) * math.copysign(1.0, scaled) / steps


@compiled
def measure(  # kernel
    start: Floats,
    targets: Floats,
    steps: Floats,
    limits: tuple[Floats, Floats, Floats],
    deviation: Floats,
    out: Columns,
    source: Ints,
) -> int:
    """Fills the columns of every line that moves; returns the number of lines."""
    slow_v, slow_a, slow_j = 1.0 / limits[0], 1.0 / limits[1], 1.0 / limits[2]
    shape, end, length, acceleration, jerk, fastest, junction = out
    axes = len(start)
    here = np.empty(axes)
    for i in range(axes):
        here[i] = on_steps(start[i], steps[i])
    n = 0
    for k in range(len(targets)):
        total = 0.0
        for i in range(axes):
            end[n, i] = on_steps(targets[k, i], steps[i])
            shape[n, 0, i] = here[i]
            shape[n, 1, i] = end[n, i] - here[i]
            total += shape[n, 1, i] ** 2
        if total == 0.0:
            continue
        total = math.sqrt(total)
        v = a = j = 0.0
        for i in range(axes):
            shape[n, 1, i] /= total
            share = abs(shape[n, 1, i])
            here[i] = end[n, i]
            v = max(v, share * slow_v[i])
            a = max(a, share * slow_a[i])
            j = max(j, share * slow_j[i])
        junction[n] = 0.0
        if n > 0:
            junction[n] = corner_speed(shape[n - 1, 1], shape[n, 1], slow_a, deviation[k])
        length[n] = total
        acceleration[n] = 1.0 / a
        jerk[n] = 1.0 / j
        fastest[n] = 1.0 / v
        source[n] = k
        n += 1
    return n


def lines(
    start: ArrayLike,
    targets: ArrayLike,
    limits: Limits,
    *,
    feed: ArrayLike = np.inf,
    rapid: ArrayLike = False,
    inverse_time: ArrayLike = False,
    deviation: ArrayLike = 0.0,
    exact: ArrayLike = False,
    steps: ArrayLike = 0.0,
    line: ArrayLike = 0,
) -> Path:
    """Straight lines from ``start`` through ``targets``; lines shorter than a step are omitted.

    feed: length per second, or with ``inverse_time`` (G93) lines per second; deviation: JD at the
    line's start; exact: come to rest there (G61.1); steps: steps per unit, 0 for no rounding; line:
    the caller's line number. One value for all lines, or one each.
    """
    columns, source = _measured(start, targets, limits, deviation, steps)
    shape, end, length, acceleration, jerk, fastest, junction = columns
    each = PerLine(source, np.asarray(targets).size // shape.shape[2])
    return path_of(
        shape=shape,
        end=end,
        length=length,
        acceleration=acceleration,
        jerk=jerk,
        fastest=fastest,
        feed=_paces(each, feed, inverse_time, length),
        rapid=each.flag(rapid),
        junction=np.where(each.flag(exact), 0.0, junction) if np.any(exact) else junction,
        block=np.arange(len(length), dtype=np.int64),
        line=each.number(line).astype(np.int64),
    )


def _measured(
    start: ArrayLike, targets: ArrayLike, limits: Limits, deviation: ArrayLike, steps: ArrayLike
) -> tuple[Columns, Ints]:
    """Columns of all lines that move, and the index of the target of each."""
    where = np.asarray(start, dtype=np.float64)
    through = np.asarray(targets, dtype=np.float64).reshape(-1, len(where))
    count, axes = through.shape
    shape, end = np.empty((count, 2, axes)), np.empty((count, axes))
    length, acceleration, jerk, fastest, junction = np.empty((5, count))
    out = (shape, end, length, acceleration, jerk, fastest, junction)
    source = np.empty(count, dtype=np.int64)
    able = (limits.velocity, limits.acceleration, limits.jerk)
    n = measure(where, through, floats(steps, axes), able, floats(deviation, count), out, source)
    shape, end, length, acceleration, jerk, fastest, junction = (column[:n] for column in out)
    return (shape, end, length, acceleration, jerk, fastest, junction), source[:n]


def _paces(each: PerLine, feed: ArrayLike, inverse_time: ArrayLike, length: Floats) -> Floats:
    """Feeds in length per second."""
    asked = each.number(feed)
    if not (asked > 0.0).all():
        raise ValueError(f"a feed must be above 0, got {asked.min()}")
    if not np.any(inverse_time):
        return asked
    return asked * np.where(each.flag(inverse_time), length, 1.0)


def seam(before: Path, after: Path, limits: Limits, deviation: float) -> float:
    """Square of the speed allowed where one path continues into another.

    Both measured over the axes: the corner speed. Both along the tool: the corner speed of the
    axes, at the speed of the side on which the axes move more. Motion comes to rest between a path
    of the axes and one of the tool, and where the axes' speed changes without a corner.
    """
    same = before.measure[-1] == after.measure[0]
    if not same or before.dwell[-1] > 0.0 or after.dwell[0] > 0.0:
        return 0.0
    out = before.tangent(len(before) - 1, float(before.length[-1]))
    into = after.tangent(0, 0.0)
    return float(passing_speed(out, into, 1.0 / limits.acceleration, deviation))


@compiled
def passing_speed(out: Floats, into: Floats, slow: Floats, deviation: float) -> float:
    """Kernel of `seam` for two tangents dq/ds; ``slow``: reciprocals of the accelerations."""
    square_out = square_into = 0.0
    for i in range(len(out)):
        square_out += out[i] * out[i]
        square_into += into[i] * into[i]
    pace_out, pace_into = math.sqrt(square_out), math.sqrt(square_into)
    if not (pace_out > 0.0 and pace_into > 0.0):
        return 0.0
    allowed = corner_speed(out / pace_out, into / pace_into, slow, deviation)
    faster = max(pace_out, pace_into)
    if np.isinf(allowed):
        return np.inf if abs(pace_out - pace_into) <= SAME_PACE * faster else 0.0
    return allowed / faster**2
