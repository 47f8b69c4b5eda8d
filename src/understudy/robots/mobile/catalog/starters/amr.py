"""Tests of a fleet backend: a mobile robot with a real NATS server, on virtual time."""

from pathlib import Path

import pytest

from understudy.robots.mobile.stand_in import MobileRobot

HERE = Path(__file__).parent
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))


def test_a_robot_drives_to_its_pose(mobile_robot: MobileRobot) -> None:
    # a backend of your own connects to mobile_robot.server
    outcome = mobile_robot.command("MOVE_TO_POSE", x=2.0, y=1.0, yaw=0.0)
    assert outcome.status == "DONE"
    assert mobile_robot.state["pose"]["x"] == pytest.approx(2.0, abs=0.05)


def test_a_task_takes_a_route_around_the_post(mobile_robot: MobileRobot) -> None:
    assert mobile_robot.task(6.0, 4.5).status == "DONE"


def test_an_emergency_stop_fails_the_command(mobile_robot: MobileRobot) -> None:
    mobile_robot.command("MOVE_VELOCITY", linear=0.3)
    mobile_robot.forward(seconds=1)
    mobile_robot.inject("emergency_stop")
    assert mobile_robot.wait("command.ack", status="FAILED")["reason"] == "SAFETY_STOP"
