"""A live cell with mobile robots in a process of its own, and a backend that is connected to it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.robots.mobile.contract.backend import PATIENCE, Backend
from tests.robots.mobile.contract.robots import write_cell

RATE = "4"
"""Times real time."""


@contextmanager
def running(cell: Path, *options: str) -> Iterator[dict[str, Any]]:
    """The contents of the ready file of a cell that runs."""
    ready = cell.with_suffix(".ready")
    command = [sys.executable, "-m", "understudy", "run", str(cell), "--no-hmi", "--ephemeral"]
    command += ["--ready-file", str(ready), *options]
    env = os.environ | {"XDG_RUNTIME_DIR": str(cell.parent)}
    log = cell.with_suffix(".log")
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=env) as process,
    ):
        try:
            end = time.monotonic() + PATIENCE
            while not ready.exists():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.02)
            yield json.loads(ready.read_text())
            process.terminate()
            assert process.wait(PATIENCE) == 0, log.read_text()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """Connected to the cell of all tests of a module. A cell for the whole session would use
    processor time until the last test of the suite."""
    cell = write_cell(tmp_path_factory.mktemp("contract"), {"port": 4222})
    with running(cell, "--rate", RATE) as ready, Backend(ready["endpoints"]["nats"]) as backend:
        yield backend
