"""Numbers of clients: an endpoint that is full, clients that yield, descriptors for control."""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import zmq

from understudy.app.stand_in import StandIn
from understudy.wire import descriptors, zmtp
from understudy.wire.tcp import KEEP_ALIVE, keep_alive

CELL = """\
robots:
  bench:
    kind: text_robot
    faces:
      text_tcp: {max_clients: 3, idle_yields_after_s: %g}
"""
PATIENCE_S = 60.0


@pytest.fixture
def robot(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """A text robot with three places; the parameter is `idle_yields_after_s`."""
    file = tmp_path / "cell.yaml"
    file.write_text(CELL % request.param)
    with StandIn(str(file), rate=1.0) as robot:
        yield robot


def connect(robot: StandIn) -> socket.socket:
    return socket.create_connection(robot.address("bench.text_tcp"), PATIENCE_S)


def is_served(line: socket.socket) -> bool:
    with suppress(OSError):
        line.sendall(b"GET_STATUS\n")
        return line.recv(100).startswith(b"OK")
    return False


@pytest.mark.parametrize("robot", [3600.0], indirect=True)
def test_a_client_beyond_the_limit_is_closed_and_the_log_names_the_key(
    robot: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    there = [connect(robot) for _ in range(3)]
    assert all(is_served(line) for line in there)
    with connect(robot) as more:
        assert not is_served(more)
    assert "bench.text_tcp: a client was turned away: at most 3 connections" in caplog.text
    assert "max_clients" in caplog.text
    there.pop().close()
    while True:  # the server may notice the end later
        with connect(robot) as more:
            if is_served(more):
                break
    assert all(is_served(line) for line in there)
    for line in there:
        line.close()


@pytest.mark.parametrize("robot", [3600.0], indirect=True)
def test_a_client_that_never_said_anything_yields_at_once(robot: StandIn) -> None:
    talks, first, second = (connect(robot) for _ in range(3))
    with talks, first, second:
        assert is_served(talks)
        with connect(robot) as more:
            assert is_served(more)
            assert first.recv(1) == b""
            assert is_served(talks)
            assert is_served(second), "the oldest yields"


@pytest.mark.parametrize("robot", [0.0], indirect=True)
def test_the_client_that_was_idle_for_the_longest_time_yields(robot: StandIn) -> None:
    lines = [connect(robot) for _ in range(3)]
    for line in (lines[2], lines[0], lines[1]):
        assert is_served(line)
    with connect(robot) as more:
        assert is_served(more)
        assert not is_served(lines[2])
        assert is_served(lines[0])
    for line in lines:
        line.close()


# ── descriptors ──


def test_clients_that_have_not_shown_the_secret_yield_however_busy_they_are(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL % 3600 + "control: {max_clients: 3, idle_yields_after_s: 3600}\n")
    with StandIn(str(file), rate=1.0) as cell, ExitStack() as held:
        address = cell.address("control")
        request = json.dumps({"do": "now", "secret": cell.secret}).encode() + b"\n"
        operators = []
        for number in range(3):
            for _ in range(4):
                line = held.enter_context(socket.create_connection(address, PATIENCE_S))
                line.sendall(b'{"do": ')  # and never the rest
                cell.do("now")  # lets the cell read it
            operator = held.enter_context(socket.create_connection(address, PATIENCE_S))
            operator.sendall(request)
            assert operator.recv(1000).startswith(b'{"id":null,"ok":true'), number
            operators.append(operator)
        for operator in operators:
            operator.sendall(b'{"do": "now"}\n')
            assert operator.recv(1000), "one that has shown the secret does not yield"


def test_clients_that_have_not_done_the_handshake_of_zeromq_yield(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "cell.yaml"
    limits = "{max_clients: 3, idle_yields_after_s: 3600}"
    file.write_text(f"robots: {{bench: {{kind: text_robot, faces: {{hmi_link: {limits}}}}}}}\n")
    with StandIn(str(file), rate=1.0) as cell, ExitStack() as held:
        address = cell.address("bench.hmi_link")
        for _ in range(4):
            line = held.enter_context(socket.create_connection(address, PATIENCE_S))
            line.sendall(zmtp.SIGNATURE)
            cell.do("now")
        client = held.enter_context(held.enter_context(zmq.Context()).socket(zmq.REQ))
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.RCVTIMEO, round(1000 * PATIENCE_S))
        client.connect(cell.endpoints["bench.hmi_link"])
        client.send_json({"type": "PING", "id": 1})
        assert json.loads(client.recv())["type"] == "PONG"
    assert "turned away" not in caplog.text


@pytest.mark.parametrize(
    ("limit", "endpoints"), [(64, 9), (256, 9), (1024, 9), (20_000, 9), (8, 9)]
)
def test_all_clients_together_leave_descriptors_over(
    monkeypatch: pytest.MonkeyPatch, limit: int, endpoints: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    share = descriptors.share(endpoints)
    assert share >= 1
    if limit >= 64:
        assert share * endpoints <= limit - min(descriptors.RESERVED, limit // 2)


FEW = 300
"""Descriptors of the process below."""


def test_stop_gets_through_when_clients_take_every_connection(tmp_path: Path) -> None:
    ready, log = tmp_path / "ready.json", tmp_path / "log.txt"
    run = [sys.executable, "-m", "understudy", "run", "default", "--ephemeral", "--no-hmi"]
    held: list[socket.socket] = []
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*run, "--ready-file", str(ready)],
            stdout=written,
            stderr=written,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW)),
        )
        try:
            endpoints = _endpoints(ready, process)
            endpoints.pop("nats")  # a program of its own
            for address in endpoints.values():
                host, _, port = address.removeprefix("tcp://").rpartition(":")
                held += [
                    socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(FEW)
                ]
            assert len(os.listdir(f"/proc/{process.pid}/fd")) < FEW
            _stop(ready, process)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()
            for line in held:
                line.close()
    text = log.read_text()
    assert "Traceback" not in text
    assert "out of system resource" not in text
    assert "ulimit -n" in text
    assert len(text.splitlines()) < 100, "a flood of clients is no flood of log lines"


def _stop(ready: Path, process: subprocess.Popen[bytes]) -> None:
    """Stops the cell as a user does: again if a busy machine was too slow for the command's own
    timeout. The clients keep all connections meanwhile."""
    until = time.monotonic() + PATIENCE_S
    command = [sys.executable, "-m", "understudy", "stop", "--ready-file", str(ready)]
    while subprocess.run(command).returncode and process.poll() is None:
        assert time.monotonic() < until


def _endpoints(ready: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
    until = time.monotonic() + 3 * PATIENCE_S
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    endpoints: dict[str, str] = json.loads(ready.read_text())["endpoints"]
    return endpoints


def test_a_peer_whose_machine_has_vanished_is_noticed() -> None:
    with socket.socket() as raw:
        keep_alive(raw)
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name, value in KEEP_ALIVE.items():
            if hasattr(socket, name):
                assert raw.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
