"""Robots with a lidar never touch an obstacle, whatever they are commanded."""

import math
from typing import Any

import pytest
from tests.robots.mobile.random_worlds import SILENT, Figures, Watched
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware import MockHardware, Surroundings


def check(figures: Figures, worlds: int) -> None:
    assert not figures.touches
    assert figures.least >= 0.0
    assert figures.travelled > 4 * worlds
    assert figures.stops > worlds


@pytest.mark.parametrize(("worlds", "rate", "seed"), [(11, 50, 1), (8, 100, 2), (6, 200, 3)])
def test_no_robot_touches_an_obstacle(worlds: int, rate: int, seed: int) -> None:
    check(Watched(worlds, seed, rate).watch(6.0), worlds)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_robot_touches_an_obstacle_in_five_hundred_worlds(seed: int) -> None:
    figures = Watched(25, seed, (50, 100, 200)[seed % 3]).watch(20.0)
    print(figures)
    check(figures, 25)


def alone(world: dict[str, Any], **changes: Any) -> tuple[DrivenFleet, MockHardware]:
    file = robot_file("r1", **SILENT, runtime__simulationProfile={"world": world}, **changes)
    hardware = MockHardware(Layout([file]), [Surroundings()], [0])
    return DrivenFleet(Layout([file]), hardware).run(0.1), hardware


def limits(speed: float, braking: float) -> dict[str, Any]:
    """Changes of the drive motors of the example robot."""
    return {
        f"motors__{n}__limits__{name}__value": value
        for n in (0, 1)
        for name, value in (("maxSpeed", speed), ("maxDeceleration", braking))
    }


def test_a_robot_is_not_faster_than_its_lidar_can_see() -> None:
    """It would need 16 m to stop, and sees 4 m."""
    wall = {"id": "wall", "shape": "segment", "x": 40, "y": -3, "x2": 40, "y2": 3}
    fleet, hardware = alone(
        {"obstacles": [wall]}, io__devices__0__config={"maxRangeMeters": 4.0}, **limits(4.0, 0.5)
    )
    fleet.command("MOVE_VELOCITY", linear=4.0)
    for _ in range(400):
        fleet.run(0.1)
        assert hardware.clearance(0) > 0.0
    assert fleet.events()[-2:] == ["safety.obstacle.detected", "command.failed"]
    assert hardware.pose(0)[0] > 35.0
    assert hardware.velocity(0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("angle", [0.4, 1.0, 2.0, 2.8])
def test_a_long_robot_that_turns_fast_stops_before_a_post(angle: float) -> None:
    """Its corners travel many times as far as its wheels while it brakes."""
    x, y = 1.4 * math.cos(angle), 1.4 * math.sin(angle)
    fleet, hardware = alone(
        {"obstacles": [{"id": "post", "shape": "circle", "x": x, "y": y, "radiusMeters": 0.005}]},
        dimensions={"lengthMm": 3000, "widthMm": 400, "heightMm": 350, "trackWidthMm": 300},
        safety__obstacleStopDistanceMeters=0.0,
        safety__obstacleWarnDistanceMeters=0.0,
        **limits(1.2, 0.5),
    )
    fleet.command("MOVE_VELOCITY", linear=0.0, angular=8.0)
    for _ in range(100):
        fleet.run(0.05)
        assert hardware.clearance(0) > 0.0
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:SAFETY_STOP"
