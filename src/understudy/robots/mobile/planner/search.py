"""The cheapest way over the cells of a grid (A*), and the few straight lines that replace it.

A cell has a number: row · columns + column. A step goes to one of the eight neighbours; its cost is
its length times the mean factor of both cells, so that cells near obstacles can be made dearer.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled

Floats = NDArray[np.float64]
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
