"""The program page without a browser: its words, its G1, the advice in every language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gcode.blocks import parse
from understudy.gcode.dialect import ARM, GRBLHAL_ARM
from understudy.gcode.words import Problem
from understudy.hmi.pages.log import KINDS, advice
from understudy.hmi.pages.points import figures, straight_to
from understudy.hmi.texts import LANGUAGES, Texts
from understudy.operator.advice import BY_CODE, BY_WORD, OTHERWISE

COORDINATE = st.floats(-9999.0, 9999.0)
SIX = st.lists(COORDINATE, min_size=6, max_size=6)


@pytest.mark.parametrize("sentence", sorted({*BY_CODE.values(), *BY_WORD.values(), OTHERWISE}))
def test_every_advice_of_the_cell_is_translated(sentence: str) -> None:
    assert advice(Texts("en"), sentence) == sentence
    assert advice(Texts("vi"), sentence) != sentence


def test_advice_that_nobody_has_translated_is_told_as_it_came() -> None:
    assert advice(Texts("vi"), "Turn it off and on.") == "Turn it off and on."


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_event_has_a_word(language: str) -> None:
    known = Texts(language).section("log")
    assert set(KINDS) <= set(known)


@given(SIX)
def test_a_point_becomes_a_line_that_can_be_read_again(pose: list[float]) -> None:
    point = {"name": "P1", "pose_mm_deg": pose, "joints_deg": [0.0] * 6}
    for dialect in (ARM, GRBLHAL_ARM):
        block = parse(straight_to(point, dialect.name), dialect, line=1)
        assert not isinstance(block, Problem)


def test_a_line_goes_where_the_point_is_in_the_words_of_its_dialect() -> None:
    point = {
        "pose_mm_deg": [450.0, -100.1234, 350, 180, 0, -0.00001],
        "joints_deg": [1, 2, 3, 4, 5, 6],
    }
    assert straight_to(point, "arm") == "G1 X450 Y-100.123 Z350 A180 B0 C0"
    assert straight_to(point, "grblhal") == "G1 X1 Y2 Z3 A4 B5 C6"


def test_figures_have_no_minus_before_nothing() -> None:
    assert figures([1.0, -0.01, 2, 180, 0, 0]) == "1.0 0.0 2.0  |  180.0 0.0 0.0"
