"""Plain geometry as oracles of the kernels: slow, short, numpy only."""

import math
from collections.abc import Callable

import numpy as np

from understudy.space.transform import Array


def between(p: Array, low: float = -1.0, high: float = 1.0) -> Array:
    return np.minimum(np.maximum(p, low), high)


def point_segment(p: Array, a: Array, b: Array) -> float:
    u = b - a
    t = between((p - a) @ u / (u @ u), 0.0, 1.0) if u @ u > 0 else 0.0
    return float(np.linalg.norm(a + t * u - p))


def point_box(p: Array, half: Array) -> float:
    return float(np.linalg.norm(p - np.minimum(np.maximum(p, -half), half)))


def point_cylinder(p: Array, radius: float, half: float) -> float:
    away, above = max(math.hypot(p[0], p[1]) - radius, 0.0), max(abs(p[2]) - half, 0.0)
    return math.hypot(away, above)


def point_triangle(p: Array, corners: Array) -> float:
    a, b, c = corners
    normal = np.cross(b - a, c - a)
    sides = [normal @ np.cross(y - x, p - x) for x, y in ((a, b), (b, c), (c, a))]
    if normal @ normal > 0 and min(sides) >= 0:
        return float(abs((p - a) @ normal) / np.linalg.norm(normal))
    return min(point_segment(p, x, y) for x, y in ((a, b), (b, c), (c, a)))


def along(distance: Callable[[Array], float], p: Array, u: Array) -> float:
    """The least distance of the points p…p+u, by ternary search on a convex function.

    With the points above: oracle of segment_segment, oracle of segment_box,
    oracle of segment_cylinder, oracle of segment_triangle.
    """
    low, high = 0.0, 1.0
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if distance(p + a * u) < distance(p + b * u):
            high = b
        else:
            low = a
    return min(distance(p + low * u), distance(p), distance(p + u))


def nearest_of_grid(corners: Array, steps: int = 60) -> float:
    """The least distance of the origin to a triangle's points: oracle of triangle_weights."""
    shares = [
        (i / steps, j / steps, 1.0 - (i + j) / steps)
        for i in range(steps + 1)
        for j in range(steps + 1 - i)
    ]
    return float(np.linalg.norm(np.array(shares) @ corners, axis=1).min())


def directions(count: int) -> Array:
    """Unit vectors spread evenly over the sphere."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    angle = np.pi * (1.0 + 5.0**0.5) * k
    r = np.sqrt(1.0 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


def shallowest(a: Array, b: Array, count: int = 20_000) -> float:
    """Smallest shift that separates point sets a and b, over many directions.

    Never less than the true depth: oracle of _tetrahedron, oracle of _grow.
    """
    n = directions(count)
    return float(((a @ n.T).max(axis=0) - (b @ n.T).min(axis=0)).min())


def windings(corners: Array, p: Array) -> float:
    """Winding number of triangles about a point, by solid angles: oracle of inside_mesh."""

    def dot(x: Array, y: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", x, y))

    a, b, c = np.moveaxis(corners - p, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    volume = dot(a, np.cross(b, c))
    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return float(2.0 * np.arctan2(volume, below).sum() / (4.0 * np.pi))


def distances_from_axes(frames: Array, ends: Array, around: float) -> list[float]:
    """Per axis (z of a frame) the furthest end and the radius: oracle of distances_from_axes."""
    return [
        max(float(np.linalg.norm(np.cross(end - frame[:3, 3], frame[:3, 2]))) for end in ends)
        + around
        for frame in frames
    ]


def moved_at_most(radii: Array, caps: Array, slides: Array, way: Array) -> float:
    """The sum of bounds of motion in `world`, written out: oracle of moved_at_most."""
    rho: dict[int, float] = {}
    for k in reversed(range(len(way))):
        grown = float(radii[k]) + sum(float(way[m]) * rho[m] for m in range(k + 1, len(way)))
        rho[k] = 1.0 if slides[k] else min(grown, float(caps[k]))
    return sum(float(way[k]) * rho[k] for k in range(len(way)))
