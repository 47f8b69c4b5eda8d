"""Detector `onnx`: a real network, written by the test, finds coloured squares."""

from typing import Any

import cv2
import msgspec
import numpy as np
import pytest
from tests.vision.onnx_model import block, network, node, number, tensor, value_info
from tests.vision.scenes import ABOVE

from understudy.errors import ConfigError
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.space.transform import Array
from understudy.vision.detectors import onnx
from understudy.vision.interface import DetectionError, View

COLORS = ((1.0, -0.7, -0.7), (-0.7, -0.7, 1.0))
LENS = Lens(256, 192, 250.0, 250.0, 127.5, 95.5)
SIDE = 128
"""Of the network's input: half of the picture's width."""
FILES = {
    "parts.onnx": network(SIDE, COLORS, box=16.0, yolov5=False),
    "old.onnx": network(SIDE, COLORS, box=16.0, yolov5=True),
    "large.onnx": network(SIDE, COLORS, box=1e12, yolov5=False),
    "classes.txt": b"red\nblue\n\n",
    "broken.onnx": b"not a network",
    "cut.onnx": network(SIDE, COLORS, box=16.0, yolov5=False)[:150],
}


def detector(**keys: object) -> onnx.OnnxDetector:
    given = {"model": "parts.onnx", "classes": "classes.txt", "input_px": [SIDE, SIDE]}
    config = msgspec.convert(given | {"plane_z_mm": 20} | keys, onnx.Config)
    return onnx.build(config, FILES.__getitem__)


def squares(*, depth: float = 0.0) -> View:
    """A red square of 16 pixels at (64, 48), a blue one at (160, 112)."""
    picture = np.full((192, 256, 3), 120, dtype=np.uint8)
    picture[48:64, 64:80] = (220, 20, 20)
    picture[112:128, 160:176] = (20, 20, 220)
    seen = np.full((192, 256), depth, dtype=np.float32) if depth else None
    return View(Frame(1, 0.0, picture, LENS, seen), LENS, ABOVE)


@pytest.mark.parametrize("model", ["parts.onnx", "old.onnx"])
def test_a_network_finds_squares_on_a_plane(model: str) -> None:
    found = {each.class_name: each for each in detector(model=model).detect(squares())}
    assert sorted(found) == ["blue", "red"]
    assert all(each.confidence > 0.9 for each in found.values())
    red = found["red"]
    assert red.bbox == (56, 40, 32, 32), "the box of the network, in pixels of the picture"
    ray = np.array([*LENS.rays(np.array([71.5, 55.5])), 1.0])
    np.testing.assert_allclose(red.place[:3, 3], ray * 0.38, atol=1e-9)
    np.testing.assert_allclose((ABOVE @ red.place)[:3, :3], np.eye(3), atol=1e-12)
    assert (ABOVE @ red.place)[2, 3] == pytest.approx(0.02)


def test_places_come_from_the_depth_image() -> None:
    view = squares(depth=0.3)
    found = detector(depth=True).detect(view)
    assert [each.place[2, 3] for each in found] == pytest.approx([0.3, 0.3])
    with pytest.raises(DetectionError, match="depth image"):
        detector(depth=True).detect(squares())


def test_boxes_end_at_the_border_of_the_picture() -> None:
    found = detector(model="large.onnx").detect(squares())
    assert found
    assert {each.bbox for each in found} == {(0, 0, 256, 192)}


def test_an_empty_picture_and_a_high_threshold_give_nothing() -> None:
    gray = np.full((192, 256, 3), 120, dtype=np.uint8)
    assert detector().detect(View(Frame(1, 0.0, gray, LENS), LENS, ABOVE)) == []
    assert detector(min_confidence=1.0).detect(squares()) == []


def test_a_list_of_classes_does_as_well_as_a_file() -> None:
    found = detector(classes=["ruby", "sapphire"]).detect(squares())
    assert sorted(each.class_name for each in found) == ["ruby", "sapphire"]


@pytest.mark.parametrize("model", ["broken.onnx", "cut.onnx"])
def test_a_wrong_file_is_a_clear_error(model: str) -> None:
    with pytest.raises(ConfigError, match=r"model: OpenCV cannot read this network.*ONNX file"):
        detector(model=model)


def graph(*nodes: bytes, values: dict[str, Array], more: bytes = b"") -> bytes:
    """A network from `images` to `output`."""
    constants = b"".join(block(5, tensor(*row)) for row in values.items())
    ends = block(11, value_info("images", (1, 3, SIDE, SIDE))) + block(
        12, value_info("output", (1, 6, 64))
    )
    body = b"".join(block(1, each) for each in nodes) + block(2, "g") + constants + more + ends
    return number(1, 8) + block(8, block(1, "") + number(2, 13)) + block(7, body)


HUGE = b"".join(number(1, side) for side in (1, 3, 10**6, 10**6))
BOMBS = {
    "a tensor without its data": graph(
        node("Add", ("images", "w"), "output"),
        values={},
        more=block(5, HUGE + number(2, 1) + block(8, "w")),
    ),
    "a constant of terabytes": graph(
        node("ConstantOfShape", ("p",), "c"),
        node("Add", ("images", "c"), "output"),
        values={"p": np.array([1, 3, 10**6, 10**6])},
    ),
    "a border of terabytes": graph(
        node("Pad", ("images", "p"), "output"),
        values={"p": np.array([0, 0, 0, 0, 0, 0, 10**6, 10**6])},
    ),
    "a side below zero": graph(
        node("Reshape", ("images", "p"), "output"), values={"p": np.array([-1, -1, -5])}
    ),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
def test_a_bomb_is_an_error_of_the_detector(bomb: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "bomb.onnx", bomb)
    with pytest.raises((ConfigError, DetectionError)):
        detector(model="bomb.onnx").detect(squares())


def test_of_a_million_boxes_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = ("images",) * 40
    wide = node("Concat", copies, "wide", axis=3)
    boxes = node("Reshape", ("wide", "p"), "output")
    bomb = graph(wide, boxes, values={"p": np.array([1, 6, -1])})
    monkeypatch.setitem(FILES, "bomb.onnx", bomb)
    compared: list[int] = []
    real = cv2.dnn.NMSBoxesBatched

    def counted(rows: Any, *given: Any) -> Any:
        compared.append(len(rows))
        return real(rows, *given)

    monkeypatch.setattr(cv2.dnn, "NMSBoxesBatched", counted)
    detector(model="bomb.onnx", min_confidence=0.01).detect(squares())
    assert compared == [onnx.MOST_BOXES]


def test_wrong_classes_and_inputs_are_clear_errors() -> None:
    with pytest.raises(DetectionError, match="does not fit 3 classes"):
        detector(classes=["a", "b", "c"]).detect(squares())
    with pytest.raises(DetectionError, match="does not fit 2 classes"):
        detector(layout="yolov5").detect(squares())
    with pytest.raises(DetectionError, match="does not run with an input of 120×64 pixels"):
        detector(input_px=[120, 64]).detect(squares())
    with pytest.raises(ConfigError, match="0 classes"):
        detector(classes=[])
    with pytest.raises(ConfigError, match="not a text file"):
        onnx.build(onnx.Config("parts.onnx", "x"), {"x": b"\xff\xfe", **FILES}.__getitem__)
    unplaced = View(squares().frame, LENS, None)
    with pytest.raises(DetectionError, match="place of the camera"):
        detector().detect(unplaced)
