"""Lidar: the distances that rays travel from many robots until they meet an obstacle.

An obstacle is a circle (x, y, radius) or a line (x1, y1, x2, y2); a box is four lines. The
obstacles of all worlds stand in two tables; a robot sees a span of rows of each. A ray that begins
inside a circle has the distance 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled

Floats = NDArray[np.float64]
Spans = NDArray[np.int64]
"""First row and the row after the last one, for every robot."""


@compiled
def scan(
    eyes: Floats,
    angles: Floats,
    longest: float,
    circles: Floats,
    circle_spans: Spans,
    lines: Floats,
    line_spans: Spans,
    distances: Floats,
) -> None:
    """Fills ``distances``, one row for each robot and one column for each ray.

    ``eyes``: x, y and yaw of the lidar; ``angles``: of the rays, seen from the lidar.
    """
    for row in range(eyes.shape[0]):
        x, y, yaw = eyes[row, 0], eyes[row, 1], eyes[row, 2]
        for ray in range(angles.size):
            along, across = math.cos(yaw + angles[ray]), math.sin(yaw + angles[ray])
            nearest = longest
            for n in range(circle_spans[row, 0], circle_spans[row, 1]):
                nearest = min(
                    nearest,
                    to_circle(circles[n, 0] - x, circles[n, 1] - y, circles[n, 2], along, across),
                )
            for n in range(line_spans[row, 0], line_spans[row, 1]):
                nearest = min(
                    nearest,
                    to_line(
                        lines[n, 0] - x, lines[n, 1] - y, lines[n, 2] - x, lines[n, 3] - y,
                        along, across,
                    ),
                )  # fmt: skip
            distances[row, ray] = nearest


@compiled
def to_circle(x: float, y: float, radius: float, along: float, across: float) -> float:
    """Distance of a circle around x, y from the origin, in a direction; infinite if missed."""
    behind = x * x + y * y - radius * radius
    if behind <= 0.0:
        return 0.0
    ahead = x * along + y * across
    if ahead <= 0.0:
        return math.inf
    inside = ahead * ahead - behind
    if inside < 0.0:
        return math.inf
    return ahead - math.sqrt(inside)


@compiled
def to_line(x1: float, y1: float, x2: float, y2: float, along: float, across: float) -> float:
    """Distance of the line between two points from the origin, in a direction."""
    dx, dy = x2 - x1, y2 - y1
    turn = along * dy - across * dx
    if turn == 0.0:
        return math.inf
    share = (x1 * across - y1 * along) / turn
    if share < 0.0 or share > 1.0:
        return math.inf
    distance = (x1 * dy - y1 * dx) / turn
    return distance if distance >= 0.0 else math.inf
