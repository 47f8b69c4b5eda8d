"""The fleet page: a map of all mobile robots, a table of them, one in detail, and their events.

The scripts draw everything from one message of arrays for all robots (`/ws/fleet`); this module
builds the places and the buttons.
"""

from pathlib import Path

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import RESET, button, clear, operator_only, page_element
from understudy.hmi.page import Page
from understudy.hmi.texts import Texts

LAYERS = ("names", "lidar", "routes", "markers")
FILTERS = ("all", "moving", "held", "faulty")
LISTS = ("events", "tasks")
KEYS = {
    "fleet.zoom_in": "+",
    "fleet.zoom_out": "-",
    "fleet.fit": "f",
    "fleet.follow": "w",
    **{f"fleet.{layer}": str(number) for number, layer in enumerate(LAYERS, 1)},
    "fleet.only_chosen": "o",
    "fleet.drive": "g",
    "fleet.task": "t",
    "fleet.stop": "s",
    "fleet.hold": "h",
    "fleet.release": "Alt+h",
    "fleet.estop": "e",
    "fleet.reset": "k",
}


def build(browser: Browser) -> None:
    with page_element(browser, "fleet", "u-fleet"):
        with ui.element("section").classes("u-fleet-main"):
            _map(browser)
            _events(browser.texts)
        with ui.element("section").classes("u-fleet-side"):
            _table(browser.texts)
            ui.element("div").classes("u-fleet-details").props("data-fleet=details tabindex=0")
    browser.on_event("fleet_choose", lambda event: _choose(browser, event))
    browser.on_event("fleet_reset", lambda event: _reset(browser, event))
    browser.on_robot_change(lambda: browser.call_script("fleet.choose", browser.robot, False))


def _choose(browser: Browser, event: GenericEventArguments) -> None:
    """A robot was chosen on the map or in the table: the frame shows it, too."""
    name = event.args
    if isinstance(name, str) and name in browser.cell.robots and name != browser.robot:
        browser.choose(name)


async def _reset(browser: Browser, event: GenericEventArguments) -> None:
    await clear(browser, [RESET], str(event.args), hint="fleet.reset_tasks")


def _map(browser: Browser) -> None:
    """The canvas, with the orders to the chosen robot above and the buttons of the view below."""
    texts = browser.texts
    with ui.element("div").classes("u-map"):
        canvas = ui.element("canvas").props('id=map data-mark=map tabindex=0 role="application"')
        canvas.props["aria-label"] = texts("fleet.map_label")
        with ui.element("div").classes("u-map-top"):
            _orders(browser)
            place = ui.element("div").classes("u-map-hint").props("data-fleet=hint role=status")
            place.props("data-mark=map-hint")
        with ui.element("div").classes("u-map-bar"):
            for name, icon in (("in", "add"), ("out", "remove")):
                key = KEYS[f"fleet.zoom_{name}"]
                hint, script = texts(f"fleet.zoom_{name}"), f"fleet.zoom({name!r})"
                button("", icon=icon, key=key, hint=hint, script=script)
            for name, icon in (("fit", "fit_screen"), ("follow", "my_location")):
                key = KEYS[f"fleet.{name}"]
                text, script = texts(f"fleet.{name}"), f"fleet.{name}()"
                button(text, icon=icon, key=key, kind="u-small", mark=name, script=script)
            for layer in LAYERS:
                text, script = texts(f"fleet.{layer}"), f"fleet.layer({layer!r})"
                key = KEYS[f"fleet.{layer}"]
                toggle = button(text, key=key, kind="u-small", script=script)
                toggle.props(f"data-layer={layer}")


def _events(texts: Texts) -> None:
    with ui.element("div").classes("u-fleet-events"):
        with ui.element("div").classes("u-fleet-line"):
            for name in LISTS:
                shown = button(
                    texts(f"fleet.{name}"), kind="u-small", script=f"fleet.list({name!r})"
                )
                shown.props(f"data-list={name}")
            text, script = texts("fleet.only_chosen"), "fleet.onlyChosen()"
            key = KEYS["fleet.only_chosen"]
            button(text, key=key, kind="u-small", mark="only-chosen", script=script)
            link = ui.element("div").classes("u-fleet-link").props("data-fleet=link role=status")
            link.props("data-mark=nats")
        rows = ui.element("div").classes("u-fleet-event-rows").props("data-fleet=events tabindex=0")
        rows.props("data-mark=fleet-events")
        tasks = ui.element("div").classes("u-fleet-event-rows").props("data-fleet=tasks tabindex=0")
        tasks.props("data-mark=fleet-tasks hidden")


def _table(texts: Texts) -> None:
    """Search, filters and the table; fleet.js fills it, and makes only the rows in view."""
    with ui.element("div").classes("u-fleet-table"):
        with ui.element("div").classes("u-fleet-line"):
            search = ui.element("input").classes("u-name").props("data-fleet=search type=search")
            search.props("data-mark=fleet-search")
            search.props["placeholder"] = texts("fleet.search")
            count = ui.element("div").classes("u-caption").props("data-fleet=count")
            count.props("data-mark=fleet-count")
        with ui.element("div").classes("u-fleet-line u-fleet-filters"):
            for name in FILTERS:
                script = f"fleet.filter({name!r})"
                chip = button(texts(f"fleet.{name}"), kind="u-small", script=script)
                chip.props(f"data-filter={name}")
        table = ui.element("div").classes("u-fleet-grid").props("data-fleet=table role=grid")
        table.props("data-mark=fleet-table tabindex=0")
        table.props["aria-label"] = texts("fleet.robots")
        table.props["aria-multiselectable"] = "true"


def _orders(browser: Browser) -> None:
    """Buttons of the orders to the chosen robot."""
    texts = browser.texts
    orders = (
        ("drive", "near_me", ""),
        ("task", "route", ""),
        ("stop", "stop", ""),
        ("hold", "pan_tool", ""),
        ("estop", "report", "u-fleet-estop"),
        ("reset", "restart_alt", ""),
    )
    with ui.element("div").classes("u-fleet-orders") as place:
        chosen = ui.element("div").classes("u-fleet-chosen").props("data-fleet=chosen")
        chosen.props("data-mark=fleet-chosen")
        for name, icon, kind in orders:
            order = button(
                texts(f"fleet.{name}"),
                icon=icon,
                key=KEYS[f"fleet.{name}"],
                kind=f"u-small {kind}",
                mark=f"fleet-{name}",
                script=f"fleet.{name}()",
            )
            order.props(f"data-order={name}")
            order.props["title"] = texts(f"fleet.{name}_hint")
    operator_only(browser, place)


PAGE = Page(
    name="fleet",
    key="F6",
    icon="map",
    build=build,
    folder=Path(__file__).parent,
    scripts=("fleet.js",),
    styles=("fleet.css",),
    needs="fleet",
    opens_for="mobile",
    keys=KEYS,
)
