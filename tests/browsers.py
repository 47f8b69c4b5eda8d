"""A running cell, its HMI, and a browser with a page open."""

import asyncio
import json
import os
import re
import socket
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
from playwright.sync_api import sync_playwright

from understudy.app.control_client import result_of
from understudy.app.ready_file import read_ready
from understudy.app.stand_in import StandIn
from understudy.ports.access import SECRET_VARIABLE

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--use-gl=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    # The last three load pages into the list below the address field, which no test shows: more
    # processor time than opening a page of the cell. The others are what the driver disables by
    # default: this switch replaces its list.
    "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,"
    "NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
]
TIMEOUT_SECONDS = 60.0
"""Long, since a loaded machine is slow."""
STARTING_SECONDS = 180.0
"""A process without cached kernels compiles them first."""
SIZE = {"width": 1366, "height": 768}


@dataclass
class RunningCell:
    """`understudy run` in a process of its own, commanded by REST."""

    process: subprocess.Popen[bytes]
    endpoints: dict[str, str]
    secret: str
    real: bool = False

    @property
    def url(self) -> str:
        return self.endpoints["hmi"].rstrip("/")

    def ask(self, command: str, **parameters: Any) -> Any:
        body = json.dumps(parameters).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.secret}"}
        request = Request(f"{self.url}/api/{command}", body, headers)
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as refusal:
            raise AssertionError(f"{command}: {refusal.read().decode()}") from None


def time_runs(ready: Path) -> bool:
    """A cell that compiles kernels may take long to answer."""
    now = result_of(read_ready(ready), {"do": "now"}, timeout_s=TIMEOUT_SECONDS)
    return bool(now["now_s"] > 0.0)


def started(cell: str, folder: Path, *options: str, run_in: Path | None = None) -> RunningCell:
    """``run_in``: the folder in which the cell runs, where Python finds packages, too."""
    return launched(["run", cell, "--ephemeral", *options], folder, run_in=run_in)


def launched(words: list[str], folder: Path, *, run_in: Path | None = None) -> RunningCell:
    """A command that runs a cell until it is ended, once the cell is ready."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "understudy", *words, "--ready-file", str(ready)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=run_in)
    until = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < until and process.poll() is None:
        ready_file = json.loads(ready.read_text()) if ready.exists() else {}
        if ready_file and not ready_file["starting"]:
            secret, real = ready_file["secret"], "--real" in words
            running = RunningCell(process, ready_file["endpoints"], secret, real)
            stands = "step" in words
            if "hmi" not in running.endpoints or stands or time_runs(ready):
                return running  # with a page: once the kernels are compiled, and time runs
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"{' '.join(words)} did not start")


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
        cell.process.wait(TIMEOUT_SECONDS)


# ── the welding cell that modules share ──

START = "start.json"
"""The snapshot that the shared cell takes when it has started, in its folder."""


@dataclass
class WeldingCell(RunningCell):
    """`g60_welding`, which one module after the other uses."""

    files: Path = Path()

    def as_at_start(self) -> None:
        """Restores the state that the cell had when it had started."""
        self.ask("emergency_stop")
        self.ask("restore", file=START)
        self.ask("rate", rate=1.0)
        self.ask("start")


@pytest.fixture(scope="package")
def started_welding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeldingCell]:
    files = tmp_path_factory.mktemp("files")
    folder = tmp_path_factory.mktemp("cell")
    cell = started("g60_welding", folder, "--files", str(files))
    welding = WeldingCell(cell.process, cell.endpoints, cell.secret, files=files)
    welding.ask("snapshot", file=START)
    yield welding
    cell.process.terminate()
    cell.process.wait(TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def welding(started_welding: WeldingCell) -> Iterator[WeldingCell]:
    """The shared welding cell as it was when it had started."""
    started_welding.as_at_start()
    yield started_welding
    started_welding.ask("pause")  # it costs less processor time until the next module


@dataclass
class PageServer:
    """The page's process, served for a cell of this process."""

    url: str
    pid: int


@pytest.fixture(scope="module")
def page_process(cell: StandIn) -> Iterator[PageServer]:
    """The HMI process for the module's `cell`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        doors = {"link": "g60.hmi_link", "status": "g60.hmi_link.status", "state": "state"}
        addresses = [f"--{door}={cell.endpoints[name]}" for door, name in doors.items()]
        command = [sys.executable, "-m", "understudy.hmi"]
        process = subprocess.Popen(
            [*command, *addresses, f"--fd={listener.fileno()}", "--follow-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env={**os.environ, SECRET_VARIABLE: cell.secret},
        )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield PageServer(f"http://127.0.0.1:{port}", process.pid)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(TIMEOUT_SECONDS) == 0


SHOWN = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const around = walk.currentNode.parentElement;
    const apart = "script, style, pre, .q-icon, .cm-content, .u-log-rows, [data-mark=alarm]";
    if (!around || around.closest(apart)) continue;
    found.push(walk.currentNode.textContent.trim());
  }
  for (const name of ["title", "aria-label", "placeholder"])
    for (const element of document.querySelectorAll(`[${name}]`))
      found.push(element.getAttribute(name));
  return found.filter(Boolean);
}"""
"""All texts, also of what is hidden now. Rows of the log and the alarm that tests before have left
keep words of the cell; alarms have tests of their own."""
ENGLISH = re.compile(
    r"\b(the|of|is|are|not|and|to|with|from|until|by|this|that|was|has|for|on|off|in)\b", re.I
)
"""Words that are in nearly every English sentence, and in no Vietnamese one."""
PATH = re.compile(r"\S*/\S*")


def english(texts: set[str]) -> set[str]:
    """The texts that have an English sentence."""
    return {text for text in texts if ENGLISH.search(PATH.sub("", text))} - {"Phóng to"}


@dataclass
class Screen:
    """An open page: its elements by their marks, and the report of its scene."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(1000 * TIMEOUT_SECONDS)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.violations.append(message.text)

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.built()

    def clear(self) -> None:
        """Closes what is open, and forgets cookies, stored values and notes."""
        if self.page.url.startswith("http"):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.goto("about:blank")
        self.page.context.clear_cookies()
        self.page.set_viewport_size(SIZE)
        for notes in (self.requests, self.errors, self.violations):
            notes.clear()

    def at(self, mark: str) -> Any:
        return self.page.locator(f'[data-mark="{mark}"]')

    def text(self, mark: str) -> str:
        return str(self.at(mark).inner_text())

    def shown(self) -> set[str]:
        return set(self.page.evaluate(SHOWN))

    def press(self, mark: str) -> None:
        self.at(mark).click()

    def built(self) -> None:
        """Waits until the scripts of the page have built everything. After a click on a tab
        `open_tab` is needed: this would find the page before it."""
        self.page.locator(".u-page").wait_for()
        self.page.wait_for_function(ALL_READY)

    def open_tab(self, name: str) -> None:
        """Opens another page by its tab, and waits until its scripts have built it."""
        self.page.locator(f'[data-tab="{name}"]').click()
        self.page.locator(f'[data-page="{name}"] > *').first.wait_for()
        self.built()

    def reads(self, mark: str, text: str) -> None:
        """Waits until the element contains the text."""
        self.until(lambda: text in self.text(mark), f"{text!r} at {mark}")

    @property
    def scene(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate("window.understudy.report()")
        return found

    def until(
        self, holds: Callable[[], bool], what: str, *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """Waits for a condition; the browser goes on meanwhile."""
        end = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < end, f"timeout: {what}"
            self.page.wait_for_timeout(50)


@dataclass
class Chromium:
    """A browser process, the event loop of its driver, and a page for the welding cell."""

    browser: Any
    loop: asyncio.AbstractEventLoop
    screen: Screen


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser process for all modules of this folder."""
    assert CHROMIUM.exists(), f"no browser at {CHROMIUM}: apt install chromium"
    with sync_playwright() as driver:
        browser: Any = driver.chromium.launch(executable_path=str(CHROMIUM), args=SWITCHES)
        screen = Screen(browser.new_context(viewport=SIZE).new_page())
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield Chromium(browser, loop, screen)
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Any]:
    """The browser without the pages of other modules. The driver marks its event loop as running
    in this thread; between modules it is not, so that other tests can run loops of their own."""
    asyncio._set_running_loop(chromium.loop)
    yield chromium.browser
    for context in chromium.browser.contexts:
        if context is not chromium.screen.page.context:
            context.close()
    asyncio._set_running_loop(None)


READY = {
    "#scene": "window.understudy?.report().ready && window.understudy.report().frames > 2",
    "#program-page": "window.program?.report()",
    "#plots-page": "window.plots?.report()",
    "#log-page": "window.log?.report()",
    "#pick-place-page": "window.pickPlace?.report()?.ready",
    "#fleet-page": "window.fleet?.report()?.ready",
    "#calibration-page": "window.calibration?.report()?.ready",
}
"""Element of a page → expression that is true when its script is ready."""
ALL_READY = " && ".join(
    f"(!document.querySelector('{selector}') || ({ready}))" for selector, ready in READY.items()
)
"""In one expression: an element that is there when it is asked for may be gone a moment later."""


@pytest.fixture(scope="module")
def open_page(browser: Any) -> Iterator[Callable[..., Screen]]:
    """Opens a page in a browser context of its own, where cookies are not shared, or in that of
    another page, which is faster: its scripts are in the cache."""
    contexts: list[Any] = []
    screens: list[Screen] = []

    def open_(cell: RunningCell, path: str = "/", *, beside: Screen | None = None) -> Screen:
        if beside is None:
            contexts.append(browser.new_context(viewport=SIZE))
        page = (beside.page.context if beside else contexts[-1]).new_page()
        screen = Screen(page)
        screens.append(screen)
        if cell.real:
            page.goto(f"{cell.url}/?token={cell.secret}")  # from now on it is in a cookie
        screen.open(cell.url + path)
        return screen

    yield open_
    for context in contexts:
        context.close()
    assert not [text for screen in screens for text in screen.violations]


@pytest.fixture(scope="module")
def welding_screen(browser: Any, chromium: Chromium) -> Iterator[Screen]:
    """An empty page for the shared welding cell, whose scripts are in its cache: faster than a page
    of its own for each module."""
    yield chromium.screen
    violations = list(chromium.screen.violations)
    chromium.screen.clear()
    assert not violations
