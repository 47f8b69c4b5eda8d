"""The page of the welding cell, for tests that do not start a cell of their own."""

import pytest
from tests.browsers import RunningCell, Screen, WeldingCell


@pytest.fixture(scope="module")
def cell(welding: WeldingCell) -> RunningCell:
    return welding


@pytest.fixture(scope="module")
def opened(cell: RunningCell, welding_screen: Screen) -> Screen:
    """One page for all tests: several open pages take each other's processor time."""
    welding_screen.open(cell.url)
    return welding_screen
