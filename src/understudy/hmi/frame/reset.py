"""Clearing of alarms, after a question if robots would then move by themselves."""

from collections.abc import Sequence
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import dialog_answers, temporary_dialog

RESET = "reset"
MOST_NAMES = 5
"""Robots that the question names."""


async def clear(browser: Browser, commands: Sequence[str], robot: str = "") -> None:
    """Sends the commands, to one robot if it is named. Tasks of a stopped robot begin with its
    reset: the user is asked first."""
    if RESET in commands:
        await browser.cell.refresh()  # a task may have come since the page was updated
    waiting = waiting_tasks(browser, robot) if RESET in commands else {}
    if waiting:
        _question(browser, commands, robot, waiting).open()
    else:
        await _send(browser, commands, robot)


def waiting_tasks(browser: Browser, robot: str = "") -> dict[str, int]:
    """Robots whose tasks begin with a reset, and how many they have."""
    return {
        name: facts["waiting_tasks"]
        for name, facts in browser.cell.robots.items()
        if facts.get("waiting_tasks") and robot in ("", name)
    }


async def _send(browser: Browser, commands: Sequence[str], robot: str) -> None:
    for command in commands:
        given: dict[str, Any] = {"robot": robot} if robot and command == RESET else {}
        if await browser.command(command, given) is not None and command == RESET:
            ui.notify(browser.texts("time.was_reset"), position="top")


def _question(
    browser: Browser, commands: Sequence[str], robot: str, waiting: dict[str, int]
) -> ui.dialog:
    texts = browser.texts
    with temporary_dialog() as dialog, ui.card().classes("u-dialog").props("data-mark=reset-moves"):
        names = ", ".join(list(waiting)[:MOST_NAMES]) + (" …" if len(waiting) > MOST_NAMES else "")
        ui.label(texts("frame.reset_moves").format(robots=names)).classes("u-figure")
        ui.label(texts("frame.reset_tasks").format(count=sum(waiting.values())))

        async def send() -> None:
            dialog.close()
            await _send(browser, commands, robot)

        dialog_answers(browser, dialog, "frame.reset", "do-reset-cell").on_click(send)
    return dialog
