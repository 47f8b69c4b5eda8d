"""A recorded pick & place job as the events of a program: line n is step n."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.gcode.requests import move_to_target
from understudy.jobs.pick_place.record import JobProblem, JobRecord, JobStep, WorkpieceTable
from understudy.offline.robot import Arm, Subject
from understudy.offline.setup import Remark, Setup
from understudy.offline.validate.report import Finding, Report
from understudy.offline.walk import Event, Standstill, Violation, Walker, impossible
from understudy.simulation.workpieces.sequence import WorkpieceStage

SAME_TIME = 1e-6
"""Seconds by which a planned move may end before the running one, for rounding."""
STAGES_KEPT = 4
CARRIED = "the carried part"


def job_events(record: JobRecord, setup: Setup) -> Iterator[Event]:
    """Every move planned from where it began; `tool` of a motion is the number of its stage."""
    walker = Walker(replace(setup, devices=None))
    problems: dict[int, list[JobProblem]] = {}
    for problem in record.problems:
        problems.setdefault(problem.step, []).append(problem)
    for line, step in enumerate(record.steps, 1):
        walker.events.append(ProgramLine(line, record.label(line), Block(line=line)))
        walker.now = step.begins
        if step.target is not None:
            _move(walker, step, line)
        if step.ends - walker.now > SAME_TIME or step.target is None:
            walker.events.append(Standstill(line, "io", walker.now, step.ends))
        for problem in problems.get(line, ()):
            said = f"line {line}: {problem.message}"
            walker.events.append(
                Violation(line, "unreachable", said)
                if problem.unreachable
                else Remark(line, "process", problem.message, problem.time_s, problem.slight)
            )
        yield from walker.take()


def _move(walker: Walker, step: JobStep, line: int) -> None:
    assert step.target is not None
    walker.q, walker.tool = np.array(step.joints), step.stage
    refused = walker.move(move_to_target(step.target), line)
    if refused is not None:
        walker.events.append(impossible(line, refused, ""))
    walker.rest(probe=step.touches)


def job_subject(
    subject: Subject, record: JobRecord, arm: Callable[[WorkpieceStage, int], Arm]
) -> Subject:
    """The subject of a job: what moves is the arm in a stage of the record, by its number."""

    @lru_cache(maxsize=STAGES_KEPT)
    def at_stage(number: int) -> Arm:
        return arm(record.stages[number], record.tool)

    start = None if subject.start is None else (subject.start[0], 0)
    return replace(subject, arm=at_stage, start=start)


def labelled(report: Report, record: JobRecord) -> Report:
    """The report with parts, cells and states in place of line numbers, and the times by part."""

    def named(found: Finding) -> Finding:
        if not 1 <= found.line <= len(record.steps):
            return found
        said = found.message.removeprefix(f"line {found.line}: ")
        return replace(found, message=f"{record.label(found.line)}: {said}")

    clearances = [
        None if not row.proven else math.inf if row.clearance is None else row.clearance
        for row in report.lines
    ]
    carried = {part.name for part in record.parts}
    left_out = (
        pair._replace(objects=(_kind(pair.objects[0], carried), _kind(pair.objects[1], carried)))
        for pair in report.left_out
    )
    return replace(
        report,
        left_out=tuple(dict.fromkeys(left_out)),
        violations=tuple(map(named, report.violations)),
        warnings=tuple(map(named, report.warnings)),
        job=WorkpieceTable.of(record, clearances),
    )


def _kind(name: str, carried: Collection[str]) -> str:
    """One name for all carried parts."""
    return CARRIED if name in carried else name
