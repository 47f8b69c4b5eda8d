"""Messages of mobile robots: their form on the wire, and what is wrong with a bad one."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.robots.mobile.runtime import messages
from understudy.robots.mobile.runtime.messages import Malformed, Received, decoded, encoded


def request(**changes: Any) -> bytes:
    whole: dict[str, Any] = {
        "payloadVersion": 1,
        "messageId": "m-1",
        "robotId": "robot-1",
        "robotCode": "AMR",
        "ts": "2026-01-01T00:00:00.000Z",
        "correlationId": "c-1",
        "payload": {"commandType": "STOP", "parameters": {}, "requestedBy": "me"},
    }
    return json.dumps({k: v for k, v in (whole | changes).items() if v is not ...}).encode()


def test_a_message_of_a_robot_has_the_keys_of_the_contract() -> None:
    ack = messages.CommandAck("MOVE_TO_POSE", "REJECTED", reason="SAFETY_STOP_ACTIVE")
    sent = json.loads(encoded("m", "robot-1", "AMR", "2026-01-01T00:00:00.000Z", ack, "c"))
    assert sent == {
        "payloadVersion": 1,
        "messageId": "m",
        "robotId": "robot-1",
        "robotCode": "AMR",
        "ts": "2026-01-01T00:00:00.000Z",
        "correlationId": "c",
        "payload": {
            "commandType": "MOVE_TO_POSE",
            "status": "REJECTED",
            "reason": "SAFETY_STOP_ACTIVE",
        },
    }


def test_a_message_without_a_cause_has_no_correlation_id() -> None:
    sent = json.loads(encoded("m", "r", "R", "t", messages.TaskDone("t-1")))
    assert "correlationId" not in sent
    assert sent["payload"] == {"taskId": "t-1"}


def test_a_command_is_read() -> None:
    got = decoded("command.request", request(), "robot-1")
    assert isinstance(got, Received)
    assert (got.message_id, got.correlation_id) == ("m-1", "c-1")
    assert got.payload == messages.CommandRequest("STOP", {}, "me")


def test_keys_of_a_newer_backend_are_ignored() -> None:
    got = decoded("command.request", request(payload={"commandType": "STOP", "new": 1}), "robot-1")
    assert isinstance(got, Received)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b"\xff\xfe", "malformed"),
        (request(messageId=...), "missing required field `messageId`"),
        (request(payload=...), "missing required field `payload`"),
        (request(payload={}), "missing required field `commandType`"),
        (request(payload={"commandType": 5}), "Expected `str`"),
        (request(payloadVersion=2), "payloadVersion 2; allowed: 1"),
        (request(robotId="robot-2"), "robotId robot-2; this is robot-1"),
        (b'{"payload":' + b"[" * 5000, "recursion"),
        (request(payload={"commandType": "x" * 300_000}), "bytes; allowed: 262144"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(data: bytes, says: str) -> None:
    got = decoded("command.request", data, "robot-1")
    assert isinstance(got, Malformed)
    assert says in got.reason


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"{", None),
        (request(messageId=...), None),
        (request(payload={}), "c-1"),
        (request(payload={}, correlationId=...), "m-1"),
        (request(payloadVersion=2), "c-1"),
        (request(robotId="robot-2"), "c-1"),
    ],
)
def test_the_sender_of_a_malformed_message_finds_its_correlation_id(
    data: bytes, cause: str | None
) -> None:
    got = decoded("command.request", data, "robot-1")
    assert isinstance(got, Malformed)
    assert got.cause == cause


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("command.request", {"commandType": "STOP", "parameters": None, "requestedBy": None}),
        ("settings.desired", {"motors": None, "io": None, "safety": None}),
        (
            "route.response",
            {
                "routeId": "r",
                "segments": None,
                "taskId": None,
                "etaSecondsTotal": None,
                "steps": [{"type": "TURN", "yaw": 1.0, "x": None, "actions": None}],
            },
        ),
    ],
)
def test_null_is_as_a_key_that_is_left_out(kind: str, payload: dict[str, object]) -> None:
    assert isinstance(decoded(kind, request(payload=payload), "robot-1"), Received)


def test_an_unknown_kind_is_named() -> None:
    got = decoded("command.reqest", request(), "robot-1")
    assert isinstance(got, Malformed)
    assert "command.request" in got.reason


@settings(max_examples=200)
@given(st.sampled_from(list(messages.TO_ROBOT)), st.binary(max_size=200))
def test_no_bytes_raise_an_error(kind: str, data: bytes) -> None:
    decoded(kind, data, "robot-1")


def test_subjects() -> None:
    assert messages.subject("robot-1", "command.ack") == "robot.robot-1.command.ack"
    assert messages.kind_of("robot.robot-1.command.ack") == ("robot-1", "command.ack")
    assert messages.kind_of("robot.robot-1") == ("", "")
    assert messages.kind_of("cell.x.y") == ("", "")


def test_the_details_of_an_event_stand_beside_its_type() -> None:
    event = messages.Event("simulation.started", {"profileName": "aisle", "seed": 7})
    sent = json.loads(encoded("m", "r", "R", "t", event))
    assert sent["payload"] == {"type": "simulation.started", "profileName": "aisle", "seed": 7}
