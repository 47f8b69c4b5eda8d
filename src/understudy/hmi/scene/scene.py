"""3D scene of a page: its place, its camera views and its layers."""

from json import dumps

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button
from understudy.hmi.page import STATIC

SCRIPT = f"{STATIC}/scene/scene.js"
"""A page with a scene lists this script."""
STYLE = f"{STATIC}/scene/scene.css"

VIEWS = {"iso": "1", "front": "2", "side": "3", "top": "4", "follow": "5"}


def scene(browser: Browser) -> None:
    """The element in which scene.js draws the cell. The scene itself is built once and moves to the
    element of each page that shows it."""
    element = ui.element("div").classes("u-scene").props("id=scene")
    element.props["data-robot"] = browser.robot
    element.props["data-undrawn"] = browser.texts("scene.undrawn")
    browser.on_robot_change(
        lambda: ui.run_javascript(f"window.understudy.choose({dumps(browser.robot)})")
    )
    drawn = [browser.cell.scene_key()]

    def reload() -> None:
        """Loads the scene again when its objects, tools or frames have changed."""
        key = browser.cell.scene_key()
        if key != drawn[0]:
            drawn[0] = key
            ui.run_javascript("window.understudy.load()")

    browser.on_update(reload)
    _fill_pallets(browser)


def _fill_pallets(browser: Browser) -> None:
    """Colours the places of pallets when one of them is filled or emptied."""
    shown: dict[str, int] = {}

    def update() -> None:
        parts = browser.cell.status.get("parts", {})
        for robot in browser.cell.robots:
            pallet = parts.get(f"{robot}.pallet") or parts.get(f"{robot}.source_pallet")
            if pallet and shown.get(robot) != pallet["index"]:
                shown[robot] = pallet["index"]
                ui.run_javascript(f"window.understudy.places({dumps(robot)}, {pallet['index']})")

    browser.on_update(update)


def view_buttons(browser: Browser) -> None:
    for view, key in VIEWS.items():
        select = button(browser.texts(f"view.{view}"), key=key, kind="u-over")
        select.props(f'data-view="{view}"')
        select.on("click", js_handler=f"() => window.understudy.view({view!r})")


def layer_button(browser: Browser, name: str) -> ui.button:
    switch = button(browser.texts(f"layer.{name}"), kind="u-over u-layer")
    switch.props(f'data-layer="{name}"')
    switch.on("click", js_handler=f"() => window.understudy.layer({name!r})")
    return switch
