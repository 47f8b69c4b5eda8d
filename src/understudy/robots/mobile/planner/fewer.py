"""Fewer corners for a way: the robot stops and turns at each of them.

A corner is left out, or two neighbouring corners become the one where the lines before and after
them meet, as long as the way keeps its clearance.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

Point = tuple[float, float]

MOST_DETOUR = 0.5
"""Metres that a way may become longer for each corner less."""
ROUNDING = 1e-9


class Room(Protocol):
    """What is free around straight lines."""

    def clearance(self, one: Point, other: Point) -> float: ...

    def is_enough(self, one: Point, other: Point) -> bool:
        """Whether a line has the clearance that is needed where it is."""
        ...


def with_fewer_corners(way: Sequence[Point], room: Room, wide: float) -> list[Point]:
    """``wide``: a clearance that is always enough; parts with less keep what they have."""
    points, found = list(way), True
    while found:
        found = _drop_one(points, room, wide) or _join_two(points, room, wide)
    return points


def _drop_one(points: list[Point], room: Room, wide: float) -> bool:
    for n in range(1, len(points) - 1):
        if _keeps(points[n - 1 : n + 2], [points[n - 1], points[n + 1]], room, wide):
            del points[n]
            return True
    return False


def _join_two(points: list[Point], room: Room, wide: float) -> bool:
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


def _keeps(old: list[Point], new: list[Point], room: Room, wide: float) -> bool:
    """Whether new lines have enough clearance, and not less than the old ones."""
    if not all(room.is_enough(one, other) for one, other in pairwise(new)):
        return False
    return _least(new, room) >= min(wide, _least(old, room)) - ROUNDING


def _least(points: list[Point], room: Room) -> float:
    return min(room.clearance(one, other) for one, other in pairwise(points))


def _meeting(before: Point, one: Point, other: Point, after: Point) -> Point | None:
    """Where the line to ``one``, made longer, meets the line from ``other``, made longer."""
    ax, ay = one[0] - before[0], one[1] - before[1]
    bx, by = other[0] - after[0], other[1] - after[1]
    turn = ax * by - ay * bx
    if abs(turn) < ROUNDING:
        return None
    dx, dy = after[0] - before[0], after[1] - before[1]
    along, back = (dx * by - dy * bx) / turn, (dx * ay - dy * ax) / turn
    if along < 1.0 or back < 1.0:
        return None
    return before[0] + along * ax, before[1] + along * ay
