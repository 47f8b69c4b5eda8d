"""Reach of an arm: a map of the space around it, or the poses of a program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from understudy.app.validate import subject_of
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import ArcMove, LineMove, Move
from understudy.motion.path import Floats, Limits, Path
from understudy.offline.robot import Arm, Subject, chosen_robot, offline_robot
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import walk
from understudy.space.pose import Pose
from understudy.space.reach.reach_map import (
    MOST_POINTS,
    ReachabilityAnalyzer,
    ReachabilityMap,
    ReachabilityResult,
    TooManyPointsError,
)
from understudy.space.transform import inverse


@dataclass(frozen=True, eq=False)
class ReachMaps:
    """`found`: what the joints allow; `free`: the part of it without collisions."""

    robot: str
    found: ReachabilityMap
    free: ReachabilityMap


@dataclass(frozen=True, slots=True)
class PoseReach:
    """A pose of a program, and whether the arm reaches it."""

    line: int
    pose: Pose
    result: ReachabilityResult


def reach_maps(
    config: CellConfig,
    *,
    robot: str = "",
    resolution_mm: float = 50.0,
    progress: Callable[[float], None] = lambda share: None,
) -> ReachMaps:
    """Maps around the robot's foot, in the frame of its poses, with its initial tool."""
    name, arm = arm_with_initial_tool(config, robot)
    analyzer = ReachabilityAnalyzer(arm.chain, arm.detector, frames=arm.frames)
    foot = inverse(arm.frames.base)[:3, 3]
    try:
        maps = analyzer.generate_maps(resolution_mm, foot, progress=progress)
    except TooManyPointsError as problem:
        raise ConfigError(
            f"{problem.points:,} points are too many: time and memory grow with their number, "
            f"8 times for half the distance; {MOST_POINTS:,} are possible",
            key="resolution_mm",
            value=resolution_mm,
            allowed=f"{problem.finest_mm:g} and more for {name}",
        ) from None
    return ReachMaps(name, *maps)


def arm_with_initial_tool(config: CellConfig, robot: str = "") -> tuple[str, Arm]:
    """Name and model of a robot with a body; of the first one if none is named."""
    name = chosen_robot(config, robot, with_body=True)
    return name, _arm(subject_of("", config, name), getattr(config.robots[name].config, "tool", 0))


def program_reach(
    program: str | bytes, config: CellConfig, *, robot: str = "", dialect: str = ""
) -> list[PoseReach]:
    """Every pose that a program of an arm names, with the tool that is active there; each solution
    is sought near the one before."""
    name = chosen_robot(config, robot, with_body=True)
    setup = offline_robot(config, name).setup(dialect)
    if setup is None:
        raise ConfigError("poses of a program are those of an arm", value=name, allowed="kind arm")
    subject, out = subject_of("", config, name), []
    noted = program_poses(program, replace(setup, devices=None))
    for tool, same in groupby(noted, lambda each: each.tool):
        arm, poses = _arm(subject, tool), list(same)
        analyzer = ReachabilityAnalyzer(arm.chain, arm.detector, frames=arm.frames)
        results = analyzer.check_program(each.pose for each in poses)
        out += [PoseReach(p.line, p.pose, found) for p, found in zip(poses, results, strict=True)]
    return out


def _arm(subject: Subject, tool: int) -> Arm:
    found = subject.arm(tool)
    assert isinstance(found, Arm), "bodies are arms"
    return found


# ── the poses that a program commands, reachable or not ───────────────────────────────────────────


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
