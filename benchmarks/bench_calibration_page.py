"""The calibration page: CPU time of the cell and of the page's process while the automatic run
moves the robot in real time, with one browser on the page, and without any."""

import psutil

from benchmarks import Row
from benchmarks.bench_hmi import page_of
from benchmarks.bench_pick_page import AIM, share
from benchmarks.bench_scene import CHROMIUM, SWITCHES, ask
from benchmarks.bench_wire import running

POSES = 60
"""More than can be captured while it is measured."""


def rows() -> list[Row]:
    from playwright.sync_api import sync_playwright

    with running("calibration") as (process, _), sync_playwright() as driver:
        address = page_of(process.pid).rstrip("/")
        cell = psutil.Process(process.pid)
        watched = [cell, *cell.children()]
        ask(address, "enable", robot="g60")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        rest = share(browser, watched, f"{address}/calibration")
        still = share(browser, watched, "")
        ask(address, "hand_eye_start", poses=POSES)
        ours, quiet = (share(browser, watched, path) for path in (f"{address}/calibration", ""))
        browser.close()
    return [
        Row(
            "calibration page, what 1 browser costs while the robot moves",
            f"{ours - quiet:.1%} of a core; {ours:.1%} with the cell",
            f"robot at rest {rest - still:.1%}; cell without a browser {quiet:.1%}",
            "",
            AIM,
        )
    ]
