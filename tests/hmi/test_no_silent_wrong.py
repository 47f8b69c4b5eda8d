"""What the page must not hide: a start inside a seam without arc, a collision, paused time, a
connection that is not there, drives that are off."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.hmi.conftest import RunningCell, Screen

SEAM = """\
G21 G90
G0 X450 Y-100 Z450 A180 B0 C0
M7
G1 Z350 F6000
M3
G1 Y0 F3000
G1 Y100
M5
M9
G0 Z450
"""
SEAM_LINE = 7


@pytest.fixture(scope="module")
def cell(start_cell: Callable[[str], RunningCell]) -> RunningCell:
    return start_cell("g60_welding")


@pytest.fixture(scope="module")
def opened(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell, "/program")


@pytest.fixture
def screen(opened: Screen, cell: RunningCell) -> Iterator[Screen]:
    for command in ("emergency_stop", "reset", "start", "clear_collisions"):
        cell.ask(command)
    cell.ask("rate", rate=1.0)
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0, 0, 37, 0, 53, 0])
    cell.ask("enable", robot="g60")
    yield opened
    assert opened.errors == []


def part(cell: RunningCell, name: str) -> Any:
    return cell.ask("status")["parts"][name]


# ── a start inside a seam ──


@pytest.fixture
def in_the_seam(screen: Screen, cell: RunningCell) -> Screen:
    """The cursor in the second line of a seam that does not run."""
    cell.ask("load_program", robot="g60", text=SEAM, name="seam")
    text = "window.program.report().text"
    screen.until(lambda: bool(screen.page.evaluate(text) == SEAM), "the program")
    screen.page.locator(".cm-line").nth(SEAM_LINE - 1).click()
    screen.page.locator('[data-does-program="runFrom"]').click()
    return screen


def answer(screen: Screen, choice: str) -> None:
    screen.at("restore-process").locator(f'[data-answer="{choice}"]').click()


def test_a_start_inside_a_seam_asks_and_restores_gas_and_arc(
    in_the_seam: Screen, cell: RunningCell
) -> None:
    asked = in_the_seam.text("restore-process")
    assert "Switch on again: gas (M7, line 3), arc (M3, line 5)?" in asked
    assert part(cell, "g60.program")["state"] == "idle"
    before = part(cell, "g60.welder")["total_weld_length_mm"]
    cell.ask("rate", rate=10.0)
    answer(in_the_seam, "restore")
    in_the_seam.until(lambda: part(cell, "g60.program")["state"] == "done", "the end")
    welded = part(cell, "g60.welder")["total_weld_length_mm"] - before
    assert welded == pytest.approx(100.0, abs=1.0)


def test_run_without_is_a_warning_on_the_page(in_the_seam: Screen, cell: RunningCell) -> None:
    before = part(cell, "g60.welder")["total_weld_length_mm"]
    cell.ask("rate", rate=0.5)
    answer(in_the_seam, "leave")
    in_the_seam.reads("run-state", "runs without M7, M3")
    cell.ask("rate", rate=10.0)
    in_the_seam.until(lambda: part(cell, "g60.program")["state"] == "done", "the end")
    assert part(cell, "g60.welder")["total_weld_length_mm"] == before


def test_do_not_start_starts_nothing(in_the_seam: Screen, cell: RunningCell) -> None:
    answer(in_the_seam, "")
    in_the_seam.until(lambda: in_the_seam.at("restore-process").count() == 0, "no question")
    assert part(cell, "g60.program")["state"] == "idle"
