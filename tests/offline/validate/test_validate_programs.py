"""Every planted flaw is found, on its line, by its name, and nothing else; sound programs pass."""

from pathlib import Path

import pytest
from tests.offline.validate.cases import header, programs, proved

from understudy.offline.validate import CLEARANCE

FLAWED, SOUND = programs("flawed"), programs("sound")


def test_there_are_enough_of_them() -> None:
    assert len(FLAWED) >= 20
    assert len(SOUND) >= 10


@pytest.mark.parametrize("program", FLAWED, ids=lambda path: path.stem)
def test_the_flaw_is_found_at_its_line_and_nothing_else(program: Path) -> None:
    report = proved(program)
    found = [f"{each.kind} at {each.line}" for each in report.violations]
    assert found == [header(program, "expect")]
    assert not report.passed
    assert report.violations[0].message.startswith(f"line {report.violations[0].line}")
    assert not report.warnings


@pytest.mark.parametrize("program", SOUND, ids=lambda path: path.stem)
def test_a_sound_program_passes_with_a_proven_clearance(program: Path) -> None:
    report = proved(program)
    assert report.violations == ()
    assert report.warnings == ()
    assert report.passed
    assert report.least_clearance is not None
    assert report.least_clearance > CLEARANCE
