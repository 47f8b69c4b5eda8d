"""A machine at a serial port, in a process of its own."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.robots.grblhal.senders.processes import running, wait_until

ENDPOINT = "machine.grblhal"


@dataclass(frozen=True)
class Machine:
    """A cell in a process of its own, with its machine at a serial port."""

    port: str
    transcript: Path


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    ready, transcript = folder / "ready.json", folder / "machine.chat"
    command = [sys.executable, "-m", "understudy", "run", "machine.yaml", "--ephemeral", "--no-hmi"]
    command += ["--ready-file", str(ready), "--log", str(transcript)]
    with running(command, folder, "cell.log"):
        wait_until(ready.is_file, "the cell is ready")
        place = json.loads(ready.read_text())["endpoints"][ENDPOINT]
        yield Machine(place.removeprefix("pty:"), transcript)
