"""Tasks on the real runtime with MOCK hardware, on virtual time."""

import hashlib
import math
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.robots.mobile.config.fleet_keys import PlannerConfig
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.planner.built_in import BuiltInPlanner, body_of
from understudy.robots.mobile.planner.grid import line_clearance

PROFILE = "runtime__simulationProfile__"
ROUTE = [
    {"type": "MOVE", "x": float(2 * n), "y": 0.0, "nodeId": name} for n, name in enumerate("abc", 1)
]
GRIP = {"functionKey": "GRIPPER", "targetPosition": 0.04}


def post(name: str, x: float, y: float, radius: float) -> dict[str, Any]:
    return {"id": name, "x": x, "y": y, "radiusMeters": radius}


class Simulated(DrivenFleet):
    """Robots in MOCK mode. ``plans``: with the built-in planner."""

    def __init__(self, *changes: dict[str, Any], plans: bool = True, **options: Any) -> None:
        files = [robot_file(f"r{n}", **each) for n, each in enumerate(changes or ({},), 1)]
        layout = Layout(files)
        self.hardware = MockHardware(layout, [Surroundings()] * len(files), range(len(files)))
        self.planner = BuiltInPlanner(PlannerConfig(), layout, self.hardware, None)
        super().__init__(layout, self.hardware, planner=self.planner if plans else None, **options)
        self.run(0.1)

    def go_to(self, name: str, x: float, y: float, *, robot: str = "r1", **more: Any) -> None:
        place = {"x": x, "y": y} | more
        task = {"taskId": name, "taskType": "MOVE_TO_POINT", "moveToPoint": place}
        self.send("task.assign", task, robot=robot)

    def mission(self, name: str, steps: list[dict[str, Any]]) -> None:
        self.send(
            "task.assign", {"taskId": name, "taskType": "MISSION", "mission": {"steps": steps}}
        )

    def ended(self, robot: str = "r1") -> list[str]:
        """How tasks ended, in order."""
        found = []
        for _, subject, envelope in self.log:
            if subject in (f"robot.{robot}.task.done", f"robot.{robot}.task.failed"):
                payload = envelope["payload"]
                found.append(f"{payload['taskId']}:{payload.get('errorCode', 'done')}")
        return found

    def run_until_ended(self, count: int, most: float = 300.0) -> "Simulated":
        for _ in range(round(most)):
            if (
                sum(len(self.ended(f"r{n}")) for n in range(1, len(self.layout.robots) + 1))
                >= count
            ):
                return self
            self.run(1.0)
        raise AssertionError(f"{self.ended()} after {most} s")

    def away(self, x: float, y: float, row: int = 0) -> float:
        """The distance of the true pose from a point."""
        pose = self.hardware.pose(row)
        return math.hypot(pose[0] - x, pose[1] - y)


# ── whole tasks ─────────────────────────────────────────────────────────────────────────────────


def test_a_task_without_a_backend_goes_around_an_obstacle() -> None:
    fleet = Simulated({f"{PROFILE}world__obstacles": [post("p", 4.0, 0.0, 0.3)]})
    fleet.go_to("t", 8.0, 0.0, yaw=1.0)
    least = math.inf
    while not fleet.ended():
        fleet.run(0.5)
        least = min(least, fleet.hardware.clearance(0))
        assert fleet.now < 120e9
    assert fleet.ended() == ["t:done"]
    assert fleet.away(8.0, 0.0) <= 0.02
    assert fleet.hardware.pose(0)[2] == pytest.approx(1.0, abs=math.radians(2))
    assert least >= 0.6, "the distance at which the robot would stop"
    events = fleet.events()
    assert "route.planned" in events
    assert not [event for event in events if event.startswith("safety")]


def test_the_time_of_a_route_is_right() -> None:
    fleet = Simulated({f"{PROFILE}world__obstacles": [post("p", 4.0, 0.0, 0.3)]})
    fleet.go_to("t", 8.0, 0.0)
    fleet.run_until_ended(1)
    (planned,) = [each for each in fleet.payloads("events") if each["type"] == "route.planned"]
    began, over = (
        next(at for at, subject, _ in fleet.log if subject.endswith(kind)) / 1e9
        for kind in ("task.progress", "task.done")
    )
    assert over - began == pytest.approx(planned["etaSecondsTotal"], rel=0.1, abs=1.0)


def test_a_route_of_a_backend_is_followed_with_actions() -> None:
    fleet = Simulated()
    fleet.go_to("t", 6.0, 0.0)
    fleet.run(0.1)
    (asked,) = fleet.payloads("route.request")
    assert asked["destination"] == {"x": 6.0, "y": 0.0}
    steps = [*ROUTE, {"type": "TURN", "yaw": 1.57}, {"type": "ARRIVE_ACTIONS", "actions": [GRIP]}]
    fleet.send("route.response", {"routeId": "r", "taskId": "t", "steps": steps})
    fleet.run_until_ended(1)
    assert fleet.ended() == ["t:done"]
    assert fleet.away(6.0, 0.0) <= 0.02
    assert fleet.state()["motors"]["act_1"]["position"] == pytest.approx(0.04, abs=1e-3)
    nodes = [each.get("currentNodeId") for each in fleet.payloads("traffic.state")]
    assert sorted({node for node in nodes if node}) == ["a", "b", "c"]
    routes = {each.get("routeId") for each in fleet.payloads("traffic.state")}
    assert routes == {None, "r"}
    assert fleet.planner.silent
    assert fleet.acks() == [], "steps of a task are not acked as commands"


def four_wheels(model: str) -> dict[str, Any]:
    limits = {
        "maxSpeed": {"unit": "m/s", "value": 1.2},
        "maxAcceleration": {"unit": "m/s2", "value": 0.8},
        "maxDeceleration": {"unit": "m/s2", "value": 1.0},
    }
    wheels = [
        {"motorId": key, "role": "DRIVE", "functionKey": key, "limits": limits}
        | {"driver": {"type": "MOCK"}}
        for key in ("FRONT_LEFT", "FRONT_RIGHT", "REAR_LEFT", "REAR_RIGHT")
    ]
    return {"motors": wheels, "io__digitalInputs": [], f"{PROFILE}driveModel": model}


def random_world(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    places = rng.uniform(-8, 8, (8, 2)).tolist()
    found = [post(f"p{n}", x, y, rng.uniform(0.1, 0.6)) for n, (x, y) in enumerate(places)]
    far = [each for each in found if math.hypot(each["x"], each["y"]) > 2.5]
    quiet = {f"streams__{name}Hz": 0 for name in ("heartbeat", "state", "telemetry", "traffic")}
    return quiet | {f"{PROFILE}world__obstacles": far}


def check_random_worlds(seeds: range, model: str) -> None:
    """On a route with the clearance of the first search robots never stop for an obstacle, and
    they arrive."""
    drive = {} if model == "differential" else four_wheels(model)
    fleet = Simulated(*[random_world(seed) | drive for seed in seeds])
    goals = {}
    for row, seed in enumerate(seeds):
        x, y = np.random.default_rng(1000 + seed).uniform(-9, 9, 2).tolist()
        goals[row] = x, y
        fleet.go_to("t", x, y, robot=f"r{row + 1}")
    fleet.run_until_ended(len(seeds))
    wide = 0
    for row, goal in goals.items():
        robot = f"r{row + 1}"
        (end,) = fleet.ended(robot)
        planned = [e for e in fleet.payloads("events", robot) if e["type"] == "route.planned"]
        if not planned:
            assert end == "t:ROUTE_NOT_FOUND"
            continue
        obstacles = fleet.hardware.obstacles(row)
        points = [(0.0, 0.0), *((step["x"], step["y"]) for step in planned[0]["steps"])]
        least = min(
            line_clearance(np.array([*one, *other]), *obstacles) for one, other in pairwise(points)
        )
        assert least > 0
        if least >= body_of(fleet.layout.robots[row]).clearances[0] - 1e-6:
            wide += 1
            assert end == "t:done"
            assert not [e for e in fleet.events(robot) if e.startswith("safety")], robot
            assert fleet.away(*goal, row) <= 0.02
    assert wide >= len(seeds) / 4


MODELS = ["differential", "mecanum", "ackermann"]


@pytest.mark.parametrize("model", MODELS)
def test_planned_routes_in_random_worlds(model: str) -> None:
    check_random_worlds(range(12), model)


@pytest.mark.soak
@pytest.mark.parametrize("model", MODELS)
def test_planned_routes_in_many_random_worlds(model: str) -> None:
    check_random_worlds(range(100, 340), model)


# ── traffic ─────────────────────────────────────────────────────────────────────────────────────


def on_a_route(**changes: Any) -> Simulated:
    fleet = Simulated(changes)
    fleet.go_to("t", 6.0, 0.0)
    fleet.run(0.1)
    fleet.send("route.response", {"routeId": "r", "steps": ROUTE})
    fleet.run(0.1)
    return fleet


def test_the_robot_is_held_at_a_node_and_goes_on() -> None:
    fleet = on_a_route()
    fleet.send("traffic.control", {"holdAtNodeId": "b"})
    fleet.run(30)
    state = fleet.state()
    assert (state["status"], state["safetyStopReason"]) == ("PAUSED", "TRAFFIC_HOLD")
    assert state["velocity"]["linear"] == 0.0
    assert fleet.away(4.0, 0.0) <= 0.02
    fleet.send("traffic.control", {"releaseHold": True})
    fleet.run_until_ended(1)
    assert fleet.ended() == ["t:done"]
    holds = [event for event in fleet.events() if event.startswith("traffic")]
    assert holds == [f"traffic.hold.{each}" for each in ("pending", "active", "released")]


def test_a_hold_at_the_last_node_brakes_the_robot_and_the_step_goes_on() -> None:
    fleet = on_a_route()
    while fleet.away(2.0, 0.0) > 0.02 or fleet.payloads("task.progress")[-1]["step"] < 1:
        fleet.run(0.2)
    fleet.run(1.5)
    assert fleet.state()["velocity"]["linear"] > 0.5
    fleet.send("traffic.control", {"holdAtNodeId": "a"})
    fleet.run(3)
    held = fleet.hardware.pose(0)
    assert fleet.state()["safetyStopReason"] == "TRAFFIC_HOLD"
    fleet.run(5)
    assert fleet.hardware.pose(0) == held
    assert 2.0 < held[0] < 4.0
    fleet.send("traffic.control", {"releaseHold": True})
    fleet.run_until_ended(1)
    assert fleet.ended() == ["t:done"]


def test_an_input_holds_the_robot_as_traffic_control_does() -> None:
    hold = {"ioId": "hold", "role": "TRAFFIC_HOLD"}
    fleet = on_a_route(io__digitalInputs=[hold])
    fleet.hardware.set_input(0, "hold", True)
    fleet.run(5)
    assert fleet.state()["safetyStopReason"] == "TRAFFIC_HOLD"
    here = fleet.hardware.pose(0)
    assert here[0] < 1.5
    fleet.hardware.set_input(0, "hold", False)
    fleet.run_until_ended(1)
    assert fleet.ended() == ["t:done"]


def test_traffic_control_limits_the_speed() -> None:
    fleet = on_a_route()
    fleet.send("traffic.control", {"maxSpeedMps": 0.4, "targetSpeedMps": 0.3})
    began = fleet.now
    fleet.run(10)
    fastest = max(
        envelope["payload"]["velocity"]["linear"]
        for at, subject, envelope in fleet.log
        if subject == "robot.r1.state" and at > began + 0.3e9
    )
    assert 0.28 <= fastest <= 0.3 + 1e-9
    fleet.send("traffic.control", {"targetSpeedMps": None, "maxSpeedMps": 0})
    fleet.run(5)
    assert fleet.state()["velocity"]["linear"] == 0.0
    assert fleet.state()["safetyStopReason"] == "TRAFFIC_HOLD"
    fleet.send("traffic.control", {"maxSpeedMps": None})
    fleet.run_until_ended(1)
    assert max(state["velocity"]["linear"] for state in fleet.payloads("state")) > 0.9


# ── how tasks end ───────────────────────────────────────────────────────────────────────────────


def two_tasks() -> Simulated:
    """A robot that drives with its first task."""
    fleet = Simulated()
    fleet.mission("t1", [{"type": "MOVE", "x": 6.0, "y": 0.0}])
    fleet.mission("t2", [{"type": "MOVE", "x": 0.0, "y": 0.0}])
    fleet.run(3)
    assert fleet.state()["velocity"]["linear"] > 0.5
    return fleet


def test_an_emergency_stop_fails_the_task_and_the_next_one_waits() -> None:
    fleet = two_tasks()
    fleet.hardware.press_estop(0, True)
    fleet.run(10)
    assert fleet.ended() == ["t1:SAFETY_STOP"]
    assert fleet.state()["velocity"]["linear"] == 0.0
    fleet.hardware.press_estop(0, False)
    fleet.run_until_ended(2)
    assert fleet.ended() == ["t1:SAFETY_STOP", "t2:done"]


def test_a_fault_of_the_drive_fails_the_task_and_the_next_one_waits() -> None:
    fleet = two_tasks()
    fleet.hardware.inject_fault(0, "drive", "HOT")
    fleet.run(5)
    assert fleet.ended() == ["t1:REQUIRED_MOTOR_UNAVAILABLE"]
    assert fleet.state()["status"] == "ERROR"
    for motor in ("drive_left", "drive_right"):
        fleet.command("RESET_MOTOR", motorId=motor)
    fleet.run_until_ended(2)
    assert fleet.ended()[1] == "t2:done"


def test_without_nats_the_task_fails_and_the_next_one_waits() -> None:
    fleet = two_tasks()
    fleet.connect(False)
    fleet.run(20)
    assert fleet.ended() == [], "nothing can be sent"
    fleet.connect()
    fleet.run_until_ended(2)
    assert fleet.ended() == ["t1:ROBOT_NOT_READY", "t2:done"]


def test_a_stop_command_ends_all_tasks() -> None:
    fleet = two_tasks()
    fleet.command("STOP")
    fleet.run(10)
    assert fleet.ended() == ["t1:STOPPED", "t2:STOPPED"]
    assert fleet.acks() == [f"STOP:{each}" for each in ("ACKED", "RUNNING", "DONE")]
    assert fleet.state()["velocity"]["linear"] == 0.0


def test_an_operator_ends_all_tasks() -> None:
    fleet = two_tasks()
    fleet.fleet.stop(0, fleet.now)
    fleet.run(10)
    assert fleet.ended() == ["t1:STOPPED", "t2:STOPPED"]
    assert fleet.state()["velocity"]["linear"] == 0.0


def test_a_canceled_task_brakes_and_the_next_one_begins() -> None:
    fleet = two_tasks()
    fleet.send("task.cancel", {"taskId": "t1"})
    fleet.run_until_ended(2)
    assert fleet.ended() == ["t1:CANCELED", "t2:done"]
    assert fleet.away(0.0, 0.0) <= 0.02


def test_an_obstacle_that_appears_fails_the_task() -> None:
    scripts = [
        {"atSeconds": 3.0, "action": "spawn", "obstacle": post("person", 4.5, 0.0, 0.3)},
        {"atSeconds": 20.0, "action": "remove", "id": "person"},
    ]
    fleet = Simulated({f"{PROFILE}scripts__obstacles": scripts})
    fleet.go_to("t1", 8.0, 0.0)
    fleet.go_to("t2", 0.0, 0.0)
    fleet.run(15)
    assert fleet.ended() == ["t1:SAFETY_STOP"]
    assert fleet.hardware.clearance(0) > 0.05
    fleet.run_until_ended(2)
    assert fleet.ended()[1] == "t2:done"


# ── the same bytes ──────────────────────────────────────────────────────────────────────────────


def day(fleet: Simulated, part: int) -> None:
    match part:
        case 0:
            fleet.go_to("a", 6.0, 1.0)
            fleet.mission("b", [*ROUTE[:1], {"type": "WAIT", "seconds": 1.23}, *ROUTE[1:2]])
        case 2:
            fleet.send("traffic.control", {"holdAtNodeId": "a", "maxSpeedMps": 0.7})
        case 5:
            fleet.send("traffic.control", {"releaseHold": True})
        case 6:
            fleet.go_to("c", -2.0, -2.0)
            fleet.send("task.cancel", {"taskId": "unknown"})


@cache
def digest(*, slices: int = 1, restart_after: int | None = None) -> str:
    world = {f"{PROFILE}world__obstacles": [post("p", 1.0, -1.6, 0.3)]}
    fleet = Simulated(world)
    for part in range(10):
        day(fleet, part)
        fleet.run(7.0, slices)
        if part == restart_after:
            fleet = restarted(fleet, world)
    assert fleet.ended() == ["a:done", "b:done", "c:done"]
    return hashlib.sha256(fleet.data).hexdigest()


def restarted(old: Simulated, world: dict[str, Any]) -> Simulated:
    """A new fleet that goes on from a snapshot."""
    saved = msgspec.json.encode([old.fleet.save(), old.hardware.save()])
    new = Simulated(world, connect=False)
    fleet_state, hardware_state = msgspec.json.decode(saved)
    new.fleet.load(fleet_state)
    new.hardware.load(hardware_state)
    new.now, new.sent, new.data, new.log = old.now, old.sent, bytearray(old.data), old.log
    return new


def test_other_slices_give_the_same_bytes() -> None:
    assert digest(slices=13) == digest()


@pytest.mark.parametrize("part", [0, 3, 6])
def test_a_snapshot_gives_the_same_bytes(part: int) -> None:
    assert digest(restart_after=part) == digest()
