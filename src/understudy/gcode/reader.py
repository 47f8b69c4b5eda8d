"""A whole program into arrays of words, at the speed of compiled code.

Says exactly what `words.tokenize` says of every line; that one is the specification.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.gcode.faults import BAD_LETTER, BAD_NUMBER, SYSTEM_LINE, TOO_LONG
from understudy.gcode.words import (
    DOUBLE_DIGITS,
    LARGEST,
    MOST_DECIMALS,
    SINGLE_DIGITS,
    Line,
    Spelling,
    Word,
    tokenize,
)

PLAIN = 1
"""Mark of a line that is only words: no problem, no parenthesis, no %."""

_LF, _CR, _SPACE, _DOLLAR, _PERCENT, _OPEN, _CLOSE, _STAR = 10, 13, 32, 36, 37, 40, 41, 42
_PLUS, _MINUS, _POINT, _SLASH, _ZERO, _NINE, _SEMICOLON = 43, 45, 46, 47, 48, 57, 59
_A, _Z, _CAPITAL_BIT, _LOWER_A, _LOWER_Z = 65, 90, 32, 97, 122

_TENS = 10.0 ** np.arange(MOST_DECIMALS + DOUBLE_DIGITS)


@dataclass(frozen=True, slots=True)
class ProgramWords:
    """Word `i` of line `n` lies in ``first[n] <= i < first[n + 1]``; columns count bytes from 1.

    `codes` are grblHAL's error numbers (0: none), `places` the columns they stand at; a line's
    bytes are ``data[starts[n]:stops[n]]``.
    """

    data: bytes
    spelling: Spelling
    letters: NDArray[np.uint8]
    values: NDArray[np.float64]
    columns: NDArray[np.int32]
    first: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    codes: NDArray[np.int32]
    places: NDArray[np.int32]
    marks: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, index: int) -> Line:
        """The words of a line; what is out of the ordinary is read the plain way."""
        if self.marks[index] != PLAIN:
            text = self.data[self.starts[index] : self.stops[index]].decode("latin-1")
            return tokenize(text, self.spelling, line=index + 1)
        part = slice(self.first[index], self.first[index + 1])
        letters = self.letters[part].tobytes().decode("ascii")
        values, columns = self.values[part].tolist(), self.columns[part].tolist()
        return Line(tuple(map(Word, letters, values, columns)))


def read(data: bytes, spelling: Spelling | None = None) -> ProgramWords:
    """All words of a program. Lines end with LF, CR LF or CR."""
    spelling = spelling or Spelling()
    source = np.frombuffer(data, np.uint8)
    starts, stops = split_lines(source)
    words, lines = len(data) // 2 + 1, len(starts)
    letters, values = np.empty(words, np.uint8), np.empty(words)
    columns, first = np.empty(words, np.int32), np.zeros(lines + 1, np.int64)
    codes, places = np.zeros(lines, np.int32), np.zeros(lines, np.int32)
    marks = np.zeros(lines, np.uint8)
    count = tokenize_lines(
        source, starts, stops,
        spelling.single, spelling.checksum, spelling.block_delete, spelling.longest,
        letters, values, columns, first, codes, places, marks,
    )  # fmt: skip
    return ProgramWords(
        data, spelling, letters[:count], values[:count], columns[:count],
        first, starts, stops, codes, places, marks,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def split_lines(  # kernel
    source: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each line starts and stops; the rest after the last line end is a line if not empty."""
    ends = 1
    for byte in source:
        ends += byte in (_LF, _CR)
    starts, stops = np.empty(ends, np.int64), np.empty(ends, np.int64)
    lines = start = at = 0
    while at < len(source):
        byte = source[at]
        if byte in (_LF, _CR):
            starts[lines], stops[lines] = start, at
            lines += 1
            at += byte == _CR and at + 1 < len(source) and source[at + 1] == _LF
            start = at + 1
        at += 1
    if start < len(source):
        starts[lines], stops[lines] = start, len(source)
        lines += 1
    return starts[:lines], stops[:lines]


@njit(cache=True, nogil=True)
def _next(source: NDArray[np.uint8], at: int, stop: int) -> int:
    """The next byte that counts: no white space, no comment, no stray parenthesis."""
    comment = False
    while at < stop:
        byte = source[at]
        if comment:
            comment = byte != _CLOSE
        elif byte == _OPEN:
            comment = True
        elif byte == _SEMICOLON:
            return stop
        elif byte > _SPACE and byte != _CLOSE:
            return at
        at += 1
    return stop


@njit(cache=True, nogil=True)
def _number(source: NDArray[np.uint8], at: int, stop: int, single: bool) -> tuple[bool, float, int]:
    """Found?, the number that begins at or after `at`, and the next byte that counts."""
    most = SINGLE_DIGITS if single else DOUBLE_DIGITS
    at = _next(source, at, stop)
    negative = at < stop and source[at] == _MINUS
    if at < stop and (negative or source[at] == _PLUS):
        at = _next(source, at + 1, stop)
    digits = exponent = significant = 0
    point = found = False
    while at < stop:
        byte = source[at]
        if _ZERO <= byte <= _NINE:
            found = True
            if byte != _ZERO or digits > 0:
                significant += 1
            if significant <= most and exponent > -MOST_DECIMALS:
                digits = digits * 10 + int(byte) - _ZERO
                exponent -= point
            elif not point:
                exponent += 1
        elif byte == _POINT and not point:
            point = True
        else:
            break
        at = _next(source, at + 1, stop)
    if exponent > MOST_DECIMALS:
        return False, 0.0, at
    value = _scaled_single(digits, exponent) if single else _scaled(digits, exponent)
    return found and value <= LARGEST, -value if negative else value, at


@njit(cache=True, nogil=True)
def _scaled(digits: int, exponent: int) -> float:
    return float(digits / _TENS[-exponent] if exponent < 0 else digits * _TENS[exponent])


@njit(cache=True, nogil=True)
def _scaled_single(digits: int, exponent: int) -> float:
    value = np.float32(digits)
    while exponent <= -2:
        value = np.float32(value * np.float32(0.01))
        exponent += 2
    if exponent == -1:
        value = np.float32(value * np.float32(0.1))
    for _ in range(exponent):
        value = np.float32(value * np.float32(10.0))
    return float(value)


@njit(cache=True, nogil=True)
def _is_checksum(source: NDArray[np.uint8], at: int, stop: int) -> bool:
    at = _next(source, at, stop)
    if at == stop:
        return False
    while at < stop:
        if not _ZERO <= source[at] <= _NINE:
            return False
        at = _next(source, at + 1, stop)
    return True


@njit(cache=True, nogil=True)
def _too_long(source: NDArray[np.uint8], at: int, stop: int, longest: int) -> bool:
    length = 0
    for index in range(at, stop):
        length += source[index] >= _SPACE
    return length > longest


@njit(cache=True, nogil=True)
def tokenize_lines(  # kernel
    source: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    single: bool,
    checksum: bool,
    block_delete: bool,
    longest: int,
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
    columns: NDArray[np.int32],
    first: NDArray[np.int64],
    codes: NDArray[np.int32],
    places: NDArray[np.int32],
    marks: NDArray[np.uint8],
) -> Any:
    """Fills the arrays from `letters` on and returns how many words there are."""
    count = 0
    for line in range(len(starts)):
        start, stop = starts[line], stops[line]
        first[line] = count
        begin = start
        while begin < stop and source[begin] <= _SPACE:
            begin += 1
        if 0 < longest < stop - begin and _too_long(source, begin, stop, longest):
            codes[line] = TOO_LONG
            continue
        marks[line] = PLAIN
        for index in range(begin, stop):
            if source[index] == _OPEN or source[index] == _PERCENT:
                marks[line] = 0
        if begin < stop and source[begin] == _SLASH:
            if block_delete:
                marks[line] = PLAIN
                continue
            begin += 1
        at = _next(source, begin, stop)
        if at < stop and source[at] == _PERCENT and _next(source, at + 1, stop) == stop:
            continue
        if at < stop and source[at] == _DOLLAR:
            codes[line], places[line], marks[line] = SYSTEM_LINE, at - start + 1, 0
            continue
        while at < stop:
            letter, word_at = source[at], at
            if _LOWER_A <= letter <= _LOWER_Z:
                letter -= np.uint8(_CAPITAL_BIT)
            if letter == _STAR and checksum and _is_checksum(source, at + 1, stop):
                break
            if not (_A <= letter <= _Z or letter == _DOLLAR):
                codes[line], places[line], marks[line] = BAD_LETTER, at - start + 1, 0
                break
            found, value, at = _number(source, at + 1, stop, single)
            if not found:
                codes[line], places[line], marks[line] = BAD_NUMBER, word_at - start + 1, 0
                break
            letters[count], values[count], columns[count] = letter, value, word_at - start + 1
            count += 1
    first[len(starts)] = count
    return count
