"""VisionBridge of scripts: the calls of the design document, against the server of the process."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.free_ports import free_port
from tests.vision.rendered import (
    HAND_EYE,
    LENS,
    TABLE,
    RenderedCamera,
    above,
    flange_of,
    marker_sheet,
)
from tests.wire.zmq_server import Server

from understudy import VisionBridge
from understudy.space.transform import translation
from understudy.units import MM
from understudy.vision.detectors import markers
from understudy.vision.server import Eye, Named, VisionServer
from understudy.wire import zmq_request
from understudy.wire.zmq_request import CONNECT_SECONDS

pytestmark = pytest.mark.usefixtures("patient_connection")
PATIENCE_MS = 60_000.0


def vision_server() -> VisionServer:
    faces = [TABLE.moved(translation(0.5, 0, 0))]
    faces += [
        marker_sheet("DICT_4X4_50", n, 0.05).moved(translation(0.45 + 0.1 * n, 0, 0))
        for n in (0, 1)
    ]
    camera = RenderedCamera(faces, [flange_of(above(0.5, 0.0, 0.4))] * 9)
    detector = markers.build(markers.Config(classes={1: "lid"}), lambda name: b"")
    return VisionServer(camera, [Named("markers", detector)], Eye("eye_in_hand", HAND_EYE, LENS))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    where = f"tcp://127.0.0.1:{free_port()}"
    server = vision_server()
    server.handle(b'{"command": "capture"}')  # loads compiled code, before anybody waits
    with Server(where, server.handle):
        yield where


def test_camera_connection(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with VisionBridge() as vision:
        assert not vision.is_connected()
        assert vision.detect_single_object() is None
        assert vision.last_error == "not connected"
        with monkeypatch.context() as patched:
            patched.setattr(zmq_request, "CONNECT_SECONDS", CONNECT_SECONDS)
            assert not vision.connect(f"tcp://127.0.0.1:{free_port()}")
        assert "nothing answers" in vision.last_error
        assert vision.connect(address)
        vision.disconnect()
        assert not vision.is_connected()


def test_pictures(address: str) -> None:
    with VisionBridge() as vision:
        assert vision.connect(address)
        assert vision.get_last_result() is None
        assert vision.trigger_capture(PATIENCE_MS, exposure_ms=5)
        result = vision.get_last_result(PATIENCE_MS)
        assert result is not None
        assert {each.class_name for each in result.objects} == {"marker_0", "lid"}
        lid = vision.detect_single_object("lid", PATIENCE_MS)
        assert lid is not None
        assert lid.pose.z == pytest.approx(0.4, abs=0.002)
        assert vision.detect_single_object("bolt", PATIENCE_MS) is None
        assert vision.last_error == "the picture shows no bolt"
        matrix = vision.get_hand_eye_matrix()
        assert matrix is not None
        assert matrix[3] == pytest.approx(HAND_EYE[0, 3] / MM)


def test_a_picture_may_take_as_long_as_the_call() -> None:
    """A shorter time would end the call early; a longer one would delay the next call."""
    given = []

    class Noting(VisionBridge):
        def trigger_capture(self, timeout_ms: float = 5000.0, **params: Any) -> bool:
            given.append(timeout_ms)
            return super().trigger_capture(timeout_ms, **params)

    with Noting() as vision:
        vision.detect_single_object("lid", PATIENCE_MS)
    assert given == [PATIENCE_MS]


def test_a_wrong_matrix_is_no_matrix() -> None:
    where = f"tcp://127.0.0.1:{free_port()}"
    with Server(where, lambda request: b'{"success": true}'), VisionBridge() as vision:
        assert vision.connect(where)
        assert vision.get_hand_eye_matrix() is None
        assert "matrix" in vision.last_error


def test_a_silent_process_is_said_with_the_time_of_the_call() -> None:
    where = f"tcp://127.0.0.1:{free_port()}"

    def only_pings(request: bytes) -> bytes | None:
        return b'{"success": true}' if b"ping" in request else None

    with Server(where, only_pings), VisionBridge() as vision:
        assert vision.connect(where)
        assert vision.trigger_capture(300.0)
        assert vision.get_last_result(PATIENCE_MS) is None
        assert vision.last_error == f"no answer from {where} in 0.3 s"


def test_values_that_cannot_be_sent_are_said(address: str) -> None:
    with VisionBridge() as vision:
        assert vision.connect(address)
        assert not vision.capture_calibration_image(picture_px=object())
        assert "object cannot be sent" in vision.last_error
        assert not vision.capture_calibration_image(T_base_flange=np.eye(3))
        assert "T_base_flange" in vision.last_error
        assert vision.trigger_capture(PATIENCE_MS, exposure_ms=np.float32(3))
        assert vision.get_last_result(PATIENCE_MS) is not None


def test_calibration_calls(address: str) -> None:
    with VisionBridge() as vision:
        assert vision.connect(address)
        assert vision.start_calibration(target={"type": "marker", "size_mm": 50})
        assert vision.capture_calibration_image()
        assert not vision.compute_calibration()
        assert vision.last_error
        assert not vision.start_calibration(target={"type": "cube"})
        assert "cube" in vision.last_error
