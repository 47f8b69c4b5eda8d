"""Add a page to the web HMI from outside the package: three files and one entry point.

`install` writes the package `maintenance` and its entry point to a folder, as pip does; then a cell
that is started has the page as a tab.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

PAGE = '''
"""Simulated time of the cell, in minutes."""
from json import dumps
from pathlib import Path
from nicegui import ui
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only
from understudy.hmi.page import Page

def build(browser: Browser) -> None:
    with ui.element("section").classes("u-card").props('id="maintenance"') as card:
        card.props["data-texts"] = dumps(browser.texts.section("maintenance"))
        minutes = ui.label().classes("u-figure").props("data-mark=minutes")
        ui.label().classes("u-caption").props("data-mark=moving")  # motion.js fills it
        stop = button(browser.texts("maintenance.stop"), icon="stop", key="m", mark="stop")
    operator_only(browser, stop)
    stop.on_click(lambda: browser.command("emergency_stop"))

    def update() -> None:
        now = browser.cell.metrics.get("simulation_time_s", 0.0) / 60
        minutes.set_text(browser.texts("maintenance.minutes").format(minutes=now))

    browser.on_update(update)

HERE = Path(__file__).parent
PAGE = Page("maintenance", "F10", "build", build, folder=HERE, scripts=("motion.js",))
'''
SCRIPT = """
import { text, whenReady } from "../../frame/api.js";
import { feed } from "../../frame/feed.js";

whenReady("#maintenance [data-mark=moving]", (element) => feed.onFrame(({ robots }) => {
  const moving = Object.entries(robots).filter(([, robot]) => robot.moving).map(([name]) => name);
  element.textContent = moving.length ? `${text("moving")}: ${moving}` : text("at_rest");
}));
"""
TEXTS = """
maintenance:
  title: {en: Service, vi: Bảo trì}
  minutes: {en: "{minutes:.0f} min in operation", vi: "hoạt động {minutes:.0f} phút"}
  stop: {en: Stop for service, vi: Dừng để bảo trì}
  moving: {en: moving, vi: đang chuyển động}
  at_rest: {en: at rest, vi: đứng yên}
"""
FILES = {
    "maintenance/page.py": PAGE,
    "maintenance/motion.js": SCRIPT,
    "maintenance/texts.yaml": TEXTS,
    "maintenance-1.0.dist-info/METADATA": "Name: maintenance\nVersion: 1.0\n",
    "maintenance-1.0.dist-info/entry_points.txt": "[understudy.pages]\nown = maintenance.page\n",
    "cell.yaml": "hmi: {}\nrobots: {bench: {kind: text_robot}}\n",
}


def install(folder: Path) -> None:
    """Writes the package as pip does; Python finds it, since the cell runs in this folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def main(folder: Path) -> None:
    install(folder)
    run = ["understudy", "run", "cell.yaml", "--ephemeral", "--ready-file=ready.json"]
    cell = subprocess.Popen([sys.executable, "-m", *run], cwd=folder, stdout=subprocess.DEVNULL)
    ready: dict[str, Any] = {"starting": ["hmi"], "endpoints": {}}
    while ready["starting"] and cell.poll() is None:
        time.sleep(0.1)
        with suppress(FileNotFoundError):
            ready = json.loads((folder / "ready.json").read_text())
    page = f"{ready['endpoints'].get('hmi')}/maintenance"
    try:
        for language, title in (("en", "Service"), ("vi", "Bảo trì")):
            html = urlopen(Request(page, headers={"Cookie": f"language={language}"})).read()
            assert title in html.decode(), f"no tab {title!r}"
            print(f"{page} has the tab {title!r}")
    finally:
        cell.terminate()
        cell.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
