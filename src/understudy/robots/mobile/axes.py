"""Axes of functional motors as rows of arrays: each goes to its target and stops there."""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.wheels import fastest_within
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]

POSITION, SPEED = range(2)
"""Columns of the state."""
MAX_SPEED, MAX_ACCELERATION, MAX_DECELERATION, LOWEST, HIGHEST = range(5)
"""Columns of the limits; an axis without bounds has infinite ones."""


@compiled
def step_axes(
    rows: NDArray[np.int64],
    limits: Floats,
    target: Floats,
    tolerance: Floats,
    moving: NDArray[np.bool_],
    state: Floats,
    seconds: float,
) -> None:
    """Moves the axes of these rows on by one tick. One that is not ``moving`` brakes and stays."""
    for row in rows:
        position, speed = state[row, POSITION], state[row, SPEED]
        away = target[row] - position
        wanted = 0.0
        if moving[row]:
            if (
                abs(away) <= tolerance[row]
                and abs(speed) <= limits[row, MAX_DECELERATION] * seconds
            ):
                state[row, SPEED] = 0.0
                continue
            fastest = fastest_within(
                abs(away),
                math.copysign(speed, speed * away),
                limits[row, MAX_DECELERATION],
                limits[row, MAX_SPEED],
                seconds,
            )
            wanted = math.copysign(fastest, away)
        change = wanted - speed
        slower = speed * change < 0.0
        most = limits[row, MAX_DECELERATION if slower else MAX_ACCELERATION] * seconds
        after = speed + min(max(change, -most), most)
        reached = position + (speed + after) / 2.0 * seconds
        state[row, POSITION] = min(max(reached, limits[row, LOWEST]), limits[row, HIGHEST])
        state[row, SPEED] = after if state[row, POSITION] == reached else 0.0
