"""Validation and cycle time of programs on a cell: behind the command line, the page and Python."""

import os
import os.path
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs

from understudy.app.self_pairs import keep_pairs_on_disk
from understudy.config import CellConfig, load_config
from understudy.config.files import read_program, read_text
from understudy.config.include import read_environment, read_rules
from understudy.errors import ConfigError, unknown
from understudy.gcode.program import PlainLines, ProgramLine
from understudy.offline.cycle_time import CycleTime, cycle_time_of
from understudy.offline.robot import (
    NO_RULES,
    Arm,
    Subject,
    can_be_checked,
    chosen_robot,
    offline_robot,
)
from understudy.offline.validate.hints import hints
from understudy.offline.validate.judge import Judge, judge_events
from understudy.offline.validate.report import JudgeOptions, Report
from understudy.offline.walk import Event, walk
from understudy.offline.waypoints import Waypoint, follow
from understudy.registry import module_of, modules
from understudy.simulation.scenario import Config as Rules
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.offline.validate.html_report import Figures

Progress = Callable[[int, int], bool]
"""Called with the number of finished lines and of all lines; returns False to cancel."""
FILE_NAME = re.compile(r"^[^;(]*\.[A-Za-z]+$")
"""A file name: no line of G-code ends in a dot and letters."""
MOST_CLEARANCE_MM = 1000.0
FEWEST_UNREADABLE = 10
"""Syntax errors from which a file may be no program at all."""
LONG = 2000
"""Lines of a program from which motions are planned by a thread of their own."""
AT_ONCE = 4
"""Events that this thread plans while as many are judged."""
PROGRESS_LINES = 200
"""Lines between two calls of the progress callback."""
LONGEST_FOR_HINTS = 200_000
"""Characters of a program that are looked at for hints."""
LINES_OF_HEAD = 500
"""Lines of a program by which it is decided whether more of a fitted value makes it slower."""
RULES_IGNORED = "scenario rules do not act on programs of this robot"


class Cancelled(Exception):  # noqa: N818 (a user's decision, not an error)
    """The progress callback returned False."""


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a validation; `scenario` is the path of a file with rules, `held` of a file with
    the parts that the robot carries (`objects` as in an environment file, from the flange).
    `strict`: every warning is a violation. `workers`: threads for a long program; 0: one for each
    core. Their number changes nothing in a report."""

    robot: str = ""
    dialect: str = ""
    scenario: str = ""
    held: str = ""
    clearance_mm: float | None = None
    with_stops: bool = False
    max_violations: int | None = None
    mode_of_operation: str = ""
    strict: bool = False
    workers: int = 0

    def __post_init__(self) -> None:
        clearance, most = self.clearance_mm, self.max_violations
        if clearance is not None and not 0.0 <= clearance <= MOST_CLEARANCE_MM:
            allowed = f"0…{MOST_CLEARANCE_MM:g}"
            raise ConfigError("out of range", key="clearance_mm", value=clearance, allowed=allowed)
        if most is not None and most < 1:
            raise ConfigError("out of range", key="max_violations", value=most, allowed="1 or more")
        if self.workers < 0:
            raise ConfigError(
                "out of range", key="workers", value=self.workers, allowed="0 or more"
            )

    def judging(self) -> JudgeOptions:
        clearance = None if self.clearance_mm is None else self.clearance_mm * MM
        return JudgeOptions(clearance, self.with_stops, self.max_violations, self.strict)


DEFAULTS = Options()


def validate(
    program: str | bytes | Path,
    cell: str | Path | CellConfig = "default",
    options: Options = DEFAULTS,
) -> Report:
    """Validates a program on a cell.

    ``program``: the path of a file, or the text itself (a string with a line break, or one that is
    no file name). ``cell``: a name, a path, or a loaded configuration.
    """
    where = str(cell) if isinstance(cell, Path) else cell
    if isinstance(program, str) and not _names_a_file(program):
        return validate_text(program, where, options=options)
    if isinstance(program, bytes):
        return validate_text(program, where, options=options)
    return validate_text(read_program(Path(program)), where, options=options, program=str(program))


def _names_a_file(text: str) -> bool:
    """A string that looks like a file name is one, whether the file exists or not."""
    return "\n" not in text and (bool(FILE_NAME.search(text)) or os.path.isfile(text))


def validate_text(
    text: str | bytes,
    cell: str | CellConfig,
    *,
    options: Options = DEFAULTS,
    program: str = "",
    progress: Progress | None = None,
) -> Report:
    """Validates the text of a program on a cell (name, path or configuration).

    Problems of the program are in the report; problems of cell or options raise a ConfigError.
    Raises `Cancelled` if ``progress`` returns False.
    """
    started = perf_counter()
    config = load_config(cell) if isinstance(cell, str) else cell
    subject, events = _prepare(text, config, options, program)
    threads, lines = options.workers or processors(), _line_count(text)
    with (
        _planned_ahead(events, threads > 1 and lines >= LONG) as planned,
        closing(Judge(subject, options.judging(), threads)) as judge,
    ):
        for event in _with_progress(planned, lines, progress):
            judge.add(event)
        report = replace(judge.report(), wall_s=perf_counter() - started)
    robot, program_text = config.robots[report.robot], _as_text(text)
    body = offline_robot(config, report.robot).has_body
    notes = hints(report, program_text, robot.kind, has_body=body) if program_text else []
    report = replace(report, notes=(*notes, *report.notes))
    return _unreadable(report) if _is_unreadable(report) else report


def processors() -> int:
    """The number of cores that this process may use."""
    able = getattr(os, "sched_getaffinity", None)
    return len(able(0)) if able else os.cpu_count() or 1


def _as_text(program: str | bytes) -> str:
    """The text of a program in which hints are looked for; a long one is cut."""
    head = program[:LONGEST_FOR_HINTS]
    return head if isinstance(head, str) else head.decode("utf-8", "replace")


def _is_unreadable(report: Report) -> bool:
    """Most lines are syntax errors: the file is no program at all."""
    wrong = _unreadable_lines(report)
    return wrong >= FEWEST_UNREADABLE and wrong > len(report.lines) / 2


def _unreadable_lines(report: Report) -> int:
    kept = sum(found.kind == "syntax" for found in report.violations)
    return kept + report.unkept.get("syntax", 0)


def _unreadable(report: Report) -> Report:
    """The report with one violation in place of one for each line."""
    wrong = [found for found in report.violations if found.kind == "syntax"]
    whole = (
        f"this is no program for {report.robot}: {_unreadable_lines(report)} of "
        f"{len(report.lines)} lines cannot be read; the first: {wrong[0].message}"
    )
    others = (found for found in report.violations if found.kind != "syntax")
    first = replace(wrong[0], message=whole, last=wrong[-1].line)
    omitted = report.omitted - report.unkept.get("syntax", 0)
    return replace(report, violations=(first, *others), omitted=omitted)


def validate_waypoints(
    waypoints: Sequence[Waypoint],
    cell: str | CellConfig,
    *,
    options: Options = DEFAULTS,
    travel_speed_mm_s: float | None = None,
    process_speed_mm_s: float | None = None,
) -> Report:
    """Like `validate_text`, for waypoints of an arm: line n is waypoint n.

    The speeds apply to waypoints without one; the arc is switched where `process` changes.
    """
    started = perf_counter()
    config = load_config(cell) if isinstance(cell, str) else cell
    robot = chosen_robot(config, options.robot)
    config = in_mode(_holding(config, robot, options.held), robot, options.mode_of_operation)
    setup = offline_robot(config, robot).setup(options.dialect, rules_for(config, options.scenario))
    if setup is None:
        raise ConfigError("waypoints need a robot that runs G-code", key="robot", value=robot)
    travel, process = (
        None if speed is None else speed * MM for speed in (travel_speed_mm_s, process_speed_mm_s)
    )
    events = follow(waypoints, setup, (travel, process))
    report = judge_events(events, subject_of("waypoints", config, robot), options.judging())
    return replace(report, wall_s=perf_counter() - started)


def _prepare(
    text: str | bytes, config: CellConfig, options: Options, program: str
) -> tuple[Subject, Iterator[Event]]:
    """What the program is validated on, and its events."""
    name = chosen_robot(config, options.robot)
    config = _holding(config, name, options.held)
    config = in_mode(config, name, options.mode_of_operation)
    rules, robot = rules_for(config, options.scenario), offline_robot(config, name)
    subject = subject_of(program, config, name)
    if options.scenario and not robot.obeys_rules:
        subject = replace(subject, notes=(*subject.notes, RULES_IGNORED))
    return subject, robot.events(text, options.dialect, rules)


def _holding(config: CellConfig, robot: str, file: str) -> CellConfig:
    """The cell, with the parts of a file in the robot's hand."""
    if not file:
        return config
    given = config.robots[robot]
    if not hasattr(given.config, "collision"):
        raise ConfigError("this robot has no body that could hold a part", key="held", value=robot)
    rules, parts = given.config.collision, read_environment(read_text(Path(file)), file).objects
    rules = structs.replace(rules, held=(*rules.held, *parts))
    holding = structs.replace(given, config=structs.replace(given.config, collision=rules))
    return replace(config, robots={**config.robots, robot: holding})


def subject_of(program: str, config: CellConfig, robot: str) -> Subject:
    """A robot of the cell, as programs are validated on it."""
    keep_pairs_on_disk()
    subject = offline_robot(config, robot).subject(program)
    return replace(subject, notes=(*subject.notes, *_others(config, robot)))


def figures_of(config: CellConfig) -> "Figures":
    """The bodies of the robots of a cell, for the page of a report."""
    from understudy.offline.validate.html_report import figure

    def found(robot: str, tool: int) -> dict[str, Any] | None:
        arm = subject_of("", config, robot).arm(tool)
        return figure(arm, config.read_file) if isinstance(arm, Arm) else None

    return found


def _others(config: CellConfig, robot: str) -> tuple[str, ...]:
    """A note that names the other robots with a body, which the program could meet."""
    bodies = {
        name: each.config.base_mm_deg[:3]
        for name, each in config.robots.items()
        if can_be_checked(config, name) and offline_robot(config, name).has_body
    }
    own = bodies.pop(robot, None)
    there = [name for name, base in bodies.items() if own and base != own]
    return (
        (
            f"only {robot} was checked; not part of this validation: {', '.join(there)} "
            "(ROBOT=PROGRAM for each one checks them together)",
        )
        if there
        else ()
    )


def cycle_time(
    text: str | bytes,
    config: CellConfig,
    *,
    robot: str = "",
    dialect: str = "",
    mode_of_operation: str = "",
    progress: Progress | None = None,
) -> CycleTime:
    """How long a program takes, by the same walk as its validation. A cell that was fitted to a
    real robot gives the interval of the total, too."""
    name = chosen_robot(config, robot)

    def found(cell: CellConfig, program: str | bytes, report: Progress | None = None) -> CycleTime:
        checked = offline_robot(in_mode(cell, name, mode_of_operation), name)
        setup = checked.setup(dialect)
        events = (
            checked.events(program, dialect, NO_RULES) if setup is None else walk(program, setup)
        )
        dynamics = None if setup is None else setup.dynamics
        return cycle_time_of(_with_progress(events, _line_count(program), report), dynamics)

    result = found(config, text, progress)
    slow_fast = _slowest_and_fastest(config, name, lambda cell: found(cell, _head(text)).total_s)
    if slow_fast is None:
        return result
    totals = [result.total_s, *(found(cell, text).total_s for cell in slow_fast)]
    return replace(result, interval_s=(min(totals), max(totals)))


def _slowest_and_fastest(
    config: CellConfig, robot: str, seconds_of: Callable[[CellConfig], float]
) -> tuple[CellConfig, CellConfig] | None:
    """The cell with each fitted value of a robot at the end of its interval where the robot is
    slower, and where it is faster; None if nothing was fitted.

    ``seconds_of``: how long a program takes in a cell. Which end is slower is the same for every
    program, since all values are limits or delays, but only some of them act in each.
    """
    fit = config.sections.get("fit", {}).get(robot)
    own = f"robots.{robot}."
    intervals = {k: each for k, each in fit.intervals.items() if k.startswith(own)} if fit else {}
    if not intervals:
        return None
    from understudy.offline.fit.cell_file import with_values

    slow, fast = {}, {}
    for key, each in intervals.items():
        at_low = seconds_of(with_values(config, {key: each.low}))
        at_high = seconds_of(with_values(config, {key: each.high}))
        slow[key], fast[key] = (each.low, each.high) if at_low >= at_high else (each.high, each.low)
    return with_values(config, slow), with_values(config, fast)


def _head(text: str | bytes) -> str | bytes:
    """The first lines of a program."""
    if isinstance(text, str):
        return "\n".join(text.split("\n", LINES_OF_HEAD)[:LINES_OF_HEAD])
    return b"\n".join(text.split(b"\n", LINES_OF_HEAD)[:LINES_OF_HEAD])


def in_mode(config: CellConfig, robot: str, mode: str) -> CellConfig:
    """The cell with the robot in this mode of operation; empty: that of the cell file.

    A robot without the section `modes` has the modes that its devices add, and no guard.
    """
    if not mode:
        return config
    given = config.robots[robot]
    devices = [module_of("devices", kind) for kind in given.devices]
    allowed = [mode for each in devices for mode in getattr(each, "OPERATION_MODES", ())]
    sections = given.sections
    for _, _, module in modules("jobs"):
        if in_mode := getattr(module, "in_mode", None):
            allowed, sections = in_mode(sections, mode.upper(), allowed)
    if mode.upper() not in allowed:
        raise unknown("mode of operation", mode, allowed, key="--mode-of-operation")
    changed = structs.replace(given, sections=sections)
    return replace(config, robots={**config.robots, robot: changed})


class OfflineJob(Protocol):
    """The check of a job without running its cell, as `offline_check()` of its module gives it."""

    NEEDS: str
    """What a cell with this job has, in words."""

    def is_in(self, config: CellConfig) -> bool: ...

    def validate_job(
        self, config: CellConfig, options: Options = ..., cycles: int = ...
    ) -> Report: ...

    def job_cycle_time(
        self,
        config: CellConfig,
        *,
        robot: str = ...,
        mode_of_operation: str = ...,
        cycles: int = ...,
    ) -> CycleTime: ...


def offline_jobs() -> dict[str, OfflineJob]:
    """The jobs that can be checked without running a cell, by their names on the command line."""
    checks = ((n, getattr(module, "offline_check", None)) for _, n, module in modules("jobs"))
    return {name.replace("_", "-"): check() for name, check in checks if check is not None}


def rules_for(config: CellConfig, scenario: str) -> Rules:
    """The rules of a scenario file, checked against the whole cell; they replace the cell's own."""
    if not scenario:
        return Rules()
    rules = read_rules(read_text(Path(scenario)), scenario)
    try:
        from understudy.app.build import build_cell

        build_cell(config.with_rules(rules))
    except ConfigError as problem:
        raise _in_scenario_file(problem, scenario) from None
    return rules


def _in_scenario_file(problem: ConfigError, scenario: str) -> ConfigError:
    """The error with the scenario file in place of the cell file."""
    if not problem.key.startswith("scenario."):
        return problem
    return ConfigError(
        problem.problem,
        file=scenario,
        key=problem.key.removeprefix("scenario."),
        value=problem.value,
        allowed=problem.allowed,
        nearest=problem.nearest,
    )


@contextmanager
def _planned_ahead(events: Iterator[Event], in_a_thread: bool) -> Iterator[Iterator[Event]]:
    """The same events; a thread plans the next ones while some are judged."""
    if not in_a_thread:
        yield events
        return
    with ThreadPoolExecutor(1, "plan") as thread:

        def ahead() -> Iterator[Event]:
            following = thread.submit(list, islice(events, AT_ONCE))
            while known := following.result():
                following = thread.submit(list, islice(events, AT_ONCE))
                yield from known

        yield ahead()


def _with_progress(
    events: Iterator[Event], total: int, progress: Progress | None
) -> Iterator[Event]:
    for event in events:
        yield event
        if progress is None or not isinstance(event, ProgramLine | PlainLines):
            continue
        first = event.number
        last = first if isinstance(event, ProgramLine) else first + len(event) - 1
        for number in range(first + -first % PROGRESS_LINES, last + 1, PROGRESS_LINES):
            if not progress(number, total):
                raise Cancelled(f"after line {number} of {total}")


def _line_count(text: str | bytes) -> int:
    return (text.count("\n") if isinstance(text, str) else text.count(b"\n")) + 1
