"""Master controls of other makers command a running robot."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.robots.mobile.vda5050.test_vda5050 import DEADLINE_SECONDS, running
from tests.scratch_packages import npm_packages, python_packages
from tests.wire.mqtt.broker import Broker

SCRIPTS = Path(__file__).parent / "foreign"


def carried_out(
    tmp_path: Path, version: str, command: list[str], environment: dict[str, str]
) -> Any:
    """What a master control prints that has commanded a robot."""
    broker = Broker(tmp_path)
    broker.start()
    try:
        with running(tmp_path, broker, version):
            done = subprocess.run(
                [*command, f"mqtt://127.0.0.1:{broker.port}"],
                capture_output=True,
                text=True,
                timeout=DEADLINE_SECONDS,
                env=environment,
                check=False,
            )
    finally:
        broker.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.soak
def test_vda_5050_lib(tmp_path: Path) -> None:
    """Of npm; its version is 2.0."""
    environment = npm_packages(tmp_path / "npm", "vda-5050-lib")
    script = str(SCRIPTS / "master.js")
    said = carried_out(tmp_path, "2.0.0", ["node", script], environment)
    assert said["first"] == {"byCancelation": False}
    assert said["traversed"][:2] == ["a", "a-end"]
    assert {"pick:FINISHED", "drop:FINISHED"} <= set(said["actions"])
    assert said["stands"], said
    assert said["second"]["byCancelation"]
    assert {"startPause:FINISHED", "stopPause:FINISHED", "cancelOrder:FINISHED"} <= set(
        said["instant"]
    )
    assert said["errors"] == []


@pytest.mark.soak
def test_vda5050_sdk(tmp_path: Path) -> None:
    """Of PyPI; its version is 2.1. It checks what it receives with the schemas."""
    environment = python_packages(tmp_path / "pip", "vda5050-sdk[mqtt]")
    script = str(SCRIPTS / "master.py")
    said = carried_out(tmp_path, "2.1.0", [sys.executable, script], environment)
    assert said["errors"] == []
    assert {"pick:FINISHED", "drop:FINISHED"} <= set(said["actions"])
    assert said["paused"]
    assert said["over"] == "o1"
