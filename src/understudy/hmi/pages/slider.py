"""A slider that two turn: the operator's hand, and the cell, which another browser may have told.

What the cell told before it heard of the hand is not shown: the knob stays where it was put until
the order was answered and a picture from after it is there (slider.js).
"""

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.pages.browser import Browser

Turned = Callable[[float], Awaitable[object]]

TURNED = "(event) => emit([Number(event.target.value), window.understudySlider(event.target)])"


class Slider:
    """`turned` hears of a value once the hand has let go."""

    def __init__(
        self, browser: Browser, bounds: tuple[float, float], step: float, turned: Turned
    ) -> None:
        self._seat = browser
        self._turned = turned
        low, high = bounds
        self.element = ui.element("input").classes("u-slider")
        self.element.props(f"type=range min={low:g} max={high:g} step={step:g} data-answered=0")
        self.element.on("change", self._turn, js_handler=TURNED)

    def mark(self, name: str) -> "Slider":
        self.element.props(f"data-mark={name}")
        return self

    def show(self, value: float) -> None:
        """What the cell says it is."""
        self.element.props["data-told"] = f"{value:g}"

    async def _turn(self, event: GenericEventArguments) -> None:
        value, turn = event.args
        await self._turned(float(value))
        await self._seat.picture.refresh()
        self.element.props["data-answered"] = str(int(turn))
