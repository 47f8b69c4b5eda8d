"""A fleet in one process and in several: every robot sends the same bytes."""

import hashlib
import json
from dataclasses import replace

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.config.shards import Shard, with_robots, with_shard
from understudy.ports import CONFIRMED, WireMessage
from understudy.robots.mobile.config.fleet_keys import FleetKeys
from understudy.wire.exchange import InProcessCell

ROBOTS = 24


def goal(number: int) -> dict[str, object]:
    return {
        "commandType": "MOVE_TO_POSE",
        "parameters": {"x": 2.0 + number % 5 * 3.0, "y": 2.6, "yaw": number * 0.25},
    }


def sent_by(shard: Shard, seconds: int, spread: bool) -> dict[str, str]:
    """The hash of what each robot of a shard has sent."""
    whole = with_robots(load_config("fleet", seed=3), ROBOTS)
    whole = replace(whole, sections={**whole.sections, "fleet": FleetKeys(spread_messages=spread)})
    config = whole if shard.of == 1 else with_shard(whole, shard)
    cell = InProcessCell(build_cell(config))
    client = cell.connect("nats")
    hashes = {name: hashlib.sha256() for name in config.robots}
    for second in range(seconds):
        cell.advance(1.0)
        if second == 1:
            for number in range(1, ROBOTS + 1):  # all commands: a shard drops those of others
                body = {"messageId": f"m-{number}", "payload": goal(number)}
                subject = f"robot.robot-{number}.command.request"
                client.say(WireMessage(subject, json.dumps(body).encode(), f"ack-{number}"))
        for message in client.messages():
            if message.address.startswith("robot."):
                name = message.address.split(".")[1]
                hashes[name].update(message.address.encode() + message.payload)
                if message.reply_to:
                    client.say(WireMessage(CONFIRMED, b"", message.reply_to))
    return {name: each.hexdigest() for name, each in hashes.items()}


def together(count: int, seconds: int, spread: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for number in range(1, count + 1):
        found |= sent_by(Shard(number, count), seconds, spread)
    return found


@pytest.mark.parametrize("spread", [False, True], ids=["same ticks", "spread"])
@pytest.mark.parametrize("seconds", [8, pytest.param(300, marks=pytest.mark.soak)])
def test_the_number_of_shards_changes_nothing(seconds: int, spread: bool) -> None:
    whole = together(1, seconds, spread)
    assert len(whole) == len(set(whole.values())) == ROBOTS
    for count in (2, 3, 8):
        assert together(count, seconds, spread) == whole
