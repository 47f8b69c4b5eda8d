"""The vision process: its start, its end, and what raw bytes do to it."""

import contextlib
import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import zmq
from tests.vision.served import WAIT, served

from understudy.errors import ConfigError
from understudy.sight.markers import marker_pattern
from understudy.vision.command_line import vision
from understudy.vision.config import VisionConfig
from understudy.vision.process import LARGEST_MESSAGE, setup_of_camera, setup_of_file
from understudy.wire.zmq_request import ZmqRequester

pytestmark = pytest.mark.usefixtures("patient_connection")
PING = b'{"command": "ping"}'
SIGNATURE = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f"
GREETING = SIGNATURE + b"\x03\x00" + b"NULL".ljust(20, b"\x00") + b"\x00" * 32
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a picture of marker 3, 90 pixels wide."""
    folder = tmp_path_factory.mktemp("pictures")
    picture = np.full((480, 640, 3), 120, dtype=np.uint8)
    sheet = cv2.resize(
        marker_pattern("DICT_4X4_50", 3), (120, 120), interpolation=cv2.INTER_NEAREST
    )
    picture[100:220, 200:320] = sheet
    cv2.imwrite(str(folder / "a.png"), picture)
    facts = {"K": [[600, 0, 319.5], [0, 600, 239.5], [0, 0, 1]], "t_exposure": 12.5}
    (folder / "a.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def address(pictures: Path) -> Iterator[str]:
    """A server in a thread of this process."""
    with served(setup_of_camera(f"files:{pictures}?loop")) as where:
        yield where


def asked(address: str, *parts: bytes) -> Any:
    requester = ZmqRequester(address)
    try:
        return json.loads(requester.ask(parts, WAIT)[0])
    finally:
        requester.close()


def test_a_capture_over_zeromq(address: str) -> None:
    reply = asked(address, b'{"command": "capture", "request_id": 1}')
    assert (reply["success"], reply["request_id"], reply["timestamp_us"]) == (True, 1, 12_500_000)
    (found,) = reply["objects"]
    assert (found["id"], found["class"]) == (3, "marker_3")
    assert found["pose"]["z"] == pytest.approx(50.0 * 600.0 / 90.0, abs=0.05)
    assert abs(abs(found["pose"]["rx"]) - 180.0) < 0.5


def test_messages_of_several_parts_and_huge_ones_get_an_error_reply(address: str) -> None:
    assert "2 parts" in asked(address, PING, PING)["error"]
    assert "at most" in asked(address, b" " * (LARGEST_MESSAGE // 2))["error"]
    assert "not a request" in asked(address, b"")["error"]
    assert asked(address, PING)["success"] is True


RAW = {
    "no ZMTP": b"GET / HTTP/1.1\r\n\r\n",
    "half a greeting": GREETING[:20],
    "zeros": b"\x00" * 4096,
    "ones": b"\xff" * 4096,
    "100 MB announced": GREETING + READY + b"\x02" + struct.pack(">Q", 100_000_000) + b"x" * 1000,
    "2^63 announced": GREETING + READY + b"\x02" + struct.pack(">Q", 2**63) + b"x" * 1000,
    "no envelope": GREETING + READY + b"\x00\x04ping",
    "wrong command": GREETING + b"\x04\x05\x04NOPE",
    "endless parts": GREETING + READY + b"\x01\x00" * 2000,
}


def test_raw_bytes_do_not_stop_the_server(address: str) -> None:
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    peers = []
    for data in RAW.values():
        peer = socket.create_connection((host, int(port)), timeout=WAIT)
        peer.sendall(data)
        peers.append(peer)
        assert asked(address, PING)["success"] is True
    rng = np.random.default_rng(3)
    for size in (1, 7, 64, 500):
        peer = socket.create_connection((host, int(port)), timeout=WAIT)
        peer.sendall(GREETING + READY + rng.bytes(size))
        peers.append(peer)
    assert asked(address, PING)["success"] is True
    for peer in peers:
        peer.close()
    assert asked(address, b'{"command": "capture"}')["success"] is True


@pytest.mark.parametrize(
    "greeting",
    [b"\x01\x00", b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x03\x00\x00"],
    ids=["ZMTP 1", "ZMTP 2"],
)
def test_old_versions_are_refused(address: str, greeting: bytes) -> None:
    """A web page can send them: an HTTP request can be read as frames of ZMTP 1."""
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    frames = b"\x01\x01" + bytes([len(PING) + 1]) + b"\x00" + PING
    if greeting[0] == 0xFF:  # flags first, then the length
        frames = b"\x01\x00\x00" + bytes([len(PING)]) + PING
    with socket.create_connection((host, int(port)), timeout=WAIT) as peer:
        peer.sendall(greeting + frames)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while more := peer.recv(4096):
                said += more
    assert b"success" not in said
    assert asked(address, PING)["success"] is True


@pytest.mark.soak
def test_much_random_traffic_does_not_stop_the_server(address: str) -> None:
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    rng = np.random.default_rng(4)
    for number in range(2000):
        with socket.create_connection((host, int(port)), timeout=WAIT) as peer:
            head = b"" if number % 3 == 0 else GREETING + (READY if number % 3 == 1 else b"")
            peer.sendall(head + rng.bytes(int(rng.integers(1, 4000))))
        if number % 50 == 0:
            assert asked(address, PING)["success"] is True


def test_a_client_that_leaves_before_the_reply(address: str) -> None:
    for _ in range(5):
        client: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        client.connect(address)
        client.send(b'{"command": "capture"}')
        client.close(linger=0)
    assert asked(address, PING)["success"] is True


# ── command line ────────────────────────────────────────────────────────────────────────────────


def started(arguments: list[str], ready_file: Path) -> "tuple[subprocess.Popen[str], str]":
    """The process and its address, when it listens."""
    command = [sys.executable, "-m", "understudy", "vision", *arguments]
    process = subprocess.Popen(
        [*command, "--ready-file", str(ready_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WAIT
    while not ready_file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ready_file.exists(), process.communicate()[1]
    where: str = json.loads(ready_file.read_text())["endpoints"]["vision"]
    return process, where


def test_the_command_serves_records_and_ends_with_a_signal(pictures: Path, tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    arguments = [f"--camera=files:{pictures}", "--port=0", f"--record={tmp_path / 'seen'}"]
    process, where = started(arguments, file)
    try:
        assert where.startswith("tcp://127.0.0.1:")
        assert asked(where, b'{"command": "capture"}')["objects"][0]["id"] == 3
        assert asked(where, b'{"command": "capture"}')["detail"].startswith("all 1 pictures")
        port = int(where.rsplit(":", 1)[1])
        with pytest.raises(ConfigError, match=f"port {port} is taken"):
            vision(camera=f"files:{pictures}", port=port)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "ready"
    assert not file.exists()
    assert [each.name for each in sorted((tmp_path / "seen").iterdir())] == [
        "000001.json",
        "000001.png",
    ]


UNINTERRUPTED = """
import signal, threading
from understudy.vision.process import ListenAddress, ended_by_signals, serve

def end():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with ended_by_signals() as signals:
    place = ListenAddress(port=0, signals=signals)
    serve(lambda parts: b"", place, lambda address: threading.Timer(0.2, end).start())
print("ended")
"""


def test_a_signal_that_does_not_interrupt_the_poll_ends_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNINTERRUPTED], capture_output=True, text=True, timeout=WAIT
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)


def test_options_that_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which camera"):
        vision()
    with pytest.raises(ConfigError, match="not both"):
        vision(cell="pick_place", config=tmp_path / "x.yaml")
    with pytest.raises(ConfigError, match="--trust-network"):
        vision(camera="opencv:0", host="0.0.0.0")
    with pytest.raises(ConfigError, match="no robot of this cell has the section `vision`"):
        vision(cell="text_robot")
    with pytest.raises(ConfigError, match="unknown robot"):
        vision(cell="pick_place", robot="nobody")


VISION = """
vision:
  camera: files:pictures
  mount: eye_to_hand
  hand_eye_calibration_file: hand_eye_calib.yaml
  detectors:
    - {kind: markers, size_mm: 30, classes: {0: cube}}
    - {kind: %s}
"""
CALIBRATION = """
hand_eye_calibration:
  matrix: [[1, 0, 0, 45.23], [0, 1, 0, -12.56], [0, 0, 1, 85.78], [0, 0, 0, 1]]
  camera_intrinsics: {fx: 1200.5, fy: 1200.8, cx: 640.0, cy: 480.0, distortion: [-0.12, 0.08]}
"""


def test_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hand_eye_calib.yaml").write_text(CALIBRATION)
    file = tmp_path / "vision.yaml"
    file.write_text(VISION % "markers")
    setup = setup_of_file(file)
    assert setup.eye.mount == "eye_to_hand"
    assert setup.eye.place is not None
    assert setup.eye.place[:3, 3].tolist() == pytest.approx([0.04523, -0.01256, 0.08578])
    assert setup.eye.lens is not None
    assert (setup.eye.lens.fx, setup.eye.lens.distortion[:2]) == (1200.5, (-0.12, 0.08))
    monkeypatch.chdir(tmp_path)
    file.write_text(VISION % "markerz")
    with pytest.raises(ConfigError, match=r"vision\.yaml:8: vision\.detectors\.1\.kind.*'markers'"):
        setup_of_file(file).server()
    file.write_text("pickplace: {}\n")
    with pytest.raises(ConfigError, match="section `vision` is missing"):
        setup_of_file(file)
    file.write_text("vision: {camera: opencv:0, camera_address: tcp://127.0.0.1}\n")
    with pytest.raises(ConfigError, match=r"vision\.camera_address.*tcp://HOST:PORT"):
        setup_of_file(file)
    file.write_text("vision: {}\n")
    with pytest.raises(ConfigError, match=r"vision\.yaml:1: vision\.camera"):
        setup_of_file(file)


def test_detectors_of_a_cell_are_checked_when_it_is_loaded() -> None:
    def checked(**row: object) -> None:
        VisionConfig(source="process", detectors=({"kind": "markers"}, row)).check()

    checked(kind="markers", size_mm=30)
    with pytest.raises(ConfigError, match=r"detectors\.1\.sise_mm.*did you mean 'size_mm'"):
        checked(kind="markers", sise_mm=30)
    with pytest.raises(ConfigError, match=r"detectors\.1\.classes\.0"):
        checked(kind="markers", classes={0: 1})
    with pytest.raises(ConfigError, match=r"detectors\.1\.kind: unknown.*did you mean 'shapes'"):
        checked(kind="shape")
    with pytest.raises(ConfigError, match=r"detectors\.1\.kind: which kind"):
        checked(size_mm=30)
