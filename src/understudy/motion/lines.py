"""Straight lines of the axes, measured as grblHAL measures a block.

Targets are first rounded to whole steps (half away from zero). The length is the Euclidean norm
over all axes, mm and deg mixed. Direction u = d/|d|; acceleration = min aᵢ/|uᵢ|; fastest =
min vᵢ/|uᵢ|. A corner allows v² = a_j·JD·h/(1-h), h the sine of half the angle, a_j the acceleration
along the change of direction; a reversal stops, a straight continuation is free, also with JD = 0.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.motion.path import AXES, Floats, Limits, Path, flags, floats
from understudy.space.compiled import compiled

STRAIGHT = 0.999999
"""Beyond this cosine two directions count as the same, or as opposite."""

SAME_PACE = 1e-3
"""Up to this share two speeds of the axes count as the same."""


@compiled
def corner(
    before: Floats, after: Floats, acceleration: Floats, deviation: float
) -> float:  # kernel
    """The square of the speed two unit directions allow at their junction."""
    cosine = 0.0
    for i in range(len(before)):
        cosine -= before[i] * after[i]
    if cosine > STRAIGHT:
        return 0.0
    if cosine < -STRAIGHT:
        return np.inf
    norm = 0.0
    for i in range(len(before)):
        norm += (after[i] - before[i]) ** 2
    norm = math.sqrt(norm)
    along = np.inf
    for i in range(len(before)):
        turn = abs(after[i] - before[i])
        if turn > 0.0:
            along = min(along, acceleration[i] * norm / turn)
    half = math.sqrt(0.5 * (1.0 - cosine))
    return along * deviation * half / (1.0 - half)


@compiled
def on_steps(value: float, steps: float) -> float:
    """A coordinate rounded to whole steps, half away from zero; 0 steps per unit: as it is."""
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
    before: Floats,
    out: tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats],
    source: NDArray[np.int64],
) -> int:
    """Fill the columns of every block that moves; returns how many there are."""
    speeds, accelerations, jerks = limits
    shape, end, length, acceleration, jerk, fastest, junction = out
    axes = len(start)
    here = np.empty(axes)
    for i in range(axes):
        here[i] = on_steps(start[i], steps[i])
    last = before.copy()
    moving = bool(before.any())
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
        a = v = j = np.inf
        for i in range(axes):
            shape[n, 1, i] /= total
            share = abs(shape[n, 1, i])
            here[i] = end[n, i]
            if share > 0.0:
                v = min(v, speeds[i] / share)
                a = min(a, accelerations[i] / share)
                j = min(j, jerks[i] / share)
        junction[n] = 0.0
        if moving:
            junction[n] = corner(last, shape[n, 1], accelerations, deviation[k])
        for i in range(axes):
            last[i] = shape[n, 1, i]
        moving = True
        length[n] = total
        acceleration[n] = a
        jerk[n] = j
        fastest[n] = v
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
    before: ArrayLike | None = None,
    line: ArrayLike = 0,
) -> Path:
    """Straight lines from ``start`` through ``targets``; what does not move a step is left out.

    feed: length per second, or with ``inverse_time`` (G93) lines per second; exact: come to rest at
    the line's start (G61.1); deviation: JD at the line's start; steps: steps per unit, 0 for none;
    before: the unit direction of what is run just before, if anything is; line: the number by which
    the asker knows each line.
    """
    if not np.all(np.asarray(feed) > 0.0):
        raise ValueError(f"a feed must be above 0, got {feed!r}")
    where = np.asarray(start, dtype=np.float64)
    through = np.asarray(targets, dtype=np.float64).reshape(-1, len(where))
    count, axes = through.shape
    out = (np.empty((count, 2, axes)), np.empty((count, axes)), *np.empty((5, count)))
    source = np.empty(count, dtype=np.int64)
    moving = measure(
        where,
        through,
        floats(steps, axes),
        (limits.velocity, limits.acceleration, limits.jerk),
        floats(deviation, count),
        np.zeros(axes) if before is None else floats(before, axes),
        out,
        source,
    )
    shape, end, length, acceleration, jerk, fastest, junction = (column[:moving] for column in out)
    source = source[:moving]
    per_line = flags(inverse_time, count)[source]
    return Path(
        shape=shape,
        end=end,
        length=length,
        acceleration=acceleration,
        jerk=jerk,
        fastest=fastest,
        feed=floats(feed, count)[source] * np.where(per_line, length, 1.0),
        rapid=flags(rapid, count)[source],
        junction=np.where(flags(exact, count)[source], 0.0, junction),
        dwell=np.zeros(moving),
        measure=np.full(moving, AXES, dtype=np.int8),
        block=np.arange(moving, dtype=np.int64),
        line=np.broadcast_to(np.asarray(line, dtype=np.int64), count)[source],
    )


def seam(before: Path, after: Path, limits: Limits, deviation: float) -> float:
    """The square of the speed allowed where one path goes over into another.

    Both measured over the axes: the corner. Both along the tool: the corner of the axes' way, at
    the speed of whichever side moves the axes more; where the axes go straight on but faster or
    slower, and between lines of the axes and of the tool, motion comes to rest.
    """
    same = before.measure[-1] == after.measure[0]
    if not same or before.dwell[-1] > 0.0 or after.dwell[0] > 0.0:
        return 0.0
    out = before.tangent(len(before) - 1, float(before.length[-1]))
    into = after.tangent(0, 0.0)
    pace_out, pace_into = float(np.linalg.norm(out)), float(np.linalg.norm(into))
    if not (pace_out > 0.0 and pace_into > 0.0):
        return 0.0
    allowed = corner(out / pace_out, into / pace_into, limits.acceleration, deviation)
    faster = max(pace_out, pace_into)
    if np.isinf(allowed):
        return np.inf if abs(pace_out - pace_into) <= SAME_PACE * faster else 0.0
    return float(allowed) / faster**2
