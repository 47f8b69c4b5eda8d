"""The asking side of ZeroMQ request and reply, against servers that answer, are silent or die."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import zmq
from tests.free_ports import free_port

from understudy.errors import ConfigError
from understudy.wire import zmq_request
from understudy.wire.zmq_request import CONNECT_SECONDS, MOST_PARTS, NoReplyError, ZmqRequester

Serve = Callable[["zmq.Socket[bytes]", list[bytes]], None]
pytestmark = pytest.mark.usefixtures("patient_connection")
WAIT = 60.0
SILENT = 0.3
"""Wall seconds after which the tests give a silent server up."""
BETWEEN = 0.2
"""Wall seconds between two answers, so that the first one arrives alone."""
ECHO = """
import signal, sys, zmq
socket = zmq.Context.instance().socket(zmq.REP)
socket.bind(sys.argv[1])
while True:
    parts = socket.recv_multipart()
    if parts[0] == b"silent":
        print("got it", flush=True)
        signal.pause()
    socket.send_multipart(parts)
"""


@contextmanager
def server(address: str, serve: Serve, kind: int = zmq.REP) -> Iterator[None]:
    ends = threading.Event()
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
    socket.bind(address)

    def run() -> None:
        while not ends.is_set():
            if socket.poll(20):
                serve(socket, socket.recv_multipart())
        socket.close(linger=0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(WAIT)


def echo(socket: "zmq.Socket[bytes]", parts: list[bytes]) -> None:
    socket.send_multipart(parts)


@pytest.fixture
def asker() -> Iterator[ZmqRequester]:
    made = ZmqRequester(f"tcp://127.0.0.1:{free_port()}")
    yield made
    made.close()


def test_answers_come_in_parts_and_whole(asker: ZmqRequester) -> None:
    picture = bytes(range(256)) * 20_000
    with server(asker.address, echo):
        assert asker.ask([b"{}"], WAIT) == [b"{}"]
        assert asker.ask([b"{}", picture, b""], WAIT) == [b"{}", picture, b""]


def test_without_a_server_a_question_fails_long_before_its_deadline(
    asker: ZmqRequester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(zmq_request, "CONNECT_SECONDS", CONNECT_SECONDS)
        with pytest.raises(NoReplyError, match="nothing answers at"):
            asker.ask([b"{}"], 10 * WAIT)
    with server(asker.address, echo):
        assert asker.ask([b"a"], WAIT) == [b"a"], "a server that comes later is found"


def test_a_late_answer_is_dropped(asker: ZmqRequester) -> None:
    """The server keeps the first question and answers both after the second one, the second one so
    late that the answer to the first is read alone."""
    kept: list[list[bytes]] = []

    def late(socket: "zmq.Socket[bytes]", parts: list[bytes]) -> None:
        if parts[-1] == b"there?":
            socket.send_multipart(parts)
            return
        kept.append(parts)
        if len(kept) == 2:
            socket.send_multipart(kept[0])
            time.sleep(BETWEEN)
            socket.send_multipart(kept[1])

    with server(asker.address, late, zmq.ROUTER):
        assert asker.ask([b"there?"], WAIT) == [b"there?"]
        with pytest.raises(NoReplyError, match=r"no answer from .* in 0\.3 s"):
            asker.ask([b"first"], SILENT)
        assert asker.ask([b"second"], WAIT) == [b"second"]


def test_a_server_that_is_killed_is_noticed_at_once_and_found_again(asker: ZmqRequester) -> None:
    command = [sys.executable, "-c", ECHO, asker.address]
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert asker.ask([b"there?"], WAIT) == [b"there?"]
                killing = _kill_when_it_has_read(process)
                with pytest.raises(NoReplyError, match="has closed the connection"):
                    asker.ask([b"silent"], 10 * WAIT)
                assert asker._socket is None, "a broken connection may swallow the next question"
                killing.join(WAIT)
            finally:
                process.kill()


def _kill_when_it_has_read(process: "subprocess.Popen[bytes]") -> threading.Thread:
    def kill() -> None:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def test_an_answer_that_is_not_wanted_any_more_ends_the_wait(asker: ZmqRequester) -> None:
    arrived = threading.Event()
    with server(asker.address, lambda socket, parts: arrived.set()):
        with pytest.raises(NoReplyError, match="not wanted any more"):
            asker.ask([b"{}"], 10 * WAIT, lambda: not arrived.is_set())
        assert arrived.is_set()


def test_too_many_parts_are_refused(asker: ZmqRequester) -> None:
    def many(socket: "zmq.Socket[bytes]", parts: list[bytes]) -> None:
        socket.send_multipart([b"x"] * (MOST_PARTS + 1))

    with server(asker.address, many), pytest.raises(NoReplyError, match="parts"):
        asker.ask([b"{}"], WAIT)


@pytest.mark.parametrize(
    "address", ["", "5570", "tcp://*:5570", "tcp://127.0.0.1", "tcp://a:0", "udp://a:1", "tcp://a:70000"]
)  # fmt: skip
def test_an_address_that_is_none_is_a_config_error(address: str) -> None:
    with pytest.raises(ConfigError, match=r"tcp://HOST:PORT"):
        ZmqRequester(address)
