"""The plots page: joints, speeds, torques and device values of the last minutes."""

import json
from pathlib import Path

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button
from understudy.hmi.page import Page

PLOTS = ("positions", "velocities", "torques", "devices")
SPANS_S = {10: "10 s", 60: "60 s", 120: "2 min", 600: "10 min"}
EXPORTS = ("csv", "png", "svg")


def build(browser: Browser) -> None:
    """plots.js draws the charts, and requests rows only while the page is visible."""
    texts = browser.texts
    with ui.element("div").classes("u-plots").props('id="plots-page"') as page:
        page.props["data-robot"] = browser.robot
        script_texts = {**texts.section("plots"), "not_done": texts("frame.not_done")}
        page.props["data-texts"] = json.dumps(script_texts)
        with ui.element("div").classes("u-plot-bar"):
            ui.label(texts("plots.span")).classes("u-caption")
            for span, name in SPANS_S.items():
                select = button(name, kind="u-small").props(f'data-span="{span}"')
                select.on("click", js_handler=f"() => window.plots.setSpan({span})")
            hold = button(texts("plots.freeze"), icon="pause", key="h").props('data-plots="freeze"')
            hold.on("click", js_handler="() => window.plots.freeze()")
            for kind in EXPORTS:
                save = button(kind.upper(), icon="download", hint=texts(f"plots.save_{kind}"))
                save.props(f'data-export="{kind}"')
                save.on("click", js_handler=f"() => window.plots.download({kind!r})")
        for plot in PLOTS:
            with ui.element("section").classes("u-plot"):
                ui.label(texts(f"plots.{plot}")).classes("u-card-title")
                ui.element("div").classes("u-chart").props(f'data-plot="{plot}"')
                if plot == "torques":
                    ui.label(texts("plots.no_torques")).classes("u-hint")
    browser.on_robot_change(
        lambda: ui.run_javascript(f"window.plots.setRobot({json.dumps(browser.robot)})")
    )


PAGE = Page(
    name="plots",
    key="F3",
    icon="show_chart",
    build=build,
    folder=Path(__file__).parent,
    scripts=("plots.js",),
    styles=("plots.css",),
)
