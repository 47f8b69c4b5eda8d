"""The robot's pins by name: inputs that can be forced, outputs as lamps, analog values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, light, within_reach
from understudy.hmi.pages.slider import Slider

NUMBERED = re.compile(r"[AD][IO]\d+$")
LOWEST_VOLTS, HIGHEST_VOLTS = 0.0, 10.0

PinRow = Mapping[str, Any]


def digital_pins(browser: Browser) -> None:
    """Inputs left, outputs right; pins without a name only when asked for."""
    shows_all = ui.switch(browser.texts("io.all")).classes("u-switch").props("data-mark=all-pins")
    board = ui.element("div").classes("u-board")

    def rebuild() -> None:
        board.clear()
        with board:
            for side in ("inputs", "outputs"):
                with ui.element("div").classes("u-pins") as pins:
                    ui.label(browser.texts(f"io.{side}")).classes("u-caption")
                    for pin in _listed(browser, f"digital_{side}", shows_all.value):
                        (_input if side == "inputs" else _output)(browser, pin["number"])
                within_reach(browser, pins, on_real=False)
            if not browser.can("io"):
                ui.label(browser.texts("io.none")).classes("u-caption")

    _on_new_board(browser, rebuild)
    shows_all.on_value_change(rebuild)


def analog_pins(browser: Browser) -> None:
    """Inputs can be pulled to a value, and let go; outputs are shown."""
    board = ui.element("div").classes("u-pins")
    within_reach(browser, board, on_real=False)

    def rebuild() -> None:
        board.clear()
        with board:
            ui.label(browser.texts("io.inputs")).classes("u-caption")
            for pin in _listed(browser, "analog_inputs", False):
                _analog_input(browser, pin["number"], pin["name"])
            ui.label(browser.texts("io.outputs")).classes("u-caption")
            for pin in _listed(browser, "analog_outputs", False):
                _analog_output(browser, pin["number"], pin["name"])

    _on_new_board(browser, rebuild)


# ── one pin each ──


def _input(browser: Browser, number: int) -> None:
    name = _pin(browser, "digital_inputs", number)["name"]
    with ui.element("div").classes("u-pin-row"):
        with ui.element("button").classes("u-pin") as box:
            box.props(f'role=checkbox data-pin="DI{number}"')
            ui.element("span").classes("u-box")
            ui.label(name).classes("u-pin-name")
        release = button("F", kind="u-forced", hint=browser.texts("io.release"))
        release.props(f'data-release="DI{number}"')

    orders: list[bool] = []  # those that the picture does not show yet

    def level() -> bool:
        return orders[-1] if orders else bool(_pin(browser, "digital_inputs", number)["value"])

    async def force() -> None:
        orders.append(value := not level())
        await browser.order("set_input", {"pin": number, "value": value})
        await browser.picture.refresh()
        orders.pop(0)
        update()

    def update() -> None:
        pin = _pin(browser, "digital_inputs", number)
        light(box, level())
        box.props(f"aria-checked={str(level()).lower()}")
        release.set_visibility(bool(pin["forced"]))

    box.on("click", force)
    release.on_click(lambda: browser.order("release_input", {"pin": number}))
    browser.each_round(update, while_there=box)


def _output(browser: Browser, number: int) -> None:
    name = _pin(browser, "digital_outputs", number)["name"]
    with ui.element("div").classes("u-pin").props(f'data-pin="DO{number}"') as row:
        ui.element("span").classes("u-lamp")
        ui.label(name).classes("u-pin-name")

    def update() -> None:
        light(row, bool(_pin(browser, "digital_outputs", number)["value"]))

    browser.each_round(update, while_there=row)


def _analog_input(browser: Browser, number: int, name: str) -> None:
    async def pull(value: float | None) -> None:
        await browser.order("set_analog_input", {"pin": number, "value": value})

    with ui.element("div").classes("u-analog").props(f'data-pin="AI{number}"') as row:
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        slider = Slider(browser, (LOWEST_VOLTS, HIGHEST_VOLTS), 0.1, pull)
        release = button("F", kind="u-forced", hint=browser.texts("io.release"))

    def update() -> None:
        pin = _pin(browser, "analog_inputs", number)
        volts.set_text(f"{pin['value']:.2f} V")
        slider.show(round(pin["value"], 1))
        release.set_visibility(bool(pin["forced"]))

    release.on_click(lambda: pull(None))
    browser.each_round(update, while_there=row)


def _analog_output(browser: Browser, number: int, name: str) -> None:
    with ui.element("div").classes("u-analog").props(f'data-pin="AO{number}"') as row:
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        level = ui.linear_progress(show_value=False).classes("u-level")
        level.props("color=blue-grey-2 track-color=blue-grey-9")

    def update() -> None:
        value = _pin(browser, "analog_outputs", number)["value"]
        volts.set_text(f"{value:.2f} V")
        level.set_value(round((value - LOWEST_VOLTS) / (HIGHEST_VOLTS - LOWEST_VOLTS), 3))

    browser.each_round(update, while_there=row)


# ── inside ──


def _pins(browser: Browser, side: str) -> Sequence[PinRow]:
    found: Sequence[PinRow] = browser.picture.pins.get(browser.robot, {}).get(side, ())
    return found


def _pin(browser: Browser, side: str, number: int) -> PinRow:
    pins = _pins(browser, side)
    nothing = {"name": "", "value": 0, "forced": False}
    return pins[number] if number < len(pins) else nothing


def _listed(browser: Browser, side: str, nameless: bool) -> list[PinRow]:
    """Those with a name, which is more than kind and number; all, where nobody named any."""
    pins = list(_pins(browser, side))
    named = [pin for pin in pins if not NUMBERED.match(pin["name"])]
    return pins if nameless else named or pins


def _on_new_board(browser: Browser, rebuild: Any) -> None:
    """Now, for another robot, and when its pins are known at last."""
    known = [""]

    def update() -> None:
        board = f"{browser.robot} {bool(_pins(browser, 'digital_inputs'))}"
        if board != known[0]:
            known[0] = board
            rebuild()

    browser.each_round(update)
