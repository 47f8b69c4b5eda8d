"""Contract: commands, their acks in order, and why they are rejected."""

import json
import math
import uuid
from typing import Any

import pytest
from tests.robots.mobile.contract.backend import Backend

WELL: list[tuple[str, None]] = [("ACKED", None), ("RUNNING", None), ("DONE", None)]


def rejected(reason: str) -> list[tuple[str, str | None]]:
    return [("REJECTED", reason)]


def test_move_to_pose_ends_there(backend: Backend) -> None:
    cause = backend.command("mover", "MOVE_TO_POSE", x=1.0, y=0.5, yaw=math.pi / 2)
    assert backend.ended("mover", cause) == WELL
    state = backend.state("mover", lambda p: p["velocity"] == {"linear": 0, "angular": 0})
    pose = state["pose"]
    assert math.hypot(pose["x"] - 1.0, pose["y"] - 0.5) <= 0.02
    assert abs(math.remainder(pose["yaw"] - math.pi / 2, math.tau)) <= math.radians(2)


def test_move_velocity_with_a_duration(backend: Backend) -> None:
    before = backend.state("hearer")["pose"]
    cause = backend.command("hearer", "MOVE_VELOCITY", linear=0.4, angular=0, durationSeconds=2)
    moving = backend.wait("hearer", "state", lambda p: p["velocity"]["linear"] > 0.3).payload
    assert moving["motors"]["drive_left"]["mode"] == "MOVING"
    assert backend.ended("hearer", cause) == WELL
    after = backend.state("hearer", lambda p: abs(p["velocity"]["linear"]) < 1e-9)["pose"]
    assert 0.4 < math.hypot(after["x"] - before["x"], after["y"] - before["y"]) < 1.0


def test_commands_run_one_after_the_other(backend: Backend) -> None:
    causes = [
        backend.command("hearer", "EXECUTE_ACTION", motorId="act_1", targetPosition=0.01 * number)
        for number in (3, 1, 2)
    ]
    for cause in causes:
        assert backend.ended("hearer", cause) == WELL
    order = [
        got.envelope["correlationId"]
        for got in backend.of("hearer", "command.ack")
        if got.payload["status"] == "DONE" and got.envelope["correlationId"] in causes
    ]
    assert order == causes


def test_stop_ends_the_running_and_the_waiting_commands(backend: Backend) -> None:
    running = backend.command("stopper", "MOVE_VELOCITY", linear=0.5, durationSeconds=600)
    waiting = backend.command("stopper", "MOVE_TO_POSE", x=5, y=0)
    backend.wait("stopper", "state", lambda p: p["velocity"]["linear"] > 0.3)
    stop = backend.command("stopper", "STOP")
    assert backend.ended("stopper", stop)[0] == ("ACKED", None)
    assert backend.ended("stopper", stop)[-1] == ("DONE", None)
    assert backend.ended("stopper", running)[-1][0] == "CANCELED"
    assert backend.ended("stopper", waiting)[-1][0] == "CANCELED"
    backend.state("stopper", lambda p: abs(p["velocity"]["linear"]) < 1e-9)


def test_a_speed_limit_holds(backend: Backend) -> None:
    mark = backend.mark()
    limit = backend.command("mover", "SET_SPEED_LIMIT", maxSpeedMps=0.2)
    assert backend.ended("mover", limit) == WELL
    move = backend.command("mover", "MOVE_VELOCITY", linear=1.0, durationSeconds=3)
    assert backend.ended("mover", move) == WELL
    speeds = [
        abs(got.payload["velocity"]["linear"])
        for got in backend.messages[mark:]
        if (got.robot, got.kind) == ("mover", "state")
    ]
    assert 0.15 < max(speeds) <= 0.2 + 1e-6


@pytest.mark.parametrize("which", [{"motorId": "act_1"}, {"functionKey": "GRIPPER"}])
def test_an_action_moves_its_motor(backend: Backend, which: dict[str, str]) -> None:
    target = 0.04 if "motorId" in which else 0.02
    cause = backend.command("gripper", "EXECUTE_ACTION", targetPosition=target, **which)
    assert backend.ended("gripper", cause) == WELL
    motor = backend.state("gripper")["motors"]["act_1"]
    assert motor["position"] == pytest.approx(target, abs=0.002)


def test_an_action_that_takes_too_long_fails(backend: Backend) -> None:
    cause = backend.command(
        "gripper", "EXECUTE_ACTION", motorId="act_1", targetPosition=0.079, timeoutSeconds=0.1
    )
    assert backend.ended("gripper", cause)[-1] == ("FAILED", "TIMEOUT")


def test_commands_are_events_too(backend: Backend) -> None:
    cause = backend.command("hearer", "SET_SPEED_LIMIT", maxSpeedMps=1.0)
    backend.ended("hearer", cause)
    for status in ("acked", "running", "done"):
        backend.event("hearer", f"command.{status}")


# ── rejected ──


@pytest.mark.parametrize(
    ("robot", "command"), [("hearer", "FLY"), ("simple", "SET_SPEED_LIMIT"), ("drive_down", "FLY")]
)
def test_what_a_robot_cannot_do(backend: Backend, robot: str, command: str) -> None:
    cause = backend.command(robot, command, maxSpeedMps=1.0)
    assert backend.ended(robot, cause) == rejected("CAPABILITY_NOT_SUPPORTED")


@pytest.mark.parametrize(
    ("command", "parameters"),
    [
        ("MOVE_TO_POSE", {"x": 1}),
        ("MOVE_TO_POSE", {"x": "east", "y": 0}),
        ("MOVE_VELOCITY", {"linear": 0.1, "durationSeconds": -1}),
        ("EXECUTE_ACTION", {"targetPosition": 0.01}),
    ],
)
def test_parameters_that_are_wrong(
    backend: Backend, command: str, parameters: dict[str, Any]
) -> None:
    cause = backend.command("hearer", command, **parameters)
    ((status, reason),) = backend.ended("hearer", cause)
    assert status == "REJECTED"
    assert str(reason).startswith("INVALID_PARAMETERS")


def test_a_robot_whose_drive_is_down_is_not_ready(backend: Backend) -> None:
    state = backend.wait("drive_down", "state", lambda p: p["status"] == "ERROR").payload
    assert state["faultLevel"] == "ERROR"
    assert {fault["code"] for fault in state["faults"]} == {"SIM_FAULT"}
    assert state["motors"]["drive_left"]["mode"] == "ERROR"
    assert state["motors"]["drive_left"]["faultCode"] == "SIM_FAULT"
    assert backend.event("drive_down", "motor.fault")
    for name, some in (("MOVE_VELOCITY", {"linear": 0.1}), ("SET_SPEED_LIMIT", {"maxSpeedMps": 1})):
        cause = backend.command("drive_down", name, **some)
        assert backend.ended("drive_down", cause) == rejected("ROBOT_NOT_READY")
    stop = backend.command("drive_down", "STOP")
    assert backend.ended("drive_down", stop) == WELL
    for motor in ("drive_left", "drive_right"):
        reset = backend.command("drive_down", "RESET_MOTOR", motorId=motor)
        assert backend.ended("drive_down", reset) == WELL
    backend.state("drive_down", lambda p: p["status"] == "RUNNING")
    assert backend.event("drive_down", "motor.recovered")


def test_a_functional_motor_that_is_down_is_a_warning(backend: Backend) -> None:
    state = backend.wait("act_down", "state", lambda p: p["status"] == "WARNING").payload
    assert state["faultLevel"] == "WARN"
    action = {"motorId": "act_1", "targetPosition": 0.01}
    cause = backend.command("act_down", "EXECUTE_ACTION", **action)
    assert backend.ended("act_down", cause) == rejected("REQUIRED_MOTOR_UNAVAILABLE")
    drives = backend.command("act_down", "MOVE_VELOCITY", linear=0.1, durationSeconds=0.5)
    assert backend.ended("act_down", drives) == WELL
    reset = backend.command("act_down", "RESET_MOTOR", motorId="act_1")
    assert backend.ended("act_down", reset) == WELL
    again = backend.command("act_down", "EXECUTE_ACTION", **action)
    assert backend.ended("act_down", again) == WELL


# ── safety ──


def test_in_an_emergency_stop_only_stop_is_accepted(backend: Backend) -> None:
    state = backend.wait("pressed", "state", lambda p: p["estopPressed"]).payload
    assert (state["status"], state["safetyStopReason"]) == ("PAUSED", "ESTOP")
    assert state["safetyStopActive"] is True
    assert backend.event("pressed", "safety.estop.pressed")
    for name, some in (
        ("MOVE_VELOCITY", {"linear": 0.1}),
        ("EXECUTE_ACTION", {"motorId": "act_1", "targetPosition": 0.01}),
        ("SET_SPEED_LIMIT", {"maxSpeedMps": 1}),
    ):
        cause = backend.command("pressed", name, **some)
        assert backend.ended("pressed", cause) == rejected("SAFETY_STOP_ACTIVE")
    assert backend.ended("pressed", backend.command("pressed", "STOP")) == WELL


@pytest.mark.parametrize(
    ("robot", "status", "level"),
    [("pressed_and_drive_down", "ERROR", "ERROR"), ("pressed_and_act_down", "PAUSED", "WARN")],
)
def test_the_worst_condition_is_the_status(
    backend: Backend, robot: str, status: str, level: str
) -> None:
    state = backend.wait(
        robot, "state", lambda p: p["estopPressed"] and p["faultLevel"] == level
    ).payload
    assert (state["status"], state["safetyStopReason"]) == (status, "ESTOP")


def test_a_change_of_the_status_is_sent_at_once(backend: Backend) -> None:
    pressed = backend.wait("pressed", "events", lambda p: p["type"] == "safety.estop.pressed")
    state = backend.wait("pressed", "state", lambda p: p["estopPressed"])
    assert state.envelope["ts"] == pressed.envelope["ts"], "not at the next period"


def test_an_emergency_stop_fails_the_running_command(backend: Backend) -> None:
    backend.event("pressing", "safety.estop.cleared", after=backend.mark())
    cause = backend.command("pressing", "MOVE_VELOCITY", linear=0.5, durationSeconds=600)
    assert backend.ended("pressing", cause)[-1] == ("FAILED", "SAFETY_STOP")
    backend.state("pressing", lambda p: p["status"] == "PAUSED" and not p["velocity"]["linear"])
    backend.state("pressing", lambda p: p["status"] == "RUNNING")


def test_an_obstacle_stops_the_robot_before_it_touches(backend: Backend) -> None:
    cause = backend.command("post", "MOVE_VELOCITY", linear=0.8, durationSeconds=60)
    assert backend.ended("post", cause)[-1] == ("FAILED", "SAFETY_STOP")
    assert backend.event("post", "safety.obstacle.detected")
    state = backend.state("post", lambda p: abs(p["velocity"]["linear"]) < 1e-9)
    assert (state["status"], state["safetyStopReason"]) == ("PAUSED", "OBSTACLE")
    assert 3 - 0.3 - (state["pose"]["x"] + 0.45) > 0, "in front of the post"
    refused = backend.command("post", "MOVE_VELOCITY", linear=0.3, durationSeconds=1)
    assert backend.ended("post", refused) == rejected("SAFETY_STOP_ACTIVE")


def test_markers_are_scanned(backend: Backend) -> None:
    backend.command("marker", "MOVE_VELOCITY", linear=0.4, durationSeconds=4)
    scan = backend.event("marker", "barcode.scanned")
    assert scan["code"] == "A-01"
    assert set(scan["pose"]) == {"x", "y", "yaw"}


# ── once ──


def test_the_same_message_twice_is_carried_out_once(backend: Backend) -> None:
    name = str(uuid.uuid4())
    request = {
        "payloadVersion": 1,
        "messageId": name,
        "robotId": "hearer",
        "correlationId": name,
        "payload": {"commandType": "SET_SPEED_LIMIT", "parameters": {"maxSpeedMps": 1.1}},
    }
    for _ in range(3):
        backend.send_raw("hearer", "command.request", json.dumps(request).encode())
    assert backend.ended("hearer", name) == WELL
    last = backend.command("hearer", "STOP")
    backend.ended("hearer", last)
    assert backend.acks("hearer", name) == WELL


BAD = [
    b"",
    b"\xff\xfe\x00",
    b"no json",
    b"[]",
    b"{}",
    b'{"messageId": "m", "payload": 3}',
    b'{"payloadVersion": 1, "payload": {"commandType": "STOP"}}',
    b'{"payloadVersion": 9, "messageId": "m9", "payload": {"commandType": "STOP"}}',
    b'{"messageId": "m8", "robotId": "mover", "payload": {"commandType": "STOP"}}',
    b"[" * 50_000,
    b'{"messageId": "m7", "payload": {"commandType": 7}}',
]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_malformed_message_is_dropped_with_an_event(backend: Backend, data: bytes) -> None:
    mark = backend.mark()
    backend.send_raw("setter", "command.request", data)
    backend.event("setter", "message.malformed", after=mark)


@pytest.mark.parametrize(
    "kind", ["settings.desired", "task.assign", "task.cancel", "traffic.control", "route.response"]
)
def test_malformed_messages_of_every_kind(backend: Backend, kind: str) -> None:
    mark = backend.mark()
    backend.send_raw("setter", kind, b'{"messageId": "x", "payload": [1]}')
    backend.event("setter", "message.malformed", after=mark)
    assert backend.ended("setter", backend.command("setter", "STOP")) == WELL


def test_every_message_is_acknowledged(backend: Backend) -> None:
    backend.send_raw("no-such-robot", "command.request", b"{}")
    for _ in range(200):
        if backend.unacknowledged() == 0:
            return
        backend.state("mover")
    raise AssertionError(f"{backend.unacknowledged()} messages are not acknowledged")
