"""The scene on a page: the place for it, its views and layers, and what makes it look again."""

from json import dumps

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button

VIEWS = {"iso": "1", "front": "2", "side": "3", "top": "4", "follow": "5"}


def scene(browser: Browser) -> None:
    """Drawn by scene.js, which the page must bring."""
    place = ui.element("div").classes("u-scene").props("id=scene")
    place.props["data-robot"] = browser.robot
    _surroundings(browser)
    turn = lambda: ui.run_javascript(f"window.understudy.choose({dumps(browser.robot)})")  # noqa: E731
    browser.on_choice(turn)


def views(browser: Browser) -> None:
    for view, key in VIEWS.items():
        look = button(browser.texts(f"view.{view}"), key=key, kind="u-over")
        look.props(f'data-view="{view}"')
        look.on("click", js_handler=f"() => window.understudy.view({view!r})")


def layer(browser: Browser, name: str) -> ui.button:
    switch = button(browser.texts(f"layer.{name}"), kind="u-over u-layer")
    switch.props(f'data-layer="{name}"')
    switch.on("click", js_handler=f"() => window.understudy.layer({name!r})")
    return switch


def _surroundings(browser: Browser) -> None:
    """It is loaded again when other things stand around, a robot holds something else, or a tool
    ends elsewhere."""
    drawn = [browser.picture.surroundings()]

    def update() -> None:
        now = browser.picture.surroundings()
        if now != drawn[0]:
            drawn[0] = now
            ui.run_javascript("window.understudy.load()")

    browser.each_round(update)
