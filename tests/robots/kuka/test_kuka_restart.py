"""Start in the middle of a KUKA's program: frames, speed, place and weld job before a line."""

import pytest

from understudy.errors import Refused
from understudy.ports.program import Switched
from understudy.robots.kuka.operator import RecordLanguage

LANGUAGE = RecordLanguage(tool=1, base=5)


def opening(*lines: str) -> list[str] | Refused:
    """What is sent before the last line."""
    return LANGUAGE.opening(list(LANGUAGE.lines("\n".join(lines))), len(lines))


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        (["G1 X1"], []),
        (["T2", "G55", "G1 X1 F20"], ["T2", "G55", "G1 F20"]),
        (["T2", "G55", "G28"], ["T1", "G58"]),
        (["G1 F20", "T4 F30"], ["T4", "G1 F30"]),
    ],
)
def test_frames_and_speed_are_those_of_the_line(before: list[str], sent: list[str]) -> None:
    assert opening(*before, "G1 X5") == sent


def test_the_weld_job_is_asked_for_and_restored_at_the_place_of_the_line() -> None:
    lines = list(LANGUAGE.lines("G1 X10 Y20 Z30 F20\nG1 Y40 E3\nG1 Y60\nG1 Z50 E0\nG1 X0"))
    assert LANGUAGE.process_before(lines, 4) == (Switched("E3", 2),)
    assert LANGUAGE.restoring(lines, 4) == ["G1 X10 Y60 Z30", "G1 E3"]
    assert LANGUAGE.process_before(lines, 2) == LANGUAGE.process_before(lines, 5) == ()


def test_an_unknown_place_is_refused() -> None:
    lines = list(LANGUAGE.lines("G1 X10 Y20 Z30 F20\nT2\nG1 Y40 E3\nG1 Y60"))
    refused = LANGUAGE.restoring(lines, 4)
    assert isinstance(refused, Refused)
    assert "X, Y and Z" in refused.reason
