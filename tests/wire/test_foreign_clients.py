"""Web pages that post to the ports of a cell: nothing moves, and the connection is closed."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from understudy.app.build import build_cell
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.robots.kuka.frames import COMMAND
from understudy.wire.dial import Destination
from understudy.wire.exchange import Client, InProcessCell
from understudy.wire.first_bytes import read_first
from understudy.wire.record import Recorder, parse_address
from understudy.wire.tcp import stop_accepting

PATIENCE_S = 60.0
KUKA_RECORD = COMMAND.pack(1, 1, 700, 0, 900, 0, 90, 0, 100, 0, 127)
"""A straight line."""
ORDERS = (
    b"\nMOVE_ABS 1,2,3,0,0,0\nHOME\n$J=G91 G1 X10 F100\nG1 J1=20 F100\n~\n"
    b'{"do": "inject", "fault": "emergency_stop", "on": "g60"}\n{"do": "quit"}\n'
)
"""Orders in the language of every endpoint that reads lines."""


def post(body: bytes, target: str = "/") -> bytes:
    """What a browser sends for `fetch(target, {mode: "no-cors", method: "POST", body})`."""
    head = (
        f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:5000\r\nConnection: keep-alive\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: text/plain;charset=UTF-8\r\n"
        "Origin: http://evil.example\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n\r\n"
    )
    return head.encode() + body


def aligned_post(record: bytes) -> bytes:
    """A request whose body begins at a whole number of records."""
    for length in range(len(record)):
        request = post(b"", "/" + "a" * length)
        if len(request) % len(record) == 0:
            return request.replace(b"Content-Length: 0", b"Content-Length: 9") + 3 * record
    raise AssertionError


# ── a running cell ──


@pytest.fixture(scope="module")
def cell() -> Iterator[StandIn]:
    with StandIn("default", rate=1.0, hmi=True) as cell:
        yield cell


def motion(cell: StandIn) -> Any:
    """State and place of every robot."""
    views = cell._call(lambda live: live.watch.look().robots)
    return {name: (view.state, list(view.q), list(view.tcp)) for name, view in views.items()}


def last_answer(address: tuple[str, int], data: bytes) -> bytes:
    """All bytes that the endpoint sends until it closes the connection."""
    with socket.create_connection(address, PATIENCE_S) as line:
        try:
            line.sendall(data)
            received = b""
            while piece := line.recv(65536):
                received += piece
        except ConnectionResetError:  # it was closed with bytes unread
            return received
    return received


@pytest.mark.parametrize("order", ["lines", "records"])
def test_a_web_page_moves_no_robot(cell: StandIn, order: str) -> None:
    """At every TCP endpoint of the default cell."""
    before = motion(cell)
    request = post(ORDERS) if order == "lines" else aligned_post(KUKA_RECORD)
    others = ("hmi_link", "nats")  # the NATS server is a program of its own
    endpoints = [name for name in cell.endpoints if not any(each in name for each in others)]
    assert {"control", "state", "bench.text_tcp", "g60.grblhal"} <= set(endpoints)
    assert {"kuka.kuka_eki.command", "kuka.kuka_eki.telemetry"} <= set(endpoints)
    for name in endpoints:
        answer = last_answer(cell.address(name), request)
        for word in (b"ok", b"OK", b"error:", b"ERROR"):
            assert word not in answer.replace(b"'$' for help", b""), name
        assert b"<" not in answer, f"{name}: `?` was answered with a status report"
    cell.forward(1.0)
    assert motion(cell) == before


def http_as_zmtp_1(message: bytes) -> bytes:
    """An HTTP request that a reader of ZMTP 1 takes for this message.

    ZMTP 1 has no greeting: a frame is its length, a byte of flags and the content. `P` is a frame
    of 80 bytes; characters of the path are the lengths of the next frames, up to the body.
    """
    request = bytearray(b"POST /" + 200 * b"a" + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    place = 1 + ord("P")
    while (rest := len(request) - place - 1) > 126:
        request[place : place + 2] = b"ab"
        place += 1 + ord("a")
    request[place : place + 2] = bytes([rest]) + b"b"
    return bytes(request) + bytes([1, 0]) + bytes([len(message) + 1, 0]) + message


def test_an_http_request_is_no_zeromq_message(cell: StandIn) -> None:
    stop = {"command": "inject", "parameters": {"fault": "emergency_stop", "on": "bench"}}
    order = json.dumps({"type": "COMMAND", "payload": stop}).encode()
    assert len(order) < 255
    last_answer(cell.address("g60.hmi_link"), http_as_zmtp_1(order))
    last_answer(cell.address("g60.hmi_link.status"), http_as_zmtp_1(b"\x01"))
    context = zmq.Context()
    with context.socket(zmq.REQ) as panel:
        panel.set(zmq.LINGER, 0)
        panel.set(zmq.RCVTIMEO, int(1000 * PATIENCE_S))
        panel.connect(cell.endpoints["g60.hmi_link"])
        panel.send(b'{"type": "PING"}')
        assert json.loads(panel.recv())["type"] == "PONG"
    context.term()
    assert motion(cell)["bench"][0] == "Idle"


# ── however the bytes are cut ──

REQUESTS = [
    post(ORDERS),
    b"GET /?~!\x18 HTTP/1.1\r\n\r\n?",
    b"PUT /x HTTP/1.1\r\n\r\nHOME\n",
    b"DELETE / HTTP/1.1\r\n\r\nHOME\n",
    b"HEAD / HTTP/1.0\r\n\r\nHOME\n",
    b"OPTIONS * HTTP/1.1\r\n\r\nHOME\n",
    b"PATCH / HTTP/1.1\r\n\r\nHOME\n",
    b"TRACE / HTTP/1.1\r\n\r\nHOME\n",
    b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\nHOME\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nHOME\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\nHOME\nG0 X1\n",
]
FACES = {
    "text_robot": "bench.text_tcp",
    "grblhal_6axis": "machine.grblhal",
    "kuka_eki": "kuka.kuka_eki.command",
}


def answers(cell: str, pieces: list[bytes]) -> tuple[bytes, bool]:
    """What a client receives, and whether it is still connected."""
    inside = InProcessCell(build_cell(load_config(cell).without_rules()))
    client = Client(inside, FACES[cell])
    for piece in pieces:
        client.say(piece)
    inside.run_while_owed()
    return client.received(), client.connected


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request[:4].decode("latin-1"))
@pytest.mark.parametrize("cell", FACES)
def test_http_and_tls_clients_are_disconnected_however_their_bytes_are_cut(
    cell: str, request_: bytes
) -> None:
    greeting, _ = answers(cell, [])
    whole = answers(cell, [request_])
    assert whole == (greeting, False)
    assert answers(cell, [request_[n : n + 1] for n in range(len(request_))]) == whole


STREAMS = {
    "text_robot": b"GET_POS\nGET_STATUS\nPOST\nGET\nHEAD_UP\nOPTIONS\nSTOP\n",
    "grblhal_6axis": b"G0 X1\nG4 P0.1\nP1\nO100\nT1\nD\nG21 /\n?",
    "kuka_eki": COMMAND.pack(int.from_bytes(b"GET ", "little"), 1, *9 * [0])
    + COMMAND.pack(int.from_bytes(b"\x16\x03\x01\x00", "little"), 1, *9 * [0]),
}


@pytest.mark.parametrize("cell", FACES)
@pytest.mark.parametrize("first", range(3))
def test_requests_that_begin_like_a_verb_are_answered_as_ever(cell: str, first: int) -> None:
    stream = STREAMS[cell]
    if cell != "kuka_eki":
        stream = b"\n".join(stream.split(b"\n")[first:])
    received, connected = answers(cell, [stream])
    assert connected
    assert received
    assert answers(cell, [stream[n : n + 1] for n in range(len(stream))]) == (received, True)


VERBS = st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"])


@given(VERBS, st.sampled_from([b" /", b" *"]), st.binary(max_size=20), st.lists(st.integers(0, 20)))
def test_a_request_is_recognised_within_its_first_bytes(
    verb: bytes, target: bytes, rest: bytes, cuts: list[int]
) -> None:
    data, passed, foreign = verb + target + rest, b"", False
    known: bytes | None = b""
    for start, end in pairwise([0, *sorted(cuts), len(data)]):
        if not foreign:
            known, piece, foreign = read_first(known, data[start:end])
            passed += piece
    assert (passed, foreign) == (verb + target[:1], True)


@given(st.from_regex(rb"\A[A-Z][0-9.]{1,8}", fullmatch=True), st.integers(0, 20))
def test_words_of_gcode_are_no_request(word: bytes, cut: int) -> None:
    line = word + b" " + word + b" / HTTP/1.1\nGET / HTTP/1.1\n"
    known: bytes | None = b""
    for data in (line[:cut], line[cut:]):
        known, passed, foreign = read_first(known, data)
        assert (passed, foreign) == (data, False)


def test_a_page_that_chooses_its_method_moves_no_robot(cell: StandIn) -> None:
    """DNS rebinding: the browser takes this machine for the page's own server."""
    before = motion(cell)
    for method in (b"FOO", b"N1", b"x" * 5000):
        request = post(ORDERS).replace(b"POST", method, 1)
        for name in cell.endpoints.keys() - {"nats"}:
            answer = last_answer(cell.address(name), request)
            for word in (b"ok", b"OK", b"error:", b"ERROR"):
                assert word not in answer.replace(b"'$' for help", b""), (name, method[:9])
    cell.forward(1.0)
    assert motion(cell) == before


def test_a_restored_client_is_still_recognised() -> None:
    """A snapshot between the bytes of a verb."""
    inside = InProcessCell(build_cell(load_config("text_robot").without_rules()))
    client = Client(inside, FACES["text_robot"])
    client.say(b"POST")
    inside.restore(inside.snapshot())
    client.say(b" / HTTP/1.1\r\n\r\nHOME\n")
    assert (client.received(), client.connected) == (b"", False)


def test_a_face_that_speaks_http_gets_such_clients() -> None:
    cell = build_cell(load_config("text_robot").without_rules())
    cell.faces[FACES["text_robot"]].speaks_http = True  # type: ignore[union-attr]
    client = Client(InProcessCell(cell), FACES["text_robot"])
    client.say(b"GET / HTTP/1.1\n")
    assert client.received().startswith(b"ERROR")
    assert client.connected


# ── the proxy in front of a REAL controller ──


@contextlib.asynccontextmanager
async def recorder_of(port: int) -> AsyncIterator[tuple[str, int]]:
    """A recorder in front of a controller at this port; yields where its clients connect."""
    to, listens = Destination("127.0.0.1", port), asyncio.Event()
    recorder = Recorder(parse_address(":0"), to, face="text_tcp")
    running = asyncio.create_task(recorder.run(lambda text: None, lambda text: listens.set()))
    await listens.wait()
    host, _, listening = recorder.place.rpartition(":")
    yield host, int(listening)
    recorder.finished.set()
    await running


@pytest.mark.parametrize("turns", range(10))
def test_a_client_that_connects_while_a_recording_ends_is_closed(turns: int) -> None:
    """In every phase: at the door, being accepted, while the controller is called."""

    async def connect_and_end(controller: int) -> socket.socket:
        async with recorder_of(controller) as place:
            client = socket.create_connection(place, PATIENCE_S)
            for _ in range(turns):
                await asyncio.sleep(0)
        return client

    with socket.create_server(("127.0.0.1", 0)) as never_answers:
        ended = asyncio.wait_for(connect_and_end(never_answers.getsockname()[1]), PATIENCE_S)
        with asyncio.run(ended) as client:
            client.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b"", "closed, and not open without anybody there"


def test_a_web_page_does_not_reach_a_robot_through_the_recorder() -> None:
    async def scene() -> tuple[bytes, bytes]:
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def robot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.set_result(await reader.read())
            writer.close()

        server = await asyncio.start_server(robot, "127.0.0.1", 0)
        async with recorder_of(server.sockets[0].getsockname()[1]) as place:
            reader, writer = await asyncio.open_connection(*place)
            writer.write(post(ORDERS))
            answer = await reader.read()
            writer.close()
        await stop_accepting(server)
        return await heard, answer

    heard, answer = asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))
    assert (heard, answer) == (b"POST ", b"")
