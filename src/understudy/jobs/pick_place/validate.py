"""The proof of a whole pick & place job on a cell, and its cycle time."""

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

from understudy.app.validate import DEFAULTS, Options, in_mode, subject_of
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.jobs.pick_place.headless import chosen_robot, robots_with_job
from understudy.jobs.pick_place.offline import job_events, job_subject, labelled
from understudy.jobs.pick_place.record import JobRecord, WorkpieceTable
from understudy.jobs.pick_place.recorder import record_job
from understudy.offline.cycle_time import CycleTime, cycle_time_of
from understudy.offline.robot import MovesWorkpieces, offline_robot
from understudy.offline.validate.judge import judge_events
from understudy.offline.validate.report import Report
from understudy.offline.walk import Event, Violation

PROGRAM = "pick & place"
NEEDS = "a robot has the section `pickplace`"
WITHOUT = ("dialect", "scenario", "held")
"""Options that are for programs only."""


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
