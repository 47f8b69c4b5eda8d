"""The calibration page: camera with the target, poses, result; beside them the table of poses,
manual operation and the settings of the camera."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.camera.settings import camera_settings
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, no_job_notice, operator_only
from understudy.hmi.page import Page
from understudy.hmi.pages.program.jog import JogPanel
from understudy.jobs.hand_eye.page.control import control, job_status, remove_all, result, status

JOG_SCRIPT = "/static/pages/program/jog.js"
STEPS = ("place", "capture", "compute", "validate")
PUSHED = (
    "state", "running", "captured", "wanted", "enough", "poses", "coverage", "checked", "doubts",
)  # fmt: skip
"""Values of the job that calibration.js draws."""


def build(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-calib").props('id="calibration-page"') as page:
        page.props["data-texts"] = json.dumps(texts.section("calibration"))
        with ui.element("div").classes("u-calib-main"):
            _steps(browser)
            _preview(browser)
            ui.element("div").classes("u-calib-joints").props("data-mark=joints")
            control(browser)
            status(browser)
        with ui.element("aside").classes("u-panel u-calib-panel"):
            _panels(browser)
        no_job_notice(browser, "hand_eye", "calibration.no_job")
    browser.show_changes("window.calibration.show", lambda: _facts(browser))


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
            depth = button(
                texts("calibration.depth"), key="t", kind="u-small", hint=hint, mark="calib-depth"
            )
            depth.on("click", js_handler="() => window.calibration.depth()")


def _panels(browser: Browser) -> None:
    """Tabs: the poses, manual operation, the camera."""
    panels: Mapping[str, Callable[[], object]] = {
        "poses": lambda: _poses(browser),
        "jog": lambda: JogPanel(browser),
        "camera": lambda: camera_settings(browser),
    }
    with ui.tabs().classes("u-tabs").props("no-caps dense align=justify") as tabs:
        for name in panels:
            ui.tab(name, browser.texts(f"calibration.tab_{name}")).props(f"data-mark=tab-{name}")
    places = ui.tab_panels(tabs, value="poses", animated=False, keep_alive=True)
    with places.classes("u-tab-panels"):
        for name, panel in panels.items():
            with ui.tab_panel(name) as tab:
                panel()
            if name == "jog":
                operator_only(browser, tab)


def _poses(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("section").classes("u-card u-calib-table"):
        with ui.element("div").classes("u-calib-head"):
            ui.element("div").classes("u-card-title").props("data-mark=pose-count")
            remove_all(browser)
        ui.element("div").classes("u-calib-rows").props("data-mark=poses tabindex=0")
    with ui.element("section").classes("u-card"):
        ui.label(texts("calibration.residuals")).classes("u-card-title")
        ui.element("div").classes("u-calib-plot").props("data-mark=residuals")
    with ui.element("section").classes("u-card"):
        ui.label(texts("calibration.coverage")).classes("u-card-title")
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


PAGE = Page(
    name="calibration",
    key="F7",
    icon="center_focus_strong",
    build=build,
    folder=Path(__file__).parent,
    scripts=("calibration.js", JOG_SCRIPT),
    styles=("calibration.css",),
    needs="hand_eye_status",
)
