"""The program page without a browser: its texts, its G1, the advice in every language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.devices.gripper.controller import ADVICE as GRIPPER_ADVICE
from understudy.devices.tool_changer.lock import ADVICE as LOCK_ADVICE
from understudy.devices.welder import ADVICE as WELDER_ADVICE
from understudy.gcode.blocks import Problem, parse
from understudy.gcode.dialect import ARM, GRBLHAL_ARM
from understudy.hmi.pages.log.page import KINDS
from understudy.hmi.pages.program.page import figures, straight_to
from understudy.hmi.texts import LANGUAGES, Texts
from understudy.operator.events import ADVICE_BY_CODE, ADVICE_BY_WORD, OTHER_ADVICE
from understudy.robots.grblhal.language import TO_JOINTS, TO_POSE, GcodeLanguage
from understudy.robots.kuka.operator import RecordLanguage
from understudy.robots.text_robot.operator import MoveLanguage

COORDINATE = st.floats(-9999.0, 9999.0)
SIX = st.lists(COORDINATE, min_size=6, max_size=6)


OF_THE_CELL = (ADVICE_BY_CODE, ADVICE_BY_WORD, WELDER_ADVICE, GRIPPER_ADVICE, LOCK_ADVICE)


@pytest.mark.parametrize(
    "sentence", sorted({OTHER_ADVICE, *(each for table in OF_THE_CELL for each in table.values())})
)
def test_every_advice_of_the_cell_is_translated(sentence: str) -> None:
    assert Texts("en").translated("advice", sentence) == sentence
    assert Texts("vi").translated("advice", sentence) != sentence


def test_advice_without_a_translation_stays_english() -> None:
    advice = "Turn it off and on."
    assert Texts("vi").translated("advice", advice) == advice


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_event_has_a_text(language: str) -> None:
    known = Texts(language).section("log")
    assert set(KINDS) <= set(known)


@given(SIX)
def test_a_point_becomes_a_valid_line(pose: list[float]) -> None:
    point = {"name": "P1", "pose_mm_deg": pose, "joints_deg": [0.0] * 6}
    for dialect in (ARM, GRBLHAL_ARM):
        block = parse(straight_to(point, GcodeLanguage(dialect).target_line), dialect, line=1)
        assert not isinstance(block, Problem)


def test_a_line_has_the_pose_or_the_joints_of_the_point() -> None:
    point = {
        "pose_mm_deg": [450.0, -100.1234, 350, 180, 0, -0.00001],
        "joints_deg": [1, 2, 3, 4, 5, 6],
    }
    assert straight_to(point, TO_POSE) == "G1 X450 Y-100.123 Z350 A180 B0 C0"
    assert straight_to(point, TO_JOINTS) == "G1 X1 Y2 Z3 A4 B5 C6"
    kuka = RecordLanguage(1, 1).target_line
    assert straight_to(point, kuka) == "G1 X450 Y-100.123 Z350 A0 B0 C180"
    assert straight_to(point, MoveLanguage.target_line) == "MOVE_ABS 450,-100.123,350,180,0,0"


def test_figures_have_no_negative_zero() -> None:
    assert figures([1.0, -0.01, 2, 180, 0, 0]) == "1.0 0.0 2.0  |  180.0 0.0 0.0"
