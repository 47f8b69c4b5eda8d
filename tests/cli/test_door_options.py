"""A door and a format of logs from outside: options of `run`, opened and closed with the cell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOOR = '''
"""Prints what it is given."""
from contextlib import asynccontextmanager

HELP = "greet at this address"

@asynccontextmanager
async def open_door(live, value):
    print("open", value or "nowhere", "for", live.config.name)
    yield {"greet": f"tcp://127.0.0.1:{value or 7}"}
    print("closed", value or "nowhere")
'''
ENTRY_POINTS = "[understudy.doors]\ngreet = greet_door\n[understudy.logs]\ngreet = greet_door\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "greet_door.py").write_text(DOOR)
    info = tmp_path / "greet-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def understudy(package: Path, *words: str) -> str:
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "XDG_RUNTIME_DIR": str(package)}
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "run", *words],
        capture_output=True, text=True, env=environment, timeout=120, cwd=package,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_option_opens_a_door_and_the_ending_of_the_log_another(package: Path) -> None:
    words = ("--ephemeral", "--no-hmi", "--rate=max", "--for=0.1", "--log=run.greet")
    said = understudy(package, "--greet", "text_robot", *words).splitlines()
    words_of_doors = [line for line in said if line.startswith(("open", "closed"))]
    assert words_of_doors == [
        "open nowhere for text_robot",
        "open run.greet for text_robot",
        "closed run.greet",
        "closed nowhere",
    ]
    assert any("greet" in line and "tcp://127.0.0.1:" in line for line in said), "in the table"


def test_the_help_has_the_options_of_doors(package: Path) -> None:
    assert "greet at this address" in understudy(package, "--help")
