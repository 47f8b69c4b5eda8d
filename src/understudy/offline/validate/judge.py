"""Checks the events of a program one by one and makes the report."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.motion.path import Floats, Ints
from understudy.motion.plan import Motion
from understudy.offline.cycle_time import Ledger
from understudy.offline.setup import Remark
from understudy.offline.validate.clearance import (
    MOST_PAIRS,
    Clearance,
    Proof,
    Thing,
    stretches,
    thing,
)
from understudy.offline.validate.limits import (
    abrupt_samples,
    crash_findings,
    feed_findings,
    overload_findings,
    overrun_findings,
)
from understudy.offline.validate.lines import Verdicts
from understudy.offline.validate.report import (
    MOST_FINDINGS,
    Course,
    Finding,
    Options,
    Report,
)
from understudy.offline.validate.subject import Arm, Machine, Subject
from understudy.offline.walk import Event, PlannedMotion, PoseMotion, ToolMounted, Violation
from understudy.space.collision.detector import LeftOut

JOINTS, POSE = frozenset("ABCUVW"), frozenset("XYZABC")
AXES = JOINTS | POSE
HOMES = ("G28", "G30")
COMMENT = re.compile(r"\s*(?:N\d+\s*)?(?:[(;%]|$)", re.IGNORECASE)
"""A line that no robot counts as executed."""
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
        self._rows: list[tuple[Floats, Floats, int, float, int]] = []
        self._every = 1
        self._seen = 0

    def add(self, q: Floats, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine) -> None:
        """Adds samples of a run."""
        chosen = np.arange(-self._seen % self._every, len(q), self._every)
        self._seen += len(q)
        if not len(chosen):
            return
        placed = arm.skeleton(q[chosen])
        columns = (q[chosen], placed, lines[chosen].tolist(), times[chosen].tolist())
        self._rows += [(*row, arm.tool) for row in zip(*columns, strict=True)]
        while len(self._rows) > 2 * MOST_POINTS:
            self._rows = self._rows[::2]
            self._every *= 2

    def course(self) -> Course:
        if not self._rows:
            return Course()
        q, points, lines, times, tools = zip(*self._rows, strict=True)
        return Course(
            tuple(tuple(row.tolist()) for row in q),
            tuple(tuple(tuple(point) for point in row.tolist()) for row in points),
            tuple(lines),
            tuple(times),
            tuple(tools),
        )


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
    """A speed that the joints cannot follow counts before an acceleration."""
    return (found.kind != "acceleration", found.factor)


def length_of(tips: Floats) -> float:
    """Length in metres of the polyline through the points."""
    return float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())


class Judge:
    """Takes the events of a walk in order and collects findings, proofs and times."""

    def __init__(self, subject: Subject, options: Options) -> None:
        self._subject = subject
        self._options = options
        self._ledger = Ledger()
        self._clearance = Clearance(subject.environment, options)
        most = max(options.most_violations or 0, MOST_FINDINGS)
        self._found, self._warnings = Findings(most), Findings(most)
        self._slight = self._found if options.strict else self._warnings
        self._sampled = WorstFindings(self._found, lambda found: (found.excess,))
        self._too_fast = WorstFindings(self._found, _feed_excess)
        self._slowed = WorstFindings(self._slight, _feed_excess)
        self._verdicts = Verdicts()
        self._position = PositionKnowledge()
        self._line = ProgramLine(0, "", Block())
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
            self._stand_at_start(event.number)
            self._line = event
            self._position.read(event.block)
            if self._position.lost:
                self._verdicts.unsure(event.number)
        elif isinstance(event, PlannedMotion):
            self._run(event, self._arm(event.tool))
        elif isinstance(event, ToolMounted):
            arm = self._arm(event.tool)
            self._take(self._clearance.stand(event.q, event.line, event.time_s, arm))
        elif isinstance(event, PoseMotion):
            self._glide(event)
        elif isinstance(event, Violation):
            self._found.add(self._refused(event))
            self._position.line_refused(self._line.block)
            self._verdicts.unsure(event.line)
        elif isinstance(event, Remark):
            message = f"line {event.line}: {event.message}"
            findings = self._slight if event.slight else self._found
            findings.add(Finding(event.line, event.kind, message, event.time_s))

    def _stand_at_start(self, line: int) -> None:
        """Checks the pose in which the robot stands before the first line."""
        start, first = self._subject.start, not self._line.number
        if start is None or not first:
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
        moving = np.unique(run.plan.path.line)
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
            self._keep_worst(overload_findings(*abrupt_samples(stretch, arm), arm))
            for times in stretch.grids():
                self._look(run.plan.sample(times), times, stretch.lines_at(times), arm)
            sweep = self._clearance.probe if run.probe else self._clearance.add
            self._take(sweep(stretch, arm))

    def _glide(self, glide: PoseMotion) -> None:
        arm = self._subject.arm(0)
        self._verdicts.moving(glide.line)
        self._verdicts.unsure(glide.line)
        self._way += length_of(arm.tips(glide.poses))
        self._courses.add(glide.poses, glide.times, np.full(len(glide.times), glide.line), arm)

    def _look(self, motion: Motion, times: Floats, lines: Ints, arm: Arm | Machine) -> None:
        """Checks samples of a run."""
        self._keep_worst(overload_findings(motion, times, lines, arm))
        if self._options.with_stops:
            self._keep_worst(overrun_findings(motion, times, lines, arm))
            for found in crash_findings(motion, times, lines, arm, self._clearance.contacts):
                self._crashes.setdefault(found.line, found)
        self._way += length_of(arm.tips(motion.position))
        self._courses.add(motion.position, times, lines, arm)

    def _keep_worst(self, findings: Iterable[Finding]) -> None:
        """Keeps the worst finding of each kind per line; a long line comes in several parts."""
        for found in findings:
            self._sampled.add(found, found.kind)

    def _take(self, proofs: Iterable[Proof]) -> None:
        for proof in proofs:
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
            gcodes_executed=sum(not COMMENT.match(text) for text in rows.run_texts()),
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


def _touched_by(found: Finding) -> Thing:
    return thing(found.kind, found.contact.objects) if found.contact else ()


def judge_events(events: Iterable[Event], subject: Subject, options: Options) -> Report:
    """The report on all events of a program."""
    judge = Judge(subject, options)
    for event in events:
        judge.add(event)
    return judge.report()
