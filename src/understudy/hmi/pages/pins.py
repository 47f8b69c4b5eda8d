"""The robot's pins by name: inputs that can be forced, outputs as lamps, analog values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from understudy.hmi.pages.frame import button, light, within_reach
from understudy.hmi.pages.seat import Seat
from understudy.hmi.pages.slider import Slider

NUMBERED = re.compile(r"[AD][IO]\d+$")
LOWEST_VOLTS, HIGHEST_VOLTS = 0.0, 10.0

PinRow = Mapping[str, Any]


def digital_pins(seat: Seat) -> None:
    """Inputs left, outputs right; pins without a name only when asked for."""
    shows_all = ui.switch(seat.texts("io.all")).classes("u-switch").props("data-mark=all-pins")
    board = ui.element("div").classes("u-board")

    def rebuild() -> None:
        board.clear()
        with board:
            for side in ("inputs", "outputs"):
                with ui.element("div").classes("u-pins") as pins:
                    ui.label(seat.texts(f"io.{side}")).classes("u-caption")
                    for pin in _listed(seat, f"digital_{side}", shows_all.value):
                        (_input if side == "inputs" else _output)(seat, pin["number"])
                within_reach(seat, pins, on_real=False)
            if not seat.can("io"):
                ui.label(seat.texts("io.none")).classes("u-caption")

    _on_new_board(seat, rebuild)
    shows_all.on_value_change(rebuild)


def analog_pins(seat: Seat) -> None:
    """Inputs can be pulled to a value, and let go; outputs are shown."""
    board = ui.element("div").classes("u-pins")
    within_reach(seat, board, on_real=False)

    def rebuild() -> None:
        board.clear()
        with board:
            ui.label(seat.texts("io.inputs")).classes("u-caption")
            for pin in _listed(seat, "analog_inputs", False):
                _analog_input(seat, pin["number"], pin["name"])
            ui.label(seat.texts("io.outputs")).classes("u-caption")
            for pin in _listed(seat, "analog_outputs", False):
                _analog_output(seat, pin["number"], pin["name"])

    _on_new_board(seat, rebuild)


# ── one pin each ──


def _input(seat: Seat, number: int) -> None:
    name = _pin(seat, "digital_inputs", number)["name"]
    with ui.element("div").classes("u-pin-row"):
        with ui.element("button").classes("u-pin") as box:
            box.props(f'role=checkbox data-pin="DI{number}"')
            ui.element("span").classes("u-box")
            ui.label(name).classes("u-pin-name")
        release = button("F", kind="u-forced", hint=seat.texts("io.release"))
        release.props(f'data-release="DI{number}"')

    orders: list[bool] = []  # those that the picture does not show yet

    def level() -> bool:
        return orders[-1] if orders else bool(_pin(seat, "digital_inputs", number)["value"])

    async def force() -> None:
        orders.append(value := not level())
        await seat.order("set_input", {"pin": number, "value": value})
        await seat.picture.refresh()
        orders.pop(0)
        update()

    def update() -> None:
        pin = _pin(seat, "digital_inputs", number)
        light(box, level())
        box.props(f"aria-checked={str(level()).lower()}")
        release.set_visibility(bool(pin["forced"]))

    box.on("click", force)
    release.on_click(lambda: seat.order("release_input", {"pin": number}))
    seat.each_round(update, while_there=box)


def _output(seat: Seat, number: int) -> None:
    name = _pin(seat, "digital_outputs", number)["name"]
    with ui.element("div").classes("u-pin").props(f'data-pin="DO{number}"') as row:
        ui.element("span").classes("u-lamp")
        ui.label(name).classes("u-pin-name")

    def update() -> None:
        light(row, bool(_pin(seat, "digital_outputs", number)["value"]))

    seat.each_round(update, while_there=row)


def _analog_input(seat: Seat, number: int, name: str) -> None:
    async def pull(value: float | None) -> None:
        await seat.order("set_analog_input", {"pin": number, "value": value})

    with ui.element("div").classes("u-analog").props(f'data-pin="AI{number}"') as row:
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        slider = Slider(seat, (LOWEST_VOLTS, HIGHEST_VOLTS), 0.1, pull)
        release = button("F", kind="u-forced", hint=seat.texts("io.release"))

    def update() -> None:
        pin = _pin(seat, "analog_inputs", number)
        volts.set_text(f"{pin['value']:.2f} V")
        slider.show(round(pin["value"], 1))
        release.set_visibility(bool(pin["forced"]))

    release.on_click(lambda: pull(None))
    seat.each_round(update, while_there=row)


def _analog_output(seat: Seat, number: int, name: str) -> None:
    with ui.element("div").classes("u-analog").props(f'data-pin="AO{number}"') as row:
        ui.label(name).classes("u-pin-name")
        volts = ui.label().classes("u-figure")
        level = ui.linear_progress(show_value=False).classes("u-level")
        level.props("color=blue-grey-2 track-color=blue-grey-9")

    def update() -> None:
        value = _pin(seat, "analog_outputs", number)["value"]
        volts.set_text(f"{value:.2f} V")
        level.set_value(round((value - LOWEST_VOLTS) / (HIGHEST_VOLTS - LOWEST_VOLTS), 3))

    seat.each_round(update, while_there=row)


# ── inside ──


def _pins(seat: Seat, side: str) -> Sequence[PinRow]:
    found: Sequence[PinRow] = seat.picture.pins.get(seat.robot, {}).get(side, ())
    return found


def _pin(seat: Seat, side: str, number: int) -> PinRow:
    pins = _pins(seat, side)
    nothing = {"name": "", "value": 0, "forced": False}
    return pins[number] if number < len(pins) else nothing


def _listed(seat: Seat, side: str, nameless: bool) -> list[PinRow]:
    """Those with a name, which is more than kind and number; all, where nobody named any."""
    pins = list(_pins(seat, side))
    named = [pin for pin in pins if not NUMBERED.match(pin["name"])]
    return pins if nameless else named or pins


def _on_new_board(seat: Seat, rebuild: Any) -> None:
    """Now, for another robot, and when its pins are known at last."""
    known = [""]

    def update() -> None:
        board = f"{seat.robot} {bool(_pins(seat, 'digital_inputs'))}"
        if board != known[0]:
            known[0] = board
            rebuild()

    seat.each_round(update)
