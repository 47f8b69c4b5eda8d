"""A cell that runs, its page, and a browser that looks at it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from _pytest.runner import runtestprotocol
from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--use-gl=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
PATIENCE_SECONDS = 60.0
STARTING_SECONDS = 120.0
"""A cell that finds no compiled kernels compiles them first."""
SIZE = {"width": 1366, "height": 768}


@dataclass
class RunningCell:
    """`understudy run` in a process of its own, spoken to over REST."""

    process: subprocess.Popen[bytes]
    endpoints: dict[str, str]

    @property
    def url(self) -> str:
        return self.endpoints["hmi"].rstrip("/")

    def ask(self, command: str, **parameters: Any) -> Any:
        body = json.dumps(parameters).encode()
        request = Request(f"{self.url}/api/{command}", body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as refusal:
            raise AssertionError(f"{command}: {refusal.read().decode()}") from None


def started(cell: str, folder: Path, *options: str) -> RunningCell:
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "understudy", "run", cell, "--ephemeral", *options]
    process = subprocess.Popen([*command, "--ready-file", str(ready)], stdout=subprocess.DEVNULL)
    until = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < until and process.poll() is None:
        told = json.loads(ready.read_text()) if ready.exists() else {}
        if told and not told["starting"]:
            return RunningCell(process, told["endpoints"])
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"{cell} did not start")


@pytest.fixture(scope="module")
def start_cell(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., RunningCell]]:
    running: list[RunningCell] = []

    def start(cell: str, *options: str) -> RunningCell:
        running.append(started(cell, tmp_path_factory.mktemp("cell"), *options))
        return running[-1]

    yield start
    for cell in running:
        cell.process.terminate()
    for cell in running:
        cell.process.wait(PATIENCE_SECONDS)


@dataclass
class Screen:
    """A page that is open: what is on it, by its marks; and what the scene says of itself."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def at(self, mark: str) -> Any:
        return self.page.locator(f'[data-mark="{mark}"]')

    def text(self, mark: str) -> str:
        return str(self.at(mark).inner_text())

    def press(self, mark: str) -> None:
        self.at(mark).click()

    @property
    def scene(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate("window.understudy.report()")
        return found

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something to become true; the browser goes on meanwhile."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end, f"never came: {what}"
            self.page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM.exists(), f"no browser at {CHROMIUM}: apt install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_page(browser: Any) -> Callable[..., Screen]:
    """A browser of its own for every page: cookies are not shared."""

    def open_(cell: RunningCell, path: str = "/") -> Screen:
        page = browser.new_context(viewport=SIZE).new_page()
        screen = Screen(page)
        page.on("request", lambda request: screen.requests.append(request.url))
        page.on("websocket", lambda socket: screen.requests.append(socket.url))
        page.on("pageerror", lambda error: screen.errors.append(str(error)))
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        page.goto(cell.url + path)
        page.wait_for_function("window.understudy?.report().ready")
        page.wait_for_function("window.understudy.report().frames > 2")
        return screen

    return open_


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Function, nextitem: pytest.Item | None) -> bool | None:
    """A browser on a busy machine may miss a click: what fails there is tried once more."""
    if "screen" not in item.fixturenames:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
