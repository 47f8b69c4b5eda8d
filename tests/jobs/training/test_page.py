"""The training page: an exercise is solved in English, and one failed in Vietnamese."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browsers import RunningCell, Screen

from understudy.hmi.texts import Texts
from understudy.jobs.training.command_line import write_cell
from understudy.jobs.training.exercise import said, shipped_exercises

SECONDS = 120.0
FASTER = 20.0


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    folder = tmp_path_factory.mktemp("course")
    return start_cell(str(write_cell(folder, "g60_welding", {})), "--hmi", "--files", str(folder))


def opened(
    open_page: Callable[..., Screen], cell: RunningCell, language: str, exercise: str
) -> Screen:
    """The page, opened by its address alone, with the list of exercises in a language."""
    screen = open_page(cell)
    assert "/training" in screen.page.url
    screen.press(f"language-{language}")
    title = said(shipped_exercises()[exercise].title, language)
    screen.page.get_by_text(title).first.wait_for()
    screen.press(f"start-{exercise}")
    screen.reads("training-title", title)
    return screen


def run_program(screen: Screen, cell: RunningCell) -> None:
    """Drives on, and the program of the robot, by the buttons of the page."""
    screen.press("drives")
    screen.until(lambda: bool(progress(cell)), "the exercise")
    screen.open_tab("cell")
    cell.ask("rate", rate=FASTER)
    screen.press("run-programs")
    screen.open_tab("training")


def progress(cell: RunningCell) -> Any:
    return cell.ask("status")["parts"]["course"]["progress"]


def test_an_exercise_is_solved_on_the_page(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    screen = opened(open_page, cell, "en", "weld_seam")
    assert screen.at("training-certificate").is_hidden()
    screen.page.keyboard.press("h")
    screen.until(lambda: screen.at("training-a-hint").count() == 1, "the hint", timeout=SECONDS)
    assert "90" in screen.text("training-score")
    run_program(screen, cell)
    result = screen.page.locator("[data-mark=result-0]")
    result.wait_for(timeout=1000 * SECONDS)
    assert (result.get_attribute("data-passed"), "Passed." in result.inner_text()) == ("true", True)
    assert "90 points" in result.inner_text()
    screen.page.keyboard.press("c")
    screen.at("trainee").wait_for()
    screen.at("trainee").fill("Ana Silva")
    screen.until(lambda: "Ana Silva" in screen.text("certificate-text"), "the certificate")
    with screen.page.expect_download() as saved:
        screen.press("save-certificate")
    assert saved.value.suggested_filename.startswith("certificate_g60_welding_")
    text = Path(saved.value.path()).read_text()
    assert all(each in text for each in ("Ana Silva", "Weld the seam", "90 points"))
    assert screen.errors == []


def test_an_exercise_is_failed_on_the_page_in_vietnamese(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    cell.ask("rate", rate=1.0)
    texts, exercise = Texts("vi"), shipped_exercises()["weld_stop_in_time"]
    screen = opened(open_page, cell, "vi", "weld_stop_in_time")
    tasks = screen.at("training-tasks").inner_text()
    assert all(said(each.title, "vi") in tasks for each in exercise.tasks)
    for name in ("score", "left", "wrong_commands"):
        assert texts(f"training.{name}") in screen.text("training-running")
    run_program(screen, cell)
    result = screen.page.locator("[data-mark=result-0][data-passed=false]")
    result.wait_for(timeout=1000 * SECONDS)
    words = result.inner_text()
    assert texts("training.reason.failure") in words
    assert said(exercise.fail_if[0].reason, "vi") in words
    notice = screen.text("alarm")
    assert "va chạm" in notice, notice
    assert screen.errors == []
