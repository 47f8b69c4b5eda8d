"""Convex shapes in a plane: overlap, common area, hull. Metres."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

Point = tuple[float, float]
DISC_CORNERS = 64
"""Corners of the polygon in place of a disc, where an area of contact is computed."""


class Disc(NamedTuple):
    x: float
    y: float
    radius: float

    def reach(self, dx: float, dy: float) -> float:
        """How far it extends along a unit direction."""
        return self.x * dx + self.y * dy + self.radius

    def outline(self) -> tuple[Point, ...]:
        steps = (2.0 * math.pi * n / DISC_CORNERS for n in range(DISC_CORNERS))
        return tuple(
            (self.x + self.radius * math.cos(a), self.y + self.radius * math.sin(a)) for a in steps
        )


class Polygon(NamedTuple):
    """Convex, corners counter-clockwise."""

    corners: tuple[Point, ...]

    def reach(self, dx: float, dy: float) -> float:
        return max(x * dx + y * dy for x, y in self.corners)

    def outline(self) -> tuple[Point, ...]:
        return self.corners

    def edges(self) -> Iterable[tuple[Point, Point]]:
        return pairwise((*self.corners, self.corners[0]))


Footprint = Disc | Polygon


def overlap(a: Footprint, b: Footprint) -> float:
    """The shortest shift that parts two shapes; at most zero if they are apart."""
    if isinstance(a, Disc) and isinstance(b, Disc):
        return a.radius + b.radius - math.hypot(a.x - b.x, a.y - b.y)
    normals = [*_normals(a), *_normals(b)]
    if isinstance(a, Disc) and isinstance(b, Polygon):
        normals += _to_corner(a, b)
    elif isinstance(b, Disc) and isinstance(a, Polygon):
        normals += _to_corner(b, a)
    return min(
        min(a.reach(x, y) + b.reach(-x, -y), a.reach(-x, -y) + b.reach(x, y)) for x, y in normals
    )


def _normals(shape: Footprint) -> list[Point]:
    if isinstance(shape, Disc):
        return []
    found = []
    for (x0, y0), (x1, y1) in shape.edges():
        length = math.hypot(x1 - x0, y1 - y0)
        if length > 0.0:
            found.append(((y1 - y0) / length, (x0 - x1) / length))
    return found


def _to_corner(disc: Disc, shape: Polygon) -> list[Point]:
    """The direction from a disc to the nearest corner, on which the two may be apart."""
    x, y = min(((x - disc.x, y - disc.y) for x, y in shape.corners), key=lambda p: math.hypot(*p))
    away = math.hypot(x, y)
    return [(x / away, y / away)] if away > 0.0 else []


def common_area(a: Footprint, b: Footprint) -> list[Point]:
    """The corners of the area that two shapes share."""
    found = list(a.outline())
    for edge in pairwise((*b.outline(), b.outline()[0])):
        found = _cut(found, *edge)
    return found


def _cut(corners: Sequence[Point], start: Point, end: Point) -> list[Point]:
    """The part of a polygon on the left of a line."""

    def side(p: Point) -> float:
        return _turn(start, end, p)

    found: list[Point] = []
    for n, here in enumerate(corners):
        before = corners[n - 1]
        a, b = side(before), side(here)
        if a * b < 0.0:
            share = a / (a - b)
            found.append(
                (
                    before[0] + share * (here[0] - before[0]),
                    before[1] + share * (here[1] - before[1]),
                )
            )
        if b >= 0.0:
            found.append(here)
    return found


def middle(points: Sequence[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def carries(points: Sequence[Point], at: Point, tolerance: float = 1e-6) -> bool:
    """Whether a point is within the convex hull of others."""
    corners = hull(points)
    if len(corners) < 3:
        return any(math.dist(corner, at) <= tolerance for corner in corners)
    return all(
        (x1 - x0) * (at[1] - y0) - (y1 - y0) * (at[0] - x0)
        >= -tolerance * math.hypot(x1 - x0, y1 - y0)
        for (x0, y0), (x1, y1) in pairwise((*corners, corners[0]))
    )


def hull(points: Iterable[Point]) -> list[Point]:
    """The corners of the convex hull, counter-clockwise (Andrew's monotone chain)."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered

    def chain(way: Iterable[Point]) -> list[Point]:
        found: list[Point] = []
        for p in way:
            while len(found) > 1 and _turn(found[-2], found[-1], p) <= 0.0:
                found.pop()
            found.append(p)
        return found[:-1]

    return chain(ordered) + chain(reversed(ordered))


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
