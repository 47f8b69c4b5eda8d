"""What a record asks for: a way of the tool, a swing of the axes, other frames, or nothing.

A pure question: the same record, asked from the same standing, always gets the same answer. So it
can be asked ahead of its turn, and again after a snapshot was brought back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from understudy.motion.cartesian import Blocked, joint_path
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Limits, Path
from understudy.motion.tool_path import IN_PLACE, ToolLine
from understudy.ports import Joints
from understudy.ports.kuka import Record
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.follow import FailureKind
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose
from understudy.units import DEG, MM

LINEAR, HOME = 0, (28, 30)
TOOLS, BASES, FIRST_BASE = range(1, 10), range(54, 60), 54
POSITION = ("X", "Y", "Z", "C", "B", "A")
"""The words in the order of a Pose."""

Z_ROUNDING = 0.001 * MM
FARTHEST = 100.0
"""Metres. A target beyond it is absurd, and arithmetic with it may be too."""
WIDEST = 36_000.0 * DEG
SLOWEST = 0.001 * MM
"""Metres per second. A slower move would hold the queue up for days."""
HIGHEST_JOB = 0xFFFF


class Standing(Struct, frozen=True):
    """Where the robot is when nothing moves, and what holds: the modal state of the server.

    `position`: the last commanded pose, word for word, of the tool in the base.
    """

    axes: Joints
    position: Pose
    tool: int
    base: int
    speed: float


@dataclass(frozen=True, eq=False)
class Leg:
    """A motion that takes time: of the tool along a way, or of the axes if there is no way."""

    path: Path
    frames: Frames
    way: ToolLine | None = None
    pace: float = 0.0
    """The programmed speed of the tip along the way; 0 where it does not move along one."""


class Outcome(NamedTuple):
    """What holds afterwards, the motion until then, the weld job it asks for, and why it was
    refused, if so; `obstacle`: what is in the way of a line that cannot be followed; `absurd`: what
    was asked for is no motion at all."""

    after: Standing
    leg: Leg | None = None
    job: int | None = None
    message: str = ""
    obstacle: FailureKind | None = None
    absurd: bool = False


@dataclass(frozen=True, eq=False)
class Robot:
    """Everything configured that decides what a record means. SI throughout."""

    chain: Chain
    tools: Mapping[int, Floats]
    bases: Mapping[int, Floats]
    start: Standing
    home: Floats
    home_limits: Limits
    speed_limit: float
    lowest_z: float
    turning: float
    acceleration: float

    def frames(self, standing: Standing) -> Frames:
        """Of a tool or base that is not in the tables: the flange, the foot."""
        nowhere = np.eye(4)
        return Frames(
            self.bases.get(standing.base, nowhere), self.tools.get(standing.tool, nowhere)
        )

    def tip(self, axes: Floats, tool: int) -> Pose:
        """Where a tool's tip is, from the robot's foot."""
        return pose(Frames(np.eye(4), self.tools.get(tool, np.eye(4))).tcp(self.chain.flange(axes)))

    def carry_out(self, record: Record, standing: Standing) -> Outcome:
        if record.kind == LINEAR:
            return self._linear(record, standing)
        if record.kind in HOME:
            return self._home(standing)
        if record.kind in TOOLS:
            return Outcome(self._with_frames(standing, tool=record.kind))
        if record.kind in BASES:
            return Outcome(self._with_frames(standing, base=record.kind - FIRST_BASE + 1))
        return Outcome(standing, message=f"Unknown command type {record.kind}")

    # ── frames ──

    def _with_frames(self, standing: Standing, *, tool: int = 0, base: int = 0) -> Standing:
        """Other frames; the last commanded position becomes the actual one."""
        chosen = replace(standing, tool=tool or standing.tool, base=base or standing.base)
        tip = self.frames(chosen).tcp(self.chain.flange(standing.axes))
        return replace(chosen, position=pose(tip))

    def _home(self, standing: Standing) -> Outcome:
        path = lines(standing.axes, self.home, self.home_limits, rapid=True)
        there = replace(standing, axes=tuple(self.home.tolist()))
        after = self._with_frames(there, tool=self.start.tool, base=self.start.base)
        leg = Leg(path, self.frames(standing)) if len(path) else None
        return Outcome(after, leg)

    # ── lines ──

    def _linear(self, record: Record, standing: Standing) -> Outcome:
        words = record.words
        if standing.tool not in self.tools or standing.base not in self.bases:
            which = f"tool {standing.tool} and base {standing.base}"
            return Outcome(standing, message=f"no motion with {which}")
        message = record.flaw or _absurd(words)
        if message:
            return Outcome(standing, message=message, absurd=True)
        speed = min(words.get("F", standing.speed), self.speed_limit)
        paced = replace(standing, speed=speed)
        target = _target(standing.position, words)
        if target.z < self.lowest_z - Z_ROUNDING:
            low = f"Z = {target.z / MM:.3f} mm is below {self.lowest_z / MM:g} mm"
            return Outcome(paced, message=low)
        return self._along(target, paced, int(words["E"]) if "E" in words else None)

    def _along(self, target: Pose, standing: Standing, job: int | None) -> Outcome:
        frames = self.frames(standing)
        way = ToolLine(matrix(standing.position), matrix(target))
        if way.length <= IN_PLACE:
            return Outcome(replace(standing, position=target), job=job)
        pace = standing.speed if way.distance > IN_PLACE else self.turning
        path = joint_path(
            self.chain,
            standing.axes,
            way,
            limits=Limits.of(self.chain.velocity, np.full(self.chain.dof, np.inf)),
            feed=pace,
            turning=self.turning,
            # The tool turns up as smoothly as it speeds up: so many m/s², so many rad/s².
            acceleration=self.acceleration / max(1.0, way.angle / way.length),
            frames=frames,
        )
        if isinstance(path, Blocked):
            said = f"{path.reason} ({path.share:.0%} of the way)"
            return Outcome(standing, message=said, obstacle=path.kind)
        after = replace(standing, axes=tuple(path.end[-1].tolist()), position=target)
        through = float(path.feed[0]) if way.distance > IN_PLACE else 0.0
        return Outcome(after, Leg(path, frames, way, through), job)


def _absurd(words: Mapping[str, float]) -> str:
    """Why no motion can be made of these numbers, if so."""
    for word, value in words.items():
        if word in ("X", "Y", "Z") and abs(value) > FARTHEST:
            return f"{word} = {value / MM:g} mm is out of this world"
        if word in ("A", "B", "C") and abs(value) > WIDEST:
            return f"{word} = {value / DEG:g}° is out of this world"
        if word == "F" and not value >= SLOWEST:
            return f"F = {value / MM:g} mm/s is no speed"
        if word == "E" and not 0.0 <= value < HIGHEST_JOB + 1:
            return f"E = {value:g} is no weld job; allowed: 0…{HIGHEST_JOB}"
    return ""


def _target(last: Pose, words: Mapping[str, float]) -> Pose:
    """Words that are not given keep their last commanded value."""
    return Pose(*(words.get(word, value) for word, value in zip(POSITION, last, strict=True)))
