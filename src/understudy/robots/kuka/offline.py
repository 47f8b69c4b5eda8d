"""Offline check of a program for the KUKA, with the model that its G-code server uses."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from understudy.config import CellConfig
from understudy.gcode import Block, Problem
from understudy.gcode.program import ProgramLine
from understudy.motion.dynamics import Payload, dynamics, gravity_at
from understudy.motion.path import Limits
from understudy.offline.robot import NO_RULES, Arm, Subject, collision_notes, refuse_dialect
from understudy.offline.setup import ARC_LEFT_ON, Remark
from understudy.offline.walk import (
    OBSTACLES,
    UNSUPPORTED,
    Event,
    PlannedMotion,
    ToolMounted,
    Violation,
    ViolationKind,
)
from understudy.robots.kuka import Config, LoadConfig
from understudy.robots.kuka.assembly import body_of, model_of
from understudy.robots.kuka.motion import KukaModel, ModalState, Segment, Trajectory
from understudy.robots.kuka.program import ReadLine, Step, read_lines
from understudy.robots.kuka.records import BASES, HOMES, TOOLS, base_number
from understudy.simulation.scenario import Config as Rules
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Frames
from understudy.space.model.environment import Environment
from understudy.units import MM

ROUNDING = 1.0 + 1e-6
MOST_SEGMENTS = 1000
"""Lines that are planned as one motion; after them the motion is assumed to come to rest."""


class KukaOffline:
    """`OfflineRobot` of a KUKA."""

    has_body = True
    obeys_rules = False

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._cell = config
        self._name = robot
        self._config: Config = config.robots[robot].config

    def subject(self, program: str) -> Subject:
        """The robot in its environment, with the shapes of its tools."""
        own, environment = self._config, self._cell.surroundings()
        model = model_of(own, self._cell.read_file)
        chain = model.chain
        body = body_of(own, chain, self._cell.read_file)

        @cache
        def with_tool(tool: int) -> Arm:
            detector = body.detector(environment, tool)
            return Arm(
                chain=chain,
                limits=Limits.of(chain.velocity, np.full(chain.dof, np.inf)),
                frames=Frames(np.eye(4), model.tools.get(tool, np.eye(4))),
                foot=body.foot,
                detector=detector,
                dynamics=dynamics(
                    chain, payload=_payload(own.tool_loads.get(tool)), gravity=gravity_at(body.foot)
                ),
                sweeper=Sweeper(detector) if own.collision.enable else None,
                stopping=model.home_limits.acceleration,
                tool=tool,
                tool_shapes=body.tools.get(tool, ()),
            )

        notes = collision_notes(body.detector(Environment(), 0), own.collision, environment)
        start = np.array(model.start.axes), model.start.tool
        return Subject(
            program, self._cell.name, self._name, with_tool, environment, notes, start=start
        )

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        """The events of a program; lines pass into each other as on the server."""
        refuse_dialect(dialect, "kuka")
        program = text if isinstance(text, str) else text.decode("utf-8", "replace")
        model = model_of(self._config, self._cell.read_file)
        return walk_program(program, model, self._config.blend_percent / 100.0, model.start)

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> None:
        return None


def walk_program(
    program: str, model: KukaModel, blend: float, start: ModalState
) -> Iterator[Event]:
    walk = _Walk(model, blend, start)
    for line in read_lines(program):
        yield from walk.read(line)
    yield from walk.end()


class _Walk:
    """Carries out a program line by line, without a running cell."""

    def __init__(self, model: KukaModel, blend: float, start: ModalState) -> None:
        self._model = model
        self._blend = blend
        self._modal = start
        self._segments: list[Segment] = []
        self._tool = start.tool
        self._now = 0.0
        self._job = 0
        self._line = 0

    def read(self, line: ReadLine) -> Iterator[Event]:
        self._line = line.number if line.text.strip() else self._line
        if isinstance(line.steps, Problem):
            yield ProgramLine(line.number, line.text, line.steps)
            refused = line.steps.refused()
            kind: ViolationKind = "unsupported" if refused.code == UNSUPPORTED else "syntax"
            yield Violation(line.number, kind, refused.reason)
            return
        yield ProgramLine(line.number, line.text, _block(line.steps))
        for step in line.steps:
            if missing := self._missing_frame(step):
                yield Violation(line.number, "unsupported", f"line {line.number}: {missing}")
                continue
            yield from self._too_fast(step, line.number)
            outcome = self._model.carry_out(step.numbered(0), self._modal)
            self._modal = outcome.after
            self._job = self._job if outcome.job is None else outcome.job
            if outcome.message:
                text = f"line {line.number}: {outcome.message} ({line.text.strip()})"
                kind = OBSTACLES.get(outcome.obstacle, "unreachable")
                yield Violation(line.number, "syntax" if outcome.malformed else kind, text)
            elif outcome.segment is not None:
                yield from self._follow(outcome.segment, line.number)
            else:
                yield from self.rest()

    def _missing_frame(self, step: Step) -> str:
        """Why a tool or base cannot be selected; it is reported once, at its selection."""
        model, base = self._model, base_number(step.kind)
        if step.kind in TOOLS and step.kind not in model.tools:
            return f"there is no tool {step.kind}; there are {sorted(model.tools)}"
        if step.kind in BASES and base not in model.bases:
            return f"there is no base {base} (G{step.kind}); there are {sorted(model.bases)}"
        return ""

    def _too_fast(self, step: Step, line: int) -> Iterator[Event]:
        """A remark if the server reduces the programmed speed to its limit."""
        wanted, allowed = step.words.get("F", 0.0), self._model.speed_limit
        if wanted > allowed * ROUNDING:
            text = f"F = {wanted / MM:g} mm/s is above the limit of {allowed / MM:g} mm/s"
            yield Remark(line, "velocity", text, np.nan, slight=True)

    def end(self) -> Iterator[Event]:
        """Events at the end of the program."""
        yield from self.rest()
        if self._job:
            yield Remark(self._line, "process", ARC_LEFT_ON, self._now)

    def rest(self) -> Iterator[Event]:
        """Plans the collected segments, which end at rest; then mounts the selected tool."""
        if self._segments:
            segments = tuple(self._segments)
            plan = Trajectory.from_rest(segments, self._now, self._blend).plan
            self._segments.clear()
            self._now = plan.ends
            yield PlannedMotion(plan, process=False, tool=self._tool)
        if self._tool != self._modal.tool:
            self._tool = self._modal.tool
            yield ToolMounted(self._line, self._tool, np.array(self._modal.axes), self._now)

    def _follow(self, segment: Segment, line: int) -> Iterator[Event]:
        """Adds a segment. Lines pass into each other; home and a turn on the spot start and end at
        rest."""
        alone = segment.speed == 0.0 or (self._segments and self._segments[-1].speed == 0.0)
        if alone or len(self._segments) >= MOST_SEGMENTS:
            yield from self.rest()
        path = replace(segment.path, line=np.full(len(segment.path), line))
        self._segments.append(replace(segment, path=path))


def _payload(load: LoadConfig | None) -> Payload | None:
    return None if load is None else Payload(load.mass_kg, np.array(load.com_mm) * MM)


def _block(steps: list[Step]) -> Block:
    """The words of a line that determine where the robot is after it."""
    words = {letter: value for step in steps for letter, value in step.words.items()}
    home = any(step.kind in HOMES for step in steps)
    return Block(commands={"nonmodal": "G28"} if home else {}, values=words)
