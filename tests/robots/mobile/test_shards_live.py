"""A fleet in two processes at one NATS server; one of them is killed and started again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from tests.free_ports import free_port
from tests.robots.mobile.shard_processes import Backend, Shards


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def shards(tmp_path: Path, port: int) -> Iterator[Shards]:
    found = Shards(tmp_path, {"port": port})
    yield found
    found.stop()


def test_a_killed_shard_goes_on_where_it_was(shards: Shards, port: int) -> None:
    async def work() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
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
