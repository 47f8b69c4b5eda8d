"""What jobs need of an arm: moves, the pose of the flange, and a check of moves in advance."""

from collections.abc import Callable, Sequence

import numpy as np

from understudy.errors import Refused
from understudy.motion.path import Floats
from understudy.offline.pick_place.moves import move_of
from understudy.ports.operation import Target
from understudy.ports.pick_place import JobArm
from understudy.robots.arm.controller import VirtualController
from understudy.robots.arm.drives import ARC_START
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.operator import ArmActions
from understudy.space.pose import Pose
from understudy.space.transform import pose


class ArmReach:
    """`ReachCheck` of an arm: plans the moves as its controller will, without moving."""

    def __init__(
        self, mover: Callable[[], ArmMover | Refused], joints: Callable[[int], Floats]
    ) -> None:
        self._mover = mover
        self._joints = joints

    def check(self, targets: Sequence[Target], now: int) -> Refused | None:
        mover = self._mover()
        if isinstance(mover, Refused):
            return mover
        q = self._joints(now)
        for number, target in enumerate(targets, 1):
            path = mover.path(move_of(target), q, line=0)
            if isinstance(path, Refused):
                return Refused(f"move {number} of {len(targets)}: {path.reason}", path.code)
            q = path.end[-1] if len(path) else q
        return None


def job_arm(robot: VirtualController) -> JobArm:
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
    )
