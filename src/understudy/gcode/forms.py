"""The form of a line: its letters and codes, without its numbers. Thousands of lines share a few.

Whether a line says something, and which of its words are commands, is a matter of its form alone.
So `blocks.build` is asked once for every form, and all other lines of it only bring their numbers.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.gcode.blocks import Block, build
from understudy.gcode.dialect import Dialect
from understudy.gcode.reader import PLAIN, ProgramWords
from understudy.gcode.words import Problem

_G, _M, _N = ord("G"), ord("M"), ord("N")
_L, _O, _DOLLAR = ord("L"), ord("O"), ord("$")
_MIXED = np.uint64(0x9E3779B97F4A7C15)


def blocks(words: ProgramWords, dialect: Dialect) -> Iterator[Block | Problem]:
    """What `build` makes of every line, one after the other."""
    form, leads = forms(words)
    examples = [build(words.line(lead), dialect, line=lead + 1) for lead in leads.tolist()]
    known = [None if isinstance(each, Problem) else each for each in examples]
    brings = (words.letters != _G) & (words.letters != _M)
    begins = np.concatenate([[0], np.cumsum(brings)])[words.first].tolist()
    numbers, columns = words.values[brings].tolist(), tuple(words.columns.tolist())
    first = words.first.tolist()
    for index, kind in enumerate(form.tolist()):
        example = known[kind] if kind >= 0 else None
        if example is None:  # each such line has a problem, or a message, of its own
            yield build(words.line(index), dialect, line=index + 1)
            continue
        values = numbers[begins[index] : begins[index + 1]]
        yield Block(
            example.commands,
            dict(zip(example.values, values)),  # noqa: B905 (the form says how many)
            example.axis,
            None,
            False,
            example.words,
            columns[first[index] : first[index + 1]],
            index + 1,
        )


def forms(words: ProgramWords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which form each line has, -1 where it is more than words; and the first line of each form."""
    form = np.empty(len(words), np.int64)
    leads = np.empty(len(words), np.int64)
    size = 1 << (2 * len(words)).bit_length()
    table = np.full(size, -1, np.int64)
    count = number_forms(
        words.letters, words.values, words.first, words.marks, table, form, leads
    )  # fmt: skip
    return form, leads[:count]


@njit(cache=True, nogil=True)
def _decides(letter: int, value: float) -> float:
    """What of a word's number belongs to the form: all of a code, the sign of a line's number."""
    if letter in (_G, _M, _L, _O, _DOLLAR):
        return value
    return 1.0 if letter == _N and value < 0.0 else 0.0


@njit(cache=True, nogil=True)
def number_forms(  # kernel
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    marks: NDArray[np.uint8],
    table: NDArray[np.int64],
    form: NDArray[np.int64],
    leads: NDArray[np.int64],
) -> int:
    """Fills `form` and `leads`; returns how many forms there are.

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
            told = np.int64(_decides(letters[k], values[k]) * 100.0)
            key = (key ^ np.uint64(letters[k]) ^ np.uint64(told << 8)) * _MIXED
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
