"""Checks the events of a program one by one and makes the report."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.motion.path import Floats, Ints
from understudy.motion.plan import Motion
from understudy.offline.cycle_time import Ledger, Row
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
from understudy.offline.validate.report import (
    Course,
    Finding,
    LineReport,
    Options,
    Report,
    finite,
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
        self._found: list[Finding] = []
        self._sampled: dict[tuple[int, str], int] = {}
        self._warnings: list[Finding] = []
        self._proofs: dict[int, Proof] = {}
        self._unsure: set[int] = set()
        self._moving: set[int] = set()
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
                self._unsure.add(event.number)
        elif isinstance(event, PlannedMotion):
            self._run(event, self._arm(event.tool))
        elif isinstance(event, ToolMounted):
            arm = self._arm(event.tool)
            self._take(self._clearance.stand(event.q, event.line, event.time_s, arm))
        elif isinstance(event, PoseMotion):
            self._glide(event)
        elif isinstance(event, Violation):
            self._found.append(self._refused(event))
            self._position.line_refused(self._line.block)
            self._unsure.add(event.line)
        elif isinstance(event, Remark):
            message = f"line {event.line}: {event.message}"
            findings = self._warnings if event.slight else self._found
            findings.append(Finding(event.line, event.kind, message, event.time_s))

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
        moving = np.unique(run.plan.path.line).tolist()
        self._moving.update(moving)
        if arm.sweeper is None or not arm.has_shapes:
            self._unsure.update(moving)
        for stretch in stretches(run.plan):
            feed = feed_findings(stretch, arm)
            self._found += feed.violations
            self._warnings += feed.warnings
            self._keep_worst(overload_findings(*abrupt_samples(stretch, arm), arm))
            for times in stretch.grids():
                self._look(run.plan.sample(times), times, stretch.lines_at(times), arm)
            sweep = self._clearance.probe if run.probe else self._clearance.add
            self._take(sweep(stretch, arm))

    def _glide(self, glide: PoseMotion) -> None:
        arm = self._subject.arm(0)
        self._moving.add(glide.line)
        self._unsure.add(glide.line)
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
            known = self._sampled.setdefault((found.line, found.kind), len(self._found))
            if known == len(self._found):
                self._found.append(found)
            elif found.excess > self._found[known].excess:
                self._found[known] = found

    def _take(self, proofs: Iterable[Proof]) -> None:
        for proof in proofs:
            known = self._proofs.get(proof.line)
            self._proofs[proof.line] = proof if known is None else known.joined(proof)
            if proof.warning is not None:
                self._warnings.append(proof.warning)
            for found in proof.violations:
                if found.last is None or not self._extends(found):
                    self._found.append(found)
                    self._open[_touched_by(found)] = len(self._found) - 1

    def _extends(self, found: Finding) -> bool:
        """The contact of an earlier line goes on: one violation that spans several lines."""
        k = self._open.get(_touched_by(found))
        if k is None or found.contact is None:
            return False
        known = self._found[k]
        parts = {each.objects for each in (known.contact, *known.also) if each}
        more = (each for each in (found.contact, *found.also) if each.objects not in parts)
        also = (*known.also, *more)[:MOST_PAIRS]
        self._found[k] = replace(known, last=found.line, also=also)
        return True

    def report(self) -> Report:
        self._take(self._clearance.flush())
        cycle = self._ledger.result()
        begins = {row.line: row.start_s for row in cycle.lines}
        self._found += self._stop_crashes()
        found, warnings = (_in_order(each, begins) for each in (self._found, self._warnings))
        most = self._options.most_violations
        kept = found if most is None else found[:most]
        times = ("motion_s", "process_s", "dwell_s", "io_s", "total_s")
        return Report(
            program=self._subject.program,
            cell=self._subject.cell,
            robot=self._subject.robot,
            cycle_time={name: getattr(cycle, name) for name in times},
            distance_m=self._way,
            gcodes_executed=sum(
                row.kind != "refused" and not COMMENT.match(row.text) for row in cycle.lines
            ),
            lines=tuple(self._row(row) for row in cycle.lines),
            violations=tuple(kept),
            warnings=tuple(warnings),
            omitted=len(found) - len(kept),
            notes=self._notes(),
            left_out=tuple(self._left_out),
            course=self._courses.course(),
        )

    def _stop_crashes(self) -> Iterator[Finding]:
        """Contacts of stops, without those that the path itself has."""
        for line, found in self._crashes.items():
            hit = {
                _touched_by(each)
                for each in self._found
                if each.line <= line <= (each.last or each.line)
            }
            if _touched_by(found) not in hit:
                yield found

    def _row(self, row: Row) -> LineReport:
        proof = self._proofs.get(row.line)
        proven = row.line not in self._unsure and (proof is None or proof.proven)
        clearance = None if proof is None else finite(proof.clearance)
        seen = None if proof is None else finite(proof.seen)
        return LineReport(
            row.line, row.text, row.start_s, row.end_s, clearance, seen, proven, row.kind,
            row.line in self._moving,
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        still = () if self._moving or self._found else ("no line of this program moves the robot",)
        checks = self._stops() + self._clearance.notes + self._surfaces()
        return self._subject.notes + checks + still

    def _surfaces(self) -> tuple[str, ...]:
        """A note that names the meshes that have no inside."""
        if not self._open_meshes:
            return ()
        return (
            "meshes with openings have no inside; contacts with them were checked at their surface "
            f"only: {', '.join(self._open_meshes)}",
        )

    def _stops(self) -> tuple[str, ...]:
        if not self._options.with_stops or not self._proofs:
            return ()
        return (
            "stops: a stop or hold brakes along the path, which is proven as a whole; independent "
            "braking of each joint off the path was checked every 10 ms: limits are kept and "
            "nothing is touched, except where a violation reports it",
        )


def _touched_by(found: Finding) -> Thing:
    return thing(found.kind, found.contact.objects) if found.contact else ()


def _in_order(found: Iterable[Finding], begins: Mapping[int, float]) -> list[Finding]:
    """Sorted by line and time; a finding without a time gets the start of its line."""
    timed = (
        each if np.isfinite(each.time_s) else replace(each, time_s=begins.get(each.line, 0.0))
        for each in found
    )
    return sorted(timed, key=lambda each: (each.line, each.time_s))


def judge_events(events: Iterable[Event], subject: Subject, options: Options) -> Report:
    """The report on all events of a program."""
    judge = Judge(subject, options)
    for event in events:
        judge.add(event)
    return judge.report()
