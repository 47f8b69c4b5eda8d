"""The program page: editor and validation, scene with ghost, and manual operation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only, set_class
from understudy.hmi.page import Page
from understudy.hmi.pages.program.jog import JogPanel, overrides
from understudy.hmi.pages.program.mdi import MdiPanel
from understudy.hmi.pages.program.points import PointPanel, Points, teach_panel
from understudy.hmi.scene.scene import SCRIPT, layer_button, scene, view_buttons

SCRIPT_TEXTS = {"program": "", "check": "", "violation": "violation_", "library": "library_"}
"""Sections of the texts that program.js uses, and the prefix of their keys there."""


def build(browser: Browser) -> None:
    with ui.element("div").classes("u-program").props('id="program-page"') as page:
        page.props["data-texts"] = json.dumps(script_texts(browser))
        page.props["data-robot"] = browser.robot
        page.props["data-role"] = browser.role
        with ui.element("section").classes("u-source"):
            _file(browser)
            _run(browser)
            ui.element("div").classes("u-editor").props('id="editor" data-own-escape')
            _checks(browser)
        splitter = ui.element("div").classes("u-splitter").props("role=separator tabindex=0")
        splitter.props["aria-label"] = browser.texts("program.splitter")
        with ui.element("section").classes("u-scene-area"):
            scene(browser)
            with ui.element("div").classes("u-views").props("data-covers=top"):
                view_buttons(browser)
                layer_button(browser, "frames")
            _preview(browser)
        with ui.element("aside").classes("u-panel u-manual"):
            _manual(browser)
    _send_program_state(browser, page)


def script_texts(browser: Browser) -> dict[str, str]:
    """Texts of program.js, in the language of the browser."""
    found = {"not_done": browser.texts("frame.not_done"), "line": browser.texts("frame.line")}
    for section, prefix in SCRIPT_TEXTS.items():
        found |= {f"{prefix}{key}": text for key, text in browser.texts.section(section).items()}
    return found


# ── editor and validation ──


def _file(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-file"):
        name = ui.element("input").classes("u-name").props('data-program="name" maxlength=256')
        name.props["placeholder"] = texts("program.unnamed")
        name.props["aria-label"] = texts("program.name")
        library = button("", icon="library_books", key="l", hint=texts("library.open"))
        _does(library, "library")
        _does(button("", icon="folder_open", key="o", hint=texts("program.open")), "open")
        _does(button("", icon="download", hint=texts("program.download")), "download")
        load = button(texts("program.load"), icon="publish", hint=texts("program.load_hint"))
        operator_only(browser, _does(load, "load"))
    with ui.element("div").classes("u-banner").props('data-program="empty" hidden'):
        ui.label(texts("program.empty"))
        _does(button(texts("program.example"), kind="u-small", mark="open-example"), "library")
    with ui.element("div").classes("u-banner").props('data-program="banner" hidden'):
        ui.label(texts("program.draft"))
        _does(button(texts("program.revert"), kind="u-small"), "revert")


def _run(browser: Browser) -> None:
    texts = browser.texts
    actions = {
        "run": ("play_arrow", "g", "u-go"),
        "runFrom": ("start", "f", ""),
        "step": ("skip_next", "n", ""),
        "pause": ("pause", "h", ""),
        "stop": ("stop", "s", ""),
    }
    with ui.element("div").classes("u-run").props("data-mark=run") as place:
        for action, (icon, key, kind) in actions.items():
            text = texts(f"program.{action}")
            _does(button(text, icon=icon, key=key, kind=f"{kind} u-action"), action).props("stack")
    operator_only(browser, place)
    ui.element("div").classes("u-run-state").props("data-program=state data-mark=run-state")


def _does(each: ui.button, action: str) -> ui.button:
    """Calls program.js on a click: the text is in the browser and need not be sent here first."""
    each.props(f'data-does-program="{action}"')
    each.on("click", js_handler=f"() => window.program.{action}()")
    return each


def _checks(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-checks").props("id=checks data-mark=checks"):
        with ui.element("div").classes("u-check-bar"):
            validate = button(texts("check.validate"), icon="verified", key="v")
            operator_only(browser, _does(validate, "validate"))
            ui.element("div").props('data-check="verdict"').classes("u-verdict")
            cancel = button("", icon="close", hint=texts("check.cancel"))
            cancel.props('data-check="cancel"')
            operator_only(browser, cancel)
        ui.element("div").classes("u-check-progress").props('data-check="bar"')
        ui.element("div").classes("u-check-list").props('data-check="list"')


# ── preview ──


def _preview(browser: Browser) -> None:
    """Timeline of the simulated run; preview.js moves it."""
    texts = browser.texts
    strip = ui.element("div").classes("u-preview").props("id=preview data-mark=preview")
    with strip.props("data-covers=bottom"):
        play = button("", icon="play_arrow", key=" ", hint=texts("program.replay"))
        play.props('data-preview="play"')
        with ui.element("div").classes("u-strip"):
            ui.element("canvas")
            slide = ui.element("input").props("type=range min=0 step=any")
            slide.props["aria-label"] = texts("program.timeline")
        ui.element("div").classes("u-figure u-preview-readout").props('data-preview="readout"')
        close = button("", icon="visibility_off", hint=texts("program.hide_ghost"))
        close.props('data-preview="close"')
        ui.label(texts("program.no_preview")).classes("u-no-preview")


# ── manual operation ──


def _manual(browser: Browser) -> None:
    overrides(browser)
    points = Points(browser)
    panels: dict[str, Callable[[], object]] = {
        "jog": lambda: JogPanel(browser),
        "points": lambda: PointPanel(browser, points),
        "teach": lambda: teach_panel(browser, points),
        "mdi": lambda: MdiPanel(browser),
    }
    with ui.tabs().classes("u-tabs").props("no-caps dense align=justify") as tabs:
        for name in panels:
            ui.tab(name, browser.texts(f"manual.{name}")).props(f"data-mark=tab-{name}")
    with ui.tab_panels(tabs, value="jog", animated=False, keep_alive=True).classes("u-tab-panels"):
        for name, panel in panels.items():
            with ui.tab_panel(name) as tab:
                panel()
            operator_only(browser, tab)


# ── state of the program ──


def _send_program_state(browser: Browser, page: ui.element) -> None:
    """Sends the state of the robot's program to program.js when it changes, with the number of the
    last command of the browser that this state includes."""
    sent: list[Any] = [None]
    included = [0]

    def update() -> None:
        state = browser.cell.status.get("parts", {}).get(f"{browser.robot}.program")
        set_class(page, not state, "u-no-program")
        if [browser.robot, state] != sent[0]:
            sent[0] = [browser.robot, state]
            ui.run_javascript(f"window.program.update({json.dumps(state)}, {included[0]})")

    def send_again() -> None:
        sent[0] = None
        update()

    async def commanded(event: GenericEventArguments) -> None:
        number = int(event.args)
        await browser.cell.refresh()
        included[0] = max(included[0], number)
        send_again()

    def change_robot() -> None:
        ui.run_javascript(f"window.program.setRobot({json.dumps(browser.robot)})")
        send_again()

    browser.on_event("program_command", commanded)
    browser.on_robot_change(change_robot)
    browser.on_update(update)


PAGE = Page(
    name="program",
    key="F2",
    icon="code",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "program.js", "jog.js", "splitter.js"),
    styles=("program.css",),
)
