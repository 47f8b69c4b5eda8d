"""A backend in JavaScript, with the NATS client of npm."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.robots.mobile.contract.backend import PATIENCE
from tests.robots.mobile.contract.conftest import running
from tests.robots.mobile.contract.robots import write_cell
from tests.scratch_packages import npm_packages

SCRIPT = Path(__file__).with_name("backend.js")


@pytest.mark.soak
def test_a_command_of_the_npm_client_is_carried_out(tmp_path: Path) -> None:
    environment = npm_packages(tmp_path / "npm", "nats")
    with running(write_cell(tmp_path, {"port": 4222}, ["mover"])) as ready:
        done = subprocess.run(
            ["node", str(SCRIPT), ready["endpoints"]["nats"], "mover"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "stream": "ROBOT_OUT",
        "statuses": ["ACKED", "RUNNING", "DONE"],
    }
