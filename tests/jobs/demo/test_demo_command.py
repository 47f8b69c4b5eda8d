"""`understudy demo` in a process: it starts and ends, its clients run as they are copied, and its
panel breaks, mends, talks and copies."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen, launched
from tests.scratch_packages import NODE

from understudy.config.files import shipped_clients

LANGUAGES = ("py", "mjs", "cs", "sh")
RUNNERS = {"py": [sys.executable], "mjs": [NODE], "sh": ["bash"]}
SECONDS = 120.0
ANSWERS = {"g60": "<", "picker": "<", "kuka": "1001", "robot-1": "DONE", "robot-2": "DONE"}
"""What the client of each robot prints, whatever its language."""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCell]:
    running = launched(["demo", "--no-open"], tmp_path_factory.mktemp("demo"))
    yield running
    running.process.terminate()
    assert running.process.wait(TIMEOUT_SECONDS) == 0


def test_the_page_answers_and_things_move(cell: RunningCell) -> None:
    with urlopen(f"{cell.url}/cell", timeout=TIMEOUT_SECONDS) as page:
        assert page.status == 200
    end = time.monotonic() + TIMEOUT_SECONDS
    moved: set[str] = set()
    while moved != set(ANSWERS):
        assert time.monotonic() < end, moved
        moved |= {each["name"] for each in cell.ask("robots")["robots"] if each["moving"]}
    assert cell.ask("metrics")["collisions_detected"] == 0


def client(cell: RunningCell, robot: str, language: str) -> str:
    return str(cell.ask("demo_client", robot=robot, language=language)["text"])


def test_every_client_has_the_address_of_this_cell(cell: RunningCell) -> None:
    wires = {wire["robot"]: wire["address"] for wire in cell.ask("demo")["wires"]}
    assert set(wires) == set(ANSWERS)
    for robot, address in wires.items():
        host, _, port = address.partition("//")[2].rpartition(":")
        for language in LANGUAGES:
            text = client(cell, robot, language)
            assert host in text
            assert port in text
            assert ("robot-2" in text) == (robot == "robot-2")


@pytest.mark.parametrize("language", list(RUNNERS))
def test_the_clients_run_as_they_are_copied(
    cell: RunningCell, language: str, tmp_path: Path
) -> None:
    for robot, answer in ANSWERS.items():
        if robot == "picker":
            continue  # the client of g60 at another port
        if robot == "kuka" and language == "sh":
            answer = "-27"
        file = tmp_path / f"{robot}.{language}"
        file.write_text(client(cell, robot, language))
        command = [*RUNNERS[language], str(file)]
        env = os.environ | {"LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert answer in done.stdout, (robot, done.stdout)


def test_the_clients_in_c_sharp_are_balanced(tmp_path: Path) -> None:
    """Without dotnet only what a bracket counter sees; with it they are compiled."""
    for name, clients in shipped_clients().items():
        text = clients.texts["cs"]
        assert balanced(text), name
        if shutil.which("dotnet"):
            folder = tmp_path / name
            subprocess.run(["dotnet", "new", "console", "-o", folder], check=True, timeout=SECONDS)
            (folder / "Program.cs").write_text(text)
            subprocess.run(["dotnet", "build", folder], check=True, timeout=SECONDS)
    assert not balanced("foreach (var x in y) { f(x; }")
    assert not balanced('Console.WriteLine("{);')


def balanced(text: str) -> bool:
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*', "", text)
    if '"' in code:
        return False
    opened: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for mark in re.findall(r"[][(){}]", code):
        if mark in pairs:
            if not opened or opened.pop() != pairs[mark]:
                return False
        else:
            opened.append(mark)
    return not opened


# ── the panel ──


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell)


def broken(cell: RunningCell) -> Any:
    return cell.ask("demo")["broken"]


def test_something_is_broken_shown_and_mended(cell: RunningCell, screen: Screen) -> None:
    screen.at("demo-break").wait_for()
    screen.press("demo-break")
    screen.until(lambda: broken(cell) is not None, "a fault")
    found = broken(cell)
    screen.reads("demo-what", found["robot"])
    assert len(screen.text("demo-seen")) > 40
    screen.until(lambda: bool(broken(cell)["error"]), "the robot reports it")
    screen.reads("demo-now", broken(cell)["error"][:20])
    screen.press("demo-mend")
    screen.until(lambda: broken(cell) is None, "mended")
    screen.until(lambda: not screen.at("demo-mend").is_visible(), "the part is closed")
    assert screen.errors == []


def test_a_line_is_sent_and_its_raw_answer_shown(cell: RunningCell, screen: Screen) -> None:
    screen.press("demo-talk")
    screen.reads("demo-place", "g60.grblhal at tcp://")
    screen.press("demo-send")
    screen.reads("demo-answer", "|MPos:")
    typed = screen.page.locator('input[data-mark="demo-typed"]')
    typed.fill("$G")
    typed.press("Enter")
    screen.reads("demo-answer", "[GC:")
    screen.reads("demo-state", "g60")  # with the robots of the clients before, for 30 s
    assert "yours" in screen.text("demo-state")
    screen.press("demo-loop")
    screen.until(lambda: not cell.ask("demo")["runs"], "the loop is off")
    screen.press("demo-loop")
    screen.until(lambda: bool(cell.ask("demo")["runs"]), "the loop is on")
    assert screen.errors == []


def test_the_client_is_shown_and_copied(cell: RunningCell, screen: Screen) -> None:
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    screen.press("demo-copy")
    screen.reads("demo-client", "import socket")
    screen.page.locator('[data-mark="demo-language"] button').nth(1).click()
    screen.reads("demo-client", "node:net")
    screen.press("demo-take")
    read = "navigator.clipboard.readText()"
    text = client(cell, "g60", "mjs")
    screen.until(lambda: screen.page.evaluate(read) == text, "it is in the clipboard")
    assert screen.errors == []


def test_the_panel_is_complete_in_vietnamese(cell: RunningCell, screen: Screen) -> None:
    screen.page.context.add_cookies([{"name": "language", "value": "vi", "url": cell.url}])
    screen.open(f"{cell.url}/cell")
    screen.reads("demo-break", "Làm hỏng gì đó")
    cell.ask("break_something", name="stop")
    screen.press("demo-break")
    screen.reads("demo-now", "kuka hiện tại: Dừng khẩn cấp")
    screen.press("demo-mend")
    screen.until(lambda: broken(cell) is None, "mended")
    assert json.dumps(screen.errors) == "[]"


def test_another_cell_has_no_demo_panel() -> None:
    """The panel asks for the query `demo`, which a cell without the key does not have."""
    from understudy.hmi.page import panels

    (panel,) = (each for each in panels() if each.name == "demo")
    assert (panel.page, panel.needs) == ("cell", "demo")
