"""MDI panel: one line in the language of the robot, its answer, and the lines before it."""

from collections.abc import Mapping
from typing import Any

from nicegui import background_tasks, ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button

Entry = Mapping[str, Any]
ICONS = {"running": "hourglass_top", "done": "check", "failed": "error", "refused": "block"}
SHOWN = 30


class MdiPanel:
    """A field for the line, and the history, the newest on top; a click on a line takes it again.

    Arrow up and down in the field go through the history."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page = ui.context.client
        self._entries: list[Entry] = []
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
            background_tasks.create(self._request(self._browser.robot))

    async def _request(self, robot: str) -> None:
        with self._page:
            answer = await self._browser.query("mdi_history", {"robot": robot})
            if answer is not None and robot == self._browser.robot:
                self._set(answer["entries"])

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

    def _set(self, entries: list[Entry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._show()

    def _show(self) -> None:
        self._rows.clear()
        with self._rows:
            for entry in reversed(self._entries[-SHOWN:]):
                self._row(entry)
            if not self._entries:
                ui.label(self._browser.texts("mdi.none")).classes("u-caption")

    def _row(self, entry: Entry) -> None:
        state = entry["state"]
        with ui.element("button").classes(f"u-mdi-row u-mdi-{state}") as row:
            row.props["data-state"] = state
            ui.icon(ICONS[state])
            with ui.element("div"):
                ui.label(entry["line"]).classes("u-mdi-text")
                answer = entry["answer"] or self._browser.texts(f"mdi.{state}")
                ui.label(answer).classes("u-caption")
        row.on("click", lambda: self._line.set_value(entry["line"]))
