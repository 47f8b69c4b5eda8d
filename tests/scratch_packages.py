"""Clients in other languages and of other makers; the latter are installed into a scratch folder,
and without their registry a test is skipped and says so."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

NODE = str(compute_driver_executable()[0])
"""The Node that comes with Playwright."""
INSTALL_SECONDS = 180
LONGEST_SHOWN = 300


def npm_packages(folder: Path, *packages: str) -> dict[str, str]:
    """Installs packages of npm; returns the environment in which `node` finds them."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    _run("npm", command)
    return os.environ | {"NODE_PATH": str(folder / "node_modules")}


def python_packages(folder: Path, *packages: str) -> dict[str, str]:
    """Installs packages of PyPI; returns the environment in which this Python finds them."""
    base = Path(sys.base_prefix) / "bin/python3"  # the environment of the tests may have no pip
    pip = [str(base), "-m", "pip", "--python", sys.executable]
    _run("PyPI", [*pip, "install", "--quiet", "--target", str(folder), *packages])
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _run(registry: str, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{registry} gave no answer within {INSTALL_SECONDS} s")
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip()[-LONGEST_SHOWN:]
        pytest.skip(f"{registry} is out of reach, or has no such package: {last}")
