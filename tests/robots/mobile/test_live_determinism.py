"""At the rate `max`, with the real NATS server, two runs send the same bytes in the same order."""

import asyncio
import hashlib
import json
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg
from tests.robots.mobile.test_determinism import folder as folder

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.jobs.mobile.fleet import INBOX, Fleet
from understudy.wire.chat import Event

PATIENCE_SECONDS = 60.0
COMMANDS = {
    "robot-1": ("MOVE_TO_POSE", {"x": 5.0, "y": 2.5}),
    "robot-2": ("MOVE_VELOCITY", {"linear": 0.5, "angular": 0.4, "durationSeconds": 6.0}),
    "robot-3": ("EXECUTE_ACTION", {"motorId": "lift", "targetPosition": 0.05}),
}


ATTEMPTS = 4


def undisturbed(file: Path, seconds: float, seed: int | None) -> tuple[str, int, int]:
    """The outcome of a run in which a busy machine did not make the cell lose its server."""
    for _ in range(ATTEMPTS):
        digest, count, stored, connections = asyncio.run(outcome(file, seconds, seed))
        if connections == 1:
            return digest, count, stored
    raise AssertionError(f"the connection was lost in {ATTEMPTS} runs")


async def outcome(file: Path, seconds: float, seed: int | None) -> tuple[str, int, int, int]:
    """The hash of all messages in their order, their number, that of the stored ones, and how
    often the cell connected."""
    connections = 0

    def note(event: Event) -> None:
        nonlocal connections
        connections += event.kind == "!" and event.data == b"open"

    live = Live(
        load_config(str(file), seed=seed),
        Options(rate="max", ephemeral=True, for_seconds=seconds, note=note),
    )
    await live.listen()
    client = await nats.connect(live.endpoints["nats"])
    found, count = hashlib.sha256(), 0

    async def heard(message: Msg) -> None:
        nonlocal count
        if not message.subject.endswith("command.request"):
            found.update(message.subject.encode() + message.data)
            count += 1

    await client.subscribe("robot.>", cb=heard)
    await client.flush()
    stream = client.jetstream()
    for number, (robot, (name, parameters)) in enumerate(COMMANDS.items()):
        payload = {"commandType": name, "parameters": parameters}
        data = json.dumps({"messageId": f"m{number}", "payload": payload}).encode()
        await stream.publish(f"robot.{robot}.command.request", data)
    await _received(live, len(COMMANDS))
    live.go()
    await asyncio.wait_for(live.finished.wait(), PATIENCE_SECONDS)
    await client.flush()
    stored = (await stream.stream_info("ROBOT_IN")).state.messages
    await client.close()
    await live.stop()
    return found.hexdigest(), count, stored, connections


async def _received(live: Live, messages: int) -> None:
    """Waits until the commands are in the inbox of the fleet; time does not run yet."""
    fleet = live._cell.parts["fleet"]
    assert isinstance(fleet, Fleet)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while fleet.credit() > INBOX - messages:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def check(folder: Path, seconds: float) -> None:
    file = folder / "cell.yaml"
    first, second, other = (undisturbed(file, seconds, seed) for seed in (None, None, 99))
    assert first == second
    assert first[1] > 60 * seconds
    assert first[2] > 20
    assert other[0] != first[0]


def test_two_live_runs_send_the_same_bytes(folder: Path) -> None:
    check(folder, 6.0)


@pytest.mark.soak
def test_two_live_runs_of_an_hour_send_the_same_bytes(folder: Path) -> None:
    check(folder, 3600.0)
