"""A backend of mobile robots in plain nats-py: it listens, sends a task and answers route.request.

    python examples/fleet_backend.py nats://127.0.0.1:4222 robot-1

Without arguments it starts the shipped cell `fleet` on free ports, ten times as fast as real time.
"""

import asyncio
import json
import math
import os
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import nats
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext

DEADLINE = 60.0


async def send(streams: JetStreamContext, robot: str, kind: str, payload: dict[str, Any]) -> str:
    """Stores a message for a robot in the stream ROBOT_OUT; returns its id."""
    message_id = str(uuid.uuid4())
    envelope = {
        "payloadVersion": 1,
        "messageId": message_id,
        "robotId": robot,
        "correlationId": message_id,  # comes back in every answer
        "payload": payload,
    }
    subject = f"robot.{robot}.{kind}"
    # The server drops a message whose id it has stored: sending again is safe.
    headers = {"Nats-Msg-Id": message_id}
    await streams.publish(subject, json.dumps(envelope).encode(), headers=headers)
    return message_id


def route(request: dict[str, Any]) -> dict[str, Any]:
    """A straight way: turn, go, and stand as the destination wants it."""
    start, end = request["start"], request["destination"]
    heading = math.atan2(end["y"] - start["y"], end["x"] - start["x"])
    return {
        "routeId": str(uuid.uuid4()),
        "taskId": request["taskId"],
        "segments": [],
        "steps": [
            {"type": "TURN", "yaw": heading},
            {"type": "MOVE", "x": end["x"], "y": end["y"], "nodeId": "goal"},
        ],
        "etaSecondsTotal": math.hypot(end["x"] - start["x"], end["y"] - start["y"]),
    }


async def run_task(server: str, robot: str) -> bool:
    """Sends the robot one metre ahead; returns whether it got there."""
    connection = await nats.connect(server)
    streams = connection.jetstream()
    outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    pose: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def received(message: Msg) -> None:
        kind = message.subject.split(".", 2)[2]
        payload = json.loads(message.data)["payload"]
        if kind == "state" and not pose.done():
            pose.set_result(payload["pose"])
        elif kind == "route.request":
            await send(streams, robot, "route.response", route(payload))
        elif kind in ("task.done", "task.failed") and not outcome.done():
            outcome.set_result(kind == "task.done")
        if kind in ("events", "task.progress", "task.done", "task.failed", "route.request"):
            print(robot, kind, json.dumps(payload)[:100])

    await connection.subscribe(f"robot.{robot}.>", cb=received)
    here = await asyncio.wait_for(pose, DEADLINE)
    place = {
        "x": here["x"] + math.cos(here["yaw"]),
        "y": here["y"] + math.sin(here["yaw"]),
    }
    task = {"taskId": str(uuid.uuid4()), "taskType": "MOVE_TO_POINT", "moveToPoint": place}
    await send(streams, robot, "task.assign", task)
    try:
        return await asyncio.wait_for(outcome, DEADLINE)
    finally:
        await connection.close()


async def with_a_cell() -> bool:
    """The same with a cell that ends with it."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        words = ["run", "fleet", "--ephemeral", "--no-hmi", "--rate", "10"]
        command = [sys.executable, "-m", "understudy", *words, "--ready-file", str(ready)]
        env = os.environ | {"XDG_RUNTIME_DIR": folder}
        cell = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, env=env
        )
        try:
            while not ready.exists():
                if cell.returncode is not None:
                    return False
                await asyncio.sleep(0.05)
            server = json.loads(ready.read_text())["endpoints"]["nats"]
            return await run_task(server, "robot-1")
        finally:
            cell.terminate()
            await cell.wait()


async def main() -> int:
    work = run_task(*sys.argv[1:3]) if len(sys.argv) > 2 else with_a_cell()
    done = await asyncio.wait_for(work, 2 * DEADLINE)
    print("done" if done else "failed")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
