"""3D scene of a page: its place, its camera views and its layers."""

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button
from understudy.hmi.page import STATIC

SCRIPT = f"{STATIC}/scene/scene.js"
"""A page with a scene lists this script."""
STYLE = f"{STATIC}/scene/scene.css"

VIEWS = {"iso": "1", "front": "2", "side": "3", "top": "4", "follow": "5"}
KEYS = {f"view.{name}": key for name, key in VIEWS.items()}


def scene(browser: Browser) -> None:
    """The element in which scene.js draws the cell. The scene itself is built once and moves to the
    element of each page that shows it."""
    element = ui.element("div").classes("u-scene").props("id=scene")
    element.props["data-robot"] = browser.robot
    element.props["data-undrawn"] = browser.texts("scene.undrawn")
    browser.on_robot_change(lambda: browser.call_script("understudy.choose", browser.robot))
    drawn = [browser.cell.scene_key()]
    filled: dict[str, int] = {}

    @browser.on_update
    def update() -> None:
        """Loads the scene again when its objects, tools or frames have changed, and colours the
        places of a pallet when one of them is filled or emptied."""
        key = browser.cell.scene_key()
        if key != drawn[0]:
            drawn[0] = key
            browser.call_script("understudy.load")
        parts = browser.cell.status.get("parts", {})
        for robot in browser.cell.robots:
            pallet = parts.get(f"{robot}.pallet") or parts.get(f"{robot}.source_pallet")
            if pallet and filled.get(robot) != pallet["index"]:
                filled[robot] = pallet["index"]
                browser.call_script("understudy.places", robot, pallet["index"])


def view_buttons(browser: Browser, *layers: str) -> None:
    """Buttons over the scene: the views of the camera, and these layers."""
    with ui.element("div").classes("u-views").props("data-covers=top"):
        for view, key in VIEWS.items():
            script = f"understudy.view({view!r})"
            select = button(browser.texts(f"view.{view}"), key=key, kind="u-over", script=script)
            select.props(f'data-view="{view}"')
        for layer in layers:
            layer_button(browser, layer)


def layer_button(browser: Browser, name: str) -> ui.button:
    script = f"understudy.layer({name!r})"
    switch = button(browser.texts(f"layer.{name}"), kind="u-over u-layer", script=script)
    return switch.props(f'data-layer="{name}"')
