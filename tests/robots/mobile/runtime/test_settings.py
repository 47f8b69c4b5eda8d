"""The module Settings: what the backend wants, what holds, and what is said about it."""

from typing import Any

import pytest
from tests.robots.mobile.runtime.test_fleet import Plain

from understudy.robots.mobile.hardware_interface import MotorFault

LEFT, GRIPPER = 0, 2


def reported(fleet: Plain) -> dict[str, Any]:
    return fleet.payloads("settings.reported")[-1]


def test_a_connection_begins_with_the_settings_of_the_file() -> None:
    fleet = Plain().run(0.1)
    assert reported(fleet) == {
        "effectiveMotors": {
            "drive_left": {"maxSpeed": 1.2, "maxAcceleration": 0.8},
            "drive_right": {"maxSpeed": 1.2, "maxAcceleration": 0.8},
            "act_1": {"maxSpeed": 0.05, "maxAcceleration": 0.1},
        },
        "effectiveIo": {"motor_enable": True},
        "effectiveSafety": {
            "stopOnObstacle": True,
            "obstacleStopDistanceMeters": 0.6,
            "obstacleWarnDistanceMeters": 1.2,
        },
    }


def test_limits_can_be_lowered_and_never_raised_above_the_file() -> None:
    fleet = Plain().run(0.1)
    motors = {
        "drive_left": {"maxSpeed": 0.4},
        "drive_right": {"maxSpeed": 9.0, "maxAcceleration": 9.0},
    }
    asked = fleet.send("settings.desired", {"motors": motors})
    fleet.run(0.1)
    assert reported(fleet)["appliedFromCorrelationId"] == asked
    assert reported(fleet)["effectiveMotors"]["drive_left"]["maxSpeed"] == 0.4
    assert reported(fleet)["effectiveMotors"]["drive_right"] == {
        "maxSpeed": 1.2,
        "maxAcceleration": 0.8,
    }
    assert fleet.hardware.limits[:2].tolist() == [[0.4, 0.8, 1.0], [1.2, 0.8, 1.0]]
    fleet.command("MOVE_VELOCITY", linear=1.0)
    assert fleet.run(0.5).state()["velocity"]["linear"] == pytest.approx(0.4)
    fleet.send("settings.desired", {"motors": {"drive_left": {"maxSpeed": 1.2}}})
    assert fleet.run(0.5).state()["velocity"]["linear"] == pytest.approx(1.0)


def test_outputs_and_resets_and_what_cannot_be_applied() -> None:
    fleet = Plain().run(0.1)
    fleet.hardware.faults[GRIPPER] = MotorFault("SIM_FAULT", "injected")
    fleet.run(0.1)
    motors = {
        "act_1": {"resetRequested": True},
        "drive_left": {"resetRequested": True},
        "act_9": {"maxSpeed": 1.0},
    }
    fleet.send("settings.desired", {"motors": motors, "io": {"motor_enable": False, "lamp": True}})
    fleet.run(0.1)
    assert fleet.hardware.resets == [GRIPPER, LEFT]
    assert fleet.state()["status"] == "RUNNING"
    assert reported(fleet)["effectiveIo"] == {"motor_enable": False}
    assert not fleet.hardware.outs.any()
    assert reported(fleet)["ignored"] == [
        "motors.drive_left.resetRequested: NO_FAULT",
        "motors.act_9: no such motor",
        "io.lamp: no such output",
    ]


def test_the_warning_distance_is_never_below_the_stop_distance() -> None:
    fleet = Plain().run(0.1)
    fleet.send("settings.desired", {"safety": {"obstacleStopDistanceMeters": 2.0}})
    fleet.run(0.1)
    assert reported(fleet)["effectiveSafety"] == {
        "stopOnObstacle": True,
        "obstacleStopDistanceMeters": 2.0,
        "obstacleWarnDistanceMeters": 2.0,
    }


def test_a_speed_limit_holds_for_every_command() -> None:
    fleet = Plain().run(0.1)
    fleet.command("SET_SPEED_LIMIT", maxSpeedMps=0.25)
    fleet.command("MOVE_TO_POSE", x=3.0, y=0.0)
    fleet.run(3.0)
    assert fleet.state()["velocity"]["linear"] == pytest.approx(0.25)
    fleet.command("STOP")
    fleet.command("SET_SPEED_LIMIT", maxSpeedMps=5.0)
    fleet.command("MOVE_VELOCITY", linear=9.0)
    fleet.run(0.5)
    assert fleet.state()["velocity"]["linear"] == pytest.approx(1.2), "the file's limit stays"


def test_without_the_module_settings_are_not_supported() -> None:
    fleet = Plain({"capabilities__supportedModules": ["RobotCore"]}).run(0.1)
    fleet.send("settings.desired", {})
    fleet.send("task.cancel", {"taskId": "t"})
    fleet.run(0.1)
    assert fleet.payloads("settings.reported") == []
    assert fleet.events()[-2:] == ["message.unsupported"] * 2
    other = Plain({"capabilities__supportedModules": ["Settings"]}).run(0.1)
    other.command("STOP")
    assert other.run(0.1).acks() == ["STOP:REJECTED:CAPABILITY_NOT_SUPPORTED"]
