"""Through a program without running it: motion planned from rest to rest, and what lies between.

Moves are collected up to the next point at which the controller waits for motion to end (a dwell,
a wait, a switch of arc or gas, a tool change, a pause), and planned at once. So memory and time
grow with the program and no faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.errors import Refused
from understudy.gcode import Modal, Problem, Step, interpret
from understudy.gcode import requests as ask
from understudy.gcode.dialect import Axes
from understudy.gcode.program import ProgramLine, program_lines
from understudy.jobs.setup import (
    ExplainingMover,
    Met,
    Mover,
    Remark,
    Setup,
    StraightMover,
    Thrown,
)
from understudy.motion.lines import seam
from understudy.motion.path import Floats, Path, joined
from understudy.motion.plan import Plan
from understudy.motion.stream import planned
from understudy.space.follow import Kind as Obstacle

Kind = Literal["syntax", "unsupported", "joint_limit", "unreachable", "singularity"]
UNSUPPORTED, JOINT_LIMIT, NO_TOOL = 20, 2, 38
Switching = ask.SetOutput | ask.SetAnalog
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


@dataclass(frozen=True, slots=True)
class Switch:
    """A line that sets an output; motion goes on."""

    line: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A line that cannot be run, and why; it is left out."""

    line: int
    kind: Kind
    message: str


Event = ProgramLine | Run | Stand | Switch | Violation | Remark
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
        return self._walker.mover.pose(self._walker.q)


class Walker:
    """Collects moves, plans them when they must end, and keeps the time."""

    def __init__(self, setup: Setup, start: Floats | None = None) -> None:
        self.setup = setup
        self.mover: Mover = setup.mover
        rest = np.array(setup.start or np.zeros(len(setup.mover.limits.velocity)))
        self.q: Floats = rest if start is None else start
        self.now = 0.0
        self.process = False
        self.exact = False
        self.tool = setup.modal.tool
        self.commanded: Axes | None = None
        self.events: list[Event] = []
        self._paths: list[Path] = []
        self._straight: list[ask.AxisMove] = []
        self._lines: list[int] = []
        self._with_next: list[tuple[int, Switching]] = []
        self._thrown: list[tuple[int, int, Switching]] = []

    def move(self, move: ask.Move, line: int) -> Refused | None:
        if isinstance(move, ask.AxisMove) and isinstance(self.mover, StraightMover):
            self._straight.append(move)
            self._lines.append(line)
            return None
        self._gather()
        path = self.mover.path(move, self.q, line=line, exact=self.exact)
        if isinstance(path, Refused):
            return path
        self._append(path)
        return None

    def probe(self, probe: ask.Probe, line: int) -> Refused | None:
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

    def throw(self, switch: Switching, line: int) -> None:
        """Now, or when the next motion begins."""
        self.events.append(Switch(line))
        if switch.with_motion:
            self._with_next.append((line, switch))
        elif self.setup.stage is not None:
            self.events += self.setup.stage.meet(switch, line, self.now).remarks

    def end(self, line: int) -> None:
        """Nothing comes any more: what waits for motion happens now."""
        self.rest()
        if self.setup.stage is not None:
            for asked, switch in self._with_next:
                self.events += self.setup.stage.meet(switch, asked, self.now).remarks
            self.events += self.setup.stage.over(line, self.now)
        self._with_next.clear()

    def take(self) -> list[Event]:
        taken, self.events = self.events, []
        return taken

    def change_tool(self, tool: int) -> Refused | None:
        if self.setup.mount is None:
            return None
        self.rest()
        mover = self.setup.mount(tool)
        if isinstance(mover, Refused):
            return mover
        self.mover, self.tool = mover, tool
        return None

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
            assert isinstance(self.mover, StraightMover)
            path = self.mover.straight(self._straight, self.q, line=self._lines, exact=self.exact)
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
        self._paths.append(path.with_entry(entry))
        self._thrown += [(int(path.line[0]), *asked) for asked in self._with_next]
        self._with_next.clear()
        self.q = path.end[-1]


class Reader:
    """Interprets lines and hands what they ask for to a walker."""

    def __init__(self, setup: Setup, walker: Walker) -> None:
        self._setup = setup
        self._walker = walker
        self._here = Here(walker)
        self._modal = setup.modal

    def read(self, line: ProgramLine) -> None:
        self._walker.events.append(line)
        if isinstance(line.block, Problem):
            self._refuse(line.number, line.block.refused())
            return
        step = interpret(line.block, self._modal, dialect=self._setup.dialect, position=self._here)
        if isinstance(step, Refused):
            self._refuse(line.number, step)
            return
        before, self._modal = self._modal, step.modal
        if step.requests:
            self._carry_out(line, step, before)

    def _carry_out(self, line: ProgramLine, step: Step, before: Modal) -> None:
        walker = self._walker
        for request in step.requests:
            move = request.move if isinstance(request, ask.GoHome | ask.Probe) else request
            kind: Kind | None = None
            if isinstance(move, MOVES):
                refused = self._move(line.number, request, move)
                kind = self._obstacle(move) if refused else None
            else:
                refused = self._other(line.number, request, before)
            if refused:
                walker.events.append(impossible(line.number, refused, line.text, kind))
                return
        if step.axes is not None and not isinstance(step.requests[-1], ask.Probe):
            walker.commanded = step.axes

    def _move(self, line: int, request: ask.Request, move: ask.Move) -> Refused | None:
        walker = self._walker
        walker.commanded = None
        if isinstance(request, ask.Probe):
            return walker.probe(request, line)
        return walker.move(move, line)

    def _other(self, line: int, request: ask.Request, before: Modal) -> Refused | None:
        walker = self._walker
        if isinstance(request, ask.Dwell):
            walker.rest()
            walker.stand(line, "dwell", self._met(request, line))
        elif isinstance(request, ask.WaitInput):
            walker.rest()
            known = self._setup.stage is not None
            seconds = self._met(request, line)
            walker.stand(line, "io", seconds, None if known else request.timeout)
        elif isinstance(request, ask.SetOutput | ask.SetAnalog):
            walker.throw(request, line)
        elif isinstance(request, ask.PathMode):
            walker.exact = self._setup.dialect.two_frames and request.name != "G64"
        elif self._rests(request, before):
            arc = isinstance(request, ask.Spindle) and self._setup.dialect.arm
            walker.rest()
            walker.stand(line, "process" if arc else "io", self._met(request, line))
        if isinstance(request, ask.Spindle):
            walker.process = request.direction != "M5"
        if isinstance(request, ask.ProgramEnd):
            walker.process = False
        if isinstance(request, ask.ToolChange):
            return walker.change_tool(request.tool)
        return None

    def _met(self, request: ask.Request, line: int) -> float:
        """Seconds for which a request holds the program up, now that the robot stands."""
        walker, stage = self._walker, self._setup.stage
        if stage is not None:
            met: Met = stage.meet(request, line, walker.now)
            walker.events += met.remarks
            return met.seconds
        if isinstance(request, ask.Dwell):
            return request.seconds
        return 0.0 if isinstance(request, ask.WaitInput) else self._setup.hold_up(request)

    def _obstacle(self, move: ask.Move) -> Kind | None:
        """What is in the way of a move that was refused."""
        mover = self._walker.mover
        if not isinstance(mover, ExplainingMover):
            return None
        return OBSTACLES.get(mover.obstacle(move, self._walker.q))

    def _rests(self, request: ask.Request, before: Modal) -> bool:
        """Does motion end before this? A switch that is there already is none."""
        if isinstance(request, ask.Spindle):
            return (request.direction, request.speed) != (before.spindle, before.speed)
        if isinstance(request, ask.Coolant):
            return (request.mist, request.flood) != (before.mist, before.flood)
        if isinstance(request, ask.Overrides):
            return (request.speed, request.hold) != (before.speed_override, before.hold_allowed)
        if isinstance(request, ask.OffsetsChanged):
            return self._setup.rests_at_offsets and _zero(before) != _zero(self._modal)
        if isinstance(request, ask.ToolChange):
            return request.physical
        return isinstance(request, ask.ProgramPause | ask.ProgramEnd)

    def _refuse(self, line: int, refused: Refused) -> None:
        kind: Kind = "unsupported" if refused.code == UNSUPPORTED else "syntax"
        self._walker.events.append(Violation(line, kind, refused.reason))


def _zero(modal: Modal) -> tuple[object, ...]:
    """All that makes the zero in force; a system that is not chosen has no part in it."""
    chosen = modal.coordinates
    return chosen, modal.offsets[chosen], modal.g92, modal.tool_length


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
    return Violation(line, kind, f"line {line}: {refused.reason}{where}")


MOVES = (ask.AxisMove, ask.AxisArc, ask.JointMove, ask.LineMove, ask.ArcMove, ask.JointArc)


def walk(program: str | bytes, setup: Setup, start: Floats | None = None) -> Iterator[Event]:
    """All that happens in a program, in the order in which it is known."""
    walker = Walker(setup, start)
    reader = Reader(setup, walker)
    last = 0
    for line in program_lines(program, setup.dialect):
        reader.read(line)
        last = line.number if line.text.strip() else last
        yield from walker.take()
    walker.end(last)
    yield from walker.take()
