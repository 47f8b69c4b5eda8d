"""Words into a block: which commands, which values. Conflicts inside one line are found here.

Words are judged from left to right, and the first fault counts, as on the real controller.
"""

from collections.abc import Mapping

from msgspec import Struct

from understudy.gcode import faults
from understudy.gcode.commands import (
    COMMANDS,
    GROUP_ORDER,
    AxisUse,
    Command,
    Group,
    find,
    whole_and_hundredths,
)
from understudy.gcode.dialect import Dialect
from understudy.gcode.words import Line, Problem, Word, number_text, short_text, tokenize

_NEVER_NEGATIVE = "LNO"
_ALWAYS_WHOLE = "LO$"
_WORD_ORDER = "NXYZABCUVWIJKRDEHLOPQ$FST"

_PLAIN_WORDS = {
    faults.UNSUPPORTED: "is not supported by this controller",
    faults.NOT_INTEGER: "should be a whole number",
    faults.MODAL_CONFLICT: "cannot stand in one line with {other}",
    faults.AXIS_CONFLICT: "and {other} both want the axis words of this line",
}


class Block(Struct, frozen=True, eq=False, gc=False):
    """One line of a program, understood word by word but not yet carried out.

    `words` are the names of its commands and the letters of its values, as they stood in the line,
    each at its column. Two blocks are equal when they say the same, wherever in the line it stood.
    """

    commands: Mapping[Group, str] = {}
    values: Mapping[str, float] = {}
    axis: AxisUse = ""
    message: str | None = None
    demarcation: bool = False
    words: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()
    line: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self._said() == other._said()

    def _said(self) -> tuple[object, ...]:
        return self.commands, self.values, self.axis, self.message, self.demarcation

    def problem(self, code: int, word: str, message: str) -> Problem:
        """`word` is a command's name or the letter of a value."""
        text = word + short_text(self.values[word]) if word in self.values else word
        return Problem(code, message, text, self.column(word), self.line)

    def column(self, word: str) -> int:
        """Where a word stands in the line, counted from 1; 0 if it does not."""
        return self.columns[self.words.index(word)] if word in self.words else 0


def parse(text: str, dialect: Dialect, *, line: int = 0) -> Block | Problem:
    """One line of text into a block."""
    return build(tokenize(text, dialect.spelling, line=line), dialect, line=line)


def build(line_of_words: Line, dialect: Dialect, *, line: int = 0) -> Block | Problem:
    """The words of a line into a block."""
    commands: dict[Group, str] = {}
    values: dict[str, float] = {}
    names: list[str] = []
    axis: AxisUse = ""
    for word in line_of_words.words:
        letter, value, column = word
        if letter not in ("G", "M"):
            code = _value_fault(letter, value, values)
            if code:
                return _value_problem(code, word, line)
            values[letter] = value
            names.append(letter)
            continue
        command = find(letter, value, without=dialect.without)
        code = _conflict(command, word, axis, commands)
        if code or isinstance(command, int):
            other = _opponent(code, command, axis, commands)
            message = _PLAIN_WORDS[code].format(other=other)
            return Problem(code, message, str(word), column, line)
        commands[command.group] = command.name
        names.append(command.name)
        axis = command.axis or axis
    if line_of_words.problem is not None:
        return line_of_words.problem
    columns = tuple([word.column for word in line_of_words.words])
    return Block(
        commands, values, axis, line_of_words.message, line_of_words.demarcation,
        tuple(names), columns, line,
    )  # fmt: skip


def _conflict(
    command: Command | int, word: Word, axis: AxisUse, commands: Mapping[Group, str]
) -> int:
    """grblHAL's error number for a code among the others, 0 if it fits."""
    if isinstance(command, int):
        base = COMMANDS.get(f"{word.letter}{int(abs(word.value))}")
        moves = base is not None and base.axis == "motion"
        return faults.AXIS_CONFLICT if axis and command == faults.NOT_INTEGER and moves else command
    if axis and command.axis and command.axis != "scaling":
        return faults.AXIS_CONFLICT
    return faults.MODAL_CONFLICT if command.group in commands else 0


def _value_fault(letter: str, value: float, values: Mapping[str, float]) -> int:
    if letter in _ALWAYS_WHOLE and whole_and_hundredths(value)[1]:
        return faults.NOT_INTEGER if letter != "O" or value >= 0 else faults.NEGATIVE
    if letter in values:
        return faults.WORD_REPEATED
    return faults.NEGATIVE if letter in _NEVER_NEGATIVE and value < 0 else 0


def _value_problem(code: int, word: Word, line: int) -> Problem:
    message = {
        faults.NOT_INTEGER: "should be a whole number",
        faults.WORD_REPEATED: f"{word.letter} stands twice in this line",
        faults.NEGATIVE: "cannot be negative",
    }[code]
    return Problem(code, message, str(word), word.column, line)


def _opponent(
    code: int, command: Command | int, axis: AxisUse, commands: Mapping[Group, str]
) -> str:
    """The command of the line that a conflict is with."""
    if code == faults.MODAL_CONFLICT and isinstance(command, Command):
        return commands[command.group]
    if code == faults.AXIS_CONFLICT:
        return next(name for name in commands.values() if COMMANDS[name].axis == axis)
    return ""


def format_block(block: Block) -> str:
    """Canonical text: N, G codes, axes, other words, M codes. It parses to an equal block."""
    if block.demarcation:
        return "%" if block.message is None else f"(MSG,{block.message})%"
    names = [block.commands[group] for group in GROUP_ORDER if group in block.commands]
    words = {
        letter: letter + number_text(block.values[letter])
        for letter in _WORD_ORDER
        if letter in block.values
    }
    parts = [words.pop("N", ""), *(name for name in names if name[0] == "G")]
    parts += [*words.values(), *(name for name in names if name[0] == "M")]
    if block.message is not None:
        parts.append(f"(MSG,{block.message})")
    return " ".join(part for part in parts if part)
