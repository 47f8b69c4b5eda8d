"""Layout: everything is visible or reachable at 1024 × 768, in English and Vietnamese."""

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.browsers import SIZE, RunningCell, Screen, WeldingCell

SMALL = {"width": 1024, "height": 768}
CATALOG = Path(str(files("understudy"))) / "catalog"
SEAM = (CATALOG / "programs" / "seam.gcode").read_text()
VIEWS = ("iso", "front", "side", "top")

CLIPPED = """() => [...document.querySelectorAll(".u-button, .u-stop, .u-mode-word, .q-tab")]
  .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.textContent)"""
"""Texts of elements whose content is wider than they are."""
OVERLAPS = """() => {
  const parts = [...document.querySelector(".u-bar").children].filter((e) => e.checkVisibility());
  const boxes = parts.map((part) => part.getBoundingClientRect());
  const covers = (n) => n > 0 && boxes[n].left < boxes[n - 1].right - 1;
  return parts.filter((part, n) => covers(n)).map(({ className }) => className);
}"""
"""Parts of the header that cover the part before them."""
OUTSIDE = """() => {
  const { box, camera, element } = window.understudy.scene.viewport;
  const { x, y, wide, high } = window.understudy.scene.viewport.freeArea();
  camera.updateMatrixWorld();
  const { min, max } = box;
  const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => min.clone().set(
    n & 1 ? max.x : min.x, n & 2 ? max.y : min.y, n & 4 ? max.z : min.z));
  return corners.map((corner) => {
    const at = corner.project(camera);
    return [(at.x + 1) / 2 * element.clientWidth, (1 - at.y) / 2 * element.clientHeight];
  }).filter(([px, py]) => Math.abs(px - x) > wide + 1 || Math.abs(py - y) > high + 1);
}"""
"""Corners of the cell that are not in the free part of the scene."""


@pytest.fixture(scope="module")
def cell(welding: WeldingCell) -> RunningCell:
    """The welding cell with an alarm and twenty points."""
    cell = welding
    for number in range(20):
        cell.ask("teach_point", robot="g60", name=f"point {number}")
    cell.ask("enable", robot="g60")
    cell.ask("load_program", robot="g60", text=SEAM, name="seam.gcode")
    cell.ask("run_program", robot="g60")
    cell.ask("advance", seconds=8.0)
    cell.ask("inject", fault="arc_fault", on="g60.welder")
    cell.ask("advance", seconds=2.0)
    return cell


@pytest.fixture(scope="module", params=["en", "vi"])
def small(
    request: pytest.FixtureRequest, cell: RunningCell, welding_screen: Screen
) -> Iterator[Callable[[str], Screen]]:
    """Opens pages at 1024 × 768, one after the other, in one language."""
    screen = welding_screen
    screen.page.set_viewport_size(SMALL)
    cookie = {"name": "language", "value": request.param, "url": cell.url}
    screen.page.context.add_cookies([cookie])

    def open_(path: str) -> Screen:
        tab = path.strip("/") or "cell"
        others = screen.page.locator(f'[data-page]:not([data-page="{tab}"])')
        if others.count():  # by its tab, which is faster than loading everything
            screen.open_tab(tab)
        else:
            screen.page.goto(cell.url + path)
            screen.built()
        return screen

    yield open_
    screen.clear()


def in_view(screen: Screen, locator: Any, *, clickable: bool = True) -> bool:
    """Whether the whole element is on the screen and nothing covers its middle."""
    box = locator.bounding_box()
    size = screen.page.viewport_size
    inside = (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"] + 1
        and box["y"] + box["height"] <= size["height"] + 1
    )
    top = """(element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        const hit = document.elementFromPoint(x + width / 2, y + height / 2);
        return element.contains(hit) || hit.contains(element);
    }"""
    return bool(inside and (not clickable or locator.evaluate(top)))


@pytest.mark.parametrize("path", ["/", "/program", "/plots", "/log"])
def test_the_header_fits_a_small_screen(small: Callable[[str], Screen], path: str) -> None:
    screen = small(path)
    for mark in ("mode", "state", "drives", "alarm", "alarm-reset", "emergency-stop"):
        assert in_view(screen, screen.at(mark)), mark
    assert re.search("arc|hồ quang", screen.text("alarm"))
    assert screen.page.evaluate(OVERLAPS) == []
    assert screen.page.evaluate(CLIPPED) == []
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]


def test_the_cell_page_fits_a_small_screen(small: Callable[[str], Screen]) -> None:
    screen = small("/")
    screen.until(lambda: screen.page.locator("#readout div").count() == 12, "the figures")
    for number in range(12):
        assert in_view(screen, screen.page.locator("#readout div").nth(number), clickable=False)
    clipped = (
        "[...document.querySelectorAll('#readout')].every((e) => e.scrollWidth <= e.clientWidth)"
    )
    assert screen.page.evaluate(clipped)
    for pin in ("DI0", "DO0"):
        screen.page.locator(f'[data-pin="{pin}"]').scroll_into_view_if_needed()
        assert in_view(screen, screen.page.locator(f'[data-pin="{pin}"]'))


def test_the_program_page_fits_a_small_screen(small: Callable[[str], Screen]) -> None:
    screen = small("/program")
    screen.page.wait_for_function("window.program.report().seconds > 0")
    slider = screen.page.locator("#preview input[type=range]")
    assert in_view(screen, slider)
    assert slider.bounding_box()["width"] > 120
    for axis in range(6):
        button = screen.page.locator(f'[data-jog="{axis}"][data-direction="1"]')
        button.scroll_into_view_if_needed()
        assert in_view(screen, button)
    assert in_view(screen, screen.page.locator('[data-does-program="validate"]'))


def test_the_log_fits_a_small_screen(small: Callable[[str], Screen]) -> None:
    screen = small("/log")
    assert in_view(screen, screen.page.locator("[data-log=search]"))
    assert screen.page.locator("[data-log=search]").bounding_box()["width"] > 150
    screen.until(lambda: screen.page.locator(".u-row").count() > 3, "rows")
    filters = screen.page.locator("[data-kind]").all()
    kinds = [each.get_attribute("data-kind") for each in filters]
    counted = [int(each.get_attribute("data-count")) for each in filters]
    counts = dict(zip(kinds, counted, strict=True))
    screen.page.locator('[data-kind="welder"]').click()
    shown = screen.page.evaluate("window.log.report().shown.length")
    assert shown == sum(counts.values()) - counts["welder"] - counts["traffic"]
    assert counts["welder"] > 0


def test_long_lists_of_points_scroll(small: Callable[[str], Screen]) -> None:
    screen = small("/program")
    screen.at("tab-points").click()
    rows = screen.page.locator(".u-point-rows")
    screen.until(lambda: rows.locator(".u-point").count() >= 20, "the points")
    assert rows.evaluate("(list) => list.scrollHeight > list.clientHeight")


def test_the_width_of_the_editor_is_kept(small: Callable[[str], Screen]) -> None:
    screen = small("/program")
    screen.page.wait_for_function("window.program.report().text.length > 100")
    before = screen.page.locator(".u-source").bounding_box()["width"]
    handle = screen.page.locator(".u-splitter").bounding_box()
    screen.page.mouse.move(handle["x"], handle["y"] + handle["height"] / 2)
    screen.page.mouse.down()
    screen.page.mouse.move(handle["x"] - 80, handle["y"] + handle["height"] / 2, steps=4)
    screen.page.mouse.up()
    after = screen.page.locator(".u-source").bounding_box()["width"]
    assert after == pytest.approx(before - 80, abs=8)
    screen = small("/program")
    assert screen.page.locator(".u-source").bounding_box()["width"] == pytest.approx(after, abs=2)


def test_tooltips_and_steps(small: Callable[[str], Screen]) -> None:
    screen = small("/program")
    screen.page.locator('[data-does-program="download"]').hover()
    tooltip = screen.page.locator(".q-tooltip").first
    tooltip.wait_for()
    assert float(tooltip.evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")) >= 12.0
    steps = screen.at("jog-step").inner_text()
    assert "0.1°" in steps
    screen.at("jog-frame").locator("button").nth(1).click()
    screen.until(lambda: "mm" in screen.at("jog-step").inner_text(), "mm as unit of the steps")


# ── the scene ──


@pytest.mark.parametrize("path", ["/", pytest.param("/program", marks=pytest.mark.soak)])
def test_the_views_show_the_whole_cell(
    cell: RunningCell, welding_screen: Screen, path: str
) -> None:
    screen = welding_screen
    screen.open(cell.url + path)
    for size in (SMALL, SIZE):
        screen.page.set_viewport_size(size)
        for view in VIEWS:
            screen.page.locator(f'[data-view="{view}"]').click()
            screen.page.wait_for_function("window.understudy.scene.viewport.flight === null")
            assert screen.page.evaluate(OUTSIDE) == [], (size, view)
    screen.clear()


def test_figures_over_the_scene_do_not_cover_the_robot(
    cell: RunningCell, welding_screen: Screen
) -> None:
    screen = welding_screen
    screen.open(cell.url)
    screen.page.set_viewport_size(SMALL)
    figures = screen.page.locator(".u-figures").bounding_box()
    scene = screen.page.locator("#scene").bounding_box()
    area = screen.page.evaluate("window.understudy.scene.viewport.freeArea()")
    assert scene["y"] + area["y"] - area["high"] >= figures["y"] + figures["height"] - 1
    screen.clear()


def test_few_calls_draw_the_scene_and_none_at_rest(
    cell: RunningCell, welding_screen: Screen
) -> None:
    """Without a graphics card every call and every triangle costs processor time."""
    screen = welding_screen
    screen.open(cell.url)
    info = "window.understudy.scene.viewport.renderer.info.render"
    screen.page.wait_for_function("window.understudy.scene.viewport.flight === null")
    assert screen.page.evaluate(f"{info}.calls") <= 40
    assert screen.page.evaluate(f"{info}.triangles") <= 15_000
    frames = f"[{info}.frame, window.understudy.report().frames]"

    def rests() -> bool:
        """Whether nothing is drawn while ten state frames come. On a slow machine the first images
        come late, and some more of them with fewer pixels."""
        drawn, received = screen.page.evaluate(frames)
        screen.until(lambda: screen.scene["frames"] > received + 10, "state frames")
        return bool(screen.page.evaluate(frames)[0] == drawn)

    screen.until(rests, "no image at rest")
    screen.clear()
