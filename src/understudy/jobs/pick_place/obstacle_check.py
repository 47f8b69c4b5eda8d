"""ObstacleCheck: refuses moves of the cycle through objects that only the depth image shows."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from understudy.errors import Refused
from understudy.jobs.pick_place.moves import CycleMove, Leg
from understudy.jobs.pick_place.obstacles import blocks, unexplained
from understudy.ports.pick_place import Block, SweepsMoves, SweptMove
from understudy.ports.vision import VisionResult
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import ORIGIN, Pose
from understudy.space.transform import inverse, matrix, pose
from understudy.units import MM

WITH_PART: tuple[Leg, ...] = ("RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE")
"""Legs in which the hand has the part."""
Size = tuple[float, float, float]


class ObstacleCheck:
    """``known``: objects of the cell file; ``sizes``: of the parts by class, at a time;
    ``margin``: metres by which a point may be beside what explains it, and by which unknown
    objects are larger; ``filled``: places of parts that the job has put down."""

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

    def unknown(self, result: VisionResult, camera: Pose) -> list[Block] | Refused:
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

    def _parts(self, result: VisionResult, camera: Pose) -> list[Block]:
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
