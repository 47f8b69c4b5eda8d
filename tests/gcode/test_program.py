"""Whole programs: every line has its number, its text, and a block or a problem."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode import GRBLHAL_MACHINE, SEED, Block, Problem, parse
from understudy.gcode.program import program_lines

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
    (line,) = program_lines("(Größe) X", SEED)
    assert line.text == "(Größe) X"
    assert isinstance(line.block, Problem)
    assert line.block.column == 11


def test_nothing_is_a_program_too() -> None:
    assert list(program_lines(b"", SEED)) == []


@given(st.lists(st.text(alphabet="GXM019. ()MSG,-", max_size=20), max_size=5))
def test_lines_of_a_program_are_parsed_like_single_lines(lines: list[str]) -> None:
    for line in program_lines("\n".join(lines), SEED):
        assert line.block == parse(line.text, SEED, line=line.number)
