"""What jobs need of an arm: moves, the pose of the flange, a check of moves in advance, and what of
a measured cloud is the arm.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import Refused
from understudy.gcode.requests import move_to_target
from understudy.motion.path import Floats, Path
from understudy.ports.controller import MotionController
from understudy.ports.job_arm import Block, JobArm, SweptMove, Touch
from understudy.ports.operation import Target
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.drives import ARC_START
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.operator import POSITION_UNKNOWN, ArmActions
from understudy.simulation.collision.body import Body
from understudy.space.kinematics.chain import Frames
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.pose import Pose
from understudy.space.transform import Array, inverse, matrix, pose

if TYPE_CHECKING:
    from understudy.space.collision.sweep import Sweeper


# ── the body of the arm ───────────────────────────────────────────────────────────────────────────


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
        from understudy.space.collision.world import arm_parts, carried_part
        from understudy.space.model.shapes import near

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


# ── moves ─────────────────────────────────────────────────────────────────────────────────────────


class ArmReach:
    """`ReachCheck` of an arm: plans the moves as its controller will, without moving.

    ``contact``: the first two things that touch on a path; None without a check of contacts.
    """

    def __init__(
        self,
        mover: Callable[[], ArmMover | Refused],
        joints: Callable[[int], Floats],
        contact: Callable[[Path], tuple[str, str] | None] = lambda path: None,
    ) -> None:
        self._mover = mover
        self._joints = joints
        self._contact = contact

    def check(self, targets: Sequence[Target], now: int) -> Refused | None:
        mover = self._mover()
        if isinstance(mover, Refused):
            return mover
        q = self._joints(now)
        for number, target in enumerate(targets, 1):
            path = mover.path(move_to_target(target), q, line=0)
            if isinstance(path, Refused):
                return Refused(f"move {number} of {len(targets)}: {path.reason}", path.code)
            if touched := self._contact(path):
                return Refused(f"move {number} of {len(targets)}: {' touches '.join(touched)}")
            q = path.end[-1] if len(path) else q
        return None


def job_arm(robot: ArmController) -> JobArm:
    """The simulated arm, as jobs use it."""
    actions = ArmActions(robot, robot.arm, dialect=robot.arm.options.dialect, simulated=robot)

    def joints(now: int) -> Floats:
        return np.array(robot.view(now).q)

    def mover(tool: int | None = None) -> ArmMover | Refused:
        return robot.tool_offsets.mover(robot.firmware.modal.tool if tool is None else tool)

    def reaches(poses: Sequence[Pose], tool: int | None) -> list[bool]:
        there = mover(tool)
        return [False] * len(poses) if isinstance(there, Refused) else there.reaches(poses)

    return JobArm(
        robot,
        actions.move_to,
        lambda now: pose(robot.flange(now)),
        ArmReach(mover, joints),
        reaches,
        tools=tuple(robot.arm.movers),
        tool=lambda now: robot.firmware.reading(now).tool,
        arc_on=lambda: robot.io.digital_output(ARC_START),
        table=robot.tools,
        feed_per_second=robot.arm.options.dialect.feed_per_second,
        joints=lambda now: robot.view(now).q,
        clear=ArmReach(mover, joints, _contact(robot)),
        body=_body(robot, mover, joints),
    )


def real_job_arm(robot: ArmController, driver: MotionController, actions: ArmActions) -> JobArm:
    """A REAL arm, as jobs use it: its joints are those of the last report; the model of its
    simulated sibling tells where it can go and what it would touch."""

    def joints(now: int) -> Floats:
        return np.array(driver.joint_state(now).positions)

    def flange(now: int) -> Floats:
        return robot.arm.movers[0].flange(joints(now))

    def mover() -> ArmMover | Refused:
        """With the tool of the driver, which the operator may have changed."""
        bare = robot.arm.movers[0]
        if not driver.is_connected() or not np.isfinite(joints(0)).all():
            return POSITION_UNKNOWN
        tool = inverse(flange(0)) @ matrix(driver.tcp(0))
        return replace(bare, frames=Frames(bare.frames.base, tool))

    def reaches(poses: Sequence[Pose], tool: int | None) -> list[bool]:
        there = mover()
        return [False] * len(poses) if isinstance(there, Refused) else there.reaches(poses)

    return JobArm(
        driver,
        actions.move_to,
        lambda now: pose(flange(now)),
        ArmReach(mover, joints),
        reaches,
        joints=lambda now: driver.joint_state(now).positions,
        clear=ArmReach(mover, joints, _contact(robot)),
    )


def _contact(robot: ArmController) -> Callable[[Path], tuple[str, str] | None]:
    watch = robot.collision
    return (lambda path: None) if watch is None else watch.contact_on


def _body(
    robot: ArmController,
    mover: Callable[[], ArmMover | Refused],
    joints: Callable[[int], Floats],
) -> ArmBody | None:
    watch = robot.collision
    if watch is None:
        return None
    return ArmBody(watch.body, mover, joints, lambda now: robot.firmware.reading(now).tool)
