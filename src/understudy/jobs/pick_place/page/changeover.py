"""Modes of operation and tools: requests with a confirmation, steps, progress, retry, abort."""

from collections.abc import Mapping
from typing import Any, get_args

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    dialog_answers,
    operator_only,
    progress_bar,
    set_class,
    temporary_dialog,
)
from understudy.ports.modes import TargetMode


def modes(browser: Browser) -> None:
    """The mode of operation; hidden for a robot without modes."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-modes").props("data-mark=modes") as card:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.mode")).classes("u-card-title")
            word = ui.label().classes("u-figure").props("data-mark=operation-mode")
        with ui.element("div").classes("u-pick-mode-row") as row:
            choices = {mode: _choice(browser, mode) for mode in get_args(TargetMode)}
        operator_only(browser, row, on_real=False)
        change = _changeover(browser)

    def update() -> None:
        now = browser.part("modes")
        card.set_visibility(bool(now))
        if not now:
            return
        settled = now["step"] == "SETTLED"
        word.set_text(now["mode"] if settled else f"{now['mode']} → {now['target']}")
        row.set_visibility(settled)
        change.set_visibility(not settled)
        for mode, choice in choices.items():
            set_class(choice, mode == now["mode"], "u-chosen")

    browser.on_update(update)


def _choice(browser: Browser, mode: str) -> ui.button:
    name = browser.texts(f"pick_place.modes.{mode}")
    choice = button(name, kind="u-small", mark=f"mode-{mode}")
    return choice.on_click(lambda: _confirm_mode(browser, mode).open())


def _confirm_mode(browser: Browser, mode: str) -> ui.dialog:
    """Asks before the robot moves to its park position and its tool is changed."""
    texts = browser.texts

    async def change() -> None:
        await browser.robot_command("request_mode", {"mode": mode})

    name = texts(f"pick_place.modes.{mode}")
    title = texts("pick_place.change_mode").format(mode=name)
    return _confirmation(browser, title, texts("pick_place.change_mode_hint"), change)


def _confirmation(browser: Browser, title: str, hint: str, action: Any) -> ui.dialog:
    with temporary_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(title).classes("u-figure")
        ui.label(hint)

        async def do() -> None:
            dialog.close()
            await action()

        dialog_answers(browser, dialog, "pick_place.change", "do-change").on_click(do)
    return dialog


def _changeover(browser: Browser) -> ui.element:
    """Step and progress of a changeover, its error, and the commands that it waits for."""
    texts = browser.texts
    with ui.element("div").classes("u-pick-change").props("data-mark=changeover") as change:
        step = ui.label().classes("u-pick-step").props("data-mark=change-step")
        words = ui.label().classes("u-quiet").props("data-mark=change-words")
        bar = progress_bar("change-progress", "amber-5")
        error = ui.label().classes("u-pick-what u-alarm").props("data-mark=change-error")
        with ui.element("div").classes("u-pick-mode-row") as row:
            confirm = button("", kind="u-go", mark="confirm-tool")
            confirm.on_click(lambda: browser.robot_command("confirm_tool"))
            retry = button(texts("pick_place.retry"), mark="retry-change")
            retry.on_click(lambda: browser.robot_command("retry_changeover"))
            abort = button(texts("pick_place.abort"), mark="abort-change")
            abort.on_click(lambda: browser.robot_command("abort_changeover"))
        operator_only(browser, row, on_real=False)

    def update() -> None:
        now = browser.part("modes")
        if not now:
            return
        tool = _tool_name(browser, now["tool"])
        step.set_text(now["step"])
        words.set_text(texts(f"pick_place.steps.{now['step']}").format(tool=tool))
        bar.set_value(round(now["progress"], 2))
        error.set_text(now["error"])
        confirm.set_text(texts("pick_place.mounted").format(tool=tool))
        confirm.set_visibility(now["step"] == "CONFIRM_TOOL")
        retry.set_visibility(now["step"] == "FAILED")

    browser.on_update(update)
    return change


# ── tools ──


def tools(browser: Browser) -> None:
    """The mounted tool and, with a tool changer, changes at the docks; hidden without tools."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-tools").props("data-mark=tools") as card:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.tool")).classes("u-card-title")
            word = ui.label().classes("u-figure").props("data-mark=active-tool")
        row = ui.element("div").classes("u-pick-mode-row")
        operator_only(browser, row, on_real=False)
        with ui.element("div").classes("u-pick-change") as change:
            phase = ui.label().classes("u-pick-step").props("data-mark=tool-phase")
            bar = progress_bar("tool-progress", "amber-5")
            error = ui.label().classes("u-pick-what u-alarm").props("data-mark=tool-error")
            cancel = button(texts("pick_place.cancel"), mark="cancel-tool")
            cancel.on_click(lambda: browser.robot_command("cancel_tool_change"))
            operator_only(browser, cancel, on_real=False)
    buttons: dict[int, ui.button] = {}

    def fill(numbers: list[int]) -> None:
        row.clear()
        buttons.clear()
        with row:
            buttons.update({number: _tool_choice(browser, number) for number in numbers})

    def update() -> None:
        table, now = browser.part("tools"), browser.part("tool_change")
        card.set_visibility(bool(table))
        if not table:
            return
        word.set_text(_tool_name(browser, table["active"]))
        numbers = [each["number"] for each in table["tools"]] if now else []
        if numbers != list(buttons):
            fill(numbers)
        for number, choice in buttons.items():
            set_class(choice, number == table["active"], "u-chosen")
        _show_change(now, change, phase, bar, error, cancel)

    browser.on_update(update)


def _show_change(
    now: Mapping[str, Any],
    change: ui.element,
    phase: ui.label,
    bar: ui.linear_progress,
    error: ui.label,
    cancel: ui.button,
) -> None:
    under_way = bool(now) and now["phase"] != "IDLE"
    change.set_visibility(under_way or bool(now and now["error"]))
    cancel.set_visibility(under_way)
    if now:
        phase.set_text(now["phase"])
        bar.set_value(round(now["progress"], 2))
        error.set_text(now["error"])


def _tool_choice(browser: Browser, number: int) -> ui.button:
    name = _tool_name(browser, number)

    async def change() -> None:
        await browser.robot_command("change_tool", {"tool": number})

    def ask() -> None:
        title = browser.texts("pick_place.change_tool").format(tool=name)
        _confirmation(browser, title, browser.texts("pick_place.change_mode_hint"), change).open()

    return button(name, kind="u-small", mark=f"tool-{number}").on_click(ask)


def _tool_name(browser: Browser, number: int) -> str:
    """Number and name of a tool, e.g. `T2 gripper`."""
    rows = browser.part("tools").get("tools", ())
    name = next((each["name"] for each in rows if each["number"] == number), "")
    return f"T{number} {name}".strip()
