"""Texts of strangers, on every page and in every report: they are shown, and never become HTML."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen

from understudy.app.validate import figures_of, validate_text
from understudy.config import load_config
from understudy.offline.validate.html_report import page as report_page
from understudy.space.reach.export import html as reach_page
from understudy.space.reach.reach_map import ReachabilityMap

RUN = "ran=1"
HOSTILE = (
    f"\"'><b class=hostile></b><script>{RUN}</script></script><img src=x onerror={RUN}>"
    f"<svg onload={RUN}>{{{{{RUN}}}}}${{{RUN}}}`]]>--><a href=javascript:{RUN}>x</a>"
)
PROP = f'x" :title="{RUN}" y="'
"""As text of a property of NiceGUI, whose values with a colon in front are evaluated."""
NAME = '"><b class=hostile></b>'
FILE_NAME = "<img src=x onerror=ran=1>"

CELL: dict[str, Any] = {
    "description": HOSTILE,
    "hmi": {},
    "robots": {
        "g60": {
            "kind": "arm",
            "model": "g60",
            "tool": 1,
            "tools": {1: {"name": HOSTILE, "tcp_mm_deg": [0, 0, 100, 0, 0, 0]}},
            "io": {
                "digital_input_names": {0: PROP},
                "digital_output_names": {0: PROP},
                "links": [{"output": PROP, "input": PROP}],
            },
            "faces": {"hmi_link": {"port": 0, "status": {"port": 0}}, "grblhal": {"port": 0}},
        },
        "bench": {"kind": "text_robot", "faces": {"text_tcp": {"port": 0}}},
        "kuka": {"kind": "kuka", "base_mm_deg": [0, -1400, 0, 0, 0, 0]},
    },
    "environment": {
        "objects": [
            {
                "name": HOSTILE,
                "type": "box",
                "position_mm": [600, 0, 25],
                "dimensions_mm": [60, 90, 50],
            }
        ]
    },
}
PROGRAM = f"G21 G90 ({HOSTILE.replace(')', '')})\n; {HOSTILE}\nG1 X{HOSTILE}\n"


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / f"{FILE_NAME}.gcode").write_text(PROGRAM)
    file = folder / f"{FILE_NAME}.yaml"
    file.write_text(yaml.safe_dump(CELL))
    started = start_cell(str(file))
    for robot in ("g60", "bench", "kuka"):
        started.ask("load_program", robot=robot, text=PROGRAM, name=HOSTILE)
        try_to(started, "teach_point", robot=robot, name=NAME)
        try_to(started, "run_program", robot=robot)
        try_to(started, "mdi", robot=robot, line=HOSTILE)
    for endpoint in ("g60.grblhal", "bench.text_tcp"):
        say(started.endpoints[endpoint], HOSTILE)
    return started


def say(endpoint: str, line: str) -> None:
    """Sends a line to a robot, and waits for its answer."""
    address = urlsplit(endpoint)
    with socket.create_connection(
        (address.hostname, address.port), timeout=TIMEOUT_SECONDS
    ) as peer:
        peer.sendall(f"{line}\n".encode())
        assert peer.recv(1000)


def try_to(cell: RunningCell, command: str, **parameters: Any) -> None:
    """Sends a command that the cell may refuse."""
    with suppress(AssertionError):
        cell.ask(command, **parameters)


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    screen = open_page(cell)
    screen.page.on("dialog", lambda dialog: screen.errors.append(f"dialog {dialog.message}"))
    return screen


def nothing_ran(page: Any) -> None:
    assert page.evaluate("window.ran") is None
    assert page.locator(".hostile, [src=x]").count() == 0


@pytest.mark.parametrize("path", ["/", "/program", "/plots", "/log", f"/{FILE_NAME}"])
def test_every_page_shows_hostile_texts_as_text(
    cell: RunningCell, screen: Screen, path: str
) -> None:
    page = screen.page
    for robot in ("g60", "bench", "kuka") if path == "/program" else ("g60",):
        page.context.add_cookies([{"name": "robot", "value": robot, "url": cell.url}])
        page.goto(cell.url + path)
        screen.built()
        for tab in page.locator(".u-page .q-tab").all():
            tab.click()
            nothing_ran(page)
    assert not screen.errors
    own = (cell.url, cell.url.replace("http", "ws"), "data:", "blob:")
    assert not [url for url in screen.requests if not url.startswith(own)]


def test_the_texts_were_there_to_be_shown(cell: RunningCell, screen: Screen) -> None:
    """Without this the test above could pass on pages that show none of them."""
    screen.page.context.add_cookies([{"name": "robot", "value": "g60", "url": cell.url}])
    screen.page.goto(cell.url + "/program")
    screen.built()
    parts = ("class=hostile", "onerror=", "javascript:")

    def are_shown() -> bool:
        shown = screen.page.locator("body").inner_text() + screen.page.content()
        return all(part in shown for part in parts)

    screen.until(are_shown, "the program and the points, which the page asks for after it is built")
    screen.page.goto(cell.url + "/log")
    screen.built()
    screen.page.locator("[data-kind=traffic]").click()
    screen.until(lambda: "class=hostile" in screen.page.locator("body").inner_text(), "a message")
    nothing_ran(screen.page)


# ── reports ──


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    pages = []

    def open_(text: str) -> Any:
        file = tmp_path / f"{FILE_NAME}.html"
        file.write_text(text, encoding="utf-8")
        pages.append(browser.new_page())
        pages[-1].set_default_timeout(1000 * TIMEOUT_SECONDS)
        seen: list[str] = []
        pages[-1].on("console", lambda message: seen.append(message.text))
        pages[-1].on("pageerror", lambda problem: seen.append(str(problem)))
        pages[-1].on("dialog", lambda dialog: seen.append(dialog.message))
        pages[-1].on("request", lambda request: seen.append(request.url))
        pages[-1].goto(file.as_uri())
        assert seen == [file.as_uri()], "one request, and no violation of the report's policy"
        return pages[-1]

    yield open_
    for page in pages:
        page.close()


def test_a_validation_report_shows_hostile_texts_as_text(
    open_report: Callable[[str], Any], tmp_path: Path
) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(yaml.safe_dump({**CELL, "robots": {"g60": CELL["robots"]["g60"]}}))
    config = load_config(str(file))
    report = validate_text(PROGRAM, config, program=HOSTILE)
    report = replace(report, notes=(*report.notes, HOSTILE), cell=HOSTILE)
    page = open_report(report_page([report], config.environment(), figures_of(config)))
    assert "class=hostile" in page.inner_text("body")
    assert page.inner_text("#verdict") == "fail", "the report's own script ran"
    nothing_ran(page)


def test_a_reach_map_shows_a_hostile_title_as_text(open_report: Callable[[str], Any]) -> None:
    points = np.zeros((1, 3))
    found = ReachabilityMap(points, np.ones(1, dtype=np.int64), np.ones(1), 0.1, 1)
    page = open_report(reach_page(found, HOSTILE))
    assert "class=hostile" in page.inner_text("h1")
    nothing_ran(page)


def test_a_script_that_got_into_a_report_does_not_run(open_report: Callable[[str], Any]) -> None:
    found = ReachabilityMap(np.zeros((1, 3)), np.ones(1, dtype=np.int64), np.ones(1), 0.1, 1)
    text = reach_page(found, "map").replace("<h1>", f"<h1><script>{RUN}</script>")
    with pytest.raises(AssertionError, match="Content Security Policy"):
        open_report(text)
