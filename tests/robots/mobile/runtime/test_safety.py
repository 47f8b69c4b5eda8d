"""What stops a mobile robot, what it says, and how it goes on."""

from typing import Any

import pytest
from tests.robots.mobile.runtime.test_fleet import Plain

from understudy.robots.mobile.hardware_interface import MotorFault

ESTOP, LIDAR, GRIPPER, LEFT = 0, 0, 2, 0
"""Rows of the example robot."""


def driving(**changes: Any) -> Plain:
    fleet = Plain(changes).run(0.1)
    fleet.command("MOVE_VELOCITY", linear=0.5)
    return fleet.run(0.5)


def speed(fleet: Plain) -> float:
    found: float = fleet.state()["velocity"]["linear"]
    return found


def test_the_emergency_stop_stops_the_robot_and_fails_its_command() -> None:
    fleet = driving()
    fleet.hardware.inputs[ESTOP] = True
    before = len(fleet.payloads("state"))
    fleet.run(0.02)
    assert len(fleet.payloads("state")) > before, "at once"
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:SAFETY_STOP"
    assert fleet.events()[-2:] == ["safety.estop.pressed", "command.failed"]
    state = fleet.run(0.3).state()
    assert (state["status"], state["safetyStopReason"]) == ("PAUSED", "ESTOP")
    assert state["estopPressed"]
    assert state["safetyStopActive"]
    assert speed(fleet) == 0.0
    fleet.command("MOVE_VELOCITY", linear=0.5)
    fleet.command("STOP")
    fleet.run(0.1)
    assert fleet.acks()[-4:] == [
        "MOVE_VELOCITY:REJECTED:SAFETY_STOP_ACTIVE",
        "STOP:ACKED",
        "STOP:RUNNING",
        "STOP:DONE",
    ]
    fleet.hardware.inputs[ESTOP] = False
    fleet.run(0.1)
    assert fleet.events()[-1] == "safety.estop.cleared"
    assert fleet.state()["status"] == "RUNNING"


def test_without_stop_on_estop_it_is_only_reported() -> None:
    fleet = driving(safety__stopOnEstop=False)
    fleet.hardware.inputs[ESTOP] = True
    fleet.run(0.2)
    assert fleet.state()["estopPressed"]
    assert speed(fleet) == pytest.approx(0.5)


def test_an_obstacle_stops_the_robot_until_the_way_is_free() -> None:
    fleet = driving()
    fleet.hardware.ahead[LIDAR] = fleet.hardware.nearest_obstacles[LIDAR] = 0.59
    fleet.run(0.1)
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:SAFETY_STOP"
    assert fleet.state()["safetyStopReason"] == "OBSTACLE"
    event = fleet.payloads("events")[-2]
    assert event == {
        "type": "safety.obstacle.detected",
        "aheadMeters": 0.59,
        "nearestObstacleMeters": 0.59,
    }
    fleet.hardware.ahead[LIDAR] = 0.64
    assert fleet.run(0.1).state()["status"] == "PAUSED", "hysteresis"
    fleet.hardware.ahead[LIDAR] = 0.66
    assert fleet.run(0.1).state()["status"] == "RUNNING"
    assert fleet.events()[-1] == "safety.obstacle.cleared"


def test_an_obstacle_does_not_stop_a_robot_that_stands() -> None:
    fleet = Plain().run(0.1)
    fleet.hardware.ahead[LIDAR] = 0.1
    assert fleet.run(0.2).state()["status"] == "RUNNING"


def test_a_fast_robot_stops_earlier_than_the_stop_distance() -> None:
    fleet = driving(safety__obstacleStopDistanceMeters=0, safety__obstacleWarnDistanceMeters=0)
    braking = 0.5**2 / 2 / 1.0
    fleet.hardware.ahead[LIDAR] = braking + 0.02 + 2 * 0.5 * 0.02
    assert fleet.run(0.02).state()["status"] == "RUNNING"
    fleet.hardware.ahead[LIDAR] = braking + 0.02 + 0.5 * 0.02
    fleet.run(0.02)
    assert fleet.state()["safetyStopReason"] == "OBSTACLE"


def test_within_the_warning_distance_it_drives_so_slowly_that_it_can_stop() -> None:
    fleet = Plain({"safety__obstacleStopDistanceMeters": 0.05}).run(0.1)
    fleet.hardware.ahead[LIDAR] = fleet.hardware.nearest_obstacles[LIDAR] = 0.4
    fleet.run(0.1)
    fleet.command("MOVE_VELOCITY", linear=1.2)
    fleet.run(0.5)
    assert 0.3 < speed(fleet) < (2 * 1.0 * 0.4) ** 0.5
    assert fleet.state()["status"] == "RUNNING"
    assert fleet.payloads("telemetry")[-1]["lidar"]["obstacleDetected"]


def test_the_backend_can_switch_the_obstacle_stop_off() -> None:
    fleet = driving()
    fleet.hardware.ahead[LIDAR] = 0.3
    fleet.run(0.1)
    fleet.send("settings.desired", {"safety": {"stopOnObstacle": False}})
    fleet.run(0.1)
    assert fleet.state()["status"] == "RUNNING"
    fleet.command("MOVE_VELOCITY", linear=-0.3, durationSeconds=1)
    assert fleet.run(2.0).acks()[-1] == "MOVE_VELOCITY:DONE"


def test_a_blind_robot_stands() -> None:
    fleet = driving()
    fleet.hardware.devices_up[LIDAR] = False
    fleet.run(0.1)
    state = fleet.state()
    assert state["safetyStopReason"] == "INTERNAL_FAULT"
    assert [fault["code"] for fault in state["faults"]] == ["LIDAR_NOT_CONNECTED"]
    assert state["faultLevel"] == "ERROR"
    assert not fleet.run(0.6).payloads("telemetry")[-1]["health"]["simulatedHardwareOk"]


def test_a_drive_motor_with_a_fault_is_an_error_until_it_is_reset() -> None:
    fleet = driving()
    fleet.hardware.faults[LEFT] = MotorFault("SIM_FAULT", "injected")
    fleet.run(0.1)
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:REQUIRED_MOTOR_UNAVAILABLE"
    state = fleet.state()
    assert (state["status"], state["faultLevel"]) == ("ERROR", "ERROR")
    assert state["motors"]["drive_left"]["faultCode"] == "SIM_FAULT"
    assert state["motors"]["drive_left"]["mode"] == "ERROR"
    assert "motor.fault" in fleet.events()
    fleet.command("MOVE_VELOCITY", linear=0.5)
    fleet.command("RESET_MOTOR", motorId="drive_left")
    fleet.run(0.1)
    assert fleet.acks()[-4:] == [
        "MOVE_VELOCITY:REJECTED:ROBOT_NOT_READY",
        *(f"RESET_MOTOR:{status}" for status in ("ACKED", "RUNNING", "DONE")),
    ]
    assert fleet.state()["status"] == "RUNNING"
    assert fleet.events()[-1] == "motor.recovered"


def test_a_functional_motor_with_a_fault_is_a_warning() -> None:
    fleet = Plain().run(0.1)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.08)
    fleet.run(0.2)
    fleet.hardware.silent.add(GRIPPER)
    fleet.run(0.1)
    assert fleet.acks()[-1] == "EXECUTE_ACTION:FAILED:REQUIRED_MOTOR_UNAVAILABLE"
    assert fleet.state()["status"] == "WARNING"
    assert fleet.state()["motors"]["act_1"]["connected"] is False
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.08)
    fleet.command("MOVE_VELOCITY", linear=0.5)
    fleet.run(0.1)
    assert fleet.acks()[-3:] == [
        "EXECUTE_ACTION:REJECTED:REQUIRED_MOTOR_UNAVAILABLE",
        "MOVE_VELOCITY:ACKED",
        "MOVE_VELOCITY:RUNNING",
    ]


def test_a_policy_can_forbid_driving_in_a_warning() -> None:
    fleet = driving(runtime__healthPolicy__allowDriveInWarning=False)
    fleet.hardware.silent.add(GRIPPER)
    fleet.run(0.1)
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:ROBOT_NOT_READY"
    fleet.command("MOVE_VELOCITY", linear=0.5)
    assert fleet.run(0.1).acks()[-1] == "MOVE_VELOCITY:REJECTED:ROBOT_NOT_READY"


def test_without_nats_the_robot_stands_and_it_comes_back() -> None:
    fleet = driving()
    fleet.connect(False)
    count = len(fleet.log)
    fleet.run(1.0)
    assert len(fleet.log) == count, "nothing is sent"
    assert not fleet.hardware.velocity.any()
    fleet.connect()
    fleet.run(0.02)
    kinds = [address.removeprefix("robot.r1.") for _, address, _ in fleet.log[count:]]
    assert kinds == ["heartbeat", "state", "state", "command.ack", "events", "settings.reported"]
    states = fleet.payloads("state")[-2:]
    assert [state["status"] for state in states] == ["OFFLINE", "RUNNING"]
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:ROBOT_NOT_READY"


def test_a_robot_that_needs_no_nats_drives_on_without_it() -> None:
    fleet = driving(runtime__healthPolicy__requireNatsForMotion=False)
    fleet.connect(False)
    fleet.run(1.0)
    assert fleet.hardware.velocity.any()
    fleet.connect()
    assert fleet.run(0.1).state()["status"] == "RUNNING"


def test_an_operator_holds_a_robot() -> None:
    fleet = driving()
    fleet.fleet.hold(0, True, fleet.now)
    fleet.run(0.1)
    assert fleet.state()["safetyStopReason"] == "MANUAL_HOLD"
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:SAFETY_STOP"
    fleet.fleet.hold(0, False, fleet.now)
    assert fleet.run(0.1).state()["status"] == "RUNNING"


def test_a_robot_that_waits_for_its_settings_does_not_move() -> None:
    fleet = Plain({"runtime__startupPolicy__settingsBootstrapMode": "BACKEND"}).run(0.1)
    fleet.command("MOVE_VELOCITY", linear=0.5)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.01)
    fleet.run(0.1)
    refused = "REJECTED:ROBOT_NOT_READY"
    assert fleet.acks() == [f"MOVE_VELOCITY:{refused}", f"EXECUTE_ACTION:{refused}"]
    fleet.send("settings.desired", {})
    fleet.command("MOVE_VELOCITY", linear=0.5)
    assert fleet.run(0.1).acks()[-1] == "MOVE_VELOCITY:RUNNING"
