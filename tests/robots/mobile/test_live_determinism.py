"""At the rate `max`, with the real NATS server, two runs send the same bytes in the same order."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from tests.robots.mobile.test_determinism import folder as folder
from tests.wire.nats.given import given_server

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.robots.mobile.runtime.fleet import INBOX, Fleet
from understudy.wire.connection import Event

PATIENCE_SECONDS = 60.0
COMMANDS = {
    "robot-1": ("MOVE_TO_POSE", {"x": 5.0, "y": 2.5}),
    "robot-2": ("MOVE_VELOCITY", {"linear": 0.5, "angular": 0.4, "durationSeconds": 6.0}),
    "robot-3": ("EXECUTE_ACTION", {"motorId": "lift", "targetPosition": 0.05}),
}


ATTEMPTS = 4


def undisturbed(folder: Path, seconds: float, seed: int | None) -> tuple[str, int, int]:
    """The outcome of a run in which a busy machine did not make the cell lose its server."""
    for _ in range(ATTEMPTS):
        digest, count, stored, connections = asyncio.run(served(folder, seconds, seed))
        if connections == 1:
            return digest, count, stored
    raise AssertionError(f"the connection was lost in {ATTEMPTS} runs")


async def served(folder: Path, seconds: float, seed: int | None) -> tuple[str, int, int, int]:
    """The outcome at a server of its own, which goes on when the cell has ended."""
    with TemporaryDirectory(dir=folder) as store:
        async with given_server(Path(store)) as server:
            file = folder / "given.yaml"
            keys = f"nats: {{servers: ['{server.address}']}}\n"
            file.write_text((folder / "cell.yaml").read_text() + keys)
            return await outcome(file, server.address, seconds, seed)


async def outcome(
    file: Path, server: str, seconds: float, seed: int | None
) -> tuple[str, int, int, int]:
    """The hash of all messages in their order, their number, that of the stored ones, and how
    often the cell connected. They are read when the cell has ended: everything is sent then."""
    connections = 0

    def note(event: Event) -> None:
        nonlocal connections
        connections += event.kind == "!" and event.data == b"open"

    live = Live(
        load_config(str(file), seed=seed),
        Options(rate="max", ephemeral=True, for_seconds=seconds, note=note),
    )
    await live.listen()
    client = await nats.connect(server)
    heard = await client.subscribe("robot.>")
    await client.flush()
    stream = client.jetstream()
    for number, (robot, (name, parameters)) in enumerate(COMMANDS.items()):
        payload = {"commandType": name, "parameters": parameters}
        data = json.dumps({"messageId": f"m{number}", "payload": payload}).encode()
        await stream.publish(f"robot.{robot}.command.request", data)
    await _received(live, len(COMMANDS))
    live.go()
    await asyncio.wait_for(live.finished.wait(), PATIENCE_SECONDS)
    await live.stop()
    stored = (await stream.stream_info("ROBOT_IN")).state.messages
    sent = [message async for message in until_now(client, heard)]
    await client.close()
    found = hashlib.sha256()
    for message in sent:
        found.update(message.subject.encode() + message.data)
    return found.hexdigest(), len(sent), stored, connections


async def until_now(client: Client, heard: Subscription) -> AsyncIterator[Msg]:
    """The messages of robots that the server has received up to now."""
    await client.publish("robot.end")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (message := await heard.next_msg(PATIENCE_SECONDS)).subject != "robot.end":
            if not message.subject.endswith("command.request"):
                yield message


async def _received(live: Live, messages: int) -> None:
    """Waits until the commands are in the inbox of the fleet; time does not run yet."""
    fleet = live._cell.components["fleet"]
    assert isinstance(fleet, Fleet)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while fleet.credit() > INBOX - messages:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def check(folder: Path, seconds: float) -> None:
    first, second, other = (undisturbed(folder, seconds, seed) for seed in (None, None, 99))
    assert first == second
    assert first[1] > 60 * seconds
    assert first[2] > 20
    assert other[0] != first[0]


def test_two_live_runs_send_the_same_bytes(folder: Path) -> None:
    check(folder, 6.0)


@pytest.mark.soak
def test_two_live_runs_of_an_hour_send_the_same_bytes(folder: Path) -> None:
    check(folder, 3600.0)
