"""Judges what happens in a program, event by event, and gives the report."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.motion.path import Floats, Ints
from understudy.motion.plan import Motion
from understudy.offline.cycle_time import Ledger, Row
from understudy.offline.setup import Remark
from understudy.offline.validate.braking import crash_findings, overrun_findings
from understudy.offline.validate.clearance import MOST_PAIRS, Clearance, Proof
from understudy.offline.validate.contacts import Thing, thing
from understudy.offline.validate.course import Courses
from understudy.offline.validate.effort import overload_findings, way_of
from understudy.offline.validate.feed import feed_findings
from understudy.offline.validate.report import (
    Finding,
    LineReport,
    Options,
    Report,
    proven_clearance,
)
from understudy.offline.validate.stretch import stretches
from understudy.offline.validate.subject import Arm, Machine, Subject
from understudy.offline.walk import Event, Glide, Mounted, Run, Violation

JOINTS, POSE = frozenset("ABCUVW"), frozenset("XYZABC")
AXES = JOINTS | POSE
HOMES = ("G28", "G30")


@dataclass(slots=True)
class Doubt:
    """Whether it is still known where the arm is: not after a line was left out, until the next
    complete absolute target."""

    lost: bool = False
    absolute: bool = True

    def read(self, block: object) -> None:
        """A line of the program comes."""
        if not isinstance(block, Block) or not (self.lost or "distance" in block.commands):
            return
        named = set(block.commands.values())
        self.absolute = "G90" in named or (self.absolute and "G91" not in named)
        given = block.values.keys()
        complete = self.absolute and (given >= JOINTS or given >= POSE)
        if complete or (named & set(HOMES) and not given & AXES):
            self.lost = False

    def left_out(self, block: object) -> None:
        moves = not isinstance(block, Block) or bool(block.values.keys() & AXES)
        self.lost = self.lost or moves


class Judge:
    """Takes the events of a walk in their order."""

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
        self._doubt = Doubt()
        self._line = ProgramLine(0, "", Block())
        self._open: dict[Thing, int] = {}
        self._crashes: dict[int, Finding] = {}
        self._way = 0.0
        self._courses = Courses()

    def add(self, event: Event) -> None:
        self._ledger.add(event)
        if isinstance(event, ProgramLine):
            self._line = event
            self._doubt.read(event.block)
            if self._doubt.lost:
                self._unsure.add(event.number)
        elif isinstance(event, Run):
            self._run(event, self._subject.arm(event.tool))
        elif isinstance(event, Mounted):
            arm = self._subject.arm(event.tool)
            self._take(self._clearance.stand(event.q, event.line, event.time_s, arm))
        elif isinstance(event, Glide):
            self._glide(event)
        elif isinstance(event, Violation):
            self._found.append(self._refused(event))
            self._doubt.left_out(self._line.block)
            self._unsure.add(event.line)
        elif isinstance(event, Remark):
            said = f"line {event.line}: {event.message}"
            told = self._warnings if event.slight else self._found
            told.append(Finding(event.line, event.kind, said, event.time_s))

    def _refused(self, event: Violation) -> Finding:
        """With the number by which a firmware knows it."""
        said, code = event.message, event.code if self._subject.numbered else 0
        if code:
            said += f" ({'alarm' if event.kind == 'joint_limit' else 'error'}:{code})"
        return Finding(event.line, event.kind, said, time_s=np.nan, code=code)

    def _run(self, run: Run, arm: Arm | Machine) -> None:
        moving = np.unique(run.plan.path.line).tolist()
        self._moving.update(moving)
        if arm.sweeper is None:
            self._unsure.update(moving)
        for stretch in stretches(run.plan):
            self._found += feed_findings(stretch, arm)
            for times in stretch.grids():
                self._look(run.plan.sample(times), times, stretch.lines_at(times), arm)
            self._take(self._clearance.add(stretch, arm))

    def _glide(self, glide: Glide) -> None:
        arm = self._subject.arm(0)
        self._moving.add(glide.line)
        self._unsure.add(glide.line)
        self._way += way_of(arm.tips(glide.poses))
        self._courses.add(glide.poses, glide.times, np.full(len(glide.times), glide.line), arm)

    def _look(self, motion: Motion, times: Floats, lines: Ints, arm: Arm | Machine) -> None:
        """At samples of a run."""
        self._keep_worst(overload_findings(motion, times, lines, arm))
        if self._options.with_stops:
            self._keep_worst(overrun_findings(motion, times, lines, arm))
            for found in crash_findings(motion, times, lines, arm, self._clearance.contacts):
                self._crashes.setdefault(found.line, found)
        self._way += way_of(arm.tips(motion.position))
        self._courses.add(motion.position, times, lines, arm)

    def _keep_worst(self, findings: Iterable[Finding]) -> None:
        """One of a kind per line, though a long line is looked at in parts."""
        for found in findings:
            known = self._sampled.setdefault((found.line, found.kind), len(self._found))
            if known == len(self._found):
                self._found.append(found)
            elif found.excess > self._found[known].excess:
                self._found[known] = found

    def _take(self, proofs: Iterable[Proof]) -> None:
        for proof in proofs:
            self._proofs[proof.line] = proof
            if proof.warning is not None:
                self._warnings.append(proof.warning)
            for found in proof.violations:
                if found.last is None or not self._go_on(found):
                    self._found.append(found)
                    self._open[_what(found)] = len(self._found) - 1

    def _go_on(self, found: Finding) -> bool:
        """The same is touched still, maybe by others by now: one violation, over several lines."""
        k = self._open.get(_what(found))
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
        self._found += self._further_crashes()
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
            gcodes_executed=sum(row.kind != "refused" for row in cycle.lines),
            lines=tuple(self._row(row) for row in cycle.lines),
            violations=tuple(kept),
            warnings=tuple(warnings),
            omitted=len(found) - len(kept),
            notes=self._notes(),
            course=self._courses.course(),
        )

    def _further_crashes(self) -> Iterator[Finding]:
        """Those of stops that are not on the path as well."""
        for line, found in self._crashes.items():
            hit = {
                _what(each) for each in self._found if each.line <= line <= (each.last or each.line)
            }
            if _what(found) not in hit:
                yield found

    def _row(self, row: Row) -> LineReport:
        proof = self._proofs.get(row.line)
        proven = row.line not in self._unsure and (proof is None or proof.proven)
        clearance = None if proof is None else proven_clearance(proof.clearance)
        return LineReport(
            row.line, row.text, row.start_s, row.end_s, clearance, proven, row.kind,
            row.line in self._moving,
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        still = () if self._moving or self._found else ("nothing moves in this program",)
        return self._subject.notes + self._stops() + self._clearance.notes + still

    def _stops(self) -> tuple[str, ...]:
        if not self._options.with_stops or not self._proofs:
            return ()
        return (
            "stops are certified: a stop or hold brakes along the path, which is proven as a "
            "whole; joints that brake by themselves, off the path, were looked at every 10 ms and "
            "stay within their limits and touch nothing unless a violation says so",
        )


def _what(found: Finding) -> Thing:
    return thing(found.kind, found.contact.objects) if found.contact else ()


def _in_order(found: Iterable[Finding], begins: Mapping[int, float]) -> list[Finding]:
    """By line and time; what has no time of its own has that of its line."""
    timed = (
        each if np.isfinite(each.time_s) else replace(each, time_s=begins.get(each.line, 0.0))
        for each in found
    )
    return sorted(timed, key=lambda each: (each.line, each.time_s))


def judged(events: Iterable[Event], subject: Subject, options: Options) -> Report:
    """The report on a whole program."""
    judge = Judge(subject, options)
    for event in events:
        judge.add(event)
    return judge.report()
