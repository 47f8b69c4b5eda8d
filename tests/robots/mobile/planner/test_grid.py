"""Ways around obstacles: the kernels against plain oracles, and what a way must keep."""

import heapq
import math
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.robots.mobile.hardware_interface import Obstacles
from understudy.robots.mobile.planner.grid import (
    MOST_CELLS,
    FreeRoom,
    Point,
    RobotSize,
    _grid,
    cheapest_way,
    corners_of,
    grid_clearance,
    line_clearance,
    point_clearance,
    way_on_grid,
    with_fewer_corners,
)

Floats = NDArray[np.float64]
BODY = RobotSize(0.45, 0.325, 0.6)


def box(x: float, y: float, length: float, width: float) -> list[tuple[float, ...]]:
    left, right, low, high = x - length / 2, x + length / 2, y - width / 2, y + width / 2
    corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
    return [(*one, *other) for one, other in pairwise(corners)]


def world(
    circles: Sequence[Sequence[float]] = (), lines: Sequence[Sequence[float]] = ()
) -> Obstacles:
    return Obstacles(
        np.array(circles, dtype=float).reshape(-1, 3),
        np.array(lines, dtype=float).reshape(-1, 4),
    )


def random_world(seed: int) -> Obstacles:
    rng = np.random.default_rng(seed)
    circles = [(*rng.uniform(-6, 6, 2), rng.uniform(0.05, 1.0)) for _ in range(6)]
    lines = [tuple(rng.uniform(-6, 6, 4)) for _ in range(4)]
    return world(circles, lines)


def some_point(rng: np.random.Generator, most: float) -> Point:
    x, y = rng.uniform(-most, most, 2).tolist()
    return x, y


def plain_clearance(point: Point, obstacles: Obstacles) -> float:
    """The oracle of point_clearance: lines are many points."""
    found = [math.dist(point, (x, y)) - r for x, y, r in obstacles.circles]
    for x1, y1, x2, y2 in obstacles.lines:
        share = np.linspace(0, 1, 2001)
        found.append(
            float(
                np.hypot(x1 + share * (x2 - x1) - point[0], y1 + share * (y2 - y1) - point[1]).min()
            )
        )
    return min(found, default=math.inf)


def least_on(way: list[Point], obstacles: Obstacles) -> float:
    """The least clearance of points on a way."""
    return min(
        point_clearance(
            one[0] + t * (other[0] - one[0]), one[1] + t * (other[1] - one[1]), *obstacles
        )
        for one, other in pairwise(way)
        for t in np.linspace(0.0, 1.0, 101)
    )


# ── clearance ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_clearances_are_those_of_the_oracle(seed: int) -> None:
    obstacles = random_world(seed)
    rng = np.random.default_rng(100 + seed)
    for _ in range(30):
        one, other = some_point(rng, 7), some_point(rng, 7)
        assert point_clearance(*one, *obstacles) == pytest.approx(
            plain_clearance(one, obstacles), abs=5e-3
        )
        line = np.array([*one, *other])
        sampled = min(
            plain_clearance(tuple(np.array(one) + t * (np.array(other) - one)), obstacles)
            for t in np.linspace(0, 1, 60)
        )
        exact = line_clearance(line, *obstacles)
        spacing = math.dist(one, other) / 59
        assert sampled - spacing / 2 - 5e-3 <= exact <= sampled + 5e-3


@pytest.mark.parametrize("seed", range(5))
def test_the_clearance_of_a_grid_is_that_of_its_cells(seed: int) -> None:
    """The oracle of grid_clearance is point_clearance at every centre."""
    obstacles = random_world(seed)
    table = np.empty((37, 53))
    grid_clearance(-5.3, -4.1, 0.2, *obstacles, 1.5, table)
    for row, column in product(range(37), range(53)):
        exact = point_clearance(-5.3 + column * 0.2, -4.1 + row * 0.2, *obstacles)
        assert table[row, column] == min(exact, 1.5)


def test_the_grid_is_bounded_however_large_the_world_is() -> None:
    far = world([(1e6, 1e6, 5.0), (-1e6, 3.0, 1e4)], [(-1e6, -1e6, 1e6, -1e6)])
    grid = _grid((0.0, 0.0), (200.0, 0.0), far, BODY, 0.05)
    assert grid is not None
    assert grid.clearance.size <= 1.1 * MOST_CELLS
    assert grid.centre(grid.cell((0.0, 0.0))) == pytest.approx((0.0, 0.0))


def test_a_destination_that_is_too_far_away_is_named() -> None:
    post = world([(10.0, 10.0, 0.5)])
    assert way_on_grid((0.0, 0.0), (1e6, 1e6), post, BODY, 0.1) == Refused(
        "the destination is too far away for a grid (1414214 m); use a graph"
    )
    assert way_on_grid((0.0, 0.0), (1e6, -1e6), post, BODY, 0.1) == [(1e6, -1e6)]


# ── search ──────────────────────────────────────────────────────────────────────────────────────


def plain_cost(free: NDArray[np.bool_], factor: Floats, start: int, goal: int) -> float:
    """The oracle of cheapest_way: Dijkstra's search with a heap of Python."""
    rows, columns = free.shape
    cost, heap = {start: 0.0}, [(0.0, start)]
    while heap:
        so_far, cell = heapq.heappop(heap)
        if cell == goal:
            return so_far
        if so_far > cost[cell]:
            continue
        row, column = divmod(cell, columns)
        for down, right in product((-1, 0, 1), repeat=2):
            i, j = row + down, column + right
            if (down, right) == (0, 0) or not (0 <= i < rows and 0 <= j < columns and free[i, j]):
                continue
            more = math.hypot(down, right) * (factor[row, column] + factor[i, j]) / 2
            other = i * columns + j
            if so_far + more < cost.get(other, math.inf):
                cost[other] = so_far + more
                heapq.heappush(heap, (so_far + more, other))
    return math.inf


@pytest.mark.parametrize("seed", range(40))
def test_ways_cost_as_much_as_those_of_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 40, 2)
    free = rng.random((rows, columns)) > rng.uniform(0.0, 0.5)
    factor = 1.0 + rng.random((rows, columns)) * rng.choice([0.0, 4.0])
    start, goal = (int(each) for each in rng.integers(0, rows * columns, 2))
    free.ravel()[[start, goal]] = True
    cells, cost = cheapest_way(free, factor, start, goal)
    assert cost == pytest.approx(plain_cost(free, factor, start, goal))
    if math.isinf(cost):
        assert cells.size == 0
        return
    assert (cells[0], cells[-1]) == (start, goal)
    for one, other in pairwise(cells.tolist()):
        (i, j), (k, m) = divmod(one, columns), divmod(other, columns)
        assert max(abs(i - k), abs(j - m)) == 1
        assert free[k, m]
    corners = corners_of(cells, free, factor)
    assert (corners[0], corners[-1]) == (0, cells.size - 1)
    assert (np.diff(corners) > 0).all()


def test_a_free_grid_needs_one_line() -> None:
    free, factor = np.ones((30, 70), dtype=np.bool_), np.ones((30, 70))
    cells, _ = cheapest_way(free, factor, 0, 70 * 29 + 65)
    assert corners_of(cells, free, factor).tolist() == [0, cells.size - 1]


def test_a_million_cells_are_searched() -> None:
    free, factor = np.ones((1000, 1000), dtype=np.bool_), np.ones((1000, 1000))
    free[500, 1:] = False
    cells, cost = cheapest_way(free, factor, 999, 999_999)
    assert cost == pytest.approx(2 * (499 + 500 * math.sqrt(2)), rel=0.01)
    assert 500_000 in cells.tolist()


# ── fewer corners ───────────────────────────────────────────────────────────────────────────────


def test_a_rounded_corner_becomes_one() -> None:
    arc = [(5 + math.sin(a), 1 - math.cos(a)) for a in np.linspace(0, math.pi / 2, 9)]
    way = [(0.0, 0.0), *arc, (6.0, 5.0)]
    wall = world([(5.0, 1.0, 0.2)], [(5.0, 1.0, 0.0, 6.0)])
    fewer = with_fewer_corners(way, FreeRoom(wall, [], 0.75, 0.0), 0.75)
    assert len(fewer) == 3
    assert (fewer[0], fewer[-1]) == (way[0], way[-1])
    assert least_on(fewer, wall) >= 0.75 - 1e-6
    without_wall = FreeRoom(world(wall.circles.tolist()), [], 0.75, 0.0)
    assert with_fewer_corners(way, without_wall, 0.75) == [way[0], way[-1]]


# ── ways ────────────────────────────────────────────────────────────────────────────────────────


def aisles(width: float) -> Obstacles:
    """Four shelves in a hall; the aisles between them have a width."""
    shelves = [line for n in range(4) for line in box(5 + n * (1 + width), 10, 1, 12)]
    return world([], shelves + box(10, 8, 40, 30))


def test_without_obstacles_the_way_is_a_line() -> None:
    assert way_on_grid((0.0, 0.0), (5.0, 3.0), world(), BODY, 0.1) == [(5.0, 3.0)]


@pytest.mark.parametrize("width", [2.6, 3.0])
def test_where_there_is_room_the_robot_never_stops_for_an_obstacle(width: float) -> None:
    hall = aisles(width)
    goal = (5 + 1.5 * (1 + width), 10.0)
    way = way_on_grid((0.0, 0.0), goal, hall, BODY, 0.1)
    assert isinstance(way, list)
    assert way[-1] == goal
    assert least_on([(0.0, 0.0), *way], hall) >= BODY.wide - 1e-6
    assert len(way) <= 3


@pytest.mark.parametrize("width", [1.4, 1.8])
def test_a_narrow_aisle_is_passed_where_the_robot_can_turn(width: float) -> None:
    hall = aisles(width)
    goal = (5 + 1.5 * (1 + width), 10.0)
    way = way_on_grid((0.0, 0.0), goal, hall, BODY, 0.1)
    assert isinstance(way, list)
    assert BODY.turning - 1e-6 <= least_on([(0.0, 0.0), *way], hall) < BODY.wide
    assert least_on([(0.0, 0.0), *way[:1]], hall) >= BODY.turning
    assert len(way) <= 4


def test_an_aisle_that_is_too_narrow_is_named() -> None:
    found = way_on_grid((0.0, 0.0), (5 + 1.5 * 1.9, 10.0), aisles(0.9), BODY, 0.1)
    assert found == Refused("no way with a clearance of 0.67 m")


@pytest.mark.parametrize(
    ("start", "goal", "said"),
    [
        ((1.0, 0.2), (8.0, 0.0), "the robot is -0.30 m from an obstacle; allowed: ≥ 0.33"),
        ((8.0, 0.0), (1.7, 0.0), "the destination is 0.20 m from an obstacle; allowed: ≥ 0.33"),
    ],
)
def test_a_place_in_an_obstacle_is_named(start: Point, goal: Point, said: str) -> None:
    post = world([(1.0, 0.0, 0.5)])
    assert way_on_grid(start, goal, post, BODY, 0.1) == Refused(said)


def test_a_destination_beside_a_shelf_does_not_bring_the_way_near_other_shelves() -> None:
    shelf, post = box(5, 1.0, 4, 1.0), [(2.0, -1.3, 0.1)]
    hall = world(post, shelf)
    goal = (5.0, 0.0)
    way = [(-3.0, -1.0), *_found(way_on_grid((-3.0, -1.0), goal, hall, BODY, 0.1))]
    assert least_on(way, world(post)) >= BODY.wide - 1e-6
    assert least_on(way, hall) >= 0.5 - 0.1


def _found(way: list[Point] | Refused) -> list[Point]:
    assert isinstance(way, list), way
    return way


@pytest.mark.parametrize("seed", range(40))
def test_ways_in_random_worlds_keep_their_clearance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    obstacles = random_world(1000 + seed)
    start, goal = some_point(rng, 8), some_point(rng, 8)
    way = way_on_grid(start, goal, obstacles, BODY, 0.1)
    ends = [point_clearance(*end, *obstacles) for end in (start, goal)]
    if isinstance(way, Refused):
        assert min(ends) < BODY.half_width or "no way" in way.reason
        return
    assert way[-1] == goal
    enough = min(BODY.turning, *ends) - 2 * 0.1
    assert least_on([start, *way], obstacles) >= enough
