"""Start: CPU seconds of short commands and until a cell answers, against a bare interpreter; memory
of idle cells; first paint of the page."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

import psutil

from benchmarks import Row

ROUNDS = 5
PEER = "python -c pass"
PROGRAM = "G21 G90 G94\nG0 X500 Y0 Z600\nG1 X550 Y50 Z600 F3000\nG0 X500 Y0 Z600\n"
SHORT_AIMS = {
    "--version": "≤ 0.25 s",
    "--help": "≤ 0.25 s",
    "check text_robot": "",
    "validate, 4 lines": "≤ 0.4 s, warm cache",
}
ARM = ("--cell", "g60_welding")
CELLS = {"text_robot": "bench.text_tcp", "default": "bench.text_tcp"}
ANSWER_AIMS = {"text_robot": "< 0.3 s", "default": "< 0.6 s"}
MEMORY_AIMS = {"text_robot": "≤ 60 MB", "default": "≤ 150 MB"}
PATIENCE_S = 60.0
CHROMIUM = Path("/usr/bin/chromium")
PAINTS = "() => performance.getEntriesByType('paint').map(each => [each.name, each.startTime])"
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
"""With that variable every process would compile all modules anew."""


@dataclass(frozen=True)
class Started:
    """What a cell took until its text robot answered, and what it takes then. Bytes: resident,
    without and with what its processes share counted once."""

    cpu: float
    wall: float
    resident: int
    own: int


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "four_lines.gcode"
        program.write_text(PROGRAM)
        commands = {
            PEER: ["-c", "pass"],
            "--version": ["-m", "understudy", "--version"],
            "--help": ["-m", "understudy", "--help"],
            "check text_robot": ["-m", "understudy", "check", "text_robot"],
            "validate, 4 lines": ["-m", "understudy", "validate", str(program), *ARM],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        cells: dict[str, list[Started]] = {name: [] for name in CELLS}
        for _ in range(ROUNDS):  # interleaved: other load affects all of them
            for name, words in commands.items():
                times[name].append(_cpu_seconds(words))
            for name, endpoint in CELLS.items():
                cells[name].append(_started(name, endpoint))
    peer = median(times.pop(PEER))
    beside = f"{PEER} {peer:.3f} s"
    found = [
        Row(name, f"{ours:.3f} s CPU", beside, f"{ours / peer:.1f}", SHORT_AIMS[name])
        for name, ours in ((name, median(seconds)) for name, seconds in times.items())
    ]
    for name, runs in cells.items():
        cpu, wall = median(each.cpu for each in runs), median(each.wall for each in runs)
        text = f"{cpu:.2f} s CPU; {wall:.2f} s"
        what = f"{name}, process to an answer"
        found.append(Row(what, text, beside, f"{cpu / peer:.1f}", ANSWER_AIMS[name]))
        own, resident = (median(getattr(each, of) for each in runs) for of in ("own", "resident"))
        text = f"{own / 1e6:.0f} MB; resident {resident / 1e6:.0f} MB"
        found.append(Row(f"{name}, memory when idle", text, "", "", MEMORY_AIMS[name]))
    return [*found, *_first_paint()]


def _cpu_seconds(words: list[str]) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _started(cell: str, endpoint: str) -> Started:
    """Starts a cell without its page and asks its text robot for its position."""
    begun = time.perf_counter()
    with _running(cell, "--no-hmi") as (process, endpoints):
        host, port = endpoints[endpoint].removeprefix("tcp://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), PATIENCE_S) as line:
            line.settimeout(0.5)
            answer = b""
            while not answer:
                line.sendall(b"GET_POS\n")
                try:
                    answer = line.recv(100)
                except TimeoutError:
                    continue  # a scenario of the cell loses some requests
        wall, used = time.perf_counter() - begun, process.cpu_times()
        tree = [process, *process.children(recursive=True)]
        memory = [each.memory_full_info() for each in tree]
        resident, own = sum(each.rss for each in memory), sum(each.pss for each in memory)
        return Started(used.user + used.system, wall, resident, own)


@contextmanager
def _running(cell: str, *options: str) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    """A cell once all its wires listen, with the addresses of its endpoints."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        run = [sys.executable, "-m", "understudy", "run", cell, "--ephemeral", *options]
        process = subprocess.Popen(
            [*run, "--ready-file", str(ready)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        try:
            found = {"starting": ["all"]}
            while found["starting"]:
                time.sleep(0.002)
                found = json.loads(ready.read_text()) if ready.exists() else found
            yield psutil.Process(process.pid), found["endpoints"]  # type: ignore[misc]
        finally:
            process.terminate()
            process.wait(20)


def _first_paint() -> list[Row]:
    """Milliseconds from opening the address of the default cell's page to its first content."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return []
    if not CHROMIUM.exists():
        return []
    with _running("default") as (_, endpoints), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        milliseconds = []
        for _ in range(ROUNDS):
            page = browser.new_context().new_page()  # an empty cache
            page.goto(endpoints["hmi"])
            page.wait_for_function(f"({PAINTS})().length == 2")
            milliseconds.append(dict(page.evaluate(PAINTS))["first-contentful-paint"])
            page.close()
        browser.close()
    seconds = median(milliseconds) / 1000
    version = re.sub(r"\D*(\d+).*", r"\1", browser.version)
    name, peer = "page, first paint with an empty cache", f"chromium {version}"
    return [Row(name, f"{seconds:.2f} s", peer, "", "< 1 s")]
