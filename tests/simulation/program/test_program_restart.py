"""Start in the middle of a program: modes of the earlier lines, and refused starts."""

import pytest

from understudy.errors import Refused
from understudy.gcode import ARM
from understudy.gcode.program import program_lines
from understudy.ports.program import Switched
from understudy.robots.grblhal.language import GcodeLanguage

LANGUAGE = GcodeLanguage(ARM)


def before(first: int, *lines: str) -> list[str] | Refused:
    return LANGUAGE.opening(list(program_lines("\n".join(lines), ARM)), first)


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


# ── what earlier lines have switched on ──

SEAM = (
    "G21 G90",
    "G0 X450 Y-100 Z450 A180 B0 C0",
    "M7",
    "G4 P0.5",
    "G1 Z350 F6000",
    "M68 E0 Q4",
    "M3 S50",
    "M66 P0 L3 Q7",
    "G1 Y0 F600",
    "G4 P2",
    "G1 Y100",
    "M5",
    "M9",
    "G0 Z450",
)


def switched(first: int, *lines: str) -> tuple[Switched, ...]:
    return LANGUAGE.process_before(list(program_lines("\n".join(lines), ARM)), first)


def restored(first: int, *lines: str) -> list[str] | Refused:
    return LANGUAGE.restoring(list(program_lines("\n".join(lines), ARM)), first)


def test_what_is_on_at_a_line() -> None:
    arc, gas = Switched("M3", 7), Switched("M7", 3)
    assert switched(3, *SEAM) == ()
    assert switched(5, *SEAM) == (gas,)
    assert switched(11, *SEAM) == (gas, arc)
    assert switched(13, *SEAM) == (gas,)
    assert switched(14, *SEAM) == ()
    assert switched(4, "M3", "M8", "M2", "G0 A1") == ()
    assert switched(4, "M64 P3", "M62 P5", "M65 P3", "G0 A1") == (Switched("M62 P5", 2, 5),)


def test_the_process_is_restored_at_the_start_of_the_line_with_its_waits() -> None:
    """Not the dwell of line 10: it was no wait for the arc."""
    assert restored(11, *SEAM) == [
        "G1 X450 Y0 Z350 A180 B0 C0",
        "M7",
        "G4 P0.5",
        "M68 E0 Q4",
        "M3 S50",
        "M66 P0 L3 Q7",
        "G1",
    ]


def test_a_switch_on_a_line_that_moves_is_restored_without_the_move() -> None:
    lines = ("G90", "G1 X1 Y2 Z3 F60 M3 S20", "G1 X2", "G1 X3")
    assert restored(4, *lines) == ["G1 X2 Y2 Z3", "M3 S20", "G1"]
    assert restored(3, *lines[1:]) == ["G1 X2 Y2 Z3", "M3 S20", "G1"], "G90 is the start"


@pytest.mark.parametrize(
    "lines",
    [
        ("M3", "G28", "G1 Y5 F60", "G1 X10"),
        ("G1 X1 Y1 F60", "M3", "G91", "G1 X1", "G90", "G1 X1 Y9"),
        ("G1 X1 Y1 Z1 F60", "M3", "G55", "G1 X9"),
        ("G1 X1 Y1 Z1 F60", "M3", "G1 A1 U3", "G1 X9"),
    ],
    ids=["home", "relative", "another frame", "joints"],
)
def test_without_a_known_start_the_process_is_not_restored(lines: tuple[str, ...]) -> None:
    found = restored(len(lines), *lines)
    assert isinstance(found, Refused)
    assert "begin at an earlier line" in found.reason
