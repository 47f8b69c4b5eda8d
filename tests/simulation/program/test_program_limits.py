"""The limits of a program: counted part by part, so that no step takes long."""

import pytest

from understudy.errors import Refused
from understudy.ports.program import all_read
from understudy.simulation.program import run as program_lines
from understudy.simulation.program.run import too_large


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("at_once", [1, 2, 3, 7])
def test_line_ends_are_counted_once_wherever_a_part_ends(
    line_end: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_lines, "COUNTED_AT_ONCE", at_once)
    monkeypatch.setattr(program_lines, "MOST_LINES", 5)
    assert all_read(too_large(f"X1{line_end}" * 5)) is None
    refused = all_read(too_large(f"X1{line_end}" * 6))
    assert isinstance(refused, Refused)
    assert refused.reason == "the program has 6 lines, more than 5"
