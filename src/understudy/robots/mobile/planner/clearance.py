"""Clearance: the distance of points from the nearest obstacle, for one point or for a grid.

Obstacles are circles (x, y, radius) and lines (x1, y1, x2, y2), as in `ports.mobile.Obstacles`. A
grid is a table of square cells; the clearance of a cell is that of its centre.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def from_line(x: float, y: float, line: Floats) -> float:
    """The distance of a point from a line between two points."""
    dx, dy = line[2] - line[0], line[3] - line[1]
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(max(((x - line[0]) * dx + (y - line[1]) * dy) / square, 0.0), 1.0)
    return math.hypot(x - line[0] - share * dx, y - line[1] - share * dy)


@compiled
def from_circle(x: float, y: float, circle: Floats) -> float:
    """The distance of a point from a circle; negative inside."""
    distance: float = math.hypot(x - circle[0], y - circle[1]) - circle[2]
    return distance


@compiled
def point_clearance(x: float, y: float, circles: Floats, lines: Floats) -> float:
    """Infinite without obstacles, negative in a circle."""
    nearest = math.inf
    for n in range(circles.shape[0]):
        nearest = min(nearest, from_circle(x, y, circles[n]))
    for n in range(lines.shape[0]):
        nearest = min(nearest, from_line(x, y, lines[n]))
    return nearest


@compiled
def line_clearance(line: Floats, circles: Floats, lines: Floats) -> float:
    """The least clearance on the line between two points; 0 if it crosses another line."""
    nearest = math.inf
    for n in range(circles.shape[0]):
        nearest = min(nearest, from_line(circles[n, 0], circles[n, 1], line) - circles[n, 2])
    for n in range(lines.shape[0]):
        if _cross(line, lines[n]):
            nearest = min(nearest, 0.0)
        nearest = min(nearest, from_line(line[0], line[1], lines[n]))
        nearest = min(nearest, from_line(line[2], line[3], lines[n]))
        nearest = min(nearest, from_line(lines[n, 0], lines[n, 1], line))
        nearest = min(nearest, from_line(lines[n, 2], lines[n, 3], line))
    return nearest


@compiled
def _cross(one: Floats, other: Floats) -> bool:
    """Whether each of two lines has its ends on both sides of the other."""
    a = _side(one, other[0], other[1]) * _side(one, other[2], other[3])
    b = _side(other, one[0], one[1]) * _side(other, one[2], one[3])
    return a < 0.0 and b < 0.0


@compiled
def _side(line: Floats, x: float, y: float) -> float:
    side: float = (line[2] - line[0]) * (y - line[1]) - (line[3] - line[1]) * (x - line[0])
    return side


@compiled
def grid_clearance(
    x: float, y: float, size: float, circles: Floats, lines: Floats, most: float, table: Floats
) -> None:
    """Fills ``table`` (rows and columns of a grid); larger distances than ``most`` count as such.

    Each obstacle is compared with the cells within ``most`` of it alone.
    """
    table[:, :] = most
    for n in range(circles.shape[0]):
        reach = circles[n, 2] + most
        top, bottom = _span(circles[n, 1] - reach - y, circles[n, 1] + reach - y, size, table, 0)
        left, right = _span(circles[n, 0] - reach - x, circles[n, 0] + reach - x, size, table, 1)
        for row in range(top, bottom):
            for column in range(left, right):
                found = from_circle(x + column * size, y + row * size, circles[n])
                table[row, column] = min(table[row, column], found)
    for n in range(lines.shape[0]):
        low, high = min(lines[n, 1], lines[n, 3]), max(lines[n, 1], lines[n, 3])
        top, bottom = _span(low - most - y, high + most - y, size, table, 0)
        low, high = min(lines[n, 0], lines[n, 2]), max(lines[n, 0], lines[n, 2])
        left, right = _span(low - most - x, high + most - x, size, table, 1)
        for row in range(top, bottom):
            for column in range(left, right):
                found = from_line(x + column * size, y + row * size, lines[n])
                table[row, column] = min(table[row, column], found)


@compiled
def _span(low: float, high: float, size: float, table: Floats, axis: int) -> tuple[int, int]:
    """The cells of an axis between two distances from its first one: first, and after the last."""
    count = table.shape[axis]
    first = min(max(low / size, 0.0), float(count))
    last = min(max(high / size + 1.0, 0.0), float(count))
    return math.ceil(first), int(last)
