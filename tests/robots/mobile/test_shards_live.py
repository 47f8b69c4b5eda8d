"""A fleet in two processes at one NATS server; one of them is killed and started again."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest

DEADLINE_SECONDS = 90
CELL = """
nats: {{port: {port}}}
robots:
  robot-1: {{kind: mobile, file: amr.json, pose: [2, 2, 0]}}
"""


class Shards:
    """Processes of one cell."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            self.port: int = place.getsockname()[1]
        self._folder = folder
        (folder / "cell.yaml").write_text(CELL.format(port=self.port))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, shard: str) -> None:
        ready = self._folder / f"{shard.replace('/', '_')}.json"
        ready.unlink(missing_ok=True)
        words = [
            "run", str(self._folder / "cell.yaml"), "--robots", "4", "--shard", shard,
            "--port", "control=0", "--ready-file", str(ready),
        ]  # fmt: skip
        with open(self._folder / "log", "ab") as log:
            self._processes[shard] = subprocess.Popen(
                [sys.executable, "-m", "understudy", *words], stdout=log, stderr=log
            )
        end = time.monotonic() + DEADLINE_SECONDS
        while not ready.exists():
            assert self._processes[shard].poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)

    def kill(self, shard: str) -> None:
        process = self._processes.pop(shard)
        process.kill()
        process.wait(DEADLINE_SECONDS)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(DEADLINE_SECONDS)


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Shards]:
    found = Shards(tmp_path)
    yield found
    found.stop()


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
        await self._client.jetstream().publish(subject, json.dumps(body).encode())

    async def done(self, name: str) -> list[str]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while "DONE" not in self._acks.get(name, []):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return self._acks[name]


def test_a_killed_shard_goes_on_where_it_was(shards: Shards) -> None:
    async def work() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{shards.port}")
        backend = Backend(client)
        await backend.listen()
        for number in range(1, 5):
            await backend.command(f"robot-{number}", f"first-{number}")
        for number in range(1, 5):
            assert await backend.done(f"first-{number}") == ["ACKED", "RUNNING", "DONE"]
        await asyncio.to_thread(shards.kill, "2/2")
        await backend.command("robot-2", "while-away")
        await backend.command("robot-3", "other-shard")
        assert await backend.done("other-shard") == ["ACKED", "RUNNING", "DONE"]
        await asyncio.to_thread(shards.start, "2/2")
        assert await backend.done("while-away") == ["ACKED", "RUNNING", "DONE"]
        await client.close()

    shards.start("1/2")
    shards.start("2/2")
    asyncio.run(work())
