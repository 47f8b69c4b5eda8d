"""VisionServer: the protocol of the design document, wrong requests, and calibration."""

import base64
import json
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import cv2
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.vision.onnx_model import network
from tests.vision.rendered import (
    HAND_EYE,
    LENS,
    TABLE,
    RenderedCamera,
    above,
    asker,
    dome,
    flange_of,
    marker_sheet,
)

from understudy import registry
from understudy.errors import ConfigError
from understudy.sight.faces import marker_face
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.sight.markers import Charuco
from understudy.space.pose import pose_of
from understudy.space.transform import angle_between, matrix, rows_mm, translation
from understudy.units import DEG, MM
from understudy.vision.detector_config import DetectorChoice, build_detectors
from understudy.vision.interface import Seen, Shot, View
from understudy.vision.messages import LONGEST_REQUEST
from understudy.vision.server import COMMANDS, MOST_OBJECTS, Eye, Named, VisionServer

Ask = Callable[..., Any]
MARKER = marker_sheet("DICT_4X4_50", 7, 0.05).moved(translation(0.5, 0.1, 0.0))
FLANGE = flange_of(above(0.48, 0.12, 0.4))
OWN: dict[str, Any] = {"kind": "markers"}
NETWORK = {"kind": "onnx", "model": "parts.onnx", "classes": "names.txt", "input_px": [64, 64]}
FILES = {"parts.onnx": network(64, [(1.0, 1.0, 1.0)], box=9.0, yolov5=False), "names.txt": b"lamp"}


def marker_server(**camera: Any) -> tuple[VisionServer, RenderedCamera]:
    source = RenderedCamera([TABLE.moved(translation(0.5, 0, 0)), MARKER], [FLANGE] * 6, **camera)
    own = [Named(*row) for row in build_detectors([OWN], FILES.__getitem__)]
    build = partial(DetectorChoice([OWN, NETWORK]).build, read_file=FILES.__getitem__)
    eye = Eye("eye_in_hand", HAND_EYE, None if source.knows_lens else LENS)
    return VisionServer(source, own, eye, build=build, source="files:x"), source


def in_base(pose: dict[str, float], reply: Any) -> Any:
    """A pose of a reply, moved into the base by the flange of the same reply."""
    flange = np.array(reply["T_base_flange"])
    flange[:3, 3] *= MM
    place = matrix(pose_of([pose[key] for key in ("x", "y", "z", "rx", "ry", "rz")]))
    return flange @ HAND_EYE @ place


def test_object_detection_accuracy() -> None:
    """A capture answers with the keys of the design document, and what it says is true."""
    server, camera = marker_server()
    reply = asker(server)("capture", request_id=9, exposure_ms=10, gain_db=0)
    assert reply["success"] is True
    assert reply["request_id"] == 9
    assert (reply["frame_id"], reply["timestamp_us"]) == (1, 0)
    (found,) = reply["objects"]
    assert found.keys() == {"id", "class", "confidence", "pose", "bbox"}
    assert (found["id"], found["class"], found["confidence"]) == (7, "marker_7", 1.0)
    assert found["pose"].keys() == {"x", "y", "z", "rx", "ry", "rz"}
    assert len(found["bbox"]) == 4
    assert np.linalg.norm(in_base(found["pose"], reply)[:3, 3] - (0.5, 0.1, 0)) < 0.5 * MM
    assert camera.shots[0].exposure_ms == 10
    assert camera.shots[0].gain_db == 0
    assert asker(server)("capture")["timestamp_us"] == 500_000
    server.handle(b'{"command": "capture", "trigger": "g60.vision:1:0"}')
    assert [shot.trigger for shot in camera.shots] == ["", "", "g60.vision:1:0"]


def test_a_frame_without_flange_takes_that_of_the_request() -> None:
    server, _ = marker_server(knows_flange=False, knows_lens=False)
    ask = asker(server)
    assert ask("capture")["T_base_flange"] is None
    reply = ask("capture", T_base_flange=rows_mm(FLANGE))
    assert np.allclose(reply["T_base_flange"], rows_mm(FLANGE))
    assert np.allclose(reply["T_base_camera"], rows_mm(FLANGE @ HAND_EYE))


def test_the_flange_at_the_exposure_goes_first() -> None:
    server, _ = marker_server()
    reply = asker(server)("capture", T_base_flange=rows_mm(translation(9, 9, 9)))
    assert np.allclose(reply["T_base_flange"], rows_mm(FLANGE))


def test_a_request_may_bring_detectors_for_its_picture() -> None:
    """They are built once, act on this picture only, and read configured files only."""
    server, _ = marker_server()
    ask, other = asker(server), OWN | {"classes": {"7": "cube"}, "size_mm": 25}
    own = ask("capture")["objects"]
    (found,) = ask("capture", detectors=[other])["objects"]
    assert found["class"] == "cube"
    assert found["pose"]["z"] == pytest.approx(own[0]["pose"]["z"] / 2, rel=0.01)
    built = server._built
    assert ask("capture", detectors=[other])["objects"][0]["class"] == "cube"
    assert server._built is built, "unchanged settings cost nothing"
    assert ask("capture")["objects"][0]["class"] == "marker_7"
    assert "out of range" in ask("capture", detectors=[OWN | {"size_mm": 0}])["error"]
    seen = ask("capture", detectors=[{**NETWORK, "classes": ["lamp"], "min_confidence": 0.0}])
    assert {each["class"] for each in seen["objects"]} == {"lamp"}
    fixed = VisionServer(RenderedCamera([], []), [])
    assert "cannot be changed" in asker(fixed)("capture", detectors=[OWN])["error"]


def test_a_detector_that_does_not_declare_its_files_opens_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Config(msgspec.Struct):
        table: str

    module: Any = ModuleType("careless")
    module.Config, module.build = Config, lambda config, read_file: read_file(config.table)
    monkeypatch.setitem(sys.modules, "careless", module)
    monkeypatch.setitem(registry._registered["detectors"], "careless", "careless")
    with pytest.raises(ConfigError, match=r"detectors\.0: not a file of the configured detectors"):
        DetectorChoice([OWN]).build([{"kind": "careless", "table": "key"}], FILES.__getitem__)


def test_ping_and_status() -> None:
    server, _ = marker_server()
    ask = asker(server)
    assert ask("ping", request_id="a") == {"success": True, "reply": "pong", "request_id": "a"}
    ask("capture")
    assert ask("get_status")["last_error"] == ""
    ask("nothing")
    status = ask("get_status")
    assert status["camera"] == "files:x"
    assert status["detectors"] == ["markers"]
    assert (status["frames"], status["errors"], status["calibrating"]) == (1, 1, False)
    assert "nothing" in status["last_error"]
    assert np.allclose(ask("get_hand_eye")["matrix"], rows_mm(HAND_EYE))


def shown(reply: Any) -> Any:
    """The picture of a reply: blue, green, red."""
    assert reply["success"], reply
    data = np.frombuffer(base64.b64decode(reply["jpeg"]), dtype=np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_COLOR)


def test_the_last_picture_is_shown_with_its_objects() -> None:
    server, _ = marker_server()
    ask = asker(server)
    assert "no picture yet" in ask("get_picture")["error"]
    reply = ask("capture")
    drawn, plain = ask("get_picture"), ask("get_picture", show="plain", width=320)
    assert (drawn["frame_id"], drawn["objects_seen"]) == (1, 1)
    assert shown(drawn).shape == (480, 640, 3)
    assert shown(plain).shape == (240, 320, 3)
    x, y, w, _ = reply["objects"][0]["bbox"]
    blue, green, red = shown(drawn)[y, x + w // 2].astype(int)
    assert min(red, green) > blue + 30, "a yellow line"
    assert "depth" in ask("get_picture", show="depth")["error"]
    assert "miss" in ask("get_picture", which="miss")["error"]


def test_the_last_miss_and_the_depth_are_shown() -> None:
    depth = np.zeros((480, 640), dtype=np.float32)
    depth[100:200, 100:200], depth[300:, :] = 0.3, 0.5

    class Empty:
        def grab(self, shot: Shot, seconds: float) -> Frame:
            return Frame(5, 0.0, np.zeros((480, 640, 3), np.uint8), LENS, depth)

        def close(self) -> None: ...

    ask = asker(VisionServer(Empty(), []))
    ask("capture")
    assert ask("get_picture", which="miss")["frame_id"] == 5
    picture = shown(ask("get_picture", show="depth")).astype(int)
    assert picture[20, 20].max() < 40, "nothing seen"
    assert picture[150, 150, 2] > picture[150, 150, 0] + 60, "near is red"
    assert picture[400, 300, 0] > picture[400, 300, 2] + 60, "far is blue"


# ── wrong requests ──────────────────────────────────────────────────────────────────────────────

CUBE = {"name": "cube", "color": "#c82820", "size_mm": [40, 40, 40]}
SHAPES: dict[str, Any] = {"kind": "shapes", "classes": [CUBE]}


def with_detectors(*tables: dict[str, Any]) -> bytes:
    return json.dumps({"command": "capture", "params": {"detectors": tables}}).encode()


WRONG: list[tuple[bytes, str]] = [
    (b"", "not a request"),
    (b"\x00\xff\xfe", "not a request"),
    (b"capture", "not a request"),
    (b"[]", "not a request"),
    (b"{}", "command"),
    (b'{"command": 7}', "Expected `str`"),
    (b'{"comand": "capture"}', "allowed"),
    (b'{"command": "captur"}', "Unknown command: captur"),
    (b'{"command": "capture", "params": []}', "Expected `object`"),
    (b'{"command": "capture", "params": {"exposre_ms": 1}}', "exposure_ms"),
    (b'{"command": "capture", "params": {"exposure_ms": "10"}}', "Expected `float | null`"),
    (b'{"command": "capture", "params": {"exposure_ms": true}}', "exposure_ms"),
    (b'{"command": "capture", "params": {"exposure_ms": -1}}', "exposure_ms"),
    (b'{"command": "capture", "params": {"exposure_ms": NaN}}', "not a request"),
    (b'{"command": "capture", "params": {"exposure_ms": 1e999}}', "exposure_ms|out of range"),
    (b'{"command": "capture", "params": {"T_base_flange": [[1]]}}', "T_base_flange"),
    (b'{"command": "capture", "params": {"detectors": {}}}', "$.detectors"),
    (b'{"command": "capture", "params": {"detectors": [7]}}', "$.detectors[0]"),
    (b'{"command": "capture", "params": {"detectors": []}}', "nothing without detectors"),
    (b'{"command": "capture", "params": {"detectors": [{}]}}', "detectors.0.kind: which kind"),
    (with_detectors(*[OWN] * 33), "detectors: too many entries (got 33); allowed: at most 32"),
    (with_detectors({"kind": "eyes"}), "detectors.0.kind: unknown kind of detector"),
    (with_detectors(OWN, OWN | {"size": 1}), "detectors.1.size: unknown key"),
    (with_detectors(OWN, OWN | {"size_mm": -1}), "detectors.1.size_mm: out of range"),
    (with_detectors(OWN | {"upright": 1}), "detectors.0.upright: this does not fit"),
    (with_detectors(OWN | {"dictionary": "DICT_5X5"}), "did you mean 'DICT_5X5_50'"),
    (with_detectors(OWN | {"classes": {"one": "cube"}}), "detectors.0.classes.one"),
    (with_detectors(SHAPES | {"classes": [CUBE, CUBE]}), "two classes have the same name"),
    (with_detectors(SHAPES | {"classes": [CUBE | {"shape": "cylinder"}]}), "classes.0.size_mm"),
    (with_detectors(NETWORK | {"model": "/etc/passwd"}), "allowed: parts.onnx, names.txt"),
    (with_detectors(NETWORK | {"classes": "../key"}), "detectors.0.classes: not a file"),
    (with_detectors(NETWORK, NETWORK), "detectors.1.model: not a file of the configured"),
    (b'{"command": "capture", "request_id": {}}', "request_id"),
    (b'{"command": "calibrate_start", "params": {"target": {"type": "circle"}}}', "charuco"),
    (b'{"command": "calibrate_start", "params": {"target": {"dictionary": "X"}}}', "DICT_"),
    (b'{"command": "calibrate_start", "params": {"target": {"columns": 99}}}', "markers"),
    (b'{"command": "calibrate_start", "params": {"mount": "ear"}}', "mount"),
    (b'{"command": "calibrate_capture"}', "calibrate_start"),
    (b'{"command": "calibrate_compute"}', "calibrate_start"),
    (b'{"command": "calibrate_delete_last"}', "calibrate_start"),
    (b'{"command": "calibrate_validate"}', "calibrate_start"),
    (b"[" * 60_000, "not a request"),
    (b'{"command": "' + b"x" * 60_000 + b'"}', "Unknown command"),
    (b'{"command": "ping", "params": {"a": 1}}', "allowed: none"),
    (b" " * (LONGEST_REQUEST + 1), "at most"),
]


@pytest.mark.parametrize(("message", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_requests_get_an_error_reply(message: bytes, text: str) -> None:
    server, camera = marker_server()
    data = server.handle(message)
    reply = json.loads(data)
    assert reply["success"] is False
    assert any(each in reply["error"] for each in text.split("|")), reply["error"]
    assert "internal" not in reply["error"]
    assert len(data) < 4096
    assert not camera.shots
    assert json.loads(server.handle(b'{"command": "ping"}'))["success"] is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
PARAMS = st.sampled_from(
    ["exposure_ms", "gain_db", "T_base_flange", "target", "mount", "method", "apply", "detectors"]
)
KEYS = st.sampled_from(["size_mm", "classes", "dictionary", "model", "min_confidence", "color"])
KINDS = st.fixed_dictionaries({"kind": st.sampled_from(["markers", "shapes", "onnx"]) | JSON})
TABLES = st.lists(
    st.builds(lambda kind, keys: keys | kind, KINDS, st.dictionaries(KEYS, JSON)), max_size=3
)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=200)
    | st.builds(lambda value: json.dumps(value).encode(), JSON)
    | st.builds(
        lambda *rest: json.dumps(dict(zip(("command", "params", "request_id"), rest, strict=True)))
        .encode(),
        st.sampled_from([*COMMANDS, "other"]),
        JSON | st.dictionaries(PARAMS, JSON | TABLES, max_size=3),
        JSON,
    )
)  # fmt: skip
def test_no_bytes_make_the_server_raise(message: bytes) -> None:
    build = partial(DetectorChoice([OWN]).build, read_file=FILES.__getitem__)
    server = VisionServer(RenderedCamera([], []), [], build=build)
    reply = json.loads(server.handle(message))
    assert isinstance(reply["success"], bool)
    assert "internal" not in reply.get("error", "")


def test_an_unknown_command_is_answered_as_the_design_document_has_it() -> None:
    server, _ = marker_server()
    reply = json.loads(server.handle(b'{"command": "captur"}'))
    assert reply["error"] == "Unknown command: captur"
    assert "did you mean 'capture'" in reply["detail"]


def test_errors_of_camera_and_detectors_are_replies() -> None:
    class Broken:
        def detect(self, view: View) -> list[Seen]:
            raise ZeroDivisionError("a bug")

    source = RenderedCamera([TABLE], [FLANGE])
    ask = asker(VisionServer(source, [Named("broken", Broken())]))
    assert "internal error: ZeroDivisionError: a bug" in ask("capture")["error"]
    failed = ask("capture")
    assert (failed["error"], failed["detail"]) == ("Failed to capture image", "no more pictures")
    assert ask("ping")["success"] is True


def test_intrinsics_of_another_picture_are_refused() -> None:
    source = RenderedCamera([TABLE], [FLANGE] * 2, knows_lens=False)
    ask = asker(VisionServer(source, []))
    assert "intrinsics of the camera are not known" in ask("capture")["error"]
    other = Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0)
    ask = asker(VisionServer(source, [], Eye(lens=other)))
    assert "640×480" in ask("capture")["error"]


def test_a_reply_has_a_bounded_number_of_objects() -> None:
    class Many:
        def detect(self, view: View) -> list[Seen]:
            broken = Seen("nan", 1.0, np.full((4, 4), np.nan), (0, 0, 1, 1))
            return [broken, *[Seen("dot", 1.0, np.eye(4), (0, 0, 1, 1))] * 1000]

    reply = asker(VisionServer(RenderedCamera([TABLE], [FLANGE]), [Named("many", Many())]))(
        "capture"
    )
    assert [each["id"] for each in reply["objects"]] == [*range(1, MOST_OBJECTS + 1)]
    assert reply["objects_left_out"] == 1000 - MOST_OBJECTS


# ── calibration ─────────────────────────────────────────────────────────────────────────────────

BOARD = Charuco(7, 5, 0.03)
BOARD_AT = (0.5, 0.1, 0.0)
TARGET = {"type": "charuco", "columns": 7, "rows": 5, "square_mm": 30}


def board_server(cameras: list[Any]) -> VisionServer:
    sheet = marker_face(BOARD.pattern(), BOARD.width, BOARD.height).moved(translation(*BOARD_AT))
    return VisionServer(RenderedCamera([sheet], [flange_of(each) for each in cameras]), [])


def test_hand_eye_calibration_validation() -> None:
    """Start, captures, compute and a check with a new pose, as the page of the document does."""
    ask = asker(board_server([*dome(14, 3, BOARD_AT), *dome(1, 8, BOARD_AT)]))
    assert ask("get_hand_eye")["success"] is False
    assert ask("calibrate_start", target=TARGET, mount="eye_in_hand")["poses"] == 0
    for number in range(1, 15):
        reply = ask("calibrate_capture")
        assert reply["success"], reply
        assert (reply["poses"], reply["frame_id"]) == (number, number)
        assert reply["corners"] == len(reply["corner_pixels"]) > 6
        assert len(reply["T_base_flange"]) == len(reply["T_camera_target"]) == 4
        if number == 5:
            assert "5 poses; at least 10" in ask("calibrate_compute")["error"]
    assert ask("calibrate_delete_last")["poses"] == 13
    assert [each["number"] for each in ask("calibrate_status")["captures"]] == [*range(1, 14)]
    assert "known are best, tsai_lenz" in ask("calibrate_compute", method="guess")["error"]
    computed = ask("calibrate_compute", method="park")
    found = np.array(computed["matrix"])
    found[:3, 3] *= MM
    assert angle_between(found, HAND_EYE) < 0.05 * DEG
    assert np.linalg.norm(found[:3, 3] - HAND_EYE[:3, 3]) < 0.1 * MM
    assert 0.0 < computed["reprojection_error_px"] < 0.3
    assert 0.0 < computed["reprojection_error_mm"] < 0.5
    assert 0.0 < computed["held_out_error_mm"] < 0.5
    assert computed["refined"] is True
    assert len(computed["residuals_mm"]) == len(computed["residuals_px"]) == 13
    assert ask("get_hand_eye")["matrix"] == computed["matrix"]
    check = ask("calibrate_validate", tolerance_mm=1.0)
    assert check["valid"] is True
    assert 0.0 < check["error_mm"] < 1.0


def test_poses_that_do_not_determine_the_camera_are_refused_with_the_reason() -> None:
    ask = asker(board_server([above(*BOARD_AT[:2], 0.3 + 0.01 * n) for n in range(11)]))
    ask("calibrate_start", target=TARGET)
    for _ in range(10):
        assert ask("calibrate_capture")["success"]
    assert "turn the flange" in ask("calibrate_compute")["error"]
    assert "compute the calibration" in ask("calibrate_validate")["error"]


def test_a_calibration_of_poses_that_contradict_each_other_is_not_applied() -> None:
    """The camera is on the flange; the session is told that it stands in the cell."""
    ask = asker(board_server([*dome(12, 3, BOARD_AT)]))
    ask("calibrate_start", target=TARGET, mount="eye_to_hand")
    for _ in range(12):
        assert ask("calibrate_capture")["success"]
    assert "the mount (eye_to_hand)" in ask("calibrate_compute")["error"]
    assert "not calibrated" in ask("get_hand_eye")["error"]
    assert ask("calibrate_compute", apply=False)["reprojection_error_mm"] > 5.0


def test_a_target_that_is_not_seen_is_no_pose() -> None:
    server, _ = marker_server()
    ask = asker(server)
    ask("calibrate_start", target={"type": "marker", "id": 3, "size_mm": 50})
    assert "marker 3 is not seen; seen: 7" in ask("calibrate_capture")["error"]
    even = ask("calibrate_start", target={"type": "chessboard"})
    assert "7 × 5 squares looks the same after half a turn" in even["error"]
    assert ask("calibrate_start", target={"type": "chessboard", "columns": 8})["success"]
    assert "0 of 28 corners" in ask("calibrate_capture")["error"]
    ask("calibrate_start", target={"type": "marker", "id": 7, "size_mm": 50})
    assert ask("calibrate_capture")["corners"] == 4
