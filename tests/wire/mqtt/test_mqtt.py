"""The wire to an MQTT broker, with a real mosquitto."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from tests.wire.mqtt.broker import Broker

from understudy.config.typed import read
from understudy.errors import ConfigError
from understudy.ports import RETAINED, MessageSession, WireMessage
from understudy.simulation.cell import Cell
from understudy.wire.exchange import Exchange
from understudy.wire.mqtt import Config
from understudy.wire.pump import Pump

DEADLINE_SECONDS = 90


class EchoSession:
    """Sends every message back, to the address with `/back` behind it."""

    def __init__(self, face: "EchoFace") -> None:
        self._face = face
        self.waiting = [WireMessage("robot/here", b"yes", RETAINED)]

    def receive(self, message: WireMessage, now: int) -> None:
        self._face.received.append(message)
        self.waiting.append(WireMessage(f"{message.address}/back", message.payload))
        self._face.ready = True

    def take(self, room: int) -> WireMessage | None:
        return self.waiting.pop(0) if self.waiting else None

    def failed(self, message: WireMessage, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._face.session = None
        self._face.lost += 1

    def credit(self) -> int:
        return 100

    def owed(self) -> bool:
        return False


class EchoFace:
    """`MessageFace` with a last will."""

    def __init__(self) -> None:
        self.session: EchoSession | None = None
        self.opened = self.lost = 0
        self.ready = False
        self.received: list[WireMessage] = []

    def open(self, peer: str, now: int) -> MessageSession:
        self.session = EchoSession(self)
        self.opened += 1
        self.ready = True
        return self.session

    def sessions(self) -> Mapping[str, MessageSession]:
        return {} if self.session is None else {"mqtt": self.session}

    def ready_peers(self) -> list[str]:
        ready, self.ready = self.ready, False
        return ["mqtt"] if ready else []

    def addresses(self) -> list[str]:
        return ["ask/+"]

    def last_will(self) -> WireMessage:
        return WireMessage("robot/here", b"no")

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> None:
        return None

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not holds():  # noqa: ASYNC110 - the condition is another process's
            await asyncio.sleep(0.005)


def with_wire(config: Config, work: Callable[[EchoFace], Awaitable[None]]) -> None:
    """Runs a cell with an echo at the broker, and the work beside it."""

    async def both() -> None:
        face = EchoFace()
        cell = Cell("echo", digest="", components={"echo": face}, faces={"echo": face})
        pump = Pump(Exchange(cell))
        pump.start()
        server = config.server("echo", pump)
        assert await server.start() == f"mqtt://127.0.0.1:{config.port}"
        try:
            await work(face)
        finally:
            await server.stop()
            pump.stop()

    asyncio.run(both())


def config_for(broker: Broker, **more: Any) -> Config:
    return Config(port=broker.port, reconnect_wait_s=0.05, **more)


async def heard(client: aiomqtt.Client, topic: str, *, payload: bytes) -> aiomqtt.Message:
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in client.messages:
            if message.topic.matches(topic) and message.payload == payload:
                return message
    raise AssertionError("the client has ended")


def test_messages_go_both_ways(broker: Broker) -> None:
    async def work(face: EchoFace) -> None:
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("ask/#")
            await client.publish("ask/a", b"\x00hello")
            await heard(client, "ask/a/back", payload=b"\x00hello")

    with_wire(config_for(broker), work)


def test_a_kept_message_reaches_later_subscribers(broker: Broker) -> None:
    async def work(face: EchoFace) -> None:
        await until(lambda: face.session is not None and not face.session.waiting)
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("robot/here")
            message = await heard(client, "robot/here", payload=b"yes")
            assert message.retain

    with_wire(config_for(broker), work)


def test_a_message_that_the_broker_has_kept_says_so(broker: Broker) -> None:
    async def work(face: EchoFace) -> None:
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.publish("ask/a", b"live", retain=True)
            await until(lambda: len(face.received) == 1)
            async with other_client(broker, "understudy-echo"):  # it takes our place
                await until(lambda: face.lost == 1)
            await until(lambda: len(face.received) >= 2)
        assert [each.reply_to for each in face.received[:2]] == ["", RETAINED]

    with_wire(config_for(broker), work)


def other_client(broker: Broker, identifier: str) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", broker.port, identifier=identifier)


def test_two_clients_with_one_id_are_connected_in_turn(broker: Broker) -> None:
    """The broker ends the older connection each time; the wire comes back, and nothing is doubled
    or stuck."""

    async def work(face: EchoFace) -> None:
        for _ in range(5):
            await until(lambda: face.session is not None)
            before = face.lost
            async with other_client(broker, "understudy-echo"):
                await until(lambda n=before: face.lost > n)  # type: ignore[misc]
        await until(lambda: face.session is not None)
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("ask/b/back")
            while not face.received:
                await client.publish("ask/b", b"there?", qos=1)
                await asyncio.sleep(0.01)
            await heard(client, "ask/b/back", payload=b"there?")
        assert face.opened == face.lost + 1

    with_wire(config_for(broker), work)


def test_the_last_will_is_published_when_the_connection_breaks(broker: Broker) -> None:
    """Another client takes the name, so that the broker throws the first one out."""

    async def work(face: EchoFace) -> None:
        await until(lambda: face.opened == 1)
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("robot/here")
            async with aiomqtt.Client("127.0.0.1", broker.port, identifier="understudy-echo"):
                await heard(client, "robot/here", payload=b"no")
            await until(lambda: face.opened >= 2)

    with_wire(config_for(broker), work)


def test_a_broker_that_dies_is_found_again(broker: Broker) -> None:
    async def work(face: EchoFace) -> None:
        await until(lambda: face.opened == 1)
        broker.kill()
        await until(lambda: face.lost == 1)
        await asyncio.to_thread(broker.start)
        await until(lambda: face.opened == 2)
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("ask/#")
            await client.publish("ask/b", b"again")
            await heard(client, "ask/b/back", payload=b"again")

    with_wire(config_for(broker), work)


def test_without_a_broker_the_cell_starts_and_waits(broker: Broker) -> None:
    broker.kill()

    async def work(face: EchoFace) -> None:
        assert face.opened == 0
        await asyncio.to_thread(broker.start)
        await until(lambda: face.opened == 1)

    with_wire(config_for(broker), work)


def test_a_wrong_password_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(tmp_path, password="right one")
    broker.start()

    async def refused(face: EchoFace) -> None:
        await until(lambda: broker.log().count("not authorised") >= 3)
        assert face.opened == 0

    async def accepted(face: EchoFace) -> None:
        await until(lambda: face.opened == 1)

    try:
        with_wire(config_for(broker, username="robot", password="wrong"), refused)
        with_wire(config_for(broker, username="robot", password="right one"), accepted)
    finally:
        broker.kill()
    lines = [line for line in caplog.messages if "no connection to mqtt://" in line]
    assert len(lines) == 1
    assert "wrong" not in lines[0]


def test_a_message_that_is_too_long_is_dropped(broker: Broker) -> None:
    async def work(face: EchoFace) -> None:
        async with aiomqtt.Client("127.0.0.1", broker.port) as client:
            await client.subscribe("ask/#")
            await client.publish("ask/long", bytes(300_000))
            await client.publish("ask/short", b"x")
            await heard(client, "ask/short/back", payload=b"x")

    with_wire(config_for(broker), work)


CA = str(Path(__file__).parents[1] / "nats/certificates/ca.pem")


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"ca_file": "nowhere.pem"}, r"echo\.ca_file.*nowhere\.pem"),
        ({"ca_file": CA, "cert_file": "nowhere.pem"}, r"echo\.cert_file.*nowhere\.pem"),
    ],
)
def test_a_missing_certificate_is_named(keys: dict[str, str], named: str) -> None:
    async def start() -> None:
        face = EchoFace()
        pump = Pump(
            Exchange(Cell("echo", digest="", components={"echo": face}, faces={"echo": face}))
        )
        await Config(**keys).server("echo", pump).start()  # type: ignore[arg-type]

    with pytest.raises(ConfigError, match=named):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"cert_file": "a.pem"}, "cert_file needs ca_file"),
        ({"ca_file": "a.pem", "key_file": "a.key"}, "key_file needs cert_file"),
        ({"password": "secret"}, "password needs username"),
    ],
)
def test_keys_that_need_another_one(keys: dict[str, str], problem: str) -> None:
    """Without `ca_file` there is no TLS: a certificate alone would be of no effect."""
    with pytest.raises(ConfigError, match=problem):
        read(keys, Config)
