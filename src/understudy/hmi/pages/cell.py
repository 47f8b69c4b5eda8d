"""The cell page: the scene with its switches, and the simulation panel beside it."""

from json import dumps

from nicegui import ui

from understudy.hmi.pages import stage
from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, within_reach
from understudy.hmi.pages.injection import injection
from understudy.hmi.pages.pins import analog_pins, digital_pins
from understudy.hmi.pages.reach import compute_reach
from understudy.hmi.pages.timing import metrics, time_control

LAYERS = (
    "environment", "ghost", "preview", "trail", "volumes", "workspace", "reach", "frames",
)  # fmt: skip
CLEARED = {"trail": "c", "preview": "v", "contacts": "x"}


def build(browser: Browser) -> None:
    ui.add_head_html('<script type="module" src="/static/scene.js"></script>')
    with ui.element("div").classes("u-cell"):
        with ui.element("div").classes("u-stage"):
            stage.scene(browser)
            with ui.element("div").classes("u-views"):
                stage.views(browser)
            _layers(browser)
            _readout()
        with ui.element("aside").classes("u-panel"):
            _panel(browser)
    _preview(browser)


def _panel(browser: Browser) -> None:
    ui.label(browser.texts("mode.simulated_only")).classes("u-only-real")
    time_control(browser)
    metrics(browser)
    with ui.tabs().classes("u-tabs").props("no-caps dense inline-label align=justify") as tabs:
        names = {key: ui.tab(key, browser.texts(f"io.{key}")) for key in ("digital", "analog")}
        names["inject"] = ui.tab("inject", browser.texts("inject.title"))
    with ui.tab_panels(tabs, value="digital", animated=False).classes("u-tab-panels"):
        with ui.tab_panel(names["digital"]):
            digital_pins(browser)
        with ui.tab_panel(names["analog"]):
            analog_pins(browser)
        with ui.tab_panel(names["inject"]):
            injection(browser)


def _layers(browser: Browser) -> None:
    with ui.element("div").classes("u-layers"):
        ui.label(browser.texts("layer.title")).classes("u-caption")
        for layer in LAYERS:
            switch = stage.layer(browser, layer)
            if layer == "reach":
                within_reach(browser, switch)
                ui.on("reach_wanted", lambda: compute_reach(browser))
        ui.label(browser.texts("clear.title")).classes("u-caption")
        for mark, key in CLEARED.items():
            wipe = button(browser.texts(f"clear.{mark}"), key=key, kind="u-over")
            wipe.props(f'data-clear="{mark}"')
            wipe.on("click", js_handler=f"() => window.understudy.clear({mark!r})")
            if mark != "preview":
                within_reach(browser, wipe)
            if mark == "trail":  # trails and contacts are the cell's, for every browser
                wipe.on_click(
                    lambda: browser.order("clear_trail") if browser.can("welder") else None
                )
            elif mark == "contacts":
                wipe.on_click(lambda: browser.ask("clear_collisions"))


def _readout() -> None:
    """Filled by scene.js with every frame: joints and tip of the chosen robot."""
    ui.element("div").classes("u-readout").props('id="readout"')


def _preview(browser: Browser) -> None:
    """The way of a program is drawn when it is loaded."""
    drawn: dict[str, int] = {}

    def update() -> None:
        reading = browser.picture.status.get("parts", {}).get(f"{browser.robot}.program", {})
        checksum = reading.get("checksum", 0)
        if drawn.get(browser.robot, 0) != checksum:
            drawn[browser.robot] = checksum
            ui.run_javascript(f"window.understudy.preview({dumps(browser.robot)})")

    browser.each_round(update)
