"""Unknown objects in a measured cloud of points: what nothing known explains, as boxes.

Known are the objects of the cell file, the floor, the parts that were detected and the arm itself.
The points that are left are gathered into boxes; a box reaches down to the lowest point that was
seen around it, since a camera does not see what is below a surface.
"""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from understudy.ports.pick_place import Block
from understudy.space.collision.near import near
from understudy.space.model.robot import Box
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix

Bools = NDArray[np.bool_]
GAP = 0.03
"""Points that are nearer to each other belong to one object, metres."""
FEWEST_POINTS = 2
"""Of an object; a single point is noise."""
AROUND = 0.05
"""Metres around an object in which the lowest point is its foot."""
MOST_BLOCKS = 24
FLOOR = 0.0
"""Height of the floor of the cell."""


def unexplained(
    points: Array,
    objects: Iterable[CollisionObject],
    parts: Sequence[Block],
    margin: float,
) -> Bools:
    """(n,): which points (n, 3) of the cell are neither of the floor nor of an object or part."""
    left = np.asarray(points[:, 2] > FLOOR + margin)
    solids = [(thing.shape, thing.place) for thing in objects]
    solids += [(Box(part.size), matrix(part.at)) for part in parts]
    for shape, place in solids:
        rest = np.flatnonzero(left)
        if not len(rest):
            break
        left[rest] = ~near(shape, place, points[rest], margin)
    return left


def blocks(points: Array, unknown: Bools, margin: float) -> list[Block]:
    """The unknown points as boxes along the axes of the cell, larger by the margin; the one with
    the most points first. Many small objects near to each other become one box."""
    if not unknown.any():
        return []
    gap = GAP
    while len(groups := _groups(points[unknown], gap)) > MOST_BLOCKS:
        gap *= 1.5
    found: list[Block] = []
    for group in sorted(groups, key=len, reverse=True):
        low, high = group.min(axis=0) - margin, group.max(axis=0) + margin
        beside = (np.abs(points[:, :2] - 0.5 * (low + high)[:2])
                  <= 0.5 * (high - low)[:2] + AROUND).all(axis=1)  # fmt: skip
        low[2] = min(float(low[2]), float(points[beside, 2].min(initial=np.inf)))
        x, y, z = (0.5 * (low + high)).tolist()
        a, b, c = (high - low).tolist()
        found.append(Block(f"unknown object {len(found) + 1}", Pose(x, y, z, 0, 0, 0), (a, b, c)))
    return found


def _groups(points: Array, gap: float) -> list[Array]:
    """Points in neighbouring cubes of this side, together; groups of a single point left out."""
    cubes = [tuple(row) for row in np.floor(points / gap).astype(np.int64).tolist()]
    members: dict[tuple[int, ...], list[int]] = {}
    for k, cube in enumerate(cubes):
        members.setdefault(cube, []).append(k)
    groups = []
    while members:
        cube, first = members.popitem()
        group, waiting = list(first), [cube]
        while waiting:
            x, y, z = waiting.pop()
            for dx, dy, dz in product((-1, 0, 1), repeat=3):
                other = (x + dx, y + dy, z + dz)
                if other in members:
                    group += members.pop(other)
                    waiting.append(other)
        groups.append(points[sorted(group)])
    return [group for group in groups if len(group) >= FEWEST_POINTS]
