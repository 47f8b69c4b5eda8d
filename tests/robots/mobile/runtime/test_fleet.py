"""The runtime of mobile robots on virtual time: commands, streams, status, safety."""

from typing import Any

import pytest
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file
from tests.robots.mobile.runtime.plain_hardware import PlainHardware

from understudy.robots.mobile.config.layout import Layout


class Plain(DrivenFleet):
    """Robots on hardware that does at once what it is commanded."""

    def __init__(self, *changes: dict[str, Any], **options: Any) -> None:
        files = [robot_file(f"r{n}", **each) for n, each in enumerate(changes or ({},), 1)]
        self.hardware = PlainHardware(Layout(files))
        super().__init__(Layout(files), self.hardware, **options)


def test_a_robot_starts_and_says_so() -> None:
    fleet = Plain(seeds=[7]).run(0.1)
    started = fleet.payloads("events")[0]
    assert started == {"type": "simulation.started", "profileName": "default", "seed": 7}
    assert fleet.state()["status"] == "RUNNING"
    assert fleet.state()["runtimeMode"] == "MOCK"
    _, subject, envelope = fleet.log[0]
    assert subject.startswith("robot.r1.")
    assert envelope["ts"] == "2026-01-01T00:00:00.000Z"
    assert envelope["robotCode"] == "AMR-001"


def test_move_velocity_ends_after_its_duration() -> None:
    fleet = Plain().run(0.1)
    fleet.command("MOVE_VELOCITY", linear=0.5, durationSeconds=2.0)
    fleet.run(1.0)
    assert fleet.state()["velocity"] == {"linear": pytest.approx(0.5), "angular": 0.0}
    fleet.run(2.0)
    assert fleet.acks() == [f"MOVE_VELOCITY:{end}" for end in ("ACKED", "RUNNING", "DONE")]
    assert fleet.state()["pose"]["x"] == pytest.approx(1.0, abs=0.011)
    assert fleet.state()["velocity"]["linear"] == 0.0


def test_move_to_pose_ends_at_the_pose() -> None:
    fleet = Plain().run(0.1)
    fleet.command("MOVE_TO_POSE", x=2.0, y=1.0, yaw=0.5)
    fleet.run(15.0)
    pose = fleet.state()["pose"]
    assert fleet.acks()[-1] == "MOVE_TO_POSE:DONE"
    assert [pose["x"], pose["y"]] == pytest.approx([2.0, 1.0], abs=0.02)
    assert pose["yaw"] == pytest.approx(0.5, abs=0.03)


def test_an_action_moves_its_motor() -> None:
    fleet = Plain().run(0.1)
    fleet.command("EXECUTE_ACTION", functionKey="GRIPPER", targetPosition=0.04)
    fleet.run(2.0)
    assert fleet.acks()[-1] == "EXECUTE_ACTION:DONE"
    assert fleet.state()["motors"]["act_1"]["position"] == pytest.approx(0.04, abs=1e-3)


def test_an_action_that_takes_too_long_fails() -> None:
    fleet = Plain().run(0.1)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.08, timeoutSeconds=0.5)
    fleet.run(2.0)
    assert fleet.acks()[-1] == "EXECUTE_ACTION:FAILED:TIMEOUT"
    assert fleet.state()["motors"]["act_1"]["position"] < 0.03


def test_a_target_beyond_the_bounds_is_rejected_with_the_bounds() -> None:
    fleet = Plain().run(0.1)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.09)
    fleet.run(0.1)
    why = "INVALID_PARAMETERS: targetPosition 0.09; allowed: 0 … 0.08"
    assert fleet.acks() == [f"EXECUTE_ACTION:REJECTED:{why}"]


def test_every_message_is_acknowledged_after_it_was_handled() -> None:
    fleet = Plain().run(0.1)
    fleet.command("STOP")
    assert fleet.fleet.take_handled() == []
    fleet.run(0.02)
    fleet.send_raw("robot.r1.command.request", b"{")
    fleet.send_raw("robot.other.command.request", b"{")
    fleet.send_raw("nonsense", b"{")
    fleet.run(0.02)
    assert fleet.acked == ["ack-1"] * 4
    assert fleet.events()[-1] == "message.malformed"
    assert fleet.state()["status"] == "RUNNING"


def test_the_events_of_dropped_messages_name_the_messages() -> None:
    fleet = Plain({"capabilities__supportedModules": ["RobotCore"]}).run(0.1)
    fleet.send("command.request", {})
    fleet.send("task.cancel", {"taskId": "t"})
    fleet.run(0.02)
    sent = [each for _, subject, each in fleet.log if subject == "robot.r1.events"][-2:]
    assert [(each["payload"]["type"], each["correlationId"]) for each in sent] == [
        ("command.rejected", "b-1"),
        ("message.unsupported", "b-2"),
    ]


def test_events_about_tasks_and_routes_name_the_message() -> None:
    fleet = Plain().run(0.1)
    step = {"type": "WAIT", "seconds": 9.0}
    task = {"taskId": "t", "taskType": "MISSION", "mission": {"steps": [step]}}
    causes = [
        fleet.send("task.assign", task),
        fleet.send("task.assign", task),
        fleet.send("task.cancel", {"taskId": "other"}),
        fleet.send("route.response", {"routeId": "r", "steps": []}),
    ]
    fleet.run(0.1)
    sent = [each for _, subject, each in fleet.log if subject == "robot.r1.events"][-4:]
    types = ["task.accepted", "task.ignored", "task.ignored", "route.ignored"]
    assert [each["payload"]["type"] for each in sent] == types
    assert [each.get("correlationId") for each in sent] == causes


def test_the_same_message_is_carried_out_once() -> None:
    fleet = Plain().run(0.1)
    for _ in range(2):
        payload = {"commandType": "SET_SPEED_LIMIT", "parameters": {"maxSpeedMps": 0.3}}
        fleet.send("command.request", payload, message_id="same")
        fleet.run(0.1)
    assert len(fleet.acks()) == 3


def test_a_command_that_comes_with_the_connection_is_accepted() -> None:
    fleet = Plain().run(0.1)
    fleet.connect(False)
    fleet.run(0.5)
    fleet.connect()
    fleet.command("SET_SPEED_LIMIT", maxSpeedMps=0.3)
    fleet.run(0.1)
    assert fleet.acks() == [f"SET_SPEED_LIMIT:{status}" for status in ("ACKED", "RUNNING", "DONE")]


def test_streams_come_at_their_rates() -> None:
    fleet = Plain({}, {"streams__heartbeatHz": 0, "streams__stateHz": 3}).run(10.0)
    counts = [len(fleet.payloads(kind)) for kind in ("heartbeat", "state", "telemetry")]
    assert counts == [12, 103, 21], "one heartbeat and two states more at the connection"
    assert fleet.payloads("heartbeat", "r2") == fleet.payloads("heartbeat", "r2")[:1]
    assert len(fleet.payloads("state", "r2")) == 33
    beats = fleet.payloads("heartbeat")
    assert [beat["seq"] for beat in beats] == list(range(1, 13))
    assert len({beat["bootId"] for beat in beats}) == 1
    assert beats[-1]["uptimeSeconds"] == 10.0


def test_robots_with_other_tick_rates_live_side_by_side() -> None:
    fleet = Plain({"runtime__tickHz": 50}, {"runtime__tickHz": 60}, {"runtime__tickHz": 200})
    fleet.run(0.1)
    for robot in ("r1", "r2", "r3"):
        fleet.command("MOVE_VELOCITY", robot=robot, linear=0.5, durationSeconds=1.0)
    fleet.run(2.0)
    for robot in ("r1", "r2", "r3"):
        assert fleet.acks(robot)[-1] == "MOVE_VELOCITY:DONE"
        assert fleet.state(robot)["pose"]["x"] == pytest.approx(0.5, abs=0.02)
    assert fleet.hardware.steps == pytest.approx(2.1 * (50 + 60 + 200), abs=5)
