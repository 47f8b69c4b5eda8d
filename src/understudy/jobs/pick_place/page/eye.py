"""The camera of the page: which picture is shown."""

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button

PICTURES = ("last", "miss", "live")
"""Of the last result, of the last result without objects, and what the camera sees now."""


def picture_buttons(browser: Browser) -> None:
    """Buttons over the picture; hidden for a robot without a virtual camera."""
    texts = browser.texts
    with ui.element("div").classes("u-eye-buttons") as row:
        for name in PICTURES:
            hint = texts(f"pick_place.picture_{name}_hint")
            select = button(
                texts(f"pick_place.picture_{name}"), kind="u-small", hint=hint, mark=f"see-{name}"
            )
            select.props(f"data-picture={name}")
            select.on("click", js_handler=f"() => window.pickPlace.picture({name!r})")
        hint = texts("pick_place.depth_hint")
        depth = button(texts("pick_place.depth"), kind="u-small", hint=hint, mark="see-depth")
        depth.props("data-picture=depth")
        depth.on("click", js_handler="() => window.pickPlace.depth()")
    browser.on_update(lambda: row.set_visibility(bool(browser.part("camera"))))
