"""JSON Schema, AsyncAPI document and catalogue page of the messages of mobile robots."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct

from understudy.robots.mobile.runtime import messages
from understudy.robots.mobile.runtime.message_schema import asyncapi, catalogue, schema_files
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    EVENTS,
    FROM_ROBOT,
    REASONS,
    TO_ROBOT,
    Received,
    decoded,
    encoded,
    read_parameters,
)
from understudy.robots.mobile.runtime.tasks import ERRORS

ROOT = Path(__file__).parents[4]
FILES = schema_files()
POSE = messages.Pose(1.0, 2.0)
MOTORS = {"left": messages.MotorState(True, "MOVING", 1.5, 0.4, "SIM_FAULT", "no current")}
MARKER = messages.StateMarker("MOCK", "aisle")
SENT: dict[str, Struct] = {
    "heartbeat": messages.Heartbeat("b", "1.0", "RUNNING", "MOCK", 1.5, 3),
    "state": messages.State(
        POSE,
        messages.Velocity(0.5, 0.1),
        99.5,
        "OK",
        "WARN",
        [messages.FaultEntry("SIM_FAULT", "no current", "WARN")],
        "PAUSED",
        False,
        True,
        "OBSTACLE",
        MOTORS,
        "MOCK",
        "aisle",
    ),
    "telemetry": messages.Telemetry(
        messages.Battery(99.5),
        MOTORS,
        messages.LidarReading(False, None, True),
        messages.LocalizationReading("OK", POSE),
        {"estop": False},
        messages.Health(True, True),
        MARKER,
    ),
    "events": messages.Event("simulation.started", {"profileName": "aisle", "seed": 7}),
    "settings.reported": messages.SettingsReported({}, {"horn": True}),
    "command.ack": messages.CommandAck("STOP", "REJECTED", "ROBOT_NOT_READY"),
    "task.progress": messages.TaskProgress("t", 1, 2, 0.5),
    "task.done": messages.TaskDone("t"),
    "task.failed": messages.TaskFailed("t", "CANCELED"),
    "traffic.state": messages.TrafficState(POSE, 0.5, 0.2),
    "route.request": messages.RouteRequest(POSE, messages.MoveToPoint(1.0, 2.0), "t"),
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "MOVE_VELOCITY": {"linear": 0.5, "angular": 0.1, "durationSeconds": 2},
    "MOVE_TO_POSE": {"x": 1, "y": 2, "yaw": None},
    "STOP": {},
    "RESET_MOTOR": {"motorId": "left"},
    "SET_SPEED_LIMIT": {"maxSpeedMps": 0.3},
    "EXECUTE_ACTION": {"functionKey": "LIFT", "targetPosition": 0.02},
}
RECEIVED: list[tuple[str, Any, bool]] = [
    ("settings.desired", {"motors": {"left": {"maxSpeed": 0.5, "resetRequested": True}}}, True),
    ("settings.desired", {"motors": {"left": {"maxSpeed": -0.5}}}, False),
    ("settings.desired", {"io": {"horn": 1}}, False),
    ("task.assign", {"taskId": "t", "taskType": "MOVE_TO_POINT"}, True),
    ("task.assign", {"taskId": "t", "taskType": "DANCE"}, False),
    ("task.assign", {"taskId": "", "taskType": "MISSION"}, False),
    ("task.cancel", {"taskId": "t"}, True),
    ("task.cancel", {}, False),
    ("traffic.control", {"releaseHold": True}, True),
    ("traffic.control", {"maxSpeedMps": -1}, False),
    ("route.response", {"routeId": "r", "steps": [{"type": "MOVE", "x": 1, "y": 2}]}, True),
    ("route.response", {"routeId": "r", "steps": [{"type": "FLY"}]}, False),
    ("command.request", {"commandType": "STOP", "new": 1}, True),
    ("command.request", {"parameters": {}}, False),
]


def fits(kind: str, message: Any) -> bool:
    return bool(Draft202012Validator(FILES[f"{kind}.schema.json"]).is_valid(message))


@pytest.mark.parametrize("kind", [*FROM_ROBOT, *TO_ROBOT])
def test_every_message_has_a_schema_that_stands_alone(kind: str) -> None:
    schema = FILES[f"{kind}.schema.json"]
    Draft202012Validator.check_schema(schema)
    for target in re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema)):
        assert target.removeprefix("#/$defs/") in schema["$defs"]


@pytest.mark.parametrize("kind", FROM_ROBOT)
def test_what_a_robot_sends_fits_its_schema(kind: str) -> None:
    message = json.loads(encoded("m", "r", "R", "2026-01-01T00:00:00.000Z", SENT[kind], "c"))
    assert fits(kind, message)
    for key in message:
        without = {name: value for name, value in message.items() if name != key}
        assert fits(kind, without) is (key == "correlationId")


@pytest.mark.parametrize(("kind", "payload", "good"), RECEIVED)
def test_schema_and_robot_agree_about_a_message(kind: str, payload: Any, good: bool) -> None:
    message = {"messageId": "m", "payload": payload}
    assert fits(kind, message) is good
    assert isinstance(decoded(kind, json.dumps(message).encode(), "r"), Received) is good


@pytest.mark.parametrize("name", COMMANDS)
def test_schema_and_robot_agree_about_the_parameters_of_a_command(name: str) -> None:
    for command, parameters in PARAMETERS.items():
        payload = {"commandType": name, "parameters": parameters}
        good = not hasattr(read_parameters(COMMANDS[name], parameters), "reason")  # type: ignore[index]
        assert fits("command.request", {"messageId": "m", "payload": payload}) is good, command


# ── AsyncAPI ────────────────────────────────────────────────────────────────────────────────────


def resolved(document: Any, place: str) -> Any:
    assert place.startswith("#/")
    for word in place[2:].split("/"):
        document = document[word]
    return document


def references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if "$ref" in part else []
        return own + [each for value in part.values() for each in references(value)]
    return [each for value in part for each in references(value)] if isinstance(part, list) else []


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi("1.0")
    found = references(document)
    assert len(found) > 100
    for place in found:
        assert resolved(document, place)


def test_the_asyncapi_document_has_a_channel_and_an_operation_for_each_message() -> None:
    document = asyncapi("1.0")
    actions = {"send": FROM_ROBOT, "receive": TO_ROBOT}
    seen = set()
    for operation in document["operations"].values():
        channel = resolved(document, operation["channel"]["$ref"])
        kind = channel["address"].removeprefix("robot.{robotId}.")
        assert kind in actions[operation["action"]]
        assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel["parameters"])
        (said,) = operation["messages"]
        assert said["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")
        message = resolved(document, resolved(document, said["$ref"])["$ref"])
        assert message["name"] == kind
        assert message["summary"]
        seen.add(kind)
    assert seen == {*FROM_ROBOT, *TO_ROBOT}


def test_names_in_the_asyncapi_document_are_allowed() -> None:
    document = asyncapi("1.0")
    assert document["asyncapi"] == "3.0.0"
    for part in (*document["components"].values(), document["channels"], document["operations"]):
        assert all(re.fullmatch(r"[\w.-]+", name) for name in part)
    assert set(document) <= {
        "asyncapi",
        "id",
        "info",
        "servers",
        "defaultContentType",
        "channels",
        "operations",
        "components",
    }


# ── the page ────────────────────────────────────────────────────────────────────────────────────


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    page = (ROOT / "docs/robots/mobile_messages.md").read_text()
    assert page == catalogue(), (
        "`understudy fleet schema DIR`, then copy messages.md from there to "
        "docs/robots/mobile_messages.md"
    )


def test_the_page_names_every_message_command_and_event() -> None:
    page = catalogue()
    for kind in (*FROM_ROBOT, *TO_ROBOT):
        assert f"\n## {kind}\n" in page
    for command in COMMANDS:
        assert f"\n### {command}\n" in page
    for name in (*EVENTS, *REASONS, *ERRORS):
        assert f"| `{name}` |" in page


def test_every_event_of_the_runtime_is_in_the_table() -> None:
    sources = (ROOT / "src/understudy/robots/mobile/runtime").rglob("*.py")
    texts = "\n".join(path.read_text() for path in sources)
    sent = re.findall(r"\.event\(\s*(f?)\"(.*?)\",", texts)
    assert len(sent) > 5
    for dynamic, name in sent:
        pattern = re.sub(r"{.*?}", ".*", name) if dynamic else re.escape(name)
        assert [each for each in EVENTS if re.fullmatch(pattern, each)], name
