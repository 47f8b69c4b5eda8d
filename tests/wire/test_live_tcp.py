"""A live cell on loopback with many peers: no answer is lost or swapped."""

import asyncio
import gc
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from understudy.app.live import Live, Options
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.wire import tcp
from understudy.wire.interface import LARGEST_BACKLOG, PeerEvents
from understudy.wire.tcp import Config, TcpConnection, TcpServer

PATIENCE_S = 60.0
NO_EVENTS = cast(PeerEvents, None)
CELL = """\
robots:
  bench:
    kind: text_robot
    faces:
      text_tcp: {stalled_after_s: 0.2}
"""


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[StandIn]:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    with StandIn(str(file), rate=1000.0) as robot:
        yield robot


def connect(robot: StandIn) -> socket.socket:
    return socket.create_connection(robot.address(), 10)


def everything(line: socket.socket) -> bytes:
    data = b""
    while piece := line.recv(1 << 20):
        data += piece
    return data


# ── nothing lost, nothing swapped ──


async def _client(address: tuple[str, int], name: int, until: float) -> int:
    """Sends bursts of requests of its own and checks every answer; returns their number."""
    reader, writer = await asyncio.open_connection(*address)
    asked = 0
    while asked < 300 or time.monotonic() < until:
        numbers = range(asked, asked + 1 + (asked * 7 + name) % 40)
        writer.write(b"".join(b"C%d_%d\nGET_STATUS\n" % (name, number) for number in numbers))
        for number in numbers:
            assert await reader.readline() == b"ERROR Unknown command: C%d_%d\n" % (name, number)
            assert (await reader.readline()).startswith(b"OK Idle,")
        asked = numbers[-1] + 1
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    return asked


async def _crowd(address: tuple[str, int], size: int, seconds: float) -> list[int]:
    until = time.monotonic() + seconds
    return await asyncio.gather(*(_client(address, n, until) for n in range(size)))


def test_ten_clients_at_once_lose_and_swap_no_answer(robot: StandIn) -> None:
    asked = asyncio.run(_crowd(robot.address(), 10, 0.0))
    assert min(asked) >= 300


@pytest.mark.soak
def test_two_hundred_clients_for_ten_seconds_lose_and_swap_no_answer(robot: StandIn) -> None:
    asked = asyncio.run(_crowd(robot.address(), 200, 10.0))
    assert min(asked) >= 300


def test_a_client_that_closes_its_sending_side_gets_all_answers(robot: StandIn) -> None:
    with connect(robot) as line:
        line.sendall(b"HOME\n" + b"GET_STATUS\n" * 20_000 + b"LAST\n")
        line.shutdown(socket.SHUT_WR)
        answers = everything(line).splitlines()
    assert len(answers) == 20_002
    assert (answers[0], answers[-1]) == (b"OK Homing completed", b"ERROR Unknown command: LAST")


def test_a_client_that_closed_its_sending_side_gets_an_answer_that_needs_time(
    robot: StandIn,
) -> None:
    robot.do("rate", rate=0)
    with connect(robot) as line:
        line.sendall(b"HOME\n")
        line.shutdown(socket.SHUT_WR)
        while not robot._call(_has_heard_the_end):
            pass
        robot.forward(robot.now + 1.0)
        assert everything(line) == b"OK Homing completed\n"


def _has_heard_the_end(live: Live) -> bool:
    lines = list(live._pump._exchange._connections.values())
    return bool(lines) and all(line.state.ended for line in lines)


# ── deaf and rude ──


def _sessions(robot: StandIn) -> int:
    return int(robot.do("status")["parts"]["bench.text_tcp"]["clients"])


@pytest.fixture
def patient_robot(tmp_path: Path) -> Iterator[StandIn]:
    """Drops a client so late that also a slow machine has filled its backlog before."""
    file = tmp_path / "cell.yaml"
    file.write_text(CELL.replace("stalled_after_s: 0.2", "stalled_after_s: 2.0"))
    with StandIn(str(file), rate=1000.0) as robot:
        yield robot


def test_a_client_that_never_reads_is_dropped_and_the_others_are_served(
    patient_robot: StandIn,
) -> None:
    robot, line = patient_robot, b"x" * 4000 + b"\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(robot.address())
        deaf.setblocking(False)
        robot.ask("GET_POS")
        backlog = 0
        while _sessions(robot) == 2:
            with suppress(BlockingIOError, ConnectionError):
                deaf.send(line * 100)
            assert robot.ask("GET_STATUS").startswith("OK Idle")
            backlog = max(backlog, robot._call(_largest_backlog))
    assert LARGEST_BACKLOG / 2 < backlog <= LARGEST_BACKLOG
    assert robot.ask("GET_STATUS").startswith("OK Idle")


def _largest_backlog(live: Live) -> int:
    servers = [server for server in live._servers if isinstance(server, TcpServer)]
    connections = [c for server in servers for c in server._connections]
    return max((c.transport.get_write_buffer_size() for c in connections), default=0)


class SlowTransport:
    """A transport that takes bytes when the test calls it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.aborted = self.closing = False

    def write(self, data: bytes) -> None:
        self.waiting += len(data)

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.aborted = True


class Alarm:
    """A timer that the test triggers."""

    def __init__(self, delay: float, ring: Callable[[], None]) -> None:
        self.delay = delay
        self.ring = ring

    def cancel(self) -> None:
        return None


def test_nothing_is_written_to_a_connection_that_is_closing() -> None:
    """asyncio would log every such message."""
    transport = SlowTransport()
    transport.closing = True

    async def said() -> None:
        connection = TcpConnection(TcpServer("x", Config(), NO_EVENTS))
        connection.transport = cast(asyncio.Transport, transport)
        connection.send(b"x" * 100)

    asyncio.run(said())
    assert transport.waiting == 0


def test_the_read_buffer_is_small() -> None:
    async def helping() -> int:
        return len(TcpConnection(TcpServer("x", Config(), NO_EVENTS)).get_buffer(-1))

    assert asyncio.run(helping()) <= 4096


def test_a_slow_reader_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has taken some bytes since the last check gets more time."""
    transport = SlowTransport()

    async def watched() -> None:
        alarms: list[Alarm] = []

        def call_later(delay: float, ring: Callable[[], None]) -> Alarm:
            alarms.append(Alarm(delay, ring))
            return alarms[-1]

        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
        connection = TcpConnection(TcpServer("x", Config(stalled_after_s=3.0), NO_EVENTS))
        connection.transport = cast(asyncio.Transport, transport)
        connection.send(b"x" * 100)
        connection.pause_writing()
        for taken, more in ((40, 0), (60, 60)):
            transport.waiting -= taken
            connection.send(b"x" * more)
            assert alarms[-1].delay == 3.0
            alarms.pop().ring()
            assert not transport.aborted
        alarms.pop().ring()
        assert not alarms

    asyncio.run(watched())
    assert transport.aborted


def test_garbage_does_not_stop_the_server(robot: StandIn) -> None:
    with connect(robot) as line:
        line.sendall(bytes(range(256)) * 200 + b"\nGET_STATUS\n")
        line.shutdown(socket.SHUT_WR)
        assert everything(line).endswith(b"OK Idle,26.0,0,10\n")


def test_a_connection_reset_leaves_no_session(robot: StandIn) -> None:
    for _ in range(20):
        line = connect(robot)
        line.sendall(b"MOVE_REL 1,0,0\nGET_POS\nGET_")
        reset_by_peer = struct.pack("ii", 1, 0)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_by_peer)
        line.close()
    while _sessions(robot) > 0:
        pass
    assert robot.ask("RESET") == "OK Error reset"


# ── listening and closing ──


def test_the_error_of_a_taken_port_names_port_endpoint_and_option() -> None:
    config = load_config("text_robot")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def start() -> None:
            await Live(config, Options(ephemeral=True, ports={"bench.text_tcp": port})).start()

        with pytest.raises(ConfigError) as caught:
            asyncio.run(start())
    for word in (f"port {port}", "bench.text_tcp", "--ephemeral"):
        assert word in str(caught.value)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "203.0.113.1"])
def test_a_host_that_is_not_this_machine_is_a_config_error(tmp_path: Path, host: str) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL.replace("stalled_after_s: 0.2", f"host: {host}"))

    async def start() -> None:
        await Live(load_config(str(file)), Options(ephemeral=True)).start()

    with pytest.raises(ConfigError, match=f"bench.text_tcp cannot listen on {host}:0: "):
        asyncio.run(start())


def test_the_error_of_an_unknown_endpoint_suggests_the_nearest() -> None:
    async def make() -> None:
        Live(load_config("text_robot"), Options(ports={"bench.txt_tcp": 1}))

    with pytest.raises(ConfigError, match=r"did you mean 'bench.text_tcp'\?"):
        asyncio.run(make())


def test_stop_closes_everything(robot: StandIn) -> None:
    with connect(robot) as line, socket.create_connection(robot.address("control"), 10) as control:
        line.sendall(b"GET_STATUS\n")
        assert line.recv(100)
        addresses = [robot.address(name) for name in robot.endpoints]
        robot.__exit__()
        assert (line.recv(1), control.recv(1)) == (b"", b"")
        for address in addresses:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, 10)
    robot._live = None


def test_stop_aborts_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "CLOSING_SECONDS", 0.05)
    with StandIn("text_robot", rate=1.0) as robot, connect(robot) as deaf:
        deaf.setblocking(False)
        while robot._call(_largest_backlog) == 0:
            with suppress(BlockingIOError):
                deaf.send((b"x" * 4000 + b"\n") * 100)
        robot.__exit__()
        assert robot._loop.is_closed()
        robot._live = None


@pytest.mark.parametrize("turns", range(8))
def test_a_client_that_connects_while_the_server_stops_is_closed(turns: int) -> None:
    """A client at the door, one being accepted, one just open: none is left when `stop` ends."""

    async def connect_and_stop() -> None:
        live = Live(load_config("text_robot"), Options(ephemeral=True))
        await live.start()
        host, _, port = live.endpoints["bench.text_tcp"].removeprefix("tcp://").rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await live.stop()
            client.setblocking(False)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b"", "closed, and not open without anybody there"

    asyncio.run(connect_and_stop())


def test_a_closed_connection_is_freed_without_garbage_collection() -> None:
    """Many short connections would keep the garbage collector busy."""

    async def call(address: str) -> None:
        port = int(address.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET_POS\n")
        writer.close()
        await writer.wait_closed()

    async def come_and_go() -> int:
        live = Live(load_config("text_robot"), Options(ephemeral=True))
        await live.start()
        gc.collect()
        gc.disable()
        others = _connections()  # of other tests

        def count_connections() -> int:
            return sum(each not in others for each in _connections())

        try:
            for _ in range(10):
                await call(live.endpoints["bench.text_tcp"])
            until = time.monotonic() + PATIENCE_S
            while (there := count_connections()) and time.monotonic() < until:  # noqa: ASYNC110
                await asyncio.sleep(0)
        finally:
            gc.enable()
            await live.stop()
        return there

    assert asyncio.run(come_and_go()) == 0


def _connections() -> list[TcpConnection]:
    return [thing for thing in gc.get_objects() if type(thing) is TcpConnection]
