"""One line of text into words: a letter and a number each.

White space, comments and stray `)` vanish wherever they stand, even inside a number, as on the
real controller: ``G 0 X1 (to) 0`` is ``G0 X10``. Nothing here raises, whatever the text.
"""

import math
import struct
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode import faults

LONGEST_WIRE_LINE = 256
DOUBLE_DIGITS = 15
SINGLE_DIGITS = 9
MOST_DECIMALS = 22
"""Powers of ten up to here are exact, so digits / 10**n is the nearest number to the text."""
LARGEST = 1e12
"""No machine goes there; squares and sums of such numbers stay finite in single precision."""


class Word(NamedTuple):
    letter: str
    value: float
    column: int

    def __str__(self) -> str:
        return self.letter + short_text(self.value)


class Spelling(Struct, frozen=True):
    """How a controller reads.

    `single`: numbers in single precision, as the firmware's own reader makes them.
    `checksum`: a ``*71`` at the end, as some senders add, is passed over.
    `block_delete`: lines that begin with ``/`` are left out.
    `longest`: characters in a line (0: any).
    """

    single: bool = False
    checksum: bool = False
    block_delete: bool = False
    longest: int = 0


class Problem(Struct, frozen=True):
    """What is wrong where; `code` is grblHAL's error number."""

    code: int
    message: str
    word: str = ""
    column: int = 0
    line: int = 0

    def __str__(self) -> str:
        places = (("line", self.line), ("column", self.column))
        where = ", ".join(f"{name} {place}" for name, place in places if place)
        return ": ".join(part for part in (where, self.word, self.message) if part)

    def refused(self) -> Refused:
        return Refused(str(self), self.code)


class Line(Struct, frozen=True):
    """The words of a line up to its end or the first `problem`."""

    words: tuple[Word, ...] = ()
    problem: Problem | None = None
    message: str | None = None
    demarcation: bool = False


_SINGLE = struct.Struct("f")
_TENTH, _HUNDREDTH = float(np.float32(0.1)), float(np.float32(0.01))


class _Reading(NamedTuple):
    value: float
    stop: int


def number_text(value: float | np.float32) -> str:
    """The shortest text that is read back as this number: no exponent, no trailing zeros."""
    if value == int(value) and abs(value) < 10**DOUBLE_DIGITS:
        return str(int(value))
    return np.format_float_positional(value, unique=True, trim="-")


def short_text(value: float) -> str:
    """A number for the reader's eye, to the digits that single precision carries."""
    return number_text(value if value == int(value) else np.float32(value))


def single(value: float) -> float:
    """The nearest single-precision number."""
    (nearest,) = _SINGLE.unpack(_SINGLE.pack(value))
    return float(nearest)


def scaled(digits: int, exponent: int) -> float:
    """digits · 10^exponent."""
    if exponent < 0:
        return digits / 10.0**-exponent
    return digits * 10.0**exponent


def scaled_single(digits: int, exponent: int) -> float:
    """The same in single precision, two decimals at a time, as the firmware does it.

    A coordinate midway between two steps goes up or down by these roundings.
    """
    # The product of two such numbers is exact in double precision: rounding it is multiplying.
    value = single(digits)
    while exponent <= -2:
        value = single(value * _HUNDREDTH)
        exponent += 2
    if exponent == -1:
        value = single(value * _TENTH)
    for _ in range(exponent):
        value = single(value * 10.0)
    return value


def tokenize(text: str, spelling: Spelling | None = None, *, line: int = 0) -> Line:
    """The words of one line (without its line end)."""
    spelling = spelling or Spelling()
    body = text.lstrip("".join(map(chr, range(33))))
    if 0 < spelling.longest < sum(character >= " " for character in body):
        message = f"a line has at most {spelling.longest} characters"
        return Line(problem=Problem(faults.TOO_LONG, message, line=line))
    if body.startswith("/"):
        if spelling.block_delete:
            return Line()
        text = text.replace("/", " ", 1)
    kept, message_text = _without_comments(text)
    if [character for character, _ in kept] == ["%"]:
        return Line(demarcation=True, message=message_text)
    if kept and kept[0][0] == "$":
        problem = Problem(faults.SYSTEM_LINE, "a $ line is no G-code", "$", kept[0][1], line)
        return Line(problem=problem)
    words, problem_found = _words(kept, spelling, line)
    return Line(tuple(words), problem_found, message_text)


def _without_comments(text: str) -> tuple[list[tuple[str, int]], str | None]:
    """What counts, in capitals, with its column; and the first (MSG, …)."""
    kept: list[tuple[str, int]] = []
    message: str | None = None
    begin = -1
    for column, character in enumerate(text, 1):
        if begin >= 0:
            if character == "(":
                begin = column
            elif character == ")":
                comment = text[begin : column - 1]
                if message is None and comment[:4].upper() == "MSG,":
                    message = comment[4:].lstrip(" ")
                begin = -1
        elif character == "(":
            begin = column
        elif character == ";":
            break
        elif character > " " and character != ")":
            kept.append((_capital(character), column))
    return kept, message


def _capital(character: str) -> str:
    return character.upper() if "a" <= character <= "z" else character


def _words(
    kept: list[tuple[str, int]], spelling: Spelling, line: int
) -> tuple[list[Word], Problem | None]:
    words: list[Word] = []
    at = 0
    while at < len(kept):
        letter, column = kept[at]
        if letter == "*" and spelling.checksum and _is_checksum(kept[at + 1 :]):
            break
        if not ("A" <= letter <= "Z" or letter == "$"):
            message = f"a word begins with a letter, not with {letter!r}"
            return words, Problem(faults.BAD_LETTER, message, letter, column, line)
        reading = _number(kept, at + 1, spelling.single)
        if math.isnan(reading.value):
            message = f"{letter} needs a number"
            return words, Problem(faults.BAD_NUMBER, message, letter, column, line)
        words.append(Word(letter, reading.value, column))
        at = reading.stop
    return words, None


def _is_checksum(kept: list[tuple[str, int]]) -> bool:
    return bool(kept) and all("0" <= character <= "9" for character, _ in kept)


def _number(kept: list[tuple[str, int]], at: int, single_precision: bool) -> _Reading:
    """The number that begins here; not a number where there is none, or one beyond all bounds."""
    most = SINGLE_DIGITS if single_precision else DOUBLE_DIGITS
    negative = at < len(kept) and kept[at][0] == "-"
    at += at < len(kept) and kept[at][0] in "+-"
    digits = exponent = significant = 0
    point = found = False
    while at < len(kept):
        character = kept[at][0]
        if "0" <= character <= "9":
            found = True
            significant += character != "0" or digits > 0
            if significant <= most and exponent > -MOST_DECIMALS:
                digits = digits * 10 + ord(character) - ord("0")
                exponent -= point
            elif not point:
                exponent += 1
        elif character == "." and not point:
            point = True
        else:
            break
        at += 1
    if not found or exponent > MOST_DECIMALS:
        return _Reading(math.nan, at)
    value = scaled_single(digits, exponent) if single_precision else scaled(digits, exponent)
    if value > LARGEST:
        return _Reading(math.nan, at)
    return _Reading(-value if negative else value, at)


def normalized(text: str) -> str:
    """What counts of a line, in capitals: no spaces, no comments."""
    return "".join(character for character, _ in _without_comments(text)[0])
