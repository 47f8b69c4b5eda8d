"""The fleet page in a browser: images a second of its map, and what cell and page process need.

Every robot drives in a circle. Chromium draws without a graphics card at 1366 × 768, on the same
machine. The cost is what cell and page need more with a browser than without one; the NATS server
is not counted. UNDERSTUDY_BENCH_ROBOTS=10,1000 chooses other numbers of robots.
"""

import json
import os
import time
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import psutil

from benchmarks import Row
from benchmarks.bench_hmi import page_of, spent
from benchmarks.bench_scene import CHROMIUM, SIZE, SWITCHES, ask
from benchmarks.bench_wire import running

ROBOTS = os.environ.get("UNDERSTUDY_BENCH_ROBOTS", "10,1000")
SECONDS = 10.0
SETTLE_S = 5.0
CIRCLE = {"linear": 0.25, "angular": 0.5}
AIMS = {10: "page ≤ 8 % of a core", 1000: "≥ 20 images/s"}


class Figures(NamedTuple):
    """`images` and `messages` a second, milliseconds to paint an image, robots in view, and cores
    without and with the page."""

    images: float
    paint: float
    messages: float
    visible: int
    quiet: float
    busy: float


def rows() -> list[Row]:
    return [row(int(robots)) for robots in ROBOTS.split(",")]


def row(robots: int) -> Row:
    found = measured(robots)
    return Row(
        f"map of {robots:,} robots that drive, {found.visible:,} in view",
        f"{found.images:.1f} images/s of {found.paint:.1f} ms, {found.messages:.1f} messages/s, "
        f"{found.busy - found.quiet:.1%} of a core",
        f"{found.quiet:.1%} of a core without a browser",
        f"{found.busy / max(found.quiet, 1e-3):.2f}",
        AIMS.get(robots, ""),
    )


def measured(robots: int) -> Figures:
    from playwright.sync_api import sync_playwright

    words = ("hall", "--robots", str(robots)) if robots > 10 else ("fleet",)
    with running(*words) as (process, _), sync_playwright() as driver:
        page = page_of(process.pid).rstrip("/")
        drive(page)
        cell = psutil.Process(process.pid)
        watched = [cell, *(each for each in cell.children() if each.name() != "nats-server")]
        quiet = cost(watched)
        browser: Any = driver.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        shown = browser.new_page(viewport=SIZE)
        shown.goto(f"{page}/fleet")
        shown.wait_for_function("window.fleet?.report()?.ready", timeout=120_000)
        shown.wait_for_timeout(1000 * SETTLE_S)
        before, began = shown.evaluate("window.fleet.report()"), time.monotonic()
        used = spent(watched)
        shown.wait_for_timeout(1000 * SECONDS)
        passed = time.monotonic() - began
        after, busy = shown.evaluate("window.fleet.report()"), (spent(watched) - used) / passed
        browser.close()
    images, messages = ((after[key] - before[key]) / passed for key in ("images", "received"))
    paint = (after["spent"] - before["spent"]) / max(after["images"] - before["images"], 1)
    return Figures(images, paint, messages, after["visible"], quiet, busy)


def drive(page: str) -> None:
    """Sends every robot in a circle."""
    while not ask(page, "fleet")["link"]["connected"]:
        time.sleep(0.2)
    time.sleep(1.0)
    floor: Any = ask(page, "fleet")
    for robot in floor["robots"]:
        order = {"robot": robot["name"], "command": "MOVE_VELOCITY", "parameters": CIRCLE}
        body = json.dumps(order).encode()
        request = Request(f"{page}/api/fleet_command", body, {"Content-Type": "application/json"})
        urlopen(request, timeout=60).close()
    time.sleep(SETTLE_S)


def cost(watched: list[psutil.Process]) -> float:
    before, began = spent(watched), time.monotonic()
    time.sleep(SECONDS)
    return (spent(watched) - before) / (time.monotonic() - began)
