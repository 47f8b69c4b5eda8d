"""Where a KUKA should be by the records it was sent, and whether its telemetry shows it there.

The feedback counts records and never says that one was refused: a target out of reach, below the
soft limit or with a tool that moves nothing is completed in the moment it is taken up. But then the
robot stands, or sets out, from somewhere else, or was never seen on a way it cannot have gone
between two frames; and the telemetry shows it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from understudy.ports.kuka import KukaReading
from understudy.robots.kuka.driver_program import LINEAR, Step
from understudy.space.pose import Pose
from understudy.space.transform import angle_between, matrix
from understudy.units import MM, seconds

POSITION = ("X", "Y", "Z", "C", "B", "A")
"""The words in the order of a Pose."""
Known = tuple[float | None, ...]
"""A pose as far as the records tell: after home, or with another tool or base, not at all."""
UNKNOWN: Known = (None,) * 6
FASTEST = 3.0
"""Metres per second: no such arm is faster, """
FRAME_SECONDS = 0.02
"""and so often it tells where it is."""


class Tolerance(NamedTuple):
    """How far from its way (m), and turned away from its target (rad), a robot is still there."""

    distance: float
    angle: float


class PositionTracker:
    """Of the robot during one job."""

    def __init__(self, steps: Sequence[Step], start: Pose | None, tolerance: Tolerance) -> None:
        self._steps = steps
        self._tolerance = tolerance
        self._after = [UNKNOWN if start is None else tuple(start)]
        for step in steps:
            self._after.append(_after(step, self._after[-1]))
        self.seen = 0
        """So many steps are completed, and the robot was seen where they lead."""
        self._begun = 0
        self._last: tuple[Sequence[float], int] | None = None

    def astray(self, reading: KukaReading, first: int, sent: int, now: int) -> str:
        """Where it is instead, if it is not on its way; ``first``: the number of the first step."""
        flying = reading.progress.in_flight - first
        done = reading.progress.completed - first + 1
        done = done if 0 <= done <= sent else 0  # the last one was of another job
        if not all(map(math.isfinite, reading.pose)):
            return ""
        if (missed := self._missed(done, reading.pose, now)) is not None:
            return self._told(f"line {self._steps[missed].line}", reading.pose)
        self._last = reading.pose[:3], now
        if flying == done < sent:
            there = self._on_way(done, reading.pose)
        elif done and flying == done - 1:
            there = self._at_rest(done, reading.pose)
        else:
            return ""
        if not there:
            return self._blamed(done, reading.pose)
        self.seen = max(self.seen, done)
        self._begun = max(self._begun, flying + 1)  # what is refused is never in flight
        return ""

    def _missed(self, done: int, here: Pose, now: int) -> int | None:
        """A step whose end it cannot have been at since the last frame, although it is completed
        and was never seen in flight."""
        if self._last is None:
            return None
        before, at = self._last
        possible = FASTEST * (FRAME_SECONDS + seconds(now - at))
        for step in range(self._begun, done):
            end = [value for value in self._after[step + 1][:3] if value is not None]
            if self._steps[step].kind != LINEAR or len(end) < 3:
                return None
            if math.dist(before, end) + math.dist(end, here[:3]) > possible:
                return step
        return None

    def _on_way(self, step: int, here: Pose) -> bool:
        """Between the ends of this step, as far as they are known."""
        start, end = self._after[step][:3], self._after[step + 1][:3]
        a = [value for value in start if value is not None]
        b = [value for value in end if value is not None]
        if len(a) + len(b) < 6:
            return True
        return _distance(here[:3], a, b) <= self._tolerance.distance

    def _at_rest(self, done: int, here: Pose) -> bool:
        """Where so many steps lead, as far as that is known."""
        wanted = self._after[done]
        pairs = zip(wanted[:3], here[:3], strict=True)
        if any(w is not None and abs(w - h) > self._tolerance.distance for w, h in pairs):
            return False
        turned = [value for value in wanted[3:] if value is not None]
        if len(turned) < 3:
            return True
        goal = matrix(Pose(0.0, 0.0, 0.0, *turned))
        apart = angle_between(goal[:3, :3], matrix(here)[:3, :3])
        return apart <= self._tolerance.angle

    def _blamed(self, done: int, here: Pose) -> str:
        """The moves that were completed and not seen in flight, since it was where it should be."""
        moves = [s for s in self._steps[self._begun : done] if s.words.keys() & set(POSITION)]
        lines = sorted({step.line for step in moves}) or [self._steps[max(done - 1, 0)].line]
        which = f"line {lines[0]}" if len(lines) == 1 else f"one of lines {lines[0]}…{lines[-1]}"
        return self._told(which, here)

    def _told(self, which: str, here: Pose) -> str:
        at = " ".join(f"{w}{v / MM:.1f}" for w, v in zip("XYZ", here[:3], strict=True))
        return f"{which}: the robot did not go there (it is at {at}); its own log says why"


def _after(step: Step, before: Known) -> Known:
    if step.kind != LINEAR:
        return UNKNOWN
    return tuple(step.words.get(word, was) for word, was in zip(POSITION, before, strict=True))


def _distance(p: Sequence[float], a: Sequence[float], b: Sequence[float]) -> float:
    """Of a point from the line between two others."""
    way = [y - x for x, y in zip(a, b, strict=True)]
    length = math.hypot(*way)
    along = sum(w * (q - x) for w, q, x in zip(way, p, a, strict=True))
    share = min(max(along / length**2, 0.0), 1.0) if length > 0.0 else 0.0
    return math.dist(p, [x + share * w for x, w in zip(a, way, strict=True)])
