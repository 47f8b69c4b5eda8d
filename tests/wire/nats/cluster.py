"""A NATS cluster of three servers, started by the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from tests.free_ports import free_port
from tests.wire.nats.bench import client_of
from tests.wire.nats.given import GivenServer

SIZE = 3


class Cluster:
    """Servers that know each other; each keeps its ports and its store when it starts again."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        ports = [free_port() for _ in range(SIZE)]
        routes = [f"nats://127.0.0.1:{port}" for port in ports]
        self.servers: list[GivenServer] = []
        for number, port in enumerate(ports):
            place = folder / f"server_{number}"
            place.mkdir()
            own = {
                "server_name": f"server_{number}",
                "cluster": {"name": "c", "listen": f"127.0.0.1:{port}", "routes": routes},
            }
            self.servers.append(GivenServer(place, own | settings))

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    async def start(self) -> None:
        await asyncio.gather(*(server.start() for server in self.servers))
        async with client_of(self.addresses[0]) as client:
            await ready(client)

    async def stop(self) -> None:
        for server in self.servers:
            await server.stop()


async def ready(client: Any) -> None:
    """Returns when all servers are there and have chosen a leader of JetStream."""
    while True:
        with contextlib.suppress(NatsError, NoRespondersError, TimeoutError):
            found = await client.jetstream().account_info()
            if found is not None and len(client.servers) >= SIZE:
                return
        await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def cluster_of_three(folder: Path, **settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder, **settings)
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.stop()
