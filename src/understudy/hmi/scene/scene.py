"""3D scene of a page: its place, its camera views and its layers."""

from collections.abc import Mapping
from json import dumps

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only
from understudy.hmi.page import STATIC

SCRIPT = f"{STATIC}/scene/scene.js"
"""A page with a scene lists this script."""
STYLE = f"{STATIC}/scene/scene.css"

VIEWS = {"iso": "1", "front": "2", "side": "3", "top": "4", "follow": "5"}
CAPTURES = {"picture": ("photo_camera", "i"), "video": ("videocam", "j")}
KEYS = {f"view.{name}": key for name, key in VIEWS.items()}
KEYS |= {f"capture.{name}": key for name, (_, key) in CAPTURES.items()}
EDIT_SCRIPT = f"{STATIC}/scene/edit.js"
"""A page that edits the environment lists this script too."""
EDIT_KEYS = {"edit.open": "e", "edit.undo": "u", "edit.redo": "y", "edit.measure": "m"}
EDIT_ICONS = {
    "box": ("check_box_outline_blank", "add('box')"),
    "cylinder": ("radio_button_unchecked", "add('cylinder')"),
    "file": ("upload_file", "files()"),
    "remove": ("delete", "remove()"),
    "undo": ("undo", "undo()"),
    "redo": ("redo", "redo()"),
    "measure": ("straighten", "measure()"),
    "save": ("save", "save()"),
}
FIELDS = ("x", "y", "z", "rx", "ry", "rz", "dx", "dy", "dz", "radius", "height")
SNAPS_MM = (0, 1, 5, 10, 50, 100)
UNITS_MM = {"mm": 1.0, "cm": 10.0, "inch": 25.4, "m": 1000.0}
"""Units of mesh files."""


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


def view_buttons(browser: Browser, *layers: str, edits: bool = False) -> None:
    """Buttons over the scene: the views of the camera, these layers, pictures and videos; `edits`:
    and the one that opens `edit_panel`."""
    with ui.element("div").classes("u-views").props("data-covers=top"):
        for view, key in VIEWS.items():
            script = f"understudy.view({view!r})"
            select = button(browser.texts(f"view.{view}"), key=key, kind="u-over", script=script)
            select.props(f'data-view="{view}"')
        for layer in layers:
            layer_button(browser, layer)
        if edits:
            _edit_button(browser)
        with ui.element("div").classes("u-capture"):
            for name, (icon, key) in CAPTURES.items():
                hint, script = browser.texts(f"capture.{name}"), f"capture.{name}()"
                mark = f"capture-{name}"
                button("", icon=icon, key=key, kind="u-over", hint=hint, mark=mark, script=script)


def _edit_button(browser: Browser) -> None:
    """Opens and closes `edit_panel`."""
    texts, key = browser.texts, EDIT_KEYS["edit.open"]
    made = button("", icon="view_in_ar", key=key, kind="u-over", hint=texts("edit.open"))
    made.props("data-mark=scene-edit").on("click", js_handler="() => window.sceneEdit.toggle()")
    operator_only(browser, made)


def edit_panel(browser: Browser) -> None:
    """The panel in which edit.js shows and changes the selected object of the environment."""
    texts = browser.texts
    panel = ui.element("div").classes("u-edit").props("id=scene-edit hidden data-covers=right")
    panel.props["data-words"] = dumps(texts.section("edit"))
    with panel:
        ui.label(texts("edit.object")).classes("u-caption")
        ui.element("div").classes("u-edit-list").props("data-edit=object data-mark=edit-object")
        with ui.element("div").classes("u-edit-fields").props("data-edit=fields hidden"):
            for name in FIELDS:
                with ui.element("label"):
                    ui.label(texts(f"edit.{name}")).classes("u-caption")
                    field = ui.element("input").props("type=number step=any")
                    field.props["data-field"] = name
        with ui.element("div").classes("u-edit-row"):
            _choice(texts("edit.snap"), "snap", {f"{mm} mm": mm for mm in SNAPS_MM})
            _choice(texts("edit.unit"), "unit", UNITS_MM)
        with ui.element("div").classes("u-edit-buttons"):
            for name, (icon, script) in EDIT_ICONS.items():
                key, hint = EDIT_KEYS.get(f"edit.{name}", ""), texts(f"edit.{name}_hint")
                made = button("", icon=icon, key=key, hint=hint, mark=f"edit-{name}")
                made.on("click", js_handler=f"() => window.sceneEdit.{script}")
                if name != "measure":
                    operator_only(browser, made)
        ui.element("div").classes("u-edit-said").props("data-edit=said role=status")


def _choice(label: str, name: str, values: Mapping[str, float]) -> None:
    """A button that goes from value to value."""
    made = button(label, kind="u-edit-choice", mark=f"edit-{name}")
    made.props["data-edit"] = name
    made.props["data-options"] = dumps(
        [[f"{label}: {text}", value] for text, value in values.items()]
    )


def layer_button(browser: Browser, name: str) -> ui.button:
    script = f"understudy.layer({name!r})"
    switch = button(browser.texts(f"layer.{name}"), kind="u-over u-layer", script=script)
    return switch.props(f'data-layer="{name}"')
