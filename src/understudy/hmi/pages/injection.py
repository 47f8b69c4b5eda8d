"""Faults and events brought about by hand, from the cell's own list of what can go wrong."""

from collections.abc import Iterator, Mapping
from typing import Any

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, passing_dialog, within_reach

PLACES = {"welder": "welder", "pins": "io"}
"""What a fault acts on → the part of a robot with that name, which is also its capability."""
FIRST = ("pulse_input", "arc_fault", "wire_fault", "gas_fault", "ignition_fault", "emergency_stop")


def injection(browser: Browser) -> None:
    """A button for each; those with figures can be given others."""
    place = ui.element("div").classes("u-injection u-simulated")
    within_reach(browser, place, on_real=False)

    def rebuild() -> None:
        place.clear()
        with place:
            found = dict(injectable(browser))
            for fault in sorted(found, key=_rank):
                _fault(browser, fault, found[fault])

    browser.on_choice(rebuild)
    rebuild()


def injectable(browser: Browser) -> Iterator[tuple[str, str]]:
    """Each fault that this robot can have, and where."""
    kind = browser.facts.get("kind", "")
    for name, fault in browser.picture.faults.items():
        if fault["how"] != "brought":
            continue
        acts_on = fault["acts_on"]
        if acts_on in ("any robot", f"robot {kind}"):
            yield name, browser.robot
        elif acts_on in PLACES and browser.can(PLACES[acts_on]):
            yield name, f"{browser.robot}.{PLACES[acts_on]}"


def _rank(fault: str) -> tuple[int, str]:
    return (FIRST.index(fault) if fault in FIRST else len(FIRST), fault)


def _fault(browser: Browser, fault: str, on: str) -> None:
    facts = browser.picture.faults[fault]
    with ui.element("div").classes("u-fault"):
        act = button(browser.texts.of("fault", fault), kind="u-wide", hint=facts["doc"])
        act.props(f'data-fault="{fault}"')
        act.on_click(lambda: browser.ask("inject", {"fault": fault, "on": on}))
        if facts["parameters"]:
            more = button("", icon="tune", hint=browser.texts("inject.figures"))
            more.on_click(lambda: _figures(browser, fault, on, facts["parameters"]).open())


def _figures(browser: Browser, fault: str, on: str, figures: Mapping[str, Any]) -> ui.dialog:
    with passing_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(browser.texts.of("fault", fault)).classes("u-figure")
        fields = {
            name: ui.number(name, value=figure["default"], min=figure["low"], max=figure["high"])
            for name, figure in figures.items()
        }

        async def inject() -> None:
            given = {name: field.value for name, field in fields.items()}
            await browser.ask("inject", {"fault": fault, "on": on, "parameters": given})
            dialog.close()

        with ui.row().classes("u-inline"):
            button(browser.texts("frame.close")).on_click(dialog.close)
            button(browser.texts("inject.do"), kind="u-chosen").on_click(inject)
    return dialog
