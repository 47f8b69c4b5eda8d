"""Each flawed program gives exactly its expected violation; sound programs pass."""

from pathlib import Path

import pytest
from tests.offline.validate.cases import header, programs, proved

from understudy.offline.validate.report import CLEARANCE

FLAWED, SOUND = programs("flawed"), programs("sound")
IN_THE_AIR = "the arc burns"
"""Most of the programs weld where nothing is, which is a warning of its own."""


def test_the_number_of_programs() -> None:
    assert len(FLAWED) >= 20
    assert len(SOUND) >= 10


@pytest.mark.parametrize("program", FLAWED, ids=lambda path: path.stem)
def test_the_expected_violation_and_no_other_is_reported(program: Path) -> None:
    report = proved(program)
    found = [f"{each.kind} at {each.line}" for each in report.violations]
    assert found == [header(program, "expect")]
    assert not report.passed
    assert report.violations[0].message.startswith(f"line {report.violations[0].line}")
    assert not [each for each in report.warnings if IN_THE_AIR not in each.message]


@pytest.mark.parametrize("program", SOUND, ids=lambda path: path.stem)
def test_a_sound_program_passes_with_a_proven_clearance(program: Path) -> None:
    report = proved(program)
    assert report.violations == ()
    assert not [each for each in report.warnings if IN_THE_AIR not in each.message]
    assert report.passed
    assert report.least_clearance is not None
    assert report.least_clearance > CLEARANCE
