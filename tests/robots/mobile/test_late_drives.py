"""Robots in MOCK mode whose drives answer late, follow with a lag and misread: MOVE_TO_POSE."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.robots.mobile import drive
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware import MockHardware, Surroundings

HZ = 50
TOLERANCE = 0.02
QUIET = {f"streams__{name}Hz": 0 for name in ("state", "telemetry", "traffic", "heartbeat")}
WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
POSES_IN_TESTS, POSES_IN_SOAK = 50, 1000
Goal = tuple[float, float, float | None]


def late_robot(name: str, model: str, response: dict[str, float], **changes: Any) -> RobotFile:
    profile = {"driveModel": model, "driveResponse": response}
    motor = {
        "role": "DRIVE",
        "driver": {"type": "MOCK"},
        "limits": {
            "maxSpeed": {"unit": "m/s", "value": 1.2},
            "maxAcceleration": {"unit": "m/s2", "value": 0.8},
            "maxDeceleration": {"unit": "m/s2", "value": 1.0},
        },
    }
    wheels = [{**motor, "motorId": each, "functionKey": each} for each in WHEELS]
    own: dict[str, Any] = {"motors": wheels, "io__digitalInputs": []} if model == "mecanum" else {}
    settings = {"runtime__simulationProfile": profile, **own, **QUIET, **changes}
    return robot_file(name, **settings)


class Driven:
    """Robots that drive to one goal each; what they did on their way is measured."""

    def __init__(self, files: list[RobotFile], goals: list[Goal]) -> None:
        count = len(files)
        around = [Surroundings(seed=row) for row in range(count)]
        self.hardware = MockHardware(Layout(files), around, range(count))
        self.fleet = DrivenFleet(Layout(files), self.hardware).run(0.5)
        self.names = [file.identity.robot_id for file in files]
        self.goals = goals
        self.backwards, self.turned = np.zeros(count), np.zeros(count)
        for name, (x, y, yaw) in zip(self.names, goals, strict=True):
            own = {} if yaw is None else {"yaw": yaw}
            self.fleet.command("MOVE_TO_POSE", robot=name, x=x, y=y, **own)

    def run(self, seconds: float) -> "Driven":
        """Until all have arrived, and a second more: none moves any more."""
        body = self.hardware.motors.body
        for _ in range(round(seconds * HZ)):
            before = body[:, drive.YAW].copy()
            self.fleet.run(1.0 / HZ)
            self.backwards += np.maximum(-body[:, drive.FORWARD], 0.0) / HZ
            self.turned += np.abs(wrapped(body[:, drive.YAW] - before))
            if not self.fleet.fleet.busy():
                break
        stands = self.hardware.poses().copy()
        self.fleet.run(1.0)
        assert np.abs(self.hardware.poses() - stands).max() < 0.005
        return self

    def check_arrived(self, tolerance: float = TOLERANCE) -> None:
        ends = [self.fleet.acks(name)[-1] for name in self.names]
        assert ends == ["MOVE_TO_POSE:DONE"] * len(ends)
        goals = np.array([(x, y) for x, y, _ in self.goals])
        assert np.hypot(*(self.hardware.poses()[:, :2] - goals).T).max() <= tolerance
        turned = [
            0.0 if yaw is None else abs(math.remainder(pose[2] - yaw, math.tau))
            for (_, _, yaw), pose in zip(self.goals, self.hardware.poses().tolist(), strict=True)
        ]
        assert max(turned) <= math.radians(2.0)

    def check_not_reversed(self) -> None:
        """No robot drove back, or turned by more than its goal needs and the corrections."""
        needed = [
            abs(math.atan2(y, x))
            + (0.0 if yaw is None else abs(math.remainder(yaw - math.atan2(y, x), math.tau)))
            for x, y, yaw in self.goals
        ]
        assert self.backwards.max() <= 0.01
        assert (self.turned - np.array(needed)).max() <= math.radians(15.0)


def wrapped(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.remainder(angle + math.pi, math.tau) - math.pi
    return found


def random_robots(model: str, count: int, seed: int) -> Driven:
    """Delays up to 200 ms, lags up to 100 ms, noise of readings; every third goal has no yaw."""
    draw = np.random.default_rng(seed)
    files, goals = [], list[Goal]()
    for number in range(count):
        response = {
            "delayMs": draw.uniform(0, 200),
            "lagMs": draw.uniform(0, 100),
            "positionNoiseMm": draw.uniform(0, 0.3),
            "speedNoiseMps": draw.uniform(0, 0.02),
        }
        files.append(late_robot(f"r{number}", model, response))
        x, y = draw.uniform(-4.0, 4.0, 2)
        goals.append((x, y, draw.uniform(-math.pi, math.pi) if number % 3 else None))
    return Driven(files, goals)


@pytest.mark.parametrize("delay", [0, 20, 100, 200])
@pytest.mark.parametrize("lag", [0, 100])
def test_a_late_robot_ends_at_its_goal_without_turning_round(delay: float, lag: float) -> None:
    response: dict[str, float] = {"delayMs": delay, "lagMs": lag}
    robots = Driven([late_robot("r1", "differential", response)], [(1.0, 0.0, None)]).run(10.0)
    robots.check_arrived()
    robots.check_not_reversed()
    assert robots.hardware.pose(0)[2] == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("model", ["differential", "mecanum", "ackermann"])
def test_random_delays_lags_and_noise_end_at_random_poses(model: str) -> None:
    robots = random_robots(model, POSES_IN_TESTS, seed=1).run(40.0)
    robots.check_arrived()
    if model == "differential":
        robots.check_not_reversed()


@pytest.mark.soak
@pytest.mark.parametrize("model", ["differential", "mecanum", "ackermann"])
def test_a_thousand_random_poses_with_late_drives(model: str) -> None:
    robots = random_robots(model, POSES_IN_SOAK, seed=2).run(60.0)
    robots.check_arrived()
    if model == "differential":
        robots.check_not_reversed()


def test_the_measured_delay_is_that_of_the_drives() -> None:
    response: dict[str, float] = {"delayMs": 120}
    robots = Driven([late_robot("r1", "differential", response)], [(3.0, 0.0, None)]).run(10.0)
    (ticker,) = robots.fleet.fleet._tickers
    assert ticker.table.latency[0] == pytest.approx(0.12, abs=0.02)


def test_a_configured_delay_is_not_measured() -> None:
    files = [
        late_robot(
            "r1",
            "differential",
            {"delayMs": 120},
            motors__0__driver__latencyMs=100,
            motors__1__driver__latencyMs=140,
        )
    ]
    robots = Driven(files, [(3.0, 1.0, 0.0)]).run(15.0)
    robots.check_arrived()
    (ticker,) = robots.fleet.fleet._tickers
    assert ticker.table.latency[0] == 0.14


def test_a_robot_that_overruns_drives_the_rest_backwards() -> None:
    """Its configured delay is much too short."""
    files = [
        late_robot(
            "r1",
            "differential",
            {"delayMs": 300},
            motors__0__driver__latencyMs=1,
            motors__1__driver__latencyMs=1,
        )
    ]
    robots = Driven(files, [(1.0, 0.0, 0.0)]).run(15.0)
    robots.check_arrived()
    assert 0.03 < robots.backwards[0] < 0.25
    assert robots.turned[0] <= math.radians(10.0)


def test_a_snapshot_of_late_robots_goes_on_as_the_original() -> None:
    def fleet() -> Driven:
        return random_robots("differential", 3, seed=5)

    one, other = fleet(), fleet()
    one.fleet.run(1.0)
    saved_fleet, saved_hardware = one.fleet.fleet.save(), one.hardware.save()
    other.hardware.load(saved_hardware)
    other.fleet.fleet.load(saved_fleet)
    other.fleet.now = one.fleet.now
    one.fleet.run(3.0)
    other.fleet.run(3.0)
    assert other.hardware.poses().tolist() == one.hardware.poses().tolist()
