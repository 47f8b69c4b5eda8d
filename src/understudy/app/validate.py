"""The one function behind `understudy validate`, the library and whoever asks from elsewhere."""

import os.path
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from msgspec import Struct

from understudy.app.build import build_cell
from understudy.config import CellConfig, load_config
from understudy.config.cell import read_rules
from understudy.config.files import read_program, read_text
from understudy.errors import ConfigError, unknown
from understudy.gcode.program import ProgramLine
from understudy.offline.cycle_time import CycleTime, CycleTimeEstimator, added_up
from understudy.offline.robot import NO_RULES, can_be_checked, chosen_robot, offline_robot
from understudy.offline.validate import Judge, Report, Subject, judged
from understudy.offline.validate import Options as Judging
from understudy.offline.walk import Event
from understudy.offline.waypoints import Waypoint, follow
from understudy.simulation.rules import Config as Rules
from understudy.units import MM

Progress = Callable[[int, int], bool]
"""Told how many lines of how many are through; answers whether to go on."""
FILE_NAME = re.compile(r"^[^;(]*\.[A-Za-z]+$")
"""No line of G-code ends in a dot and letters."""
MOST_CLEARANCE_MM = 1000.0
EVERY = 200
"""Lines between two words of progress."""
WELDING = "WELDING"
NO_CHANCE = "scenario rules do not act on programs of this robot"


class Cancelled(Exception):  # noqa: N818 (no error: somebody wanted it so)
    """Whoever was told of the progress did not want to go on."""


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `understudy validate` can be told; `scenario` is the path of a file with rules."""

    robot: str = ""
    dialect: str = ""
    scenario: str = ""
    clearance_mm: float | None = None
    with_stops: bool = False
    max_violations: int | None = None
    mode_of_operation: str = ""

    def __post_init__(self) -> None:
        clearance, most = self.clearance_mm, self.max_violations
        if clearance is not None and not 0.0 <= clearance <= MOST_CLEARANCE_MM:
            allowed = f"0…{MOST_CLEARANCE_MM:g}"
            raise ConfigError(
                "not kept by anything", key="clearance_mm", value=clearance, allowed=allowed
            )
        if most is not None and most < 1:
            raise ConfigError("none is told", key="max_violations", value=most, allowed="1 or more")

    def judging(self) -> Judging:
        clearance = None if self.clearance_mm is None else self.clearance_mm * MM
        return Judging(clearance, self.with_stops, self.max_violations)


AS_USUAL = Options()


def validate(
    program: str | bytes | Path,
    cell: str | Path | CellConfig = "default",
    options: Options = AS_USUAL,
) -> Report:
    """Prove a program on a cell. The program: the path of a file, or text (what has a line break
    in it, or is no file's name). The cell: a name, a path, or a configuration that was loaded."""
    where = str(cell) if isinstance(cell, Path) else cell
    if isinstance(program, str) and not _names_a_file(program):
        return validate_text(program, where, options=options)
    if isinstance(program, bytes):
        return validate_text(program, where, options=options)
    return validate_text(read_program(Path(program)), where, options=options, program=str(program))


def _names_a_file(text: str) -> bool:
    """What is called like a file is meant as one, be it there or not."""
    return "\n" not in text and (bool(FILE_NAME.search(text)) or os.path.isfile(text))


def validate_text(
    text: str | bytes,
    cell: str | CellConfig,
    *,
    options: Options = AS_USUAL,
    program: str = "",
    progress: Progress | None = None,
) -> Report:
    """Prove the text of a program on a cell, by name, path or configuration.

    What is wrong with the program is in the report; what is wrong with cell or options is a
    ConfigError. `Cancelled` if ``progress`` says so.
    """
    begun = perf_counter()
    config = load_config(cell) if isinstance(cell, str) else cell
    subject, events = _cast(text, config, options, program)
    judge = Judge(subject, options.judging())
    for event in _watched(events, _line_count(text), progress):
        judge.add(event)
    return replace(judge.report(), wall_s=perf_counter() - begun)


def validate_waypoints(
    waypoints: Sequence[Waypoint],
    cell: str | CellConfig,
    *,
    options: Options = AS_USUAL,
    travel_speed_mm_s: float | None = None,
    process_speed_mm_s: float | None = None,
) -> Report:
    """Like `validate_text`, of an arm's waypoints: line n is waypoint n. Speeds of the tool where
    a waypoint has none; the arc is switched where `process` changes."""
    begun = perf_counter()
    config = load_config(cell) if isinstance(cell, str) else cell
    robot = chosen_robot(config, options.robot)
    setup = offline_robot(config, robot).setup(options.dialect, _rules(config, options.scenario))
    if setup is None:
        raise ConfigError("waypoints need a robot that runs G-code", key="robot", value=robot)
    travel, process = (
        None if speed is None else speed * MM for speed in (travel_speed_mm_s, process_speed_mm_s)
    )
    events = follow(waypoints, setup, (travel, process))
    report = judged(events, subject_of("waypoints", config, robot), options.judging())
    return replace(report, wall_s=perf_counter() - begun)


def _cast(
    text: str | bytes, config: CellConfig, options: Options, program: str
) -> tuple[Subject, Iterator[Event]]:
    """What the program is judged by, and what happens in it."""
    name = chosen_robot(config, options.robot)
    _check_mode(config, name, options.mode_of_operation)
    rules, robot = _rules(config, options.scenario), offline_robot(config, name)
    subject = subject_of(program, config, name)
    if options.scenario and not robot.obeys_rules:
        subject = replace(subject, notes=(*subject.notes, NO_CHANCE))
    return subject, robot.events(text, options.dialect, rules)


def subject_of(program: str, config: CellConfig, robot: str) -> Subject:
    """A robot of the cell, as programs are judged by it."""
    subject = offline_robot(config, robot).subject(program)
    return replace(subject, notes=(*subject.notes, *_others(config, robot)))


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
        (f"only {robot} was checked; not part of this validation: {', '.join(there)}",)
        if there
        else ()
    )


def cycle_time(
    text: str | bytes, config: CellConfig, *, robot: str = "", dialect: str = ""
) -> CycleTime:
    """How long a program takes, by the same walk as its validation."""
    checked = offline_robot(config, chosen_robot(config, robot))
    setup = checked.setup(dialect)
    if setup is None:
        return added_up(checked.events(text, dialect, NO_RULES))
    return CycleTimeEstimator(setup).estimate(text)


def _check_mode(config: CellConfig, robot: str, mode: str) -> None:
    """Modes of operation are those of a welding arm; other cells have none."""
    welds = getattr(config.robots[robot].config, "welder", None) is not None
    allowed = (WELDING,) if welds else ()
    if mode and mode.upper() not in allowed:
        raise unknown("mode of operation", mode, allowed, key="--mode-of-operation")


def _rules(config: CellConfig, scenario: str) -> Rules:
    """Those of a scenario file, in place of the cell's own; checked against the whole cell."""
    if not scenario:
        return Rules()
    rules = read_rules(read_text(Path(scenario)), scenario)
    try:
        build_cell(config.with_rules(rules))
    except ConfigError as problem:
        raise _of_scenario(problem, scenario) from None
    return rules


def _of_scenario(problem: ConfigError, scenario: str) -> ConfigError:
    """What is wrong with a rule is told with the file it stands in."""
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


def _watched(events: Iterator[Event], total: int, progress: Progress | None) -> Iterator[Event]:
    for event in events:
        yield event
        if progress is None or not isinstance(event, ProgramLine) or event.number % EVERY:
            continue
        if not progress(event.number, total):
            raise Cancelled(f"after line {event.number} of {total}")


def _line_count(text: str | bytes) -> int:
    return (text.count("\n") if isinstance(text, str) else text.count(b"\n")) + 1
