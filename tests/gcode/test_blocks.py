"""Words into blocks: one command per group, one value per letter, the first fault counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode import ARM, GRBLHAL_MACHINE, Block, Dialect, Problem, format_block, parse
from understudy.gcode.blocks import COMMANDS


def block(text: str) -> Block:
    parsed = parse(text, ARM)
    assert isinstance(parsed, Block), parsed
    return parsed


def test_a_block_has_commands_by_group_and_values_by_letter() -> None:
    parsed = block("N7 G90 G1 X10 Y-2.5 F100 M8")
    assert parsed.commands == {"distance": "G90", "motion": "G1", "coolant": "M8"}
    assert parsed.values == {"N": 7, "X": 10, "Y": -2.5, "F": 100}
    assert parsed.axis == "motion"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("G0 X", "X needs a number"),
        ("G0 X-", "X needs a number"),
        ("G0 X2000000000000", "the number is too large; allowed: at most 10^12"),
        ("G43 H1", "is not supported without a tool table: `tools` of a machine in the cell file"),
        ("G64", "is not supported by this controller"),
    ],
)
def test_the_message_says_what_is_wrong(line: str, message: str) -> None:
    problem = parse(line, GRBLHAL_MACHINE)
    assert isinstance(problem, Problem)
    assert problem.message == message


def test_codes_may_have_zeros_in_front() -> None:
    assert block("G00 M03").commands == {"motion": "G0", "spindle": "M3"}


@pytest.mark.parametrize(
    ("line", "code", "word", "column"),
    [
        ("G0 G64.5", 23, "G64.5", 4),
        ("G1.5", 23, "G1.5", 1),
        ("G0 G1.5", 24, "G1.5", 4),
        ("G-1", 20, "G-1", 1),
        ("G999", 20, "G999", 1),
        ("G38", 20, "G38", 1),
        ("G38.6", 20, "G38.6", 1),
        ("M7.1", 23, "M7.1", 1),
        ("M1000.5", 20, "M1000.5", 1),
        ("G17 X1 G18", 21, "G18", 8),
        ("G43.1 G1", 24, "G1", 7),
        ("X1 X2", 25, "X2", 4),
        ("L1.5", 23, "L1.5", 1),
        ("L-1", 23, "L-1", 1),
        ("N-5", 4, "N-5", 1),
        ("O-5", 4, "O-5", 1),
    ],
)
def test_faults_name_the_word(line: str, code: int, word: str, column: int) -> None:
    problem = parse(line, ARM)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.word, problem.column) == (code, word, column)


def test_the_message_names_the_conflicting_command() -> None:
    assert str(parse("G17 G18", ARM, line=3)) == (
        "line 3, column 5: G18: cannot be in one line with G17"
    )
    assert "G28" in str(parse("G28 G0 X1", ARM))


@pytest.mark.parametrize(
    ("line", "code"),
    [("G77 X", 20), ("X G77", 2), ("X1 X1 G18 G19", 25), ("G18 G19 X1 X1", 21), ("G0 X1 =", 1)],
)
def test_the_leftmost_fault_counts(line: str, code: int) -> None:
    problem = parse(line, ARM)
    assert isinstance(problem, Problem)
    assert problem.code == code


@pytest.mark.parametrize("line", ["G64", "G61.1", "G43 H1", "M428", "M429"])
def test_unknown_codes_have_the_firmwares_errors(line: str) -> None:
    assert isinstance(parse(line, ARM), Block)
    problem = parse(line, GRBLHAL_MACHINE)
    assert isinstance(problem, Problem)
    assert problem.code == 20


def test_blocks_with_the_same_content_are_equal() -> None:
    assert block("g1x1 (here) y2") == block("   Y2 G1 X1")
    assert block("G1 X1") != block("G1 X2")
    assert block("(MSG,a)") != block("(MSG,b)")


# ── canonical text ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("m3 s100 y2 x1 g1 n5", "N5 G1 X1 Y2 S100 M3"),
        ("G0X.5(x)", "G0 X0.5"),
        ("f12.50 g93 g1 a-0", "G1 G93 A0 F12.5"),
        ("G92.10 X0", "G92.1 X0"),
        (" % ", "%"),
        ("(MSG, hello) M0", "M0 (MSG,hello)"),
        ("; nothing", ""),
    ],
)
def test_canonical_text(line: str, canonical: str) -> None:
    assert format_block(block(line)) == canonical


numbers = st.decimals(-99999, 99999, places=4).map(str)
words = st.tuples(st.sampled_from("XYZABCUVWIJKPQRFSTEHD"), numbers).map("".join)
lines = st.builds(
    " ".join, st.lists(st.one_of(st.sampled_from(sorted(COMMANDS)), words), max_size=8)
)


@given(lines)
def test_canonical_text_parses_to_an_equal_block(line: str) -> None:
    parsed = parse(line, ARM)
    if isinstance(parsed, Block):
        assert parse(format_block(parsed), ARM) == parsed


@given(st.one_of(st.text(), lines), st.sampled_from([ARM, GRBLHAL_MACHINE]))
def test_any_text_becomes_a_block_or_a_problem(text: str, dialect: Dialect) -> None:
    assert isinstance(parse(text, dialect), Block | Problem)
