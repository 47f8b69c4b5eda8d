"""MOVE_TO_POSE: a robot comes to every pose, exactly, without needless ways."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.jobs.mobile import pose_control
from understudy.jobs.mobile.pose_control import DONE, START
from understudy.motion import wheels
from understudy.motion.wheels import smallest_radius
from understudy.robots.mobile import drive

TICK = 0.02
TRACK, BASE, SPEED, ACCELERATION, DECELERATION = 0.48, 0.52, 1.2, 0.8, 1.0
REACH = {wheels.DIFFERENTIAL: TRACK / 2, wheels.MECANUM: (TRACK + BASE) / 2}
"""Metres from the centre at which a wheel moves when the robot turns."""


class Driven:
    """A simulated robot that is steered to a goal, and its way."""

    def __init__(
        self,
        model: int,
        goal: tuple[float, float, float | None],
        *,
        speed: float = SPEED,
        tick: float = TICK,
    ) -> None:
        x, y, yaw = goal
        self.goal = np.array([[x, y, yaw or 0.0, float(yaw is not None), 0.02]])
        self.phase = np.array([START], dtype=np.int8)
        self.command = np.zeros((1, 3))
        self.route = np.zeros((1, pose_control.ROUTE))
        self.state = np.zeros((1, 7))
        self.wheels = np.zeros((1, drive.WHEELS))
        self.model = np.array([model], dtype=np.int8)
        self.figures = np.array([[TRACK, BASE, speed, ACCELERATION, DECELERATION]])
        reach, radius = REACH.get(model, TRACK / 2), 0.0
        if model == wheels.ACKERMANN:
            radius = smallest_radius(BASE)
        turning = speed / reach, ACCELERATION / reach
        self.limits = np.array([(speed, ACCELERATION, DECELERATION, *turning, radius)])
        self.tick = tick

    def step(self) -> None:
        pose = np.ascontiguousarray(self.state[:, :3])
        speeds = np.ascontiguousarray(self.state[:, drive.FORWARD : drive.TURNING + 1])
        pose_control.steer_to_goals(
            self.model, pose, speeds, self.goal, self.limits, self.phase, self.route,
            self.command, self.tick,
        )  # fmt: skip
        if self.phase[0] != DONE:
            drive.step_drives(
                np.zeros(1, dtype=np.int64), self.model, self.figures, self.command, self.state,
                self.wheels, self.tick,
            )  # fmt: skip

    def run(self, seconds: float) -> float:
        """Drives until the goal is reached; returns the seconds it took."""
        for tick in range(math.ceil(seconds / self.tick)):
            self.step()
            if self.phase[0] == DONE:
                return tick * self.tick
        raise AssertionError(f"not there after {seconds} s: {self.state[0]}, goal {self.goal[0]}")


places = st.floats(-8, 8)
yaws = st.none() | st.floats(-math.pi, math.pi)


@settings(max_examples=150, deadline=None)
@example(0.01, 0.0, 1.0)
@example(0.0, 0.0, None)
@example(-3.0, 0.0, 3.1)
@example(0.0, 0.03, None)
@given(places, places, yaws)
@pytest.mark.parametrize("model", [wheels.DIFFERENTIAL, wheels.MECANUM])
def test_every_pose_is_reached_exactly_and_without_detour(
    model: int, x: float, y: float, yaw: float | None
) -> None:
    robot = Driven(model, (x, y, yaw))
    far = math.hypot(x, y)
    ideal = far / SPEED + SPEED / ACCELERATION + SPEED / DECELERATION
    robot.run(ideal + 8.0)
    assert math.dist(robot.state[0, :2], (x, y)) <= 0.02
    if yaw is not None:
        off = math.remainder(float(robot.state[0, drive.YAW]) - yaw, 2 * math.pi)
        assert abs(off) <= math.radians(2)
    assert robot.state[0, drive.TRAVELLED] <= far * 1.05 + 0.05


def test_a_straight_way_takes_the_ideal_time() -> None:
    taken = Driven(wheels.DIFFERENTIAL, (5.0, 0.0, None)).run(20.0)
    ramps = SPEED**2 / 2 * (1 / ACCELERATION + 1 / DECELERATION)
    ideal = SPEED / ACCELERATION + SPEED / DECELERATION + (5.0 - ramps) / SPEED
    assert ideal <= taken <= ideal + 0.5
