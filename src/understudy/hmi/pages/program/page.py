"""The program page: editor and validation, scene with ghost, and manual operation with the MDI
panel."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only, page_element, set_class, tab_panels
from understudy.hmi.page import Page
from understudy.hmi.pages.program.jog import JogPanel, overrides
from understudy.hmi.pages.program.points import PointPanel, TaughtPoints, teach_panel
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons

SCRIPT_TEXTS = {"program": "", "check": "", "violation": "violation_", "library": "library_"}
"""Sections of the texts that program.js uses, and the prefix of their keys there."""
MDI_ICONS = {"running": "hourglass_top", "done": "check", "failed": "error", "refused": "block"}
MDI_SHOWN = 30


def build(browser: Browser) -> None:
    with page_element(browser, "program", "u-program", script_texts(browser)) as page:
        with ui.element("section").classes("u-source"):
            _file(browser)
            _run(browser)
            ui.element("div").classes("u-editor").props('id="editor" data-own-escape')
            _checks(browser)
        splitter = ui.element("div").classes("u-splitter").props("role=separator tabindex=0")
        splitter.props["aria-label"] = browser.texts("program.splitter")
        with ui.element("section").classes("u-scene-area"):
            scene(browser)
            view_buttons(browser, "frames")
            _preview(browser)
        with ui.element("aside").classes("u-panel u-manual"):
            _manual(browser)
    _send_program_state(browser, page)


def script_texts(browser: Browser) -> dict[str, str]:
    """Texts of program.js, in the language of the browser."""
    found = {"line": browser.texts("frame.line")}
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
    each.on("click", js_handler=f"() => window.program.{action}()")
    return each.props(f'data-does-program="{action}"')


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
    points = TaughtPoints(browser)
    contents: dict[str, Callable[[], object]] = {
        "jog": lambda: JogPanel(browser),
        "points": lambda: PointPanel(browser, points),
        "teach": lambda: teach_panel(browser, points),
        "mdi": lambda: MdiPanel(browser),
    }
    panels = {name: (browser.texts(f"manual.{name}"), build) for name, build in contents.items()}
    for panel in tab_panels(panels, keep_alive=True).values():
        operator_only(browser, panel)


class MdiPanel:
    """A field for one line in the language of the robot, and the history, the newest on top.

    A click on a line takes it again; arrow up and down in the field go through the history."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._entries: list[Mapping[str, Any]] = []
        self._asked = False
        self._back = 0
        self._build()
        browser.on_robot_change(self._other_robot)
        browser.on_update(self._refresh)

    def _build(self) -> None:
        texts = self._browser.texts
        ui.label(texts("mdi.hint")).classes("u-caption")
        with ui.element("div").classes("u-inline"):
            self._line = ui.input(placeholder=texts("mdi.line")).classes("u-input u-mdi-line")
            self._line.props("outlined dense maxlength=256 autocomplete=off spellcheck=false")
            self._line.props('data-mark=mdi-line input-class="u-mdi-text"')
            self._line.on("keydown.enter", self._send)
            self._line.on("keydown.up.prevent", lambda: self._recall(1))
            self._line.on("keydown.down.prevent", lambda: self._recall(-1))
            send = button(texts("mdi.send"), icon="keyboard_return", kind="u-go", mark="mdi-send")
            send.on_click(self._send)
        self._rows = ui.element("div").classes("u-mdi-rows").props("data-mark=mdi-history")
        self._show()

    def _other_robot(self) -> None:
        self._entries, self._back, self._asked = [], 0, False
        self._show()

    def _refresh(self) -> None:
        """Requests the history at first, and while the last line is carried out."""
        running = bool(self._entries) and self._entries[-1]["state"] == "running"
        if self._browser.facts and (running or not self._asked):
            self._asked = True
            self._browser.ask("mdi_history", lambda answer: self._set(answer["entries"]))

    async def _send(self) -> None:
        line = (self._line.value or "").strip()
        if not line:
            return
        self._back = 0
        answer = await self._browser.robot_command("mdi", {"line": line})
        if answer is not None:
            if answer["state"] != "refused":
                self._line.set_value("")
            self._set([*self._entries, answer])

    def _recall(self, step: int) -> None:
        lines = list(dict.fromkeys(entry["line"] for entry in reversed(self._entries)))
        self._back = max(0, min(self._back + step, len(lines)))
        self._line.set_value(lines[self._back - 1] if self._back else "")

    def _set(self, entries: list[Mapping[str, Any]]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._show()

    def _show(self) -> None:
        self._rows.clear()
        with self._rows:
            for entry in reversed(self._entries[-MDI_SHOWN:]):
                self._row(entry)
            if not self._entries:
                ui.label(self._browser.texts("mdi.none")).classes("u-caption")

    def _row(self, entry: Mapping[str, Any]) -> None:
        state = entry["state"]
        with ui.element("button").classes(f"u-mdi-row u-mdi-{state}") as row:
            row.props["data-state"] = state
            ui.icon(MDI_ICONS[state])
            with ui.element("div"):
                ui.label(entry["line"]).classes("u-mdi-text")
                answer = entry["answer"] or self._browser.texts(f"mdi.{state}")
                ui.label(answer).classes("u-caption")
        row.on("click", lambda: self._line.set_value(entry["line"]))


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
            browser.call_script("program.update", state, included[0])

    def send_again() -> None:
        sent[0] = None
        update()

    async def commanded(event: GenericEventArguments) -> None:
        number = int(event.args)
        await browser.cell.refresh()
        included[0] = max(included[0], number)
        send_again()

    def change_robot() -> None:
        browser.call_script("program.setRobot", browser.robot)
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
