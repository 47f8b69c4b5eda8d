"""ObstacleCheck: refuses moves of the cycle through objects that only the depth image shows.

Known are the objects of the cell file, the floor, the parts that were detected and the arm itself.
The points that nothing known explains are gathered into boxes; a box reaches down to the lowest
point that was seen around it, since a camera does not see what is below a surface.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.jobs.pick_place.moves import CycleMove, Leg
from understudy.ports.job_arm import Block, SweepsMoves, SweptMove
from understudy.ports.object_finder import FoundObjects
from understudy.space.model.robot import Box
from understudy.space.model.shapes import CollisionObject, near
from understudy.space.pose import ORIGIN, Pose
from understudy.space.transform import Array, inverse, matrix, pose
from understudy.units import MM

Bools = NDArray[np.bool_]
GAP = 0.03
"""Points that are nearer to each other belong to one object, metres."""
FEWEST_POINTS = 2
"""The fewest points of an object; a single point is noise."""
AROUND = 0.05
"""Metres around an object in which the lowest point is its foot."""
MOST_BLOCKS = 24
WITH_PART: tuple[Leg, ...] = ("RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE")
"""Legs in which the hand has the part."""
Size = tuple[float, float, float]
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
        beside = (
            np.abs(points[:, :2] - 0.5 * (low + high)[:2]) <= 0.5 * (high - low)[:2] + AROUND
        ).all(axis=1)
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


class ObstacleCheck:
    """Finds unknown objects in a picture, and moves that would touch them. ``known``: objects of
    the cell file; ``sizes``: of the parts by class, at a time; ``margin``: metres by which a point
    may be beside what explains it, and by which unknown objects are larger; ``filled``: places of
    parts that the job has put down."""

    def __init__(
        self,
        arm: SweepsMoves,
        known: Sequence[CollisionObject],
        sizes: Callable[[int], Mapping[str, Size]],
        *,
        margin: float,
        filled: Callable[[], Sequence[Pose]] = tuple,
    ) -> None:
        self._arm = arm
        self._known = tuple(known)
        self._sizes = sizes
        self._margin = margin
        self._filled = filled

    def unknown(self, result: FoundObjects, camera: Pose) -> list[Block] | Refused:
        """The unknown objects in a picture that this camera has taken, in the cell."""
        if not result.points:
            return Refused("obstacle check: the picture has no depth")
        at = matrix(camera)
        points = np.array(result.points) @ at[:3, :3].T + at[:3, 3]
        left = unexplained(points, self._known, self._parts(result, camera), self._margin)
        rows = [(float(x), float(y), float(z)) for x, y, z in points[left]]
        if rows:
            covered = self._arm.covers(rows, self._margin, result.exposed_at)
            left[np.flatnonzero(left)[np.array(covered)]] = False
        return blocks(points, left, self._margin)

    def held(self, class_name: str, at: Pose, pick: Pose, now: int) -> Block | None:
        """A part at a place in the cell, in the frame of the tool that picks it."""
        size = self._sizes(now).get(class_name)
        if size is None:
            return None
        return Block(class_name, pose(inverse(matrix(pick)) @ matrix(at)), size)

    def in_the_way(
        self, found: Sequence[Block], moves: Sequence[CycleMove], held: Block | None, now: int
    ) -> Refused | None:
        """Why these moves are not made: the first of the unknown objects that they would touch."""
        swept = [SweptMove(move.target, held if move.leg in WITH_PART else None) for move in moves]
        touch = self._arm.first_touch(swept, found, now)
        if touch is None or isinstance(touch, Refused):
            return touch
        x, y, z = (value / MM for value in touch.point)
        leg = moves[touch.move].leg
        return Refused(
            f"obstacle: {touch.object} at X {x:.0f} Y {y:.0f} Z {z:.0f} mm is in the way of"
            f" {touch.body} in {leg}"
        )

    def _parts(self, result: FoundObjects, camera: Pose) -> list[Block]:
        """Parts that vision has found, and those at places that the job has filled."""
        at, sizes = matrix(camera), self._sizes(result.exposed_at)
        found = [
            Block(seen.class_name, pose(at @ matrix(seen.pose)), sizes[seen.class_name])
            for seen in result.objects
            if seen.class_name in sizes
        ]
        widest = max((max(size) for size in sizes.values()), default=0.0)
        cube = (2.0 * widest, 2.0 * widest, 2.0 * widest)
        filled = (ORIGIN._replace(x=each.x, y=each.y, z=each.z) for each in self._filled())
        return found + [Block("placed part", each, cube) for each in filled if widest]
