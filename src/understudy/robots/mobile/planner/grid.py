"""A way around obstacles, as few straight lines, by A* on a grid.

The first search keeps so far away from obstacles that the robot never stops for one of them. If
there is no such way, the second keeps only so far away that the robot can turn everywhere; there
cells near obstacles are dearer. A robot that cannot turn on the spot has a search before them, with
room for its curves. Near the start and near the goal the clearance of these counts, if it is less.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.robots.mobile.hardware_interface import Obstacles
from understudy.robots.mobile.planner.clearance import (
    grid_clearance,
    line_clearance,
    point_clearance,
)
from understudy.robots.mobile.planner.fewer import with_fewer_corners
from understudy.robots.mobile.planner.search import cheapest_way, corners_of

Floats = NDArray[np.float64]
Point = tuple[float, float]

MOST_CELLS = 1_000_000
LARGEST_CELL = 0.5
"""Metres to which cells grow in a large world."""
WINDOW = 30.0
"""Metres around start and goal (or their distance, if that is more) in which a way is sought."""
MARGIN, LEAST_MARGIN = 0.1, 0.03
"""Metres to spare: to the distance at which the robot stops, and to its outline."""
ROUNDING = 0.85
"""Cells by which a point on a checked line can be nearer to an obstacle than a cell's centre."""
NEARBY = 2.0
"""Distance from start and goal, in needed clearances, within which their clearance is enough."""
SMALL = 1e-9
DEARER = 4.0
"""Cost of a cell beside an obstacle, added to that of a free one."""


class Body(NamedTuple):
    """What a robot needs, in metres. ``front``: from its pose to its farthest side; ``stop``: the
    distance at which it stops for an obstacle; ``swing``: how far it leaves a line at a corner;
    ``sideways``: it does not turn into the direction of its motion."""

    front: float
    half_width: float
    stop: float
    swing: float = 0.0
    sideways: bool = False

    @property
    def clearances(self) -> list[float]:
        """What is tried, one after the other."""
        return sorted({self.wide + self.swing, self.wide, self.turning}, reverse=True)

    @property
    def turning(self) -> float:
        """The clearance with which it can turn on the spot."""
        return self._corner + LEAST_MARGIN

    @property
    def wide(self) -> float:
        """The clearance with which it never stops for an obstacle."""
        ahead = self._corner if self.sideways else self.front
        return max(ahead + self.stop + MARGIN, self.turning)

    @property
    def _corner(self) -> float:
        return math.hypot(self.front, self.half_width)


class Grid(NamedTuple):
    """Square cells with the clearance of their centres. x and y: the centre of cell 0, 0."""

    x: float
    y: float
    size: float
    clearance: Floats

    def cell(self, point: Point) -> int:
        row = math.floor((point[1] - self.y) / self.size + 0.5)
        column = math.floor((point[0] - self.x) / self.size + 0.5)
        return int(row * self.clearance.shape[1] + column)

    def centre(self, cell: int) -> Point:
        row, column = divmod(int(cell), self.clearance.shape[1])
        return self.x + column * self.size, self.y + row * self.size


class End(NamedTuple):
    """Start or goal, and its clearance, which is enough near it."""

    point: Point
    clearance: float


class FreeRoom:
    """Lines between obstacles. ``slack``: metres by which cells are rounded."""

    def __init__(
        self, obstacles: Obstacles, ends: Sequence[End], needed: float, slack: float
    ) -> None:
        self._obstacles = obstacles
        self._ends = ends
        self._needed = needed
        self._slack = slack

    def clearance(self, one: Point, other: Point) -> float:
        return line_clearance(np.array([*one, *other]), *self._obstacles)

    def is_enough(self, one: Point, other: Point) -> bool:
        """Looks at the parts of the line near the ends and at the rest, each by itself."""
        cuts = {0.0, 1.0}
        for end in self._ends:
            cuts |= _cuts(one, other, end.point, self._near)
        points = [_between(one, other, share) for share in sorted(cuts)]
        return all(
            self.clearance(a, b) >= self._needed_at(_between(a, b, 0.5)) - SMALL
            for a, b in pairwise(points)
        )

    @property
    def _near(self) -> float:
        return NEARBY * self._needed + self._slack

    def _needed_at(self, point: Point) -> float:
        near = [
            e.clearance - self._slack for e in self._ends if math.dist(e.point, point) < self._near
        ]
        return min([self._needed, *near])


def way_on_grid(
    start: Point, goal: Point, obstacles: Obstacles, body: Body, resolution: float
) -> list[Point] | Refused:
    """The corners of a way, without the start; `Refused` says why there is none."""
    ends = [End(point, point_clearance(*point, *obstacles)) for point in (start, goal)]
    for name, end in zip(("the robot", "the destination"), ends, strict=True):
        if end.clearance < body.half_width:
            said = f"{name} is {end.clearance:.2f} m from an obstacle"
            return Refused(f"{said}; allowed: ≥ {body.half_width:.2f}")
    if FreeRoom(obstacles, ends, body.clearances[0], 0.0).is_enough(start, goal):
        return [goal]
    grid = _grid(start, goal, obstacles, body, resolution)
    if grid is None:
        distance = math.dist(start, goal)
        return Refused(
            f"the destination is too far away for a grid ({distance:.0f} m); use a graph"
        )
    dear = 1.0 + DEARER * np.clip(1.0 - grid.clearance / (body.wide + grid.size), 0.0, 1.0)
    for needed in body.clearances:
        free = _free(grid, needed, ends)
        cells, _ = cheapest_way(free, dear, grid.cell(start), grid.cell(goal))
        if cells.size:
            corners = cells[corners_of(cells, free, dear)]
            way = [start, *(grid.centre(cell) for cell in [*corners[1:-1], cells[-1]]), goal]
            room = FreeRoom(obstacles, ends, needed, ROUNDING * grid.size)
            return with_fewer_corners(way, room, body.wide)[1:]
    return Refused(f"no way with a clearance of {body.turning + ROUNDING * grid.size:.2f} m")


def _grid(
    start: Point, goal: Point, obstacles: Obstacles, body: Body, resolution: float
) -> Grid | None:
    """A grid around start, goal and the obstacles near them; the start is a centre of a cell. None
    if its cells were too large."""
    edge = body.clearances[0] + 3.0 * resolution
    lows, highs = zip(*_extents(start, goal, obstacles), strict=True)
    sides = [high - low + 2.0 * edge for low, high in zip(lows, highs, strict=True)]
    size = max(resolution, math.sqrt(sides[0] * sides[1] / MOST_CELLS))
    if size > max(LARGEST_CELL, resolution):
        return None
    before = [math.ceil((at - low + edge) / size) for at, low in zip(start, lows, strict=True)]
    columns, rows = (math.ceil(side / size) + 2 for side in sides)
    x, y = start[0] - before[0] * size, start[1] - before[1] * size
    table = np.empty((rows, columns))
    most = body.clearances[0] + 2.0 * size
    grid_clearance(x, y, size, obstacles.circles, obstacles.lines, most, table)
    return Grid(x, y, size, table)


def _extents(start: Point, goal: Point, obstacles: Obstacles) -> list[tuple[float, float]]:
    """The lowest and the highest x, and the same of y."""
    window = max(WINDOW, math.dist(start, goal))
    circles, lines = obstacles
    extents = []
    for axis in range(2):
        low, high = sorted((start[axis], goal[axis]))
        least = [*(circles[:, axis] - circles[:, 2]), *lines[:, axis], *lines[:, axis + 2]]
        most = [*(circles[:, axis] + circles[:, 2]), *lines[:, axis], *lines[:, axis + 2]]
        extents.append(
            (
                min(low, max(min(least, default=low), low - window)),
                max(high, min(max(most, default=high), high + window)),
            )
        )
    return extents


def _free(grid: Grid, needed: float, ends: Sequence[End]) -> NDArray[np.bool_]:
    """The cells with the needed clearance."""
    table = grid.clearance
    free = table >= needed + ROUNDING * grid.size
    y = (grid.y + np.arange(table.shape[0]) * grid.size)[:, None]
    x = (grid.x + np.arange(table.shape[1]) * grid.size)[None, :]
    for (at_x, at_y), clearance in ends:
        near = (x - at_x) ** 2 + (y - at_y) ** 2 <= (NEARBY * needed) ** 2
        free |= near & (table >= clearance - ROUNDING * grid.size)
    return free


def _between(one: Point, other: Point, share: float) -> Point:
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def _cuts(one: Point, other: Point, centre: Point, radius: float) -> set[float]:
    """Where a line enters and leaves a circle, as shares of its length."""
    dx, dy = other[0] - one[0], other[1] - one[1]
    x, y = one[0] - centre[0], one[1] - centre[1]
    square, ahead = dx * dx + dy * dy, x * dx + y * dy
    inside = ahead * ahead - square * (x * x + y * y - radius * radius)
    if square == 0.0 or inside <= 0.0:
        return set()
    root = math.sqrt(inside)
    return {
        share for share in ((-ahead - root) / square, (-ahead + root) / square) if 0 < share < 1
    }
