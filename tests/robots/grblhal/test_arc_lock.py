"""Lines that can switch the arc on, by their words."""

import pytest

from understudy.robots.grblhal.driver.exchange import can_switch_arc_on


@pytest.mark.parametrize(
    "line",
    [
        "M3",
        "m3",
        "M03S100",
        "G1X1M4",
        "M 3",
        "M3.",
        "M3.0",
        "M64P0",
        "M62 P0",
        "M064P0.0",
        "M64",
        "M[1+2]",
        "M#1",
        "M64P#1",
        "M64P[0]",
        "G0X0M3",
        "M64P00",
    ],
)
def test_lines_with_an_arc(line: str) -> None:
    assert can_switch_arc_on(line)


@pytest.mark.parametrize(
    "line",
    [
        "M5",
        "M30",
        "M33",
        "M65P0",
        "M64P1",
        "M62P10",
        "G3X1Y1I1J0",
        "G1X3.4",
        "M7",
        "M9",
        "M66P0L3Q1",
        "M68E0Q3",
        "T3M6",
        "M43",
        "G54P3",
    ],
)
def test_lines_without(line: str) -> None:
    assert not can_switch_arc_on(line)
