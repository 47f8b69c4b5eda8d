"""One line of text into words, and whole programs just the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode.blocks import (
    LineWords,
    Problem,
    Word,
    number_text,
    scaled,
    scaled_single,
    tokenize,
)
from understudy.gcode.dialect import Spelling
from understudy.gcode.program import ProgramWords, read, split_lines

WIRE = Spelling(single=True, longest=256)
SPELLINGS = (
    Spelling(),
    WIRE,
    Spelling(checksum=True),
    Spelling(block_delete=True, longest=12),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("G0X5Y1Z-1", "G0 X5 Y1 Z-1"),
        ("  G 0  X 4  ", "G0 X4"),
        ("\tg1 x1.5f100", "G1 X1.5 F100"),
        ("X1 (to) 0", "X10"),
        ("G0 (a) X1 (b)", "G0 X1"),
        ("G0 X2 ; tail X3", "G0 X2"),
        ("(a;b) X1", "X1"),
        ("(unclosed X1", ""),
        ("X0 Y0 )", "X0 Y0"),
        ("((a)X1", "X1"),
        ("X+1 Y.5 Z5. A-.25", "X1 Y0.5 Z5 A-0.25"),
        ("/G0 X1", "G0 X1"),
        ("n20x3", "N20 X3"),
        ("G0 $0", "G0 $0"),
    ],
)
def test_words_of_a_line(text: str, words: str) -> None:
    line = tokenize(text)
    assert line.problem is None
    assert " ".join(map(str, line.words)) == words


@pytest.mark.parametrize(
    ("text", "code", "word", "column"),
    [
        ("1", 1, "1", 1),
        ("G0 =", 1, "=", 4),
        ("X1..2", 1, ".", 4),
        ("#1=5", 1, "#", 1),
        ("X1 é", 1, "é", 4),
        ("G0 /X1", 1, "/", 4),
        ("%G0", 1, "%", 1),
        ("X1*71", 1, "*", 3),
        ("X", 2, "X", 1),
        ("G0 X--1", 2, "X", 4),
        ("G0 Q.", 2, "Q", 4),
        ("G1 X F100", 2, "X", 4),
        ("X1000000000001", 2, "X", 1),
        ("X" + "9" * 40, 2, "X", 1),
        ("$H", 3, "$", 1),
    ],
)
def test_a_problem_names_word_and_column(text: str, code: int, word: str, column: int) -> None:
    problem = tokenize(text, line=7).problem
    assert problem is not None
    assert (problem.code, problem.word, problem.column, problem.line) == (code, word, column, 7)
    assert str(problem).startswith(f"line 7, column {column}: {word}: ")


def test_the_words_before_a_problem_are_returned() -> None:
    assert tokenize("G1 X5 Y").words == (Word("G", 1.0, 1), Word("X", 5.0, 4))


def test_percent_alone_marks_the_ends_of_a_program() -> None:
    assert tokenize(" % (tape)").demarcation
    assert not tokenize("").demarcation


def test_the_first_message_is_for_the_operator() -> None:
    assert tokenize("G0 X1 (msg,  with move) (MSG,second)").message == "with move"
    assert tokenize("(MSG,)").message == ""
    assert tokenize("(message)").message is None


def test_block_delete_skips_lines_with_a_slash() -> None:
    assert tokenize(" /G0 X1", Spelling(block_delete=True)) == LineWords()


@pytest.mark.parametrize("text", ["G0 X1*71", "G0 X1 * 7 1 (sum)"])
def test_checksums_are_ignored_if_the_dialect_allows_them(text: str) -> None:
    line = tokenize(text, Spelling(checksum=True))
    assert [str(word) for word in line.words] == ["G0", "X1"]
    assert line.problem is None


@pytest.mark.parametrize("text", ["G0 X1*", "G0 X1*7x", "*-7"])
def test_a_checksum_is_digits_up_to_the_end(text: str) -> None:
    problem = tokenize(text, Spelling(checksum=True)).problem
    assert problem is not None
    assert problem.code == 1


@pytest.mark.parametrize(("length", "fits"), [(256, True), (257, False)])
def test_the_longest_line_on_the_wire(length: int, fits: bool) -> None:
    line = tokenize("  \t" + "G0 X1".ljust(length), WIRE)
    assert (line.problem is None) == fits
    if line.problem is not None:
        assert line.problem.code == 11


def test_insignificant_digits_are_dropped() -> None:
    assert tokenize("X0." + "1" * 200).words[0].value == pytest.approx(1 / 9)
    assert tokenize("X0." + "1" * 200, WIRE).words[0].value == pytest.approx(1 / 9, rel=1e-7)


def test_single_precision_rounds_like_the_firmware() -> None:
    """10002 · 0.01 · 0.1 in single precision is not the single nearest to 10.002."""
    assert scaled(10002, -3) == 10.002
    assert scaled_single(10002, -3) == pytest.approx(10.002, abs=1e-6)
    assert tokenize("X10.002", WIRE).words[0].value == scaled_single(10002, -3)


@given(st.integers(0, 10**12), st.integers(-22, 0))
def test_numbers_are_the_nearest_to_their_text(digits: int, exponent: int) -> None:
    text = number_text(float(f"{digits}e{exponent}"))
    assert tokenize("X" + text).words[0].value == float(f"{digits}e{exponent}")


# ── never raises; equal results of the fast reader ──────────────────────────────────────────────

GCODE_LIKE = st.text(alphabet="GMXYZNF019.-+ ()/;%*$#\t\r\naxgé=", max_size=60)


@given(st.text(), st.sampled_from(SPELLINGS))
def test_any_text_is_read_without_raising(text: str, spelling: Spelling) -> None:
    tokenize(text, spelling)


def plain(data: bytes, spelling: Spelling) -> list[LineWords]:
    """oracle of tokenize_lines: every line alone, with readable code."""
    lines = plain_lines(data.decode("latin-1"))
    return [tokenize(line, spelling, line=number) for number, line in enumerate(lines, 1)]


def plain_lines(text: str) -> list[str]:
    """oracle of split_lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def check_against_plain(data: bytes, spelling: Spelling) -> None:
    words: ProgramWords = read(data, spelling)
    expected = plain(data, spelling)
    assert len(words) == len(expected)
    for index, line in enumerate(expected):
        part = slice(words.first[index], words.first[index + 1])
        found = [
            Word(chr(letter), value, column)
            for letter, value, column in zip(
                words.letters[part], words.values[part], words.columns[part], strict=True
            )
        ]
        assert tuple(found) == line.words
        problem = line.problem or Problem(0, "")
        assert (words.codes[index], words.places[index]) == (problem.code, problem.column)
    assert [words.line(index) for index in range(len(words))] == expected


@given(GCODE_LIKE, st.sampled_from(SPELLINGS))
def test_programs_are_read_like_single_lines(text: str, spelling: Spelling) -> None:
    check_against_plain(text.encode("latin-1"), spelling)


@given(st.binary(max_size=60), st.sampled_from(SPELLINGS))
def test_any_bytes_are_read_like_single_lines(data: bytes, spelling: Spelling) -> None:
    check_against_plain(data, spelling)


@given(st.binary(max_size=40))
def test_lines_end_with_lf_cr_lf_or_cr(data: bytes) -> None:
    starts, stops = split_lines(np.frombuffer(data, np.uint8))
    lines = [data[start:stop].decode("latin-1") for start, stop in zip(starts, stops, strict=True)]
    assert lines == plain_lines(data.decode("latin-1"))
