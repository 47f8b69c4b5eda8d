"""The program page: the text and its proof, the scene with the ghost, the hand on the robot."""

import json
from collections.abc import Callable
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.pages import stage
from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, within_reach
from understudy.hmi.pages.jog import jog_panel, overrides
from understudy.hmi.pages.points import PointPanel, Points
from understudy.hmi.pages.teach import teach_panel

HEAD = """
<link rel="stylesheet" href="/static/program.css">
<script type="module" src="/static/scene.js"></script>
<script type="module" src="/static/program.js"></script>
<script type="module" src="/static/jog.js"></script>
"""
WORDS = ("program", "check", "kind")
"""Sections of the dictionary that program.js speaks from."""


def build(browser: Browser) -> None:
    ui.add_head_html(HEAD)
    with ui.element("div").classes("u-program").props('id="program-page"') as page:
        page.props["data-words"] = json.dumps(spoken(browser))
        page.props["data-robot"] = browser.robot
        with ui.element("section").classes("u-source"):
            _file(browser)
            _run(browser)
            ui.element("div").classes("u-editor").props('id="editor"')
            _checks(browser)
        with ui.element("section").classes("u-stage"):
            stage.scene(browser)
            with ui.element("div").classes("u-views"):
                stage.views(browser)
                stage.layer(browser, "frames")
            _way(browser)
        with ui.element("aside").classes("u-panel u-hand"):
            _hand(browser)
    _keep_in_step(browser, page)


def spoken(browser: Browser) -> dict[str, str]:
    """What the browser's part of the page says, in its language."""
    found = {"not_done": browser.texts("frame.not_done"), "line": browser.texts("frame.line")}
    for section in WORDS:
        prefix = "kind_" if section == "kind" else ""
        found |= {f"{prefix}{key}": text for key, text in browser.texts.section(section).items()}
    return found


# ── the text ──


def _file(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-file"):
        name = ui.element("input").classes("u-name").props('data-program="name" maxlength=256')
        name.props["placeholder"] = texts("program.unnamed")
        name.props["aria-label"] = texts("program.name")
        _does(button("", icon="folder_open", key="o", hint=texts("program.open")), "open")
        _does(button("", icon="download", hint=texts("program.download")), "download")
        load = button(texts("program.load"), icon="publish", hint=texts("program.load_hint"))
        within_reach(browser, _does(load, "load"))
    with ui.element("div").classes("u-banner").props('data-program="banner" hidden'):
        ui.label(texts("program.draft"))
        _does(button(texts("program.take"), kind="u-small"), "take")


def _run(browser: Browser) -> None:
    texts = browser.texts
    verbs = {
        "run": ("play_arrow", "g", "u-go"),
        "runFrom": ("start", "f", ""),
        "step": ("skip_next", "n", ""),
        "pause": ("pause", "h", ""),
        "stop": ("stop", "s", ""),
    }
    with ui.element("div").classes("u-run").props("data-mark=run") as place:
        for verb, (icon, key, kind) in verbs.items():
            text = texts(f"program.{verb}")
            _does(button(text, icon=icon, key=key, kind=f"{kind} u-verb"), verb).props("stack")
    within_reach(browser, place)
    ui.element("div").classes("u-run-state").props("data-program=state data-mark=run-state")


def _does(each: ui.button, verb: str) -> ui.button:
    """Pressed, program.js does it: the text is there, and need not travel."""
    each.props(f'data-does-program="{verb}"')
    each.on("click", js_handler=f"() => window.program.{verb}()")
    return each


def _checks(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-checks").props("id=checks data-mark=checks"):
        with ui.element("div").classes("u-check-bar"):
            prove = button(texts("check.validate"), icon="verified", key="v")
            within_reach(browser, _does(prove, "validate"))
            ui.element("div").props('data-check="verdict"').classes("u-verdict")
            cancel = button("", icon="close", hint=texts("check.cancel"))
            cancel.props('data-check="cancel"')
            within_reach(browser, cancel)
        ui.element("div").classes("u-check-progress").props('data-check="bar"')
        ui.element("div").classes("u-check-list").props('data-check="list"')


# ── the scene ──


def _way(browser: Browser) -> None:
    """The scrubber; program_way.js moves it."""
    texts = browser.texts
    with ui.element("div").classes("u-way").props("id=way data-mark=way"):
        play = button("", icon="play_arrow", key=" ", hint=texts("program.replay"))
        play.props('data-way="play"')
        with ui.element("div").classes("u-strip"):
            ui.element("canvas")
            slide = ui.element("input").props("type=range min=0 step=any")
            slide.props["aria-label"] = texts("program.timeline")
        ui.element("div").classes("u-figure u-way-readout").props('data-way="readout"')
        close = button("", icon="visibility_off", hint=texts("program.hide_ghost"))
        close.props('data-way="close"')
        ui.label(texts("program.no_way")).classes("u-no-way")


# ── the hand ──


def _hand(browser: Browser) -> None:
    overrides(browser)
    points = Points(browser)
    panels: dict[str, Callable[[], object]] = {
        "jog": lambda: jog_panel(browser),
        "points": lambda: PointPanel(browser, points),
        "teach": lambda: teach_panel(browser, points),
    }
    with ui.tabs().classes("u-tabs").props("no-caps dense align=justify") as tabs:
        for name in panels:
            ui.tab(name, browser.texts(f"hand.{name}")).props(f"data-mark=tab-{name}")
    with ui.tab_panels(tabs, value="jog", animated=False, keep_alive=True).classes("u-tab-panels"):
        for name, panel in panels.items():
            with ui.tab_panel(name) as hand:
                panel()
            within_reach(browser, hand)


# ── in step with the cell ──


def _keep_in_step(browser: Browser, page: ui.element) -> None:
    """The browser is told the state of its robot's program when it is new."""
    told: list[Any] = [None]
    heard = [0]

    def update() -> None:
        reading = browser.picture.status.get("parts", {}).get(f"{browser.robot}.program")
        page.classes(
            add="" if reading else "u-no-program", remove="u-no-program" if reading else ""
        )
        if [browser.robot, reading] != told[0]:
            told[0] = [browser.robot, reading]
            ui.run_javascript(f"window.program.tell({json.dumps(reading)}, {heard[0]})")

    def again() -> None:
        told[0] = None
        update()

    async def ordered(event: GenericEventArguments) -> None:
        order = int(event.args)
        await browser.picture.refresh()
        heard[0] = max(heard[0], order)
        again()

    def turn() -> None:
        ui.run_javascript(f"window.program.turnTo({json.dumps(browser.robot)})")
        again()

    ui.on("program_ordered", ordered)
    browser.on_choice(turn)
    browser.each_round(update)
