"""The log page: active alarms with advice, events of the cell and traffic on its wires."""

from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.cell_state import ActiveAlarm
from understudy.hmi.frame.widgets import button, clear, keep_filled, operator_only, page_element
from understudy.hmi.page import Page
from understudy.hmi.texts import Texts

KINDS = (
    *("alarm", "fault", "collision", "program", "state", "mode", "message"),
    *("unexpected", "traffic"),
)
"""Kinds of rows that have a filter button, beside the kinds of the cell's devices."""

KEYS = {"log.freeze": "h"}


def build(browser: Browser) -> None:
    with page_element(browser, "log", "u-log", script_texts(browser.texts)):
        with ui.element("section").classes("u-alarms"):
            with ui.element("div").props("data-mark=alarms"):
                _alarms(browser)
            _addresses(browser)
        with ui.element("section").classes("u-record"):
            _filters(browser)
            ui.element("div").classes("u-log-rows").props("id=rows data-mark=log-rows")


def script_texts(texts: Texts) -> dict[str, str]:
    """Texts of log.js; advice by its English sentence."""
    advice = {f"advice {en}": text for en, text in texts.translations("advice").items()}
    return {**texts.section("log"), **advice}


def _alarms(browser: Browser) -> None:
    """Cards of the active alarms."""
    ui.label(browser.texts("log.alarms")).classes("u-card-title")
    cards = ui.element("div").classes("u-alarm-cards")

    def fill(alarms: list[ActiveAlarm]) -> None:
        for alarm in alarms:
            _alarm(browser, alarm)
        if not alarms:
            with ui.element("div").classes("u-alarm-card u-fine"):
                ui.icon("check_circle")
                ui.label(browser.texts("frame.no_alarm")).classes("u-alarm-title")

    keep_filled(browser, cards, browser.cell.alarms, fill)


def _alarm(browser: Browser, alarm: ActiveAlarm) -> None:
    with ui.element("div").classes("u-alarm-card"):
        ui.icon("warning")
        with ui.element("div").classes("u-alarm-text"):
            ui.label(f"{alarm.robot}: {browser.texts.of_cell(alarm.text)}").classes("u-alarm-title")
            if alarm.what_to_do:
                ui.label(browser.texts("log.what_to_do")).classes("u-caption")
                advice = ui.label(browser.texts.translated("advice", alarm.what_to_do))
                advice.classes("u-advice").props("data-mark=advice")
        reset = button(browser.texts("frame.reset"), icon="restart_alt")
        operator_only(browser, reset)
        if alarm.of_job:
            reset.on_click(lambda: browser.command(alarm.clears, {"robot": alarm.robot}))
        else:
            reset.on_click(lambda: clear(browser, [alarm.clears], alarm.robot))


def _addresses(browser: Browser) -> None:
    """Where the clients of the robots connect: ports, and the paths of serial ports."""
    ui.label(browser.texts("log.addresses")).classes("u-card-title u-addresses-title")
    rows = ui.element("dl").classes("u-addresses").props("data-mark=addresses")

    def addresses() -> dict[str, Any]:
        robots = browser.cell.robots.values()
        return {k: v for robot in robots for k, v in robot.get("addresses", {}).items()}

    def fill(found: dict[str, Any]) -> None:
        for endpoint, address in found.items():
            with ui.element("dt"):
                ui.label(endpoint)
            with ui.element("dd"):
                ui.label(address.removeprefix("pty:"))

    keep_filled(browser, rows, addresses, fill)


def _filters(browser: Browser) -> None:
    """Buttons and fields by which log.js filters the rows."""
    texts = browser.texts
    devices = dict.fromkeys(device["kind"] for device in browser.cell.devices)
    with ui.element("div").classes("u-log-bar"):
        for kind in (*KINDS, *devices):
            script = f"log.toggle({kind!r})"
            toggle = button(texts.of("log", kind), kind="u-small u-filter", script=script)
            toggle.props(f'data-kind="{kind}"')
    with ui.element("div").classes("u-log-bar"):
        where = ui.element("div").classes("u-where").props('data-log="where"')
        where.props["aria-label"] = texts("log.where")
        search = ui.element("input").classes("u-name").props('data-log="search" type=search')
        search.props["placeholder"] = texts("log.search")
        count = ui.element("div").classes("u-caption u-count").props('data-log="count"')
        count.props("data-mark=log-count")
        hold = button(
            texts("log.freeze"), icon="pause", key=KEYS["log.freeze"], script="log.freeze()"
        )
        hold.props('data-log="freeze"')
        button("", icon="download", hint=texts("log.save"), script="log.download()")


PAGE = Page(
    name="log",
    key="F4",
    icon="list_alt",
    build=build,
    folder=Path(__file__).parent,
    scripts=("log.js",),
    styles=("log.css",),
    keys=KEYS,
)
