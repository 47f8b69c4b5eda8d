"""Axes of functional motors: they reach every target, within their limits, and stay there."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.robots.mobile import motors
from understudy.robots.mobile.wheels import ideal_seconds

TICK = 0.02
GRIPPER = (0.05, 0.1, 0.12, 0.0, 0.08)


class Axis:
    """One axis, and all its positions and speeds at the ticks."""

    def __init__(self, limits: tuple[float, ...] = GRIPPER, tolerance: float = 1e-4) -> None:
        self.limits = np.array([limits])
        self.target = np.zeros(1)
        self.tolerance = np.array([tolerance])
        self.moving = np.ones(1, dtype=np.bool_)
        self.state = np.zeros((1, 2))
        self.path: list[tuple[float, float]] = [(0.0, 0.0)]

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            motors.step_axes(
                np.arange(1),
                self.limits,
                self.target,
                self.tolerance,
                self.moving,
                np.ones(1, dtype=np.bool_),
                self.state,
                TICK,
            )
            self.path.append((float(self.state[0, 0]), float(self.state[0, 1])))


def test_an_axis_takes_the_ideal_time_and_a_few_ticks() -> None:
    axis = Axis()
    axis.target[0] = 0.06
    ideal = ideal_seconds(0.06, *GRIPPER[:3])
    axis.run(math.ceil(ideal / TICK) + 10)
    assert axis.state[0, 1] == 0.0
    assert axis.state[0, 0] == pytest.approx(0.06, abs=1e-4)
    assert axis.path[math.floor(ideal / TICK) - 2][0] < 0.06, "not faster than possible"


def test_an_axis_stops_at_its_bounds() -> None:
    axis = Axis()
    axis.target[0] = 0.2
    axis.run(400)
    assert axis.state[0].tolist() == [0.08, 0.0]


def test_an_axis_without_an_order_brakes_and_stays() -> None:
    axis = Axis()
    axis.target[0] = 0.06
    axis.run(30)
    axis.moving[0] = False
    speed, place = axis.state[0, 1], axis.state[0, 0]
    axis.run(100)
    assert axis.state[0, 1] == 0.0
    assert axis.state[0, 0] - place <= speed**2 / 2 / 0.12 + speed * TICK


limits = st.tuples(st.floats(0.01, 3), st.floats(0.05, 5), st.floats(0.05, 5))


@settings(max_examples=100, deadline=None)
@given(limits, st.floats(-1, 1))
def test_every_target_is_reached_without_passing_it(
    figures: tuple[float, float, float], target: float
) -> None:
    axis = Axis((*figures, -math.inf, math.inf))
    axis.target[0] = target
    axis.run(math.ceil(ideal_seconds(abs(target), *figures) / TICK) + 40)
    assert axis.state[0, 1] == 0.0
    assert axis.state[0, 0] == pytest.approx(target, abs=1e-4)
    assert all(abs(position) <= abs(target) + 1e-4 for position, _ in axis.path)
    speeds = [speed for _, speed in axis.path]
    assert max(map(abs, speeds)) <= figures[0] + 1e-12
    assert max(abs(np.diff(speeds))) <= max(figures[1:]) * TICK + 1e-9
