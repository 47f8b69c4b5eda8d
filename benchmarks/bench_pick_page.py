"""The pick & place page: CPU time of the cell and of the page's process while the job runs in real
time, with one browser on the page, with one on the log page, and without any."""

from typing import Any

import psutil

from benchmarks import Row
from benchmarks.bench_hmi import SECONDS, page_of, spent
from benchmarks.bench_scene import CHROMIUM, SIZE, SWITCHES, ask
from benchmarks.bench_wire import running

AIM = "≤ 8 %"
SETTLE_MS = 3000


def rows() -> list[Row]:
    from playwright.sync_api import sync_playwright

    with running("pick_place") as (process, _), sync_playwright() as driver:
        address = page_of(process.pid).rstrip("/")
        cell = psutil.Process(process.pid)
        watched = [cell, *cell.children()]
        ask(address, "enable", robot="g60")
        ask(address, "start_pick_place")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        paths = ("", f"{address}/log", f"{address}/pick_place")
        quiet, log, ours = (share(browser, watched, path) for path in paths)
        browser.close()
    return [
        Row(
            "pick & place page, what 1 browser costs while the job runs",
            f"{ours - quiet:.1%} of a core; {ours:.1%} with the cell",
            f"log page {log - quiet:.1%}; cell without a browser {quiet:.1%}",
            "",
            AIM,
        )
    ]


def share(browser: Any, watched: list[psutil.Process], address: str) -> float:
    """Share of a core that the processes use while a browser shows the address, if one is given."""
    page = browser.new_page(viewport=SIZE)
    if address:
        page.goto(address)
    page.wait_for_timeout(SETTLE_MS)
    before = spent(watched)
    page.wait_for_timeout(1000 * SECONDS)
    used = spent(watched) - before
    page.close()
    return float(used / SECONDS)
