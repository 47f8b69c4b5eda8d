"""The scene in a browser without a graphics card: images per second while a robot welds.

Chromium draws with its software renderer at 1366 × 768. The peer is the same page at full quality:
a machine that is busy with other work slows both.
"""

import json
import time
from typing import Any
from urllib.request import Request, urlopen

from benchmarks import Row
from benchmarks.bench_hmi import page_of
from benchmarks.bench_wire import running

CHROMIUM = "/usr/bin/chromium"
SWITCHES = ("--no-sandbox", "--use-gl=swiftshader", "--enable-unsafe-swiftshader")
SIZE = {"width": 1366, "height": 768}
SETTLE_MS = 4000
MEASURED_S = 5
ROUNDS = 2
SEAM = (
    "G90 G21\nG28\nG0 X450 Y-100 Z350 A180 B0 C0\nM7\nM3\n"
    + "G1 Y100 F300\nG1 Y-100\n" * 9
    + "M5\n"
)
COUNT = """async (seconds) => {
  const { renderer } = window.understudy.scene.viewport;
  const { render } = renderer;
  let images = 0;
  renderer.render = (...given) => (images += 1, render.apply(renderer, given));
  await new Promise((done) => setTimeout(done, 1000 * seconds));
  renderer.render = render;
  const { calls, triangles } = renderer.info.render;
  return { images: images / seconds, calls, triangles };
}"""


def rows() -> list[Row]:
    from playwright.sync_api import sync_playwright

    with running("g60_welding") as (process, _), sync_playwright() as driver:
        page = page_of(process.pid).rstrip("/")
        weld(page)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        found: dict[str, list[dict[str, float]]] = {"": [], "?quality=full": []}
        for _ in range(ROUNDS):
            for quality, figures in found.items():
                figures.append(measure(browser, f"{page}/{quality}"))
        browser.close()
    ours, full = (max(figures, key=lambda each: each["images"]) for figures in found.values())
    ratio = f"{ours['images'] / max(full['images'], 0.1):.1f}×"
    what = "images while welding, software GL"
    return [Row(what, text(ours), f"{text(full)}, full quality", ratio, "≥ 20 /s")]


def text(figures: dict[str, float]) -> str:
    return "{images:.1f} /s, {calls:.0f} calls, {triangles:.0f} triangles".format(**figures)


def measure(browser: Any, address: str) -> dict[str, float]:
    page = browser.new_page(viewport=SIZE)
    page.goto(address)
    page.wait_for_function("window.understudy?.report().ready")
    page.wait_for_timeout(SETTLE_MS)
    figures: dict[str, float] = page.evaluate(COUNT, MEASURED_S)
    page.close()
    return figures


def weld(page: str) -> None:
    """Welds for more than a minute."""
    ask(page, "enable", robot="g60")
    ask(page, "load_program", robot="g60", text=SEAM, name="seam")
    ask(page, "run_program", robot="g60")
    while not ask(page, "status")["parts"]["g60.welder"]["arc_on"]:
        time.sleep(0.1)


def ask(page: str, command: str, **parameters: Any) -> Any:
    body = json.dumps(parameters).encode()
    request = Request(f"{page}/api/{command}", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)
