"""The cell page: the scene with its layers, and beside it time, pins, devices and faults."""

import asyncio
from json import dumps
from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only
from understudy.hmi.page import Page
from understudy.hmi.pages.cell.devices import (
    analog_pins,
    device_figures,
    device_panels,
    digital_pins,
)
from understudy.hmi.pages.cell.setup import setup
from understudy.hmi.pages.cell.simulation import fault_buttons, metrics, time_control
from understudy.hmi.scene.scene import SCRIPT, layer_button, scene, view_buttons

LAYERS = (
    "environment", "ghost", "preview", "trail", "volumes", "workspace", "reach", "frames",
)  # fmt: skip
CLEAR_KEYS = {"trail": "c", "preview": "v", "contacts": "x"}
PANELS = {
    "digital": ("io.digital", digital_pins),
    "analog": ("io.analog", analog_pins),
    "devices": ("device.title", device_panels),
    "faults": ("faults.title", fault_buttons),
    "setup": ("setup.title", setup),
}
REACH_RESOLUTION_MM = 100.0
REACH_POLL_SECONDS = 0.3


def build(browser: Browser) -> None:
    with ui.element("div").classes("u-cell"):
        with ui.element("div").classes("u-scene-area"):
            scene(browser)
            with ui.element("div").classes("u-views").props("data-covers=top"):
                view_buttons(browser)
            _layers(browser)
            device_figures(browser)
            _reach_legend(browser)
            # filled by scene.js
            ui.element("div").classes("u-readout").props('id="readout" data-covers=bottom')
        with ui.element("aside").classes("u-panel"):
            _panel(browser)
    _draw_preview(browser)


def _panel(browser: Browser) -> None:
    ui.label(browser.texts("cell.simulated_only")).classes("u-only-real")
    time_control(browser)
    metrics(browser)
    with ui.tabs().classes("u-tabs").props("no-caps dense inline-label align=justify") as tabs:
        for name, (text, _) in PANELS.items():
            ui.tab(name, browser.texts(text)).props(f"data-mark=tab-{name}")
    with ui.tab_panels(tabs, value="digital", animated=False).classes("u-tab-panels"):
        for name, (_, panel) in PANELS.items():
            with ui.tab_panel(name):
                panel(browser)


def _layers(browser: Browser) -> None:
    with ui.element("div").classes("u-layers").props("data-covers=left"):
        ui.label(browser.texts("layer.title")).classes("u-caption")
        for layer in LAYERS:
            switch = layer_button(browser, layer)
            if layer == "reach":
                operator_only(browser, switch)
                browser.on_event("reach_requested", lambda _: _compute_reach(browser))
        ui.label(browser.texts("clear.title")).classes("u-caption")
        for mark, key in CLEAR_KEYS.items():
            clear = button(browser.texts(f"clear.{mark}"), key=key, kind="u-over")
            clear.props(f'data-clear="{mark}"')
            clear.on("click", js_handler=f"() => window.understudy.clear({mark!r})")
            if mark != "preview":
                operator_only(browser, clear)
            if mark == "trail":  # trails and contacts are the cell's: all browsers show them
                clear.on_click(
                    lambda: browser.robot_command("clear_trail") if browser.can("trail") else None
                )
            elif mark == "contacts":
                clear.on_click(lambda: browser.command("clear_collisions"))


def _reach_legend(browser: Browser) -> None:
    """Colours of the reach layer; scene.js shows it with the layer."""
    texts = browser.texts
    with ui.element("div").classes("u-legend").props("data-mark=reach-legend hidden"):
        ui.label(texts("reach.legend"))
        ui.element("div").classes("u-legend-bar")
        with ui.element("div").classes("u-legend-ends"):
            ui.label(texts("reach.few"))
            ui.label(texts("reach.many"))


def _draw_preview(browser: Browser) -> None:
    """Draws the path of a program when the program is loaded."""
    drawn: dict[str, int] = {}

    def update() -> None:
        program = browser.cell.status.get("parts", {}).get(f"{browser.robot}.program", {})
        checksum = program.get("checksum", 0)
        if drawn.get(browser.robot, 0) != checksum:
            drawn[browser.robot] = checksum
            ui.run_javascript(f"window.understudy.preview({dumps(browser.robot)})")

    browser.on_update(update)


# ── reach ──


async def _compute_reach(browser: Browser) -> None:
    """Starts a background run, waits for it, and has the scene fetch its result."""
    robot = browser.robot
    parameters = {"robot": robot, "resolution_mm": REACH_RESOLUTION_MM}
    run = await browser.command("start_run", {"kind": "reach", "parameters": parameters})
    if run is None:
        return
    notice = ui.notification(browser.texts("reach.computing"), spinner=True, timeout=None)
    try:
        ended = await _ended_run(browser, run["id"], notice)
    finally:
        notice.dismiss()
    if ended["state"] == "done":
        ui.run_javascript(f"window.understudy.reach({dumps(robot)}, {ended['id']})")
    else:
        browser.notify_refusal(ended["error"] or ended["state"])


async def _ended_run(browser: Browser, number: int, notice: ui.notification) -> Any:
    """The run, once it is neither waiting nor running; ``notice`` shows its progress."""
    while True:
        runs = await browser.query("runs")
        run = next((each for each in runs or () if each["id"] == number), None)
        if run is None:
            return {"id": number, "state": "failed", "error": browser.texts("reach.lost")}
        if run["state"] not in ("waiting", "running"):
            return run
        notice.message = f"{browser.texts('reach.computing')} {run['progress']:.0%}"
        await asyncio.sleep(REACH_POLL_SECONDS)


PAGE = Page(
    name="cell",
    key="F1",
    icon="precision_manufacturing",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "setup.js"),
    styles=("cell.css",),
    path="/",
)
