"""The calibration page: from an empty set to a saved matrix, by itself and by hand.

Time of the cell advances only when a test says so."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.browsers import PageServer, Screen, english
from tests.hmi.test_parts_on_page import _At
from tests.jobs.hand_eye.bench import TRUE_CAMERA
from tests.jobs.pick_place.test_page import no_dialog

from understudy.app.stand_in import StandIn
from understudy.hmi.texts import dictionary
from understudy.jobs.hand_eye.config import Method
from understudy.jobs.hand_eye.page.page import METHODS
from understudy.jobs.hand_eye.state import State
from understudy.units import MM
from understudy.vision.config import read_calibration

SIZES = ({"width": 1024, "height": 768}, {"width": 1366, "height": 768})
LARGE = {"width": 3840, "height": 2160}
POSES = 10
PARTS = (".u-calib-eye", ".u-calib-scene", ".u-calib-joints")
BUTTONS = "#calibration-page .u-calib-buttons .u-button"
OUTSIDE = f"""() => [...document.querySelectorAll("{BUTTONS}")]
  .filter((element) => element.checkVisibility())
  .filter((element) => {{
    const {{ left, right, top, bottom }} = element.getBoundingClientRect();
    const cut = element.scrollWidth > element.clientWidth + 1;
    return cut || left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
  }}).map((element) => element.textContent)"""
"""Buttons that are cut off, or not on the screen."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calibration")


@pytest.fixture(scope="module")
def cell(folder: Path) -> Iterator[StandIn]:
    with StandIn("calibration", hmi=True, files=folder) as stand_in:
        stand_in.do("enable", robot="g60")
        stand_in.forward(0.1)
        yield stand_in


@pytest.fixture(scope="module")
def screen(page_process: PageServer, open_page: Callable[..., Screen]) -> Screen:
    return open_page(_At(page_process.url), "/calibration")


def report(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.calibration.report()")
    return found


def rows(screen: Screen) -> int:
    return int(screen.page.locator("[data-mark=poses] tbody tr").count())


def forward_until(cell: StandIn, holds: Callable[[dict[str, Any]], bool]) -> None:
    for _ in range(400):
        if holds(cell.do("hand_eye_status")):
            return
        cell.forward(0.5)
    raise AssertionError(cell.do("hand_eye_status"))


def at_rest(cell: StandIn) -> None:
    forward_until(cell, lambda job: not job["running"])


def refused(screen: Screen, reason: str) -> None:
    screen.page.locator(".q-notification", has_text=reason).first.wait_for()


def begin(screen: Screen, cell: StandIn) -> None:
    """Starts the automatic run on the page."""
    screen.at("calib-start").wait_for()  # until then the key cancels
    screen.page.keyboard.press("a")
    screen.at("auto-poses").fill(str(POSES))
    screen.press("auto-begin")
    screen.until(lambda: cell.do("hand_eye_status")["running"], "a run")
    no_dialog(screen)


def test_an_empty_set_says_what_to_do(screen: Screen, cell: StandIn) -> None:
    screen.reads("pose-count", "Poses captured: 0/15")
    screen.reads("reprojection", "-- mm")
    screen.reads("coverage-advice", "Missing: turn the flange further about r+x, r-x")
    screen.reads("calib-advice", "Move the robot until its camera sees the target")
    screen.until(lambda: len(report(screen)["joints"]) == 6, "joints")
    assert screen.page.locator(".u-missing-turn").count() == 6
    screen.press("calib-compute")
    refused(screen, "at least 10 are needed")
    screen.press("calib-delete-last")
    refused(screen, "there is no pose to delete")
    screen.press("calib-validate")
    refused(screen, "there is no result yet: press Compute first")


def test_the_scene_shows_where_robot_and_target_are(screen: Screen) -> None:
    assert screen.scene["robots"]["g60"]["shown"]
    assert screen.scene["cameras"]["g60"] is not None, "its view"
    assert screen.page.locator("#scene canvas").bounding_box()["height"] > 150


@pytest.mark.parametrize("wrong", ["", "12.5", "-1", "3", "101", "1000000"])
def test_a_wrong_number_of_poses_is_said_at_its_field(
    screen: Screen, cell: StandIn, wrong: str
) -> None:
    screen.press("calib-start")
    screen.at("auto-poses").fill(wrong)
    screen.press("auto-begin")
    said = screen.page.locator(".u-calib-dialog", has_text="a whole number from 10 to 100")
    said.wait_for()
    assert not cell.do("hand_eye_status")["running"]
    screen.page.locator(".u-calib-dialog").get_by_text("Close").click()
    no_dialog(screen)


def test_automatic_run_cancel_and_saved_matrix(screen: Screen, cell: StandIn, folder: Path) -> None:
    begin(screen, cell)
    forward_until(cell, lambda job: job["captured"] >= 1)
    screen.until(lambda: rows(screen) >= 1, "the first pose")
    screen.until(lambda: (report(screen)["view"] or {}).get("found") is True, "the target")
    screen.reads("detected", "Detected: ✓")
    assert (
        screen.page.locator(".u-calib-target circle").count() == report(screen)["view"]["corners"]
    )
    screen.press("calib-cancel")
    screen.until(lambda: not cell.do("hand_eye_status")["running"], "the end of the run")
    cell.forward(2.0)
    begin(screen, cell)
    at_rest(cell)
    screen.reads("pose-count", f"Poses captured: {POSES}/{POSES}")
    screen.until(lambda: report(screen)["steps"]["next"] is None, "all steps done")
    screen.until(lambda: screen.page.locator(".u-calib-bar").count() == POSES, "the plot")
    screen.reads("calib-advice", "All checks passed. Save")
    screen.reads("coverage-advice", "All directions are covered")
    assert screen.page.locator("[data-mark=poses] td", has_text=" mm").count() == POSES
    screen.press("calib-save")
    screen.press("do-save")
    screen.page.locator(".q-notification", has_text="Saved: ").first.wait_for()
    no_dialog(screen)
    text = (folder / "hand_eye_calib.yaml").read_text()
    found = np.array(read_calibration(text, "hand_eye_calib.yaml").matrix)
    assert np.abs(found[:3, 3] * MM - TRUE_CAMERA[:3, 3]).max() < 0.3 * MM


def test_a_file_that_exists_is_replaced_only_after_a_question(
    screen: Screen, cell: StandIn, folder: Path
) -> None:
    (folder / "older.yaml").write_text("hand_eye_calibration: older\n")
    screen.press("calib-save")
    screen.at("save-name").fill("older.yaml")
    screen.press("do-save")
    screen.reads("save-exists", "older.yaml exists already. Replace it?")
    screen.reads("do-save", "Replace")
    screen.at("save-name").fill("other.yaml")
    screen.reads("do-save", "Save")
    assert (folder / "older.yaml").read_text() == "hand_eye_calibration: older\n"
    screen.at("save-name").fill("older.yaml")
    screen.press("do-save")
    screen.reads("do-save", "Replace")
    screen.press("do-save")
    no_dialog(screen)
    assert read_calibration((folder / "older.yaml").read_text(), "older.yaml").matrix
    assert not (folder / "other.yaml").exists()


BOARD = {
    "name": "board", "type": "box", "dimensions_mm": [210, 150, 6],
    "board": {"type": "charuco", "columns": 7, "rows": 5, "square_mm": 30},
}  # fmt: skip


def test_poses_that_change_while_another_tab_is_open_are_shown_afterwards(
    screen: Screen, cell: StandIn
) -> None:
    screen.press("tab-jog")
    screen.page.keyboard.press("l")
    screen.until(lambda: cell.do("hand_eye_status")["captured"] == POSES - 1, "one pose less")
    screen.press("tab-camera")
    screen.page.keyboard.press("c")
    screen.until(lambda: _settled(cell)["captured"] == POSES, "the pose again")
    screen.page.keyboard.press("m")
    screen.reads("calib-counts", "checks passed 3/3")
    screen.press("tab-poses")
    screen.reads("pose-count", f"Poses captured: {POSES}/")
    screen.until(lambda: rows(screen) == POSES, "all rows")
    residuals = [f"{each['residual_mm']:.3f}" for each in cell.do("hand_eye_status")["poses"]]
    table = screen.page.locator("[data-mark=poses] tbody tr").all_inner_texts()
    assert [value in row for value, row in zip(residuals, table, strict=True)] == [True] * POSES
    screen.until(lambda: screen.page.locator(".u-calib-bar").count() == POSES, "the plot")
    assert not screen.errors


def test_by_hand_delete_compute_validate_capture(screen: Screen, cell: StandIn) -> None:
    keys = screen.page.keyboard
    keys.press("l")
    screen.reads("pose-count", f"Poses captured: {POSES - 1}/")
    screen.reads("reprojection", "-- mm")  # the result has gone with the pose
    screen.until(lambda: rows(screen) == POSES - 1, "one row less")
    keys.press("c")
    screen.until(lambda: _settled(cell)["captured"] == POSES, "the pose again")
    screen.until(lambda: rows(screen) == POSES, "its row")
    keys.press("c")
    screen.until(lambda: "where it was" in _settled(cell)["error"], "a pose that is there already")
    screen.reads("calib-advice", "where it was")
    keys.press("m")
    screen.reads("calib-counts", "checks passed 3/3")  # those of the automatic run
    keys.press("v")
    screen.until(lambda: len(_settled(cell)["checked"]) == 4, "one more check")
    screen.reads("calib-counts", "checks passed 4/4")
    cell.do("add_object", object=BOARD | {"position_mm": [523, 0, 53]})  # somebody has moved it
    keys.press("v")
    screen.until(lambda: _settled(cell)["state"] == "CHECK_FAILED", "a check that fails")
    screen.reads("calib-counts", "checks passed 4/5")
    screen.reads("calib-state", "Check failed")
    screen.reads("calib-advice", "the target may have moved")
    screen.press("calib-save")
    screen.reads("save-failed", "A check of this result has failed")
    screen.at("save-name").fill("failed.yaml")
    screen.press("do-save")
    screen.page.locator(".q-notification", has_text="Saved: ").first.wait_for()
    no_dialog(screen)
    keys.press("z")
    screen.press("do-reset")
    no_dialog(screen)
    screen.reads("pose-count", "Poses captured: 0/")
    assert not screen.errors


def _settled(cell: StandIn) -> dict[str, Any]:
    """The status a little later."""
    cell.forward(0.2)
    status: dict[str, Any] = cell.do("hand_eye_status")
    return status


@pytest.mark.parametrize("width", [820, 390])
def test_on_a_tablet_upright_and_a_phone_the_scene_is_below_the_picture(
    screen: Screen, width: int
) -> None:
    size = screen.page.viewport_size
    screen.page.set_viewport_size({"width": width, "height": 1180})
    parts = [screen.page.locator(f"#calibration-page {each}") for each in PARTS]
    picture, scene, joints = (part.bounding_box() for part in parts)
    assert 0 <= scene["y"] - picture["y"] - picture["height"] <= 12
    assert 0 <= joints["y"] - scene["y"] - scene["height"] <= 12
    assert scene["height"] > 200
    screen.page.set_viewport_size(size)


def test_depth_and_the_settings_of_the_camera(screen: Screen, cell: StandIn) -> None:
    def view() -> dict[str, Any]:
        return report(screen)["view"] or {}

    screen.page.keyboard.press("t")
    screen.until(lambda: "found" in view() and view()["found"] is None, "the depth image")
    screen.reads("not-detected", " mm")
    screen.page.keyboard.press("t")
    screen.until(lambda: view().get("found") is True, "the target")
    screen.press("tab-camera")
    screen.reads("detectors", "markers")
    screen.page.locator('[data-mark="eye-exposure_ms"]').fill("0.5")
    screen.until(lambda: view().get("found") is False, "a picture that is too dark")
    screen.reads("detected", "Detected: ✗")
    screen.page.locator('[data-mark="eye-exposure_ms"]').fill("10")
    screen.until(lambda: view().get("found") is True, "the target again")
    screen.press("tab-poses")


@pytest.mark.soak
def test_the_page_fits_small_and_large_screens_in_both_languages(
    screen: Screen, page_process: PageServer
) -> None:
    page = screen.page
    for language in ("vi", "en"):
        page.context.add_cookies([{"name": "language", "value": language, "url": page_process.url}])
        page.reload()
        screen.built()
        for size in (*SIZES, LARGE):
            page.set_viewport_size(size)
            assert page.evaluate(OUTSIDE) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_texts_are_those_of_the_job() -> None:
    texts = dictionary()
    assert get_args(Method) == METHODS
    needed = [f"calibration.states.{state}" for state in get_args(State)]
    needed += [f"calibration.methods.{method}" for method in METHODS]
    assert set(needed) <= set(texts)


def test_no_english_is_left_on_the_page_in_vietnamese(
    page_process: PageServer, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(_At(page_process.url), "/calibration")
    screen.press("language-vi")
    screen.page.wait_for_function("document.documentElement?.lang === 'vi'")
    screen.built()
    found = screen.shown()
    assert len(found) > 60
    assert english(found) == set()
    screen.page.close()
