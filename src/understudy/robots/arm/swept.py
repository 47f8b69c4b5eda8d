"""The body of an arm for jobs: what of a measured cloud is the arm, and what its moves touch."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import Refused
from understudy.gcode.requests import move_to_target
from understudy.motion.path import Floats
from understudy.ports.pick_place import Block, SweptMove, Touch
from understudy.robots.arm.mover import ArmMover
from understudy.simulation.collision.body import Body
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.transform import Array, matrix

if TYPE_CHECKING:
    from understudy.space.collision.sweep import Sweeper

HELD = "held part"


class ArmBody:
    """`SweepsMoves` of an arm. ``mover``: of the mounted tool; ``tool``: its number."""

    def __init__(
        self,
        body: Body,
        mover: Callable[[], ArmMover | Refused],
        joints: Callable[[int], Floats],
        tool: Callable[[int], int],
    ) -> None:
        self._body = body
        self._mover = mover
        self._joints = joints
        self._tool = tool

    def covers(
        self, points: Sequence[tuple[float, float, float]], margin: float, now: int
    ) -> list[bool]:
        from understudy.space.collision.near import near
        from understudy.space.collision.world import arm_parts, carried_part

        body, rows = self._body, np.array(points).reshape(-1, 3)
        carried = (carried_part(body.chain, thing) for thing in body.carried(self._tool(now)))
        frames = body.foot @ body.chain.axes_of(self._joints(now)[None])[0]
        found = np.zeros(len(rows), dtype=bool)
        for part in (*arm_parts(body.chain, body.meshes), *carried):
            found |= near(part.shape, frames[part.body] @ part.place, rows, margin)
        return [bool(each) for each in found]

    def first_touch(
        self, moves: Sequence[SweptMove], blocks: Sequence[Block], now: int
    ) -> Touch | Refused | None:
        """Plans the moves as the controller will, and sweeps the arm along them."""
        from understudy.space.collision.sweep import Sweeper

        mover = self._mover()
        if isinstance(mover, Refused):
            return mover
        if not blocks:
            return None
        around = [_object(block, matrix(block.at)) for block in blocks]
        sweepers: dict[Block | None, Sweeper] = {}
        q = self._joints(now)
        for number, move in enumerate(moves):
            path = mover.path(move_to_target(move.target), q, line=0)
            if isinstance(path, Refused):
                return path
            if move.held not in sweepers:
                sweepers[move.held] = self._sweeper(around, move.held, mover, now)
            spot = sweepers[move.held].first_contact(path.shape, path.length)
            if spot is not None:
                return Touch(number, spot.object1_name, spot.object2_name, spot.point)
            q = path.end[-1] if len(path) else q
        return None

    def _sweeper(
        self, around: Sequence[CollisionObject], held: Block | None, mover: ArmMover, now: int
    ) -> "Sweeper":
        from understudy.space.collision.detector import CollisionDetector
        from understudy.space.collision.sweep import Sweeper

        body = self._body
        detector = CollisionDetector(
            body.chain, around, meshes=body.meshes, foot=body.foot, check_self_collision=False
        )
        for thing in body.carried(self._tool(now)):
            detector.attach(thing)
        if held is not None:
            detector.attach(_object(held, np.asarray(mover.frames.tool @ matrix(held.at)), HELD))
        return Sweeper(detector)


def _object(block: Block, place: Array, name: str = "") -> CollisionObject:
    return CollisionObject(
        type=ObjectType.BOX, name=name or block.name, transform=place, dimensions=block.size
    )
