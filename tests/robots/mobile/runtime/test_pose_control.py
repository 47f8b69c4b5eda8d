"""MOVE_TO_POSE: a robot comes to every pose, exactly, without needless ways."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.robots.mobile import drive, wheels
from understudy.robots.mobile.runtime import pose_control
from understudy.robots.mobile.runtime.pose_control import DONE, EASING, ROUTE, START

Goal = tuple[float, float, float | None]
TICK = 0.02
TRACK, BASE, SPEED, ACCELERATION, DECELERATION = 0.48, 0.52, 1.2, 0.8, 1.0
REACH = {
    wheels.DIFFERENTIAL: TRACK / 2,
    wheels.MECANUM: (TRACK + BASE) / 2,
    wheels.ACKERMANN: TRACK / 2,
}
"""Metres from the centre at which a wheel moves when the robot turns."""


class Driven:
    """Simulated robots that are steered to their goals, all with the same drive."""

    def __init__(
        self, model: int, goals: Sequence[Goal], *, speed: float = SPEED, tick: float = TICK
    ) -> None:
        count = len(goals)
        self.goal = np.array(
            [(x, y, yaw or 0.0, float(yaw is not None), 0.02) for x, y, yaw in goals]
        )
        self.phase = np.full(count, START, dtype=np.int8)
        self.command = np.zeros((count, 3))
        self.route = np.zeros((count, ROUTE))
        self.state = np.zeros((count, 7))
        self.wheels = np.zeros((count, drive.WHEELS))
        self.model = np.full(count, model, dtype=np.int8)
        self.figures = np.tile([TRACK, BASE, speed, ACCELERATION, DECELERATION], (count, 1))
        radius = wheels.smallest_radius(BASE) if model == wheels.ACKERMANN else 0.0
        turning = speed / REACH[model], ACCELERATION / REACH[model]
        self.limits = np.tile(
            (speed, ACCELERATION, DECELERATION, *turning, radius, REACH[model], 0.0), (count, 1)
        )
        self.settled = np.ones(count, dtype=np.bool_)
        self.rows = np.arange(count)
        self.tick = tick
        self.ticks = 0

    def step(self) -> None:
        pose = np.ascontiguousarray(self.state[:, :3])
        speeds = np.ascontiguousarray(self.state[:, drive.FORWARD : drive.TURNING + 1])
        pose_control.steer_to_goals(
            self.model,
            pose,
            speeds,
            self.goal,
            self.limits,
            self.settled,
            self.phase,
            self.route,
            self.command,
            self.tick,
        )
        self.command[self.phase == DONE] = 0.0
        drive.step_drives(
            self.rows, self.model, self.figures, self.command, self.state, self.wheels, self.tick
        )
        self.ticks += 1

    def run(self, seconds: float) -> float:
        """Drives until all goals are reached; returns the seconds it took."""
        while not (self.phase == DONE).all():
            assert self.ticks * self.tick < seconds, f"not there: {self.late()}"
            self.step()
        return self.ticks * self.tick

    def late(self) -> list[tuple[list[float], list[float]]]:
        """Goal and state of some robots that are not there."""
        rows = np.flatnonzero(self.phase != DONE)[:3]
        return [(self.goal[row].tolist(), self.state[row].tolist()) for row in rows]

    def check_arrived(self) -> None:
        """All are at their goals: within 0.02 m and 2°."""
        away = np.hypot(*(self.state[:, :2] - self.goal[:, :2]).T)
        turned = np.abs(
            np.remainder(self.state[:, drive.YAW] - self.goal[:, 2] + math.pi, 2 * math.pi)
            - math.pi
        )
        assert away.max() <= 0.02
        assert turned[self.goal[:, 3] > 0.0].max(initial=0.0) <= math.radians(2)


def random_goals(count: int, seed: int, far: float) -> list[Goal]:
    """Every third one without a yaw."""
    draw = np.random.default_rng(seed)
    return [
        (*draw.uniform(-far, far, 2), draw.uniform(-math.pi, math.pi) if n % 3 else None)
        for n in range(count)
    ]


def ideal_seconds(metres: float, speed: float) -> float:
    return metres / speed + speed / ACCELERATION + speed / DECELERATION


places = st.floats(-8, 8)
yaws = st.none() | st.floats(-math.pi, math.pi)


@settings(max_examples=100, deadline=None)
@example(0.01, 0.0, 1.0)
@example(0.0, 0.0, None)
@example(-3.0, 0.0, 3.1)
@example(0.0, 0.03, None)
@given(places, places, yaws)
@pytest.mark.parametrize("model", [wheels.DIFFERENTIAL, wheels.MECANUM])
def test_every_pose_is_reached_exactly_and_without_detour(
    model: int, x: float, y: float, yaw: float | None
) -> None:
    robot = Driven(model, [(x, y, yaw)])
    far = math.hypot(x, y)
    robot.run(ideal_seconds(far, SPEED) * 1.5 + 8.0)
    robot.check_arrived()
    assert robot.state[0, drive.TRAVELLED] <= far * 1.05 + 0.05


@settings(max_examples=60, deadline=None)
@example(0.0, 0.0, None)
@example(0.0, 0.0, math.pi)
@example(0.0, 0.03, 0.0)
@example(-3.0, 0.0, 0.0)
@example(0.0, 0.5, None)
@given(places, places, yaws)
def test_a_car_reaches_every_pose(x: float, y: float, yaw: float | None) -> None:
    robot = Driven(wheels.ACKERMANN, [(x, y, yaw)])
    robot.run(60.0)
    robot.check_arrived()


@pytest.mark.parametrize("model", REACH)
def test_a_thousand_random_goals_are_reached(model: int) -> None:
    robots = Driven(model, random_goals(1000, model, 8.0))
    robots.run(90.0)
    robots.check_arrived()


@pytest.mark.parametrize("model", REACH)
@pytest.mark.parametrize("rate", [50, 117, 200])
@pytest.mark.parametrize("speed", [0.05, 5.0])
def test_every_tick_rate_and_speed_ends_at_the_goal(model: int, rate: int, speed: float) -> None:
    """Tiny ways, goals behind, beside and underfoot."""
    goals: list[Goal] = [
        (0.001, 0.0, None),
        (0.0, 0.001, 0.0),
        (-0.5, 0.0, None),
        (0.0, 0.0, 3.0),
        (0.0, 0.3, None),
        (-0.2, 0.02, -2.0),
        (0.6, 0.6, 1.0),
    ]
    robots = Driven(model, goals, speed=speed, tick=1.0 / rate)
    robots.run(600.0)
    robots.check_arrived()


@pytest.mark.parametrize("model", REACH)
def test_a_kilometre_ends_at_the_goal(model: int) -> None:
    goals: list[Goal] = [(1000.0, 20.0, None), (-700.0, 700.0, 1.0), (10.0, -1000.0, -3.0)]
    robots = Driven(model, goals, speed=5.0)
    robots.run(ideal_seconds(1000.0, 5.0) * 1.6 + 60.0)
    robots.check_arrived()


@pytest.mark.parametrize("model", REACH)
def test_limits_that_change_on_the_way_are_kept(model: int) -> None:
    robots = Driven(model, random_goals(50, 7, 8.0))
    draw = np.random.default_rng(3)
    before = np.full(50, SPEED)
    weakest = 0.0 if model == wheels.MECANUM else 0.5  # its wheels also change their direction
    while not (robots.phase == DONE).all():
        assert robots.ticks < 60_000, f"not there: {robots.late()}"
        if robots.ticks % 40 == 0:
            robots.limits[:, pose_control.MAX_SPEED] = draw.uniform(0.05, SPEED, 50)
        robots.step()
        speed = np.hypot(robots.state[:, drive.FORWARD], robots.state[:, drive.SIDEWAYS])
        limit = robots.limits[:, pose_control.MAX_SPEED]
        braking = before - DECELERATION * TICK * weakest
        assert (speed <= np.maximum(limit, braking) + 1e-9).all()
        before = speed
    robots.check_arrived()


def test_a_straight_way_takes_the_ideal_time() -> None:
    taken = Driven(wheels.DIFFERENTIAL, [(5.0, 0.0, None)]).run(20.0)
    ramps = SPEED**2 / 2 * (1 / ACCELERATION + 1 / DECELERATION)
    ideal = SPEED / ACCELERATION + SPEED / DECELERATION + (5.0 - ramps) / SPEED
    assert ideal <= taken <= ideal + 0.5


def test_a_car_drives_backwards_if_that_is_shorter() -> None:
    robot = Driven(wheels.ACKERMANN, [(-2.0, 0.0, 0.0)])
    robot.run(20.0)
    assert robot.state[0, drive.TRAVELLED] <= 2.05


def test_a_mecanum_drive_goes_sideways_and_turns_on_the_way() -> None:
    robot = Driven(wheels.MECANUM, [(0.0, 3.0, 1.0)])
    robot.run(20.0)
    assert robot.state[0, drive.TRAVELLED] <= 3.05
    straight = Driven(wheels.MECANUM, [(0.0, 3.0, None)])
    straight.run(20.0)
    assert straight.state[0, drive.YAW] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("model", [wheels.DIFFERENTIAL, wheels.MECANUM])
@pytest.mark.parametrize(
    "goal", [(0.0102, 0.0, None), (0.0, 0.012, 0.0), (0.0, 0.0, math.radians(0.3))]
)
def test_a_late_robot_that_stands_near_enough_waits_until_it_has_settled(
    model: int, goal: Goal
) -> None:
    """A short command may never reach the drives of such a robot: it would begin anew for ever."""
    robot = Driven(model, [goal])
    robot.limits[:, EASING] = 0.6
    robot.settled[:] = False
    for _ in range(20):
        robot.step()
        assert not robot.command.any()
    assert robot.phase[0] != DONE
    robot.settled[:] = True
    robot.run(1.0)
    robot.check_arrived()
