"""Pins and devices of a robot: inputs that can be forced, outputs, analog values, panels."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    Slider,
    button,
    card,
    fixed,
    keep_filled,
    operator_only,
    set_class,
)

DEFAULT_NAME = re.compile(r"[AD][IO]\d+$")
LOWEST_VOLTS, HIGHEST_VOLTS = 0.0, 10.0

PinRow = Mapping[str, Any]


def digital_pins(browser: Browser) -> None:
    """Inputs left, outputs right; a switch also shows the pins without a name."""
    shows_all = ui.switch(browser.texts("io.all")).classes("u-switch").props("data-mark=all-pins")
    board = ui.element("div").classes("u-board")

    def fill(_: object) -> None:
        for side in ("inputs", "outputs"):
            with ui.element("div").classes("u-pins") as pins:
                ui.label(browser.texts(f"io.{side}")).classes("u-caption")
                for pin in _listed(browser, f"digital_{side}", shows_all.value):
                    (_input if side == "inputs" else _output)(browser, pin["number"])
            operator_only(browser, pins, on_real=False)
        if not browser.can("io"):
            ui.label(browser.texts("io.none")).classes("u-caption")

    keep_filled(browser, board, lambda: (*_board(browser), shows_all.value), fill)
    shows_all.on_value_change(browser.refresh)


def analog_pins(browser: Browser) -> None:
    """Inputs can be forced to a value and released; outputs are shown."""
    board = ui.element("div").classes("u-pins")
    operator_only(browser, board, on_real=False)

    def fill(_: object) -> None:
        ui.label(browser.texts("io.inputs")).classes("u-caption")
        for pin in _listed(browser, "analog_inputs"):
            _analog_input(browser, pin["number"], pin["name"])
        ui.label(browser.texts("io.outputs")).classes("u-caption")
        for pin in _listed(browser, "analog_outputs"):
            _analog_output(browser, pin["number"], pin["name"])

    keep_filled(browser, board, lambda: _board(browser), fill)


# ── single pins ──


def _input(browser: Browser, number: int) -> None:
    name = _pin(browser, "digital_inputs", number)["name"]
    with ui.element("div").classes("u-pin-row"):
        with ui.element("button").classes("u-pin") as box:
            box.props(f'role=checkbox data-pin="DI{number}"')
            ui.element("span").classes("u-box")
            ui.label(name).classes("u-pin-name")
        release = button("F", kind="u-forced", hint=browser.texts("io.release"))
        release.props(f'data-release="DI{number}"')

    pending: list[bool] = []  # levels whose command the cell state does not show yet

    def level() -> bool:
        return pending[-1] if pending else bool(_pin(browser, "digital_inputs", number)["value"])

    async def force() -> None:
        pending.append(value := not level())
        await browser.robot_command("set_input", {"pin": number, "value": value})
        await browser.cell.refresh()
        pending.pop(0)
        update()

    def update() -> None:
        pin = _pin(browser, "digital_inputs", number)
        set_class(box, level())
        box.props(f"aria-checked={str(level()).lower()}")
        release.set_visibility(bool(pin["forced"]))

    box.on("click", force)
    release.on_click(lambda: browser.robot_command("release_input", {"pin": number}))
    browser.on_update(update, element=box)


def _output(browser: Browser, number: int) -> None:
    name = _pin(browser, "digital_outputs", number)["name"]
    with ui.element("div").classes("u-pin").props(f'data-pin="DO{number}"') as row:
        ui.element("span").classes("u-lamp")
        ui.label(name).classes("u-pin-name")

        @browser.on_update
        def update() -> None:
            set_class(row, bool(_pin(browser, "digital_outputs", number)["value"]))


def _analog_input(browser: Browser, number: int, name: str) -> None:
    async def force(value: float | None) -> None:
        await browser.robot_command("set_analog_input", {"pin": number, "value": value})

    with ui.element("div").classes("u-analog").props(f'data-pin="AI{number}"'):
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        slider = Slider(browser, (LOWEST_VOLTS, HIGHEST_VOLTS), 0.1, force)
        release = button("F", kind="u-forced", hint=browser.texts("io.release"))
        release.on_click(lambda: force(None))

        @browser.on_update
        def update() -> None:
            pin = _pin(browser, "analog_inputs", number)
            volts.set_text(f"{fixed(pin['value'], 2)} V")
            slider.show(round(pin["value"], 1))
            release.set_visibility(bool(pin["forced"]))


def _analog_output(browser: Browser, number: int, name: str) -> None:
    with ui.element("div").classes("u-analog").props(f'data-pin="AO{number}"'):
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        level = ui.linear_progress(show_value=False).classes("u-level")
        level.props("color=blue-grey-2 track-color=blue-grey-9")

        @browser.on_update
        def update() -> None:
            value = _pin(browser, "analog_outputs", number)["value"]
            volts.set_text(f"{fixed(value, 2)} V")
            level.set_value(round((value - LOWEST_VOLTS) / (HIGHEST_VOLTS - LOWEST_VOLTS), 3))


def _pins(browser: Browser, side: str) -> Sequence[PinRow]:
    found: Sequence[PinRow] = browser.cell.pins.get(browser.robot, {}).get(side, ())
    return found


def _pin(browser: Browser, side: str, number: int) -> PinRow:
    pins = _pins(browser, side)
    missing = {"name": "", "value": 0, "forced": False}
    return pins[number] if number < len(pins) else missing


def _listed(browser: Browser, side: str, all_pins: bool = False) -> list[PinRow]:
    """The pins with a name of their own; all pins if ``all_pins`` or if none has a name."""
    pins = list(_pins(browser, side))
    named = [pin for pin in pins if not DEFAULT_NAME.match(pin["name"])]
    return pins if all_pins else named or pins


def _board(browser: Browser) -> tuple[str, bool]:
    """The robot, and whether its pins are known: they may arrive after the page."""
    return browser.robot, bool(_pins(browser, "digital_inputs"))


# ── device panels ──


def device_panels(browser: Browser) -> None:
    """A card for each device of the robot, as the device declares it in the query `devices`."""
    panels = ui.element("div").classes("u-devices").props("data-mark=devices")

    def layout() -> list[tuple[str, list[str]]]:
        devices = browser.cell.devices_of(browser.robot)
        return [(each["name"], [row["label"] for row in each["panel"]]) for each in devices]

    def fill(devices: list[tuple[str, list[str]]]) -> None:
        for name, _ in devices:
            device_panel(browser, name)
        if not devices:
            ui.label(browser.texts("device.none")).classes("u-caption")

    keep_filled(browser, panels, layout, fill)


def device_figures(browser: Browser) -> None:
    """The panel rows of the robot's devices in small, over the scene: whatever tab is open."""
    strip = (
        ui.element("section").classes("u-figures").props("data-mark=device-figures data-covers=top")
    )
    rows: dict[tuple[str, str], tuple[ui.element, ui.label]] = {}

    @browser.on_update
    def update() -> None:
        values = {
            (device["name"], row["label"]): row
            for device in browser.cell.devices_of(browser.robot)
            for row in device["panel"]
        }
        strip.set_visibility(bool(values))
        if list(values) != list(rows):
            strip.clear()
            rows.clear()
            with strip:
                rows.update({key: _device_row(browser, key[1]) for key in values})
        for key, value in values.items():
            _show_value(browser, *rows[key], value)


def device_panel(browser: Browser, name: str, *, title: str = "") -> None:
    """A card with the rows, faults and buttons of a device."""

    def device() -> Mapping[str, Any]:
        found = (each for each in browser.cell.devices if each["name"] == name)
        return next(found, {"panel": (), "faults": ()})

    with card(title or name, "u-device") as panel:
        panel.props["data-device"] = name
        rows = [_device_row(browser, row["label"]) for row in device()["panel"]]
        faults = ui.label().classes("u-device-faults")
        _device_buttons(browser, name, device().get("buttons", {}))

    def update() -> None:
        now = device()
        for (row, figure), value in zip(rows, now["panel"], strict=False):
            _show_value(browser, row, figure, value)
        faults.set_text("\n".join(now["faults"]))

    browser.on_update(update, element=panel)


def _device_buttons(browser: Browser, device: str, buttons: Mapping[str, str]) -> None:
    """A button for each command that the device offers without parameters."""
    if not buttons:
        return
    with ui.element("div").classes("u-device-buttons") as row:
        for command, label in buttons.items():
            made = button(browser.texts.translated("device", label), mark=command)
            made.on_click(partial(browser.command, command, {"device": device}))
    operator_only(browser, row, on_real=False)


def _device_row(browser: Browser, label: str) -> tuple[ui.element, ui.label]:
    with ui.element("div").classes("u-device-row") as row:
        row.props["data-row"] = label
        ui.element("span").classes("u-lamp")
        ui.label(browser.texts.translated("device", label)).classes("u-caption")
        figure = ui.label().classes("u-figure")
    return row, figure


def _show_value(
    browser: Browser, row: ui.element, figure: ui.label, value: Mapping[str, Any]
) -> None:
    """A lamp for yes and no, else the value with its unit; the state is the colour."""
    now, state = value["value"], value["state"]
    lit = isinstance(now, bool)
    word = fixed(now, 1) if isinstance(now, float) else browser.texts.of("device_value", str(now))
    text = "" if lit else word
    figure.set_text(f"{text} {value['unit']}".strip())
    set_class(row, lit, "u-lit")
    set_class(row, lit and now)
    for each in ("ok", "warn", "fault"):
        set_class(row, state == each, f"u-device-{each}")
