"""Whole programs: lines with their number, their text and their block or problem.

Compiled code splits a program into arrays of words, with the same result as `blocks.tokenize` for
every line; `tokenize` is the specification. Lines are then grouped by form: the letters and codes
of a line without its numbers. Thousands of lines share a few forms, and the form alone decides
which words are commands and whether they conflict. So `blocks.build` runs once per form, and every
other line of that form only contributes its numbers.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.gcode.blocks import (
    DOUBLE_DIGITS,
    LARGEST,
    MOST_DECIMALS,
    SINGLE_DIGITS,
    Block,
    LineWords,
    Problem,
    Word,
    build,
    parse,
    tokenize,
)
from understudy.gcode.dialect import ARM, Dialect, Spelling
from understudy.gcode.error_numbers import BAD_LETTER, BAD_NUMBER, SYSTEM_LINE, TOO_LONG
from understudy.space.compiled import compiled

PLAIN = 1
"""Mark of a line that is only words: no problem, no parenthesis, no %."""

_LF, _CR, _SPACE, _DOLLAR, _PERCENT, _OPEN, _CLOSE, _STAR = 10, 13, 32, 36, 37, 40, 41, 42
_PLUS, _MINUS, _POINT, _SLASH, _ZERO, _NINE, _SEMICOLON = 43, 45, 46, 47, 48, 57, 59
_A, _Z, _CAPITAL_BIT, _LOWER_A, _LOWER_Z = 65, 90, 32, 97, 122

_TENS = 10.0 ** np.arange(MOST_DECIMALS + DOUBLE_DIGITS)


@dataclass(frozen=True, slots=True)
class ProgramWords:
    """The words of a program, or of some of its lines. Line `n` of them has the words
    ``first[n] <= i < first[n + 1]``; columns count bytes from 1. `before`: number of lines before.

    `codes` are grblHAL's error numbers (0: none), `places` their columns; a line's bytes are
    ``data[starts[n]:stops[n]]``.

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
    before: int = 0

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, index: int) -> LineWords:
        """The words of a line; `tokenize` reads a line that is not only words."""
        if self.marks[index] != PLAIN:
            text = self.data[self.starts[index] : self.stops[index]].decode("latin-1")
            return tokenize(text, self.spelling, line=self.number(index))
        part = slice(self.first[index], self.first[index + 1])
        letters = self.letters[part].tobytes().decode("ascii")
        values, columns = self.values[part].tolist(), self.columns[part].tolist()
        return LineWords(tuple(map(Word, letters, values, columns)))

    def number(self, index: int) -> int:
        """The number of a line in the whole program, from 1."""
        return self.before + index + 1


LINES_AT_ONCE = 4096
"""Lines of a program whose words are in memory at the same time."""
PIECE_BYTES = 256 * 1024
"""Bytes of a program that are split into lines at once."""
_LINE_END = re.compile(rb"\r\n|\r|\n")


def read(data: bytes, spelling: Spelling | None = None) -> ProgramWords:
    """All words of a program. Lines end with LF, CR LF or CR."""
    return _words(data, spelling or Spelling(), *split_lines(np.frombuffer(data, np.uint8)))


def read_in_parts(
    data: bytes, spelling: Spelling, *, at_once: int = LINES_AT_ONCE, piece_bytes: int = PIECE_BYTES
) -> Iterator[ProgramWords]:
    """The words of a program, some thousand lines at a time: memory and the time of a step are
    bounded."""
    source, before = np.frombuffer(data, np.uint8), 0
    for begin, end in _pieces(data, piece_bytes):
        starts, stops = split_lines(source[begin:end])
        starts, stops = starts + begin, stops + begin
        for first in range(0, len(starts), at_once):
            part = slice(first, first + at_once)
            yield _words(data, spelling, starts[part], stops[part], before=before + first)
        before += len(starts)


def _pieces(data: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Begin and end of consecutive pieces; each ends with the end of a line."""
    begin = 0
    while begin < len(data):
        cut = _LINE_END.search(data, begin + size)
        end = cut.end() if cut else len(data)
        yield begin, end
        begin = end


def _words(
    data: bytes,
    spelling: Spelling,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    *,
    before: int = 0,
) -> ProgramWords:
    """The words of some consecutive lines."""
    source = np.frombuffer(data, np.uint8)
    size = int(stops[-1] - starts[0]) if len(starts) else 0
    words, lines = size // 2 + 1, len(starts)
    letters, values = np.empty(words, np.uint8), np.empty(words)
    columns, first = np.empty(words, np.int32), np.zeros(lines + 1, np.int64)
    codes, places = np.zeros(lines, np.int32), np.zeros(lines, np.int32)
    marks = np.zeros(lines, np.uint8)
    count = tokenize_lines(
        source,
        starts,
        stops,
        spelling.single,
        spelling.checksum,
        spelling.block_delete,
        spelling.longest,
        letters,
        values,
        columns,
        first,
        codes,
        places,
        marks,
    )
    return ProgramWords(
        data,
        spelling,
        letters[:count],
        values[:count],
        columns[:count],
        first,
        starts,
        stops,
        codes,
        places,
        marks,
        before,
    )


@compiled
def split_lines(  # kernel
    source: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and stop of each line; text after the last line end is a line, too."""
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


@compiled
def _next(source: NDArray[np.uint8], at: int, stop: int) -> int:
    """The next significant byte: no white space, no comment, no stray parenthesis."""
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


@compiled
def _number(source: NDArray[np.uint8], at: int, stop: int, single: bool) -> tuple[bool, float, int]:
    """Whether a number begins at or after `at`, the number, and the next significant byte."""
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


@compiled
def _scaled(digits: int, exponent: int) -> float:
    return float(digits / _TENS[-exponent] if exponent < 0 else digits * _TENS[exponent])


@compiled
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


@compiled
def _is_checksum(source: NDArray[np.uint8], at: int, stop: int) -> bool:
    at = _next(source, at, stop)
    if at == stop:
        return False
    while at < stop:
        if not _ZERO <= source[at] <= _NINE:
            return False
        at = _next(source, at + 1, stop)
    return True


@compiled
def _too_long(source: NDArray[np.uint8], at: int, stop: int, longest: int) -> bool:
    length = 0
    for index in range(at, stop):
        length += source[index] >= _SPACE
    return length > longest


@compiled
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
    """Fills the arrays from `letters` on and returns the number of words."""
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


_G, _M, _N = ord("G"), ord("M"), ord("N")
_L, _O, _DOLLAR = ord("L"), ord("O"), ord("$")
_MIXED = np.uint64(0x9E3779B97F4A7C15)


def forms(words: ProgramWords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The form of each line, -1 if it is not only words; and the first line of each form."""
    form = np.empty(len(words), np.int64)
    leads = np.empty(len(words), np.int64)
    size = 1 << (2 * len(words)).bit_length()
    table = np.full(size, -1, np.int64)
    count = number_forms(words.letters, words.values, words.first, words.marks, table, form, leads)
    return form, leads[:count]


@compiled
def _decides(letter: int, value: float) -> float:
    """The part of a number that belongs to the form: all of a code, the sign of N."""
    if letter in (_G, _M, _L, _O, _DOLLAR):
        return value
    return 1.0 if letter == _N and value < 0.0 else 0.0


@compiled
def number_forms(  # kernel
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    marks: NDArray[np.uint8],
    table: NDArray[np.int64],
    form: NDArray[np.int64],
    leads: NDArray[np.int64],
) -> int:
    """Fills `form` and `leads`; returns the number of forms.

    `table` is a hash table of forms; its size is a power of two, above twice the number of lines.
    """
    count = 0
    mask = len(table) - 1
    for line in range(len(marks)):
        form[line] = -1
        if marks[line] != PLAIN:
            continue
        start, length = first[line], first[line + 1] - first[line]
        key = np.uint64(length)
        for k in range(start, start + length):
            part = np.int64(_decides(letters[k], values[k]) * 100.0)
            key = (key ^ np.uint64(letters[k]) ^ np.uint64(part << 8)) * _MIXED
        at = np.int64(key >> np.uint64(20)) & mask
        while table[at] >= 0:
            lead = first[leads[table[at]]]
            same = first[leads[table[at]] + 1] - lead == length
            for k in range(length if same else 0):
                one, other = letters[start + k], letters[lead + k]
                here, there = values[start + k], values[lead + k]
                if one != other or _decides(one, here) != _decides(other, there):
                    same = False
                    break
            if same:
                break
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = count
            leads[count] = line
            count += 1
        form[line] = table[at]
    return count


class ProgramLine(Struct, frozen=True, gc=False):
    """A line of a program and its block, or why it cannot be read."""

    number: int
    text: str
    block: Block | Problem

    @property
    def acts(self) -> bool:
        """Whether every controller counts the line as executed: comments and messages are not."""
        return isinstance(self.block, Block) and self.block.acts

    @property
    def problem(self) -> Refused | None:
        return self.block.refused() if isinstance(self.block, Problem) else None


COLUMNS = "XYZABCFN"
"""The words of a straight line that keeps all modes, in the order of the columns of `values`."""
_COLUMN_OF = np.full(128, -1, np.int64)
_COLUMN_OF[[ord(letter) for letter in COLUMNS]] = np.arange(len(COLUMNS))


@dataclass(frozen=True, slots=True, eq=False)
class PlainLines:
    """Consecutive lines that are only words, in columns; each is read when it is asked for.

    `number`: of the first line. `values` (lines, len(COLUMNS)): nan where a line does not have the
    word. A line's bytes are ``data[starts[n]:stops[n]]``.
    """

    data: bytes
    dialect: Dialect
    number: int
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[ProgramLine]:
        return map(self.line, range(len(self)))

    @property
    def numbers(self) -> NDArray[np.int64]:
        return np.arange(self.number, self.number + len(self))

    def line(self, index: int) -> ProgramLine:
        source, number = self.data[self.starts[index] : self.stops[index]], self.number + index
        block = parse(source.decode("latin-1"), self.dialect, line=number)
        return ProgramLine(number, source.decode("utf-8", "replace"), block)

    def rows(self, first: int, last: int) -> "PlainLines":
        part = slice(first, last)
        return PlainLines(
            self.data,
            self.dialect,
            self.number + first,
            self.starts[part],
            self.stops[part],
            self.values[part],
        )

    def then(self, other: "PlainLines") -> "PlainLines":
        """These lines and those behind them."""
        return PlainLines(
            self.data,
            self.dialect,
            self.number,
            np.concatenate([self.starts, other.starts]),
            np.concatenate([self.stops, other.stops]),
            np.concatenate([self.values, other.values]),
        )


class ProgramPart:
    """Some thousand lines of a program, read one by one or in columns.

    `form` is the form of each line, -1 if it is not only words; `examples` has the block of the
    first line of each form, None if it has a problem.
    """

    def __init__(self, words: ProgramWords, dialect: Dialect) -> None:
        self._words = words
        self._dialect = dialect
        self.form, leads = forms(words)
        built = [build(words.line(k), dialect, line=words.number(k)) for k in leads.tolist()]
        self.examples = [each if isinstance(each, Block) else None for each in built]

    def __len__(self) -> int:
        return len(self._words)

    def line(self, index: int) -> ProgramLine:
        words = self._words
        number, start, stop, kind, first, last, begin, end = self._rows[index]
        text = words.data[start:stop].decode("utf-8", "replace")
        example = self.examples[kind] if kind >= 0 else None
        if example is None:  # each such line has a problem, or a message, of its own
            return ProgramLine(number, text, build(words.line(index), self._dialect, line=number))
        block = Block(
            example.commands,
            dict(zip(example.values, self._numbers[begin:end])),  # noqa: B905 (the form has them)
            example.axis,
            None,
            False,
            example.words,
            self._places[first:last],
            number,
        )
        return ProgramLine(number, text, block)

    def plain(self, first: int, last: int) -> PlainLines:
        """Some lines in columns; all of them are only words."""
        words, part = self._words, slice(first, last)
        return PlainLines(
            words.data,
            self._dialect,
            words.number(first),
            words.starts[part],
            words.stops[part],
            self.values[part],
        )

    @property
    def last_text(self) -> int:
        """The number of the last line that is not blank; 0 if all are."""
        words = self._words
        for k in range(len(self) - 1, -1, -1):
            if words.data[words.starts[k] : words.stops[k]].decode("utf-8", "replace").strip():
                return words.number(k)
        return 0

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """See `PlainLines`, for all lines."""
        words, found = self._words, np.full((len(self), len(COLUMNS)), np.nan)
        values_in_columns(words.letters, words.values, words.first, _COLUMN_OF, found)
        return found

    # ── as lists, of which single items are read faster than of arrays ──

    @cached_property
    def _brings(self) -> NDArray[np.bool_]:
        """Which words bring a number into the block."""
        return np.asarray((self._words.letters != _G) & (self._words.letters != _M))

    @cached_property
    def _numbers(self) -> list[float]:
        return list(self._words.values[self._brings].tolist())

    @cached_property
    def _rows(self) -> list[tuple[int, ...]]:
        """Per line: its number, where its bytes begin and end, its form, and the slices of its
        words and of its numbers."""
        words = self._words
        first = words.first.tolist()
        begins = np.concatenate([[0], np.cumsum(self._brings)])[words.first].tolist()
        numbers = range(words.number(0), words.number(len(words)))
        columns = (words.starts.tolist(), words.stops.tolist(), self.form.tolist())
        slices = (first[:-1], first[1:], begins[:-1], begins[1:])
        return list(zip(numbers, *columns, *slices, strict=True))

    @cached_property
    def _places(self) -> tuple[int, ...]:
        return tuple(self._words.columns.tolist())


@compiled
def values_in_columns(  # kernel
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    column_of: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Puts the value of each word into the column of its letter, if it has one."""
    for line in range(len(found)):
        for word in range(first[line], first[line + 1]):
            column = column_of[letters[word]]
            if column >= 0:
                found[line, column] = values[word]


def program_parts(data: bytes | str, dialect: Dialect) -> Iterator[ProgramPart]:
    """A program, some thousand lines at a time; numbers count from 1.

    Column n of a problem is the n-th byte of its line; the text is read as UTF-8, without
    a byte order mark.
    """
    source = (data.encode() if isinstance(data, str) else data).removeprefix(BOM_UTF8)
    return (ProgramPart(words, dialect) for words in read_in_parts(source, dialect.spelling))


def program_lines(data: bytes | str, dialect: Dialect) -> Iterator[ProgramLine]:
    """All lines of a program, empty ones too, as `program_parts` reads them."""
    for part in program_parts(data, dialect):
        yield from map(part.line, range(len(part)))


def warm() -> None:
    """Compiles the kernels, or loads them from the cache."""
    for part in program_parts(b"G1 X1.5 F100\r\n(there)\n", ARM):
        assert len(part.values)
