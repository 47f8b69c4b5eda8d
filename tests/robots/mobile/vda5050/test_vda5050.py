"""A running robot under an independent VDA 5050 master control: the schemas, aiomqtt, mosquitto."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from tests.robots.mobile.vda5050.schemas import action, check, edge, instant, node, order
from tests.wire.mqtt.broker import Broker

DEADLINE_SECONDS = 90
PREFIX = "uagv/v2/maker/robot-1/"
CELL = """
nats: {{port: 0}}
robots:
  robot-1:
    kind: mobile
    file: amr.json
    faces:
      vda5050: {{port: {port}, manufacturer: maker, visualization_hz: 5, version: {version}}}
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


@contextmanager
def running(
    tmp_path: Path, broker: Broker, version: str = "2.1.0"
) -> Iterator[subprocess.Popen[str]]:
    file, ready = tmp_path / "cell.yaml", tmp_path / "ready.json"
    file.write_text(CELL.format(port=broker.port, version=version))
    words = ["run", str(file), "--ephemeral", "--ready-file", str(ready), "--rate", "5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + DEADLINE_SECONDS
    while not ready.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.02)
    yield process
    process.terminate()
    process.communicate(timeout=DEADLINE_SECONDS)


@pytest.fixture
def cell(tmp_path: Path, broker: Broker) -> Iterator[subprocess.Popen[str]]:
    with running(tmp_path, broker) as process:
        yield process


class Master:
    """A master control that knows the schemas and nothing else."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client
        self._messages: AsyncIterator[aiomqtt.Message] = aiter(client.messages)
        self.topics: set[str] = set()

    async def tell(self, topic: str, message: dict[str, Any]) -> None:
        message = message | {"serialNumber": "robot-1"}
        await self._client.publish(PREFIX + topic, json.dumps(message), qos=1)

    async def hear(self, topic: str) -> Any:
        """The next message of a topic; all messages on the way are checked, too."""
        async for message in self._messages:
            name = message.topic.value.removeprefix(PREFIX)
            if name in ("order", "instantActions"):
                continue
            assert isinstance(message.payload, bytes)
            found = check(name, message.payload)
            self.topics.add(name)
            if name == topic:
                return found
        raise AssertionError("the client has ended")

    async def state(self, **expected: Any) -> Any:
        """The first state that has these values."""
        while True:
            state = await self.hear("state")
            if all(state[key] == value for key, value in expected.items()):
                return state


def with_master(broker: Broker, work: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            async with aiomqtt.Client("127.0.0.1", broker.port) as client:
                await client.subscribe(f"{PREFIX}#", qos=1)
                await work(Master(client))

    asyncio.run(run())


def test_an_order_with_three_nodes_and_an_update(
    broker: Broker, cell: subprocess.Popen[str]
) -> None:
    async def work(master: Master) -> None:
        start = (await master.state(orderId=""))["agvPosition"]
        x, y = start["x"], start["y"]
        nodes = [node(0, x, y), node(2, x + 0.6, y), node(4, x + 1.2, y, released=False)]
        await master.tell("order", order(nodes, [edge(1), edge(3, released=False)]))
        waiting = await master.state(lastNodeId="n2", driving=False)
        assert waiting["newBaseRequest"]
        assert abs(waiting["agvPosition"]["x"] - (x + 0.6)) <= 0.02
        more = [node(2, x + 0.6, y), node(4, x + 1.2, y), node(6, x + 1.2, y + 0.6, theta=1.5)]
        await master.tell("order", order(more, [edge(3), edge(5)], update=1))
        done = await master.state(lastNodeId="n6", nodeStates=[], driving=False)
        assert done["orderUpdateId"] == 1
        assert done["errors"] == []
        assert abs(done["agvPosition"]["y"] - (y + 0.6)) <= 0.02
        assert abs(done["agvPosition"]["theta"] - 1.5) <= 0.035
        assert {"connection", "factsheet", "state", "visualization"} <= master.topics

    with_master(broker, work)


FAR = 2000.0
"""Metres to a goal that the robot does not reach, however late the master's messages are."""


def test_pause_and_cancel(broker: Broker, cell: subprocess.Popen[str]) -> None:
    async def work(master: Master) -> None:
        start = (await master.state(orderId=""))["agvPosition"]
        goal = node(2, start["x"] + FAR, start["y"])
        await master.tell("order", order([node(0, start["x"], start["y"]), goal], [edge(1)]))
        await master.state(driving=True)
        await master.tell("instantActions", instant(action("startPause", "p1")))
        held = await master.state(paused=True, driving=False)
        assert held["nodeStates"]
        await master.tell("instantActions", instant(action("stopPause", "p2")))
        await master.state(paused=False, driving=True)
        await master.tell("instantActions", instant(action("cancelOrder", "c1")))
        over = await master.state(nodeStates=[], driving=False)
        assert over["agvPosition"]["x"] < start["x"] + FAR - 1.0
        assert {"actionId": "c1", "actionStatus": "FINISHED", "actionType": "cancelOrder"} in over[
            "actionStates"
        ]

    with_master(broker, work)


def test_the_connection_topic_follows_the_robot(
    broker: Broker, cell: subprocess.Popen[str]
) -> None:
    async def work(master: Master) -> None:
        assert (await master.hear("connection"))["connectionState"] == "ONLINE"
        cell.terminate()
        assert (await master.hear("connection"))["connectionState"] == "OFFLINE"

    with_master(broker, work)


def test_the_broker_says_when_the_robot_is_gone(
    broker: Broker, cell: subprocess.Popen[str]
) -> None:
    async def work(master: Master) -> None:
        assert (await master.hear("connection"))["connectionState"] == "ONLINE"
        cell.kill()
        assert (await master.hear("connection"))["connectionState"] == "CONNECTIONBROKEN"

    with_master(broker, work)


def test_a_broker_that_forgets_its_sessions_hears_all_again(
    broker: Broker, cell: subprocess.Popen[str]
) -> None:
    """It starts again without what it had kept. The order goes on, and is not begun twice."""
    sent: list[dict[str, Any]] = []

    async def begin(master: Master) -> None:
        start = (await master.state(orderId=""))["agvPosition"]
        goal = node(2, start["x"] + 4.0, start["y"])
        sent.append(order([node(0, start["x"], start["y"]), goal], [edge(1)]))
        await master.tell("order", sent[0])
        await master.state(driving=True)

    async def go_on(master: Master) -> None:
        assert (await master.hear("connection"))["connectionState"] == "ONLINE"
        assert (await master.state())["orderId"] == "o1"
        assert {"connection", "factsheet", "state"} <= master.topics
        await master.tell("order", sent[0])
        done = await master.state(lastNodeId="n2", driving=False, nodeStates=[])
        assert done["errors"] == []
        await master.tell("order", sent[0])
        await master.tell("instantActions", instant(action("stateRequest", "s1", "NONE")))
        again = await master.state(driving=False)
        assert (again["lastNodeId"], again["nodeStates"], again["errors"]) == ("n2", [], [])

    with_master(broker, begin)
    broker.kill()
    broker.start()
    with_master(broker, go_on)
