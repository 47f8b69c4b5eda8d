"""The time line page: recordings, and what happened in one of them in 3D, plots and journal."""

from pathlib import Path

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only, page_element
from understudy.hmi.page import Page
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons

KEYS = {"timeline.back": "b", "timeline.forward": "n"}


def build(browser: Browser) -> None:
    """timeline.js fills the lists, and shows the instant that the slider chooses."""
    texts = browser.texts
    with page_element(browser, "timeline", "u-timeline"):
        with ui.element("div").classes("u-scene-area u-timeline-scene"):
            scene(browser)
            view_buttons(browser)
        with ui.element("section").classes("u-card u-timeline-files"):
            ui.label(texts("timeline.recordings")).classes("u-card-title")
            with ui.element("div").classes("u-timeline-row"):
                for name, icon in (("record", "fiber_manual_record"), ("fork", "call_split")):
                    made = button(
                        texts(f"timeline.{name}"),
                        icon=icon,
                        hint=texts(f"timeline.{name}_hint"),
                        mark=f"timeline-{name}",
                        script=f"timeline.{name}()",
                    )
                    operator_only(browser, made)
            ui.element("div").classes("u-timeline-list").props("data-timeline=files")
            ui.element("div").classes("u-caption").props("data-timeline=budget")
        with ui.element("section").classes("u-card u-timeline-marks"):
            ui.label(texts("timeline.marks")).classes("u-card-title")
            ui.element("div").classes("u-timeline-list").props("data-timeline=marks")
        with ui.element("section").classes("u-card u-timeline-journal"):
            ui.label(texts("timeline.journal")).classes("u-card-title")
            ui.element("div").classes("u-timeline-list").props("data-timeline=journal")
        with ui.element("section").classes("u-card u-timeline-line"):
            with ui.element("div").classes("u-timeline-row"):
                for name, icon, step in (
                    ("back", "chevron_left", -0.1),
                    ("forward", "chevron_right", 0.1),
                ):
                    button(
                        "",
                        icon=icon,
                        key=KEYS[f"timeline.{name}"],
                        kind="u-small",
                        hint=texts(f"timeline.{name}"),
                        script=f"timeline.move({step})",
                    )
                ui.element("span").classes("u-timeline-at").props("data-timeline=at")
                ui.element("span").classes("u-caption").props("data-timeline=program")
            ui.element("div").classes("u-timeline-plot").props("data-timeline=plot")
            with ui.element("div").classes("u-timeline-slider"):
                # without `value`: Vue would set it again whenever it renders
                slider = ui.element("input").props("type=range min=0 max=0 step=0.001")
                slider.props["data-timeline"] = "slider"
                slider.props["aria-label"] = texts("timeline.slider")
                ui.element("div").classes("u-timeline-ticks").props("data-timeline=ticks")
    browser.on_robot_change(lambda: browser.call_script("timeline.setRobot", browser.robot))


PAGE = Page(
    name="timeline",
    key="F8",
    icon="history",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "timeline.js"),
    styles=("timeline.css",),
    needs="record_start",
    keys=KEYS,
)
