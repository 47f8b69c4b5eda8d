"""Checks the events of a program one by one and makes the report."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.gcode import ARM, Block, Modal
from understudy.gcode.dialect import ZERO
from understudy.gcode.program import PlainLines, ProgramLine, program_parts
from understudy.motion.cartesian import greatest_bends
from understudy.motion.path import TOOL, Floats, Ints, Path, path_of
from understudy.motion.plan import Motion, Plan
from understudy.motion.profile import trapezoid
from understudy.offline.cycle_time import Ledger, Rows
from understudy.offline.robot import Arm, Machine, Subject, length_of
from understudy.offline.setup import Remark
from understudy.offline.validate.clearance import (
    MOST_PAIRS,
    Clearance,
    Contacts,
    Proof,
    ProvenLines,
    Stretch,
    Thing,
    stretches,
    thing,
)
from understudy.offline.validate.report import (
    MOST_FINDINGS,
    Course,
    Finding,
    FindingKind,
    JudgeOptions,
    LineTable,
    Report,
)
from understudy.offline.walk import (
    Event,
    PlannedMotion,
    PoseMotion,
    ToolMounted,
    Violation,
    straights,
)
from understudy.space.collision.detector import LeftOut
from understudy.space.collision.sweep import Verdict, greatest_slopes
from understudy.space.compiled import compiled
from understudy.space.kinematics.follow import distances, kinds
from understudy.units import digits_apart

JOINTS, POSE = frozenset("ABCUVW"), frozenset("XYZABC")
AXES = JOINTS | POSE
Bools = NDArray[np.bool_]
HOMES = ("G28", "G30")
MOST_POINTS = 2000
"""Points of the path that are kept for the picture; above twice as many, every second is
dropped."""


@dataclass(slots=True)
class PositionKnowledge:
    """Is the arm's position still known? Not after a refused line, until the next complete absolute
    target."""

    lost: bool = False
    absolute: bool = True

    def read(self, block: object) -> None:
        """Reads the next line of the program."""
        if not isinstance(block, Block) or not (self.lost or "distance" in block.commands):
            return
        named = set(block.commands.values())
        self.absolute = "G90" in named or (self.absolute and "G91" not in named)
        given = block.values.keys()
        complete = self.absolute and (given >= JOINTS or given >= POSE)
        if complete or (named & set(HOMES) and not given & AXES):
            self.lost = False

    def line_refused(self, block: object) -> None:
        moves = not isinstance(block, Block) or bool(block.values.keys() & AXES)
        self.lost = self.lost or moves


class Courses:
    """Samples of the path for the picture; memory does not grow with the program."""

    def __init__(self) -> None:
        self._columns: list[list[NDArray[Any]]] = [[] for _ in range(4)]
        self._arms: dict[int, Arm | Machine] = {}
        self._kept = 0
        self._every = 1
        self._seen = 0

    def choose(self, count: int) -> slice:
        """Which of the next ``count`` samples are kept; `add` takes those."""
        first = -self._seen % self._every
        self._seen += count
        return slice(first, count, self._every)

    def add(self, q: Floats, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine) -> None:
        """Adds samples of a run."""
        if not len(q):
            return
        self._arms[arm.tool] = arm
        added = (q, lines, times, np.full(len(q), arm.tool))
        for column, values in zip(self._columns, added, strict=True):
            column.append(values)
        self._kept += len(q)
        while self._kept > 2 * MOST_POINTS:
            self._columns = [[np.concatenate(column)[::2]] for column in self._columns]
            self._every *= 2
            self._kept = len(self._columns[0][0])

    def course(self) -> Course:
        if not self._kept:
            return Course()
        q, lines, times, tools = (np.concatenate(column) for column in self._columns)
        points: Floats | None = None
        for tool, arm in self._arms.items():
            rows = tools == tool
            of_tool = arm.skeleton(q[rows])
            if points is None:
                points = np.empty((len(q), *of_tool.shape[1:]))
            points[rows] = of_tool
        assert points is not None
        return Course(q, points, lines, times, tools)


class Findings:
    """A bounded list of findings; further ones are counted by kind."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.known: list[Finding] = []
        self.unkept: Counter[str] = Counter()
        self._last: tuple[int, str] = (0, "")

    def add(self, found: Finding) -> int | None:
        """Keeps a finding and returns its index; None: it was only counted."""
        if len(self.known) < self._most:
            self.known.append(found)
            return len(self.known) - 1
        self.unkept[found.kind] += (found.line, found.kind) != self._last
        self._last = found.line, found.kind
        return None

    def in_order(self, start_of: Callable[[int], float]) -> list[Finding]:
        """Sorted by line and time; a finding without a time gets the start of its line."""
        timed = (
            each if np.isfinite(each.time_s) else replace(each, time_s=start_of(each.line))
            for each in self.known
        )
        return sorted(timed, key=lambda each: (each.line, each.time_s))


UNSURE, MOVES, UNPROVEN = 1, 2, 4
ROOM = 1024


class Verdicts:
    """What is known about each line, by its number."""

    def __init__(self) -> None:
        self._clearance, self._seen = array("d"), array("d")
        self._flags = bytearray()
        self.proofs = 0
        """Number of lines that were swept, or of their parts."""
        self.moves = False
        """Whether any line moves the robot."""

    def unsure(self, lines: ArrayLike) -> None:
        """These lines cannot be proven."""
        self._flag(lines, UNSURE)

    def moving(self, lines: ArrayLike) -> None:
        self._flag(lines, MOVES)
        self.moves = True

    def swept(self, line: int, clearance: float, seen: float, *, proven: bool) -> None:
        """A line, or the next part of it, was swept; infinite: nothing can touch."""
        if line >= len(self._flags):
            self._make_room(line)
        self.proofs += 1
        if not self._clearance[line] <= clearance:  # nan: not swept before
            self._clearance[line] = clearance
        if not self._seen[line] <= seen:
            self._seen[line] = seen
        if not proven:
            self._flags[line] |= UNPROVEN

    def proven(self, found: ProvenLines) -> None:
        """Lines were swept and proven; each comes once."""
        lines = found.lines
        self._make_room(int(lines.max(initial=0)))
        self.proofs += len(lines)
        columns = ((self._clearance, found.clearance), (self._seen, found.seen))
        for column, values in columns:
            known = np.frombuffer(column)
            kept = known[lines]
            known[lines] = np.where(kept <= values, kept, values)  # nan: not swept before

    def table(self, rows: Rows) -> LineTable:
        """The lines of the report."""
        numbers = rows.numbers
        self._make_room(int(numbers.max(initial=0)))
        flags = np.frombuffer(self._flags, dtype=np.uint8)[numbers]
        clearance, seen = (
            np.frombuffer(column)[numbers] for column in (self._clearance, self._seen)
        )
        for column in (clearance, seen):
            column[np.isinf(column)] = np.nan
        proven, moves = (flags & (UNSURE | UNPROVEN)) == 0, (flags & MOVES) != 0
        return LineTable(rows, clearance, seen, proven, moves)

    def _flag(self, lines: ArrayLike, flag: int) -> None:
        numbers = np.asarray(lines, dtype=np.int64)
        self._make_room(int(numbers.max(initial=0)))
        np.frombuffer(self._flags, dtype=np.uint8)[numbers] |= flag

    def _make_room(self, line: int) -> None:
        """Makes room for the lines up to this number."""
        if line >= len(self._flags):
            more = max(line + 1, ROOM, len(self._flags) * 3 // 2) - len(self._flags)
            for column in (self._clearance, self._seen):
                column.frombytes(np.full(more, np.nan).tobytes())
            self._flags.extend(bytes(more))


Worse = Callable[[Finding], tuple[float, ...]]


class WorstFindings:
    """Keeps the worst finding of each line, of lines that come in several parts."""

    def __init__(self, findings: Findings, worse: Worse) -> None:
        self._findings = findings
        self._worse = worse
        self._index: dict[tuple[int, str], int] = {}

    def add(self, found: Finding, key: str) -> None:
        known = self._index.get((found.line, key))
        kept = self._findings.known
        if known is None:
            index = self._findings.add(found)
            if index is not None:
                self._index[found.line, key] = index
        elif self._worse(found) > self._worse(kept[known]):
            kept[known] = found

    def forget_before(self, line: int) -> None:
        """Lines before this one do not come again."""
        self._index = {key: index for key, index in self._index.items() if key[0] >= line}


def _feed_excess(found: Finding) -> tuple[float, ...]:
    """A speed that the joints cannot follow counts before an acceleration, that before a jerk."""
    rank = {"jerk": 0.0, "acceleration": 1.0}.get(found.kind, 2.0)
    return (rank, found.factor)


class Judge:
    """Takes the events of a walk in order and collects findings, proofs and times."""

    def __init__(self, subject: Subject, options: JudgeOptions, threads: int = 1) -> None:
        """``threads``: for the sweeps of a long program; `close` ends them."""
        self._subject = subject
        self._options = options
        self._ledger = Ledger()
        self._clearance = Clearance(subject.environment, options, threads)
        most = max(options.most_violations or 0, MOST_FINDINGS)
        self._found, self._warnings = Findings(most), Findings(most)
        self._slight = self._found if options.strict else self._warnings
        self._sampled = WorstFindings(self._found, lambda found: (found.excess,))
        self._too_fast = WorstFindings(self._found, _feed_excess)
        self._slowed = WorstFindings(self._slight, _feed_excess)
        self._verdicts = Verdicts()
        self._position = PositionKnowledge()
        self._line = ProgramLine(0, "", Block())
        self._start = subject.start
        self._open: dict[Thing, int] = {}
        self._crashes: dict[int, Finding] = {}
        self._way = 0.0
        self._courses = Courses()
        self._left_out: dict[LeftOut, None] = {}
        self._open_meshes: dict[str, None] = {}
        self._arms: set[Arm] = set()

    def add(self, event: Event) -> None:
        self._ledger.add(event)
        if isinstance(event, ProgramLine):
            self._read(event)
        elif isinstance(event, PlainLines):
            self._stand_at_start(event.number)
            for line in event if self._position.lost else ():
                self._read(line)
        elif isinstance(event, PlannedMotion):
            self._run(event, self._arm(event.tool))
        elif isinstance(event, ToolMounted):
            arm = self._arm(event.tool)
            self._take(self._clearance.stand(event.q, event.line, event.time_s, arm))
        elif isinstance(event, PoseMotion):
            self._add_poses(event)
        elif isinstance(event, Violation):
            self._found.add(self._refused(event))
            self._position.line_refused(self._line.block)
            self._verdicts.unsure(event.line)
        elif isinstance(event, Remark):
            message = f"line {event.line}: {event.message}"
            findings = self._slight if event.slight else self._found
            findings.add(Finding(event.line, event.kind, message, event.time_s))

    def close(self) -> None:
        """Ends the threads."""
        self._clearance.close()

    def _read(self, line: ProgramLine) -> None:
        self._stand_at_start(line.number)
        self._line = line
        self._position.read(line.block)
        if self._position.lost:
            self._verdicts.unsure(line.number)

    def _stand_at_start(self, line: int) -> None:
        """Checks the pose in which the robot stands before the first line."""
        start, self._start = self._start, None
        if start is None:
            return
        q, tool = start
        self._take(self._clearance.stand(q, line, 0.0, self._arm(tool)))

    def _arm(self, tool: int) -> Arm | Machine:
        """What moves with a tool; notes the pairs that are not compared then, and open meshes."""
        arm = self._subject.arm(tool)
        if isinstance(arm, Arm) and arm.sweeper is not None and arm not in self._arms:
            self._arms.add(arm)
            self._left_out |= dict.fromkeys(arm.detector.left_out())
            self._open_meshes |= dict.fromkeys(arm.detector.open_meshes)
        return arm

    def _refused(self, event: Violation) -> Finding:
        """A refused line, with the error or alarm number of a firmware."""
        message, code = event.message, event.code if self._subject.numbered else 0
        if code:
            message += f" ({'alarm' if event.kind == 'joint_limit' else 'error'}:{code})"
        return Finding(event.line, event.kind, message, time_s=np.nan, code=code)

    def _run(self, run: PlannedMotion, arm: Arm | Machine) -> None:
        moving = _distinct(run.plan.path.line)
        self._verdicts.moving(moving)
        if arm.sweeper is None or not arm.has_shapes:
            self._verdicts.unsure(moving)
        for findings in (self._too_fast, self._slowed, self._sampled):
            findings.forget_before(int(moving[0]))
        for stretch in stretches(run.plan, goes_on=run.goes_on):
            feed = feed_findings(stretch, arm)
            for found in feed.violations:
                self._too_fast.add(found, "feed")
            for found in feed.warnings:
                self._slowed.add(found, "feed")
            grids, load = list(stretch.grids()), arm.dynamics
            weighs = load is not None and any(load.may_overload(run.plan, at) for at in grids)
            if weighs:
                self._keep_worst(overload_findings(*abrupt_samples(stretch, arm), arm))
            for times in grids:
                self._look(stretch, times, arm, weighs=weighs)
            sweep = self._clearance.probe if run.probe else self._clearance.add
            self._take(sweep(stretch, arm))

    def _add_poses(self, run: PoseMotion) -> None:
        arm = self._subject.arm(0)
        self._verdicts.moving(run.line)
        self._verdicts.unsure(run.line)
        self._way += length_of(arm.tips(run.poses))
        kept = self._courses.choose(len(run.times))
        poses, times = run.poses[kept], run.times[kept]
        self._courses.add(poses, times, np.full(len(times), run.line), arm)

    def _look(self, stretch: Stretch, times: Floats, arm: Arm | Machine, *, weighs: bool) -> None:
        """Checks samples of a run; ``weighs``: also their torques."""
        plan = stretch.plan
        if weighs or self._options.with_stops:
            motion, lines = plan.sample(times), stretch.lines_at(times)
            if weighs:
                self._keep_worst(overload_findings(motion, times, lines, arm))
            if self._options.with_stops:
                self._keep_worst(overrun_findings(motion, times, lines, arm))
                for found in crash_findings(motion, times, lines, arm, self._clearance.contacts):
                    self._crashes.setdefault(found.line, found)
        self._way += arm.way(plan, times)
        kept = times[self._courses.choose(len(times))]
        self._courses.add(plan.positions(kept), kept, stretch.lines_at(kept), arm)

    def _keep_worst(self, findings: Iterable[Finding]) -> None:
        """Keeps the worst finding of each kind per line; a long line comes in several parts."""
        for found in findings:
            self._sampled.add(found, found.kind)

    def _take(self, proofs: Iterable[Proof | ProvenLines]) -> None:
        for proof in proofs:
            if isinstance(proof, ProvenLines):
                self._verdicts.proven(proof)
                continue
            self._verdicts.swept(proof.line, proof.clearance, proof.seen, proven=proof.proven)
            if proof.warning is not None:
                self._slight.add(proof.warning)
            for found in proof.violations:
                if not self._extends(found):
                    index = self._found.add(found)
                    if index is not None:
                        self._open[_touched_by(found)] = index

    def _extends(self, found: Finding) -> bool:
        """The contact of an earlier line goes on, or that of an earlier part of the same line: one
        violation that spans several lines."""
        k = self._open.get(_touched_by(found))
        if k is None or found.contact is None:
            return False
        known = self._found.known[k]
        if found.last is None and known.line != found.line:
            return False
        parts = {each.objects for each in (known.contact, *known.also) if each}
        more = (each for each in (found.contact, *found.also) if each.objects not in parts)
        also = (*known.also, *more)[:MOST_PAIRS]
        last = known.last if known.line == found.line else found.line
        self._found.known[k] = replace(known, last=last, also=also)
        return True

    def report(self) -> Report:
        self._take(self._clearance.flush())
        cycle, rows = self._ledger.result(), self._ledger.rows
        for crash in self._stop_crashes():
            self._found.add(crash)
        found, warnings = (each.in_order(rows.start_of) for each in (self._found, self._warnings))
        most = self._options.most_violations
        kept = found if most is None else found[:most]
        times = ("motion_s", "process_s", "dwell_s", "io_s", "total_s")
        return Report(
            program=self._subject.program,
            cell=self._subject.cell,
            robot=self._subject.robot,
            cycle_time={name: getattr(cycle, name) for name in times},
            distance_m=self._way,
            gcodes_executed=rows.executed,
            lines=self._verdicts.table(rows),
            violations=tuple(kept),
            warnings=tuple(warnings),
            omitted=len(found) - len(kept) + self._found.unkept.total(),
            unkept=dict(self._found.unkept),
            notes=self._notes(),
            left_out=tuple(self._left_out),
            course=self._courses.course(),
        )

    def _stop_crashes(self) -> Iterator[Finding]:
        """Contacts of stops, without those that the path itself has."""
        lines = sorted(self._crashes)
        hit: dict[int, set[Thing]] = {}
        for each in self._found.known:
            first, last = bisect_left(lines, each.line), bisect_right(lines, each.last or each.line)
            for line in lines[first:last]:
                hit.setdefault(line, set()).add(_touched_by(each))
        for line, found in self._crashes.items():
            if _touched_by(found) not in hit.get(line, ()):
                yield found

    def _notes(self) -> tuple[str, ...]:
        moves = self._verdicts.moves or self._found.known
        still = () if moves else ("no line of this program moves the robot",)
        checks = self._stops() + self._clearance.notes + self._surfaces()
        return self._subject.notes + checks + still + self._unkept()

    def _unkept(self) -> tuple[str, ...]:
        """A note if the report does not have all findings."""
        return tuple(
            f"the report has the first {len(findings.known)} {what}; {count} more were counted"
            for what, findings in (("violations", self._found), ("warnings", self._warnings))
            if (count := findings.unkept.total())
        )

    def _surfaces(self) -> tuple[str, ...]:
        """A note that names the meshes that have no inside."""
        if not self._open_meshes:
            return ()
        return (
            "meshes with openings have no inside; contacts with them were checked at their surface "
            f"only: {', '.join(self._open_meshes)}",
        )

    def _stops(self) -> tuple[str, ...]:
        if not self._options.with_stops or not self._verdicts.proofs:
            return ()
        return (
            "stops: a stop or hold brakes along the path, which is proven as a whole; independent "
            "braking of each joint off the path was checked every 10 ms: limits are kept and "
            "nothing is touched, except where a violation reports it",
        )


def _distinct(numbers: Ints) -> Ints:
    """The numbers in order, each once. `np.unique` would import masked arrays."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]


def _touched_by(found: Finding) -> Thing:
    return thing(found.kind, found.contact.objects) if found.contact else ()


def judge_events(events: Iterable[Event], subject: Subject, options: JudgeOptions) -> Report:
    """The report on all events of a program."""
    judge = Judge(subject, options)
    for event in events:
        judge.add(event)
    return judge.report()


def warm_checks() -> None:
    """Compiles the kernels of the checks, or loads them from the cache."""
    (part,) = program_parts(b"G1 X1 F100\n", ARM)
    lines, modal = part.plain(0, 1), Modal(motion="G1")
    straights(lines.values, modal, ARM, ZERO)
    one, cubic = np.ones(1), np.ones((1, 4, 6))
    path = path_of(
        shape=cubic, end=np.ones((1, 6)), length=one, acceleration=one, fastest=one, feed=one
    )
    plan = Plan(path, trapezoid(path, one, np.zeros(2), at=0.0), np.ones(6))
    rows = Rows()
    rows.extend(lines, 0.0)
    rows.ran("motion", plan)
    assert rows.executed
    yes = np.ones(1, dtype=np.bool_)
    asks_too_much(cubic, one, one, yes, yes, (np.ones(6), np.ones(6), np.ones(6)))


# ── limits of the joints: do they suffice for the programmed feed? ────────────────────────────────
#
# Where the joints cannot follow, the planner slows down, so nothing breaks; but the weld, the glue
# bead or the cut is not the one that the feed was programmed for. Rapid moves ask for no speed.


NEAR = 0.1
"""Distance from a singular pose (6° of joint 5) below which it explains a high joint speed."""
INSIDE = 1e-3
"""Distance from a singular pose below which a line begins or ends in it: 0.06° of joint 5, what the
rounding of a pose in a program can take it away from the singular pose."""
NEAR_RATIO = 0.2
"""Factor on the thresholds for arms without a known structure, whose measure is small
everywhere."""
ROUNDING = 1.0 + 1e-6


class FeedFindings(NamedTuple):
    """Lines whose feed the joints cannot follow: violations; and warnings, where a line begins or
    ends in a singular pose and the controller slows down next to it, and for every line of a
    machine, whose firmware limits the feed to what its axes can do."""

    violations: list[Finding]
    warnings: list[Finding]


def feed_findings(stretch: Stretch, arm: Arm | Machine) -> FeedFindings:
    """At most one violation and one warning per line, at its worst place."""
    findings = FeedFindings([], [])
    path = stretch.path
    asked = ~path.rapid & np.isfinite(path.feed) & (path.dwell == 0.0)
    if not asked.any():
        return findings
    limits = arm.limits
    if path.shape.shape[1] == 4 and not asks_too_much(
        path.shape,
        path.length,
        path.feed,
        asked,
        path.measure == TOOL,
        (limits.velocity, limits.acceleration, limits.jerk),
    ):
        return findings
    slope = greatest_slopes(path.shape, path.length)
    speed = np.where(asked, path.feed, 0.0)[:, None] * slope / limits.velocity
    turn, twist = np.zeros_like(speed), np.zeros_like(speed)
    if path.shape.shape[1] == 4:
        bend = greatest_bends(path.shape, path.length[:, None])
        along = asked & (path.measure == TOOL)
        paces = np.where(along, path.feed, 0.0)[:, None]
        turn = paces**2 * bend / arm.limits.acceleration
        twist = paces**3 * np.abs(6.0 * path.shape[:, 3]) / arm.limits.jerk
    over = np.flatnonzero(np.maximum.reduce([speed, turn, twist]).max(axis=1) > ROUNDING)
    need = _Need(stretch, path, speed, turn, twist, arm)
    for line in _distinct(path.line[over]).tolist():
        first, last = np.searchsorted(path.line, [line, line + 1])
        pieces = np.arange(first, last)
        near = _nearness(path, pieces, arm)
        allowed = near.at_ends | arm.limits_feed
        if found := _worst(need, pieces, near, ~allowed):
            findings.violations.append(_finding(need, found, line))
        if found := _worst(need, pieces, near, allowed):
            findings.warnings.append(_finding(need, found, line, slowed=True))
    return findings


@compiled
def asks_too_much(  # kernel
    shape: Floats,
    length: Floats,
    feed: Floats,
    asked: Bools,
    along: Bools,
    limits: tuple[Floats, Floats, Floats],
) -> bool:
    """Whether the feed of any cubic may need more of a joint than it has: a quick first look, which
    is right in all but 1e-9 of the limit. ``along``: pieces that follow the tool."""
    velocity, acceleration, jerk = limits
    for p in range(len(length)):
        if not asked[p]:
            continue
        h, v = length[p], feed[p] * (1.0 + 1e-9)
        for j in range(shape.shape[2]):
            b, c, d = shape[p, 1, j], shape[p, 2, j], shape[p, 3, j]
            turn = -c / (3.0 * d)
            turn = min(turn, h) if turn > 0.0 else 0.0
            slope = max(abs(b), abs(b + h * (2.0 * c + 3.0 * d * h)))
            slope = max(slope, abs(b + turn * (2.0 * c + 3.0 * d * turn)))
            fits = v * slope <= ROUNDING * velocity[j]
            if along[p]:
                bend = max(abs(2.0 * c), abs(2.0 * c + 6.0 * d * h))
                fits &= v * v * bend <= ROUNDING * acceleration[j]
                fits &= v * v * v * abs(6.0 * d) <= ROUNDING * jerk[j]
            if not fits:
                return True
    return False


@dataclass(frozen=True, slots=True, eq=False)
class _Need:
    """Needed speed, acceleration and jerk as shares of the limits, per piece and joint."""

    stretch: Stretch
    path: Path
    speed: Floats
    turn: Floats
    twist: Floats
    arm: Arm | Machine


@dataclass(frozen=True, slots=True)
class _Excess:
    """The worst place of a line: piece, joint, share of its limit, and the singular pose that
    causes it."""

    kind: FindingKind
    piece: int
    joint: int
    share: float
    singularity: str = ""


def _worst(need: _Need, pieces: Ints, near: "_Near", counted: NDArray[np.bool_]) -> _Excess | None:
    """The worst excess on the counted pieces of a line; None if there is none."""
    rows = np.flatnonzero(counted)
    if not len(rows):
        return None
    shares: tuple[tuple[FindingKind, Floats], ...] = (
        ("velocity", need.speed[pieces[rows]]),
        ("acceleration", need.turn[pieces[rows]]),
        ("jerk", need.twist[pieces[rows]]),
    )
    for kind, share in shares:
        row, joint = divmod(int(np.argmax(share)), share.shape[1])
        if share[row, joint] > ROUNDING:
            singularity = near.singularity[rows[row]]
            named: FindingKind = "singularity" if singularity and kind == "velocity" else kind
            return _Excess(
                named, int(pieces[rows[row]]), joint, float(share[row, joint]), singularity
            )
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """Per piece of a line: the singular pose it is near, if any; and whether the line begins or
    ends in that singular pose."""

    singularity: list[str]
    at_ends: NDArray[np.bool_]


def _nearness(path: Path, pieces: Ints, arm: Arm | Machine) -> _Near:
    """Nearness to singular poses; matters for Cartesian moves only."""
    if isinstance(arm, Machine) or path.measure[pieces[0]] != TOOL:
        return _Near([""] * len(pieces), np.zeros(len(pieces), dtype=np.bool_))
    names = kinds(arm.chain)
    scale = NEAR_RATIO if names == ("arm",) else 1.0
    corners = np.vstack([path.shape[pieces[:1], 0], path.end[pieces]])
    middle = [path.position(piece, 0.5 * float(path.length[piece])) for piece in pieces.tolist()]
    at_corners, at_middle = (distances(arm.chain, q) / scale for q in (corners, np.array(middle)))
    share = np.minimum.reduce([at_corners[:-1], at_middle, at_corners[1:]])
    near = share.min(axis=1) < NEAR
    which = share.argmin(axis=1).tolist()
    begins, ends = (bool(at_corners[k].min() < INSIDE) for k in (0, -1))
    singularity = [names[k] if close else "" for k, close in zip(which, near.tolist(), strict=True)]
    return _Near(singularity, _at_ends(near, begins, ends))


def _at_ends(near: NDArray[np.bool_], begins: bool, ends: bool) -> NDArray[np.bool_]:
    """Pieces that are near a singular pose without interruption from the start, or to the end."""
    from_start = np.logical_and.accumulate(near) & begins
    to_end = np.logical_and.accumulate(near[::-1])[::-1] & ends
    return np.asarray(from_start | to_end)


def _finding(need: _Need, found: _Excess, line: int, *, slowed: bool = False) -> Finding:
    arm = need.arm
    name, axis = arm.names[found.joint], arm.unit_of(found.joint)
    limits, time, sign = arm.limits.velocity, axis.seconds, f"{axis.name}/{axis.per}"
    if found.kind == "acceleration":
        limits, time, sign = arm.limits.acceleration, axis.seconds**2, sign + "2"
    elif found.kind == "jerk":
        limits, time, sign = arm.limits.jerk, axis.seconds**3, sign + "3"
    has = float(limits[found.joint]) / axis.unit * time
    factor = digits_apart(found.share, 1.0, digits=1)
    wanted = digits_apart(found.share * has, has, digits=0)
    needs = (
        f"{name} would need {wanted} {sign} at this feed, {has:.0f} are allowed ({factor} times)"
    )
    if found.singularity:
        needs = f"close to the {found.singularity} singularity: {needs}"
    if slowed:
        needs += f"; {arm.slowed_text(float(need.path.fastest[found.piece]), found.joint)}"
    when = need.stretch.time_at(found.piece, 0.0)
    message = f"line {line}: {needs}"
    return Finding(line, found.kind, message, when, joint=name, factor=found.share)


ABRUPT = 0.05
"""Share of a joint's acceleration above which the ends of a segment are looked at."""


class Samples(NamedTuple):
    """Samples of a motion: their times, and the program line of each."""

    motion: Motion
    times: Floats
    lines: NDArray[np.int64]


def abrupt_samples(stretch: Stretch, arm: Arm | Machine) -> Samples:
    """Samples just inside both ends of every segment of the plan that accelerates a joint.

    Position and speed are continuous, so that samples 10 ms apart show them; the acceleration jumps
    between segments, of which many are shorter.
    """
    law = stretch.plan.law
    first, last = np.searchsorted(law.piece, [stretch.first, stretch.last])
    begins = law.begins[first : last + 1]
    times = np.sort(np.concatenate([begins[:-1], np.nextafter(begins[1:], 0.0)]))
    motion = stretch.plan.sample(times)
    abrupt = (np.abs(motion.acceleration) > ABRUPT * arm.braking).any(axis=1)
    chosen = Motion(*(part[abrupt] for part in motion))
    return Samples(chosen, times[abrupt], stretch.lines_at(times[abrupt]))


def overload_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine
) -> Iterator[Finding]:
    """One finding per line that overloads a joint: the joint with the largest share of its
    torque."""
    if arm.dynamics is None or not len(times):
        return
    torques = arm.dynamics.torques(motion)
    share = arm.dynamics.shares(torques)
    over = share.max(axis=1) > 1.0
    for line in _distinct(lines[over]).tolist():
        rows = np.flatnonzero(over & (lines == line))
        row = int(rows[np.argmax(share[rows].max(axis=1))])
        joint = int(np.argmax(share[row]))
        name, needs = arm.names[joint], float(torques[row, joint])
        has, unit = float(arm.dynamics.effort[joint]), arm.dynamics.unit(joint)
        needed = digits_apart(needs, math.copysign(has, needs), digits=1)
        message = f"line {line}: {name} needs {needed} {unit}, {has:.1f} are allowed"
        factor = float(share[row, joint])
        yield Finding(
            line, "torque", message, float(times[row]), joint=name, excess=factor, factor=factor
        )


# ── stops off the path ──────────────────────────────────────────────────────────────────────────


STANDS = 1e-4
"""Radians or metres: below this overrun of all joints the arm stays on the proven path."""
TOO_FAR = 1e-6
INSTANT = 1e-9
AT_ONCE = 1e9
"""Radians or metres per s²: deceleration of a joint that has no limit."""


def overrun_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine
) -> Iterator[Finding]:
    """Findings where an independently braking joint would run beyond its limit."""
    stop = motion.position + np.sign(motion.velocity) * _overrun(motion, arm.braking)
    lower, upper = arm.range
    over = np.maximum(lower - stop, stop - upper)
    worst = over.max(axis=1)
    for line in _distinct(lines[worst > TOO_FAR]).tolist():
        rows = np.flatnonzero(lines == line)
        row = int(rows[np.argmax(worst[rows])])
        joint = int(np.argmax(over[row]))
        name, axis = arm.names[joint], arm.unit_of(joint)
        excess = float(over[row, joint])
        far = f"{excess / axis.unit:.2f} {axis.name}"
        message = f"line {line}: in a stop here {name} would run {far} beyond its limit"
        yield Finding(line, "joint_limit", message, float(times[row]), joint=name, excess=excess)


def crash_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine, contacts: Contacts
) -> Iterator[Finding]:
    """The first contact on each line that a stop off the path would cause."""
    if arm.sweeper is None:
        return
    shape, length, row = stopping_paths(motion, arm.braking)
    for swept in arm.sweeper.sweep(shape, length, lines=lines[row]):
        if swept.verdict is Verdict.CONTACT and swept.spot is not None:
            when = float(times[row[swept.spot.piece]])
            yield contacts.crash(swept.line, (swept.spot, when))


def stopping_paths(motion: Motion, braking: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Braking from each sample to rest, back, and on to the next sample, as one path over time; and
    the sample of each piece. A piece ends where the next joint has come to rest.
    """
    q, v = motion.position, motion.velocity
    braking = np.minimum(braking, AT_ONCE)
    moves = (_overrun(motion, braking) > STANDS).any(axis=1, keepdims=True)
    v = np.where(moves, v, 0.0)
    ends = np.abs(v) / braking
    slows = np.sign(v) * braking
    until = np.sort(ends, axis=1)
    since = np.pad(until, ((0, 0), (1, 0)))[:, :-1]
    span = until - since
    # (samples, pieces, joints): where each joint is, and how fast, when a piece begins.
    passed = np.minimum(since[:, :, None], ends[:, None, :])
    place = q[:, None] + passed * (v[:, None] - 0.5 * slows[:, None] * passed)
    speed = v[:, None] - slows[:, None] * passed
    bend = np.where(ends[:, None] >= until[:, :, None], -0.5 * slows[:, None], 0.0)
    speed = np.where(bend != 0.0, speed, 0.0)
    h = span[:, :, None]
    there = np.stack([place, speed, bend], axis=2)
    back = np.stack([place + h * (speed + h * bend), -speed - 2.0 * h * bend, bend], axis=2)
    step = np.diff(q, axis=0, append=q[-1:])[:, None]
    on = np.stack([q[:, None], step, np.zeros_like(step)], axis=2)
    ones = np.ones((len(q), 1))
    shape = np.concatenate([there, back[:, ::-1], on], axis=1)
    length = np.concatenate([span, span[:, ::-1], ones], axis=1)
    row, piece = np.nonzero(length > INSTANT)
    return shape[row, piece], length[row, piece], row


def _overrun(motion: Motion, braking: Floats) -> Floats:
    """Braking distance of each joint."""
    return np.asarray(motion.velocity**2 / (2.0 * braking))
