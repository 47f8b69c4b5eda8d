"""Validation of the programs of several robots of a cell in one proof."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from understudy.app.build import repeatable_run
from understudy.app.self_pairs import keep_pairs_on_disk
from understudy.app.validate import DEFAULTS, Options, in_mode, rules_for
from understudy.config import CellConfig, load_config
from understudy.config.files import read_program
from understudy.errors import ConfigError, unknown
from understudy.offline.recorded_run import RecordedRun, is_recorded
from understudy.offline.robot import OfflineRobot, Subject, can_be_checked, offline_robot
from understudy.offline.shared_pins import (
    Handshake,
    SharedPins,
    SharesPins,
    Walk,
    handshakes,
    walk_together,
)
from understudy.offline.validate.judge import Judge
from understudy.offline.validate.report import Report
from understudy.offline.validate.several_robots import (
    CheckedRobot,
    Met,
    MotionRecord,
    check_all,
    with_others,
)
from understudy.offline.walk import Event
from understudy.registry import module_of
from understudy.simulation import scenario
from understudy.simulation.io.robot_links import robot_wires
from understudy.simulation.scenario import Config as Rules

LONGEST_SHIFT_S = 3600.0
ANY_TIMING = "any"


class RobotProgram(NamedTuple):
    """A program of one robot: its name for the report, and its text."""

    robot: str
    name: str
    text: str | bytes


def timing_of(given: str) -> float | None:
    """Seconds of a timing as it is written: `0.5`, `±0.5`, `any`; None if nothing is written."""
    text = given.strip().lstrip("±").removesuffix("s").strip()
    if not given:
        return None
    if given == ANY_TIMING:
        return math.inf
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= LONGEST_SHIFT_S:
        allowed = f"0…{LONGEST_SHIFT_S:g} seconds, or {ANY_TIMING}"
        raise ConfigError("this is no timing", key="--timing", value=given, allowed=allowed)
    return seconds


def own_programs(config: CellConfig) -> list[RobotProgram]:
    """The programs that the cell file gives its robots, of those robots that can be checked."""
    return [
        RobotProgram(name, robot.program.name, robot.program.text)
        for name, robot in config.robots.items()
        if robot.program is not None and _takes_part(config, name)
    ]


def _takes_part(config: CellConfig, robot: str) -> bool:
    return can_be_checked(config, robot) or is_recorded(config, robot)


def assigned_programs(programs: Sequence[Path], config: CellConfig) -> list[RobotProgram]:
    """The programs of arguments `robot=file`; none if no argument is written like this."""
    found: list[RobotProgram] = []
    for program in programs:
        robot, sign, file = str(program).partition("=")
        if sign and not program.exists() and file:
            able = [name for name in config.robots if _takes_part(config, name)]
            if robot not in able:
                raise unknown("robot that runs programs", robot, able)
            if any(each.robot == robot for each in found):
                raise ConfigError("each robot runs one program", key=robot, value=str(program))
            found.append(RobotProgram(robot, file, read_program(Path(file))))
    if found and len(found) < len(programs):
        other = next(str(each) for each in programs if "=" not in str(each))
        raise ConfigError(
            "every program needs its robot if one has it", value=other, allowed="ROBOT=PROGRAM"
        )
    return found


def validate_together(
    programs: Mapping[str, str | bytes] | Sequence[RobotProgram],
    cell: str | CellConfig,
    *,
    options: Options = DEFAULTS,
    timing_s: float | None = None,
) -> list[Report]:
    """Validates the programs of several robots of a cell, and the clearance between these robots.

    ``programs``: text by robot, or with names. ``timing_s``: None checks the planned timing; else
    every timing in which the robots are at most this many seconds apart from it, as far as the
    handshakes allow it; `math.inf`: any timing. One report for each program, in their order.
    """
    started = perf_counter()
    config = load_config(cell) if isinstance(cell, str) else cell
    given = (
        [RobotProgram(robot, robot, text) for robot, text in programs.items()]
        if isinstance(programs, Mapping)
        else list(programs)
    )
    _check_options(options, given, config)
    keep_pairs_on_disk()
    rules = rules_for(config, options.scenario)
    for each in given:
        config = in_mode(config, each.robot, options.mode_of_operation)
    driven = [each for each in given if is_recorded(config, each.robot)]
    planned = [each for each in given if each not in driven]
    events, signals = _events(planned, config, options, rules)
    judges = {each.robot: _Judged(each, config, options) for each in planned}
    for name, judged in judges.items():
        for event in events[name]:
            judged.add(event)
    runs = _recorded_runs(config, driven)
    met = _met(list(judges.values()), runs, driven, config, options, timing_s, signals)
    wall = perf_counter() - started
    reports = [
        judges[each.robot].judge.report()
        if each.robot in judges
        else runs[each.robot].report(each.name, config.name, each.robot)
        for each in given
    ]
    notes = _notes(list(judges.values()), runs, config)
    return [
        replace(found, wall_s=wall, notes=(*notes, *found.notes))
        for report, each in zip(reports, given, strict=True)
        for found in (with_others(report, met.get(each.robot, Met())),)
    ]


def _recorded_runs(config: CellConfig, programs: Sequence[RobotProgram]) -> dict[str, RecordedRun]:
    """The runs of the robots that drive, with those that have no program."""
    runs: dict[str, RecordedRun] = {}
    kinds = {config.robots[name].kind for name in config.robots if is_recorded(config, name)}
    for kind in sorted(kinds):
        own = {each.robot: each.text for each in programs if config.robots[each.robot].kind == kind}
        faults = scenario.build(Rules(), config.head.seed)
        runs |= module_of("robots", kind).recorded_runs(config, own, faults, repeatable_run(config))
    return runs


def _check_options(options: Options, given: Sequence[RobotProgram], config: CellConfig) -> None:
    if not given:
        raise ConfigError("no programs are given", allowed="programs of robots of the cell")
    for each in given:
        able = [name for name in config.robots if _takes_part(config, name)]
        if each.robot not in able:
            raise unknown("robot that runs programs", each.robot, able)
    for key in ("robot", "held", "dialect"):
        if getattr(options, key):
            raise ConfigError(
                "this option belongs to one robot",
                key=f"--{key}",
                value=getattr(options, key),
                allowed="one program, without a robot before it",
            )


class _Judged:
    """A program that is judged, with the motion of its robot."""

    def __init__(self, program: RobotProgram, config: CellConfig, options: Options) -> None:
        self.program = program
        self.robot = offline_robot(config, program.robot)
        self.subject = self.robot.subject(program.name)
        self.judge = Judge(self.subject, options.judging())
        watched = self.robot.has_body and _is_watched(config, program.robot, self.subject)
        self.record = MotionRecord(self.subject) if watched else None

    def add(self, event: Event) -> None:
        self.judge.add(event)
        if self.record is not None:
            self.record.add(event)


def _is_watched(config: CellConfig, robot: str, subject: Subject) -> bool:
    """Whether contacts of a robot are checked, as in the running cell."""
    rules = getattr(config.robots[robot].config, "collision", None)
    return subject.start is not None and (
        rules is not None and rules.enable and rules.check_environment
    )


def _events(
    given: Sequence[RobotProgram], config: CellConfig, options: Options, rules: Rules
) -> tuple[dict[str, Any], list[Handshake]]:
    """The events of all programs, and the handshakes between them."""
    robots: dict[str, OfflineRobot] = {
        each.robot: offline_robot(config, each.robot) for each in given
    }
    pins = {
        name: robot.pins()
        for name in config.robots
        if can_be_checked(config, name)
        and isinstance(robot := offline_robot(config, name), SharesPins)
    }
    wires = robot_wires(config.head.links, pins)
    linked = {name for wire in wires for name in (wire.source, wire.target)}
    events: dict[str, Any] = {
        each.robot: robots[each.robot].events(each.text, options.dialect, rules)
        for each in given
        if each.robot not in linked
    }
    walks = {
        each.robot: _walk_of(robots[each.robot], each, rules)
        for each in given
        if each.robot in linked
    }
    walked, shared = walk_together(walks, wires) if walks else ({}, {})
    return events | walked, handshakes(wires, shared)


def _walk_of(robot: OfflineRobot, program: RobotProgram, rules: Rules) -> Walk:
    def walk(shared: SharedPins) -> list[Event]:
        assert isinstance(robot, SharesPins)
        return list(robot.events_with(program.text, "", rules, shared))

    return walk


def _met(
    judges: Sequence[_Judged],
    runs: Mapping[str, RecordedRun],
    driven: Sequence[RobotProgram],
    config: CellConfig,
    options: Options,
    timing_s: float | None,
    signals: Sequence[Handshake],
) -> dict[str, Met]:
    """What is proven of every pair of robots."""
    checked = []
    for judged in judges:
        if judged.record is not None:
            motion, numbers = judged.record.robot()
            checked.append(CheckedRobot(judged.program.robot, judged.program.name, motion, numbers))
    checked += _standing(config, [judged.program.robot for judged in judges])
    feet = {each.name: config.robots[each.name].config.base_mm_deg[:3] for each in checked}
    programs = {each.robot: each.name for each in driven}
    checked += [
        CheckedRobot(name, programs.get(name, ""), run.motion, run.numbers)
        for name, run in runs.items()
    ]
    one_spot = [pair for pair in combinations(feet, 2) if feet[pair[0]] == feet[pair[1]]]
    return check_all(checked, options.judging(), timing_s, signals, one_spot)


def _standing(config: CellConfig, running: Sequence[str]) -> list[CheckedRobot]:
    """The robots with a body that have no program here: they stand where they start."""
    found = []
    for name in config.robots:
        if name in running or not can_be_checked(config, name):
            continue
        robot = offline_robot(config, name)
        subject = robot.subject("") if robot.has_body else None
        if subject is not None and _is_watched(config, name, subject):
            motion, numbers = MotionRecord(subject).robot()
            found.append(CheckedRobot(name, "", motion, numbers))
    return found


def _notes(
    judges: Sequence[_Judged], runs: Mapping[str, RecordedRun], config: CellConfig
) -> list[str]:
    """Which robots of the cell are not part of the proof, and why."""
    checked = {judged.program.robot for judged in judges if judged.record is not None} | set(runs)
    bodiless = [j.program.robot for j in judges if j.record is None]
    notes = [f"{name} has no body that is checked against the other robots" for name in bodiless]
    rest = [name for name in config.robots if name not in checked and name not in bodiless]
    absent = [name for name in rest if not _can_stand(config, name)]
    if absent:
        notes.append(f"not part of this proof: {', '.join(absent)}")
    return notes


def _can_stand(config: CellConfig, robot: str) -> bool:
    if not can_be_checked(config, robot):
        return False
    found = offline_robot(config, robot)
    return found.has_body and _is_watched(config, robot, found.subject(""))
