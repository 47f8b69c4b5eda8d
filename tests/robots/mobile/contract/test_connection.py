"""Contract: the server goes away and comes back; the robots run on as OFFLINE meanwhile. The last
messages when the cell ends."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.free_ports import free_port
from tests.robots.mobile.contract.backend import PATIENCE, Backend
from tests.robots.mobile.contract.conftest import RATE, running
from tests.robots.mobile.contract.robots import write_cell


@contextmanager
def server(port: int, store: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A nats-server that accepts connections; it is killed in the end."""
    binary = str(Path(sys.executable).with_name("nats-server"))
    command = [binary, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(store)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + PATIENCE
            while not accepts(port):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def asked(ready: dict[str, Any], command: str) -> Any:
    """The answer of the cell's control endpoint."""
    host, _, port = ready["endpoints"]["control"].removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as control:
        request = {"do": command, "secret": ready["secret"]}
        control.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(control.makefile().readline())["result"]


def wait_for_status(ready: dict[str, Any], robot: str, status: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        states = {each["name"]: each["state"] for each in asked(ready, "robots")["robots"]}
        if states[robot] == status:
            return
        assert time.monotonic() < end, states
        time.sleep(0.05)


def test_the_server_goes_away_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    address = f"nats://127.0.0.1:{port}"
    config = {"servers": [address], "reconnect_wait_s": 0.2}
    cell = write_cell(tmp_path, config, ["mover", "stopper"])
    store = tmp_path / "store"
    with ExitStack() as longer:
        with running(cell, "--rate", RATE) as ready:
            wait_for_status(ready, "mover", "OFFLINE")
            with server(port, store), Backend(address) as backend:
                wait_for_status(ready, "mover", "RUNNING")
                cause = backend.command("mover", "MOVE_VELOCITY", linear=0.5, durationSeconds=600)
                backend.wait("mover", "state", lambda p: p["velocity"]["linear"] > 0.3)
                boot = backend.wait("mover", "heartbeat").payload["bootId"]
            wait_for_status(ready, "mover", "OFFLINE")
            longer.enter_context(server(port, store))
            backend = longer.enter_context(Backend(address))
            wait_for_status(ready, "mover", "RUNNING")
            look_at_return(backend, cause, boot)
            before = backend.mark()
        backend.event("mover", "simulation.stopped", after=before)
        backend.event("stopper", "simulation.stopped", after=before)


def look_at_return(backend: Backend, cause: str, boot: str) -> None:
    backend.state("mover", lambda p: p["status"] == "RUNNING" and not p["velocity"]["linear"])
    status, _ = backend.ended("mover", cause)[-1]
    assert status == "FAILED", "the robot has stopped when the server was lost"
    beats = [got.payload for got in backend.of("mover", "heartbeat")]
    assert {beat["bootId"] for beat in beats} == {boot}, "the robot has run on"
    states = [got.payload["status"] for got in backend.of("mover", "state")]
    assert states[-1] == "RUNNING"
    assert len(backend.of("mover", "settings.reported")) >= 2, "at every connection"
    started = [got for got in backend.of("mover", "events") if "started" in got.payload["type"]]
    assert len(started) == 1
    ids = [got.envelope["messageId"] for got in backend.messages]
    assert len(ids) == len(set(ids)), "nothing is stored twice"
    again = backend.command("mover", "MOVE_VELOCITY", linear=0.2, durationSeconds=0.5)
    assert backend.ended("mover", again)[-1] == ("DONE", None)
