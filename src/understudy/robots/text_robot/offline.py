"""The text robot without a running cell: the check of a program, which runs on the simulated robot
of the cell, and what a recording shows.
"""

from collections.abc import Iterator
from statistics import median

import numpy as np

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.motion.path import Limits
from understudy.offline.fit import Measured, Recorded, events_of
from understudy.offline.robot import NO_RULES, Machine, Subject, refuse_dialect
from understudy.offline.walk import Event, PoseMotion, Violation
from understudy.robots.text_robot.program import Move, ReadLine, read_lines
from understudy.robots.text_robot.robot import Config, TextRobot, check
from understudy.simulation import scenario
from understudy.simulation.scenario import Config as Rules
from understudy.space.pose import Pose
from understudy.units import DEG, MM, seconds
from understudy.wire.chat import Chat

NO_BODY = "this robot has no body in this cell: collisions are not checked"
NO_ENVELOPE = "this robot has no envelope_mm in this cell: every target is allowed"
SAMPLES = 20
"""Number of poses that the report draws per move."""
AXES = ("X", "Y", "Z", "RX", "RY", "RZ")
AXIS_UNITS = np.array([MM, MM, MM, DEG, DEG, DEG])


class TextRobotOffline:
    """`OfflineRobot` of a text robot."""

    has_body = False
    obeys_rules = False

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._cell = config
        self._name = robot
        self._config: Config = config.robots[robot].config

    def subject(self, program: str) -> Subject:
        endless = np.full(len(AXES), np.inf)
        rotary = (False, False, False, True, True, True)
        body = Machine(AXES, Limits.of(endless, endless), (-endless, endless), rotary)
        notes = (NO_BODY,) if self._config.envelope_mm else (NO_BODY, NO_ENVELOPE)
        return Subject(program, self._cell.name, self._name, lambda tool: body, notes=notes)

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        """The events of a program; each move begins when the move before it ends."""
        refuse_dialect(dialect, "text_robot")
        program = text if isinstance(text, str) else text.decode("utf-8", "replace")
        try:
            check(self._config)
        except ConfigError as problem:
            error = problem.within(f"robots.{self._name}")
            raise self._cell.document.error((), error) from None
        return walk_program(program, self._config)

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> None:
        return None


def walk_program(program: str, config: Config, start: Pose | None = None) -> Iterator[Event]:
    """The events of a program; it begins at ``start``, or where the robot of a cell starts."""
    robot = TextRobot("", config, scenario.build(NO_RULES, 0))
    if start is not None:
        robot.state.rest = start
    walk = _Walk(robot)
    return (event for line in read_lines(program) for event in walk.read(line))


class _Walk:
    """Runs a program line by line on the simulated robot."""

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
        ticket = move.submit(self._robot, begins)
        if isinstance(ticket, Refused):
            return Violation(move.line, "unreachable", f"line {move.line}: {ticket.reason}")
        ends = self._robot.next_wake() or begins
        times = np.linspace(begins, ends, SAMPLES).round().astype(np.int64)
        poses = np.array([self._robot.tcp(int(at)) for at in times])
        self._now = ends
        self._robot.wake(ends)
        return PoseMotion(
            move.line, np.array([seconds(int(at)) for at in times]), poses / AXIS_UNITS
        )


# ── what a recording shows ────────────────────────────────────────────────────────────────────────


TIMES = {"MOVE_ABS": "move_abs_ms", "MOVE_REL": "move_rel_ms", "HOME": "home_ms"}
"""Commands that move, and the key of their time in the cell file."""
AT_ONCE = ("GET_POS", "GET_STATUS")


def recorded_robot(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """The times of moves and the delay of answers in a recording.

    A move is answered when it has ended; GET_POS and GET_STATUS are answered at once, so that they
    show the delay. A client that sends ahead makes moves wait for each other: the time of a move
    begins when the one before it was answered.
    """
    endpoint, events = events_of(chat, config, robot, "text_tcp")
    waiting: list[tuple[str, float]] = []
    said = heard = b""
    answered = 0.0
    taken: dict[str, list[tuple[float, float, float]]] = {}
    for event in events:
        at = 1e3 * seconds(event.at)
        if event.kind == ">":
            *lines, said = (said + event.data).split(b"\n")
            words = [line.split(None, 1)[:1] for line in lines]
            waiting += [(word[0].decode("latin-1").upper(), at) for word in words if word]
        elif event.kind == "<":
            *lines, heard = (heard + event.data).split(b"\n")
            for line in lines[: len(waiting)]:
                verb, sent = waiting.pop(0)
                if line.startswith(b"OK"):
                    taken.setdefault(verb, []).append((at, sent, answered))
                answered = at
    waits = [
        at - sent for verb in AT_ONCE for at, sent, last in taken.get(verb, ()) if sent >= last
    ]
    usual = median(waits) if waits else 0.0
    notes = (
        () if waits else ("without GET_POS or GET_STATUS the times contain the delay of answers",)
    )
    measured = [
        Measured(
            ("robots", robot, key),
            f"time of {verb}",
            "ms",
            [at - max(sent + usual, last) for at, sent, last in taken.get(verb, ())],
            "answers",
            whole=True,
        )
        for verb, key in TIMES.items()
    ]
    keys = ("scenario", "rules", "answer_delay", "parameters", "delay_ms")
    measured.append(Measured(keys, "delay of answers", "ms", waits, "answers"))
    rules = {"answer_delay": {"fault": "message_delay", "on": endpoint}} if waits else {}
    return Recorded(measured=tuple(measured), rules=rules, notes=notes)
