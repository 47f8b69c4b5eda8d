"""The calibration page: camera with the target, buttons, status and result; beside them the table
of poses, manual operation and the settings of the camera."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    card,
    confirm,
    dialog_answers,
    fixed,
    no_job_notice,
    operator_only,
    page_element,
    progress_bar,
    set_class,
    tab_panels,
    temporary_dialog,
)
from understudy.hmi.link import LinkError
from understudy.hmi.page import Page, show_panel
from understudy.hmi.pages.program import jog
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons
from understudy.jobs.hand_eye.config import MOST_POSES, USUAL_FILE, Method
from understudy.ports.hmi import FILE_EXISTS
from understudy.sight.targets import ENOUGH_POSES

STEPS = ("place", "capture", "compute", "validate")
PUSHED = (
    "state",
    "running",
    "captured",
    "wanted",
    "enough",
    "poses",
    "coverage",
    "checked",
    "doubts",
)
"""Values of the job that calibration.js draws."""
ORDERS = (
    ("do_capture", "add_a_photo", "hand_eye_capture"),
    ("do_delete_last", "backspace", "hand_eye_delete_last"),
    ("do_compute", "calculate", "hand_eye_compute"),
    ("do_validate", "fact_check", "hand_eye_validate"),
)
"""Buttons: name in the texts, icon and command."""
KEYS = {
    "calibration.do_start_hint": "a",
    "calibration.do_cancel_hint": "a",
    "calibration.do_capture_hint": "c",
    "calibration.do_delete_last_hint": "l",
    "calibration.do_compute_hint": "m",
    "calibration.do_validate_hint": "v",
    "calibration.do_save_hint": "w",
    "calibration.do_reset_hint": "z",
    "calibration.depth_hint": "t",
}
METHODS = get_args(Method)
FEWEST, MOST = ENOUGH_POSES, MOST_POSES
"""Poses of an automatic run."""
SEVERITY = {"IDLE": "calm", "DONE": "calm", "CHECK_FAILED": "alarm", "ERROR": "alarm"}
"""Colour of a state; every other one is busy."""
AXES = ("X", "Y", "Z", "RX", "RY", "RZ")


def build(browser: Browser) -> None:
    with page_element(browser, "calibration", "u-calib"):
        with ui.element("div").classes("u-calib-main"):
            _steps(browser)
            with ui.element("div").classes("u-calib-views"):
                _preview(browser)
                with ui.element("div").classes("u-scene-area u-calib-scene"):
                    scene(browser)
                    view_buttons(browser, "camera")
            ui.element("div").classes("u-calib-joints").props("data-mark=joints")
            control(browser)
            status(browser)
        with ui.element("aside").classes("u-panel u-calib-panel"):
            _panels(browser)
        no_job_notice(browser, "hand_eye", "calibration.no_job")
    browser.on_change_of(lambda: _facts(browser), partial(browser.call_script, "calibration.show"))


def _steps(browser: Browser) -> None:
    """The four steps; calibration.js marks those that are done, and the next one."""
    with ui.element("ol").classes("u-calib-steps").props("data-mark=steps"):
        for number, name in enumerate(STEPS, 1):
            with ui.element("li").classes("u-calib-step").props(f"data-step={name}"):
                ui.label(str(number)).classes("u-calib-number")
                ui.label(browser.texts(f"calibration.step_{name}"))


def _preview(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("figure").classes("u-eye u-calib-eye"):
        ui.element("div").classes("u-eye-picture").props("data-mark=preview")
        with ui.element("div").classes("u-calib-eye-line"):
            ui.element("div").classes("u-calib-found").props("data-mark=detected role=status")
            ui.element("div").classes("u-caption u-calib-why").props("data-mark=not-detected")
            hint = texts("calibration.depth_hint")
            button(
                texts("calibration.depth"),
                key=KEYS["calibration.depth_hint"],
                kind="u-small",
                hint=hint,
                mark="calib-depth",
                script="calibration.depth()",
            )


def _panels(browser: Browser) -> None:
    """Tabs: the poses, manual operation, the camera."""
    texts = browser.texts
    panels = {
        "poses": (texts("calibration.tab_poses"), lambda: _poses(browser)),
        "jog": (texts("calibration.tab_jog"), lambda: jog.JogPanel(browser)),
        "camera": (texts("calibration.tab_camera"), lambda: show_panel(browser, "camera")),
    }
    operator_only(browser, tab_panels(panels, keep_alive=True)["jog"])


def _poses(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("section").classes("u-card u-calib-table"):
        with ui.element("div").classes("u-calib-head"):
            ui.element("div").classes("u-card-title").props("data-mark=pose-count")
            remove_all(browser)
        ui.element("div").classes("u-calib-rows").props("data-mark=poses tabindex=0")
    with card(texts("calibration.residuals")):
        ui.element("div").classes("u-calib-plot").props("data-mark=residuals")
    with card(texts("calibration.coverage")):
        ui.element("div").classes("u-calib-coverage").props("data-mark=coverage")
        ui.label().classes("u-caption").props("data-mark=coverage-advice")
    result(browser)


def _facts(browser: Browser) -> dict[str, Any]:
    """What calibration.js draws."""
    job = job_status(browser)
    return {
        "robot": browser.robot if job else "",
        "job": {name: job[name] for name in PUSHED} if job else None,
        "result": bool(job.get("result")),
        "camera": browser.part("camera") or None,
        "joints": [joint["name"] for joint in browser.facts.get("joints", ())],
    }


def job_status(browser: Browser) -> Mapping[str, Any]:
    """The status of the calibration of the chosen robot; empty if it has none."""
    return browser.part("hand_eye")


# ── buttons ──


def control(browser: Browser) -> None:
    """Buttons of the calibration. None is disabled by its state: the cell says why it refuses."""
    with ui.element("section").classes("u-calib-buttons") as row:
        start = _button(browser, "do_start", "play_arrow", "u-go")
        start.on_click(lambda: _start(browser))
        cancel = _button(browser, "do_cancel", "stop", "u-chosen")
        cancel.on_click(lambda: browser.robot_command("hand_eye_cancel"))
        for name, icon, command in ORDERS:
            order = _button(browser, name, icon)
            order.on_click(partial(browser.robot_command, command))
        save = _button(browser, "do_save", "save")
        save.on_click(lambda: SaveDialog(browser).dialog.open())
    operator_only(browser, row, on_real=False)

    @browser.on_update
    def update() -> None:
        running = bool(job_status(browser).get("running"))
        start.set_visibility(not running)
        cancel.set_visibility(running)


def remove_all(browser: Browser) -> None:
    """Removes all poses, after a confirmation."""

    async def reset() -> None:
        await browser.robot_command("hand_eye_reset")

    def ask() -> None:
        question = browser.texts("calibration.reset_question")
        confirm(browser, question, reset, answer="calibration.do_reset", mark="do-reset")

    remove = _button(browser, "do_reset", "delete_sweep", "u-small").on_click(ask)
    operator_only(browser, remove, on_real=False)


def _button(browser: Browser, name: str, icon: str, kind: str = "") -> ui.button:
    texts, mark = browser.texts, name.removeprefix("do_").replace("_", "-")
    hint = f"calibration.{name}_hint"
    return button(
        texts(f"calibration.{name}"),
        icon=icon,
        key=KEYS[hint],
        kind=kind,
        hint=texts(hint),
        mark=f"calib-{mark}",
    )


# ── dialogs ──


async def _start(browser: Browser) -> None:
    """Asks for the settings of an automatic run, once it is sure that it can start."""
    if await browser.order("hand_eye_start", {"check": True}):
        _automatic(browser).open()


def _automatic(browser: Browser) -> ui.dialog:
    """Number of poses and method of an automatic run."""
    texts = browser.texts
    with temporary_dialog() as dialog, ui.card().classes("u-dialog u-calib-dialog"):
        ui.label(texts("calibration.automatic")).classes("u-figure")
        ui.label(texts("calibration.automatic_note")).classes("u-caption")
        job = job_status(browser)
        bounds = texts("calibration.poses_bounds").format(fewest=FEWEST, most=MOST)
        poses = ui.number(
            texts("calibration.poses_wanted"),
            value=job.get("wanted", FEWEST),
            validation=lambda value: None if value in range(FEWEST, MOST + 1) else bounds,
        )
        poses.props("dense outlined data-mark=auto-poses")
        names = {name: texts.of("calibration.methods", name) for name in METHODS}
        method = ui.select(
            names, value=job.get("method", METHODS[0]), label=texts("calibration.method")
        )
        method.props("dense outlined options-dense data-mark=auto-method")

        async def begin() -> None:
            if not poses.validate():
                return
            given = {"poses": int(poses.value), "method": method.value}
            if await browser.robot_command("hand_eye_start", given) is not None:
                dialog.close()

        dialog_answers(browser, dialog, "calibration.do_start", "auto-begin").on_click(begin)
    return dialog


class SaveDialog:
    """The name of the file, in the folder for files on the machine of the cell. A file that exists
    already is replaced after a second press."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        texts = browser.texts
        self._failed = bool(job_status(browser).get("doubts"))
        self._word = "calibration.do_save_anyway" if self._failed else "calibration.do_save"
        with temporary_dialog() as self.dialog, ui.card().classes("u-dialog u-calib-dialog"):
            ui.label(texts("calibration.save_title")).classes("u-figure")
            folder = browser.cell.status.get("files", "")
            ui.label(texts("calibration.folder").format(folder=folder)).classes("u-caption")
            self._name = ui.input(texts("calibration.file"), value=USUAL_FILE)
            self._name.props("dense outlined data-mark=save-name")
            if self._failed:
                warning = ui.label(texts("calibration.save_failed")).classes("u-alarm")
                warning.props("data-mark=save-failed")
            self._exists = ui.label().classes("u-alarm").props("data-mark=save-exists role=alert")
            self._save = dialog_answers(browser, self.dialog, self._word, "do-save")
        self._name.on_value_change(lambda: self._ask_to_replace(""))
        self._save.on_click(self._write)

    def _ask_to_replace(self, file: str) -> None:
        texts = self._browser.texts
        self._exists.set_text(texts("calibration.exists").format(file=file) if file else "")
        self._save.set_text(texts("calibration.do_replace" if file else self._word))

    async def _write(self) -> None:
        browser, file = self._browser, self._name.value or ""
        replace = bool(self._exists.text)
        given = {"robot": browser.robot, "file": file, "force": self._failed, "replace": replace}
        saved = await browser.attempt("hand_eye_save", given)
        if not isinstance(saved, LinkError):
            self.dialog.close()
            text = browser.texts("calibration.saved").format(file=saved["file"])
            browser.notice(text, "positive")
        elif saved.code == FILE_EXISTS:
            self._ask_to_replace(file)
        else:
            browser.notify_refusal(saved.message)


# ── status ──


def status(browser: Browser) -> None:
    """State, what to do next, progress, error and reprojection error."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-calib-status"):
        with ui.element("div").classes("u-calib-line"):
            word = ui.label().props("data-mark=calib-state")
            advice = ui.label().classes("u-calib-advice").props("data-mark=calib-advice")
        bar = progress_bar("calib-progress", "light-blue-4")
        with ui.element("div").classes("u-calib-line"):
            ui.label(texts("calibration.reprojection")).classes("u-caption")
            error = ui.label().classes("u-figure").props("data-mark=reprojection")
            more = ui.label().classes("u-caption").props("data-mark=calib-counts")

    @browser.on_update
    def update() -> None:
        job = job_status(browser)
        if not job:
            return
        word.set_text(texts(f"calibration.states.{job['state']}"))
        word.classes(replace=f"u-calib-word u-{SEVERITY.get(job['state'], 'busy')}")
        advice.set_text(advice_of(browser, job))
        set_class(advice, bool(job["error"]), "u-alarm")
        bar.set_visibility(job["running"])
        bar.set_value(round(job["progress"], 2))
        error.set_text(_reprojection(job))
        more.set_text(_counts(browser, job))


def advice_of(browser: Browser, job: Mapping[str, Any]) -> str:
    """What is wrong, or what to do next."""
    texts = browser.texts
    if job["error"] and job["state"] != "CHECK_FAILED":
        return texts.of_cell(job["error"])
    if job["running"]:
        return texts("calibration.advice.running")
    if job["doubts"]:
        return _doubt(browser, job["doubts"][0])
    if job["result"] is not None:
        return texts(f"calibration.advice.{'save' if job['checked'] else 'unchecked'}")
    if not job["captured"]:
        return texts("calibration.advice.first")
    if missing := [row["direction"] for row in job["coverage"] if row["missing"]]:
        return texts("calibration.advice.turn").format(directions=", ".join(missing))
    return texts(f"calibration.advice.{'compute' if job['enough'] else 'more'}")


def _doubt(browser: Browser, doubt: Mapping[str, Any]) -> str:
    """Why the result must not be used."""
    percent = doubt["percent"]
    larger = browser.texts(f"calibration.{'larger' if percent > 0 else 'smaller'}")
    text = browser.texts(f"calibration.doubts.{doubt['kind']}")
    return text.format(mm=fixed(doubt["mm"], 2), percent=fixed(abs(percent), 2), larger=larger)


def _reprojection(job: Mapping[str, Any]) -> str:
    found = job["result"]
    if found is None:
        return "-- mm"
    pixels = found["reprojection_error_px"]
    return f"{fixed(found['reprojection_error_mm'], 3)} mm" + (
        f" · {fixed(pixels, 3)} px" if pixels else ""
    )


def _counts(browser: Browser, job: Mapping[str, Any]) -> str:
    """Error of poses that were not used, checks, and poses that were left out."""
    texts, found = browser.texts, job["result"]
    words = []
    if found is not None and found["held_out_mm"] is not None:
        words.append(texts("calibration.held_out").format(value=fixed(found["held_out_mm"], 3)))
    if job["checked"]:
        passed = sum(check["passed"] for check in job["checked"])
        worst = max(check["distance_mm"] for check in job["checked"])
        text = texts("calibration.checks")
        words.append(text.format(passed=passed, count=len(job["checked"]), worst=fixed(worst, 3)))
    if job["left_out"]:
        words.append(texts("calibration.left_out").format(count=job["left_out"]))
    return " · ".join(words)


# ── result ──


def result(browser: Browser) -> None:
    """The camera that was found; hidden without a result."""
    texts = browser.texts
    with ui.element("section").classes("u-card").props("data-mark=calib-result") as card:
        title = ui.label().classes("u-card-title")
        with ui.element("div").classes("u-calib-camera"):
            figures = [_figure(axis) for axis in AXES]
        matrix = ui.element("pre").classes("u-calib-matrix").props("data-mark=matrix")
        with matrix:
            rows = ui.label()

    @browser.on_update
    def update() -> None:
        found = job_status(browser).get("result")
        card.set_visibility(found is not None)
        if found is None:
            return
        method = texts.of("calibration.methods", found["method"])
        title.set_text(f"{texts.of('calibration.mounts', found['mount'])} · {method}")
        deviations = [*found["deviations_mm"], *found["deviations_deg"]]
        for n, (label, value, spread) in enumerate(
            zip(figures, found["camera_mm_deg"], deviations, strict=True)
        ):
            unit = " mm" if n < 3 else "°"
            label.set_text(f"{fixed(value, 3)} ± {fixed(spread, 3)}{unit}")
        rows.set_text("\n".join(_matrix_row(row) for row in found["matrix"]))


def _figure(axis: str) -> ui.label:
    with ui.element("div").classes("u-calib-figure"):
        ui.label(axis).classes("u-caption")
        return ui.label()


def _matrix_row(row: list[float]) -> str:
    *turn, shift = row
    return " ".join([*(fixed(value, 5).rjust(9) for value in turn), fixed(shift, 3).rjust(10)])


PAGE = Page(
    name="calibration",
    key="F7",
    icon="center_focus_strong",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "calibration.js", jog.SCRIPT),
    styles=("calibration.css",),
    needs="hand_eye_status",
    opens_for="hand_eye",
    keys=KEYS | jog.JOG_KEYS,
)
