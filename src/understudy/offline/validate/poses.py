"""The poses that a program commands, reachable or not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from understudy.errors import Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import ArcMove, LineMove, Move
from understudy.motion.path import Floats, Limits, Path
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import walk
from understudy.space.pose import Pose


@dataclass(frozen=True, slots=True)
class ProgramPose:
    """A pose of the tool (m, rad), the line that names it, and the number of the tool."""

    line: int
    pose: Pose
    tool: int


@dataclass(frozen=True)
class _RecordingMover:
    """A mover that records the poses it is sent to."""

    mover: Mover
    recorded: list[ProgramPose]
    tool: int

    @property
    def limits(self) -> Limits:
        return self.mover.limits

    @property
    def deviation(self) -> float:
        return self.mover.deviation

    def axes(self, q: Floats, /) -> Axes:
        return self.mover.axes(q)

    def pose(self, q: Floats, /) -> Axes:
        return self.mover.pose(q)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool) -> Path | Refused:
        if isinstance(move, LineMove | ArcMove):
            self.recorded.append(ProgramPose(line, move.target, self.tool))
        return self.mover.path(move, start, line=line, exact=exact)


def program_poses(program: str | bytes, setup: Setup) -> Sequence[ProgramPose]:
    """The poses in program order; joint moves have none."""
    recorded: list[ProgramPose] = []
    mount = setup.mount

    def mounted(tool: int) -> Mover | Refused:
        found = mount(tool) if mount is not None else setup.mover
        return found if isinstance(found, Refused) else _RecordingMover(found, recorded, tool)

    recording = replace(
        setup, mover=_RecordingMover(setup.mover, recorded, setup.modal.tool), mount=mounted
    )
    for _ in walk(program, recording):
        pass
    return recorded
