"""Motions of the KUKA: the motion of one record, and the trajectory through several records.

`KukaModel.carry_out` is a pure function of a record and the state at rest. So the server can call
it ahead of time, and again after a snapshot was restored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from understudy.motion.cartesian import Blocked, joint_path
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Limits, Path, joined
from understudy.motion.plan import PathPosition, Plan
from understudy.motion.profile import ENDLESS
from understudy.motion.saved import Figure, law_from, position_from
from understudy.motion.stream import trapezoid_law
from understudy.motion.tool_path import IN_PLACE, ToolLine
from understudy.ports import State
from understudy.robots.kuka.records import (
    BASES,
    HOMES,
    LINEAR,
    POSITION,
    TOOLS,
    Record,
    WireInt,
    base_number,
)
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.follow import FailureKind
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose
from understudy.units import DEG, MM

Z_ROUNDING = 0.001 * MM
FARTHEST = 100.0
"""Metres. A coordinate beyond it is refused: the arithmetic may overflow."""
WIDEST = 36_000.0 * DEG
SLOWEST = 0.001 * MM
"""Metres per second. A slower move would block the queue for days."""
HIGHEST_JOB = 0xFFFF


# ── one record ──────────────────────────────────────────────────────────────────────────────────


AXES = 6
Axes = Annotated[tuple[Figure, ...], Meta(min_length=AXES, max_length=AXES)]
"""Of a snapshot: compiled code reads them without looking at their number."""


class ModalState(Struct, frozen=True):
    """State of the server between two motions.

    `position`: the last commanded pose of the tool in the base, exactly as it was commanded.
    """

    axes: Axes
    position: Pose
    tool: WireInt
    base: WireInt
    speed: float


@dataclass(frozen=True, eq=False)
class Segment:
    """The motion of one record: of the tool along a line, or of the axes if there is no line."""

    path: Path
    frames: Frames
    line: ToolLine | None = None
    speed: float = 0.0
    """Programmed speed of the tool along the line; 0 if the tool only turns, or the axes move."""


class Outcome(NamedTuple):
    """Result of a record: the state after it, its motion, its weld job, the reason of a refusal.

    `obstacle`: why a line cannot be followed; `malformed`: the record describes no motion.
    """

    after: ModalState
    segment: Segment | None = None
    job: int | None = None
    message: str = ""
    obstacle: FailureKind | None = None
    malformed: bool = False


@dataclass(frozen=True, eq=False)
class KukaModel:
    """Kinematics, frames and limits of the robot, in SI units."""

    chain: Chain
    tools: Mapping[int, Floats]
    bases: Mapping[int, Floats]
    start: ModalState
    home: Floats
    home_limits: Limits
    speed_limit: float
    lowest_z: float
    turning: float
    acceleration: float

    def frames(self, state: ModalState) -> Frames:
        """Frames of the active tool and base; the flange or the foot if a number is undefined."""
        identity = np.eye(4)
        return Frames(self.bases.get(state.base, identity), self.tools.get(state.tool, identity))

    def tip(self, axes: Floats, tool: int) -> Pose:
        """Pose of a tool's tip, seen from the foot of the robot."""
        return pose(Frames(np.eye(4), self.tools.get(tool, np.eye(4))).tcp(self.chain.flange(axes)))

    def tip_positions(self, axes: Floats, tool: int) -> Floats:
        """Positions of a tool's tip for rows of axes, seen from the foot: rows of x, y, z."""
        frames = Frames(np.eye(4), self.tools.get(tool, np.eye(4)))
        return np.ascontiguousarray(self.chain.flanges(axes, frames)[:, :3, 3])

    def carry_out(self, record: Record, state: ModalState) -> Outcome:
        if record.kind == LINEAR:
            return self._linear(record, state)
        if record.kind in HOMES:
            return self._home(state)
        if record.kind in TOOLS:
            return Outcome(self._with_frames(state, tool=record.kind))
        if record.kind in BASES:
            return Outcome(self._with_frames(state, base=base_number(record.kind)))
        return Outcome(state, message=f"Unknown command type {record.kind}")

    def _with_frames(self, state: ModalState, *, tool: int = 0, base: int = 0) -> ModalState:
        """Selects frames; the actual position becomes the last commanded one."""
        chosen = replace(state, tool=tool or state.tool, base=base or state.base)
        tip = self.frames(chosen).tcp(self.chain.flange(state.axes))
        return replace(chosen, position=pose(tip))

    def _home(self, state: ModalState) -> Outcome:
        path = lines(state.axes, self.home, self.home_limits, rapid=True)
        there = replace(state, axes=tuple(self.home.tolist()))
        after = self._with_frames(there, tool=self.start.tool, base=self.start.base)
        segment = Segment(path, self.frames(state)) if len(path) else None
        return Outcome(after, segment)

    def _linear(self, record: Record, state: ModalState) -> Outcome:
        words = record.words
        if state.tool not in self.tools or state.base not in self.bases:
            which = f"tool {state.tool} and base {state.base}"
            return Outcome(state, message=f"no motion with {which}")
        message = record.flaw or _flaw(words)
        if message:
            return Outcome(state, message=message, malformed=True)
        speed = min(words.get("F", state.speed), self.speed_limit)
        with_speed = replace(state, speed=speed)
        # A word that is not given keeps its last commanded value.
        last = zip(POSITION, state.position, strict=True)
        target = Pose(*(words.get(word, value) for word, value in last))
        if target.z < self.lowest_z - Z_ROUNDING:
            low = f"Z = {target.z / MM:.3f} mm is below {self.lowest_z / MM:g} mm"
            return Outcome(with_speed, message=low)
        return self._along(target, with_speed, int(words["E"]) if "E" in words else None)

    def _along(self, target: Pose, state: ModalState, job: int | None) -> Outcome:
        frames = self.frames(state)
        line = ToolLine(matrix(state.position), matrix(target))
        if line.length <= IN_PLACE:
            return Outcome(replace(state, position=target), job=job)
        path = joint_path(
            self.chain,
            state.axes,
            line,
            limits=Limits.of(self.chain.velocity, np.full(self.chain.dof, np.inf)),
            feed=state.speed if line.distance > IN_PLACE else self.turning,
            turning=self.turning,
            # The same number limits the acceleration in m/s² and the turning in rad/s².
            acceleration=self.acceleration / max(1.0, line.angle / line.length),
            frames=frames,
        )
        if isinstance(path, Blocked):
            message = f"{path.reason} ({path.share:.0%} of the path)"
            return Outcome(state, message=message, obstacle=path.kind)
        after = replace(state, axes=tuple(path.end[-1].tolist()), position=target)
        speed = float(path.feed[0]) if line.distance > IN_PLACE else 0.0
        return Outcome(after, Segment(path, frames, line, speed), job)


def _flaw(words: Mapping[str, float]) -> str:
    """The reason why these numbers describe no motion; empty if they describe one."""
    for word, value in words.items():
        if word in ("X", "Y", "Z") and abs(value) > FARTHEST:
            return f"{word} = {value / MM:g} mm is too far; allowed: ±{FARTHEST / MM:g} mm"
        if word in ("A", "B", "C") and abs(value) > WIDEST:
            return f"{word} = {value / DEG:g}° is too large; allowed: ±{WIDEST / DEG:g}°"
        if word == "F" and not value >= SLOWEST:
            return f"F = {value / MM:g} mm/s is too slow; allowed: {SLOWEST / MM:g} mm/s and more"
        if word == "E" and not 0.0 <= value < HIGHEST_JOB + 1:
            return f"E = {value:g} is not a weld job; allowed: 0…{HIGHEST_JOB}"
    return ""


# ── several records ─────────────────────────────────────────────────────────────────────────────


class Sample(NamedTuple):
    """Axes (rad), pose of the tool in the base of the running segment, speed of the tip (m/s)."""

    axes: Floats
    pose: Pose
    speed: float


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The running segment and the known ones after it, on one time law. Times are in seconds.

    A trajectory is immutable and has at least one segment. When a segment is added or dropped, the
    rest is planned again from the state at that time. A line passes into the next one at the
    share `blend` of the lower of their speeds (C_VEL): it brakes to that speed and does not stop;
    the corner is not rounded.
    """

    segments: tuple[Segment, ...]
    plan: Plan
    blend: float

    @staticmethod
    def from_rest(segments: tuple[Segment, ...], t: float, blend: float) -> "Trajectory":
        return _planned(segments, PathPosition(0), t, blend)

    @cached_property
    def ends(self) -> float:
        """The end of the first segment."""
        law = self.plan.law
        after = int(np.searchsorted(law.piece, len(self.segments[0].path)))
        return float(law.begins[after])

    def at(self, t: float, chain: Chain) -> Sample:
        """The state on the first segment, which is the running one."""
        segment = self.segments[0]
        motion = self.plan.at(t)
        line = segment.line
        if line is None:
            tip = segment.frames.tcp(chain.flange(motion.position))
            velocity = chain.jacobian(motion.position, segment.frames.tool)[:3] @ motion.velocity
            return Sample(motion.position, pose(tip), float(np.linalg.norm(velocity)))
        here = self.plan.place(t)
        covered = float(segment.path.length[: here.piece].sum()) + here.s
        if here.piece >= len(segment.path):
            covered = line.length
        tip = line.poses(np.array([min(covered / line.length, 1.0)]))[0]
        speed = here.v if line.distance > IN_PLACE else 0.0
        return Sample(motion.position, pose(tip), speed)

    def extended(self, segment: Segment, t: float) -> "Trajectory":
        """The motion with one more segment at the end."""
        return _planned((*self.segments, segment), self.plan.place(t), t, self.blend)

    def shortened(self, t: float) -> "Trajectory":
        """The first segment alone."""
        return _planned(self.segments[:1], self.plan.place(t), t, self.blend)

    def advanced(self, t: float) -> "Trajectory":
        """The motion without the first segment, which is done."""
        done = len(self.segments[0].path)
        here = self.plan.place(t)
        at_start = PathPosition(0, v=here.v)
        position = here._replace(piece=here.piece - done) if here.piece >= done else at_start
        return _planned(self.segments[1:], position, t, self.blend)

    def resumed(self, t: float) -> "Trajectory":
        """The motion from rest at the place where it was halted."""
        here = self.plan.place(t)
        return _planned(self.segments, PathPosition(here.piece, here.s), t, self.blend)

    def halted(self, t: float) -> "Trajectory":
        """The motion at rest from this instant on."""
        return Trajectory(self.segments, self.plan.until(t), self.blend)

    def to_state(self) -> State:
        """Snapshot without the segments: they are computed from their records again."""
        return {"law": self.plan.law.to_state(), "target": self.plan.target.tolist()}

    @staticmethod
    def from_state(segments: tuple[Segment, ...], state: State, blend: float) -> "Trajectory":
        path, saved = _path(segments, blend), msgspec.convert(state, SavedTrajectory)
        law = law_from(saved.law, len(path))
        target = position_from(saved.target, path.axes, "target")
        return Trajectory(segments, Plan(path, law, target), blend)


class SavedTrajectory(Struct, forbid_unknown_fields=True):
    """Snapshot of a trajectory."""

    law: dict[str, Any]
    target: list[Figure]


def _planned(
    segments: tuple[Segment, ...], position: PathPosition, t: float, blend: float
) -> Trajectory:
    path = _path(segments, blend)
    first = min(position.piece, len(path) - 1)
    rest = path.rows(first, len(path))
    law = trapezoid_law(rest, rest.nominal(), position, at=t, window=ENDLESS)
    return Trajectory(segments, Plan(path, law.numbered(first), path.end[-1]), blend)


def _path(segments: tuple[Segment, ...], blend: float) -> Path:
    entries = (0.0, *((blend * min(a.speed, b.speed)) ** 2 for a, b in pairwise(segments)))
    return joined([s.path.with_entry(entry) for s, entry in zip(segments, entries, strict=True)])
