"""Limits of the HTTP server: a client that sends without end gets an answer, not the memory."""

import asyncio
import base64
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import uvicorn
from starlette.requests import Request
from uvicorn.server import ServerState

from understudy.app.stand_in import StandIn
from understudy.hmi import server
from understudy.hmi.server import LONGEST, Bounded, BoundedHttp
from understudy.protocol.client_limits import ClientLimits

MEGABYTE = 1_000_000
HOST = b"Host: 127.0.0.1\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
KEY = b"Sec-WebSocket-Key: " + base64.b64encode(bytes(16)) + b"\r\n\r\n"
JSON = b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def cell() -> Iterator[StandIn]:
    with StandIn("g60_welding", rate=1.0, hmi=True) as cell:
        yield cell


def peak_memory(pid: int) -> int:
    """Bytes that the process has had at most."""
    with open(f"/proc/{pid}/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


FLOODS = {
    "headers": (b"GET / HTTP/1.1\r\n" + HOST, b"a: b\r\n" * 10_000),
    "long header": (b"GET / HTTP/1.1\r\nX: ", b"a" * 65_536),
    "request line": (b"GET /", b"a" * 65_536),
    "pipelined": (b"", (b"GET /api/now HTTP/1.1\r\n" + HOST + b"\r\n") * 1000),
    "pipelined bodies": (
        b"",
        (b"POST /api/now HTTP/1.1\r\nContent-Length: 9000\r\n" + HOST + b"\r\n" + b" " * 9000) * 9,
    ),
    "declared body": (
        b"POST /api/now HTTP/1.1\r\nContent-Length: 99000000\r\n" + JSON + HOST + b"\r\n",
        b" " * 65_536,
    ),
    "body of socket.io": (
        b"POST /_nicegui_ws/socket.io/?EIO=4&transport=polling HTTP/1.1\r\n"
        b"Content-Length: 99000000\r\n" + HOST + b"\r\n",
        b" " * 65_536,
    ),
    "pings": (b"GET /ws/state HTTP/1.1\r\n" + HOST + UPGRADE + KEY, b"\x89\xfd" + bytes(129)),
}
"""Name → what is sent first, and what is sent without end."""


def pour(address: tuple[str, int], first: bytes, piece: bytes, size: int) -> tuple[int, bytes]:
    """Sends as much as the server takes; returns its size and the begin of the answer."""
    piece *= 1 + 60_000 // len(piece)
    with socket.create_connection(address, 60) as line:
        line.sendall(first)
        line.settimeout(2)  # a server that reads no more ends the attack
        sent = 0
        try:
            while sent < size:
                sent += line.send(piece)
        except OSError:
            pass
        return sent, read(line)


def read(line: socket.socket) -> bytes:
    """The begin of what the server sends until it closes, or sends nothing for a while."""
    answer = b""
    try:
        while len(answer) < 1000 and (piece := line.recv(1000)):
            answer += piece
    except OSError:
        pass
    return answer


@pytest.mark.parametrize(
    "size",
    [8 * MEGABYTE, pytest.param(160 * MEGABYTE, marks=pytest.mark.soak)],
    ids=["part", "whole"],
)
def test_no_flood_takes_memory(page_process: Any, size: int) -> None:
    where = urlsplit(page_process.url)
    address = str(where.hostname), int(where.port or 0)
    for first, piece in FLOODS.values():  # what the first request of a kind loads is no flood
        pour(address, first, piece, 1)
    for name, (first, piece) in FLOODS.items():
        before = peak_memory(page_process.pid)
        pour(address, first, piece, size)
        grown = peak_memory(page_process.pid) - before
        assert grown < size / 4, f"{name}: {grown} bytes of memory for {size} bytes"
        with urlopen(f"{page_process.url}/api/now") as answer:
            assert json.load(answer)["rate"] == 1.0


@pytest.mark.parametrize(
    ("flood", "status", "named"),
    [
        ("headers", b"431", server.LARGEST_HEADER),
        ("request line", b"431", server.LARGEST_HEADER),
        ("declared body", b"413", server.LARGEST_BODY),
        ("body of socket.io", b"413", server.LARGEST_BODY),
    ],
)
def test_the_answer_names_the_limit(
    page_process: Any, flood: str, status: bytes, named: int
) -> None:
    where = urlsplit(page_process.url)
    first, piece = FLOODS[flood]
    with socket.create_connection((str(where.hostname), int(where.port or 0)), 60) as line:
        line.sendall(first + piece[: server.LARGEST_HEADER + 20_000])
        answer = read(line)
    assert answer.split()[1] == status
    assert str(named).encode() in answer


def test_a_body_without_a_length_is_bounded(page_process: Any) -> None:
    where = urlsplit(page_process.url)
    chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
    head = b"POST /api/now HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + JSON + HOST + b"\r\n"
    address = str(where.hostname), int(where.port or 0)
    _, answer = pour(address, head, chunk, server.LARGEST_BODY + 200_000)
    assert answer.split()[1] == b"413"
    assert str(server.LARGEST_BODY).encode() in answer


# ── time and number, without a network ──


class FakeTransport:
    """A transport of a given address that keeps what is written."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.address = address
        self.written = b""
        self.closed = False
        self.protocol: Any = None

    def get_extra_info(self, name: str) -> Any:
        return (self.address, 1) if name == "peername" else None

    def get_protocol(self) -> Any:
        return self.protocol

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        return None

    def resume_reading(self) -> None:
        return None


class FakeTimer:
    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self.seconds, self.act, self.cancelled = seconds, act, False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """An event loop that only keeps timers and starts no task."""

    def __init__(self) -> None:
        self.timers: list[FakeTimer] = []

    def call_later(self, seconds: float, act: Callable[..., None], *args: Any) -> FakeTimer:
        self.timers.append(FakeTimer(seconds, lambda: act(*args)))
        return self.timers[-1]

    def create_task(self, work: Any) -> Any:
        work.close()
        return self

    def add_done_callback(self, act: Any) -> None:
        """Of the task, which never ends."""

    def running(self) -> list[FakeTimer]:
        return [timer for timer in self.timers if not timer.cancelled]


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    """Never called."""


def connect(
    counted: ClientLimits[Any], address: str = "127.0.0.1"
) -> tuple[BoundedHttp, FakeTransport, FakeLoop]:
    loop, transport = FakeLoop(), FakeTransport(address)
    config = uvicorn.Config(_no_app, log_config=None)
    protocol = BoundedHttp(
        config, ServerState(), {}, cast(asyncio.AbstractEventLoop, loop), limits=counted
    )
    transport.protocol = protocol
    protocol.connection_made(cast(asyncio.Transport, transport))
    return protocol, transport, loop


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-"])
def test_headers_that_never_end_are_given_up(begin: bytes) -> None:
    protocol, transport, loop = connect(ClientLimits(9, 9))
    for at in range(len(begin)):
        protocol.data_received(begin[at : at + 1])
    (timer,) = loop.running()
    assert timer.seconds == LONGEST["headers"], "one limit for all headers, not one for each byte"
    timer.act()
    assert transport.closed
    assert b"408" in transport.written
    assert b"the headers took longer than 10 s" in transport.written


def test_a_body_that_never_ends_is_given_up() -> None:
    protocol, transport, loop = connect(ClientLimits(9, 9))
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
    (timer,) = loop.running()
    assert timer.seconds == LONGEST["body"]
    protocol.data_received(b"x" * 99)
    assert loop.running() == [timer]
    timer.act()
    assert transport.closed
    assert b"the body took longer than 60 s" in transport.written


def test_a_request_that_is_complete_has_no_time_limit() -> None:
    protocol, _, loop = connect(ClientLimits(9, 9))
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert loop.running() == []


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_connections_without_a_whole_request_yield_to_new_ones() -> None:
    counted: ClientLimits[Any] = ClientLimits(in_all=3, per_address=9)
    half = [connect(counted) for _ in range(3)]
    for protocol, _, _ in half:
        protocol.data_received(REQUEST[:-3])
    new, transport, _ = connect(counted)
    new.data_received(REQUEST)
    assert not transport.closed
    assert [there.closed for _, there, _ in half] == [True, False, False], "the oldest yields"
    for _ in range(5):
        connect(counted)
    assert not transport.closed, "one whose request is being answered does not yield"


def test_the_number_of_connections_is_bounded_and_named() -> None:
    counted: ClientLimits[Any] = ClientLimits(in_all=3, per_address=9)
    there = [connect(counted) for _ in range(3)]
    for protocol, _, _ in there:
        protocol.data_received(REQUEST)
    _, refused, _ = connect(counted)
    assert refused.closed
    assert b"503" in refused.written
    assert b"at most 3 connections at a time" in refused.written
    there[0][0].connection_lost(None)
    assert not connect(counted)[1].closed


def test_one_address_cannot_take_all_connections() -> None:
    counted: ClientLimits[Any] = ClientLimits(in_all=50, per_address=2)
    assert not any(connect(counted, "192.0.2.1")[1].closed for _ in range(2))
    assert b"from one address" in connect(counted, "192.0.2.1")[1].written
    assert not connect(counted, "192.0.2.2")[1].closed
    assert not any(connect(counted)[1].closed for _ in range(10)), "loopback is one address for all"


# ── pages ──


def answer_of(path: str, kind: str = "http", query: bytes = b"") -> list[Any]:
    """What `Bounded` sends; an empty list if it passes the request on."""
    sent: list[Any] = []

    async def passed(scope: Any, receive: Any, send: Any) -> None:
        return None

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "path": path, "method": "GET", "headers": [], "query_string": query}
    asyncio.run(Bounded(passed)(scope, cast(Any, None), send))
    return sent


def test_the_number_of_open_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_of("/") == []
    monkeypatch.setattr(server, "MOST_PAGES", 0)
    for path in ("/", "/program", "/no/such/page"):
        assert answer_of(path)[0]["status"] == 503
    for path in ("/api/now", "/static/frame/frame.js", "/_nicegui/1/x", "/favicon.ico"):
        assert answer_of(path) == []


def test_the_number_of_page_sockets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    socket_io = "/_nicegui_ws/socket.io/"
    assert answer_of(socket_io) == []
    monkeypatch.setattr(server, "MOST_PAGE_SOCKETS", 0)
    assert answer_of(socket_io)[0]["status"] == 503
    assert answer_of(socket_io, "websocket") == [{"type": "websocket.close", "code": 1013}]
    assert answer_of(socket_io, query=b"EIO=4&sid=x") == []
    assert answer_of("/ws/state", "websocket") == []


# ── requests, without a network ──


def test_a_client_that_leaves_before_the_end_of_its_body_is_no_error() -> None:
    async def reads(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()

    said = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> Any:
        return next(said, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/api/now", "headers": []}
    asyncio.run(Bounded(reads)(scope, receive, send))


@pytest.mark.parametrize("believed", [None, "127.0.0.1"])
def test_a_client_cannot_choose_the_address_that_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, believed: str | None
) -> None:
    if believed:
        monkeypatch.setenv(server.PROXIES_VARIABLE, believed)
    else:
        monkeypatch.delenv(server.PROXIES_VARIABLE, raising=False)
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    config = server.server_of(cast(Any, app), ClientLimits(9, 9)).config
    config.load()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/now",
        "query_string": b"",
        "headers": [(b"x-forwarded-for", b"192.0.2.1")],
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(config.loaded_app(scope, _no_app, _no_app))
    assert seen == ["192.0.2.1" if believed else "127.0.0.1"]
