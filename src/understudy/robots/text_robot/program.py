"""A program for the text robot: its commands that move, one per line.

    MOVE_ABS 100,200,150,0,0,90      # mm and deg
    MOVE_REL 0,0,-20
    HOME

A `#` begins a comment. Everything else is refused with its line number.
"""

from collections.abc import Iterator
from typing import NamedTuple

from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.robots.text_robot.face import EXPECTED, numbers
from understudy.robots.text_robot.interface import PoseMover, submit_move

MOVES = {
    "MOVE_ABS": "move to a pose in mm and deg",
    "MOVE_REL": "move by a distance in mm",
    "HOME": "move home",
}
"""Commands that a program may have, in words; `EXPECTED` has their parameters."""


class Move(NamedTuple):
    """A command that moves, in millimetres and degrees, and its line number."""

    line: int
    verb: str
    values: tuple[float, ...]

    def submit(self, robot: PoseMover, now: int) -> Ticket | Refused:
        return submit_move(robot, self.verb, self.values, now)


class ReadLine(NamedTuple):
    """A line of a program, and its move, or why it is refused, or None for an empty line."""

    number: int
    text: str
    move: Move | Refused | None

    @property
    def acts(self) -> bool:
        return isinstance(self.move, Move)

    @property
    def problem(self) -> Refused | None:
        return self.move if isinstance(self.move, Refused) else None


def read_program(text: str) -> list[Move] | Refused:
    """All moves of a program, or the first refused line."""
    moves = []
    for line in read_lines(text):
        if isinstance(line.move, Refused):
            return line.move
        if line.move is not None:
            moves.append(line.move)
    return moves


def read_lines(text: str) -> Iterator[ReadLine]:
    """All lines of a program; reading continues after a refused line."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split(None, 1)
        rest = words[1].strip() if len(words) > 1 else ""
        yield ReadLine(number, line, _read(number, words[0].upper(), rest) if words else None)


def _read(line: int, verb: str, rest: str) -> Move | Refused:
    if verb not in MOVES:
        return Refused(f"line {line}: {verb} is not a move; allowed: {', '.join(MOVES)}")
    expected = EXPECTED.get(verb)
    if expected is None:
        return Refused(f"line {line}: {verb} takes no parameters") if rest else Move(line, verb, ())
    values = numbers(rest.encode("ascii", "replace"), count=expected.count(",") + 1)
    if values is None:
        return Refused(f"line {line}: {verb} takes {expected}, not {rest!r}")
    return Move(line, verb, tuple(values))
