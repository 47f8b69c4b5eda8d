"""To brake along the path, as hard as its pieces allow: the path of a hold is the path.

A plan never brakes harder than its pieces allow, so from the same moment on this is never faster
than the plan was at the same place: corners and limits that the plan held are held here too.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.motion.law import Law
from understudy.motion.path import Floats
from understudy.motion.plan import Plan
from understudy.space.compiled import compiled


class Stop(NamedTuple):
    """How motion comes to rest, and where on the path."""

    law: Law
    """All of the motion, up to the rest."""
    piece: int
    s: float


@compiled
def braking(  # kernel
    length: Floats,
    acceleration: Floats,
    place: tuple[int, float, float],
    rows: tuple[Floats, NDArray[np.int64], Floats, Floats, Floats],
) -> tuple[int, float]:
    """Write one segment per piece until the speed is gone; how many, and the s of the stop."""
    begins, pieces, starts, speeds, accelerations = rows
    p, s, v = place
    n = 0
    while v > 0.0 and p < len(length):
        a = acceleration[p]
        rest = length[p] - s
        need = v * v / (2.0 * a)
        distance = min(need, rest)
        # At the end of the path the speed is gone but for rounding.
        after = math.sqrt(max(v * v - 2.0 * a * rest, 0.0)) if rest < need else 0.0
        if distance > 0.0:
            begins[n + 1] = begins[n] + 2.0 * distance / (v + after)
            pieces[n], starts[n], speeds[n], accelerations[n] = p, s, v, -a
            n += 1
        s += distance
        # A speed that is gone at a piece's end but for rounding stops there, not on the next.
        if rest < need and after > 0.0:
            p += 1
            if p == len(length):
                break
            s = 0.0
        v = after
    return n, s


def brake(plan: Plan, at: float) -> Stop:
    """The plan up to a time, and from there to rest along its path."""
    path, place = plan.path, plan.place(at)
    room = len(path) - place.piece + 1
    begins, pieces = np.empty(room + 1), np.empty(room, dtype=np.int64)
    begins[0] = at
    columns = np.zeros((3, room))
    rows = (begins, pieces, columns[0], columns[1], columns[2])
    n, s = braking(path.length, path.acceleration, (place.piece, place.s, place.v), rows)
    s0, v0, a0 = (column[:n] for column in columns)
    law = plan.law.until(at).then(Law(begins[: n + 1], pieces[:n], s0, v0, a0, np.zeros(n)))
    return Stop(law, int(pieces[n - 1]) if n else place.piece, float(s))
