"""A program for the text robot: its own commands that move, one to a line.

    MOVE_ABS 100,200,150,0,0,90      # mm and deg
    MOVE_REL 0,0,-20
    HOME

What follows a `#` is a remark. Anything else is a problem, told with its line.
"""

from collections.abc import Iterator
from typing import NamedTuple

from understudy.errors import Refused
from understudy.robots.text_robot.face import EXPECTED, numbers

MOVES = (*EXPECTED, "HOME")


class Move(NamedTuple):
    """A command that moves: millimetres and degrees; and the line it stands in."""

    line: int
    verb: str
    values: tuple[float, ...]


class ReadLine(NamedTuple):
    """A line of a program: its move, if it has one, or what is wrong with it."""

    number: int
    text: str
    move: Move | Refused | None


def read_program(text: str) -> list[Move] | Refused:
    """All its moves, or the first thing wrong with it."""
    moves = []
    for line in read_lines(text):
        if isinstance(line.move, Refused):
            return line.move
        if line.move is not None:
            moves.append(line.move)
    return moves


def read_lines(text: str) -> Iterator[ReadLine]:
    """Line by line; one that is wrong hides none after it."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split(None, 1)
        rest = words[1].strip() if len(words) > 1 else ""
        yield ReadLine(number, line, _read(number, words[0].upper(), rest) if words else None)


def _read(line: int, verb: str, rest: str) -> Move | Refused:
    if verb not in MOVES:
        return Refused(f"line {line}: {verb} is no move; {', '.join(MOVES)} are")
    expected = EXPECTED.get(verb)
    if expected is None:
        return Refused(f"line {line}: {verb} takes nothing") if rest else Move(line, verb, ())
    values = numbers(rest.encode("ascii", "replace"), count=expected.count(",") + 1)
    if values is None:
        return Refused(f"line {line}: {verb} takes {expected}, not {rest!r}")
    return Move(line, verb, tuple(values))
