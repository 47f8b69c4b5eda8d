"""`python -m tests.pictures [NAME …]`: takes the pictures of the docs anew.

Give names for some of them: `make pictures ARGS="fleet_page"`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from tests.browsers import (
    CHROMIUM,
    STARTING_SECONDS,
    SWITCHES,
    TIMEOUT_SECONDS,
    Screen,
    started,
)
from tests.pictures import (
    MOVING_WIDTH,
    SCRIPTS,
    SIZE,
    SMALL_WIDTH,
    Picture,
    file_of_script,
    pictures,
)

SMALL_QUALITY, MOVING_QUALITY = 70, 55
FRAME_MS, LAST_FRAME_MS = 120, 1500
SHARP = """() => {
  const viewport = window.understudy?.scene?.viewport;
  if (!viewport || !document.querySelector("#scene")?.clientWidth) return true;
  if (viewport.flight) return false;
  viewport.resolution = window.devicePixelRatio;
  viewport.fit();
  viewport.draw();
  return true;
}"""
"""Draws the scene with all its pixels: on a slow machine it has fewer, and a picture can wait."""


def main(wanted: Sequence[str]) -> int:
    """Returns 2 if a name is unknown."""
    known = pictures()
    names = [*(each.name for each in known), *SCRIPTS]
    if unknown := set(wanted) - set(names):
        print(
            f"error: no picture {', '.join(unknown)}; there are: {', '.join(names)}",
            file=sys.stderr,
        )
        return 2
    for name, script in SCRIPTS.items():
        if not wanted or name in wanted:
            subprocess.run([sys.executable, script, file_of_script(name)], check=True)
            print(f"{file_of_script(name).name}: {script.name}", flush=True)
    _screenshots([each for each in known if not wanted or each.name in wanted])
    return 0


def _screenshots(chosen: Sequence[Picture]) -> None:
    if not chosen:
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=SWITCHES)
        ordered = sorted(chosen, key=lambda each: (each.cell, each.options))
        for (cell, options), group in groupby(ordered, lambda each: (each.cell, each.options)):
            _take(browser, cell, options, list(group))
        browser.close()


def _take(browser: Any, name: str, options: Sequence[str], wanted: Sequence[Picture]) -> None:
    """Takes the pictures of one cell."""
    with tempfile.TemporaryDirectory() as folder:
        cell = started(name, Path(folder), "--rate", "step", *options)
        try:
            for picture in wanted:
                context = browser.new_context(viewport=SIZE)
                page = context.new_page()
                page.set_default_timeout(1000 * STARTING_SECONDS)
                screen = Screen(page)
                page.goto(f"{cell.url}{picture.path}?quality=full")
                screen.built()
                picture.prepare(screen, cell)
                page.wait_for_function(SHARP)
                if picture.frames:
                    _write_moving(
                        picture, [_small(page, MOVING_WIDTH) for _ in picture.frames(screen, cell)]
                    )
                elif picture.small:
                    _small(page).save(picture.file, quality=SMALL_QUALITY, method=6)
                else:
                    page.screenshot(path=str(picture.file))
                context.close()
                size = picture.file.stat().st_size // 1000
                print(f"{picture.file.name}: {picture.cell}{picture.path}, {size} kB", flush=True)
        finally:
            cell.process.terminate()
            cell.process.wait(TIMEOUT_SECONDS)


def _small(page: Any, width: int = SMALL_WIDTH) -> Image.Image:
    """What the page shows, scaled down."""
    page.wait_for_function(SHARP)
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    height = round(width * shot.height / shot.width)
    return shot.resize((width, height), Image.Resampling.LANCZOS)


def _write_moving(picture: Picture, frames: Sequence[Image.Image]) -> None:
    """The frames, the last one longer, again and again."""
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_FRAME_MS]
    frames[0].save(
        picture.file,
        save_all=True,
        append_images=list(frames[1:]),
        duration=durations,
        loop=0,
        quality=MOVING_QUALITY,
        method=4,
        minimize_size=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
