"""A cluster of three servers, and a leaf node in front of a server with JetStream."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.free_ports import free_port
from tests.wire.nats.bench import (
    RobotFace,
    client_of,
    eventually,
    has_stored,
    run,
    running,
    stored,
    until,
)
from tests.wire.nats.cluster import Cluster, cluster_of_three
from tests.wire.nats.given import given_server

from understudy.errors import ConfigError
from understudy.wire.nats import Config

QUICK: dict[str, Any] = {"reconnect_wait_s": 0.1, "connect_timeout_s": 30.0}


@pytest.mark.soak
def test_the_server_that_leads_the_consumer_is_killed(tmp_path: Path) -> None:
    """The cell is connected to another server: its connection goes on, and the request for messages
    that was at the killed server is made again."""

    async def test() -> None:
        face = RobotFace()
        async with cluster_of_three(tmp_path) as cluster:
            config = Config(servers=(cluster.addresses[0],), replicas=3, **QUICK)
            async with (
                client_of(cluster.addresses[1]) as client,
                running(face, config) as bench,
            ):
                js = client.jetstream()
                info = await js.stream_info("ROBOT_OUT")
                assert info.config.num_replicas == 3
                # the leader goes to a server that is not the cell's
                while (leader := await leader_of(js)) == "server_0":
                    await client.request("$JS.API.CONSUMER.LEADER.STEPDOWN.ROBOT_OUT.understudy")
                    await asyncio.sleep(0.1)
                await cluster.servers[int(leader[-1])].stop()
                await publish_until_confirmed(client, b"go")
                await until(lambda: len(face.received) == 1)
                await until(lambda: face.confirmed == len(face.put_ids) == 1)
                assert bench.is_connected()
                assert (face.openings, face.closings) == (1, 0)

    run(test())


async def leader_of(js: Any) -> str:
    info = await js.consumer_info("ROBOT_OUT", "understudy")
    return str(info.cluster.leader if info.cluster else "")


async def publish_until_confirmed(client: Any, data: bytes) -> None:
    headers = {"Nats-Msg-Id": "one"}
    while True:
        try:
            await client.jetstream().publish(
                "robot.r1.command.request", data, headers=headers, timeout=1.0
            )
        except Exception:  # noqa: BLE001 - the stream has no leader for some seconds
            await asyncio.sleep(0.1)
        else:
            return


@pytest.mark.soak
def test_a_cell_waits_for_the_rest_of_a_cluster(tmp_path: Path) -> None:
    """One of three servers runs: there is no leader yet, the cell starts all the same."""

    async def test() -> None:
        face, cluster = RobotFace(events=3), Cluster(tmp_path)
        first, *others = cluster.servers
        try:
            await first.start()
            config = Config(servers=(first.address,), replicas=3, answer_timeout_s=0.5, **QUICK)
            async with running(face, config) as bench:
                assert not bench.is_connected()
                for server in others:
                    await server.start()
                await until(lambda: face.confirmed == 3)
        finally:
            await cluster.stop()

    run(test())


def test_a_cell_waits_for_more_servers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The cluster has fewer servers than the streams shall have replicas; others may come."""

    async def test() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            config = Config(servers=(cluster.addresses[0],), replicas=5, **QUICK)
            async with running(RobotFace(), config) as bench:
                assert not bench.is_connected()
        assert "stream ROBOT_IN cannot be made: no suitable peers" in caplog.text

    run(test())


def test_cells_begin_at_different_servers(tmp_path: Path) -> None:
    async def test() -> None:
        folders = [tmp_path / name for name in "abc"]
        for folder in folders:
            folder.mkdir()
        async with (
            given_server(folders[0]) as one,
            given_server(folders[1]) as two,
            given_server(folders[2]) as three,
        ):
            servers = (one.address, two.address, three.address)
            for number in range(9):
                config = Config(servers=servers, durable=f"shard-{number}", **QUICK)
                async with running(RobotFace(), config):
                    pass
            for address in servers:  # each has the consumer of some of them
                async with client_of(address) as client:
                    assert await client.jetstream().consumers_info("ROBOT_OUT")

    run(test())


def test_more_replicas_than_the_stream_has_are_an_error(tmp_path: Path) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server:
            async with running(RobotFace(), Config(servers=(server.address,), **QUICK)):
                pass
            more = Config(servers=(server.address,), replicas=3, **QUICK)
            with pytest.raises(ConfigError, match="it has 1 replicas, the cell file says 3"):
                async with running(RobotFace(), more):
                    pass

    run(test())


def test_the_own_server_has_no_replicas() -> None:
    with pytest.raises(ValueError, match="replicas are for given servers"):
        Config(replicas=3)


def test_a_leaf_node_leads_to_the_streams_of_its_hub(tmp_path: Path) -> None:
    async def test() -> None:
        port, face = free_port(), RobotFace(events=20)
        (tmp_path / "hub").mkdir()
        (tmp_path / "leaf").mkdir()
        for_hub = {
            "leafnodes": {"listen": f"127.0.0.1:{port}"},
            "jetstream": {"store_dir": str(tmp_path / "store"), "domain": "hub"},
        }
        for_leaf = {
            "leafnodes": {"remotes": [{"url": f"nats://127.0.0.1:{port}"}]},
            "jetstream": False,
            "mappings": {"$JS.API.>": "$JS.hub.API.>"},
        }
        async with (
            given_server(tmp_path / "hub", **for_hub) as hub,
            given_server(tmp_path / "leaf", **for_leaf) as leaf,
            running(face, Config(servers=(leaf.address,), **QUICK)),
            client_of(hub.address) as client,
        ):
            await until(lambda: face.confirmed == 20)
            await eventually(lambda: has_stored(client, 20))
            await client.jetstream().publish("robot.r1.command.request", b"go")
            await until(lambda: len(face.received) == 1)
            await until(lambda: face.confirmed == 21)
            found = await stored(client, "robot.r1.events")
            assert [each.headers["Nats-Msg-Id"] for each in found] == face.put_ids
            await eventually(lambda: all_acknowledged(client))

    run(test())


async def all_acknowledged(client: Any) -> bool:
    info = await client.jetstream().consumer_info("ROBOT_OUT", "understudy")
    return bool(info.num_ack_pending == 0 and info.delivered.consumer_seq == 1)
