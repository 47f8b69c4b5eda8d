"""A robot without joints as a subject: its own commands that move, one to a line."""

from collections.abc import Iterator

import numpy as np

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.motion.path import Limits
from understudy.offline.robot import NO_RULES, refuse_dialect
from understudy.offline.validate import Machine, Subject
from understudy.offline.walk import Event, Glide, Violation
from understudy.ports import Deps, Ticket
from understudy.robots.text_robot.driver_program import Move, ReadLine, read_lines
from understudy.robots.text_robot.robot import Config, TextRobot, build
from understudy.simulation import scenario
from understudy.simulation.clock_state import ClockState
from understudy.simulation.rules import Config as Rules
from understudy.space.pose import Pose
from understudy.units import DEG, MM, seconds

NO_BODY = "this robot has no body in this cell: what it could touch is not looked at"
NO_ENVELOPE = "this robot has no envelope_mm in this cell: it may be sent anywhere"
LOOKS = 20
"""Places of a move that are kept for a picture."""
AXES = ("X", "Y", "Z", "RX", "RY", "RZ")
AXIS_UNITS = np.array([MM, MM, MM, DEG, DEG, DEG])


def text_robot_subject(program: str, config: CellConfig, robot: str) -> Subject:
    own: Config = config.robots[robot].config
    endless = np.full(len(AXES), np.inf)
    rotary = (False, False, False, True, True, True)
    body = Machine(AXES, Limits.of(endless, endless), (-endless, endless), rotary)
    notes = (NO_BODY,) if own.envelope_mm else (NO_BODY, NO_ENVELOPE)
    return Subject(program, config.name, robot, lambda tool: body, notes=notes)


def text_robot_events(program: str | bytes, config: CellConfig, robot: str) -> Iterator[Event]:
    """What happens in a program; each move begins when the one before it has ended."""
    text = program if isinstance(program, str) else program.decode("utf-8", "replace")
    own: Config = config.robots[robot].config
    deps = Deps(scenario.build(Rules(), 0), config.read_file, ClockState())
    try:
        walk = _Walk(build(robot, own, deps))
    except ConfigError as problem:
        raise config.document.error((), problem.within(f"robots.{robot}")) from None
    return (event for line in read_lines(text) for event in walk.read(line))


class _Walk:
    """Line by line, on the cell's own robot."""

    def __init__(self, robot: TextRobot) -> None:
        self._robot = robot
        self._now = 0

    def read(self, line: ReadLine) -> Iterator[Event]:
        yield ProgramLine(line.number, line.text, Block())
        if isinstance(line.move, Refused):
            yield Violation(line.number, "syntax", line.move.reason)
        elif line.move is not None:
            yield self._run(line.move)

    def _run(self, move: Move) -> Event:
        begins = self._now
        ticket = self._submit(move)
        if isinstance(ticket, Refused):
            return Violation(move.line, "unreachable", f"line {move.line}: {ticket.reason}")
        ends = self._robot.next_wake() or begins
        times = np.linspace(begins, ends, LOOKS).round().astype(np.int64)
        poses = np.array([self._robot.tcp(int(at)) for at in times])
        self._now = ends
        self._robot.wake(ends)
        return Glide(move.line, np.array([seconds(int(at)) for at in times]), poses / AXIS_UNITS)

    def _submit(self, move: Move) -> Ticket | Refused:
        robot, now = self._robot, self._now
        if move.verb == "HOME":
            return robot.home(now)
        x, y, z = (value * MM for value in move.values[:3])
        if move.verb == "MOVE_REL":
            return robot.move_by(x, y, z, now)
        return robot.move_to(Pose(x, y, z, *(a * DEG for a in move.values[3:])), now)


class TextRobotOffline:
    """`OfflineRobot` of a text robot."""

    has_body = False
    obeys_rules = False

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._config = config
        self._robot = robot

    def subject(self, program: str) -> Subject:
        return text_robot_subject(program, self._config, self._robot)

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        refuse_dialect(dialect, "text_robot")
        return text_robot_events(text, self._config, self._robot)

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> None:
        return None
