"""Where tools end: as the cell's file says, unless it was measured since."""

from collections.abc import Callable
from dataclasses import replace

from understudy.errors import Refused
from understudy.robots.arm.mover import ArmMover
from understudy.space.kinematics.chain import Frames
from understudy.space.pose import Pose
from understudy.space.transform import matrix


class ToolOffsets:
    """`measured`: tool → its tip from the flange; a value that snapshots hold."""

    def __init__(self, configured: Callable[[int], ArmMover | Refused]) -> None:
        self._configured = configured
        self.measured: dict[int, Pose] = {}

    def mover(self, tool: int) -> ArmMover | Refused:
        """The arm with this tool in hand."""
        mover = self._configured(tool)
        if isinstance(mover, Refused) or tool not in self.measured:
            return mover
        return replace(mover, frames=Frames(mover.frames.base, matrix(self.measured[tool])))

    def take(self, tool: int, tip: Pose | None) -> None:
        """None: what the cell's file says counts again."""
        rest = {number: known for number, known in self.measured.items() if number != tool}
        self.measured = rest if tip is None else {**rest, tool: tip}
