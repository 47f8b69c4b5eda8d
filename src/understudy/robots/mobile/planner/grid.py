"""A way around obstacles, as few straight lines, by A* on a grid of clearances.

The clearance of a point is its distance from the nearest obstacle. Obstacles are circles (x, y,
radius) and lines (x1, y1, x2, y2), as in `hardware_interface.Obstacles`. A grid is a table of
square cells; the clearance of a cell is that of its centre.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.robots.mobile.hardware_interface import Obstacles
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


# ── the cheapest way ──────────────────────────────────────────────────────────────────────────────

# The cheapest way over the cells of a grid (A*), and the few straight lines that replace it.
#
# A cell has a number: row · columns + column. A step goes to one of the eight neighbours; its cost
# is its length times the mean factor of both cells, so that cells near obstacles can be made
# dearer.

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

NOT_SEEN, DONE = -1, -2
"""Places in the heap of cells that are not in it."""
DIAGONAL = math.sqrt(2.0)


@compiled
def cheapest_way(free: Flags, factor: Floats, start: int, goal: int) -> tuple[Numbers, float]:
    """The cells from start to goal, and the cost in cells; empty and infinite if there is none.

    ``factor``: at least 1. Of equal ways that with the lower cell numbers counts.
    """
    rows, columns = free.shape
    cost = np.full(rows * columns, math.inf)
    guess = np.empty(rows * columns)
    before = np.full(rows * columns, -1, dtype=np.int64)
    place = np.full(rows * columns, NOT_SEEN, dtype=np.int64)
    heap = np.empty(rows * columns, dtype=np.int64)
    cost[start], guess[start] = 0.0, _at_least(start, goal, columns)
    heap[0], place[start], count = start, 0, 1
    while count > 0:
        cell = _popped(heap, place, guess, count)
        count -= 1
        if cell == goal:
            return _traced(before, goal), cost[goal]
        row, column = cell // columns, cell % columns
        for down in range(-1, 2):
            for right in range(-1, 2):
                i, j = row + down, column + right
                if i < 0 or i >= rows or j < 0 or j >= columns or not free[i, j]:
                    continue
                other = i * columns + j
                length = DIAGONAL if down != 0 and right != 0 else 1.0
                found = cost[cell] + length * (factor[row, column] + factor[i, j]) / 2.0
                if place[other] == DONE or found >= cost[other]:
                    continue
                cost[other], before[other] = found, cell
                guess[other] = found + _at_least(other, goal, columns)
                if place[other] == NOT_SEEN:
                    heap[count], place[other] = other, count
                    count += 1
                _raise(heap, place, guess, place[other])
    return np.empty(0, dtype=np.int64), math.inf


@compiled
def _at_least(cell: int, goal: int, columns: int) -> float:
    """The cost of the way to the goal over free cells."""
    down = abs(cell // columns - goal // columns)
    right = abs(cell % columns - goal % columns)
    return max(down, right) + (DIAGONAL - 1.0) * min(down, right)


@compiled
def _traced(before: Numbers, goal: int) -> Numbers:
    count, cell = 0, goal
    while cell >= 0:
        count, cell = count + 1, before[cell]
    way = np.empty(count, dtype=np.int64)
    cell = goal
    while cell >= 0:
        count -= 1
        way[count], cell = cell, before[cell]
    return way


@compiled
def _is_less(one: int, other: int, guess: Floats) -> bool:
    return guess[one] < guess[other] or (guess[one] == guess[other] and one < other)


@compiled
def _raise(heap: Numbers, place: Numbers, guess: Floats, at: int) -> None:
    cell = heap[at]
    while at > 0:
        above = (at - 1) // 2
        if not _is_less(cell, heap[above], guess):
            break
        heap[at], place[heap[above]] = heap[above], at
        at = above
    heap[at], place[cell] = cell, at


@compiled
def _popped(heap: Numbers, place: Numbers, guess: Floats, count: int) -> int:
    """Removes the least cell of a heap with ``count`` cells."""
    least: int = heap[0]
    cell, at = heap[count - 1], 0
    place[least] = DONE
    if count == 1:
        return least
    while True:
        below = 2 * at + 1
        if below >= count - 1:
            break
        if below + 1 < count - 1 and _is_less(heap[below + 1], heap[below], guess):
            below += 1
        if not _is_less(heap[below], cell, guess):
            break
        heap[at], place[heap[below]] = heap[below], at
        at = below
    heap[at], place[cell] = cell, at
    return least


@compiled
def corners_of(way: Numbers, free: Flags, factor: Floats) -> Numbers:
    """Places in the way where straight lines meet, with its first and its last cell.

    A line replaces a part of the way if it leaves no free cells and passes none that is dearer than
    the dearest of that part.
    """
    columns = free.shape[1]
    corners = np.empty(way.size, dtype=np.int64)
    corners[0], count, begin, end = 0, 1, 0, 0
    dearest = factor[way[0] // columns, way[0] % columns]
    while end + 1 < way.size:
        after = way[end + 1]
        dearer = max(dearest, factor[after // columns, after % columns])
        if end == begin or _is_clear(way[begin], after, free, factor, dearer):
            dearest, end = dearer, end + 1
        else:
            corners[count], count, begin = end, count + 1, end
            dearest = factor[way[end] // columns, way[end] % columns]
    if end > begin:
        corners[count], count = end, count + 1
    return corners[:count]


@compiled
def _is_clear(one: int, other: int, free: Flags, factor: Floats, dearest: float) -> bool:
    """Whether the line between two cells passes free cells alone, none of them dearer."""
    columns = free.shape[1]
    row, column = one // columns, one % columns
    down, right = other // columns - row, other % columns - column
    steps = 4 * max(abs(down), abs(right))
    for n in range(steps + 1):
        i = math.floor(row + down * (n / steps) + 0.5)
        j = math.floor(column + right * (n / steps) + 0.5)
        if not free[i, j] or factor[i, j] > dearest + 1e-12:
            return False
    return True


# ── fewer corners ─────────────────────────────────────────────────────────────────────────────────

# Fewer corners for a way: the robot stops and turns at each of them.
#
# A corner is left out, or two neighbouring corners become the one where the lines before and after
# them meet, as long as the way keeps its clearance.

Point = tuple[float, float]

MOST_DETOUR = 0.5
"""Metres that a way may become longer for each corner less."""


def with_fewer_corners(way: Sequence[Point], room: "FreeRoom", wide: float) -> list[Point]:
    """``wide``: a clearance that is always enough; parts with less keep what they have."""
    points, found = list(way), True
    while found:
        found = _drop_one(points, room, wide) or _join_two(points, room, wide)
    return points


def _drop_one(points: list[Point], room: "FreeRoom", wide: float) -> bool:
    for n in range(1, len(points) - 1):
        if _keeps(points[n - 1 : n + 2], [points[n - 1], points[n + 1]], room, wide):
            del points[n]
            return True
    return False


def _join_two(points: list[Point], room: "FreeRoom", wide: float) -> bool:
    """Tries the nearest pairs of corners first."""
    pairs = range(1, len(points) - 2)
    for n in sorted(pairs, key=lambda n: math.dist(points[n], points[n + 1])):
        before, one, other, after = part = points[n - 1 : n + 3]
        corner = _meeting(before, one, other, after)
        if corner is None:
            continue
        detour = math.dist(one, corner) + math.dist(corner, other) - math.dist(one, other)
        if detour <= MOST_DETOUR and _keeps(part, [before, corner, after], room, wide):
            points[n : n + 2] = [corner]
            return True
    return False


def _keeps(old: list[Point], new: list[Point], room: "FreeRoom", wide: float) -> bool:
    """Whether new lines have enough clearance, and not less than the old ones."""
    if not all(room.is_enough(one, other) for one, other in pairwise(new)):
        return False
    return _least(new, room) >= min(wide, _least(old, room)) - SMALL


def _least(points: list[Point], room: "FreeRoom") -> float:
    return min(room.clearance(one, other) for one, other in pairwise(points))


def _meeting(before: Point, one: Point, other: Point, after: Point) -> Point | None:
    """Where the line to ``one``, made longer, meets the line from ``other``, made longer."""
    ax, ay = one[0] - before[0], one[1] - before[1]
    bx, by = other[0] - after[0], other[1] - after[1]
    turn = ax * by - ay * bx
    if abs(turn) < SMALL:
        return None
    dx, dy = after[0] - before[0], after[1] - before[1]
    along, back = (dx * by - dy * bx) / turn, (dx * ay - dy * ax) / turn
    if along < 1.0 or back < 1.0:
        return None
    return before[0] + along * ax, before[1] + along * ay


# ── a way on the grid ─────────────────────────────────────────────────────────────────────────────

# A way around obstacles, as few straight lines, by A* on a grid.
#
# The first search keeps so far away from obstacles that the robot never stops for one of them. If
# there is no such way, the second keeps only so far away that the robot can turn everywhere; there
# cells near obstacles are dearer. A robot that cannot turn on the spot has a search before them,
# with room for its curves. Near the start and near the goal the clearance of these counts, if it is
# less.


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


class RobotSize(NamedTuple):
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
    start: Point, goal: Point, obstacles: Obstacles, body: RobotSize, resolution: float
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
    start: Point, goal: Point, obstacles: Obstacles, body: RobotSize, resolution: float
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
