"""Widgets that pages share: buttons, sliders, dialogs, and elements for operators only."""

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser

CHANGED = "(event) => emit([Number(event.target.value), window.understudySlider(event.target)])"


def button(
    text: str, *, icon: str = "", key: str = "", kind: str = "", hint: str = "", mark: str = ""
) -> ui.button:
    """A button. ``key`` presses it and appears in the list of keys; ``kind``: more CSS classes;
    ``mark``: its `data-mark`, by which scripts and tests find it."""
    made = ui.button(text, icon=icon or None, color=None).classes(f"u-button {kind}")
    made.props("no-caps unelevated")
    if mark:
        made.props["data-mark"] = mark
    if key:
        made.props(f'data-key="{key}"')
        made.props["data-does"] = hint or text
    if hint:
        made.props["aria-label"] = hint
        made.tooltip(f"{hint}  [{key}]" if key else hint)
    return made


def set_class(element: ui.element, on: bool, name: str = "u-on") -> None:
    """Adds or removes a CSS class."""
    element.classes(add=name if on else "", remove="" if on else name)


def operator_only(browser: Browser, element: ui.element, *, on_real: bool = True) -> None:
    """Disables an element for viewers; with ``on_real=False`` also while the robot is REAL."""

    def update() -> None:
        disabled = browser.role == "viewer" or (browser.is_real and not on_real)
        element.props(add="inert" if disabled else "", remove="" if disabled else "inert")

    browser.on_update(update, element=element)


def progress_bar(mark: str, color: str) -> ui.linear_progress:
    bar = ui.linear_progress(show_value=False).classes("u-progress")
    bar.props(f"data-mark={mark} color={color} track-color=blue-grey-9 instant-feedback")
    return bar


def no_job_notice(browser: Browser, kind: str, text: str) -> None:
    """A notice over the page if the chosen robot has no such job. ``text``: key of the words."""
    with ui.element("div").classes("u-no-job").props("data-mark=no-job") as notice:
        ui.icon("block")
        label = ui.label().classes("u-figure")

    def update() -> None:
        parts = browser.cell.status.get("parts", {})
        able = [name.partition(".")[0] for name in parts if name.endswith(f".{kind}")]
        notice.set_visibility(bool(parts) and browser.robot not in able)
        words = browser.texts(text).format(robot=browser.robot, robots=", ".join(able))
        label.set_text(words)

    browser.on_update(update)


def temporary_dialog() -> ui.dialog:
    """A dialog that is deleted when it closes."""
    dialog = ui.dialog()
    dialog.on("hide", dialog.delete)
    return dialog


def dialog_answers(browser: Browser, dialog: ui.dialog, text: str, mark: str = "") -> ui.button:
    """The last row of a dialog: *Close*, and the button that acts, which is returned. ``text``: key
    of its words."""
    with ui.row().classes("u-inline"):
        button(browser.texts("frame.close")).on_click(dialog.close)
        return button(browser.texts(text), kind="u-chosen", mark=mark)


class Slider:
    """A slider for a value of the cell, which other browsers may change as well.

    While the user drags it, and until the command of the last drag is answered and the cell state
    refreshed, values from before that command are not shown (slider.js)."""

    def __init__(
        self,
        browser: Browser,
        bounds: tuple[float, float],
        step: float,
        changed: Callable[[float], Awaitable[object]],
    ) -> None:
        """``changed`` is called with the new value when the user releases the slider."""
        self._browser = browser
        self._changed = changed
        low, high = bounds
        self.element = ui.element("input").classes("u-slider")
        self.element.props(f"type=range min={low:g} max={high:g} step={step:g} data-answered=0")
        self.element.on("change", self._on_change, js_handler=CHANGED)

    def mark(self, name: str) -> "Slider":
        self.element.props(f"data-mark={name}")
        return self

    def show(self, value: float) -> None:
        """Shows the value of the cell."""
        self.element.props["data-value"] = f"{value:g}"

    async def _on_change(self, event: GenericEventArguments) -> None:
        value, number = event.args
        await self._changed(float(value))
        await self._browser.cell.refresh()
        self.element.props["data-answered"] = str(int(number))
