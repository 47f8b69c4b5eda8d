"""Mobile robots on the real NATS server, which is killed: commands are carried out once, and what
robots report is stored once. The client uses nats-py only."""

import asyncio
import json
import os
import signal
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.wire.nats.bench import client_of, run, stored, until

from understudy.agenda import Rate
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.wire.nats.endpoint import NatsEndpoint

CELL = """
seed: 3
robots:
  robot-1: {kind: mobile, file: amr.json}
  robot-2: {kind: mobile, file: amr.json, pose: [0, 5, 0]}
"""
ROBOTS = ("robot-1", "robot-2")


def request(robot: str, speed: float) -> dict[str, Any]:
    """A command that is done at once."""
    return {
        "payloadVersion": 1,
        "messageId": str(uuid.uuid4()),
        "robotId": robot,
        "robotCode": robot,
        "ts": "2026-01-01T00:00:00Z",
        "payload": {
            "commandType": "SET_SPEED_LIMIT",
            "parameters": {"maxSpeedMps": speed},
            "requestedBy": "test",
        },
    }


async def commands(count: int, kills: int, cell: str) -> None:
    live = Live(load_config(cell), Options(ephemeral=True))
    await live.start()
    try:
        (endpoint,) = (each for each in live._servers if isinstance(each, NatsEndpoint))
        own = endpoint.own_server
        assert own is not None
        async with client_of(live.endpoints["nats"]) as client:
            js = client.jetstream(timeout=90)
            sent: list[dict[str, Any]] = []
            fleet = live._cell.components["fleet"]
            while len(sent) < count:
                message = request(ROBOTS[len(sent) % 2], 0.5 + len(sent) % 5 / 10)
                subject = f"robot.{message['robotId']}.command.request"
                for _ in range(2):  # each is sent twice
                    await js.publish(subject, json.dumps(message).encode())
                sent.append(message)
                if len(sent) % (count // (kills + 1)) == 0 and own.restarts < kills:
                    restarts = own.restarts
                    assert own.pid is not None
                    os.kill(own.pid, signal.SIGKILL)
                    await until(lambda n=restarts: own.restarts > n)  # type: ignore[misc]
                    await until(lambda: client.is_connected)
            acks: list[dict[str, Any]] = []
            while Counter(ack["payload"]["status"] for ack in acks)["DONE"] < count:
                await asyncio.sleep(0.1)
                found = await stored(client, "robot.*.command.ack")
                acks = [json.loads(each.data) for each in found]
            await until(lambda: fleet.status(0).waiting == 0)
            everything = [
                each
                for kind in ("command.ack", "events")
                for each in await stored(client, f"robot.*.{kind}")
            ]
            ids = Counter(each.headers["Nats-Msg-Id"] for each in everything)
            assert max(ids.values()) == 1
            assert len(ids) >= 6 * count, "three acknowledgements and three events of each command"
            assert fleet.status(0).given_up == 0
            assert own.restarts == kills
            for message in sent:
                mine = [
                    a["payload"]["status"]
                    for a in acks
                    if a["correlationId"] == message["messageId"]
                ]
                assert mine == ["ACKED", "RUNNING", "DONE"], message
    finally:
        await live.stop()


def test_a_command_is_carried_out_once_though_the_server_is_killed(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(CELL)
    run(commands(60, 2, str(tmp_path / "cell.yaml")))


@pytest.mark.soak
def test_commands_are_carried_out_once_though_the_server_is_killed_often(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(CELL)
    run(commands(1700, 20, str(tmp_path / "cell.yaml")), patience=300.0)


@pytest.mark.parametrize(("rate", "kept"), [("step", False), ("max", False), (1.0, True)])
def test_in_lock_step_a_cell_begins_with_an_empty_store(
    rate: Rate, kept: bool, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    (tmp_path / "cell.yaml").write_text(f"{CELL}nats: {{port: 0, store: {store}}}\n")

    async def test() -> None:
        live = Live(
            load_config(str(tmp_path / "cell.yaml")), Options(rate=rate, ports={"control": 0})
        )
        await live.start()
        await live.stop()

    run(test())
    assert store.exists() is kept
