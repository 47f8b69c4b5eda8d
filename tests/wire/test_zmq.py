"""The HMI link on loopback: plain clients, slow commands, status for all subscribers."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq
import zmq.asyncio

from understudy.app.live import Live, Options
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.errors import ConfigError, NotInstalledError
from understudy.operator.doors import Doors
from understudy.ports import WireMessage
from understudy.protocol.sessions import MessageOutbox, ReadyPeers, SessionFace
from understudy.wire import zmq_router as wire
from understudy.wire import zmtp
from understudy.wire.exchange import Exchange

PATIENCE_MS = 60_000

Connect = Callable[[int, str], zmq.Socket[bytes]]


@pytest.fixture(scope="module")
def cell() -> Iterator[StandIn]:
    with StandIn("default", rate=1.0) as cell:
        yield cell


@pytest.fixture
def connect(cell: StandIn) -> Iterator[Connect]:
    context = zmq.Context()
    held = []

    def open_(kind: int, endpoint: str) -> zmq.Socket[bytes]:
        opened = context.socket(kind)
        opened.set(zmq.LINGER, 0)
        opened.set(zmq.RCVTIMEO, PATIENCE_MS)
        if kind == zmq.SUB:
            opened.set(zmq.SUBSCRIBE, b"")
        opened.connect(cell.endpoints[endpoint])
        held.append(opened)
        return opened

    yield open_
    for each in held:
        each.close()
    context.term()


def say(client: zmq.Socket[bytes], type_: str, number: Any = 1, **payload: Any) -> None:
    client.send(json.dumps({"type": type_, "id": number, "payload": payload}).encode())


def ask(client: zmq.Socket[bytes], type_: str, number: Any = 1, **payload: Any) -> Any:
    say(client, type_, number, **payload)
    return json.loads(client.recv())


def test_a_plain_req_client_is_answered(connect: Connect) -> None:
    client = connect(zmq.REQ, "g60.hmi_link")
    assert ask(client, "PING", "x")["id"] == "x"
    assert ask(client, "GET_STATUS")["payload"]["robots"]["g60"]["state"] == "Idle"
    assert len(ask(client, "GET_JOINT_POSITIONS")["payload"]["joints_deg"]) == 6
    answer = ask(client, "COMMAND", 3, command="now")
    assert (answer["type"], answer["payload"]["result"]["rate"]) == ("RESULT", 1.0)


def test_a_dealer_may_send_requests_without_waiting(connect: Connect) -> None:
    client = connect(zmq.DEALER, "g60.hmi_link")
    for number in range(200):
        say(client, "PING", number)
    assert [json.loads(client.recv())["id"] for _ in range(200)] == list(range(200))


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b"[" * 1000, b'{"type": "PNIG"}'])
def test_a_malformed_message_gets_an_error_and_the_next_is_answered(
    connect: Connect, data: bytes
) -> None:
    client = connect(zmq.REQ, "g60.hmi_link")
    client.send(data)
    answer = json.loads(client.recv())
    assert answer["type"] == "ERROR"
    assert answer["payload"]["code"] in (10, 11)
    assert ask(client, "PING")["type"] == "PONG"


def test_a_stop_acts_while_a_slow_command_of_another_client_runs(
    cell: StandIn, connect: Connect
) -> None:
    """A telemetry client makes `advance` slow."""
    slow, quick = connect(zmq.REQ, "g60.hmi_link"), connect(zmq.REQ, "g60.hmi_link")
    with socket.create_connection(cell.address("kuka.kuka_eki.telemetry")) as telemetry:
        telemetry.recv(1)  # without it `advance` could run before the client is served
        say(slow, "COMMAND", 1, command="advance", parameters={"seconds": 100.0})
        stopped = ask(quick, "COMMAND", 2, command="emergency_stop")
        assert not slow.poll(0), "the slow command should still be under way"
        at = ask(quick, "COMMAND", 3, command="now")["payload"]["result"]["now_s"]
        ended = json.loads(slow.recv())["payload"]["result"]["now_s"]
    assert stopped["payload"]["result"]["simulation_time_s"] <= at < ended
    assert ask(quick, "GET_STATUS")["payload"]["robots"]["g60"]["state"] == "Alarm"
    cell.do("reset")


def test_a_stop_acts_during_a_long_preview(cell: StandIn, connect: Connect) -> None:
    slow, quick = connect(zmq.REQ, "g60.hmi_link"), connect(zmq.REQ, "g60.hmi_link")
    text = "\n".join(f"G1 A{n % 90} F3000" for n in range(2000))
    say(slow, "COMMAND", 1, command="preview", parameters={"robot": "g60", "text": text})
    assert ask(quick, "COMMAND", 2, command="emergency_stop")["type"] == "RESULT"
    assert json.loads(slow.recv())["payload"]["result"]["lines"]
    cell.do("reset")


class StumblingSession:
    """`MessageSession` that fails at every other message."""

    def __init__(self, outbox: MessageOutbox) -> None:
        self._outbox = outbox
        self._count = 0

    def receive(self, message: WireMessage, now: int) -> None:
        self._count += 1
        if self._count % 2:
            raise ZeroDivisionError
        self._outbox.send(WireMessage(message.reply_to, b"answered " + message.payload))

    def failed(self, message: WireMessage, now: int) -> None:
        self._outbox.send(WireMessage(message.reply_to, b"sorry for " + message.payload))

    def take(self, room: int) -> WireMessage | None:
        return self._outbox.take(room)

    def closed(self, now: int) -> None:
        return None

    def credit(self) -> int:
        return 1

    def owed(self) -> bool:
        return False


class StumblingFace(SessionFace[StumblingSession]):
    """`MessageFace` of sessions that fail."""

    def __init__(self) -> None:
        self.ready = ReadyPeers()
        self._sessions: dict[str, StumblingSession] = {}

    def open(self, peer: str, now: int) -> StumblingSession:
        self._sessions[peer] = StumblingSession(MessageOutbox(lambda: self.ready.add(peer)))
        return self._sessions[peer]

    def addresses(self) -> tuple[str, ...]:
        return ()

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None


def test_after_a_bug_the_next_message_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> list[bytes]:
        events = Exchange(Doors({"door": StumblingFace()}))
        router = wire.Config().server("door", events)
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as client:
            client.connect(await router.start())
            for message in (b"one", b"two"):
                await client.send(message)
            said = [await client.recv() for _ in range(2)]
        await router.stop()
        return said

    assert asyncio.run(scene()) == [b"sorry for one", b"answered two"]
    assert "ZeroDivisionError" in caplog.text


# ── news ──


def test_a_subscriber_gets_the_status_at_once_and_then_repeatedly(connect: Connect) -> None:
    listener = connect(zmq.SUB, "g60.hmi_link.status")
    reported = [json.loads(listener.recv()) for _ in range(4)]
    assert {message["type"] for message in reported} == {"STATUS"}
    numbers = [message["id"] for message in reported]
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    assert "g60" in reported[0]["payload"]["robots"]


def test_two_subscribers_get_the_same_messages(connect: Connect) -> None:
    one, two = (connect(zmq.SUB, "g60.hmi_link.status") for _ in range(2))
    reported = [{m["id"]: m for m in (json.loads(s.recv()) for _ in range(5))} for s in (one, two)]
    common = reported[0].keys() & reported[1].keys()
    assert common
    assert all(reported[0][number] == reported[1][number] for number in common)


def test_a_subscriber_that_does_not_read_delays_no_other(connect: Connect) -> None:
    deaf = connect(zmq.SUB, "g60.hmi_link.status")
    listener = connect(zmq.SUB, "g60.hmi_link.status")
    assert len([listener.recv() for _ in range(4)]) == 4
    assert deaf.poll(PATIENCE_MS)


# ── where it cannot listen ──


async def _start(**ports: int) -> None:
    options = Options(ephemeral=True, ports={"g60.hmi_link": ports["port"]})
    live = Live(load_config("g60_welding"), options)
    try:
        await live.start()
    finally:
        await live.stop()


def test_the_error_of_a_taken_port_names_the_endpoint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is taken, g60.hmi_link"):
            asyncio.run(_start(port=port))


async def _missing_package(server: Any) -> str:
    raise NotInstalledError("needs a package: install it")


def test_without_its_package_a_wire_is_not_opened_and_the_cell_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(zmtp.ZmtpServer, "start", _missing_package)
    with StandIn("g60_welding") as cell:
        assert "g60.hmi_link" not in cell.endpoints
        assert "control" in cell.endpoints
    assert "g60.hmi_link is not opened: it needs a package" in caplog.text


# ── peers that come and go ──


def test_the_session_of_a_client_ends_with_its_connection(cell: StandIn, connect: Connect) -> None:
    before = cell._call(_link_sessions)
    client = connect(zmq.REQ, "g60.hmi_link")
    ask(client, "PING")
    assert cell._call(_link_sessions) == before + 1
    client.close()
    while cell._call(_link_sessions) > before:
        pass


def _link_sessions(live: Live) -> int:
    connections = live._door_pump._exchange._connections.values()
    return sum(each.endpoint == "g60.hmi_link" for each in connections)
