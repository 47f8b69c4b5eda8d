"""A cell in a process of its own, which a test can kill: prints where its server is, then runs."""

import asyncio
import sys

from tests.wire.nats.bench import RobotFace, running

from understudy.wire.nats import Config


async def main(store: str) -> None:
    async with running(RobotFace(), Config(port=0, store=store)) as bench:
        print(bench.address, bench.server_pid, flush=True)
        await asyncio.Event().wait()


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
