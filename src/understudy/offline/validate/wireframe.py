"""What stands around, as lines to be drawn: metres, in the cell."""

import numpy as np

from understudy.motion.path import Floats
from understudy.space.model.shapes import CollisionObject, ObjectType

ROUND = 24
"""Corners of what is drawn for a circle."""
CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
EDGES = [(a, b) for a in range(8) for b in range(a) if (CUBE[a] != CUBE[b]).sum() == 1]


def wireframe(thing: CollisionObject) -> list[list[list[float]]]:
    """Polylines of points; of a mesh the box around it."""
    lines = _lines(thing)
    turn, shift = thing.transform[:3, :3], thing.transform[:3, 3]
    return [(line @ turn.T + shift).tolist() for line in lines]


def _lines(thing: CollisionObject) -> list[Floats]:
    if thing.type is ObjectType.BOX:
        return _box(np.zeros(3), np.array(thing.dimensions))
    if thing.type is ObjectType.SPHERE:
        return [_circle(thing.radius, axis, 0.0) for axis in range(3)]
    if thing.type in (ObjectType.CYLINDER, ObjectType.CAPSULE):
        return _barrel(thing.radius, 0.5 * thing.height)
    points = np.asarray(thing.vertices, dtype=np.float64).reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    return _box(0.5 * (low + high), high - low)


def _box(centre: Floats, size: Floats) -> list[Floats]:
    corners = centre + CUBE * size
    return [corners[[a, b]] for a, b in EDGES]


def _barrel(radius: float, half: float) -> list[Floats]:
    ends = [_circle(radius, 2, z) for z in (-half, half)]
    stride = ROUND // 4
    return [*ends, *(np.stack([ends[0][k], ends[1][k]]) for k in range(0, ROUND, stride))]


def _circle(radius: float, axis: int, along: float) -> Floats:
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND + 1)
    out = np.full((ROUND + 1, 3), along)
    first, second = (k for k in range(3) if k != axis)
    out[:, first], out[:, second] = radius * np.cos(angles), radius * np.sin(angles)
    return out
