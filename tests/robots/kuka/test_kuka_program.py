"""G-code as records of the KUKA's G-code server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode.blocks import Problem
from understudy.robots.kuka.program import Step, read_program
from understudy.robots.kuka.records import Record
from understudy.units import DEG, MM


def steps(text: str) -> list[tuple[int, dict[str, float]]]:
    found = read_program(text)
    assert not isinstance(found, Problem), str(found)
    return [(step.kind, step.words) for step in found]


def problem(text: str) -> str:
    found = read_program(text)
    assert isinstance(found, Problem)
    return str(found)


def test_the_document_s_program() -> None:
    assert read_program("G1 X200 F100\n") == [Step(1, 0, {"X": 200 * MM, "F": 100 * MM})]


def test_every_word() -> None:
    words = {"X": 1 * MM, "Y": -2 * MM, "Z": 3.5 * MM, "A": 4 * DEG, "B": 5 * DEG, "C": -6 * DEG}
    assert steps("G1 X1 Y-2 Z3.5 A4 B5 C-6 F7 E8") == [(0, words | {"F": 7 * MM, "E": 8.0})]


def test_modal_moves_tools_bases_and_home() -> None:
    program = """%
    (a part) T1 G54 ; setup
    N10 G0 X10
    Y20
    g1 y30 f50
    F25
    G28
    G30
    G59 T9 G21 G90
    M30
    this is never read
    """
    assert steps(program) == [
        (1, {}),
        (54, {}),
        (0, {"X": 10 * MM}),
        (0, {"Y": 20 * MM}),
        (0, {"Y": 30 * MM, "F": 50 * MM}),
        (0, {"F": 25 * MM}),
        (28, {}),
        (30, {}),
        (9, {}),
        (59, {}),
    ]


def test_a_selection_comes_before_the_move_of_its_line() -> None:
    assert [kind for kind, _ in steps("G1 X5 G55 T2")] == [2, 55, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("G1 X1\nG2 X2", "line 2, column 1: G2: is not supported by the KUKA's G-code server"),
        ("G91", "line 1, column 1: G91: is not supported by the KUKA's G-code server"),
        ("M3", "M3: is not supported by the KUKA's G-code server"),
        ("G1 I5", "I5: is not supported by the KUKA's G-code server"),
        ("X5", "X needs a G0 or G1 before it"),
        ("G1 X1 X2", "line 1, column 7: X2: is given twice"),
        ("T0", "is not a tool; allowed: T1…T9"),
        ("T10", "is not a tool; allowed: T1…T9"),
        ("T1.5", "should be a whole number"),
        ("G28 X0", "home takes no words"),
        ("G1 X", "X: X needs a number"),
        ("$H", "a $ line is not G-code"),
    ],
)
def test_unsupported_words_are_reported_with_line_and_column(text: str, expected: str) -> None:
    assert expected in problem(text)


@pytest.mark.parametrize("line", ["G43", "G43 H2", "G43 H0"])
def test_g43_of_the_selected_tool_changes_nothing(line: str) -> None:
    """The frame of a tool has its length already."""
    assert steps(f"T2\n{line} G1 X10\n") == steps("T2\nG1 X10\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T2\nG43 H1", "line 2, column 5: H1: is the length of another tool: T2 is selected"),
        ("G43 H1", "no tool is selected before it"),
        ("T1\nG1 X1 H1", "H1: is used with G43 only"),
        ("T1\nG49", "is not supported"),
    ],
)
def test_a_length_of_another_tool_is_refused(text: str, expected: str) -> None:
    assert expected in problem(text)


def test_steps_are_numbered_when_they_are_sent() -> None:
    assert Step(3, 28, {}).numbered(7) == Record(7, 28)


@given(st.text())
def test_the_reader_never_raises(text: str) -> None:
    read_program(text)
