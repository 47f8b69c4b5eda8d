"""Whole programs: every line has its number, its text, and a block or a problem."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode import ARM, GRBLHAL_MACHINE, Block, Dialect, Problem, parse
from understudy.gcode.program import (
    COLUMNS,
    PIECE_BYTES,
    ProgramPart,
    forms,
    program_lines,
    program_parts,
    read,
    read_in_parts,
)

PROGRAM = """%
(MSG,start)
G90 G21\r
G1 X10 F100 ; there
/G1 X
G64

G0 X0"""


def test_a_program_line_by_line() -> None:
    lines = list(program_lines(PROGRAM, GRBLHAL_MACHINE))
    assert [line.number for line in lines] == list(range(1, 9))
    assert [line.text for line in lines] == PROGRAM.replace("\r", "").split("\n")
    problems = [line.block for line in lines if isinstance(line.block, Problem)]
    assert [(problem.line, problem.column, problem.code) for problem in problems] == [
        (5, 5, 2),
        (6, 1, 20),
    ]
    assert lines[1].block == Block(message="start")


def test_text_is_utf8_and_columns_count_bytes() -> None:
    (line,) = program_lines("(Größe) X", ARM)
    assert line.text == "(Größe) X"
    assert isinstance(line.block, Problem)
    assert line.block.column == 11


def test_an_empty_text_is_a_program() -> None:
    assert list(program_lines(b"", ARM)) == []


@given(st.lists(st.text(alphabet="GXM019. ()MSG,-", max_size=20), max_size=5))
def test_lines_of_a_program_are_parsed_like_single_lines(lines: list[str]) -> None:
    for line in program_lines("\n".join(lines), ARM):
        assert line.block == parse(line.text, ARM, line=line.number)


@given(
    st.lists(st.sampled_from(["G1 X1 F2", "(a) X", "", "Q", "N5 G0 Y-1"]), max_size=9),
    st.sampled_from(["\n", "\r", "\r\n"]),
    st.integers(1, 30),
)
def test_lines_are_the_same_when_they_are_read_in_parts(
    lines: list[str], line_end: str, piece_bytes: int
) -> None:
    source = line_end.join(lines).encode()
    whole = list(program_lines(source, ARM))
    parts = [
        part.line(k)
        for words in read_in_parts(source, ARM.spelling, at_once=2, piece_bytes=piece_bytes)
        for part in [ProgramPart(words, ARM)]
        for k in range(len(part))
    ]
    assert parts == whole
    assert [line.block.line for line in parts] == list(range(1, len(whole) + 1))


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_the_first_lines_of_a_long_program_need_no_look_at_the_others(line_end: bytes) -> None:
    source = (b"G1 X1" + line_end) * 500_000
    first = next(read_in_parts(source, ARM.spelling, at_once=10**9))
    assert PIECE_BYTES < first.stops[-1] < PIECE_BYTES + 10


WORD = st.sampled_from(
    [
        "G1",
        "G 0",
        "G90",
        "G91.1",
        "M3",
        "M3.5",
        "X1",
        "X-2.50",
        "Y7",
        "N5",
        "N-5",
        "L1",
        "L2",
        "L1.5",
        "O3",
        "$0",
        "$1",
        "F100",
        "%",
        "(there)",
        "G64",
        "T1",
        "/",
        "?",
    ]
)
LINE = st.lists(WORD, max_size=5).map(" ".join)


@given(st.lists(LINE, max_size=12), st.sampled_from([ARM, GRBLHAL_MACHINE]))
def test_lines_of_one_form_differ_in_their_numbers_alone(
    lines: list[str], dialect: Dialect
) -> None:
    """oracle of number_forms: every line parsed alone gives the same block with the same
    columns."""
    found = [line.block for line in program_lines("\n".join(lines), dialect)]
    wanted = [parse(line, dialect, line=number) for number, line in enumerate(lines, 1)]
    assert found == wanted[: len(found)]
    for one, other in zip(found, wanted, strict=False):
        if isinstance(one, Block) and isinstance(other, Block):
            assert (one.columns, one.line) == (other.columns, other.line)


def test_a_contour_has_few_forms() -> None:
    text = "\n".join(f"N{k} G1 X{k / 7:.3f} Y{k / 9:.3f}" for k in range(100))
    kinds, leads = forms(read(f"{text}\nG0 X1\nN1 G1 X0 Y0 (end)\n".encode()))
    assert leads.tolist() == [0, 100]
    assert kinds.tolist() == [0] * 100 + [1, -1]


PLAIN = st.lists(st.sampled_from(["G1", "X1.5", "Y-2", "Z3", "A90", "N7", "F100"]), unique=True)


@given(st.lists(PLAIN, min_size=1, max_size=9), st.data())
def test_lines_in_columns_are_the_lines_read_one_by_one(
    words: list[list[str]], data: st.DataObject
) -> None:
    """oracle of values_in_columns: the values of each block."""
    source = "\r\n".join(map(" ".join, words)) + " ; the last\n"
    (part,) = program_parts(source, ARM)
    first = data.draw(st.integers(0, len(words) - 1))
    cut = data.draw(st.integers(first, len(words)))
    lines = part.plain(first, cut).then(part.plain(cut, len(words)))
    assert list(lines) == list(program_lines(source, ARM))[first:]
    assert lines.numbers.tolist() == list(range(first + 1, len(words) + 1))
    for line, values in zip(lines, lines.values, strict=True):
        assert isinstance(line.block, Block)
        given = {k: v for k, v in zip(COLUMNS, values.tolist(), strict=True) if v == v}
        assert given == line.block.values
