"""The plots page: joints, speeds, torques and device values of the last minutes."""

from pathlib import Path

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, page_element
from understudy.hmi.page import Page

PLOTS = ("positions", "velocities", "torques", "devices")
SPANS_S = {10: "10 s", 60: "60 s", 120: "2 min", 600: "10 min"}
EXPORTS = ("csv", "png", "svg")

KEYS = {"plots.freeze": "h"}


def build(browser: Browser) -> None:
    """plots.js draws the charts, and requests rows only while the page is visible."""
    texts = browser.texts
    with page_element(browser, "plots", "u-plots"):
        with ui.element("div").classes("u-plot-bar"):
            ui.label(texts("plots.span")).classes("u-caption")
            for span, name in SPANS_S.items():
                select = button(name, kind="u-small", script=f"plots.setSpan({span})")
                select.props(f'data-span="{span}"')
            hold = button(
                texts("plots.freeze"),
                icon="pause",
                key=KEYS["plots.freeze"],
                script="plots.freeze()",
            )
            hold.props('data-plots="freeze"')
            for kind in EXPORTS:
                hint, script = texts(f"plots.save_{kind}"), f"plots.download({kind!r})"
                save = button(kind.upper(), icon="download", hint=hint, script=script)
                save.props(f'data-export="{kind}"')
        for plot in PLOTS:
            with ui.element("section").classes("u-plot"):
                ui.label(texts(f"plots.{plot}")).classes("u-card-title")
                ui.element("div").classes("u-chart").props(f'data-plot="{plot}"')
                if plot == "torques":
                    ui.label(texts("plots.no_torques")).classes("u-hint")
    browser.on_robot_change(lambda: browser.call_script("plots.setRobot", browser.robot))


PAGE = Page(
    name="plots",
    key="F3",
    icon="show_chart",
    build=build,
    folder=Path(__file__).parent,
    scripts=("plots.js",),
    styles=("plots.css",),
    keys=KEYS,
)
