"""A REAL robot in a running cell: a command on NATS turns the motors behind a PLC, at a serial port
and at a CAN bus."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.robots.mobile.contract.backend import Backend, Payload
from tests.robots.mobile.contract.conftest import running
from tests.robots.mobile.real.live_devices import LIVE, LiveDevice, plc

from understudy.robots.mobile.runtime.robot import LAST_STATUSES

TRIES = 20
EXAMPLE = Path(__file__).parents[3] / "robots/mobile/config/robot_config.json"
DEADLINE_SECONDS = 60


@pytest.fixture(params=LIVE)
def device(request: pytest.FixtureRequest) -> Iterator[LiveDevice]:
    with LIVE[request.param]() as found:
        yield found


def cell_file(folder: Path, device: LiveDevice) -> Path:
    robot = json.loads(EXAMPLE.read_text())
    robot["runtime"]["mode"] = "REAL"
    robot["io"] = {}
    robot.pop("nats")
    for motor, driver in zip(robot["motors"], device.drivers, strict=True):
        motor["driver"] = driver
    (folder / "robot_config.json").write_text(json.dumps(robot))
    cell = folder / "cell.yaml"
    cell.write_text("include: {robots: [robot_config.json]}\nrobots: {}\n")
    return cell


def driving(backend: Backend) -> tuple[str, Payload]:
    """The command of a robot that drives, and its state. A loop that was late for long stops the
    robot and refuses or ends the command, as it should: it is given again."""
    for _ in range(TRIES):
        backend.state("robot-1", lambda state: state["status"] == "RUNNING")
        cause = backend.command("robot-1", "MOVE_VELOCITY", linear=0.5)
        state = backend.state("robot-1", partial(_drives_or_ended, backend, cause))
        if state["velocity"]["linear"] > 0.4:
            return cause, state
    raise AssertionError(f"stopped {TRIES} times: {backend.acks('robot-1', cause)}")


def _drives_or_ended(backend: Backend, cause: str, state: Payload) -> bool:
    acks = backend.acks("robot-1", cause)
    return state["velocity"]["linear"] > 0.4 or bool(acks and acks[-1][0] in LAST_STATUSES)


def test_a_command_turns_the_motors(tmp_path: Path, device: LiveDevice) -> None:
    with (
        running(cell_file(tmp_path, device), "--real") as ready,
        Backend(ready["endpoints"]["nats"]) as backend,
    ):
        cause, state = driving(backend)
        assert backend.acks("robot-1", cause)[:2] == [("ACKED", None), ("RUNNING", None)]
        assert state["runtimeMode"] == "REAL"
        assert state["pose"]["x"] > 0.05
        assert state["motors"]["drive_left"]["connected"]
        assert device.speed() == pytest.approx(0.5, abs=0.11)


def test_without_real_nothing_is_connected(tmp_path: Path) -> None:
    with plc() as device:
        cell = cell_file(tmp_path, device)
    refused = subprocess.run(
        [sys.executable, "-m", "understudy", "run", str(cell), "--ephemeral", "--for", "1"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert refused.returncode == 2
    assert "--real" in refused.stderr
