"""Operator actions and programs on a text robot, simulated or real. Programs go one move after the
other.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from understudy.errors import Refused
from understudy.ports import Ticket, TimedComponent
from understudy.ports.operation import AxisReading, Condition, Frame, Jog, Target
from understudy.ports.program import LanguageWord, Switched
from understudy.robots.text_robot.face import EXPECTED
from understudy.robots.text_robot.interface import PoseReading, PoseRobot
from understudy.robots.text_robot.program import MOVES, Move, ReadLine, read_lines
from understudy.simulation.program.run import LineFeed, ProgramRun
from understudy.space.pose import Pose

JOINTLESS = Refused("this robot has no joints: give pose_mm_deg")
STEPS_ONLY = Refused("this robot jogs in steps only: give step")
NO_AXIS = Refused("this robot homes as a whole: give no axis")


class Robot(PoseRobot, TimedComponent, Protocol):
    """The simulated robot, or its driver."""


class TextRobotActions:
    """`OperatorActions`. Moves have a fixed duration, so speeds are ignored."""

    frames: tuple[Frame, ...] = ("base",)

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def condition(self, now: int) -> Condition:
        reading, stopped = self._reading(now), self._robot.stopped()
        fault = self._robot.fault(now)
        return Condition(
            # Stopped with the cell, without an emergency stop of its own.
            state="Stopped" if stopped and not fault else reading.state,
            moving=self._robot.busy() and stopped is None,
            connected=getattr(reading, "connection", "connected") == "connected",
            enabled=stopped is None,
            error=fault.reason if fault else "",
            code=reading.error_code,
        )

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), self._reading(now).pose)

    def home(self, axis: int, now: int) -> Refused | None:
        return NO_AXIS if axis != -1 else _outcome(self._robot.home(now))

    def stop(self, now: int) -> None:
        self._robot.halt(now)

    def emergency_stop(self, now: int) -> None:
        self._robot.stop(now)

    def reset(self, now: int) -> None:
        self._robot.reset(now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.pose is None:
            return JOINTLESS
        return _outcome(self._robot.move_to(target.pose, now))

    def jog(self, jog: Jog, now: int) -> Refused | None:
        if jog.step is None:
            return STEPS_ONLY
        way = [0.0] * 6
        way[jog.axis] = jog.step if jog.speed >= 0.0 else -jog.step
        if jog.axis < 3:
            return _outcome(self._robot.move_by(way[0], way[1], way[2], now))
        here = self._reading(now).pose
        there = Pose(*(a + b for a, b in zip(here, way, strict=True)))
        return _outcome(self._robot.move_to(there, now))

    def _reading(self, now: int) -> PoseReading:
        """The status, which has no noise: `reading` would draw faults of scenario rules."""
        reading: PoseReading = self._robot.status(now)
        return reading


def _outcome(submitted: Ticket | Refused) -> Refused | None:
    return submitted if isinstance(submitted, Refused) else None


# ── programs ──────────────────────────────────────────────────────────────────────────────────────


class MoveLanguage:
    """`Language`: the commands of the text robot that move."""

    target_line = "MOVE_ABS {x},{y},{z},{rx},{ry},{rz}"

    def lines(self, text: str) -> Iterator[ReadLine]:
        return read_lines(text)

    def words(self) -> list[LanguageWord]:
        return [
            LanguageWord(verb, meaning, EXPECTED.get(verb, "")) for verb, meaning in MOVES.items()
        ]

    def opening(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        """Nothing: there are no modes. The first move must not depend on the one before it."""
        moves = (line.move for line in lines[first - 1 :] if isinstance(line.move, Move))
        move = next(moves, None)
        if move is not None and move.verb == "MOVE_REL":
            return Refused(
                f"line {move.line} is relative (MOVE_REL) and needs its starting point; "
                "begin at MOVE_ABS or HOME"
            )
        return []

    def process_before(self, lines: Sequence[ReadLine], first: int) -> tuple[Switched, ...]:
        return ()

    def restoring(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        return []


class MoveByMove:
    """`LineRobot`: takes one move at a time; it has no hold, so a pause waits for its end."""

    def __init__(self, robot: PoseRobot) -> None:
        self._robot = robot
        self.stops = robot.stops

    def has_room(self, opened: int, now: int) -> bool:
        return opened == 0

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        move = next(read_lines(text)).move
        if not isinstance(move, Move):
            return move or ()
        ticket = move.submit(self._robot, now)
        return ticket if isinstance(ticket, Refused) else (ticket,)

    def line(self, now: int) -> int:
        return 0

    def drop(self, now: int) -> None:
        """Nothing: the robot has no move but the running one."""

    def report_to(self, feed: LineFeed) -> None:
        self._robot.on_finished(feed.finished)


def program_run(robot: Robot) -> ProgramRun:
    return ProgramRun(LineFeed(TextRobotActions(robot), MoveByMove(robot)), MoveLanguage())
