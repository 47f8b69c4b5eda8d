"""Programs on a text robot, simulated or real: one move after the other."""

from collections.abc import Iterator, Sequence

from understudy.errors import Refused
from understudy.ports.program import Switched
from understudy.robots.text_robot.interface import PoseRobot
from understudy.robots.text_robot.operator import Robot, TextRobotActions
from understudy.robots.text_robot.program import Move, ReadLine, read_lines
from understudy.simulation.program.run import LineEvents, LineFeed, ProgramRun


class MoveLanguage:
    """`Language`: the commands of the text robot that move."""

    target_line = "MOVE_ABS {x},{y},{z},{rx},{ry},{rz}"

    def lines(self, text: str) -> Iterator[ReadLine]:
        return read_lines(text)

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

    def report_to(self, events: LineEvents) -> None:
        self._robot.on_finished(events.finished)


def program_run(robot: Robot) -> ProgramRun:
    return ProgramRun(LineFeed(TextRobotActions(robot), MoveByMove(robot)), MoveLanguage())
