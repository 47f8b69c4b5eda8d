"""Two shards at a NATS cluster of three; one server after the other is killed."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.errors import Error as NatsError
from nats.js.errors import APIError
from tests.robots.mobile.shard_processes import DEADLINE_SECONDS, NUMBER, Backend, Shards
from tests.wire.nats.bench import stored
from tests.wire.nats.cluster import Cluster, cluster_of_three

STREAM = "ROBOT_OUT"
SHARDS = 2
FIRST_VICTIM = 1
"""Shard 1/2 is connected to this server (by the name of its consumer), shard 2/2 to another."""
KEYS = {"replicas": 3, "reconnect_wait_s": 0.1, "ack_wait_s": 2}
WHOLE = ["ACKED", "RUNNING", "DONE"]


class Fleet:
    """What a backend sees of the shards."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._backend = Backend(client)
        self._sent: list[str] = []
        self.statuses: dict[str, set[str]] = {}
        """Robot → the statuses of its states since they were cleared."""

    async def listen(self) -> None:
        await self._backend.listen()
        await self._client.subscribe("robot.*.state", cb=self._state)

    async def _state(self, message: Any) -> None:
        robot = message.subject.split(".")[1]
        status = json.loads(message.data)["payload"]["status"]
        self.statuses.setdefault(robot, set()).add(status)

    async def command_all(self, name: str) -> None:
        """A command for every robot; they are sent again until the cluster has stored them."""
        for number in range(1, NUMBER + 1):
            self._sent.append(f"{name}-{number}")
            await self._backend.command(f"robot-{number}", f"{name}-{number}")

    async def all_done(self) -> None:
        for name in self._sent:
            await self._backend.done(name)

    async def all_run(self) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not all("RUNNING" in each for each in self._last_statuses()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def _last_statuses(self) -> list[set[str]]:
        return [self.statuses.get(f"robot-{number}", set()) for number in range(1, NUMBER + 1)]

    async def acks(self) -> Counter[tuple[str, str]]:
        """How many acknowledgements of each command with each status the stream has."""
        found: Counter[tuple[str, str]] = Counter()
        for number in range(1, NUMBER + 1):
            for message in await stored(self._client, f"robot.robot-{number}.command.ack"):
                whole = json.loads(message.data)
                found[whole["correlationId"], whole["payload"]["status"]] += 1
        return found

    def once(self) -> Counter[tuple[str, str]]:
        return Counter({(name, status): 1 for name in self._sent for status in WHOLE})

    async def leads_consumers(self, server: int) -> None:
        """Makes a server the leader of the consumers of both shards, so that its end is felt."""
        consumers = await self._client.jetstream().consumers_info(STREAM)
        assert len(consumers) == SHARDS
        async with asyncio.timeout(DEADLINE_SECONDS):
            for consumer in [each.name for each in consumers]:
                where = f"$JS.API.CONSUMER.LEADER.STEPDOWN.{STREAM}.{consumer}"
                place = json.dumps({"placement": {"preferred": f"server_{server}"}}).encode()
                while await self._leader(consumer) != f"server_{server}":
                    await self._client.request(where, place)
                    await asyncio.sleep(0.1)

    async def _leader(self, consumer: str) -> str:
        try:
            info = await self._client.jetstream().consumer_info(STREAM, consumer)
        except (APIError, NatsError, TimeoutError):  # it is being chosen
            return ""
        return str(info.cluster.leader if info.cluster else "")


async def work(cluster: Cluster, shards: Shards, kills: int) -> None:
    client = await nats.connect(
        cluster.addresses, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=ignore
    )
    fleet = Fleet(client)
    await fleet.listen()
    assert (await client.jetstream().stream_info(STREAM)).config.num_replicas == 3
    await fleet.command_all("before")
    await fleet.all_done()
    for kill in range(kills):
        number = (kill + FIRST_VICTIM) % len(cluster.servers)
        await fleet.leads_consumers(number)
        await fleet.command_all(f"just-before-{kill}")
        await cluster.servers[number].stop()
        fleet.statuses.clear()
        await fleet.command_all(f"after-{kill}")
        await fleet.all_done()
        await fleet.all_run()
        if kill < kills - 1:
            await cluster.servers[number].start()
    assert await fleet.acks() == fleet.once()
    await client.close()
    killed = {cluster.addresses[(n + FIRST_VICTIM) % len(cluster.servers)] for n in range(kills)}
    lost = re.findall(r"the connection to (\S+) is lost", shards.log)
    assert set(lost) <= killed
    assert len(lost) == 1 or kills > 1


async def ignore(_: Exception) -> None:
    """nats-py connects again by itself."""


@pytest.mark.soak  # one kill, with a cell in this process: tests/wire/nats/test_cluster.py
@pytest.mark.parametrize("kills", [1, 12])
def test_a_server_of_the_cluster_is_killed(tmp_path: Path, kills: int) -> None:
    """The robots go on, and every command is carried out once."""

    async def test() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            shards = Shards(tmp_path, KEYS | {"servers": cluster.addresses})
            try:
                starts = (asyncio.to_thread(shards.start, each) for each in ("1/2", "2/2"))
                await asyncio.gather(*starts)
                await work(cluster, shards, kills)
            finally:
                await asyncio.to_thread(shards.stop)

    asyncio.run(test())
