"""Walks through a program without running it: every line interpreted, every motion planned.

Moves are collected up to the next point at which the controller waits for motion to end (a dwell,
a wait, a switch of arc or gas, a tool change, a pause), and planned together there. A motion of
many thousand pieces is planned in parts (`motion.parts`), and a long arc is divided in stretches,
so that memory does not grow with the program. Which requests are moves, and before which motion
ends, stands in `gcode.requests`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import (
    Block,
    Interpretation,
    Modal,
    Problem,
    after_refusal,
    interpret,
    requests,
)
from understudy.gcode.blocks import Group
from understudy.gcode.dialect import MM_PER_INCH, Axes, Dialect
from understudy.gcode.modal import work_offset
from understudy.gcode.program import COLUMNS, PlainLines, ProgramLine, ProgramPart, program_parts
from understudy.gcode.requests import (
    Dwell,
    GoHome,
    LineMove,
    Move,
    PathMode,
    Probe,
    ProgramEnd,
    Request,
    SetAnalog,
    SetOutput,
    Spindle,
    ToolChange,
    WaitInput,
    delay_kind,
    homes_arm,
    move_of,
    rests_motion,
    sets_outputs_without_move,
    stops_at_corners,
)
from understudy.gcode.work import LAST_LINE_NUMBER
from understudy.motion.lines import seam
from understudy.motion.path import Floats, Ints, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import PartPlanner
from understudy.offline.setup import (
    ArcMover,
    ExplainingMover,
    Mover,
    Remark,
    Setup,
    StraightMover,
    TimedOutput,
    ToolLineMover,
)
from understudy.space.compiled import compiled
from understudy.space.kinematics.follow import FailureKind as Obstacle
from understudy.space.pose import Pose
from understudy.space.transform import roll_pitch_yaw, rotation
from understudy.units import DEG, MINUTE, MM

# ── straight lines, many at once ──────────────────────────────────────────────────────────────────
#
# A contour is thousands of lines that name a place, perhaps a feed, and nothing else. They are
# interpreted in columns, with the result of `interpret`, as if each could be run: a value that a
# line does not name stays as the line before commanded it.


FIELDS: dict[Group, str] = {
    "motion": "motion",
    "distance": "distance",
    "units": "units",
    "feed mode": "feed_mode",
}
"""Fields of the modal state of the codes that may stand in such a line."""
LETTERS = frozenset(COLUMNS)
PLACES, ANGLES, FEED, NUMBER = slice(0, 3), slice(3, 6), COLUMNS.index("F"), COLUMNS.index("N")
NAMED_PLACES = frozenset(COLUMNS[PLACES])


@dataclass(frozen=True, slots=True, eq=False)
class Straights:
    """`targets` (lines, 6) of the lines in m and rad; `paces` in mm or deg per second."""

    targets: Floats
    paces: Floats
    feeds: Floats
    numbers: Floats
    modal: Modal

    def __len__(self) -> int:
        return len(self.paces)

    @property
    def speeds(self) -> Floats:
        """m/s."""
        return self.paces * MM

    def move(self, k: int) -> LineMove:
        """The move of a line."""
        pace = float(self.paces[k])
        return LineMove(Pose(*self.targets[k].tolist()), pace * MM, pace * DEG)

    def after(self, k: int) -> Modal:
        """The modal state after a line."""
        return replace(self.modal, feed=float(self.feeds[k]), line=int(self.numbers[k]))


def is_straight(block: Block, modal: Modal) -> bool:
    """Whether a line is only a straight line of the tool and keeps all modes, if its numbers are
    right: the form of a line decides."""
    values = block.values
    if modal.motion != "G1" or modal.feed_mode != "G94" or NAMED_PLACES.isdisjoint(values):
        return False
    for group, name in block.commands.items():
        if group not in FIELDS or getattr(modal, FIELDS[group]) != name:
            return False
    return LETTERS.issuperset(values) and block.message is None


def straight_runs(part: ProgramPart, modal: Modal) -> list[int]:
    """For each line of a part the first line from there on that is no straight line of the tool
    under these modes."""
    fits = [block is not None and is_straight(block, modal) for block in part.examples]
    able = np.array([*fits, False])[part.form]  # a line without a form has -1, the last
    if able.any():
        feed, number = part.values[:, FEED], part.values[:, NUMBER]
        given = feed > 0.0
        able &= (given | np.isnan(feed) if modal.feed > 0.0 else given) & ~(
            number > LAST_LINE_NUMBER
        )
    ends = np.where(able, len(part), np.arange(len(part)))
    found: list[int] = np.minimum.accumulate(ends[::-1])[::-1].tolist()
    return found


def straights(values: Floats, modal: Modal, dialect: Dialect, here: Axes) -> Straights:
    """Straight lines (`PlainLines.values`) under the modes in force, from a pose (mm and deg)."""
    unit = MM_PER_INCH if modal.units == "G20" else 1.0
    incremental = modal.distance == "G91"
    offset = (0.0,) * 6 if incremental else work_offset(modal)
    targets, feeds = np.empty((len(values), 6)), np.empty(len(values))
    straight_targets(values, unit, incremental, offset[:3], here[:3], modal.feed, targets, feeds)
    targets[:, ANGLES] = _angles(values[:, ANGLES], here[3:], None if incremental else offset[3:])
    targets[:, ANGLES] *= DEG
    paces = feeds if dialect.feed_per_second else feeds / MINUTE
    return Straights(targets, paces, feeds, np.nan_to_num(values[:, NUMBER]), modal)


Three = tuple[float, float, float]


@compiled
def straight_targets(  # kernel
    values: Floats,
    unit: float,
    incremental: bool,
    offset: Three,
    here: Three,
    feed: float,
    targets: Floats,
    feeds: Floats,
) -> None:
    """Fills the places (m) of targets, and the feeds; what a line does not name stays."""
    at = np.array(here)
    for k in range(len(values)):
        for axis in range(3):
            given = values[k, axis] * unit
            if not np.isnan(given):
                at[axis] = at[axis] + given if incremental else given + offset[axis]
            targets[k, axis] = at[axis] * MM
        given = values[k, FEED] * unit
        feed = feed if np.isnan(given) else given
        feeds[k] = feed


def _angles(given: Floats, here: Sequence[float], offset: Sequence[float] | None) -> Floats:
    """The angles of every line; those not named are read from the pose commanded last."""
    found, named = np.empty_like(given), ~np.isnan(given)
    k, angles = 0, (here[0], here[1], here[2])
    for turn in [*np.flatnonzero(named.any(axis=1)).tolist(), len(given)]:
        while k < turn:
            before, angles = angles, plain_angles(*angles) if k else angles
            same = k > 0 and before == angles
            found[k : turn if same else k + 1] = angles
            k = turn if same else k + 1
        if turn < len(given):
            if k and (offset is None or not named[turn].all()):
                angles = plain_angles(*angles)
            zero = angles if offset is None else offset
            row = np.where(named[turn], given[turn] + zero, angles)
            found[turn], angles, k = row, tuple(row.tolist()), turn + 1
    return found


@lru_cache(maxsize=1024)
def plain_angles(rx: float, ry: float, rz: float) -> tuple[float, float, float]:
    """The same rotation with the angles that a matrix gives; degrees."""
    a, b, c = roll_pitch_yaw(rotation(rx * DEG, ry * DEG, rz * DEG))
    return a / DEG, b / DEG, c / DEG


# ── events of a program ───────────────────────────────────────────────────────────────────────────


ViolationKind = Literal[
    "syntax", "unsupported", "joint_limit", "unreachable", "singularity", "process"
]
UNSUPPORTED, JOINT_LIMIT, NO_TOOL = 20, 2, 38
NOT_DRILLED = "{} is accepted by the controller, which then moves nothing: no hole is drilled"
MOST_AHEAD = 1024
"""Lines that are read ahead, or taken together, at most."""
OBSTACLES: dict[Obstacle | None, ViolationKind] = {
    Obstacle.LIMIT: "joint_limit",
    Obstacle.UNREACHABLE: "unreachable",
    Obstacle.FLIP: "singularity",
    Obstacle.SINGULAR: "singularity",
}


@dataclass(frozen=True, slots=True)
class PlannedMotion:
    """Motion with one tool from rest to rest, or a part of it.

    `process`: the arc burns; `probe`: it ends where the tool touches something, or leaves it;
    `goes_on`: the next part follows at speed, perhaps on the same line.
    """

    plan: Plan
    process: bool
    tool: int = 0
    probe: bool = False
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Standstill:
    """A line during which the robot stands: a dwell, a switch, or a wait.

    `timeout`: the longest time of a wait whose end is not known.
    """

    line: int
    kind: Literal["dwell", "io", "process"]
    begins: float
    ends: float
    timeout: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PoseMotion:
    """Motion of a robot without axes in one line: poses (mm, deg) at some times (s) of it."""

    line: int
    times: Floats
    poses: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ToolMounted:
    """A line that mounted another tool, where the robot stood then."""

    line: int
    tool: int
    q: Floats
    time_s: float


@dataclass(frozen=True, slots=True)
class OutputSet:
    """A line that sets an output; motion goes on."""

    line: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A line that cannot be run, and why; it is left out. `code`: grblHAL's number of the error."""

    line: int
    kind: ViolationKind
    message: str
    code: int = 0


Event = (
    ProgramLine
    | PlainLines
    | PlannedMotion
    | PoseMotion
    | ToolMounted
    | Standstill
    | OutputSet
    | Violation
    | Remark
)
"""A line comes when it begins, some of them together in columns; its motion comes when the motion
it belongs to is complete."""


# ── the walk ──────────────────────────────────────────────────────────────────────────────────────


class WalkerPosition:
    """`Position` of a walker; the pose is computed only if a line needs it."""

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
    """Collects moves, plans them when they must end, and keeps the time.

    ``in_parts``: the caller calls `plan_part` after every line.
    """

    def __init__(
        self, setup: Setup, start: Floats | None = None, *, in_parts: bool = False
    ) -> None:
        self.setup = setup
        self.devices = None if setup.devices is None else setup.devices()
        self._in_parts = in_parts
        self._use(setup.mover)
        rest = np.array(setup.start or np.zeros(len(setup.mover.limits.velocity)))
        self.q: Floats = rest if start is None else start
        self.now = 0.0
        self.process = False
        self.exact = False
        self.tool = setup.modal.tool
        self.commanded: Axes | None = None
        self.here = WalkerPosition(self)
        self.events: list[Event] = []
        self._motion = PartPlanner(setup.window, setup.profile)
        self._arc: Iterator[Path] = iter(())
        self._straight: list[requests.AxisMove] = []
        self._lines: list[int] = []
        self._with_next: list[tuple[int, requests.Output]] = []
        self._outputs: list[tuple[int, int, requests.Output]] = []

    def move(self, move: requests.Move, line: int) -> Refused | None:
        if isinstance(move, requests.AxisMove) and self._straight_mover is not None:
            self._straight.append(move)
            self._lines.append(line)
            return None
        self._gather()
        if self._arc_mover is not None:
            arc = self._arc_mover.stretches(move, self.q, line=line, exact=self.exact)
            if isinstance(arc, Refused):
                return arc
            if arc is not None:
                self._arc = arc
                if not self._in_parts:
                    self._gather()
                return None
        path = self.mover.path(move, self.q, line=line, exact=self.exact)
        if isinstance(path, Refused):
            return path
        self._append(path)
        return None

    def plan_part(self) -> bool:
        """Plans what is final of a long motion and adds the next stretch of an arc; whether there
        may be more to plan."""
        if len(self._straight) >= MOST_AHEAD:
            self._gather()
        if plan := self._motion.part(self.now):
            self._add(plan, goes_on=True)
            return True
        stretch = next(self._arc, None)
        if stretch is not None:
            self._append(stretch)
        return stretch is not None

    @property
    def takes_tool_lines(self) -> bool:
        """Whether lines of the tool can be collected and passed on together."""
        return self._tool_mover is not None and not self.exact

    def tool_lines(self, lines: Straights, numbers: Ints) -> tuple[int, Refused | None]:
        """Takes many lines at once; returns the number taken, and why the next one was refused."""
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
                # The mover takes this line only alone.
                if refused := self.move(lines.move(done), int(numbers[done])):
                    return done, refused
                done += 1
        return done, None

    def probe(self, probe: requests.Probe, line: int) -> Refused | None:
        """Moves from rest until contact, or to the end."""
        self.rest()
        path = self.mover.path(probe.move, self.q, line=line, exact=self.exact)
        if isinstance(path, Refused):
            return path
        problem = ""
        if self.devices is not None:
            probed = self.devices.probe_end(probe, path, self.mover)
            path, problem = probed.path, probed.problem
        self._append(path)
        self.rest(probe=not problem)
        if problem:
            self.events.append(Remark(line, "io", problem, self.now))
        return None

    def rest(self, *, probe: bool = False) -> None:
        """Ends the motion so far: plans it, and advances the time to its end."""
        self._gather()
        if plan := self._motion.rest(self.now):
            self._add(plan, probe=probe)

    def _add(self, plan: Plan, *, probe: bool = False, goes_on: bool = False) -> None:
        self.events.append(PlannedMotion(plan, self.process, self.tool, probe, goes_on))
        self.now = plan.ends
        self._advance_devices(plan, goes_on=goes_on)

    def stand(
        self,
        line: int,
        kind: Literal["dwell", "io", "process"],
        seconds: float,
        timeout: float | None = None,
    ) -> None:
        self.rest()
        self.events.append(Standstill(line, kind, self.now, self.now + seconds, timeout))
        self.now += seconds

    def set_output(self, output: requests.Output, line: int) -> None:
        """Sets an output now, or when the next move begins."""
        self.events.append(OutputSet(line))
        self._gather()  # the moves so far are not the next one
        if output.with_motion:
            self._with_next.append((line, output))
        elif self.devices is not None:
            self.events += self.devices.carry_out(output, line, self.now).remarks

    def end(self, line: int) -> None:
        """Ends the program: outputs that wait for a move are set now, in dialects that do so."""
        self.rest()
        if self.devices is not None:
            left = self._with_next if sets_outputs_without_move(self.setup.dialect) else []
            for asked, output in left:
                self.events += self.devices.carry_out(output, asked, self.now).remarks
            self.events += self.devices.program_ended(line, self.now)
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
        self._use(mover)
        self.tool = tool
        self.events.append(ToolMounted(line, tool, self.q, self.now))
        return None

    def _use(self, mover: Mover) -> None:
        """Moves with it from now on; its Protocols are looked up once, since that is slow."""
        self.mover: Mover = mover
        self._straight_mover = mover if isinstance(mover, StraightMover) else None
        self._tool_mover = mover if isinstance(mover, ToolLineMover) else None
        self._arc_mover = mover if isinstance(mover, ArcMover) else None

    def _advance_devices(self, plan: Plan, *, goes_on: bool) -> None:
        """Advances the devices through a motion; outputs of lines behind it wait."""
        outputs, self._outputs = self._outputs, []
        if goes_on:
            last = int(plan.path.line[-1])
            self._outputs = [each for each in outputs if each[0] > last]
        if self.devices is not None:
            spans = spans_of(plan) if outputs else {}
            times = [
                TimedOutput(spans[line][0], output, asked)
                for line, asked, output in outputs
                if line in spans
            ]
            self.events += self.devices.motion_ended(plan, self.mover, times)

    def _gather(self) -> None:
        """Appends the straight lines so far as one path, and the rest of an arc."""
        for stretch in self._arc:
            self._append(stretch)
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
        if self._motion and not self.exact:
            mover = self.mover
            entry = seam(self._motion.last, path, mover.limits, mover.deviation)
        with_next, self._with_next = self._with_next, []
        if self._motion:
            self._outputs += [(int(path.line[0]), *asked) for asked in with_next]
        elif self.devices is not None:  # this move begins now
            for asked, output in with_next:
                self.events += self.devices.carry_out(output, asked, self.now).remarks
        self._motion.append(path.with_entry(entry))
        self.q = path.end[-1]


def line_spans(plan: Plan) -> tuple[Ints, Floats, Floats]:
    """The lines of a plan, and begin and end of each; the blocks of a line are adjacent."""
    number, begins = plan.lines()
    if not len(number):  # a rapid to where the robot stands already
        return number, begins, begins
    first = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    starts = begins[first]
    return number[first], starts, np.append(starts[1:], plan.ends)


def spans_of(plan: Plan) -> dict[int, tuple[float, float]]:
    """Begin and end of each line."""
    lines, begins, ends = (column.tolist() for column in line_spans(plan))
    return dict(zip(lines, zip(begins, ends, strict=True), strict=True))


def impossible(
    line: int, refused: Refused, text: str, known: ViolationKind | None = None
) -> Violation:
    """The violation of a line that is correct but that the robot cannot do."""
    kinds: dict[int, ViolationKind] = {
        JOINT_LIMIT: "joint_limit",
        UNSUPPORTED: "unsupported",
        NO_TOOL: "unsupported",
    }
    where = f" ({text.strip()})" if text else ""
    kind = known or kinds.get(refused.code, "unreachable")
    return Violation(line, kind, f"line {line}: {refused.reason}{where}", refused.code)


class Reader:
    """Interprets lines and passes their requests to a walker."""

    def __init__(self, setup: Setup, walker: Walker) -> None:
        self._setup = setup
        self._walker = walker
        self.modal = setup.modal

    def read(self, line: ProgramLine) -> None:
        self.carry_out(line, self.understood(line))

    def understood(self, line: ProgramLine) -> Interpretation | Refused:
        """The interpretation of a line if it comes next; changes nothing."""
        if isinstance(line.block, Problem):
            return line.block.refused()
        return interpret(
            line.block, self.modal, dialect=self._setup.dialect, position=self._walker.here
        )

    def carry_out(self, line: ProgramLine, step: Interpretation | Refused) -> None:
        self._walker.events.append(line)
        if isinstance(step, Refused):
            self.modal = after_refusal(self.modal)
            self._refuse(line.number, step)
            return
        before, self.modal = self.modal, step.modal
        if step.refusal is not None:
            self.modal = after_refusal(self.modal)
            self._refuse(line.number, step.refusal.refused)
        if step.accepted_only:
            self._note_missing_motion(line.number, step)
        if step.requests:
            self._carry_out(line, step, before)

    def leave_out(self, line: ProgramLine, move: Move, refused: Refused) -> None:
        """Reports a line whose move was refused."""
        found = impossible(line.number, refused, line.text, self._obstacle(move))
        self._walker.events.append(found)

    def _note_missing_motion(self, line: int, step: Interpretation) -> None:
        """The parser of the controller goes on from the target, the robot stands where it was."""
        message = NOT_DRILLED.format(step.accepted_only)
        self._walker.events.append(Remark(line, "unsupported", message, np.nan, slight=True))
        self._walker.commanded = step.axes

    def _carry_out(self, line: ProgramLine, step: Interpretation, before: Modal) -> None:
        walker = self._walker
        for request in step.requests:
            if (move := move_of(request)) is not None:
                if refused := self._move(line.number, request, move):
                    self.leave_out(line, move, refused)
                    return
            elif refused := self._other(line.number, request, before):
                walker.events.append(impossible(line.number, refused, line.text))
                return
        if step.axes is not None and not isinstance(step.requests[-1], Probe):
            walker.commanded = step.axes

    def _move(self, line: int, request: Request, move: Move) -> Refused | None:
        walker = self._walker
        walker.commanded = None
        if isinstance(request, Probe):
            return walker.probe(request, line)
        refused = walker.move(move, line)
        homes = isinstance(request, GoHome) and homes_arm(request, self._setup.dialect)
        if refused is None and homes:
            walker.rest()
        return refused

    def _other(self, line: int, request: Request, before: Modal) -> Refused | None:
        """Carries out a request that is no move."""
        walker, setup = self._walker, self._setup
        if isinstance(request, SetOutput | SetAnalog):
            walker.set_output(request, line)
        elif isinstance(request, PathMode):
            walker.exact = stops_at_corners(request, setup.dialect)
        elif rests_motion(
            request, before, self.modal, dialect=setup.dialect, at_offsets=setup.rests_at_offsets
        ):
            walker.rest()
            waits = walker.devices is None and isinstance(request, WaitInput)
            timeout = getattr(request, "timeout", None) if waits else None
            kind = delay_kind(request, setup.dialect)
            walker.stand(line, kind, self._delay(request, line), timeout)
        if isinstance(request, Spindle):
            walker.process = request.direction != "M5"
        if isinstance(request, ProgramEnd):
            walker.process = False
        if isinstance(request, ToolChange):
            return walker.change_tool(request.tool, line)
        return None

    def _delay(self, request: Request, line: int) -> float:
        """Seconds for which a request keeps the program, now that the robot stands."""
        walker, devices = self._walker, self._walker.devices
        if devices is not None:
            delay = devices.carry_out(request, line, walker.now)
            walker.events += delay.remarks
            return delay.seconds
        if isinstance(request, Dwell):
            return request.seconds
        return 0.0 if isinstance(request, WaitInput) else self._setup.switch_seconds(request)

    def _obstacle(self, move: Move) -> ViolationKind | None:
        """The kind of violation of a refused move."""
        mover = self._walker.mover
        if not isinstance(mover, ExplainingMover):
            return None
        return OBSTACLES.get(mover.obstacle(move, self._walker.q))

    def _refuse(self, line: int, refused: Refused) -> None:
        kind: ViolationKind = "unsupported" if refused.code in (UNSUPPORTED, NO_TOOL) else "syntax"
        self._walker.events.append(Violation(line, kind, refused.reason, refused.code))


class ReadAhead:
    """Reads lines of the tool ahead in columns, as if each could be run, and carries many out at
    once.

    If one cannot, the lines behind it are read again, since the arm is elsewhere then.
    """

    def __init__(self, reader: Reader, walker: Walker, dialect: Dialect) -> None:
        self._reader = reader
        self._walker = walker
        self._dialect = dialect
        self._waiting: PlainLines | None = None
        self._most = 1
        self._part: ProgramPart | None = None
        self._runs: dict[tuple[str, ...], list[int]] = {}

    def read(self, part: ProgramPart, k: int) -> int:
        """Reads line k of a part, or several from there on; returns their number."""
        waiting = self._waiting
        count = min(self._straight(part, k), self._most - (len(waiting) if waiting else 0))
        if not count:
            self.flush()
            self._reader.read(part.line(k))
            return 1
        lines = part.plain(k, k + count)
        self._waiting = lines = waiting.then(lines) if waiting else lines
        if len(lines) >= self._most:
            self.flush()
        return count

    def _straight(self, part: ProgramPart, k: int) -> int:
        """The number of straight lines of the tool from line k on."""
        modal = self._reader.modal
        if modal.motion != "G1" or not (self._dialect.two_frames and self._walker.takes_tool_lines):
            return 0
        if part is not self._part:
            self._part, self._runs = part, {}
        modes = (modal.distance, modal.units, modal.feed_mode, "F" if modal.feed > 0.0 else "")
        runs = self._runs.get(modes)
        if runs is None:
            runs = self._runs[modes] = straight_runs(part, modal)
        return runs[k] - k

    def flush(self) -> None:
        """Carries out the lines that wait."""
        lines, self._waiting = self._waiting, None
        if lines:
            self._carry_out(lines)

    def _carry_out(self, lines: PlainLines) -> None:
        reader, walker = self._reader, self._walker
        moves = straights(lines.values, reader.modal, self._dialect, walker.here.pose)
        walker.commanded = None
        done, refused = walker.tool_lines(moves, lines.numbers)
        if done:
            walker.events.append(lines.rows(0, done))
        if refused is None:
            self._most = min(2 * self._most, MOST_AHEAD)
            reader.modal = moves.after(-1)
            return
        self._most = 1
        line = lines.line(done)
        walker.events.append(line)
        reader.leave_out(line, moves.move(done), refused)
        reader.modal = moves.after(done)
        done += 1
        while done < len(lines):
            count = min(self._most, len(lines) - done)
            self._carry_out(lines.rows(done, done + count))
            done += count


def walk(program: str | bytes, setup: Setup, start: Floats | None = None) -> Iterator[Event]:
    """The events of a program, in the order in which they are known."""
    walker = Walker(setup, start, in_parts=True)
    reader = ReadAhead(Reader(setup, walker), walker, setup.dialect)
    last = 0
    for part in program_parts(program, setup.dialect):
        k = 0
        while k < len(part):
            k += reader.read(part, k)
            while walker.plan_part():
                yield from walker.take()
            if walker.events:
                yield from walker.take()
        last = part.last_text or last
    reader.flush()
    walker.end(last)
    yield from walker.take()
