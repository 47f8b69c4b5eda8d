"""The lines of a program, and what a run needs to know of all of them.

A program can have a million lines: they are read once, in steps between which other work is done.
Starting, stepping and following a run then costs the same for every length.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from understudy.errors import Refused
from understudy.ports.program import (
    LONGEST_LINE,
    LONGEST_PROGRAM,
    MOST_LINES,
    Language,
    SourceLine,
    Switched,
)

COUNTED_AT_ONCE = 1_000_000
"""Characters in which line ends are counted at once: some milliseconds."""


class Sent(NamedTuple):
    """A line to send: its number in the file (0: none) and the count of acting lines so far."""

    number: int
    text: str
    acting: int


class ProgramLines:
    """`problem`: of the first line that cannot be read. Empty lines are not sent."""

    def __init__(self) -> None:
        self.lines: list[SourceLine] = []
        self.problem: Refused | None = None
        self._sent = array("q")  # index of each line that is sent
        self._acting = array("q")  # acting lines up to each of them

    def __len__(self) -> int:
        return len(self.lines)

    def read(self, lines: Iterable[SourceLine]) -> Generator[None, None, "ProgramLines"]:
        """Adds lines; yields after each of them."""
        for line in lines:
            self.problem = self.problem or line.problem
            if line.text.strip():
                self._sent.append(len(self.lines))
                self._acting.append(line.acts + (self._acting[-1] if self._acting else 0))
            self.lines.append(line)
            yield
        return self

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._sent

    def queue(self, opening: Sequence[str], first: int) -> "SentLines":
        """The lines of a run that starts at line ``first``, after the lines of ``opening``."""
        at = bisect_right(self._sent, first - 2)
        before = self._acting[at - 1] if at else 0
        return SentLines(self, opening, at, len(opening) - before)

    def sent_line(self, at: int, more: int) -> Sent:
        """A line that is sent; ``more``: acting lines besides those of the file."""
        line = self.lines[self._sent[at]]
        return Sent(line.number, line.text, self._acting[at] + more)

    def sent_count(self) -> int:
        return len(self._sent)

    def first_beyond(self, acting: int, begin: int) -> int:
        """The first sent line from ``begin`` on up to which more lines act than ``acting``."""
        return bisect_right(self._acting, acting, lo=begin)


def all_read(work: Generator[None, None, Any]) -> Any:
    """The outcome of work that is not interrupted."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


class SentLines(Sequence[Sent]):
    """The lines of a run in the order they are sent: the opening lines, then those of the file."""

    def __init__(self, lines: ProgramLines, opening: Sequence[str], at: int, more: int) -> None:
        self._lines = lines
        self._opening = [Sent(0, text, count) for count, text in enumerate(opening, 1)]
        self._at = at
        self._more = more

    def __len__(self) -> int:
        return len(self._opening) + self._lines.sent_count() - self._at

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        if place < len(self._opening):
            return self._opening[place]
        return self._lines.sent_line(self._at + place - len(self._opening), self._more)

    def not_executed(self, executed: int) -> Sent | None:
        """The first line that is not executed; ``executed``: number of acting lines that are."""
        opening = next((sent for sent in self._opening if sent.acting > executed), None)
        if opening is not None:
            return opening
        at = self._lines.first_beyond(executed - self._more, self._at)
        known = at < self._lines.sent_count()
        return self._lines.sent_line(at, self._more) if known else None


# ── starts and limits ──


@dataclass(frozen=True)
class StartAt:
    """What a start at a line needs. `process`: what the lines before it switch on; `opening` and
    `restoring`: the lines to send before it, without and with that."""

    lines: ProgramLines
    line: int
    process: tuple[Switched, ...]
    opening: list[str] | Refused
    restoring: list[str] | Refused

    def before(self, *, restore: bool) -> list[str] | Refused:
        if isinstance(self.opening, Refused) or not (restore and self.process):
            return self.opening
        if isinstance(self.restoring, Refused):
            return self.restoring
        return [*self.opening, *self.restoring]


def start_at(language: Language, program: ProgramLines, line: int) -> StartAt:
    """What a start at ``line`` needs, from all lines before it."""
    if program.problem is not None:
        return StartAt(program, line, (), program.problem, [])
    if not 1 <= line <= len(program):
        unknown = Refused(f"there is no line {line}; there are 1…{len(program)}")
        return StartAt(program, line, (), unknown, [])
    if line == 1:
        return StartAt(program, line, (), [], [])
    lines = program.lines
    process = language.process_before(lines, line)
    restoring = language.restoring(lines, line) if process else []
    return StartAt(program, line, process, language.opening(lines, line), restoring)


def too_large(text: str) -> Generator[None, None, Refused | None]:
    """Why a text is too large for a program; yields often."""
    if len(text) > LONGEST_PROGRAM:
        return Refused(f"the program has {len(text)} characters, more than {LONGEST_PROGRAM}")
    ends = 0
    for begin in range(0, len(text), COUNTED_AT_ONCE):
        end = begin + COUNTED_AT_ONCE
        ends += text.count("\n", begin, end) + text.count("\r", begin, end)
        ends -= text.count("\r\n", begin, end + 1)  # a CR LF that begins in this part
        yield
    if ends > MOST_LINES:
        return Refused(f"the program has {ends} lines, more than {MOST_LINES}")
    for line in re.finditer(f"[^\\r\\n]{{1,{LONGEST_LINE + 1}}}", text):
        if line.end() - line.start() > LONGEST_LINE:
            number = len(re.findall(r"\r\n|\r|\n", text[: line.start()])) + 1
            return Refused(f"line {number} has more than {LONGEST_LINE} characters")
        yield
    return None
