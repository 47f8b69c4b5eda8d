"""Viewers see every figure, and all controls are disabled."""

from collections.abc import Callable

import pytest
from tests.browsers import RunningCell, Screen

ACT_TOKEN, LOOK_TOKEN = "token-of-the-operator", "token-of-a-viewer"
LOOK = f"/?token={LOOK_TOKEN}"
ACTS = {
    "/": [
        "[data-mark=drives]",
        "[data-mark=emergency-stop]",
        "[data-mark=stop]",
        "[data-mark=time-scale]",
        "[data-pin=DI10]",
        "[data-clear=trail]",
        "[data-layer=reach]",
    ],
    "/program": [
        "[data-does-program=load]",
        "[data-does-program=run]",
        "[data-does-program=validate]",
        "[data-mark=feed-override]",
        "[data-jog='0']",
        "[data-mark=home]",
    ],
}
LOOKS = {"/": ["[data-view=top]", "[data-layer=frames]"], "/program": ["[data-view=top]"]}
INERT = "e => e.closest('[inert]') !== null"


@pytest.fixture(scope="module")
def cell(start_cell: Callable[..., RunningCell]) -> RunningCell:
    patch = pytest.MonkeyPatch()
    patch.setenv("UNDERSTUDY_HMI_TOKEN", ACT_TOKEN)
    patch.setenv("UNDERSTUDY_HMI_VIEWER_TOKEN", LOOK_TOKEN)
    started = start_cell("g60_welding")
    patch.undo()
    return started


@pytest.fixture(scope="module")
def viewer(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell, LOOK)


@pytest.mark.parametrize("path", ACTS)
def test_controls_are_disabled_for_viewers(viewer: Screen, cell: RunningCell, path: str) -> None:
    viewer.page.goto(cell.url + path)
    for selector in ACTS[path]:
        assert viewer.page.locator(selector).first.evaluate(INERT), selector
    for selector in LOOKS[path]:
        assert not viewer.page.locator(selector).first.evaluate(INERT), selector


def test_keys_do_not_click_disabled_buttons(viewer: Screen, cell: RunningCell) -> None:
    viewer.page.goto(cell.url)
    viewer.built()
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url))
    for key in ("Escape", "Alt+d", "Alt+g", "h", "s"):
        viewer.page.keyboard.press(key)
    viewer.page.keyboard.press("4")
    viewer.until(lambda: viewer.scene["view"] == "top", "the camera's key")
    assert not [url for url in asked if "emergency_stop" in url]
    assert viewer.page.locator(".q-notification").count() == 0


def test_nothing_is_disabled_for_operators(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    operator = open_page(cell, f"/?token={ACT_TOKEN}")
    assert operator.page.locator("[inert]").count() == 0
