"""Processes of a fleet in shards, and a backend that knows NATS and the messages only."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from nats.errors import Error as NatsError

DEADLINE_SECONDS = 90
ROBOTS = {"robot-1": {"kind": "mobile", "file": "amr.json", "pose": [2, 2, 0]}}
NUMBER = 4
"""Robots of all shards; robots 1 and 3 are in shard 1/2, robots 2 and 4 in shard 2/2."""


class Shards:
    """Processes of one cell."""

    def __init__(self, folder: Path, nats: dict[str, Any]) -> None:
        """``nats``: that key of the cell file."""
        self._folder = folder
        (folder / "cell.yaml").write_text(json.dumps({"nats": nats, "robots": ROBOTS}))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, shard: str) -> None:
        ready = self._folder / f"{shard.replace('/', '_')}.json"
        ready.unlink(missing_ok=True)
        words = [
            "run",
            str(self._folder / "cell.yaml"),
            "--robots",
            str(NUMBER),
            "--shard",
            shard,
            "--port",
            "control=0",
            "--ready-file",
            str(ready),
        ]
        with open(self._folder / "log", "ab") as log:
            self._processes[shard] = subprocess.Popen(
                [sys.executable, "-m", "understudy", *words], stdout=log, stderr=log
            )
        end = time.monotonic() + DEADLINE_SECONDS
        while not ready.exists():
            assert self._processes[shard].poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def kill(self, shard: str) -> None:
        process = self._processes.pop(shard)
        process.kill()
        process.wait(DEADLINE_SECONDS)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(DEADLINE_SECONDS)


class Backend:
    """A client that knows NATS and the messages only."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._acks: dict[str, list[str]] = {}

    async def listen(self) -> None:
        await self._client.subscribe("robot.*.command.ack", cb=self._ack)

    async def _ack(self, message: Any) -> None:
        whole = json.loads(message.data)
        statuses = self._acks.setdefault(whole["correlationId"], [])
        if whole["payload"]["status"] not in statuses:  # a message may come twice
            statuses.append(whole["payload"]["status"])

    async def command(self, robot: str, name: str) -> None:
        payload = {"commandType": "SET_SPEED_LIMIT", "parameters": {"maxSpeedMps": 0.5}}
        body = {"messageId": name, "correlationId": name, "payload": payload}
        subject = f"robot.{robot}.command.request"
        data, headers = json.dumps(body).encode(), {"Nats-Msg-Id": name}
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not await self._is_stored(subject, data, headers):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _is_stored(self, subject: str, data: bytes, headers: dict[str, str]) -> bool:
        streams = self._client.jetstream()
        try:
            await streams.publish(subject, data, headers=headers, timeout=2.0)
        except (NatsError, TimeoutError):  # it is sent again, with the same id
            return False
        return True

    async def done(self, name: str) -> list[str]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while "DONE" not in self._acks.get(name, []):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return self._acks[name]
