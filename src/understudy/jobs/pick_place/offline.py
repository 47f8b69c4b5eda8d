"""The proof of a whole pick & place job on a cell, and its cycle time.

A recorded job is judged as a program is: line n of the program is step n of the record.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from time import perf_counter

import numpy as np

from understudy.app.validate import DEFAULTS, Options, in_mode, subject_of
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.gcode.requests import move_to_target
from understudy.jobs.pick_place.headless import chosen_robot, robots_with_job
from understudy.jobs.pick_place.record import (
    JobProblem,
    JobRecord,
    JobStep,
    WorkpieceTable,
    record_job,
)
from understudy.offline.cycle_time import CycleTime, cycle_time_of
from understudy.offline.robot import Arm, MovesWorkpieces, Subject, offline_robot
from understudy.offline.setup import Remark, Setup
from understudy.offline.validate.judge import judge_events
from understudy.offline.validate.report import Finding, Report
from understudy.offline.walk import Event, Standstill, Violation, Walker, impossible
from understudy.simulation.workpieces.sequence import WorkpieceStage

PROGRAM = "pick & place"
NEEDS = "a robot has the section `pickplace`"
WITHOUT = ("dialect", "scenario", "held")
"""Options that are for programs only."""
SAME_TIME = 1e-6
"""Seconds by which a planned move may end before the running one, for rounding."""
STAGES_KEPT = 4
CARRIED = "the carried part"


def is_in(config: CellConfig) -> bool:
    """Whether a robot of the cell has this job."""
    return bool(robots_with_job(config))


def validate_job(config: CellConfig, options: Options = DEFAULTS, cycles: int = 0) -> Report:
    """Proves the pick & place job of a robot: reach, limits, torques and clearance of every move,
    with the carried part and all parts that rest around it. ``cycles``: parts at most; 0: all."""
    started = perf_counter()
    for name in WITHOUT:
        if value := getattr(options, name):
            raise ConfigError("only for programs, not for a job", key=f"--{name}", value=value)
    robot = chosen_robot(config, options.robot)
    config = in_mode(config, robot, options.mode_of_operation)
    record = record_job(config, robot, cycles)
    checked = _checked(config, robot)
    subject = job_subject(subject_of(PROGRAM, config, robot), record, checked.arm_at)
    report = judge_events(_events(config, record), subject, options.judging())
    notes = (f"{_placed(record)}; the run ended with {record.ended or 'a fault'}", *report.notes)
    report = replace(labelled(report, record), notes=notes)
    return replace(report, wall_s=perf_counter() - started)


def job_cycle_time(
    config: CellConfig, *, robot: str = "", mode_of_operation: str = "", cycles: int = 0
) -> CycleTime:
    """How long a pick & place job takes: in all, for each part and for each step."""
    name = chosen_robot(config, robot)
    config = in_mode(config, name, mode_of_operation)
    record = record_job(config, name, cycles)
    times = cycle_time_of(_events(config, record))
    return replace(times, job=WorkpieceTable.of(record), violations=tuple(_failures(record)))


def _checked(config: CellConfig, robot: str) -> MovesWorkpieces:
    checked = offline_robot(config, robot)
    if not isinstance(checked, MovesWorkpieces):
        kind = config.robots[robot].kind
        raise ConfigError(f"a robot of kind {kind} cannot be checked with parts", key=robot)
    return checked


def _events(config: CellConfig, record: JobRecord) -> Iterator[Event]:
    setup = offline_robot(config, record.robot).setup()
    assert setup is not None
    if setup.mount is not None and not isinstance(mover := setup.mount(record.tool), Refused):
        setup = replace(setup, mover=mover)
    return job_events(record, setup)


def _failures(record: JobRecord) -> Iterator[Violation]:
    """Why the job does not do its work, in words with part, cell and state."""
    for each in record.problems:
        if not each.slight:
            said = f"{record.label(each.step)}: {each.message}"
            yield Violation(each.step, "unreachable" if each.unreachable else "process", said)


def _placed(record: JobRecord) -> str:
    count = sum(part.placed for part in record.parts)
    return f"{count} {'part is' if count == 1 else 'parts are'} placed"


# ── the record as events of a program ───────────────────────────────────────────────────────────


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
