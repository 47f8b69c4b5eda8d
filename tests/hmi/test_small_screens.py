"""A tablet upright and a phone, the light theme, and notices in the corner."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.browsers import RunningCell, Screen, WeldingCell
from tests.hmi.test_hmi_integration import legible

TABLET, PHONE = {"width": 820, "height": 1180}, {"width": 390, "height": 844}
SMALL = {"width": 1024, "height": 768}
TABS = ("cell", "program", "plots", "log")
HEADER = ("mode", "robot", "state", "alarm", "emergency-stop")
OVERLAPS = """() => {
  const parts = [...document.querySelector(".u-bar").children].filter((e) => e.checkVisibility());
  const boxes = parts.map((part) => part.getBoundingClientRect());
  const cover = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return parts.filter((part, n) => boxes.slice(0, n).some((box) => cover(box, boxes[n])))
    .map(({ className }) => className);
}"""
"""Parts of the header that cover another one."""
BESIDE = """() => [...document.querySelectorAll(".u-page .u-button, .u-page input, .u-page .q-tab")]
  .filter((element) => element.checkVisibility() && !element.closest(".u-views, [role=tablist]"))
  .map((element) => [element.textContent, element.getBoundingClientRect()])
  .filter(([, { left, right }]) => left < -1 || right > innerWidth + 1)
  .map(([text]) => text)"""
"""Controls that scrolling up and down does not bring onto the screen."""
CRAMPED = """() => [...document.querySelectorAll(".u-page input.u-name")]
  .filter((field) => field.checkVisibility())
  .filter((field) => field.clientWidth < 120 || field.scrollWidth > field.clientWidth)
  .map((field) => field.placeholder)"""
"""Fields that are narrower than what is in them, or too narrow to type into."""
CAPTION = """() => {
  const bottom = document.querySelector(".u-stop").getBoundingClientRect().bottom;
  const labels = [...document.querySelectorAll(".u-stop-label")];
  const label = labels.find((each) => each.checkVisibility());
  return label.getBoundingClientRect().top - bottom;
}"""
"""Distance of E-STOP, below which is its shadow of 3 px, from its caption."""
MARGINS = """() => {
  const bar = document.querySelector(".u-bar").getBoundingClientRect();
  const labels = [...document.querySelectorAll(".u-stop-label")];
  const label = labels.find((each) => each.checkVisibility());
  const stop = document.querySelector(".u-stop").getBoundingClientRect();
  return [stop.top - bar.top, bar.bottom - label.getBoundingClientRect().bottom];
}"""
"""Above E-STOP and below its caption, inside the header."""
NAMES = """async () => {
  const { echarts } = await import("nicegui-echart");
  const charts = [...document.querySelectorAll("[_echarts_instance_]")];
  return charts.flatMap((box) =>
    echarts.getInstanceByDom(box).getZr().storage.getDisplayList(true))
    .filter((each) => each.type === "tspan").map((each) => each.style.text);
}"""
CUT_NAMES = """async () => {
  const { echarts } = await import("nicegui-echart");
  const charts = [...document.querySelectorAll("[_echarts_instance_]")];
  const shown = charts.flatMap((box) =>
    echarts.getInstanceByDom(box).getZr().storage.getDisplayList(true));
  return shown.filter((each) => each.type === "tspan" && each.__clipPaths?.length)
    .filter((each) => {
      const [clip] = each.__clipPaths, box = each.getBoundingRect().clone();
      const room = clip.getBoundingRect().clone();
      box.applyTransform(each.transform), room.applyTransform(clip.transform);
      const middle = box.y + box.height / 2, half = each.style.fontSize / 2;
      return middle - half < room.y - 1 || middle + half > room.y + room.height + 1;
    }).map((each) => each.style.text);
}"""
"""Names of curves that are cut at the top or at the bottom. The height of a text that the chart
measures depends on the fonts of the machine: only its middle is used."""


@pytest.fixture(scope="module")
def cell(welding: WeldingCell) -> RunningCell:
    """The welding cell with an alarm."""
    welding.ask("enable", robot="g60")
    welding.ask("mdi", robot="g60", line="G0 B75")
    return welding


@pytest.fixture(scope="module")
def opened(cell: RunningCell, welding_screen: Screen) -> Iterator[Screen]:
    welding_screen.open(cell.url)
    yield welding_screen
    welding_screen.clear()


@pytest.fixture(params=[TABLET, PHONE], ids=["tablet", "phone"])
def small(request: pytest.FixtureRequest, opened: Screen) -> Screen:
    opened.page.set_viewport_size(request.param)
    return opened


def in_view(screen: Screen, box: Any) -> bool:
    size = screen.page.viewport_size
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return bool(
        min(box["x"], box["y"]) >= 0 and right <= size["width"] and bottom <= size["height"]
    )


@pytest.mark.parametrize("tab", TABS)
def test_every_page_fits_a_tablet_upright_and_a_phone(small: Screen, tab: str) -> None:
    """State, alarm and E-STOP are on the screen; everything else is there by scrolling down."""
    small.open_tab(tab)
    small.page.evaluate("document.querySelector('.u-page').scrollTo(0, 1e6)")
    for mark in HEADER:
        assert in_view(small, small.at(mark).bounding_box()), mark
    assert "J2 = 75.0° is outside" in small.text("alarm")
    assert small.page.evaluate(OVERLAPS) == []
    assert small.page.evaluate(BESIDE) == []
    assert small.page.evaluate(CRAMPED) == []
    assert small.page.evaluate(CAPTION) >= 4.0
    assert small.page.evaluate("document.documentElement.scrollWidth") <= innerwidth(small)


@pytest.mark.parametrize("size", [SMALL, TABLET, PHONE], ids=["1024", "tablet", "phone"])
def test_the_emergency_stop_and_its_caption_are_inside_the_header(
    opened: Screen, size: dict[str, int]
) -> None:
    opened.page.set_viewport_size(size)
    assert min(opened.page.evaluate(MARGINS)) >= 2.0


def test_names_of_curves_that_are_turned_over_are_not_cut(opened: Screen) -> None:
    opened.page.set_viewport_size(PHONE)
    opened.open_tab("plots")
    opened.until(lambda: "1/2" in opened.page.evaluate(NAMES), "names that are turned over")
    assert opened.page.evaluate(CUT_NAMES) == []


def innerwidth(screen: Screen) -> int:
    return int(screen.page.viewport_size["width"])


def test_the_tabs_of_a_phone_are_at_the_bottom(opened: Screen) -> None:
    opened.page.set_viewport_size(PHONE)
    tab = opened.page.locator('[data-tab="cell"]').bounding_box()
    assert in_view(opened, tab)
    assert tab["y"] > PHONE["height"] - 80
    opened.open_tab("program")
    opened.open_tab("cell")


# ── theme ──


def test_the_light_theme_is_kept_and_legible_on_every_page(
    opened: Screen, cell: RunningCell
) -> None:
    opened.page.set_viewport_size({"width": 1366, "height": 768})
    with opened.page.expect_navigation():
        opened.press("theme")
    opened.built()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(ground) == "rgb(244, 246, 248)"
    for tab in (*TABS[1:], TABS[0]):
        opened.open_tab(tab)
        assert len(legible(opened)) > 15
        assert opened.page.evaluate(CRAMPED) == []
    opened.open(cell.url + "/log")
    assert opened.page.evaluate(ground) == "rgb(244, 246, 248)"
    with opened.page.expect_navigation():
        opened.press("theme")
    opened.built()
    assert opened.page.evaluate(ground) == "rgb(11, 14, 17)"


# ── notices ──


def test_a_notice_is_in_the_corner_is_closed_by_its_cross_and_goes_with_its_page(
    opened: Screen, cell: RunningCell
) -> None:
    opened.open_tab("program")
    notice = opened.page.locator(".q-notification")
    cell.ask("stop")
    opened.press("home")  # refused
    notice.wait_for()
    box, size = notice.bounding_box(), opened.page.viewport_size
    assert box["x"] > size["width"] / 2
    assert box["y"] > size["height"] / 2
    notice.get_by_role("button", name="Close").click()
    opened.until(lambda: notice.count() == 0, "closed")
    opened.press("home")
    notice.wait_for()
    opened.open_tab("log")
    opened.until(lambda: notice.count() == 0, "gone with its page")
    cell.ask("start")
    assert opened.errors == []
