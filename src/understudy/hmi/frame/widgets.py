"""Widgets that pages share: figures, buttons, cards, tabs, dialogs and sliders."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from json import dumps
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser

RESET = "reset"
MOST_NAMES = 5
"""Robots that the question before a reset names."""
CHANGED = "(event) => emit([Number(event.target.value), window.understudySlider(event.target)])"


def fixed(value: float, digits: int) -> str:
    """A number with this many decimals; a value that rounds to zero has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


# ── elements ──


def page_element(
    browser: Browser, name: str, kind: str, texts: Mapping[str, str] | None = None
) -> ui.element:
    """The element in which the script of a page builds its part, with the id `NAME-page`.

    ``kind``: CSS classes; ``texts``: of the script, by default the section of the page."""
    page = ui.element("div").classes(kind).props(f'id="{name.replace("_", "-")}-page"')
    page.props["data-texts"] = dumps(browser.texts.section(name) if texts is None else texts)
    page.props["data-robot"] = browser.robot
    page.props["data-role"] = browser.role
    return page


def card(title: str, kind: str = "", *, mark: str = "") -> ui.element:
    """A card with a title. ``kind``: more CSS classes."""
    made = ui.element("section").classes(f"u-card {kind}")
    if mark:
        made.props["data-mark"] = mark
    with made:
        ui.label(title).classes("u-card-title")
    return made


def button(
    text: str,
    *,
    icon: str = "",
    key: str = "",
    kind: str = "",
    hint: str = "",
    mark: str = "",
    script: str = "",
) -> ui.button:
    """A button. ``key`` presses it and appears in the list of keys; ``kind``: more CSS classes;
    ``mark``: its `data-mark`, by which scripts and tests find it; ``script``: what a click runs in
    the browser, as `log.freeze()`."""
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
    if script:
        made.on("click", js_handler=f"() => window.{script}")
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


def keep_filled(
    browser: Browser, place: ui.element, facts: Callable[[], Any], fill: Callable[[Any], object]
) -> None:
    """Fills an element by ``fill(facts())`` now, and anew when these facts have changed."""

    def show(found: Any) -> None:
        place.clear()
        with place:
            fill(found)

    browser.on_change_of(facts, show)


def tab_panels(
    panels: Mapping[str, tuple[str, Callable[[], object]]], *, keep_alive: bool = False
) -> dict[str, ui.tab_panel]:
    """Tabs with the name, label and content of each panel; the first one is open.

    ``keep_alive``: a panel that is not shown stays in the browser."""
    with ui.tabs().classes("u-tabs").props("no-caps dense align=justify") as tabs:
        for name, (label, _) in panels.items():
            ui.tab(name, label).props(f"data-mark=tab-{name}")
    made = {}
    places = ui.tab_panels(tabs, value=next(iter(panels)), animated=False, keep_alive=keep_alive)
    with places.classes("u-tab-panels"):
        for name, (_, build) in panels.items():
            with ui.tab_panel(name) as made[name]:
                build()
    return made


def progress_bar(mark: str, color: str) -> ui.linear_progress:
    bar = ui.linear_progress(show_value=False).classes("u-progress")
    bar.props(f"data-mark={mark} color={color} track-color=blue-grey-9 instant-feedback")
    return bar


def no_job_notice(browser: Browser, kind: str, text: str) -> None:
    """A notice over the page if the chosen robot has no such job. ``text``: key of the words."""
    with ui.element("div").classes("u-no-job").props("data-mark=no-job") as notice:
        ui.icon("block")
        label = ui.label().classes("u-figure")

    @browser.on_update
    def update() -> None:
        parts = browser.cell.status.get("parts", {})
        able = [name.partition(".")[0] for name in parts if name.endswith(f".{kind}")]
        notice.set_visibility(bool(parts) and browser.robot not in able)
        words = browser.texts(text).format(robot=browser.robot, robots=", ".join(able))
        label.set_text(words)


# ── dialogs ──


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


def confirm(
    browser: Browser,
    question: str,
    action: Callable[[], Awaitable[object]],
    *,
    answer: str,
    hint: str = "",
    mark: str = "",
) -> ui.card:
    """Opens a dialog that asks before it acts. ``answer``: key of the words of the button that
    acts; ``mark``: of that button."""
    with temporary_dialog() as dialog, ui.card().classes("u-dialog") as card:
        ui.label(question).classes("u-figure")
        if hint:
            ui.label(hint)

        async def act() -> None:
            dialog.close()
            await action()

        dialog_answers(browser, dialog, answer, mark).on_click(act)
    dialog.open()
    return card


async def confirm_command(
    browser: Browser,
    question: str,
    command: str,
    parameters: Mapping[str, Any],
    *,
    answer: str,
    hint: str = "",
    mark: str = "",
) -> None:
    """Asks before it sends a command to the chosen robot, unless the cell would refuse it: the
    command has the parameter `check`."""

    async def send() -> None:
        await browser.robot_command(command, {**parameters})

    if await browser.query(command, {"robot": browser.robot, **parameters, "check": True}) is None:
        return
    confirm(browser, question, send, answer=answer, hint=hint, mark=mark)


async def clear(
    browser: Browser, commands: Sequence[str], robot: str = "", *, hint: str = "frame.reset_tasks"
) -> None:
    """Sends commands that clear alarms, to one robot if it is named. Tasks of a stopped robot begin
    with its reset: the user is asked first. ``hint``: key of the words on their count."""

    async def send() -> None:
        for command in commands:
            given = {"robot": robot} if robot and command == RESET else {}
            if await browser.command(command, given) is not None and command == RESET:
                browser.notice(browser.texts("time.was_reset"))

    if RESET in commands:
        await browser.cell.refresh()  # a task may have come since the page was updated
    waiting = waiting_tasks(browser, robot) if RESET in commands else {}
    if not waiting:
        return await send()
    names = ", ".join(list(waiting)[:MOST_NAMES]) + (" …" if len(waiting) > MOST_NAMES else "")
    question = browser.texts("frame.reset_moves").format(robots=names)
    tasks = browser.texts(hint).format(count=sum(waiting.values()))
    asked = confirm(browser, question, send, answer="frame.reset", hint=tasks, mark="do-reset-cell")
    asked.props("data-mark=reset-moves")
    return None


def waiting_tasks(browser: Browser, robot: str = "") -> dict[str, int]:
    """Robots whose tasks begin with a reset, and how many they have."""
    return {
        name: facts["waiting_tasks"]
        for name, facts in browser.cell.robots.items()
        if facts.get("waiting_tasks") and robot in ("", name)
    }


# ── sliders ──


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
