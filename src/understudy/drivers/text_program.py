"""A program for the text robot: its own commands that move, one to a line.

    MOVE_ABS 100,200,150,0,0,90      # mm and deg
    MOVE_REL 0,0,-20
    HOME

What follows a `#` is a remark. Anything else is a problem, told with its line.
"""

from typing import NamedTuple

from understudy.errors import Refused
from understudy.faces.text_tcp import EXPECTED, numbers

MOVES = (*EXPECTED, "HOME")


class Move(NamedTuple):
    """A command that moves: millimetres and degrees; and the line it stands in."""

    line: int
    verb: str
    values: tuple[float, ...]


def read_program(text: str) -> list[Move] | Refused:
    """All its moves, or the first thing wrong with it."""
    moves = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(None, 1)
        if not words:
            continue
        move = _read(number, words[0].upper(), words[1].strip() if len(words) > 1 else "")
        if isinstance(move, Refused):
            return move
        moves.append(move)
    return moves


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
