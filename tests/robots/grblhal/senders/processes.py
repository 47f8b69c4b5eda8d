"""Programs that a session with a sender needs: installed, started, waited for and ended."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

INSTALL_S = 900.0
START_S = 90.0
END_S = 10.0
POLL_S = 0.05


def wait_until(reached: Callable[[], bool], what: str, seconds: float = START_S) -> None:
    """Waits for a condition; TimeoutError with ``what`` if it is not reached in time."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(POLL_S)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def program(name: str, package: str) -> str:
    """Path of a program; root installs the Debian package that has it."""
    if shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        finish(["apt-get", "install", "-y", "--no-install-recommends", package], Path.cwd())
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"{name} is needed: install the package {package}")
    return path


def finish(command: list[str], folder: Path) -> None:
    """Runs a command to its end; RuntimeError with its last lines if it fails."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{last}")


def install_cncjs(folder: Path, version: str) -> None:
    """`cncjs` from npm, with everything it needs, inside ``folder``."""
    npm = program("npm", "npm")
    words = ["install", "--no-audit", "--no-fund", "--prefix", str(folder), f"cncjs@{version}"]
    finish([npm, *words], folder)


def install_bcnc(folder: Path, version: str) -> Path:
    """`bCNC` from PyPI in an environment of its own inside ``folder``; returns its Python."""
    finish([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = folder / "venv" / "bin" / "python"
    finish([str(python), "-m", "pip", "install", "--quiet", f"bCNC=={version}"], folder)
    return python


@contextmanager
def running(
    command: list[str], folder: Path, log: str, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process with its own group, whose output goes to a file; it is ended in any case."""
    with (folder / log).open("w") as output:
        process = subprocess.Popen(
            [*_ends_with_us(), *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(variables or {})},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end(process)


def _ends_with_us() -> list[str]:
    """Words before a command that end it if this process is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def end(process: subprocess.Popen[str]) -> None:
    """Ends a process that `running` started, and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            continue
    if process.stdin:
        process.stdin.close()
    process.wait(END_S)
