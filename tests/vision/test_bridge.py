"""ProcessVision: what it asks, what it makes of answers, losses and garbage, and its snapshots."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from understudy.errors import ConfigError, Refused
from understudy.ports import state as snapshots
from understudy.ports.object_finder import DetectedObject, FoundObjects
from understudy.ports.requests import AsksProcess
from understudy.sight.lens import CameraModel
from understudy.simulation.scenario import Config, Rule, Scenario, build
from understudy.space.pose import Pose
from understudy.units import NS_PER_MS
from understudy.vision.bridge import ProcessVision
from understudy.vision.detector_config import DetectorChoice

MARKERS = {"kind": "markers", "classes": {0: "cube"}}
LATENCY, TIMEOUT = 50 * NS_PER_MS, 1000 * NS_PER_MS
FLANGE = Pose(0.5, 0.0, 0.55, math.pi, 0.0, 0.0)
BOLT = {
    "id": 3,
    "class": "bolt_m8",
    "confidence": 0.95,
    "pose": {"x": 150.5, "y": -30.2, "z": 405.0, "rx": 0.0, "ry": 0.0, "rz": 45.0},
    "bbox": [100, 200, 50, 50],
}


class Stand:
    """A bridge, what it reported, and its rules."""

    def __init__(self, **rules: Rule) -> None:
        self.scenario: Scenario = build(Config(rules), seed=5)
        self.vision = ProcessVision(
            "g60.vision",
            "tcp://127.0.0.1:5570",
            lambda now: FLANGE,
            camera=CameraModel(),
            latency=LATENCY,
            timeout=TIMEOUT,
            fault_source=self.scenario,
            shot={"exposure_ms": 8.0},
            detectors=DetectorChoice([MARKERS]),
        )
        self.scenario.act_on({"g60.vision": self.vision})
        self.results: list[tuple[int, FoundObjects | Refused, int]] = []
        self.replies: list[tuple[int, dict[str, Any] | Refused, int]] = []
        self.vision.on_result(lambda *row: self.results.append(row))
        self.vision.on_reply(lambda *row: self.replies.append(row))

    def asked(self) -> dict[str, Any]:
        question = self.vision.question()
        assert question is not None
        asked: dict[str, Any] = json.loads(question.payload)
        assert asked["request_id"] == question.number
        return asked

    def answer(self, payload: bytes, now: int) -> None:
        question = self.vision.question()
        assert question is not None
        self.vision.answered(question.number, payload, now)

    def run(self) -> FoundObjects | Refused:
        """To the next report of a result."""
        at = self.vision.next_wake()
        assert at is not None
        self.vision.wake(at - 1)
        assert not self.results, "not before its time"
        self.vision.wake(at)
        return self.results.pop()[1]


def reply(**keys: Any) -> bytes:
    return json.dumps(
        {"success": True, "timestamp_us": 1, "frame_id": 42, "objects": [BOLT]} | keys
    ).encode()


def test_a_reply_that_is_on_its_way_is_not_lost_by_a_request_for_a_picture() -> None:
    stand = Stand()
    ticket = stand.vision.start_calibration({}, now=0)
    stand.answer(b'{"success": true, "poses": 0}', now=0)
    assert stand.vision.request("", now=1) == Refused("vision is busy with calibrate_start")
    stand.vision.wake(LATENCY)
    assert [number for number, _, _ in stand.replies] == [ticket]


def test_a_refused_calibration_command_is_no_result_of_a_picture() -> None:
    stand = Stand()
    stand.vision.capture_calibration_image(now=0)
    stand.answer(b'{"success": false, "error": "no board"}', now=0)
    stand.vision.wake(LATENCY)
    assert [answer for _, answer, _ in stand.replies] == [Refused("no board")]
    assert not stand.results


def test_a_picture_is_asked_for_with_the_flange_and_comes_after_the_latency() -> None:
    stand = Stand()
    ticket = stand.vision.request("", 7)
    asked = stand.asked()
    assert asked["command"] == "capture"
    assert asked["params"]["exposure_ms"] == 8.0
    assert [row[3] for row in asked["params"]["T_base_flange"]] == [500.0, 0.0, 550.0, 1.0]
    stand.answer(reply(request_id=ticket, t_exposure=7e-9), 7)
    assert stand.vision.question() is None
    assert stand.vision.next_wake() == 7 + LATENCY
    result = stand.run()
    assert isinstance(result, FoundObjects)
    assert (result.exposed_at, result.frame_id) == (7, 42)
    (seen,) = result.objects
    assert (seen.id, seen.class_name, seen.confidence) == (3, "bolt_m8", 0.95)
    assert seen.pose == pytest.approx((0.1505, -0.0302, 0.405, 0, 0, math.pi / 4))
    assert seen.bbox == (100, 200, 50, 50)
    assert stand.vision.get_last_result() == result
    assert stand.vision.is_connected()
    assert isinstance(stand.vision, AsksProcess)


def test_an_answer_that_took_time_acts_when_it_comes() -> None:
    stand = Stand()
    stand.vision.request("", 0)
    stand.answer(reply(t_exposure=0.002), 3 * NS_PER_MS)
    assert stand.vision.next_wake() == 3 * NS_PER_MS
    result = stand.run()
    assert isinstance(result, FoundObjects)
    assert result.exposed_at == 2 * NS_PER_MS, "the exposure, not the question"


def test_the_clock_of_another_machine_is_not_that_of_the_cell() -> None:
    for elsewhere in (1.7e9, -1.0, 3.0, None):
        stand = Stand()
        stand.vision.request("", 5 * NS_PER_MS)
        stand.answer(reply(t_exposure=elsewhere), 9 * NS_PER_MS)
        result = stand.run()
        assert isinstance(result, FoundObjects)
        assert result.exposed_at == 5 * NS_PER_MS


def test_a_question_without_an_answer_is_lost_at_the_time_out() -> None:
    stand = Stand()
    stand.vision.request("", 7)
    stand.vision.unanswered(1, "nothing answers", 7)
    assert stand.vision.next_wake() == 7 + TIMEOUT
    assert stand.run() == Refused("nothing answers")
    assert not stand.vision.is_connected()
    stand.vision.request("", 10 * TIMEOUT)
    assert stand.run() == Refused("no answer in 1000 ms"), "the process is silent"
    assert stand.vision.status(0).lost == 2


def test_late_answers_and_cancelled_ones_count_for_nothing() -> None:
    stand = Stand()
    stand.vision.request("", 0)
    stand.vision.request("", 1)
    stand.vision.answered(1, reply(), 1)
    assert stand.vision.question() is not None
    stand.vision.cancel(2)
    assert stand.vision.question() is None
    stand.vision.answered(2, reply(), 2)
    stand.vision.unanswered(2, "lost", 2)
    assert stand.vision.next_wake() is None
    assert not stand.vision.busy()


def test_the_class_filter_is_applied_here_too() -> None:
    stand = Stand()
    stand.vision.request("nut", 0)
    stand.answer(reply(objects=[BOLT, BOLT | {"class": "nut"}]), 0)
    result = stand.run()
    assert isinstance(result, FoundObjects)
    assert [each.class_name for each in result.objects] == ["nut"]


WRONG: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"\xff\xfe", "wrong reply"),
    "empty": (b"", "wrong reply"),
    "a number": (b"5", "wrong reply"),
    "no success": (b"{}", "success"),
    "failed": (reply(success=False, error="no camera"), "no camera"),
    "failed without a reason": (b'{"success": false}', "failed"),
    "another request": (reply(request_id=77), "request_id 77, not 1"),
    "huge request id": (reply(request_id="x" * 10_000), "request_id"),
    "NaN": (reply().replace(b"150.5", b"NaN"), "wrong reply"),
    "infinite": (reply().replace(b"150.5", b"1e999"), "wrong reply"),
    "far": (reply().replace(b"150.5", b"1e9"), "wrong reply"),
    "text for a number": (reply().replace(b"150.5", b'"150.5"'), "wrong reply"),
    "confidence": (reply().replace(b"0.95", b"1.5"), "wrong reply"),
    "bbox": (reply(objects=[BOLT | {"bbox": [1, 2, 3]}]), "wrong reply"),
    "object": (reply(objects=[None]), "wrong reply"),
    "objects": (reply(objects={}), "wrong reply"),
    "thousands of objects": (reply(objects=[BOLT] * 1001), "wrong reply"),
    "nested": (b'{"success":' + b"[" * 100_000, "wrong reply"),
    "bytes without end": (b" " * 5_000_000, "5000000 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_reply_is_a_refusal_with_a_reason(name: str) -> None:
    payload, reason = WRONG[name]
    stand = Stand()
    stand.vision.request("", 0)
    stand.answer(payload, 0)
    assert stand.vision.next_wake() == LATENCY
    result = stand.run()
    assert isinstance(result, Refused)
    assert reason in result.reason
    assert len(result.reason) < 300
    assert stand.vision.is_connected(), "it has answered"


def test_commands_of_a_calibration_get_their_facts() -> None:
    stand = Stand()
    ticket = stand.vision.start_calibration({"mount": "eye_in_hand"}, 0)
    assert stand.asked()["command"] == "calibrate_start"
    assert stand.vision.request("", 0) == Refused("vision is busy with calibrate_start")
    assert isinstance(stand.vision.compute_calibration({}, 0), Refused)
    stand.answer(b'{"success": true, "poses": 0}', 0)
    stand.vision.wake(LATENCY)
    assert stand.replies == [(ticket, {"success": True, "poses": 0}, LATENCY)]
    stand.vision.capture_calibration_image(LATENCY)
    assert "T_base_flange" in stand.asked()["params"]
    stand.answer(b'{"success": false, "error": "no board"}', LATENCY)
    stand.vision.wake(2 * LATENCY)
    assert stand.replies[-1][1] == Refused("no board")


def test_faults_of_the_scenario_act_as_on_ground_truth_vision() -> None:
    def rule(fault: str) -> Rule:
        return Rule(fault=fault, on="g60.vision")

    silent = Stand(rule=rule("vision_silent"))
    silent.vision.request("", 0)
    assert silent.vision.question() is None, "nothing is sent"
    assert isinstance(silent.run(), Refused)
    checks: dict[str, Callable[[Sequence[DetectedObject]], bool]] = {
        "vision_no_object": lambda seen: not seen,
        "vision_low_confidence": lambda seen: seen[0].confidence == 0.3,
        "vision_wrong_class": lambda seen: seen[0].class_name == "unknown",
        "vision_noise": lambda seen: 0 < abs(seen[0].pose.x - 0.1505) <= 1e-3,
    }
    for fault, check in checks.items():
        stand = Stand(rule=rule(fault))
        stand.vision.request("", 0)
        stand.answer(reply(), 0)
        result = stand.run()
        assert isinstance(result, FoundObjects)
        assert check(result.objects), fault
    assert isinstance(silent.vision.inject("vision_silent", {}, 0), Refused)


def asked_of(stand: Stand) -> dict[str, Any] | None:
    """The question without its trigger, which is new after a restore."""
    if stand.vision.question() is None:
        return None
    return {key: value for key, value in stand.asked().items() if key != "trigger"}


@pytest.mark.parametrize("moment", ["idle", "asked", "answered", "lost"])
def test_a_snapshot_at_any_moment_goes_on_in_the_same_way(moment: str) -> None:
    stand, other = Stand(), Stand()
    if moment != "idle":
        stand.vision.request("bolt_m8", 7)
    if moment == "answered":
        stand.answer(reply(t_exposure=7e-9), 7)
    if moment == "lost":
        stand.vision.unanswered(1, "gone", 7)
    heard: list[bool] = []
    other.vision.on_question(lambda: heard.append(True))
    saved = json.loads(msgspec.json.encode(snapshots.saved(stand.vision)))
    snapshots.load(other.vision, saved)
    assert heard, "the wire looks for the question of the snapshot"
    assert asked_of(other) == asked_of(stand)
    assert other.vision.next_wake() == stand.vision.next_wake()
    if moment == "asked":
        for each in (stand, other):
            each.answer(reply(), 7)
    if moment != "idle":
        assert stand.run() == other.run()
    assert snapshots.saved(stand.vision) == snapshots.saved(other.vision)


def test_detectors_that_were_set_are_asked_for_also_after_a_restore() -> None:
    stand, other = Stand(), Stand()
    own, small = {"kind": "markers", "classes": {"0": "cube"}}, {"kind": "markers", "size_mm": 9}
    stand.vision.request("", 0)
    assert "detectors" not in stand.asked()["params"], "the process has its own"
    assert stand.vision.set_detectors([small]) is None
    assert "detectors" not in stand.asked()["params"], "not for a picture that is asked for"
    stand.vision.request("", 1)
    assert stand.asked()["params"]["detectors"] == [small]
    saved = json.loads(msgspec.json.encode(snapshots.saved(stand.vision)))
    snapshots.load(other.vision, saved)
    assert other.asked()["params"] == stand.asked()["params"]
    assert other.vision.detectors() == [small]
    other.vision.request("", 2)
    assert other.asked()["params"]["detectors"] == [small]
    wrong = stand.vision.set_detectors([{"kind": "markers", "size_mm": -1}])
    assert isinstance(wrong, Refused)
    assert stand.vision.detectors() == [small], "a refusal changes nothing"
    assert stand.vision.set_detectors([MARKERS]) is None, "those of the file"
    assert (stand.vision.state.detectors, stand.vision.detectors()) == (None, [own])
    network = {"kind": "onnx", "model": "/etc/passwd", "classes": ["a"]}
    with pytest.raises(ConfigError, match=r"g60\.vision\.detectors\.0\.model: not a file"):
        snapshots.load(other.vision, saved | {"detectors": [network]})
