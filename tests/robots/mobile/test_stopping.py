"""The emergency stop: wheels brake within their limits, and the robot stops as soon as they can."""

import math

import numpy as np
import pytest
from tests.robots.mobile.random_worlds import DRIVES, robot
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet

from understudy.robots.mobile.config.layout import Layout, drives_of, wheel_rows, wheels_of
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.wheels import DIRECT
from understudy.units import NS_PER_SECOND

MOTIONS: list[dict[str, float]] = [
    {"linear": 3.0},
    {"linear": -3.0},
    {"linear": 1.0, "angular": 0.7},
    {"linear": -0.5, "angular": 0.6},
    {"linear": 0.0, "angular": 2.0},
]


def fleet_of(rate: int) -> tuple[DrivenFleet, MockHardware]:
    """Robots of all drives for each motion, in an empty world."""
    draw, count = np.random.default_rng(rate), len(DRIVES) * len(MOTIONS)
    layout = Layout([robot(n, rate, draw) for n in range(count)])
    hardware = MockHardware(layout, [Surroundings()] * count, range(count))
    return DrivenFleet(layout, hardware), hardware


@pytest.mark.parametrize("rate", [50, 200])
def test_an_emergency_stop_stops_within_the_limits_of_the_wheels(rate: int) -> None:
    fleet, hardware = fleet_of(rate)
    fleet.run(0.1)
    for row in range(len(fleet.layout.robots)):
        fleet.command("MOVE_VELOCITY", robot=f"r{row}", **MOTIONS[row // len(DRIVES)])
    fleet.run(6.0)
    for row in range(len(fleet.layout.robots)):
        hardware.press_estop(row, True)
    rows = wheel_rows(fleet.layout)[~wheels_of(fleet.layout).steers]
    robots = hardware.motors.robot[rows]
    direct = drives_of(fleet.layout)[robots] == DIRECT  # without wheels that could brake too hard
    limit = hardware.motors.limits[rows, 2]
    start, tick = hardware.motors.state[rows], 1.0 / rate
    step(fleet, rate)  # at its end the runtime sees the stop
    speed = np.abs(start[:, 1])
    assert speed.max() > 0.3
    while hardware.motors.body[:, 3:6].any():
        before = hardware.motors.state[rows, 1]
        step(fleet, rate)
        change = np.abs(hardware.motors.state[rows, 1] - before)
        assert (direct | (change <= limit * tick + 1e-9)).all()
    rolled = np.abs(hardware.motors.state[rows, 0] - start[:, 0])
    fastest = np.array([speed[robots == robot].max() for robot in robots])
    braking = fastest / limit  # seconds; slower wheels brake in proportion
    assert (rolled <= speed * (braking / 2 + tick) + limit * tick**2 / 8 + 1e-9).all()


def step(fleet: DrivenFleet, rate: int) -> None:
    fleet.now += NS_PER_SECOND // rate
    fleet.run(0.0)


def test_poses_are_reached_by_whole_robots() -> None:
    check_poses(24)


@pytest.mark.soak
def test_a_thousand_poses_are_reached_by_whole_robots() -> None:
    check_poses(1000)


def check_poses(count: int) -> None:
    """Runtime and hardware together: MOVE_TO_POSE ends within 0.02 m and 2°."""
    draw = np.random.default_rng(count)
    poses, goals = draw.uniform((-5, -5, -math.pi), (5, 5, math.pi), (2, count, 3))
    starts = [
        {"initialState": {"pose": {"x": x, "y": y, "yaw": yaw}}} for x, y, yaw in poses.tolist()
    ]
    rates = (50, 73, 200)
    layout = Layout([robot(n, rates[n % 3], draw, profile=starts[n]) for n in range(count)])
    hardware = MockHardware(layout, [Surroundings()] * count, range(count))
    fleet = DrivenFleet(layout, hardware).run(0.1)
    for n in range(count):
        x, y, yaw = goals[n].tolist()
        fleet.command("MOVE_TO_POSE", robot=f"r{n}", x=x, y=y, **({"yaw": yaw} if n % 2 else {}))
    for _ in range(30):
        fleet.run(5.0)
        if not fleet.fleet.busy():
            break
    for n in range(count):
        assert fleet.acks(f"r{n}")[-1] == "MOVE_TO_POSE:DONE", n
        x, y, yaw = hardware.pose(n)
        assert math.dist((x, y), goals[n, :2]) <= 0.02
        if n % 2:
            assert abs(math.remainder(yaw - goals[n, 2], 2 * math.pi)) <= math.radians(2)
