"""Drives that do not do what they are commanded: the command fails, with a reason."""

from typing import Any

import pytest
from tests.robots.mobile.runtime.test_fleet import Plain
from tests.robots.mobile.runtime.test_fleet_mock import Mock

RIGHT = 1
"""The row of a wheel of the example robot."""
MOVES: list[tuple[str, dict[str, Any]]] = [
    ("MOVE_TO_POSE", {"x": 1.0, "y": 0.0}),
    ("MOVE_VELOCITY", {"linear": 0.5, "durationSeconds": 1.0}),
    ("MOVE_VELOCITY", {"linear": 0.5}),
    ("EXECUTE_ACTION", {"motorId": "act_1", "targetPosition": 0.05}),
]


def enable(fleet: Mock, value: bool) -> None:
    fleet.send("settings.desired", {"io": {"motor_enable": value}})


@pytest.mark.parametrize(("name", "parameters"), MOVES)
def test_without_motor_enable_a_motion_fails(name: str, parameters: dict[str, Any]) -> None:
    fleet = Mock().run(0.1)
    enable(fleet, False)
    fleet.command(name, **parameters)
    assert fleet.run(0.1).acks()[-1] == f"{name}:FAILED:MOTORS_DISABLED"
    enable(fleet, True)
    fleet.command(name, **parameters)
    assert fleet.run(0.1).acks()[-1] == f"{name}:RUNNING"


@pytest.mark.parametrize(("name", "parameters"), [MOVES[0], MOVES[2]])
def test_motors_that_are_disabled_on_the_way_end_the_command(
    name: str, parameters: dict[str, Any]
) -> None:
    fleet = Mock().run(0.1)
    fleet.command(name, **parameters)
    fleet.run(0.5)
    enable(fleet, False)
    assert fleet.run(5.0).acks()[-1] == f"{name}:FAILED:MOTORS_DISABLED"


@pytest.mark.parametrize(("name", "parameters"), MOVES[:3])
def test_a_wheel_that_does_not_turn_ends_the_command(name: str, parameters: dict[str, Any]) -> None:
    fleet = Plain().run(0.1)
    fleet.hardware.stuck.add(RIGHT)
    fleet.command(name, **parameters)
    assert fleet.run(5.0).acks()[-1] == f"{name}:FAILED:DRIVE_NOT_FOLLOWING"


def test_a_robot_that_shall_creep_has_all_the_time() -> None:
    fleet = Mock().run(0.1)
    fleet.command("MOVE_TO_POSE", x=3.0, y=0.0)
    fleet.run(1.0)
    fleet.send("traffic.control", {"maxSpeedMps": 0.001})
    fleet.run(20.0)
    fleet.send("traffic.control", {"maxSpeedMps": None})
    assert fleet.run(10.0).acks()[-1] == "MOVE_TO_POSE:DONE"
