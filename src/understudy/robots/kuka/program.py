"""Reads a G-code program as records of the KUKA's G-code server.

    G0 G1  X Y Z A B C F E      a line; F in mm/s, E the weld job
    G28 G30                     home
    G54 … G59                   base 1 … 6
    T1 … T9                     tool
    G43, G43 Hn                 length of the selected tool, which its frame has already
    G21 G90                     always active: millimetres, absolute
    M2 M30                      end of the program

Everything else is a `Problem` with its line, column and word.
"""

from collections.abc import Iterator
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.blocks import COMMANDS, Problem, Word, tokenize
from understudy.gcode.error_numbers import (
    AXIS_CONFLICT,
    MISSING_WORD,
    NOT_INTEGER,
    RANGE,
    TOOL,
    UNSUPPORTED,
    UNUSED_WORD,
    WORD_REPEATED,
)
from understudy.ports.program import LanguageWord
from understudy.robots.kuka.frames import UNIT_OF, WORDS
from understudy.robots.kuka.records import BASES, HOMES, LINEAR, TOOLS, Record, base_number

LINES, ALWAYS_ACTIVE, ENDS, LENGTH = (0, 1), (21, 90), (2, 30), 43


class Step(NamedTuple):
    """A record without its number, and its line in the program."""

    line: int
    kind: int
    words: dict[str, float]

    def numbered(self, seq: int) -> Record:
        return Record(seq, self.kind, self.words)


class _LineError(Exception):
    """A problem in a line; it never leaves this module."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class ReadLine(NamedTuple):
    """A line of a program, and its steps or its problem."""

    number: int
    text: str
    steps: list[Step] | Problem

    @property
    def acts(self) -> bool:
        return isinstance(self.steps, list) and bool(self.steps)

    @property
    def problem(self) -> Refused | None:
        return self.steps.refused() if isinstance(self.steps, Problem) else None


def list_words() -> list[LanguageWord]:
    """The words that `_Block` takes as commands."""
    lines = [LanguageWord(f"G{n}", COMMANDS[f"G{n}"].meaning, "X Y Z A B C F E") for n in LINES]
    homes = [LanguageWord(f"G{n}", "move home") for n in HOMES]
    bases = [LanguageWord(f"G{n}", f"base {base_number(n)}") for n in BASES]
    tools = [LanguageWord(f"T{n}", f"tool {n}") for n in TOOLS]
    length = LanguageWord(f"G{LENGTH}", COMMANDS[f"G{LENGTH}"].meaning, "H tool")
    plain = [f"G{n}" for n in ALWAYS_ACTIVE] + [f"M{n}" for n in ENDS]
    return [
        *lines,
        *homes,
        *bases,
        *tools,
        length,
        *(LanguageWord(name, COMMANDS[name].meaning) for name in plain),
    ]


def read_program(text: str) -> list[Step] | Problem:
    """All steps of a program, or its first problem."""
    steps: list[Step] = []
    for line in read_lines(text):
        if isinstance(line.steps, Problem):
            return line.steps
        steps += line.steps
    return steps


def read_lines(text: str) -> Iterator[ReadLine]:
    """The lines up to the end of the program; reading continues after a line with a problem."""
    moves, tool = False, 0
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        block = _block(line, number)
        if isinstance(block, _Block):
            moves, tool = moves or block.moves, block.tool or tool
            block = block.length_problem(tool) or block
        yield ReadLine(number, line, _steps(block, moves))
        if isinstance(block, _Block) and block.ends:
            return


def read_line(text: str, number: int) -> list[Step] | Problem:
    """The steps of one line of a program; a G0 or G1 before it is assumed."""
    return _steps(_block(text, number), moves=True)


def _block(text: str, number: int) -> "_Block | Problem":
    tokens = tokenize(text, line=number)
    if tokens.problem is not None:
        return tokens.problem
    try:
        return _Block(number, tokens.words)
    except _LineError as broken:
        return broken.problem


def _steps(block: "_Block | Problem", moves: bool) -> list[Step] | Problem:
    if isinstance(block, Problem):
        return block
    try:
        return list(block.steps(moves))
    except _LineError as broken:
        return broken.problem


class _Block:
    """The words of one line."""

    def __init__(self, line: int, words: tuple[Word, ...]) -> None:
        self.line = line
        self.moves = self.ends = False
        self._commands: list[int] = []
        self._given: dict[str, float] = {}
        self._length: Word | None = None
        seen: set[str] = set()
        for word in words:
            if word.letter in seen and word.letter not in "GM":
                raise self._broken(WORD_REPEATED, "is given twice", word)
            seen.add(word.letter)
            self._take(word)
        self._check_length(words)

    def _check_length(self, words: tuple[Word, ...]) -> None:
        if self._length is not None and LENGTH not in (w.value for w in words if w.letter == "G"):
            raise self._broken(UNUSED_WORD, "is used with G43 only", self._length)

    @property
    def tool(self) -> int:
        """The tool that the line selects; 0: none."""
        return next((kind for kind in self._commands if kind in TOOLS), 0)

    def length_problem(self, tool: int) -> Problem | None:
        """Refuses the length of another tool than the selected one."""
        if self._length is None or int(self._length.value) in (0, tool):
            return None
        selected = f"T{tool} is selected" if tool else "no tool is selected before it"
        message = f"is the length of another tool: {selected}"
        return self._broken(TOOL, message, self._length).problem

    def steps(self, moving: bool) -> Iterator[Step]:
        for kind in self._commands:
            yield Step(self.line, kind, {})
        if not self._given:
            return
        places = [letter for letter in self._given if letter != "F"]
        if any(kind in HOMES for kind in self._commands):
            problem = "home takes no words; put the move on a line of its own"
            raise self._broken(AXIS_CONFLICT, problem)
        if places and not moving:
            raise self._broken(MISSING_WORD, f"{places[0]} needs a G0 or G1 before it")
        yield Step(self.line, LINEAR, self._given)

    def _take(self, word: Word) -> None:
        if word.letter in WORDS:
            self._given[word.letter] = word.value * UNIT_OF[word.letter]
        elif word.letter == "G":
            self._take_g(word)
        elif word.letter == "T":
            if self._whole(word) not in TOOLS:
                raise self._broken(RANGE, "is not a tool; allowed: T1…T9", word)
            self._commands.insert(0, self._whole(word))
        elif word.letter == "H":
            self._whole(word)
            self._length = word
        elif word.letter == "M" and self._whole(word) in ENDS:
            self.ends = True
        elif word.letter != "N":
            raise self._broken(UNSUPPORTED, "is not supported by the KUKA's G-code server", word)

    def _take_g(self, word: Word) -> None:
        number = self._whole(word)
        if number in LINES:
            self.moves = True
        elif number in HOMES or number in BASES:
            self._commands.append(number)
        elif number not in (*ALWAYS_ACTIVE, LENGTH):
            raise self._broken(UNSUPPORTED, "is not supported by the KUKA's G-code server", word)

    def _whole(self, word: Word) -> int:
        if word.value != int(word.value):
            raise self._broken(NOT_INTEGER, "should be a whole number", word)
        return int(word.value)

    def _broken(self, code: int, message: str, word: Word | None = None) -> _LineError:
        column = word.column if word else 0
        return _LineError(Problem(code, message, str(word or ""), column, self.line))
