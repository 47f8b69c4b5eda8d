"""The one function behind `understudy validate`, the library and whoever asks from elsewhere."""

import os.path
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from msgspec import Struct

from understudy.app.build import build_cell, load_config
from understudy.config import CellConfig
from understudy.config.cell import read_rules
from understudy.config.files import read_program, read_text
from understudy.errors import ConfigError, unknown
from understudy.gcode.program import ProgramLine
from understudy.offline.cycle_time import CycleTime, CycleTimeEstimator, added_up
from understudy.offline.setup import Setup
from understudy.offline.setups import programmable
from understudy.offline.validate import Judge, Report, Subject, judged
from understudy.offline.validate import Options as Judging
from understudy.offline.walk import Event, walk
from understudy.offline.waypoints import Waypoint, follow
from understudy.robots.arm.offline import NO_RULES, arm_setup, arm_subject
from understudy.robots.grblhal.offline import machine_setup, machine_subject
from understudy.robots.kuka.offline import kuka_events, kuka_subject
from understudy.robots.text_robot.offline import text_robot_events, text_robot_subject
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
BODIES = ("arm", "kuka")
"""Kinds of robots that reach somewhere, and could touch something there."""
KINDS = (*BODIES, "machine", "text_robot")
OWN_LANGUAGE = {"kuka": kuka_events, "text_robot": text_robot_events}
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
    robot = options.robot or programmable(config)[0]
    setup = arm_setup(config, robot, options.dialect, _rules(config, options.scenario))
    travel, process = (
        None if speed is None else speed * MM for speed in (travel_speed_mm_s, process_speed_mm_s)
    )
    events = follow(waypoints, setup, (travel, process))
    report = judged(events, subject_of("waypoints", config, robot), options.judging())
    return replace(report, wall_s=perf_counter() - begun)


def _cast(
    text: str | bytes, config: CellConfig, options: Options, program: str
) -> tuple[Subject, Iterator[Event]]:
    """Who is judged, and what happens."""
    robot = robot_of(config, options.robot)
    _check_mode(config, robot, options.mode_of_operation)
    rules = _rules(config, options.scenario)
    subject = subject_of(program, config, robot)
    if options.scenario and config.robots[robot].kind in OWN_LANGUAGE:
        subject = replace(subject, notes=(*subject.notes, NO_CHANCE))
    return subject, events_of(text, config, robot, dialect=options.dialect, rules=rules)


def subject_of(program: str, config: CellConfig, robot: str) -> Subject:
    """A robot of the cell, as programs are judged by it."""
    subjects = {
        "arm": arm_subject,
        "kuka": kuka_subject,
        "machine": machine_subject,
        "text_robot": text_robot_subject,
    }
    subject = subjects[config.robots[robot].kind](program, config, robot)
    return replace(subject, notes=(*subject.notes, *_others(config, robot)))


def _others(config: CellConfig, robot: str) -> tuple[str, ...]:
    """A proof is about one program; the other arms, which it could meet, are not in it."""
    bodies = {name: each.config for name, each in config.robots.items() if each.kind in BODIES}
    own = bodies.pop(robot, None)
    there = [n for n, each in bodies.items() if own and each.base_mm_deg[:3] != own.base_mm_deg[:3]]
    return (f"other robots of the cell are not looked at: {', '.join(there)}",) if there else ()


def events_of(
    text: str | bytes,
    config: CellConfig,
    robot: str,
    *,
    dialect: str = "",
    rules: Rules = NO_RULES,
) -> Iterator[Event]:
    """What happens in a program of a robot."""
    kind = config.robots[robot].kind
    if kind in OWN_LANGUAGE:
        if dialect:
            allowed = f"none: a robot of kind {kind} has a language of its own"
            raise ConfigError("--dialect", value=dialect, allowed=allowed)
        return OWN_LANGUAGE[kind](text, config, robot)
    return walk(text, setup_of(config, robot, dialect, rules))


def setup_of(config: CellConfig, robot: str, dialect: str = "", rules: Rules = NO_RULES) -> Setup:
    """What G-code of a robot is walked on."""
    setups = {"arm": arm_setup, "machine": machine_setup}
    return setups[config.robots[robot].kind](config, robot, dialect, rules)


def cycle_time(
    text: str | bytes, config: CellConfig, *, robot: str = "", dialect: str = ""
) -> CycleTime:
    """How long a program takes, by the same walk as its proof."""
    name = robot_of(config, robot)
    if config.robots[name].kind in OWN_LANGUAGE:
        return added_up(events_of(text, config, name, dialect=dialect))
    return CycleTimeEstimator(setup_of(config, name, dialect)).estimate(text)


def robot_of(config: CellConfig, robot: str, kinds: Sequence[str] = KINDS) -> str:
    """The robot that is meant: if none is named the first one with a body, or else the first."""
    able = [name for name, each in config.robots.items() if each.kind in kinds]
    if not able:
        allowed = " or ".join(kinds)
        raise ConfigError(f"no robot of the cell {config.name} is of kind {allowed}")
    if robot and robot not in able:
        raise unknown("robot that runs programs", robot, able)
    bodies = [name for name in able if config.robots[name].kind in BODIES]
    return robot or (bodies or able)[0]


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
