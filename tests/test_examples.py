"""Every example runs.

Most of the time of an example would be the import of the package. One process imports it, with
warnings as errors, and runs each example in a fork of itself. Examples that are tests are run by
pytest, each in a process of its own.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
TESTS = [path for path in EXAMPLES if "def test_" in path.read_text()]
SCRIPTS = [path for path in EXAMPLES if path not in TESTS]
SECONDS = 240
"""In a new clone an example may compile kernels first: 20 s of a processor that others use, too."""
SERVER = f"""
import json, os, runpy, signal, sys
import understudy.app.kernels, understudy.app.live

while line := sys.stdin.readline():
    path, out = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm({SECONDS})
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        sys.argv, sys.path[0] = [path], os.path.dirname(path)
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runner:
    """The process that has imported the package."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", "-c", SERVER]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def run(self, path: Path, out: Path) -> int:
        """Exit code of an example; what it prints goes to a file."""
        _stream(self.process.stdin).write(json.dumps([str(path), str(out)]) + "\n")
        _stream(self.process.stdin).flush()
        return int(_stream(self.process.stdout).readline())


def _stream(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    started = Runner()
    with started.process:
        yield started
        _stream(started.process.stdin).close()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_example(path: Path, runner: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    code = runner.run(path, out)
    assert code == 0, out.read_text()
    assert out.read_text()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_example_with_tests(path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
