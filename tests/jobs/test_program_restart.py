"""Start in the middle of a program: modes of the earlier lines, and refused starts."""

import pytest

from understudy.errors import Refused
from understudy.gcode import ARM
from understudy.gcode.program import program_lines
from understudy.jobs.program_run import opening


def before(first: int, *lines: str) -> list[str] | Refused:
    return opening(list(program_lines("\n".join(lines), ARM)), first)


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        (["G1 A10 F600", "G1 A20"], ["F600", "G1"]),
        (["G20 G90", "G1 X10 F10", "G21", "G1 X20"], ["G20 F10", "G21 G90", "G1"]),
        (["G90", "G91", "G90 G55", "G0 A1"], ["G90 G55"]),
        (["M429", "G64", "G93", "G1 A1 F2", "G94 G1 A2 F3"], ["M429 G64 G93", "G1"]),
        (["T2 M6", "G54", "G10 L2 P1 X5", "G1 A3 F9"], ["T2 M6", "G54", "G10 L2 P1 X5"]),
        (["(a remark)", "", "; another", "G0 A1"], []),
    ],
    ids=["feed and motion", "feed in its units", "the last mode", "feed of G93", "stored", "none"],
)
def test_opening_lines(lines: list[str], sent: list[str]) -> None:
    assert before(len(lines), *lines) == sent


def test_the_opening_does_not_switch_arc_gas_or_outputs() -> None:
    assert before(6, "M7", "M3", "M64 P3", "M66 P0 L3 Q1", "G4 P1", "G0 A1") == []


def test_lines_that_move_are_not_sent() -> None:
    assert before(4, "G0 A10", "G28", "G1 A20 F60", "G1 A30") == ["F60", "G1"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["G91", "G1 A1 F60"], "line 2 is relative (G91)"),
        (["G1 X1 F60", "G2 X2 Y2 I1"], "line 2 is an arc"),
        (["G2 X2 Y2 I1 F60", "(remark)", "X3 I1"], "line 3 is an arc"),
        (["G92 X0", "G0 X1"], "line 1: G92 stores the position of the robot"),
        (["G10 L20 P1 X0", "G0 X1"], "line 1: G10 stores the position of the robot"),
        (["G28.1", "G0 X1"], "line 1: G28.1 stores"),
    ],
)
def test_a_start_that_depends_on_the_position_before_is_refused(
    lines: list[str], says: str
) -> None:
    refused = before(len(lines), *lines)
    assert isinstance(refused, Refused)
    assert says in refused.reason
    assert "begin at" in refused.reason


def test_a_start_before_an_absolute_target_is_accepted_despite_later_relative_moves() -> None:
    assert before(2, "G90", "G0 A1", "G91", "G0 A1") == ["G90"]
