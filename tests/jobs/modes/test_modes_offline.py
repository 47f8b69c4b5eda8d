"""Validation and cycle time in a mode of operation: as the running cell does it."""

import pytest
from tests.jobs.modes.cells import CELL, ModeCell

from understudy.app.validate import Options, cycle_time, validate_text
from understudy.config import CellConfig
from understudy.config.cell import read_config
from understudy.errors import ConfigError

WELD = "M7\nM3\nG1 X520 F600\nM5\nM9\nM2\n"
MOVE = "G0 A40\nG1 Z600 F60000\nM2\n"


def config(mode: str) -> CellConfig:
    return read_config(CELL.format(modes=f"{{start: {mode}}}", touches="false"), "cell.yaml")


def messages(text: str, cell: CellConfig, mode: str = "") -> list[str]:
    report = validate_text(text, cell, options=Options(mode_of_operation=mode))
    return [found.message for found in report.violations]


@pytest.mark.parametrize("mode", ["PICKPLACE", "SCAN_TO_PATH", "MANUAL"])
@pytest.mark.parametrize("line", ["M3", "M4", "M64 P0"])
def test_an_arc_outside_welding_is_a_violation(mode: str, line: str) -> None:
    found = messages(WELD.replace("M3", line), config(mode))
    assert any(f"the arc is locked in mode {mode}" in message for message in found)
    assert not any("locked" in message for message in messages(WELD, config(mode), "WELDING"))


def test_the_mode_of_the_command_goes_over_that_of_the_cell() -> None:
    assert not any("locked" in message for message in messages(WELD, config("WELDING")))
    found = messages(WELD, config("WELDING"), "pickplace")
    assert any("locked in mode PICKPLACE" in message for message in found)
    with pytest.raises(ConfigError, match="did you mean"):
        messages(WELD, config("WELDING"), "PICKPLAC")


def test_the_cycle_time_in_manual_is_that_of_the_running_cell() -> None:
    fast, slow = (cycle_time(MOVE, config(mode)).total_s for mode in ("WELDING", "MANUAL"))
    given = cycle_time(MOVE, config("WELDING"), mode_of_operation="MANUAL").total_s
    assert slow == given
    assert slow > 1.3 * fast
    cell = ModeCell("{start: MANUAL}")
    began = cell.now
    cell.lines(*MOVE.splitlines()[:2])
    assert (cell.now - began) / 1e9 == pytest.approx(slow, abs=0.01)
