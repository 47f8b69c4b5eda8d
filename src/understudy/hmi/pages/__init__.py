"""The pages: one table of them, each built inside the same frame."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import nicegui
from fastapi import Request
from nicegui import App, ui

from understudy.hmi.access import role_of
from understudy.hmi.pages import cell, log, plots, program
from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import Tab, frame
from understudy.hmi.pages.picture import Caller, Picture
from understudy.hmi.texts import Texts

Build = Callable[[Browser], None]

PAGES: dict[Tab, Build] = {
    Tab("/", "cell", "precision_manufacturing", "F1"): cell.build,
    Tab("/program", "program", "code", "F2"): program.build,
    Tab("/plots", "plots", "show_chart", "F3"): plots.build,
    Tab("/log", "log", "list_alt", "F4"): log.build,
}
"""Rail order. A page is a function that builds itself for one browser."""

STATIC = "/static"
THREE = Path(nicegui.__file__).parent / "elements" / "scene" / "dist" / "index.js"
HEAD = f"""
<link rel="stylesheet" href="{STATIC}/page.css">
<script type="module" src="{STATIC}/frame.js"></script>
"""


def register(app: App, link: Caller, feed: Any) -> None:
    """Every page of the table, and the files they need; nothing comes from outside. Frames go from
    the feed to the browsers by themselves (`/ws/state`)."""
    static = Path(str(files("understudy.hmi").joinpath("static")))
    app.add_static_files(f"{STATIC}/three", THREE.parent)
    app.add_static_files(STATIC, static, max_cache_age=0)
    picture = Picture(link)
    for tab, build in PAGES.items():
        _add(tab, build, link, picture)


def _add(tab: Tab, build: Build, link: Caller, picture: Picture) -> None:
    @ui.page(tab.path, title="Understudy", dark=True)
    async def page(request: Request) -> None:
        if not picture.alive:
            await picture.refresh()
        ui.add_head_html(HEAD)
        browser = _seat(request, link, picture)
        with frame(browser, tuple(PAGES), tab):
            build(browser)


def _seat(request: Request, link: Caller, picture: Picture) -> Browser:
    """The browser remembers its language and its robot."""
    wanted = request.cookies.get("robot", "")
    known = list(picture.robots)
    robot = wanted if wanted in known else (known[0] if known else "")
    texts = Texts(request.cookies.get("language", ""))
    return Browser(link, picture, texts, robot=robot, role=role_of(request))
