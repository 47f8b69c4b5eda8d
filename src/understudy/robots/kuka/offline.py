"""A KUKA with its G-code server as a subject: its programs as its server carries them out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from understudy.config import CellConfig
from understudy.gcode import Block, Problem
from understudy.gcode.program import ProgramLine
from understudy.motion.dynamics import dynamics
from understudy.motion.path import Limits
from understudy.offline.robot import NO_RULES, collision_notes, refuse_dialect
from understudy.offline.setup import Remark
from understudy.offline.validate import Arm, Subject
from understudy.offline.walk import OBSTACLES, UNSUPPORTED, Event, Kind, Mounted, Run, Violation
from understudy.ports import Deps
from understudy.robots.arm.offline_stage import LEFT_ON
from understudy.robots.kuka.assembly import robot_of
from understudy.robots.kuka.config import Config
from understudy.robots.kuka.course import through
from understudy.robots.kuka.driver_program import ReadLine, Step, read_lines
from understudy.robots.kuka.guarded import body_of
from understudy.robots.kuka.moves import BASES, FIRST_BASE, TOOLS, Leg, Outcome, Robot, Standing
from understudy.simulation import scenario
from understudy.simulation.clock_state import ClockState
from understudy.simulation.rules import Config as Rules
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Frames
from understudy.space.model.environment import Environment
from understudy.units import MM

HOMES = (28, 30)
ROUNDING = 1.0 + 1e-6


def kuka_events(program: str | bytes, config: CellConfig, robot: str) -> Iterator[Event]:
    """What happens in a program; moves pass into each other as the server lets them."""
    own: Config = config.robots[robot].config
    text = program if isinstance(program, str) else program.decode("utf-8", "replace")
    walk = _Walk(_robot(own, config), own.blend_percent / 100.0)
    for line in read_lines(text):
        yield from walk.read(line)
    yield from walk.end()


def kuka_subject(program: str, config: CellConfig, robot: str) -> Subject:
    """The robot among what stands around it, its tools with the shapes they are given."""
    own: Config = config.robots[robot].config
    model = _robot(own, config)
    chain, environment = model.chain, config.environment()
    body = body_of(own, chain, config.read_file)

    @cache
    def with_tool(tool: int) -> Arm:
        detector = body.detector(environment, tool)
        return Arm(
            chain=chain,
            limits=Limits.of(chain.velocity, np.full(chain.dof, np.inf)),
            frames=Frames(np.eye(4), model.tools.get(tool, np.eye(4))),
            foot=body.foot,
            detector=detector,
            dynamics=dynamics(chain),
            sweeper=Sweeper(detector) if own.collision.enable else None,
            stopping=model.home_limits.acceleration,
        )

    notes = collision_notes(body.detector(Environment(), 0), own.collision, environment)
    return Subject(program, config.name, robot, with_tool, environment, notes)


def _robot(own: Config, config: CellConfig) -> Robot:
    deps = Deps(scenario.build(Rules(), 0), config.read_file, ClockState())
    return robot_of(own, deps)


class _Walk:
    """Line by line, as `jobs.walk` does for an arm."""

    def __init__(self, robot: Robot, blend: float) -> None:
        self._robot = robot
        self._blend = blend
        self._standing: Standing = robot.start
        self._legs: list[Leg] = []
        self._tool = robot.start.tool
        self._now = 0.0
        self._job = 0
        self._line = 0

    def read(self, line: ReadLine) -> Iterator[Event]:
        self._line = line.number if line.text.strip() else self._line
        if isinstance(line.steps, Problem):
            yield ProgramLine(line.number, line.text, line.steps)
            refused = line.steps.refused()
            kind: Kind = "unsupported" if refused.code == UNSUPPORTED else "syntax"
            yield Violation(line.number, kind, refused.reason)
            return
        yield ProgramLine(line.number, line.text, _block(line.steps))
        for step in line.steps:
            if lacking := self._lacks(step):
                yield Violation(line.number, "unsupported", f"line {line.number}: {lacking}")
                continue
            yield from self._hurries(step, line.number)
            outcome = self._robot.carry_out(step.numbered(0), self._standing)
            self._standing = outcome.after
            self._job = self._job if outcome.job is None else outcome.job
            if outcome.message:
                said = f"line {line.number}: {outcome.message} ({line.text.strip()})"
                yield Violation(line.number, _kind(outcome), said)
            elif outcome.leg is not None:
                yield from self._follow(outcome.leg, line.number)
            else:
                yield from self.rest()

    def _lacks(self, step: Step) -> str:
        """A tool or base that the robot does not have is told once, where it is chosen."""
        robot, base = self._robot, step.kind - FIRST_BASE + 1
        if step.kind in TOOLS and step.kind not in robot.tools:
            return f"there is no tool {step.kind}; there are {sorted(robot.tools)}"
        if step.kind in BASES and base not in robot.bases:
            return f"there is no base {base} (G{step.kind}); there are {sorted(robot.bases)}"
        return ""

    def _hurries(self, step: Step, line: int) -> Iterator[Event]:
        """The server slows down to the speed it allows; the program was meant for another."""
        asked, allowed = step.words.get("F", 0.0), self._robot.speed_limit
        if asked > allowed * ROUNDING:
            told = f"F = {asked / MM:g} mm/s is more than the {allowed / MM:g} that are allowed"
            yield Remark(line, "velocity", told, np.nan, slight=True)

    def end(self) -> Iterator[Event]:
        """Nothing comes any more."""
        yield from self.rest()
        if self._job:
            yield Remark(self._line, "process", LEFT_ON, self._now)

    def rest(self) -> Iterator[Event]:
        """Motion ends here."""
        if self._legs:
            plan = through(tuple(self._legs), self._now, self._blend).plan
            self._legs.clear()
            self._now = plan.ends
            yield Run(plan, process=False, tool=self._tool)
        if self._tool != self._standing.tool:
            self._tool = self._standing.tool
            yield Mounted(self._line, self._tool, np.array(self._standing.axes), self._now)

    def _follow(self, leg: Leg, line: int) -> Iterator[Event]:
        """A line passes into the next; a swing home or a turn on the spot is from rest to rest."""
        alone = leg.pace == 0.0 or (self._legs and self._legs[-1].pace == 0.0)
        if alone or len(self._legs) >= MOST_LEGS:
            yield from self.rest()
        path = replace(leg.path, line=np.full(len(leg.path), line))
        self._legs.append(replace(leg, path=path))


MOST_LEGS = 1000
"""Moves that are planned at once; beyond them motion is taken to come to rest."""


def _block(steps: list[Step]) -> Block:
    """What a line says, as far as it tells where the robot is then."""
    words = {letter: value for step in steps for letter, value in step.words.items()}
    home = any(step.kind in HOMES for step in steps)
    return Block(commands={"nonmodal": "G28"} if home else {}, values=words)


def _kind(outcome: Outcome) -> Kind:
    return "syntax" if outcome.absurd else OBSTACLES.get(outcome.obstacle, "unreachable")


class KukaOffline:
    """`OfflineRobot` of a KUKA."""

    has_body = True
    obeys_rules = False

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._config = config
        self._robot = robot

    def subject(self, program: str) -> Subject:
        return kuka_subject(program, self._config, self._robot)

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        refuse_dialect(dialect, "kuka")
        return kuka_events(text, self._config, self._robot)

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> None:
        return None
