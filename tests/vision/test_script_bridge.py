"""VisionBridge of scripts: units, refusals with `last_error`, and the life of its connection.

`tests/vision/test_vision_bridge.py` has its calls against the server of the vision process.
"""

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.free_ports import free_port
from tests.wire.zmq_server import Server

from understudy import VisionBridge
from understudy.ports.object_finder import DetectedObject
from understudy.vision import script_bridge as vision_bridge
from understudy.vision.script_bridge import LONGEST_ERROR

pytestmark = pytest.mark.usefixtures("patient_connection")
PATIENCE, PATIENCE_MS = 60.0, 60_000.0
LONG, LONG_MS = 600.0, 600_000.0
"""Time-outs of questions that are not answered: no test waits so long."""
PAGE = Path(__file__).parents[2] / "docs/vision/vision.md"
CUBE = {
    "id": 1,
    "class": "cube",
    "confidence": 0.9,
    "pose": {"x": 10.0, "y": 0.0, "z": 400.0, "rx": 0.0, "ry": 0.0, "rz": 90.0},
}
HAND_EYE: list[list[float]] = [[1, 0, 0, 60.0], [0, 1, 0, 0.0], [0, 0, 1, 40.0], [0, 0, 0, 1]]


class Process:
    """The replies of a vision process. `questions`: what it was asked; `silent`: commands that get
    no reply; `error`: of every picture, if not empty."""

    def __init__(self) -> None:
        self.questions: list[dict[str, Any]] = []
        self.silent: set[str] = set()
        self.error = ""

    def respond(self, request: bytes) -> bytes | None:
        question = json.loads(request)
        self.questions.append(question)
        if question["command"] in self.silent:
            return None
        if question["command"] == "capture" and self.error:
            return json.dumps({"success": False, "error": self.error}).encode()
        return json.dumps({"success": True, "objects": [CUBE], "matrix": HAND_EYE}).encode()


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def address(process: Process) -> Iterator[str]:
    where = f"tcp://127.0.0.1:{free_port()}"
    with Server(where, process.respond):
        yield where


@pytest.fixture
def vision(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[VisionBridge]:
    monkeypatch.setattr(vision_bridge, "ANSWER_SECONDS", LONG)
    with VisionBridge() as bridge:
        assert bridge.connect(address)
        yield bridge


# ── units ──


def test_units_are_those_of_the_docstrings(vision: VisionBridge) -> None:
    part = vision.detect_single_object("cube", PATIENCE_MS)
    assert part is not None
    assert part.pose == pytest.approx((0.01, 0.0, 0.4, 0.0, 0.0, math.pi / 2))
    assert vision.get_hand_eye_matrix() == tuple(value for row in HAND_EYE for value in row)
    for said, unit in (
        (VisionBridge.detect_single_object.__doc__, "metres and radians"),
        (VisionBridge.get_last_result.__doc__, "metres and radians"),
        (VisionBridge.get_hand_eye_matrix.__doc__, "millimetres"),
        (VisionBridge.capture_calibration_image.__doc__, "millimetres"),
        (DetectedObject.__doc__, "metres and radians"),
    ):
        assert unit in " ".join((said or "").split())


def test_the_page_combines_pose_and_matrix_in_one_unit(address: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for block in blocks:
        names: dict[str, Any] = {}
        exec(compile(block.replace("tcp://127.0.0.1:5570", address), str(PAGE), "exec"), names)
        assert names["part"].class_name == "cube"
    assert names["place"][:3, 3] == pytest.approx([0.07, 0.0, 0.44])


# ── numbers and texts that are refused ──


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"exposure_ms": math.nan}, "exposure_ms"),
        ({"gain_db": -math.inf}, "gain_db"),
        ({"exposure_ms": np.float32("nan")}, "exposure_ms"),
        ({"T_base_flange": np.diag([1, 1, math.inf, 1])}, "T_base_flange.2.2"),
        ({"detectors": [{"kind": "markers", "size_mm": math.nan}]}, "detectors.0.size_mm"),
    ],
)
def test_numbers_that_are_not_finite_are_refused(
    vision: VisionBridge, process: Process, params: dict[str, Any], key: str
) -> None:
    asked = len(process.questions)
    assert not vision.trigger_capture(PATIENCE_MS, **params)
    assert f"capture: {key}: not a finite number (got " in vision.last_error
    assert vision.get_last_result(PATIENCE_MS) is None
    assert not vision.capture_calibration_image(**params)
    assert f"calibrate_capture: {key}: not a finite number" in vision.last_error
    assert len(process.questions) == asked


def test_a_value_that_cannot_be_sent_is_refused_when_the_picture_is_triggered(
    vision: VisionBridge,
) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (object(), endless, "\udcff"):
        assert not vision.trigger_capture(PATIENCE_MS, exposure_ms=value)
        assert vision.last_error.startswith("capture: ")


@pytest.mark.parametrize(
    "wrong", ["foo", "tcp://127.0.0.1:0", "", None, 5570, b"tcp://h:1", "tcp://a\0b:5570"]
)
def test_a_wrong_address_is_no_connection(address: str, wrong: Any) -> None:
    with VisionBridge() as vision:
        assert not vision.connect(wrong)
        assert repr(wrong) in vision.last_error
        assert vision.last_error.endswith("allowed: tcp://HOST:PORT")
        assert not vision.is_connected()
        assert vision.connect(address)
        assert vision.last_error == ""


@pytest.mark.parametrize(
    "wrong", [math.inf, math.nan, 1e300, 10**400, -1.0, "5", None, 1j, np.complex64(1)]
)
def test_a_wrong_time_out_is_refused(vision: VisionBridge, wrong: Any) -> None:
    assert vision.trigger_capture(PATIENCE_MS)
    assert vision.get_last_result(wrong) is None
    assert "timeout_ms: not a time-out (got " in vision.last_error
    assert "allowed: a number from 0 to 1000000000" in vision.last_error
    assert vision.get_last_result(PATIENCE_MS) is not None, "the picture is still there"
    assert vision.detect_single_object(timeout_ms=wrong) is None
    assert "timeout_ms" in vision.last_error
    assert not vision.trigger_capture(wrong)
    assert "timeout_ms" in vision.last_error


@pytest.mark.parametrize("given", [60_000, np.float32(60_000.0), np.int64(60_000)])
def test_numbers_of_numpy_are_time_outs(vision: VisionBridge, given: Any) -> None:
    assert vision.detect_single_object("cube", given) is not None


# ── last_error ──


def test_a_triggered_picture_clears_the_last_error(vision: VisionBridge) -> None:
    assert vision.get_last_result() is None
    assert vision.last_error
    assert vision.trigger_capture(PATIENCE_MS)
    assert vision.last_error == ""


def test_the_list_of_allowed_values_is_not_cut(vision: VisionBridge, process: Process) -> None:
    process.error = "capture: unknown detector; allowed: " + ", ".join(
        f"detector_{number}" for number in range(100)
    )
    assert len(process.error) > 1000
    assert vision.detect_single_object("cube", PATIENCE_MS) is None
    assert vision.last_error == process.error
    process.error = "x" * 100_000
    assert vision.detect_single_object("cube", PATIENCE_MS) is None
    assert vision.last_error == "x" * LONGEST_ERROR + "…"


# ── connection ──


def threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("VisionBridge")]


def connections(port: int) -> int:
    """Sockets of this process that are connected to the port."""
    found = psutil.Process().net_connections("tcp")
    return sum(bool(each.raddr) and each.raddr.port == port for each in found)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_bridge_that_was_closed_connects_again(vision: VisionBridge, address: str) -> None:
    for _ in range(3):
        with vision:
            assert vision.connect(address)
            assert vision.detect_single_object("cube", PATIENCE_MS) is not None
        assert not vision.is_connected()
        assert vision.last_error == "not connected"
        assert threads() == []


def test_disconnect_does_not_wait_for_a_silent_process(
    vision: VisionBridge, process: Process, address: str
) -> None:
    process.silent = {"capture"}
    before = len(process.questions)
    for _ in range(3):
        assert vision.trigger_capture(LONG_MS)
    wait_until(lambda: len(process.questions) > before)
    began = time.monotonic()
    vision.disconnect()
    assert time.monotonic() - began < PATIENCE
    assert threads() == []
    assert len(process.questions) == before + 1, "questions that waited were not sent"
    wait_until(lambda: connections(int(address.rpartition(":")[2])) == 0)
    process.silent = set()
    assert vision.connect(address)
    assert vision.detect_single_object("cube", PATIENCE_MS) is not None


@pytest.mark.parametrize("command", ["ping", "calibrate_compute"])
def test_a_call_that_waits_ends_when_another_thread_disconnects(
    vision: VisionBridge, process: Process, command: str
) -> None:
    process.silent = {command}
    call = {"ping": vision.is_connected, "calibrate_compute": vision.compute_calibration}[command]
    before, answers = len(process.questions), []
    asking = threading.Thread(target=lambda: answers.append(call()))
    asking.start()
    wait_until(lambda: len(process.questions) > before)
    vision.disconnect()
    asking.join(PATIENCE)
    assert answers == [False]
    assert vision.last_error == "the connection was closed before the reply came"
