"""Lidar: the distances that rays travel from many robots until they meet an obstacle.

An obstacle is a circle (x, y, radius) or a line (x1, y1, x2, y2); a box is four lines. The
obstacles of all worlds stand in two tables; a robot sees a span of rows of each. A ray that begins
inside a circle has the distance 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.wheels import wrapped
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
def look(
    eyes: Floats,
    views: Floats,
    longest: Floats,
    circles: Floats,
    circle_spans: Spans,
    lines: Floats,
    line_spans: Spans,
    nearest: Floats,
) -> None:
    """Fills ``nearest``: the exact distance of the nearest obstacle in the field of view of each
    lidar; infinite beyond ``longest``. ``views``: half the angle of the field of view."""
    for row in range(eyes.shape[0]):
        x, y, yaw = eyes[row, 0], eyes[row, 1], eyes[row, 2]
        least = math.inf
        for n in range(circle_spans[row, 0], circle_spans[row, 1]):
            dx, dy, radius = circles[n, 0] - x, circles[n, 1] - y, circles[n, 2]
            if math.hypot(dx, dy) - radius < least:
                least = min(least, seen_circle(dx, dy, radius, yaw, views[row]))
        for n in range(line_spans[row, 0], line_spans[row, 1]):
            x1, y1, x2, y2 = lines[n, 0] - x, lines[n, 1] - y, lines[n, 2] - x, lines[n, 3] - y
            least = min(least, seen_line(x1, y1, x2, y2, yaw, views[row], least))
        nearest[row] = least if least <= longest[row] else math.inf


@compiled
def is_seen(x: float, y: float, yaw: float, view: float) -> bool:
    """Whether a point is in the field of view of a lidar in the origin."""
    return abs(wrapped(math.atan2(y, x) - yaw)) <= view


@compiled
def seen_circle(x: float, y: float, radius: float, yaw: float, view: float) -> float:
    """Distance of the nearest point of a circle in the field of view: the one towards its centre,
    else where an edge of the field meets it."""
    if view >= math.pi or is_seen(x, y, yaw, view):
        return max(math.hypot(x, y) - radius, 0.0)
    least = math.inf
    for edge in (yaw - view, yaw + view):
        least = min(least, to_circle(x, y, radius, math.cos(edge), math.sin(edge)))
    return least


@compiled
def seen_line(
    x1: float, y1: float, x2: float, y2: float, yaw: float, view: float, least: float
) -> float:
    """Distance of the nearest point of a line in the field of view, if below ``least``: the foot of
    the perpendicular, else an end, or where an edge of the field meets it."""
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    share = -(x1 * dx + y1 * dy) / square if square > 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    x, y = x1 + share * dx, y1 + share * dy
    distance = math.hypot(x, y)
    if distance >= least or view >= math.pi or is_seen(x, y, yaw, view):
        return min(distance, least)
    if is_seen(x1, y1, yaw, view):
        least = min(least, math.hypot(x1, y1))
    if is_seen(x2, y2, yaw, view):
        least = min(least, math.hypot(x2, y2))
    for edge in (yaw - view, yaw + view):
        least = min(least, to_line(x1, y1, x2, y2, math.cos(edge), math.sin(edge)))
    return least


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
