"""HMI Integration: what a new user does first, on the default cell."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.hmi.conftest import RunningCell, Screen
from tests.hmi.test_program_page import shown


@pytest.fixture(scope="module")
def cell(start_cell: Callable[..., RunningCell]) -> RunningCell:
    return start_cell("default")


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell)


def joints(cell: RunningCell) -> list[float]:
    rows = cell.ask("sample", robot="g60", count=1)["rows"]
    return list(rows[-1]["joints_deg"]) if rows else []


def points(cell: RunningCell) -> list[Any]:
    return list(cell.ask("points", robot="g60")["points"])


def test_play_moves_the_default_cell_and_it_welds(screen: Screen, cell: RunningCell) -> None:
    screen.until(lambda: bool(joints(cell)), "a first reading")
    before = joints(cell)
    cell.ask("rate", rate=10.0)
    screen.press("play")
    screen.until(lambda: joints(cell) != before, "the arm moves")
    screen.until(lambda: bool(screen.scene["trail"]), "the arc leaves a trail")
    screen.until(lambda: cell.ask("program", robot="g60")["state"] == "done", "the end")
    assert cell.ask("metrics")["collisions_detected"] == 0
    assert screen.errors == []


def test_a_deleted_point_comes_back_and_coordinates_are_typed(
    screen: Screen, cell: RunningCell
) -> None:
    cell.ask("rate", rate=1.0)
    cell.ask("teach_point", robot="g60", name="P1")
    screen.page.locator('[data-tab="program"]').click()
    screen.page.locator("#program-page").wait_for()
    screen.built()
    screen.press("tab-points")
    screen.page.locator('[data-point="P1"]').click()
    taught = points(cell)
    screen.press("point-delete")
    screen.until(lambda: not points(cell), "deleted")
    screen.page.locator(".q-notification").get_by_text("Undo").click()
    screen.until(lambda: points(cell) == taught, "it is back")

    screen.page.locator('[data-point="P1"]').click()
    screen.press("point-edit")
    field = screen.page.locator('input[data-mark="coordinate-2"]')
    height = round(taught[0]["pose_mm_deg"][2] - 60.0, 1)
    field.fill(str(height))
    screen.press("coordinates-apply")
    screen.until(lambda: points(cell)[0]["pose_mm_deg"][2] == height, "the typed height")
    screen.press("point-undo")
    screen.until(lambda: points(cell) == taught, "undone by the button")
    assert shown(screen)["name"] == "weld_block.gcode"
    assert screen.errors == []
