"""Camera sources: a cell, a driver of OpenCV, files."""

import io
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import zmq

from understudy import registry
from understudy.errors import ConfigError
from understudy.sight.frame import Frame, encode
from understudy.sight.lens import Lens
from understudy.space.transform import translation
from understudy.vision.cameras import open_camera
from understudy.vision.cameras.driver import BACKENDS, OpenCvCamera
from understudy.vision.cameras.files import RecordingCamera, picture_size
from understudy.vision.interface import CameraError, Shot

pytestmark = pytest.mark.usefixtures("patient_connection")
WAIT = 60.0
"""Seconds that a busy machine may need."""
LENS = Lens(8, 6, 10.0, 11.0, 4.0, 3.0, (0.1, 0.0, 0.0, 0.0, 0.0))
PICTURE = np.random.default_rng(1).integers(0, 255, (6, 8, 3), dtype=np.uint8)
DEPTH = np.full((6, 8), 0.4, dtype=np.float32)
FRAME = Frame(7, 12.5, PICTURE, LENS, DEPTH, translation(0.1, 0.2, 0.3), 10.0, 3.0, "g60")


# ── cell ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(answer: Callable[[Any], list[bytes]]) -> Iterator[str]:
    """A REP socket on a thread; the address of it."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            if socket.poll(20):
                socket.send_multipart(answer(json.loads(socket.recv())))
        socket.close(linger=0)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        stopping.set()
        thread.join(WAIT)


def test_camera_connection() -> None:
    """A frame of a cell arrives as it was taken, with its flange; the shot goes to the camera."""
    asked: list[Any] = []

    def answer(request: Any) -> list[bytes]:
        asked.append(request)
        return encode(FRAME, request["request_id"])

    with answering(answer) as place:
        camera = open_camera(f"understudy://{place}/g60")
        frame = camera.grab(Shot(exposure_ms=5.0, trigger="g60.vision:1:0"), WAIT)
        camera.grab(Shot(), WAIT)
        camera.close()
    trigger = {"trigger": "g60.vision:1:0"}
    assert asked[0] == {"grab": "g60", "request_id": 1, "exposure_ms": 5.0} | trigger
    assert asked[1] == {"grab": "g60", "request_id": 2}
    assert (frame.picture == PICTURE).all()
    assert frame.flange is not None
    assert np.allclose(frame.flange, translation(0.1, 0.2, 0.3))
    assert (frame.lens, frame.frame_id) == (LENS, 7)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b'{"error": "there is no camera", "request_id": 1}'], "g60: there is no camera"),
        ([b"what?"], "no error"),
        ([b'{"error": "\xff"}'], "no error"),
        (encode(FRAME, 1)[:2], "3"),
        (encode(FRAME, 99), "request 99"),
        ([b"{", b""], "header"),
    ],
    ids=["error", "garbage", "not UTF-8", "part missing", "other request", "no header"],
)
def test_wrong_replies_of_a_cell_are_camera_errors(parts: list[bytes], text: str) -> None:
    with answering(lambda request: parts) as place:
        camera = open_camera(f"understudy://{place}/g60")
        with pytest.raises(CameraError, match=text):
            camera.grab(Shot(), WAIT)
        camera.close()


def test_a_cell_that_is_not_there_is_a_camera_error() -> None:
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    socket.close(linger=0)
    camera = open_camera(f"understudy://127.0.0.1:{port}/g60")
    with pytest.raises(CameraError, match="is the cell running"):
        camera.grab(Shot(), 0.2)
    camera.close()


# ── OpenCV ──────────────────────────────────────────────────────────────────────────────────────


def film(file: Path, colors: list[tuple[int, int, int]]) -> None:
    """Plain pictures of these colours (red, green, blue)."""
    code = cv2.VideoWriter.fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(file), code, 10.0, (64, 48))
    for red, green, blue in colors:
        writer.write(np.full((48, 64, 3), (blue, green, red), dtype=np.uint8))
    writer.release()


def test_a_film_is_a_camera(tmp_path: Path) -> None:
    file = tmp_path / "film.avi"
    film(file, [(200, 30, 30), (30, 30, 200)])
    camera = open_camera(f"opencv:{file}")
    first, second = (camera.grab(Shot(10.0, 0.0), WAIT) for _ in range(2))
    assert first.picture.shape == (48, 64, 3)
    assert np.abs(first.picture.mean(axis=(0, 1)) - (200, 30, 30)).max() < 12, "red, green, blue"
    assert np.abs(second.picture.mean(axis=(0, 1)) - (30, 30, 200)).max() < 12
    assert (first.frame_id, second.frame_id) == (1, 2)
    assert (first.lens, first.flange, first.exposure_ms) == (None, None, 0.0)
    with pytest.raises(CameraError, match="no more pictures"):
        camera.grab(Shot(), WAIT)
    camera.close()


def test_a_device_that_is_not_there_is_a_camera_error() -> None:
    camera = open_camera("opencv:97")
    with pytest.raises(CameraError, match="cannot be opened"):
        camera.grab(Shot(), WAIT)
    camera.close()


class Device:
    """Stands in for a driver with two old pictures in its buffer: cv2.VideoCapture as a device."""

    def __init__(self) -> None:
        self.now = 0.0
        self.set_to: dict[int, float] = {}
        self.taken = 0
        self.hang = threading.Event()
        self.hang.set()

    def isOpened(self) -> bool:  # noqa: N802
        return True

    def getBackendName(self) -> str:  # noqa: N802
        return "V4L2"

    def set(self, key: int, value: float) -> bool:
        self.set_to[key] = value
        return key != cv2.CAP_PROP_GAIN

    def grab(self) -> bool:
        self.taken += 1
        if self.taken > 2:
            self.now += 0.01  # the camera exposes a new picture
        return True

    def read(self) -> tuple[bool, Any]:
        self.hang.wait(WAIT)
        return True, np.full((4, 5, 3), self.taken, dtype=np.uint8)

    def release(self) -> None: ...


def test_a_device_gives_a_fresh_picture_and_takes_its_exposure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device()
    monkeypatch.setattr(cv2, "VideoCapture", lambda number: device)
    camera = OpenCvCamera("0", lambda: device.now)
    frame = camera.grab(Shot(exposure_ms=12.0, gain_db=3.0), WAIT)
    assert frame.picture.max() == 3, "two old pictures were in the buffer"
    assert device.set_to[cv2.CAP_PROP_EXPOSURE] == 120.0
    assert device.set_to[cv2.CAP_PROP_AUTO_EXPOSURE] == BACKENDS["V4L2"].manual
    assert (frame.exposure_ms, frame.gain_db) == (12.0, 0.0), "the driver refused the gain"
    device.hang.clear()
    with pytest.raises(CameraError, match="no picture in"):
        camera.grab(Shot(), 0.05)
    with pytest.raises(CameraError, match="no picture"):
        camera.grab(Shot(), 0.05)
    device.hang.set()
    assert camera.grab(Shot(), WAIT).frame_id == 3, "the late picture is not the answer"
    camera.close()


# ── files ───────────────────────────────────────────────────────────────────────────────────────


class Once:
    """A camera with one frame."""

    def grab(self, shot: Shot, seconds: float) -> Frame:
        return FRAME

    def close(self) -> None: ...


def test_a_recorded_session_is_played_again(tmp_path: Path) -> None:
    folder = tmp_path / "session"
    recorder = RecordingCamera(Once(), folder)
    recorder.grab(Shot(), WAIT)
    RecordingCamera(Once(), folder).grab(Shot(), WAIT)
    assert len(list(folder.glob("*.png"))) == 2, "nothing is overwritten"
    camera = open_camera(f"files:{folder}")
    again = camera.grab(Shot(), WAIT)
    assert (again.picture == PICTURE).all()
    assert again.depth is not None
    assert np.allclose(again.depth, 0.4)
    assert again.flange is not None
    assert FRAME.flange is not None
    assert np.allclose(again.flange, FRAME.flange)
    assert (again.lens, again.frame_id, again.exposed_at) == (LENS, 7, 12.5)
    camera.grab(Shot(), WAIT)
    with pytest.raises(CameraError, match="all 2 pictures"):
        camera.grab(Shot(), WAIT)
    looping = open_camera(f"files:{folder}?loop")
    assert [looping.grab(Shot(), WAIT).frame_id for _ in range(5)] == [7] * 5


def test_plain_pictures_and_broken_ones(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.full((4, 5, 3), (0, 0, 250), dtype=np.uint8))
    (tmp_path / "b.jpg").write_bytes(b"not a picture")
    cv2.imwrite(str(tmp_path / "c.png"), np.zeros((4, 5, 3), dtype=np.uint8))
    (tmp_path / "c.json").write_text('{"K": [[1, 2]]}')
    (tmp_path / "notes.txt").write_text("")
    camera = open_camera(f"files:{tmp_path}")
    plain = camera.grab(Shot(), WAIT)
    assert plain.picture[0, 0].tolist() == [250, 0, 0]
    assert (plain.lens, plain.flange, plain.frame_id) == (None, None, 1)
    with pytest.raises(CameraError, match=r"b\.jpg: not a picture"):
        camera.grab(Shot(), WAIT)
    with pytest.raises(CameraError, match=r"c\.png: Expected `array` of length 3 - at `\$\.K"):
        camera.grab(Shot(), WAIT)


@pytest.mark.parametrize("depth", ["empty", "archive", "words", "row"])
def test_broken_depth_images(tmp_path: Path, depth: str) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((4, 5, 3), dtype=np.uint8))
    with (tmp_path / "a.depth.npy").open("wb") as file:
        if depth == "archive":
            np.savez(file, depth=np.zeros((4, 5)))
        elif depth != "empty":
            np.save(file, np.array([["near"]] if depth == "words" else [1.0, 2.0]))
    with pytest.raises(CameraError, match=r"a\.png: a\.depth\.npy: "):
        open_camera(f"files:{tmp_path}").grab(Shot(), WAIT)


def test_an_empty_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(CameraError, match=r"a\.png: not a picture"):
        open_camera(f"files:{tmp_path}").grab(Shot(), WAIT)


# ── addresses ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("g60", "not the address of a camera"),
        ("opencvv:0", "did you mean 'opencv'"),
        ("opencv:", "which camera"),
        ("opencv:-1", "not the number of a device.* allowed: opencv:NUMBER with 0, 1"),
        ("files:", "which folder.* allowed: files:DIR"),
        ("files:?loop", "which folder"),
        ("understudy://127.0.0.1:5571", "NAME being the robot"),
        ("understudy://127.0.0.1/g60", "not the address of a server"),
        ("files:no/such/folder", "not a folder"),
        ("files:.?again", "loop"),
    ],
)
def test_wrong_addresses_are_config_errors(address: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        open_camera(address)


def test_an_empty_folder_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no pictures"):
        open_camera(f"files:{tmp_path}")


def test_a_package_adds_a_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point, as an installed package has it."""
    (tmp_path / "own_camera.py").write_text("def open_camera(address):\n    return address\n")
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[understudy.cameras]\ngige = own_camera\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.installed.cache_clear()
    try:
        assert open_camera("gige:192.168.0.7") == "gige:192.168.0.7"  # type: ignore[comparison-overlap]
    finally:
        registry.installed.cache_clear()


# ── pictures that claim to be large ───────────────────────────────────────────────────────────────


def chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def png(width: int, height: int) -> bytes:
    """A black picture of one bit a pixel: some hundred kilobytes are many gigabytes."""
    size = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    press = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    body = b"".join(press.compress(row) for _ in range(height)) + press.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def array_of(*shape: int) -> bytes:
    out = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + bytes(100)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.png": png(30_000, 30_000)}, "30000 × 30000 pixels; at most"),
        ({"a.png": png(8, 8), "a.depth.npy": array_of(10**6, 10**6)}, "1000000 × 1000000 pixels"),
        ({"a.png": png(8, 8), "a.depth.npy": array_of(10**12)}, "not an image"),
        ({"a.png": png(8, 8), "a.json": b"[" * 10**6}, "a.png: "),
        ({"a.tif": b"II*\0\xff\xff\xff\xff"}, "not a picture that can be read"),
        ({"a.jpg": b"\xff\xd8" + b"\xff" * 10_000}, "not a picture that can be read"),
    ],
    ids=["PNG bomb", "depth bomb", "long depth", "nested facts", "directory outside", "no end"],
)
def test_a_bomb_is_an_error_of_the_camera(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(CameraError, match=message):
        open_camera(f"files:{tmp_path}").grab(Shot(), 5.0)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif"])
def test_the_size_of_a_picture_is_known_before_it_is_decoded(suffix: str) -> None:
    for picture in (np.zeros((37, 53, 3), np.uint8), np.zeros((37, 53), np.uint8)):
        assert picture_size(cv2.imencode(suffix, picture)[1].tobytes()) == (53, 37)


def test_bytes_that_fill_up_a_jpeg_file_are_skipped() -> None:
    data = cv2.imencode(".jpg", np.zeros((37, 53, 3), dtype=np.uint8))[1].tobytes()
    assert picture_size(data[:2] + b"\xff\xff" + data[2:]) == (53, 37)
