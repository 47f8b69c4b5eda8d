"""HMI Integration: what a new user does first, on the default cell."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browsers import RunningCell, Screen
from tests.hmi.test_program_page import shown

ROBOTS = ("g60", "bench", "kuka")


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    files = tmp_path_factory.mktemp("files")
    return start_cell("default", "--files", str(files))


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell)


def joints(cell: RunningCell) -> list[float]:
    rows = cell.ask("sample", robot="g60", count=1)["rows"]
    return list(rows[-1]["joints_deg"]) if rows else []


def began(cell: RunningCell, robot: str) -> bool:
    return cell.ask("program", robot=robot)["state"] in ("running", "done")


def points(cell: RunningCell) -> list[Any]:
    return list(cell.ask("points", robot="g60")["points"])


def test_run_programs_moves_the_default_cell_and_it_welds(
    screen: Screen, cell: RunningCell
) -> None:
    screen.until(lambda: bool(joints(cell)), "a first reading")
    before = joints(cell)
    cell.ask("rate", rate=10.0)
    screen.press("run-programs")
    screen.until(lambda: all(began(cell, robot) for robot in ROBOTS), "every robot")
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
    screen.open_tab("program")
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


def test_an_example_is_opened_and_run(screen: Screen, cell: RunningCell) -> None:
    cell.ask("load_program", robot="g60", text="", name="")
    screen.until(screen.at("open-example").is_visible, "the hint of an empty program")
    screen.press("open-example")
    screen.at("library").wait_for()
    assert "Two seams on the block" in screen.text("library")
    screen.page.locator('[data-program="joint_tour.gcode"]').click()
    screen.until(lambda: shown(screen)["name"] == "joint_tour.gcode", "the example is shown")
    assert shown(screen)["draft"]
    before = joints(cell)
    screen.page.locator('[data-does-program="run"]').click()
    screen.until(lambda: cell.ask("program", robot="g60")["state"] == "running", "it runs")
    screen.until(lambda: joints(cell) != before, "the arm moves")
    cell.ask("stop_program", robot="g60")
    assert screen.errors == []


def test_a_project_is_saved_and_loaded_again(screen: Screen, cell: RunningCell) -> None:
    screen.until(lambda: not cell.ask("robots")["robots"][0]["moving"], "the arm stands")
    folder = Path(cell.ask("status")["files"]) / "mine"
    with_library(screen, folder, "save-project")
    screen.until(lambda: (folder / "g60/robot.yaml").exists(), "the files")
    saved = points(cell)
    assert saved
    assert (folder / "g60/programs/joint_tour.gcode").exists()
    cell.ask("delete_point", robot="g60", name="P1")
    cell.ask("load_program", robot="g60", text="G4 P1\n", name="other.gcode")
    with_library(screen, folder, "load-project")
    screen.until(lambda: bool(points(cell)), "the points")
    for key in ("pose_mm_deg", "joints_deg"):
        assert points(cell)[0][key] == pytest.approx(saved[0][key], abs=1e-6)
    screen.until(lambda: shown(screen)["name"] == "joint_tour.gcode", "the program")

    with_library(screen, folder, "save-program")
    screen.until(lambda: bool(own_programs(cell)), "a program of one's own")
    assert own_programs(cell) == ["joint_tour.gcode"]
    assert screen.errors == []


def with_library(screen: Screen, folder: Path, action: str) -> None:
    screen.page.locator('[data-key="l"]').click()
    screen.at("project-folder").fill(str(folder))
    screen.press(action)
    screen.at("library").wait_for(state="detached")


def own_programs(cell: RunningCell) -> list[str]:
    listed = cell.ask("programs", robot="g60")["programs"]
    return [row["name"] for row in listed if row["source"] == "project"]


def test_a_typed_line_is_run_and_its_answer_shown(screen: Screen, cell: RunningCell) -> None:
    cell.ask("reset")
    cell.ask("start")
    cell.ask("enable", robot="g60")
    screen.press("tab-mdi")
    field = screen.page.locator('input[data-mark="mdi-line"]')
    field.fill("G1 A7 B0 C0 U0 V0 W0 F6000")
    field.press("Enter")
    screen.until(lambda: abs(joints(cell)[0] - 7.0) < 1e-6, "the first joint")
    rows = screen.page.locator('[data-mark="mdi-history"] button')
    screen.until(lambda: rows.first.get_attribute("data-state") == "done", "the answer")
    field.fill("G1 A")
    screen.press("mdi-send")
    screen.until(lambda: rows.first.get_attribute("data-state") == "refused", "a refusal")
    assert "column" in rows.first.inner_text()
    field.press("ArrowUp")
    field.press("ArrowUp")
    screen.until(lambda: field.input_value().startswith("G1 A7"), "the line before")

    cell.ask("load_program", robot="g60", text="G4 P600\n", name="long.gcode")
    cell.ask("run_program", robot="g60")
    field.press("Enter")
    screen.until(lambda: "a program is running on g60" in rows.first.inner_text(), "refused")
    cell.ask("stop_program", robot="g60")
    assert screen.errors == []
