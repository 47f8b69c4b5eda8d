"""Plots: joints, speeds, torques and the weld current of the last minute."""

import json

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button

HEAD = """
<link rel="stylesheet" href="/static/program.css">
<script type="module" src="/static/plots.js"></script>
"""
PLOTS = ("positions", "velocities", "torques", "weld")
SPANS_S = (10, 30, 60, 120)


def build(browser: Browser) -> None:
    """plots.js draws them; it asks only while somebody can see them."""
    ui.add_head_html(HEAD)
    texts = browser.texts
    with ui.element("div").classes("u-plots").props('id="plots-page"') as page:
        page.props["data-robot"] = browser.robot
        page.props["data-words"] = json.dumps(texts.section("plots"))
        with ui.element("div").classes("u-plot-bar"):
            ui.label(texts("plots.span")).classes("u-caption")
            for span in SPANS_S:
                pick = button(f"{span} s", kind="u-small").props(f'data-span="{span}"')
                pick.on("click", js_handler=f"() => window.plots.look({span})")
            hold = button(texts("plots.freeze"), icon="pause", key="h").props('data-plots="freeze"')
            hold.on("click", js_handler="() => window.plots.freeze()")
            save = button(texts("plots.save"), icon="download")
            save.on("click", js_handler="() => window.plots.download()")
        for plot in PLOTS:
            with ui.element("section").classes("u-plot"):
                ui.label(texts(f"plots.{plot}")).classes("u-card-title")
                ui.element("div").classes("u-chart").props(f'data-plot="{plot}"')
                if plot == "torques":
                    ui.label(texts("plots.weightless")).classes("u-hint")

    def turn() -> None:
        ui.run_javascript(f"window.plots.turnTo({json.dumps(browser.robot)})")

    browser.on_choice(turn)
