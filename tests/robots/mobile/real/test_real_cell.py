"""A REAL robot in a running cell: a command on NATS turns the motors behind a PLC."""

import asyncio
import json
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.robots.mobile.real.virtual_device import ModbusDevice

EXAMPLE = Path(__file__).parents[3] / "config/mobile/robot_config.json"
DEADLINE_SECONDS = 60
LEFT, RIGHT, GRIPPER = 0, 100, 200


class Server(socketserver.ThreadingTCPServer):
    """A PLC at a socket; its program runs while its clients ask."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.device = ModbusDevice((LEFT, RIGHT, GRIPPER))
        self.lock = threading.Lock()
        self.last = time.monotonic()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        while data := self.request.recv(4096):
            with self.server.lock:
                now = time.monotonic()
                self.server.device.run(max(now - self.server.last, 1e-3))
                self.server.last = now
                answer = self.server.device.answer(data)
            self.request.sendall(answer)


@pytest.fixture
def plc() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join(DEADLINE_SECONDS)


def cell_file(folder: Path, port: int) -> Path:
    robot = json.loads(EXAMPLE.read_text())
    robot["runtime"]["mode"] = "REAL"
    robot["io"] = {}
    robot.pop("nats")
    for motor, address in zip(robot["motors"], (LEFT, RIGHT, GRIPPER), strict=True):
        config = {"host": "127.0.0.1", "port": port, "address": address}
        motor["driver"] = {"type": "PLC", "config": config}
    (folder / "robot_config.json").write_text(json.dumps(robot))
    cell = folder / "cell.yaml"
    cell.write_text("include: {robots: [robot_config.json]}\nrobots: {}\n")
    return cell


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "understudy", *words]


@pytest.fixture
def endpoints(tmp_path: Path, plc: Server) -> Iterator[dict[str, str]]:
    ready = tmp_path / "ready.json"
    cell = cell_file(tmp_path, plc.server_address[1])
    process = subprocess.Popen(
        command("run", str(cell), "--real", "--ephemeral", "--ready-file", str(ready)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
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
                "messageId": "m-1", "correlationId": "c-1",
                "payload": {"commandType": "MOVE_VELOCITY", "parameters": {"linear": 0.5}},
            }  # fmt: skip
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


def test_a_command_turns_the_motors(endpoints: dict[str, str], plc: Server) -> None:
    seen, state = asyncio.run(drive(endpoints["nats"]))
    assert seen[:2] == ["ACKED", "RUNNING"]
    assert state["runtimeMode"] == "REAL"
    assert state["pose"]["x"] > 0.05
    assert state["motors"]["drive_left"]["connected"]
    with plc.lock:
        assert plc.device.number(LEFT + 3) == pytest.approx(0.5, abs=0.11)


def test_without_real_nothing_is_connected(tmp_path: Path, plc: Server) -> None:
    cell = cell_file(tmp_path, plc.server_address[1])
    refused = subprocess.run(
        command("run", str(cell), "--ephemeral", "--for", "1"),
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "--real" in refused.stderr
