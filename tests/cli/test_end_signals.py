"""Ctrl-C, SIGTERM and a closed terminal at any time; a second signal always ends the process."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from understudy.app.guard import SAME_REQUEST_S

SCRIPT = """
import os, signal, sys

class Impatient:
    def find_spec(self, name, path, target=None):
        if name in ("understudy.cli.run", "understudy.cli.look"):
            try:
                os.kill(os.getpid(), signal.{signal})
            except BaseException:
                pass  # as a library would that is being loaded

sys.meta_path.insert(0, Impatient())
sys.argv = ["understudy", "{command}"]
from understudy.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("command", "name", "code"),
    [("run", "SIGINT", 0), ("run", "SIGTERM", 0), ("run", "SIGHUP", 0), ("cells", "SIGINT", 130)],
)
def test_a_signal_during_the_start_ends_the_command_silently(
    command: str, name: str, code: int
) -> None:
    script = SCRIPT.format(command=command, signal=name)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")


COMPILING = """
import os, signal, sys
from understudy.cli import end_signals, main
from understudy.app.live import Live

def go(self):
    os.kill(os.getpid(), signal.{signal})
    while True:
        pass

Live.go = go
end_signals.SIGNAL_GRACE_S = 0.05
sys.argv = ["understudy", "run", "text_robot", "--ephemeral", "--no-hmi"]
main()
"""
LEAVING = """
import atexit, os, signal, sys

atexit.register(lambda: os.kill(os.getpid(), signal.{signal}))
sys.argv = ["understudy", "faces"]
from understudy.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("script", [COMPILING, LEAVING], ids=["compiling", "leaving"])
def test_a_signal_ends_a_busy_command_and_is_ignored_at_exit(script: str, name: str) -> None:
    command = [sys.executable, "-c", script.format(signal=name)]
    ended = subprocess.run(command, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


# ── a running cell ──────────────────────────────────────────────────────────────────────────────

PATIENCE = 60.0
NOTICED_SECONDS = 5.0
WORDS = ["run", "text_robot", "--ephemeral", "--no-hmi", "--ready-file", "ready.json"]
PLAIN = "from understudy.__main__ import main; main()"
IN_C = """
from understudy.app.live import Live
from understudy.__main__ import main

Live.go = lambda self: sum(range(10**13))  # a call that never returns to python
main()
"""
IN_PYTHON = """
from understudy.app.live import Live
from understudy.__main__ import main

def go(self):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass  # as a library would

Live.go = go
main()
"""
CLOSING = """
import asyncio
from understudy.app.live import Live
from understudy.__main__ import main

async def stop(self):
    print("closing", flush=True)
    await asyncio.sleep(3600)

Live.stop = stop
main()
"""
COMPILING_KERNELS = """
import asyncio
from understudy.app import kernels
from understudy.cli import run
from understudy.__main__ import main

async def _prepare(live, eyes):
    kernels.missing = lambda names: ("motion",)
    try:
        await run._until(live.finished, run._compile_kernels(live.config, None))
    finally:
        print("closing", flush=True)
        await asyncio.sleep(3600)

run._prepare = _prepare
main()
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registry and ready files are those of this test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Cell:
    """A cell in a process of its own that has written its ready file."""

    def __init__(self, script: str = PLAIN, *, wrapper: Sequence[str] = (), **options: Any) -> None:
        code = f"import sys; sys.argv = {['understudy', *WORDS]!r}\n{script}"
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        wait_until(Path("ready.json").exists)
        self.pid: int = json.loads(Path("ready.json").read_text())["pid"]
        wait_until(lambda: self.guards() != [])

    def guards(self) -> list[str]:
        """Processes that were started by the cell."""
        task = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return task.read_text().split() if task.exists() else []

    def send_twice(self, first: signal.Signals, second: signal.Signals) -> int:
        """Sends two signals as an impatient user does, and returns the exit code."""
        os.kill(self.pid, first)
        for _ in range(int(PATIENCE / NOTICED_SECONDS)):
            time.sleep(2.0 * SAME_REQUEST_S)
            os.kill(self.pid, second)  # again, if a slow cell took both for one request
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(NOTICED_SECONDS)
                break
        return self.code()

    def code(self) -> int:
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def nothing_is_left() -> bool:
    return list(Path().rglob("*.json")) == []


@pytest.fixture
def cell() -> Iterator[Callable[..., Cell]]:
    started: list[Cell] = []

    def start(*words: str, **options: Any) -> Cell:
        started.append(Cell(*words, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize(
    ("script", "first", "second"),
    [
        (IN_C, signal.SIGTERM, signal.SIGTERM),
        (IN_PYTHON, signal.SIGTERM, signal.SIGTERM),
        (CLOSING, signal.SIGINT, signal.SIGTERM),
        (COMPILING_KERNELS, signal.SIGTERM, signal.SIGINT),
    ],
    ids=["C call", "python loop", "closing", "compiling"],
)
def test_a_second_signal_always_ends_the_process(
    cell: Callable[..., Cell], script: str, first: signal.Signals, second: signal.Signals
) -> None:
    code = cell(script).send_twice(first, second)
    assert code in (128 + second, -signal.SIGKILL)
    wait_until(nothing_is_left)


def test_a_signal_that_is_sent_twice_at_once_is_one_signal(cell: Callable[..., Cell]) -> None:
    """As `timeout` does: it signals its child, and then its own process group."""
    one = cell()
    os.kill(one.pid, signal.SIGTERM)
    os.kill(one.pid, signal.SIGTERM)
    assert one.code() == 0
    assert nothing_is_left()


def test_a_closed_terminal_ends_the_cell_and_leaves_nothing(cell: Callable[..., Cell]) -> None:
    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    master, terminal = os.openpty()
    one = cell(stdin=terminal, preexec_fn=own_terminal)
    os.close(terminal)
    os.close(master)
    assert one.code() == 0
    assert nothing_is_left()


def test_nohup_keeps_the_cell_running(cell: Callable[..., Cell]) -> None:
    one = cell(wrapper=["nohup"])
    os.kill(one.pid, signal.SIGHUP)
    os.kill(one.pid, signal.SIGTERM)
    assert one.code() == 0


def test_a_killed_cell_leaves_no_files(cell: Callable[..., Cell]) -> None:
    one = cell()
    os.kill(one.pid, signal.SIGKILL)
    assert one.code() == -signal.SIGKILL
    wait_until(nothing_is_left)


def test_two_cells_do_not_share_a_ready_file(cell: Callable[..., Cell]) -> None:
    one = cell()
    command = [sys.executable, "-m", "understudy", *WORDS]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2
    assert f"running cell text_robot (pid {one.pid})" in refused.stderr
    assert json.loads(Path("ready.json").read_text())["pid"] == one.pid
    foreign = json.dumps({"pid": 1, "cell": "x", "rate": 1.0, "endpoints": {}})
    Path("other.json").write_text(foreign)
    Path("other.json").replace("ready.json")  # another cell has taken it by force
    os.kill(one.pid, signal.SIGTERM)
    assert one.code() == 0
    assert Path("ready.json").read_text() == foreign
