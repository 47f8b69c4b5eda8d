"""A machine at a serial port, in a process of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.robots.grblhal.senders.processes import running, wait_until

CELL, ENDPOINT = "grblhal_6axis", "machine.grblhal"


@dataclass(frozen=True)
class Machine:
    """A cell in a process of its own, with its machine at a serial port."""

    port: str
    transcript: Path


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """The shipped machine at a port in ``folder``."""
    ready, transcript, port = (folder / name for name in ("ready.json", "machine.chat", "tty"))
    command = [sys.executable, "-m", "understudy", "run", CELL, "--pty", str(port), "--no-hmi"]
    command += ["--ephemeral", "--ready-file", str(ready), "--log", str(transcript)]
    with running(command, folder, "cell.log"):
        wait_until(ready.is_file, "the cell is ready")
        yield Machine(str(port), transcript)
