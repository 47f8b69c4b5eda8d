"""What happens in a program: motion planned from rest to rest, and what lies between.

Moves are collected up to the next point at which the controller waits for motion to end (a dwell,
a wait, a switch of arc or gas, a tool change, a pause), and planned at once. So memory and time
grow with the program and no faster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.errors import Refused
from understudy.gcode import requests
from understudy.gcode.dialect import Axes
from understudy.gcode.meaning import sets_outputs_without_move
from understudy.gcode.program import ProgramLine
from understudy.motion.lines import seam
from understudy.motion.path import Floats, Path, joined
from understudy.motion.plan import Plan
from understudy.motion.stream import planned
from understudy.offline.setup import (
    Mover,
    Remark,
    Setup,
    StraightMover,
    Thrown,
    ToolLineMover,
)
from understudy.offline.straights import Straights
from understudy.space.kinematics.follow import FailureKind as Obstacle

Kind = Literal["syntax", "unsupported", "joint_limit", "unreachable", "singularity"]
UNSUPPORTED, JOINT_LIMIT, NO_TOOL = 20, 2, 38
OBSTACLES: dict[Obstacle | None, Kind] = {
    Obstacle.LIMIT: "joint_limit",
    Obstacle.UNREACHABLE: "unreachable",
    Obstacle.FLIP: "singularity",
    Obstacle.SINGULAR: "singularity",
}


@dataclass(frozen=True, slots=True)
class Run:
    """Motion from rest to rest, with a tool in hand; `process`: the arc burns."""

    plan: Plan
    process: bool
    tool: int = 0


@dataclass(frozen=True, slots=True)
class Stand:
    """A line for which the robot stands: a dwell, a switch, or a wait.

    `timeout`: how long a wait lasts is not known, at most so many seconds.
    """

    line: int
    kind: Literal["dwell", "io", "process"]
    begins: float
    ends: float
    timeout: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Glide:
    """A line on which a robot without axes moves, in a time of its own: where it is when, at some
    moments from beginning to end. Seconds; mm and deg."""

    line: int
    times: Floats
    poses: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Mounted:
    """A line after which the robot has another tool in hand, where it stands."""

    line: int
    tool: int
    q: Floats
    time_s: float


@dataclass(frozen=True, slots=True)
class Switch:
    """A line that sets an output; motion goes on."""

    line: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A line that cannot be run, and why; it is left out. `code`: grblHAL's number of the error."""

    line: int
    kind: Kind
    message: str
    code: int = 0


Event = ProgramLine | Run | Glide | Mounted | Stand | Switch | Violation | Remark
"""A line is told when it is begun; its motion when the run it belongs to is complete."""


class Here:
    """`Position`: where the program stands; the pose is reckoned only if a line needs it."""

    def __init__(self, walker: "Walker") -> None:
        self._walker = walker

    @property
    def axes(self) -> Axes:
        walker = self._walker
        return walker.commanded or walker.mover.axes(walker.q)

    @property
    def pose(self) -> Axes:
        walker = self._walker
        return walker.mover.pose(walker.q)


class Walker:
    """Collects moves, plans them when they must end, and keeps the time."""

    def __init__(self, setup: Setup, start: Floats | None = None) -> None:
        self.setup = setup
        self._hold(setup.mover)
        rest = np.array(setup.start or np.zeros(len(setup.mover.limits.velocity)))
        self.q: Floats = rest if start is None else start
        self.now = 0.0
        self.process = False
        self.exact = False
        self.tool = setup.modal.tool
        self.commanded: Axes | None = None
        self.here = Here(self)
        self.events: list[Event] = []
        self._paths: list[Path] = []
        self._straight: list[requests.AxisMove] = []
        self._lines: list[int] = []
        self._with_next: list[tuple[int, requests.Output]] = []
        self._thrown: list[tuple[int, int, requests.Output]] = []

    def move(self, move: requests.Move, line: int) -> Refused | None:
        if isinstance(move, requests.AxisMove) and self._straight_mover is not None:
            self._straight.append(move)
            self._lines.append(line)
            return None
        self._gather()
        path = self.mover.path(move, self.q, line=line, exact=self.exact)
        if isinstance(path, Refused):
            return path
        self._append(path)
        return None

    @property
    def takes_tool_lines(self) -> bool:
        """Whether lines of the tool can be collected and handed over together."""
        return self._tool_mover is not None and not self.exact

    def tool_lines(self, lines: Straights, numbers: Sequence[int]) -> tuple[int, Refused | None]:
        """Many at once: how many could be taken, and why the next one could not, if so."""
        assert self._tool_mover is not None
        self._gather()
        done = 0
        while done < len(lines):
            rest = slice(done, None)
            path, count = self._tool_mover.tool_lines(
                lines.targets[rest], lines.speeds[rest], self.q, line=numbers[rest]
            )
            self._append(path)
            done += count
            if done < len(lines):
                # What is out of the ordinary is looked at by itself.
                if refused := self.move(lines.move(done), numbers[done]):
                    return done, refused
                done += 1
        return done, None

    def probe(self, probe: requests.Probe, line: int) -> Refused | None:
        """By itself: from rest, and until it has met something."""
        self.rest()
        path = self.mover.path(probe.move, self.q, line=line, exact=self.exact)
        if isinstance(path, Refused):
            return path
        problem = ""
        if self.setup.stage is not None:
            probed = self.setup.stage.probed(probe, path, self.mover)
            path, problem = probed.path, probed.problem
        self._append(path)
        self.rest()
        if problem:
            self.events.append(Remark(line, "io", problem, self.now))
        return None

    def rest(self) -> None:
        """Motion ends here."""
        self._gather()
        if not self._paths:
            return
        setup = self.setup
        path = joined(self._paths)
        plan = planned(path, window=setup.window, profile=setup.profile, at=self.now)
        self.events.append(Run(plan, self.process, self.tool))
        self.now = plan.ends
        self._paths.clear()
        self._pass(plan)

    def stand(
        self,
        line: int,
        kind: Literal["dwell", "io", "process"],
        seconds: float,
        timeout: float | None = None,
    ) -> None:
        self.rest()
        self.events.append(Stand(line, kind, self.now, self.now + seconds, timeout))
        self.now += seconds

    def set_output(self, switch: requests.Output, line: int) -> None:
        """Now, or when the next motion begins."""
        self.events.append(Switch(line))
        if switch.with_motion:
            self._gather()  # the moves so far do not carry it
            self._with_next.append((line, switch))
        elif self.setup.stage is not None:
            self.events += self.setup.stage.meet(switch, line, self.now).remarks

    def end(self, line: int) -> None:
        """Ends the program: outputs that wait for a move are set now, if the dialect says so."""
        self.rest()
        if self.setup.stage is not None:
            left = self._with_next if sets_outputs_without_move(self.setup.dialect) else []
            for asked, switch in left:
                self.events += self.setup.stage.meet(switch, asked, self.now).remarks
            self.events += self.setup.stage.over(line, self.now)
        self._with_next.clear()

    def take(self) -> list[Event]:
        taken, self.events = self.events, []
        return taken

    def change_tool(self, tool: int, line: int) -> Refused | None:
        if self.setup.mount is None:
            return None
        self.rest()
        mover = self.setup.mount(tool)
        if isinstance(mover, Refused):
            return mover
        self._hold(mover)
        self.tool = tool
        self.events.append(Mounted(line, tool, self.q, self.now))
        return None

    def _hold(self, mover: Mover) -> None:
        """Move with it from now on. What it can do is asked once: the question is a slow one."""
        self.mover: Mover = mover
        self._straight_mover = mover if isinstance(mover, StraightMover) else None
        self._tool_mover = mover if isinstance(mover, ToolLineMover) else None

    def _pass(self, plan: Plan) -> None:
        """Time passes for whatever stands around, while the arm moves."""
        thrown, self._thrown = self._thrown, []
        if self.setup.stage is not None:
            spans = spans_of(plan)
            times = [
                Thrown(spans[line][0], switch, asked)
                for line, asked, switch in thrown
                if line in spans
            ]
            self.events += self.setup.stage.moved(plan, self.mover, times)

    def _gather(self) -> None:
        """The straight lines so far as one path."""
        if self._straight:
            assert self._straight_mover is not None
            straight = self._straight_mover.straight
            path = straight(self._straight, self.q, line=self._lines, exact=self.exact)
            self._straight.clear()
            self._lines.clear()
            self._append(path)

    def _append(self, path: Path) -> None:
        if not len(path):
            return
        entry = 0.0
        if self._paths and not self.exact:
            mover = self.mover
            entry = seam(self._paths[-1], path, mover.limits, mover.deviation)
        with_next, self._with_next = self._with_next, []
        if self._paths:
            self._thrown += [(int(path.line[0]), *asked) for asked in with_next]
        elif self.setup.stage is not None:  # this move begins now
            for asked, output in with_next:
                self.events += self.setup.stage.meet(output, asked, self.now).remarks
        self._paths.append(path.with_entry(entry))
        self.q = path.end[-1]


def spans_of(plan: Plan) -> dict[int, tuple[float, float]]:
    """When each line begins and ends; the blocks of a line stand together."""
    number, begins = plan.lines()
    if not len(number):  # a rapid to where the robot stands already
        return {}
    first = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    starts = begins[first].tolist()
    spans = zip(starts, [*starts[1:], plan.ends], strict=True)
    return dict(zip(number[first].tolist(), spans, strict=True))


def impossible(line: int, refused: Refused, text: str, known: Kind | None = None) -> Violation:
    """A line that is understood, but that the robot cannot do."""
    kinds: dict[int, Kind] = {
        JOINT_LIMIT: "joint_limit",
        UNSUPPORTED: "unsupported",
        NO_TOOL: "unsupported",
    }
    where = f" ({text.strip()})" if text else ""
    kind = known or kinds.get(refused.code, "unreachable")
    return Violation(line, kind, f"line {line}: {refused.reason}{where}", refused.code)
