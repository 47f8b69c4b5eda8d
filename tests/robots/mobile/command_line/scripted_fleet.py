"""A real nats-server, and robots on it that answer by a script; written with nats-py alone."""

import asyncio
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

PATIENCE = 60.0
FROM_ROBOT = (
    "heartbeat",
    "state",
    "telemetry",
    "events",
    "settings.reported",
    "command.ack",
    "task.progress",
    "task.done",
    "task.failed",
    "traffic.state",
    "route.request",
)
TO_ROBOT = (
    "command.request",
    "settings.desired",
    "task.assign",
    "task.cancel",
    "traffic.control",
    "route.response",
)


@contextmanager
def nats_server(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server with JetStream on a port that was free."""
    binary = Path(sys.executable).with_name("nats-server")
    command = [binary, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder / "store"]
    command += ["--ports_file_dir", folder, "-l", folder / "log", *options]
    with subprocess.Popen([str(word) for word in command]) as process:
        try:
            yield _address(folder, process)
        finally:
            process.kill()


def _address(folder: Path, process: "subprocess.Popen[bytes]") -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, (folder / "log").read_text()
        for file in folder.glob("*.ports"):
            if text := file.read_text():
                return str(json.loads(text)["nats"][0])
        time.sleep(0.01)
    raise TimeoutError("nats-server does not start")


class ScriptedFleet:
    """Robots that send their state and answer as the tests say.

    ``acks``: for each command type the answers, each a payload without its commandType.
    ``tasks``: the kinds and payloads that answer a task.assign.
    """

    def __init__(self, address: str, robots: tuple[str, ...]) -> None:
        self.acks: dict[str, list[dict[str, Any]]] = {}
        self.tasks: list[tuple[str, dict[str, Any]]] = []
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.robots = robots
        self.stop_reason: str | None = None
        self.stays = False
        """`stop_reason` stays, whatever traffic control says."""
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._run()])
        self._ready = threading.Event()
        self._end = asyncio.Event()

    def __enter__(self) -> "ScriptedFleet":
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _run(self) -> None:
        client = await nats.connect(self._address)
        streams = client.jetstream()
        for name, kinds in (("ROBOT_IN", FROM_ROBOT), ("ROBOT_OUT", TO_ROBOT)):
            subjects = [f"robot.*.{kind}" for kind in kinds]
            await streams.add_stream(StreamConfig(name=name, subjects=subjects))

        async def received(message: Msg) -> None:
            await self._answer(client, message)

        for kind in TO_ROBOT:
            await client.subscribe(f"robot.*.{kind}", cb=received)
        await self._send_states(client)
        await client.flush()
        self._ready.set()
        while not self._end.is_set():
            await self._send_states(client)
            await asyncio.wait([asyncio.ensure_future(self._end.wait())], timeout=0.05)
        await client.close()

    async def _send_states(self, client: Client) -> None:
        for number, robot in enumerate(self.robots):
            state = {
                "pose": {"x": 1.5 + number, "y": -2.0, "yaw": 1.5707963},
                "velocity": {"linear": 0.25, "angular": 0.0},
                "batteryPercent": 87.0,
                "status": "PAUSED" if self.stop_reason else "RUNNING",
                "safetyStopReason": self.stop_reason,
            }
            await self._send(client, robot, "state", state, None)

    async def _send(
        self, client: Client, robot: str, kind: str, payload: dict[str, Any], cause: str | None
    ) -> None:
        envelope = {"payloadVersion": 1, "messageId": str(uuid.uuid4()), "robotId": robot}
        envelope |= {"payload": payload, "correlationId": cause}
        text = json.dumps(envelope, ensure_ascii=False)
        await client.publish(f"robot.{robot}.{kind}", text.encode())

    async def _answer(self, client: Client, message: Msg) -> None:
        _, robot, kind = message.subject.split(".", 2)
        content = json.loads(message.data)
        payload, cause = content["payload"], content.get("correlationId")
        self.received.append((kind, content))
        if kind == "command.request":
            name = payload["commandType"]
            for ack in self.acks.get(name, []):
                await self._send(client, robot, "command.ack", {"commandType": name} | ack, cause)
        elif kind == "task.assign":
            for answer, said in self.tasks:
                known = said | {"taskId": said.get("taskId", payload["taskId"])}
                await self._send(client, robot, answer, known, cause)
        elif kind == "traffic.control" and not self.stays:
            self.stop_reason = None if payload.get("releaseHold") else "TRAFFIC_HOLD"
