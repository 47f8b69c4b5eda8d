"""The training page: the scene, and beside it the exercises or the present task, with score, hints
and certificate. Another tab has the manual operation, so that short tasks need no other page."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import background_tasks, ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    card,
    confirm,
    dialog_answers,
    fixed,
    operator_only,
    page_element,
    set_class,
    tab_panels,
    temporary_dialog,
)
from understudy.hmi.page import Page
from understudy.hmi.pages.program import jog
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons

COURSE = "course"
"""The part of the cell."""
KEYS = {"training.hint": "h", "training.leave": "q", "training.certificate": "c"}
LATEST = 8
"""Results in the list."""
TODAY = (
    "return new Date(Date.now() - new Date().getTimezoneOffset() * 6e4).toISOString().slice(0, 10)"
)
LONGEST_NAME = 100


def build(browser: Browser) -> None:
    with page_element(browser, "training", "u-training"):
        with ui.element("div").classes("u-scene-area u-training-scene"):
            scene(browser)
            view_buttons(browser)
        with ui.element("aside").classes("u-panel u-training-panel"):
            texts = browser.texts
            panels: dict[str, tuple[str, Callable[[], object]]] = {
                "exercise": (texts("training.tab_exercise"), lambda: Training(browser)),
                "jog": (texts("training.tab_jog"), lambda: jog.JogPanel(browser)),
            }
            operator_only(browser, tab_panels(panels, keep_alive=True)["jog"])


class Training:
    """The exercises with their texts come with a query, once and after each attempt; what changes
    while an exercise is running is in the status of the part `course`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._exercises: dict[str, Any] = {}
        self._shown: list[str] = []
        with ui.element("div").classes("u-training-column") as self._running:
            self._build_running()
        with ui.element("div").classes("u-training-column") as self._choice:
            self._results = card(browser.texts("training.results"), mark="training-results")
            self._list = card(browser.texts("training.exercises"), mark="training-exercises")
            self._certificate()
        browser.on_change_of(self._reported, lambda _: self._ask())
        browser.on_update(self._update)

    # ── while an exercise is running ──

    def _build_running(self) -> None:
        browser, texts = self._browser, self._browser.texts
        with ui.element("section").classes("u-card").props("data-mark=training-running"):
            self._title = ui.label().classes("u-figure").props("data-mark=training-title")
            self._about = ui.label().classes("u-training-about")
            with ui.element("div").classes("u-training-figures"):
                self._figures = {
                    name: self._figure(name)
                    for name in ("score", "left", "collisions", "wrong_commands", "hints_used")
                }
        with card(texts("training.tasks"), mark="training-tasks"):
            self._tasks = ui.element("ol").classes("u-training-tasks")
        with card(texts("training.progress"), mark="training-progress"):
            self._readings = ui.element("div").classes("u-training-readings").props("role=status")
        with card(texts("training.hints"), mark="training-hints"):
            self._hints = ui.element("ul").classes("u-training-hints")
            with ui.element("div").classes("u-training-row") as row:
                hint = self._button("hint", "lightbulb")
                leave = self._button("leave", "logout")
        hint.on_click(lambda: browser.command("take_hint"))
        leave.on_click(self._ask_to_leave)
        operator_only(browser, row)
        self._hint = hint
        browser.on_change_of(self._task, lambda _: self._show_task())

    def _figure(self, name: str) -> ui.label:
        with ui.element("div").classes("u-training-figure"):
            ui.label(self._browser.texts(f"training.{name}")).classes("u-caption")
            return ui.label().classes("u-figure").props(f"data-mark=training-{name}")

    def _button(self, name: str, icon: str) -> ui.button:
        texts, hint = self._browser.texts, f"training.{name}_hint"
        return button(
            texts(f"training.{name}"),
            icon=icon,
            key=KEYS.get(f"training.{name}", ""),
            hint=texts(hint),
            mark=f"training-{name}",
        )

    def _ask_to_leave(self) -> None:
        async def leave() -> None:
            await self._browser.command("leave_exercise")

        question = self._browser.texts("training.leave_question")
        confirm(self._browser, question, leave, answer="training.leave", mark="do-leave")

    def _status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._browser.cell.status.get("parts", {}).get(COURSE, {})
        return found

    def _progress(self) -> Mapping[str, Any]:
        return self._status().get("progress") or {}

    def _task(self) -> tuple[Any, ...]:
        """What the lists of tasks and hints show."""
        progress, known = self._progress(), self._exercises.keys()
        return tuple(progress.get(key) for key in ("exercise", "task", "hints")), tuple(known)

    def _show_task(self) -> None:
        progress = self._progress()
        exercise = self._exercises.get(progress.get("exercise", ""))
        if exercise is None:
            return
        self._title.set_text(exercise["title"])
        self._about.set_text(exercise["about"])
        self._tasks.clear()
        with self._tasks:
            for number, task in enumerate(exercise["tasks"]):
                self._task_row(number, task, progress["task"])
        more = exercise["tasks"][progress["task"]]["hints"] - progress["hints"]
        self._hint.set_enabled(more > 0)
        background_tasks.create(self._show_hints())

    def _task_row(self, number: int, task: Mapping[str, Any], present: int) -> None:
        kind = "done" if number < present else "now" if number == present else "later"
        icon = {"done": "check_circle", "now": "play_circle", "later": "radio_button_unchecked"}
        row = ui.element("li").classes(f"u-training-task u-training-{kind}")
        row.props(f"data-task={kind}")
        if kind == "now":
            row.props('aria-current="step"')
        with row:
            ui.icon(icon[kind])
            with ui.element("div"):
                ui.label(task["title"])
                if kind == "now" and task["about"]:
                    ui.label(task["about"]).classes("u-caption")

    async def _show_hints(self) -> None:
        language = {"language": self._browser.texts.language}
        with self._hints:
            found = await self._browser.query("course_hints", language)
        if found is None or self._hints.is_deleted:
            return
        self._hints.clear()
        with self._hints:
            for each in found["hints"]:
                with ui.element("li").props("data-mark=training-a-hint"):
                    ui.label(each)

    def _update(self) -> None:
        progress = self._progress()
        self._running.set_visibility(bool(progress))
        self._choice.set_visibility(not progress)
        if not progress:
            return
        texts = self._browser.texts
        for name in ("score", "collisions", "wrong_commands", "hints_used"):
            self._figures[name].set_text(str(progress[name]))
        self._figures["left"].set_text(texts("training.seconds").format(s=progress["left_s"]))
        rows = [self._reading(each) for each in progress["readings"]]
        if [row for row, _ in rows] != self._shown:
            self._shown = [row for row, _ in rows]
            self._readings.clear()
            with self._readings:
                for text, is_met in rows:
                    line = ui.label(text).classes("u-training-reading")
                    set_class(line, is_met, "u-training-met")

    def _reading(self, reading: Mapping[str, Any]) -> tuple[str, bool]:
        """A reading in words: what is looked at, its value, and what is wanted."""
        texts, label = self._browser.texts, reading["label"]
        if isinstance(label, Mapping):
            label = label[texts.language]
        label = label or texts.of("training.reading", reading["what"])
        if reading["what"] not in ("value",) and reading["of"]:
            label = f"{label} {reading['of']}"
        elif not reading["label"]:
            label = reading["of"]
        value = self._value(reading["now"], reading["what"])
        unit = {"mm": " mm", "deg": "°"}.get(reading["unit"], "")
        wanted = reading["wanted"].removeprefix("not ").strip()
        wanted = texts.of("training.value", wanted) if wanted else ""
        if reading["wanted"].startswith("not") and wanted:
            wanted = texts("training.not").format(what=wanted)
        wanted = f"  ({wanted}{unit})" if wanted else ""
        return f"{'✓' if reading['met'] else '–'} {label}: {value}{unit}{wanted}", reading["met"]

    def _value(self, value: Any, what: str) -> str:
        texts = self._browser.texts
        if isinstance(value, bool):
            return texts("training.value.true" if value else "training.value.false")
        if what == "alarm":
            return texts.of_cell(value) if value else texts("training.value.none")
        if isinstance(value, str):
            return texts.of("state", value) if what == "state" else value or "–"
        return f"{value:g}" if abs(value) < 1e5 else fixed(value, 0)

    # ── the exercises and results ──

    def _reported(self) -> tuple[Any, ...]:
        status = self._status()
        return bool(status), status.get("results"), status.get("running")

    def _ask(self) -> None:
        background_tasks.create(self._show_course())

    async def _show_course(self) -> None:
        browser = self._browser
        with self._list:
            found = await browser.query("course", {"language": browser.texts.language})
        if found is None or self._list.is_deleted:
            return
        self._exercises = {each["name"]: each for each in found["exercises"]}
        self._show_exercises(found["exercises"])
        self._show_results(found["results"])
        with self._tasks:
            self._show_task()

    def _show_exercises(self, exercises: list[Any]) -> None:
        texts = self._browser.texts
        for each in list(self._list)[1:]:
            each.delete()
        with self._list, ui.element("div") as rows:
            for each in exercises:
                with ui.element("div").classes("u-training-exercise"):
                    with ui.element("div").classes("u-training-words"):
                        ui.label(each["title"]).classes("u-training-name")
                        ui.label(each["about"]).classes("u-caption")
                        facts = texts("training.facts").format(
                            tasks=len(each["tasks"]), limit=each["time_limit_s"] / 60
                        )
                        best = each["best"]
                        if best is not None:
                            facts += " · " + texts("training.best").format(score=best)
                        ui.label(facts).classes("u-caption")
                    start = button(
                        texts("training.start"),
                        icon="replay" if each["attempts"] else "play_arrow",
                        kind="u-go",
                        hint=texts("training.start_hint").format(title=each["title"]),
                        mark=f"start-{each['name']}",
                    )
                    start.on_click(partial(self._start, each["name"]))
        operator_only(self._browser, rows, on_real=False)

    async def _start(self, name: str) -> None:
        await self._browser.command("start_exercise", {"exercise": name})

    def _show_results(self, results: list[Any]) -> None:
        texts = self._browser.texts
        for each in list(self._results)[1:]:
            each.delete()
        self._results.set_visibility(bool(results))
        with self._results:
            for number, each in enumerate(reversed(results[-LATEST:])):
                exercise = self._exercises.get(each["exercise"], {"title": each["exercise"]})
                reason = texts(f"training.reason.{each['reason']}")
                parts = [exercise["title"], texts("training.points").format(score=each["score"])]
                row = ui.element("div").classes("u-training-result")
                row.props(f"data-mark=result-{number} data-passed={str(each['passed']).lower()}")
                with row:
                    ui.icon("check_circle" if each["passed"] else "cancel")
                    with ui.element("div").classes("u-training-words"):
                        ui.label(" · ".join(parts)).classes("u-training-name")
                        ui.label(" ".join(filter(None, (reason, each["why"])))).classes("u-caption")

    # ── certificate ──

    def _certificate(self) -> None:
        made = self._button("certificate", "workspace_premium")
        made.on_click(lambda: CertificateDialog(self._browser))

        @self._browser.on_update
        def update() -> None:
            made.set_enabled(bool(self._status().get("best")))


class CertificateDialog:
    """Asks for the name of the trainee, shows the certificate, and saves it as a text file."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        texts = browser.texts
        with temporary_dialog() as dialog, ui.card().classes("u-dialog u-training-dialog"):
            ui.label(texts("training.certificate")).classes("u-figure")
            self._name = ui.input(texts("training.trainee"), on_change=self._show)
            self._name.props(f"dense outlined maxlength={LONGEST_NAME} data-mark=trainee")
            self._text = ui.element("pre").classes("u-training-certificate")
            self._text.props("data-mark=certificate-text")
            save = dialog_answers(browser, dialog, "training.save", "save-certificate")
            save.on_click(self._save)
        dialog.open()

    async def _found(self) -> Any:
        name = (self._name.value or "").strip()
        if not name:
            return None
        date = await ui.run_javascript(TODAY, timeout=10.0)
        given = {"trainee": name, "date": date, "language": self._browser.texts.language}
        return await self._browser.query("certificate", given)

    async def _show(self) -> None:
        found = await self._found()
        self._text.clear()
        if found is not None:
            with self._text:
                ui.label(found["text"]).classes("u-training-certificate-text")

    async def _save(self) -> None:
        found = await self._found()
        if found is None:
            self._browser.notify_refusal(self._browser.texts("training.no_name"))
        else:
            ui.download.content(found["text"], found["file"], "text/plain")


PAGE = Page(
    name="training",
    key="F9",
    icon="school",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, jog.SCRIPT),
    styles=("training.css",),
    needs="start_exercise",
    opens_for=COURSE,
    keys=KEYS | jog.JOG_KEYS,
)
