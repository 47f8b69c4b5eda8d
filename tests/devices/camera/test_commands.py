"""The query `camera_picture`, and the settings of a camera as commands."""

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.benches import Bench
from tests.devices.camera.camera_cell import CELL, SMALL

from understudy.operator import pictures
from understudy.operator.pictures import png_of

ABOVE = "mount: eye_to_hand, pose_mm_deg: [450, 150, 850, 180, 0, 0]"


@pytest.fixture
def bench(tmp_path: Path, bench_of: Callable[[str], Bench]) -> Bench:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL.format(mount=ABOVE, size=SMALL, more="", rules="", seed=1))
    return bench_of(str(file))


def picture_of(answer: dict[str, object]) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(str(answer["data"])), dtype=np.uint8)
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))[..., ::-1]


def test_the_picture_is_what_the_camera_sees(bench: Bench) -> None:
    answer = bench.do("camera_picture", width=160)
    assert (answer["robot"], answer["width"], answer["height"]) == ("g60", 160, 120)
    assert answer["format"] == "jpeg"
    usual = picture_of(answer).astype(float)
    assert usual.shape == (120, 160, 3)
    assert abs(usual[60, 75] - (200, 176, 140)).max() < 25, "the table"
    depth = bench.do("camera_picture", width=160, depth=True)
    assert 400 < depth["nearest_mm"] < depth["farthest_mm"] < 1200
    assert bench.live.on_component("g60.camera", lambda part, now: part.status(now)).frames == 0
    bench.do("set_camera_light", brightness=0.5, ambient=0.6)
    darker = picture_of(bench.do("camera_picture", width=160)).astype(float)
    assert abs(darker.mean() - usual.mean() / 2.0) < 3.0
    assert "brightness" in bench.refusal("set_camera_light", brightness=-1, ambient=0.6)


def test_faults_are_seen(bench: Bench) -> None:
    usual = picture_of(bench.do("camera_picture", width=160)).astype(float)
    bench.do("inject", on="g60.camera", fault="camera_frozen")
    frozen = picture_of(bench.do("camera_picture", width=160))
    assert np.abs(frozen - usual).mean() < 12
    bench.do("inject", on="g60.camera", fault="camera_silent")
    assert "does not answer" in bench.refusal("camera_picture")
    assert [row["faults"] for row in bench.do("devices") if row["name"] == "g60.camera"] == [
        ["the picture is frozen", "the camera does not answer"]
    ]


def test_wrong_requests_are_refused(bench: Bench) -> None:
    assert "kuka" in bench.refusal("camera_picture", robot="kuka")
    assert "width" in bench.refusal("camera_picture", width=100_000)


def test_without_opencv_the_picture_is_a_png(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "coded", lambda picture: ("png", png_of(picture)))
    answer = bench.do("camera_picture", width=64)
    assert answer["format"] == "png"
    assert picture_of(answer).shape == (48, 64, 3)


def test_a_png_has_the_same_pixels() -> None:
    picture = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    data = png_of(picture)
    (size,) = struct.unpack(">I", data[33:37])
    assert len(zlib.decompress(data[41 : 41 + size])) == 5 * (1 + 3 * 7)
    found = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    assert (np.asarray(found)[..., ::-1] == picture).all()
