"""The pick & place page: camera, scene and diagram of the cycle; beside them control, figures,
gripper, pallet, and the modes of operation."""

import json
from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.camera.settings import camera_settings
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, no_job_notice
from understudy.hmi.page import Page
from understudy.hmi.scene.scene import SCRIPT, layer_button, scene, view_buttons
from understudy.jobs.pick_place.page.changeover import modes, tools
from understudy.jobs.pick_place.page.control import (
    control,
    gripper,
    job_status,
    pallet,
    statistics,
    status,
)
from understudy.jobs.pick_place.page.eye import picture_buttons

LAYERS = ("environment", "camera", "pallet")
PUSHED = ("state", "paused_in", "cycle_count", "success_count", "fail_count", "running")
"""Values of the job that pick_place.js draws."""
UNUSED = ("last",)
"""Values of vision that pick_place.js asks for itself."""


def build(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-pick").props('id="pick-place-page"') as page:
        page.props["data-texts"] = json.dumps(texts.section("pick_place"))
        with ui.element("div").classes("u-pick-main"):
            _views(browser)
            ui.element("div").classes("u-cycle").props("data-mark=diagram")
        with ui.element("aside").classes("u-panel u-pick-panel"):
            status(browser)
            control(browser)
            statistics(browser)
            gripper(browser)
            pallet(browser)
            modes(browser)
            tools(browser)
            camera_settings(browser)
        no_job_notice(browser, "pick_place", "pick_place.no_job")
    browser.show_changes("window.pickPlace.show", lambda: _facts(browser))


def _views(browser: Browser) -> None:
    """Camera and scene: beside each other on a wide screen, else one of them."""
    texts = browser.texts
    with ui.element("div").classes("u-pick-views").props("data-mark=views data-pane=camera"):
        with ui.element("div").classes("u-pick-switch"):
            for pane in ("camera", "scene"):
                select = button(texts(f"pick_place.{pane}"), kind="u-small", mark=f"pane-{pane}")
                select.props(f"data-pane-of={pane}")
                select.on("click", js_handler=f"() => window.pickPlace.pane({pane!r})")
            other = button("⇄", key="t", kind="u-small", hint=texts("pick_place.switch"))
            other.props("data-pane-switch")
            other.on("click", js_handler="() => window.pickPlace.pane()")
            picture_buttons(browser)
        with ui.element("figure").classes("u-eye"):
            ui.element("div").classes("u-eye-picture").props("data-mark=camera")
            ui.label().classes("u-eye-line").props("data-mark=camera-line")
        with ui.element("div").classes("u-scene-area"):
            scene(browser)
            with ui.element("div").classes("u-views").props("data-covers=top"):
                view_buttons(browser)
                for layer in LAYERS:
                    layer_button(browser, layer)


def _facts(browser: Browser) -> dict[str, Any]:
    """What pick_place.js draws."""
    job, vision = job_status(browser), browser.part("vision")
    target = job.get("current_target") or {}
    return {
        "robot": browser.robot if job else "",
        "job": {name: job[name] for name in PUSHED} if job else None,
        "source": not browser.part("pallet"),
        "target": {key: target[key] for key in ("id", "bbox")} if target else None,
        "camera": bool(browser.part("camera")),
        "pallet": browser.part("pallet") or browser.part("source_pallet") or None,
        "vision": {k: v for k, v in vision.items() if k not in UNUSED} or None,
    }


PAGE = Page(
    name="pick_place",
    key="F5",
    icon="back_hand",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "pick_place.js"),
    styles=("pick_place.css",),
    needs="pick_place",
)
