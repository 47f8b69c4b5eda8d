"""Contract: settings, traffic control, routes and tasks."""

import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.robots.mobile.contract.backend import Backend
from tests.robots.mobile.contract.conftest import RATE, running
from tests.robots.mobile.contract.robots import write_cell

Payload = dict[str, Any]


def is_near(pose: Payload, x: float, y: float) -> bool:
    return math.hypot(pose["x"] - x, pose["y"] - y) <= 0.03


# ── settings ──


def test_desired_settings_are_applied_and_reported(backend: Backend) -> None:
    desired = {
        "motors": {"drive_left": {"maxSpeed": 0.3}, "drive_right": {"maxSpeed": 0.3}},
        "io": {"horn": True},
        "safety": {"obstacleStopDistanceMeters": 0.4},
    }
    cause = backend.send("setter", "settings.desired", desired)
    reported = backend.wait(
        "setter", "settings.reported", lambda p: p.get("appliedFromCorrelationId") == cause
    ).payload
    assert reported["effectiveMotors"]["drive_left"]["maxSpeed"] == pytest.approx(0.3)
    assert reported["effectiveMotors"]["act_1"]["maxSpeed"] == pytest.approx(0.05)
    assert reported["effectiveIo"]["horn"] is True
    mark = backend.mark()
    move = backend.command("setter", "MOVE_VELOCITY", linear=1.0, durationSeconds=2)
    assert backend.ended("setter", move)[-1] == ("DONE", None)
    speeds = [
        got.payload["velocity"]["linear"]
        for got in backend.messages[mark:]
        if (got.robot, got.kind) == ("setter", "state")
    ]
    assert max(speeds) <= 0.3 + 1e-6


def test_no_setting_exceeds_the_limits_of_the_file(backend: Backend) -> None:
    cause = backend.send("setter", "settings.desired", {"motors": {"act_1": {"maxSpeed": 9.0}}})
    reported = backend.wait(
        "setter", "settings.reported", lambda p: p.get("appliedFromCorrelationId") == cause
    ).payload
    assert reported["effectiveMotors"]["act_1"]["maxSpeed"] == pytest.approx(0.05)


def test_a_robot_that_waits_for_its_settings(backend: Backend) -> None:
    move = {"linear": 0.1, "durationSeconds": 0.5}
    early = backend.command("waiting", "MOVE_VELOCITY", **move)
    assert backend.ended("waiting", early)[-1][0] == "REJECTED"
    backend.send("waiting", "settings.desired", {})
    backend.wait("waiting", "settings.reported", lambda p: "appliedFromCorrelationId" in p)
    later = backend.command("waiting", "MOVE_VELOCITY", **move)
    assert backend.ended("waiting", later)[-1] == ("DONE", None)


# ── routes ──


def straight(robot: str, request: Payload) -> Payload:
    end = request["destination"]
    step = {"type": "MOVE", "x": end["x"], "y": end["y"]}
    return {"routeId": "straight", "taskId": request["taskId"], "steps": [step]}


@pytest.fixture
def routed(backend: Backend) -> Iterator[Backend]:
    """A backend that answers every route.request."""
    backend.routes = straight
    yield backend
    backend.routes = None


# ── traffic control ──


def test_a_hold_pauses_a_task_and_a_release_lets_it_go_on(routed: Backend) -> None:
    backend = routed
    name = assign(backend, "traffic", x=4.0, y=2.0)
    backend.state("traffic", lambda p: p["velocity"]["linear"] > 0.2)
    backend.send("traffic", "traffic.control", {"maxSpeedMps": 0})
    held = backend.state("traffic", lambda p: p["status"] == "PAUSED")
    assert held["safetyStopReason"] == "TRAFFIC_HOLD"
    still = backend.state("traffic", lambda p: abs(p["velocity"]["linear"]) < 1e-9)
    backend.send("traffic", "traffic.control", {"maxSpeedMps": 1.0})
    backend.state("traffic", lambda p: p["status"] == "RUNNING")
    backend.wait("traffic", "task.done", lambda p: p["taskId"] == name)
    assert not is_near(still["pose"], 4.0, 2.0)
    assert is_near(backend.state("traffic")["pose"], 4.0, 2.0)


def test_a_robot_is_held_at_a_node_of_its_route(backend: Backend) -> None:
    def route(robot: str, request: Payload) -> Payload | None:
        steps = [{"type": "MOVE", "x": -x, "y": 2.0, "nodeId": f"W{x}"} for x in (1.0, 2.0, 3.0)]
        return {"routeId": "west", "taskId": request["taskId"], "steps": steps}

    backend.send("traffic", "traffic.control", {"holdAtNodeId": "W2.0"})
    backend.routes = route
    try:
        name = assign(backend, "traffic", x=-3.0, y=2.0)
        held = backend.state("traffic", lambda p: p["safetyStopReason"] == "TRAFFIC_HOLD")
    finally:
        backend.routes = None
    assert is_near(held["pose"], -2.0, 2.0)
    place = backend.wait("traffic", "traffic.state", lambda p: p.get("currentNodeId") == "W2.0")
    assert place.payload["routeId"] == "west"
    backend.send("traffic", "traffic.control", {"releaseHold": True})
    backend.wait("traffic", "task.done", lambda p: p["taskId"] == name)
    assert is_near(backend.state("traffic")["pose"], -3.0, 2.0)


# ── tasks and routes ──


def assign(backend: Backend, robot: str, x: float, y: float, **more: Any) -> str:
    name = f"task-{uuid.uuid4()}"
    point = {"x": x, "y": y} | more
    task = {"taskId": name, "taskType": "MOVE_TO_POINT", "priority": 1, "moveToPoint": point}
    backend.send(robot, "task.assign", task)
    return name


def test_without_a_backend_for_routes_the_robot_plans_itself(tmp_path: Path) -> None:
    """In a cell of its own: as soon as a backend answers, the planner of a cell is silent."""
    cell = write_cell(tmp_path, {"port": 4222}, ["planner"])
    with running(cell, "--rate", RATE) as ready, Backend(ready["endpoints"]["nats"]) as backend:
        look_at_planner(backend)


def look_at_planner(backend: Backend) -> None:
    name = assign(backend, "planner", x=6.0, y=0.0)
    request = backend.wait("planner", "route.request", lambda p: p.get("taskId") == name).payload
    assert is_near(request["destination"], 6.0, 0.0)
    backend.wait("planner", "task.done", lambda p: p["taskId"] == name)
    assert is_near(backend.state("planner")["pose"], 6.0, 0.0)
    for got in backend.of("planner", "state"):
        pose = got.payload["pose"]
        assert math.hypot(pose["x"] - 3.0, pose["y"]) > 0.3 + 0.325, "around the post"


def test_a_task_follows_the_route_of_the_backend(backend: Backend) -> None:
    def route(robot: str, request: Payload) -> Payload | None:
        if robot != "tasks":
            return None
        end = request["destination"]
        return {
            "routeId": "route-7",
            "taskId": request["taskId"],
            "segments": [],
            "steps": [
                {"type": "MOVE", "x": 1.0, "y": 0.0, "nodeId": "N1"},
                {"type": "TURN", "yaw": math.pi / 2},
                {"type": "WAIT", "seconds": 0.5},
                {"type": "MOVE", "x": end["x"], "y": end["y"], "nodeId": "N2"},
                {
                    "type": "ARRIVE_ACTIONS",
                    "actions": [{"motorId": "act_1", "targetPosition": 0.03}],
                },
            ],
            "etaSecondsTotal": 12,
        }

    backend.routes = route
    try:
        name = assign(backend, "tasks", x=1.0, y=1.5)
        backend.wait("tasks", "task.done", lambda p: p["taskId"] == name)
    finally:
        backend.routes = None
    state = backend.state("tasks")
    assert is_near(state["pose"], 1.0, 1.5)
    assert state["motors"]["act_1"]["position"] == pytest.approx(0.03, abs=0.002)
    progress = [
        got.payload for got in backend.of("tasks", "task.progress") if got.payload["taskId"] == name
    ]
    assert progress
    assert [each["progress"] for each in progress] == sorted(each["progress"] for each in progress)
    assert any(
        got.payload.get("routeId") == "route-7" for got in backend.of("tasks", "traffic.state")
    )


def test_a_mission_needs_no_route(backend: Backend) -> None:
    name = f"mission-{uuid.uuid4()}"
    steps = [
        {"type": "MOVE", "x": 0.5, "y": 1.0},
        {"type": "ARRIVE_ACTIONS", "actions": [{"functionKey": "GRIPPER", "targetPosition": 0.01}]},
    ]
    task = {"taskId": name, "taskType": "MISSION", "mission": {"steps": steps}}
    mark = backend.mark()
    backend.send("gripper", "task.assign", task)
    backend.wait("gripper", "task.done", lambda p: p["taskId"] == name)
    assert is_near(backend.state("gripper")["pose"], 0.5, 1.0)
    later = backend.messages[mark:]
    assert not [got for got in later if (got.robot, got.kind) == ("gripper", "route.request")]


def test_a_task_can_be_canceled(routed: Backend) -> None:
    backend = routed
    name = assign(backend, "stopper", x=40.0, y=0.0)
    backend.state("stopper", lambda p: p["velocity"]["linear"] > 0.2)
    backend.send("stopper", "task.cancel", {"taskId": name})
    failed = backend.wait("stopper", "task.failed", lambda p: p["taskId"] == name).payload
    assert "CANCEL" in failed["errorCode"]
    backend.state("stopper", lambda p: abs(p["velocity"]["linear"]) < 1e-9)


def test_a_task_fails_when_its_robot_is_stopped_for_safety(routed: Backend) -> None:
    backend = routed
    backend.event("pressing", "safety.estop.cleared", after=backend.mark())
    name = assign(backend, "pressing", x=90.0, y=0.0)
    failed = backend.wait("pressing", "task.failed", lambda p: p["taskId"] == name).payload
    assert failed["errorCode"]


def test_a_task_is_carried_out_once(backend: Backend) -> None:
    name = f"once-{uuid.uuid4()}"
    task = {"taskId": name, "taskType": "MISSION", "mission": {"steps": []}}
    mark = backend.mark()
    for _ in range(3):
        backend.send("hearer", "task.assign", task)
    backend.wait("hearer", "task.done", lambda p: p["taskId"] == name, after=mark)
    backend.send("hearer", "task.cancel", {"taskId": name})
    backend.wait("hearer", "events", lambda p: p.get("reason") == "ENDED_TASK", after=mark)
    done = [got for got in backend.messages[mark:] if got.kind == "task.done"]
    assert [got.payload["taskId"] for got in done if got.robot == "hearer"] == [name]


def test_a_route_that_was_not_requested_has_no_effect(backend: Backend) -> None:
    mark = backend.mark()
    steps = [{"type": "MOVE", "x": 9.0, "y": 9.0}]
    backend.send("hearer", "route.response", {"routeId": "foreign", "steps": steps})
    ignored = backend.event("hearer", "route.ignored", after=mark)
    assert (ignored["routeId"], ignored["reason"]) == ("foreign", "NOT_REQUESTED")


def test_a_task_without_its_target_is_refused(backend: Backend) -> None:
    backend.send("hearer", "task.assign", {"taskId": "empty", "taskType": "MOVE_TO_POINT"})
    failed = backend.wait("hearer", "task.failed", lambda p: p["taskId"] == "empty").payload
    assert failed["errorCode"]
