"""A REAL robot in a running cell: a command on NATS turns the motors behind a PLC, at a serial port
and at a CAN bus."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.robots.mobile.real.live_devices import LIVE, LiveDevice, plc

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


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "understudy", *words]


@pytest.fixture
def endpoints(tmp_path: Path, device: LiveDevice) -> Iterator[dict[str, str]]:
    ready = tmp_path / "ready.json"
    cell = cell_file(tmp_path, device)
    process = subprocess.Popen(
        command("run", str(cell), "--real", "--ephemeral", "--ready-file", str(ready)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + DEADLINE_SECONDS
    while not ready.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.02)
    yield json.loads(ready.read_text())["endpoints"]
    process.terminate()
    process.communicate(timeout=DEADLINE_SECONDS)


async def drive(server: str) -> tuple[list[str], dict[str, Any]]:
    """Sends a velocity, and returns the acks and the state in which the robot moves."""
    client = await nats.connect(server)
    acks = await client.subscribe("robot.robot-1.command.ack")
    states = await client.subscribe("robot.robot-1.state")
    seen: list[str] = []
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while (
                json.loads((await states.next_msg(DEADLINE_SECONDS)).data)["payload"]["status"]
                != "RUNNING"
            ):
                pass
            request = {
                "messageId": "m-1",
                "correlationId": "c-1",
                "payload": {"commandType": "MOVE_VELOCITY", "parameters": {"linear": 0.5}},
            }
            await client.jetstream().publish(
                "robot.robot-1.command.request", json.dumps(request).encode()
            )
            while True:
                state = json.loads((await states.next_msg(DEADLINE_SECONDS)).data)["payload"]
                if state["velocity"]["linear"] > 0.4:
                    break
            while acks.pending_msgs:
                seen.append(json.loads((await acks.next_msg()).data)["payload"]["status"])
    finally:
        await client.close()
    return seen, state


def test_a_command_turns_the_motors(endpoints: dict[str, str], device: LiveDevice) -> None:
    seen, state = asyncio.run(drive(endpoints["nats"]))
    assert seen[:2] == ["ACKED", "RUNNING"]
    assert state["runtimeMode"] == "REAL"
    assert state["pose"]["x"] > 0.05
    assert state["motors"]["drive_left"]["connected"]
    assert device.speed() == pytest.approx(0.5, abs=0.11)


def test_without_real_nothing_is_connected(tmp_path: Path) -> None:
    with plc() as device:
        cell = cell_file(tmp_path, device)
    refused = subprocess.run(
        command("run", str(cell), "--ephemeral", "--for", "1"),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert refused.returncode == 2
    assert "--real" in refused.stderr
