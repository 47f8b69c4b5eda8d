"""Hints: programs of other robots, metres in place of millimetres, radians in place of degrees."""

import pytest

from understudy.app.validate import validate_text

METRES, RADIANS = "are these metres?", "look like radians"
POSE = "G21 G90 G94\nG0 X{} Y{} Z{} A{} B0 C0\nG1 Z{} F3000\n"


def hints(text: str, cell: str = "g60_welding") -> list[str]:
    return [note for note in validate_text(text, cell).notes if note.startswith("hint: ")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DEF weld()\nPTP {A1 0, A2 -90}\nLIN {X 450}\nEND\n", "this is KRL"),
        ("&ACCESS RVP\n" + "  lin P1 vel=0.1\n" * 20, "this is KRL"),
        ("MOVE_ABS 100,200,150,0,0,90\nHOME\n", "--cell text_robot"),
        (POSE.format(0.45, -0.1, 0.45, 180, 0.32), METRES),
        (POSE.format(450, -100, 450, 3.1416, 420), RADIANS),
        (POSE.format(450, -100, 450, -1.5708, 420), RADIANS),
        ("G1 A1.57 B-0.5 F3000\n", RADIANS),
    ],
)
def test_a_program_of_another_kind_or_unit_gets_a_hint(text: str, says: str) -> None:
    (hint,) = hints(text)
    assert says in hint


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        (POSE.format(450, -100, 450, 180, 420), "g60_welding"),
        (POSE.format(450, -100, 450, 1.5, 420), "g60_welding"),
        ("G21 G91 G94\nG1 X0.5 Y0.5 Z-0.5 F3000\n", "g60_welding"),
        ("G20 G90 G94\nG0 X0.5 Y0.5 Z0.5\n", "g60_welding"),
        ("G21 G90\nG0 X0.5 Y0.25 Z900\n", "g60_welding"),
        ("G21 G90\nG0 X0.5\nG1 Y0.25 Z-99 F300\n", "grblhal_6axis"),
        ("G1 X1 Y\nthis is nothing\n", "g60_welding"),
        ("MOVE_ABS 0.1,0.2,0.3,0,0,0\n", "text_robot"),
    ],
)
def test_other_programs_get_none(text: str, cell: str) -> None:
    assert hints(text, cell) == []
