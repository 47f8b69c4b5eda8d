"""One line of text to words, and words to a block.

A word is a letter and a number. White space, comments and stray `)` are ignored everywhere, even
inside a number, as on the real controller: ``G 0 X1 (to) 0`` is ``G0 X10``. A block contains the
commands and values of a line; conflicts inside one line are found here. Words are checked from left
to right and the first fault is reported, as on the real controller. No text raises an exception
here.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.dialect import Dialect, Spelling, single

DOUBLE_DIGITS = 15
SINGLE_DIGITS = 9
MOST_DECIMALS = 22
"""Powers of ten up to here are exact, so digits / 10**n is the nearest number to the text."""
LARGEST = 1e12
"""The largest number read; squares and sums of it stay finite in single precision."""


class Word(NamedTuple):
    letter: str
    value: float
    column: int

    def __str__(self) -> str:
        return self.letter + short_text(self.value)


class Problem(Struct, frozen=True):
    """A fault of a line and its place; `code` is grblHAL's error number."""

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


class LineWords(Struct, frozen=True):
    """The words of a line up to its end or the first `problem`."""

    words: tuple[Word, ...] = ()
    problem: Problem | None = None
    message: str | None = None
    demarcation: bool = False


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
    """A number for display, with the digits of single precision."""
    return number_text(value if value == int(value) else np.float32(value))


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


def tokenize(text: str, spelling: Spelling | None = None, *, line: int = 0) -> LineWords:
    """The words of one line (without its line end)."""
    spelling = spelling or Spelling()
    body = text.lstrip("".join(map(chr, range(33))))
    if 0 < spelling.longest < sum(character >= " " for character in body):
        message = f"a line has at most {spelling.longest} characters"
        return LineWords(problem=Problem(error_numbers.TOO_LONG, message, line=line))
    if body.startswith("/"):
        if spelling.block_delete:
            return LineWords()
        text = text.replace("/", " ", 1)
    kept, message_text = _without_comments(text)
    if [character for character, _ in kept] == ["%"]:
        return LineWords(demarcation=True, message=message_text)
    if kept and kept[0][0] == "$":
        problem = Problem(
            error_numbers.SYSTEM_LINE, "a $ line is not G-code", "$", kept[0][1], line
        )
        return LineWords(problem=problem)
    words, problem_found = _words(kept, spelling, line)
    return LineWords(tuple(words), problem_found, message_text)


def _without_comments(text: str) -> tuple[list[tuple[str, int]], str | None]:
    """The significant characters in capitals with their columns, and the first (MSG, …)."""
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
            return words, Problem(error_numbers.BAD_LETTER, message, letter, column, line)
        reading = _number(kept, at + 1, spelling.single)
        if math.isnan(reading.value):
            has_digits = any("0" <= each <= "9" for each, _ in kept[at + 1 : reading.stop])
            too_large = "the number is too large; allowed: at most 10^12"
            message = too_large if has_digits else f"{letter} needs a number"
            return words, Problem(error_numbers.BAD_NUMBER, message, letter, column, line)
        words.append(Word(letter, reading.value, column))
        at = reading.stop
    return words, None


def _is_checksum(kept: list[tuple[str, int]]) -> bool:
    return bool(kept) and all("0" <= character <= "9" for character, _ in kept)


def _number(kept: list[tuple[str, int]], at: int, single_precision: bool) -> _Reading:
    """The number that begins here; nan if there is no number or it is too large."""
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


def read_number(text: str) -> float:
    """The number at the begin of a text; nan if there is none."""
    return _number([(character, 0) for character in text], 0, single_precision=False).value


def normalized(text: str) -> str:
    """The significant characters of a line in capitals: no spaces, no comments."""
    return "".join(character for character, _ in _without_comments(text)[0])


Group = Literal[
    "nonmodal",
    "motion",
    "plane",
    "distance",
    "arc distance",
    "feed mode",
    "units",
    "cutter",
    "tool offset",
    "coordinates",
    "path",
    "retract",
    "macro",
    "scaling",
    "flow",
    "io",
    "tool",
    "spindle",
    "coolant",
    "overrides",
    "kinematics",
    "modal state",
]

AxisUse = Literal["", "nonmodal", "motion", "tool offset", "scaling"]
"""The kind of code that takes the axis words of a line; empty if no code takes them."""


@dataclass(frozen=True, slots=True)
class Code:
    """A G or M code. `meaning`, `parameters`: in words, for editors."""

    name: str
    group: Group
    axis: AxisUse = ""
    meaning: str = ""
    parameters: str = ""


COORDINATE_SYSTEMS = ("G54", "G55", "G56", "G57", "G58", "G59", "G59.1", "G59.2", "G59.3")
PROBES = ("G38.2", "G38.3", "G38.4", "G38.5")
ARCS = ("G2", "G3")
SYNCHRONIZED = ("G33", "G33.1", "G76")
DRILLING = ("G73", "G81", "G82", "G83", "G84", "G85", "G86", "G89")
"""Canned cycles."""
SPLINES = ("G5", "G5.1")
TAKES_M_WORDS = ("G65", "G66", "G66.1")
"""Macro calls: all M words of their line are values for the macro."""
M_GROUPS: tuple[Group, ...] = ("flow", "io", "tool", "spindle", "coolant", "overrides")

Meaning = tuple[str, str]
"""What a code does, and the words that belong to it."""

_MEMBERS: dict[tuple[Group, AxisUse], dict[str, Meaning]] = {
    ("nonmodal", ""): {
        "G4": ("dwell", "P seconds"),
        "G28.1": ("store this position for G28", ""),
        "G30.1": ("store this position for G30", ""),
        "G53": ("machine coordinates in this line", ""),
        "G92.1": ("reset the offsets of G92", ""),
        "G92.2": ("suspend the offsets of G92", ""),
        "G92.3": ("restore the offsets of G92", ""),
    },
    ("nonmodal", "nonmodal"): {
        "G10": ("set a work offset or a tool", "L2 P system, L20, L1 P tool; axes"),
        "G28": ("go to the position of G28.1", "axes: by way of there"),
        "G30": ("go to the position of G30.1", "axes: by way of there"),
        "G92": ("shift the zero: this position reads these values", "axes"),
    },
    ("motion", "motion"): {
        "G0": ("rapid motion", "axes"),
        "G1": ("straight line at the feed", "axes F"),
        "G2": ("arc, clockwise", "axes; I J K centre, or R; P turns"),
        "G3": ("arc, counter-clockwise", "axes; I J K centre, or R; P turns"),
        "G38.2": ("probe towards a contact; an error without one", "axes F"),
        "G38.3": ("probe towards a contact", "axes F"),
        "G38.4": ("probe away from a contact; an error if it stays", "axes F"),
        "G38.5": ("probe away from a contact", "axes F"),
        "G73": ("drill, breaking chips", "axes R Q L F"),
        "G81": ("drill", "axes R L F"),
        "G82": ("drill with a dwell", "axes R P L F"),
        "G83": ("drill with pecks", "axes R Q L F"),
        "G84": ("tap", "axes R L F"),
        "G85": ("bore, feed out", "axes R L F"),
        "G86": ("bore, stop, rapid out", "axes R P L F"),
        "G89": ("bore with a dwell, feed out", "axes R P L F"),
        "G5": ("cubic spline", "X Y I J P Q"),
        "G5.1": ("quadratic spline", "X Y I J"),
        "G33": ("motion in step with the spindle", "Z K"),
        "G33.1": ("rigid tapping", "Z K"),
        "G76": ("thread cutting", "Z P I J K R Q H E L"),
    },
    ("motion", ""): {"G80": ("end the canned cycle", "")},
    ("plane", ""): {
        "G17": ("arcs in the plane XY", ""),
        "G18": ("arcs in the plane ZX", ""),
        "G19": ("arcs in the plane YZ", ""),
    },
    ("distance", ""): {
        "G90": ("absolute positions", ""),
        "G91": ("relative positions", ""),
    },
    ("arc distance", ""): {"G91.1": ("relative centres of arcs", "")},
    ("feed mode", ""): {
        "G93": ("feed as one divided by minutes", "F in every line"),
        "G94": ("feed per minute", ""),
        "G95": ("feed per revolution", ""),
    },
    ("units", ""): {"G20": ("inches", ""), "G21": ("millimetres", "")},
    ("cutter", ""): {"G40": ("no cutter compensation", "")},
    ("tool offset", ""): {
        "G43": ("length of a tool", "H tool"),
        "G43.2": ("add the length of a tool", "H tool"),
        "G49": ("no tool length", ""),
    },
    ("tool offset", "tool offset"): {"G43.1": ("tool length as given", "axes")},
    ("coordinates", ""): {
        name: (f"work coordinates {number}", "")
        for number, name in enumerate(COORDINATE_SYSTEMS, 1)
    },
    ("path", ""): {
        "G61": ("exact path", ""),
        "G61.1": ("exact stop at every corner", ""),
        "G64": ("rounded corners", "P tolerance"),
    },
    ("retract", ""): {
        "G98": ("cycles retract to the first level", ""),
        "G99": ("cycles retract to R", ""),
    },
    ("macro", ""): {
        "G65": ("call a macro", "P number; values"),
        "G66": ("call a macro after every motion", "P number; values"),
        "G66.1": ("call a macro in every line", "P number; values"),
        "G67": ("end G66", ""),
        "M98": ("call a subprogram", "P number"),
    },
    ("scaling", "scaling"): {
        "G50": ("no scaling", ""),
        "G51": ("scaling", "axes or P factor"),
    },
    ("flow", ""): {
        "M0": ("pause", ""),
        "M1": ("optional pause", ""),
        "M2": ("end of the program", ""),
        "M30": ("end of the program", ""),
        "M60": ("pause, pallet change", ""),
    },
    ("io", ""): {
        "M62": ("output on, with the next motion", "P output"),
        "M63": ("output off, with the next motion", "P output"),
        "M64": ("output on, now", "P output"),
        "M65": ("output off, now", "P output"),
        "M66": ("wait for an input", "P digital or E analog; L mode; Q seconds"),
        "M67": ("analog output, with the next motion", "E output, Q value"),
        "M68": ("analog output, now", "E output, Q value"),
    },
    ("tool", ""): {
        "M6": ("change to the tool of T", "T tool"),
        "M61": ("set the number of the mounted tool", "Q tool"),
    },
    ("spindle", ""): {
        "M3": ("spindle clockwise", "S speed"),
        "M4": ("spindle counter-clockwise", "S speed"),
        "M5": ("spindle off", ""),
    },
    ("coolant", ""): {
        "M7": ("mist on", ""),
        "M8": ("flood on", ""),
        "M9": ("mist and flood off", ""),
    },
    ("overrides", ""): {
        "M48": ("overrides allowed", ""),
        "M49": ("overrides at 100 %", ""),
        "M50": ("feed override allowed or not", "P1 or P0"),
        "M51": ("spindle override allowed or not", "P1 or P0"),
        "M53": ("feed hold allowed or not", "P1 or P0"),
    },
    ("kinematics", ""): {
        "M428": ("A B C are joints", ""),
        "M429": ("A B C are angles of the tool", ""),
    },
    ("modal state", ""): {
        "M70": ("save the modes", ""),
        "M71": ("forget the saved modes", ""),
        "M72": ("restore the saved modes", ""),
        "M73": ("save the modes, restore them at the end", ""),
    },
}

COMMANDS = {
    name: Code(name, group, axis, *meaning)
    for (group, axis), members in _MEMBERS.items()
    for name, meaning in members.items()
}
GROUP_ORDER: tuple[Group, ...] = tuple(dict.fromkeys(group for group, _ in _MEMBERS))

_FRACTION_UNSUPPORTED = frozenset({5, 28, 30, 38, 43, 59, 61, 65, 66, 90, 91, 92})
"""G codes for which a wrong decimal means an unknown code; other codes need a whole number."""
_FRACTION_IGNORED = frozenset({49})
_LAST_STANDARD_M = 99

_BY_NUMBER = {
    (name[0], round(100 * float(name[1:]))): command for name, command in COMMANDS.items()
}


def whole_and_hundredths(value: float) -> tuple[int, int]:
    """Whole part and hundredths of a code's number as the firmware reads it.

    Below zero the hundredths are 1, so that it is neither a code nor a whole number.
    """
    whole = math.trunc(value)
    return whole, 1 if value < 0 else math.floor(100.0 * (value - whole) + 0.5)


@lru_cache(maxsize=1024)
def find(letter: str, value: float, *, without: frozenset[str]) -> Code | int:
    """The command of a G or M word, or grblHAL's error number for it."""
    whole, hundredths = whole_and_hundredths(value)
    if letter == "M" and 0 <= whole <= _LAST_STANDARD_M and hundredths:
        return error_numbers.NOT_INTEGER
    if letter == "G" and whole in _FRACTION_IGNORED:
        hundredths = 0
    command = _BY_NUMBER.get((letter, 100 * whole + hundredths)) if hundredths < 100 else None
    if command is not None and value >= 0:
        return error_numbers.UNSUPPORTED if command.name in without else command
    if letter == "M" or value < 0 or whole in _FRACTION_UNSUPPORTED:
        return error_numbers.UNSUPPORTED
    base = COMMANDS.get(f"G{whole}")
    return (
        error_numbers.UNSUPPORTED
        if base is None or base.name in without
        else error_numbers.NOT_INTEGER
    )


_LAST_COUNTS: tuple[Group, ...] = ("modal state",)
"""Groups of which a line may have several codes; the last one counts."""
_NEVER_NEGATIVE = "LNO"
_ALWAYS_WHOLE = "LO$"
_WORD_ORDER = "NXYZABCUVWIJKRDEHLOPQ$FST"

_PLAIN_WORDS = {
    error_numbers.UNSUPPORTED: "is not supported by this controller",
    error_numbers.NOT_INTEGER: "should be a whole number",
    error_numbers.MODAL_CONFLICT: "cannot be in one line with {other}",
    error_numbers.AXIS_CONFLICT: "and {other} both use the axis words of this line",
}
_TOOL_TABLE = "is not supported without a tool table: `tools` of a machine in the cell file"
_NEEDS = {(error_numbers.UNSUPPORTED, "G43"): _TOOL_TABLE}
"""Messages of codes that a controller may be given."""


class Block(Struct, frozen=True, eq=False, gc=False):
    """The commands and values of one line of a program.

    `words` are the names of its commands and the letters of its values, in the order of the
    line, each with its column. Blocks with the same content are equal, also at other columns.
    """

    commands: Mapping[Group, str] = {}
    values: Mapping[str, float] = {}
    axis: AxisUse = ""
    message: str | None = None
    demarcation: bool = False
    words: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()
    line: int = 0

    @property
    def acts(self) -> bool:
        """Whether it counts as executed: comments, messages and `%` do not."""
        return bool(self.commands or self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self._content() == other._content()

    def _content(self) -> tuple[object, ...]:
        return self.commands, self.values, self.axis, self.message, self.demarcation

    def problem(self, code: int, word: str, message: str) -> Problem:
        """A problem of this line; `word` is a command's name or the letter of a value."""
        text = word + short_text(self.values[word]) if word in self.values else word
        return Problem(code, message, text, self.column(word), self.line)

    def column(self, word: str) -> int:
        """The column of a word, counted from 1; 0 if the line does not have it."""
        return self.columns[self.words.index(word)] if word in self.words else 0


def parse(text: str, dialect: Dialect, *, line: int = 0) -> Block | Problem:
    """One line of text into a block."""
    return build(tokenize(text, dialect.spelling, line=line), dialect, line=line)


def build(line_of_words: LineWords, dialect: Dialect, *, line: int = 0) -> Block | Problem:
    """The words of a line into a block."""
    commands: dict[Group, str] = {}
    values: dict[str, float] = {}
    names: list[str] = []
    axis: AxisUse = ""
    taken = False
    for before, word in zip((None, *line_of_words.words), line_of_words.words, strict=False):
        letter, value, column = word
        if letter not in ("G", "M"):
            code = _value_fault(letter, value, values) or _after_fraction(letter, before)
            if code:
                return _value_problem(code, word, line)
            values[letter] = value
            names.append(letter)
            continue
        if letter == "M" and commands.get("macro") in TAKES_M_WORDS:
            if taken:
                return _value_problem(error_numbers.WORD_REPEATED, word, line)
            taken = True
            names.append("")
            continue
        command = find(letter, value, without=dialect.without)
        code = _conflict(command, word, axis, commands)
        if code or isinstance(command, int):
            other = _opponent(code, command, axis, commands)
            text = _NEEDS.get((code, str(word)), _PLAIN_WORDS[code])
            return Problem(code, text.format(other=other), str(word), column, line)
        if command.name in TAKES_M_WORDS:
            taken = _drop_m_words(commands)
        commands[command.group] = command.name
        names.append(command.name)
        axis = command.axis or axis
    if line_of_words.problem is not None:
        return line_of_words.problem
    columns = tuple([word.column for word in line_of_words.words])
    return Block(
        commands,
        values,
        axis,
        line_of_words.message,
        line_of_words.demarcation,
        tuple(names),
        columns,
        line,
    )


def _drop_m_words(commands: dict[Group, str]) -> bool:
    """Removes the M words that a macro takes; whether there are any. M61 is still checked."""
    found = [group for group in M_GROUPS if group in commands]
    for group in found:
        if commands[group] != "M61":
            del commands[group]
    return bool(found)


def _conflict(command: Code | int, word: Word, axis: AxisUse, commands: Mapping[Group, str]) -> int:
    """grblHAL's error number for a code among the others, 0 if it fits."""
    if isinstance(command, int):
        base = COMMANDS.get(f"{word.letter}{int(abs(word.value))}")
        moves = base is not None and base.axis == "motion"
        return (
            error_numbers.AXIS_CONFLICT
            if axis and command == error_numbers.NOT_INTEGER and moves
            else command
        )
    if axis and command.axis and command.axis != "scaling":
        return error_numbers.AXIS_CONFLICT
    taken = command.group in commands and command.group not in _LAST_COUNTS
    return error_numbers.MODAL_CONFLICT if taken else 0


def _value_fault(letter: str, value: float, values: Mapping[str, float]) -> int:
    if letter in _ALWAYS_WHOLE and whole_and_hundredths(value)[1]:
        return error_numbers.NOT_INTEGER if letter != "O" or value >= 0 else error_numbers.NEGATIVE
    if letter in values:
        return error_numbers.WORD_REPEATED
    return error_numbers.NEGATIVE if letter in _NEVER_NEGATIVE and value < 0 else 0


def _after_fraction(letter: str, before: Word | None) -> int:
    """The firmware checks the decimals of the word before an O word instead of its own."""
    if letter != "O" or before is None or before.letter in ("G", "M"):
        return 0
    return error_numbers.NOT_INTEGER if whole_and_hundredths(before.value)[1] else 0


def _value_problem(code: int, word: Word, line: int) -> Problem:
    message = {
        error_numbers.NOT_INTEGER: "should be a whole number",
        error_numbers.WORD_REPEATED: f"{word.letter} is given twice in this line",
        error_numbers.NEGATIVE: "cannot be negative",
    }[code]
    return Problem(code, message, str(word), word.column, line)


def _opponent(code: int, command: Code | int, axis: AxisUse, commands: Mapping[Group, str]) -> str:
    """The other command in a conflict."""
    if code == error_numbers.MODAL_CONFLICT and isinstance(command, Code):
        return commands[command.group]
    if code == error_numbers.AXIS_CONFLICT:
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


# ── names of commands ──

COMMENTS = re.compile(r"\([^)]*\)?|;.*")
COMMAND_WORD = re.compile(r"([GMTgmt])\s*0*(\d+(?:\.[1-9]\d*)?)")


def commands_in(text: str) -> list[str]:
    """Commands of a line by name: `M3`, `G38.2`, `T1`, `$H`, `$J`; each once, in order."""
    if text.startswith("$"):
        return [text.upper().partition("=")[0].strip()]
    words = COMMAND_WORD.findall(COMMENTS.sub("", text))
    return list(dict.fromkeys(f"{letter.upper()}{number}" for letter, number in words))
