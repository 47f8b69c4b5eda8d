"""The cloud of points that the tool can reach: computed on request, outside the cell."""

import asyncio
from json import dumps
from typing import Any

from nicegui import ui

from understudy.hmi.pages.browser import Browser

RESOLUTION_MM = 100.0
LOOK_SECONDS = 0.3


async def compute_reach(browser: Browser) -> None:
    """Asks for a run, waits for it, and has the scene fetch what came out."""
    robot = browser.robot
    parameters = {"robot": robot, "resolution_mm": RESOLUTION_MM}
    run = await browser.ask("start_run", {"kind": "reach", "parameters": parameters})
    if run is None:
        return
    told = ui.notification(browser.texts("reach.computing"), spinner=True, timeout=None)
    try:
        over = await _over(browser, run["id"], told)
    finally:
        told.dismiss()
    if over["state"] == "done":
        ui.run_javascript(f"window.understudy.reach({dumps(robot)}, {over['id']})")
    else:
        browser.complain(over["error"] or over["state"])


async def _over(browser: Browser, number: int, told: ui.notification) -> Any:
    """The run, once it has come to its end."""
    while True:
        runs = await browser.look("runs")
        run = next((each for each in runs or () if each["id"] == number), None)
        if run is None:
            return {"id": number, "state": "failed", "error": browser.texts("reach.lost")}
        if run["state"] not in ("waiting", "running"):
            return run
        told.message = f"{browser.texts('reach.computing')} {run['progress']:.0%}"
        await asyncio.sleep(LOOK_SECONDS)
