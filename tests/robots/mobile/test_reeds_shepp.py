"""Paths of a car: they end at the goal, and none is shorter."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.robots.mobile.reeds_shepp import follow, plan_to_place, plan_to_pose

Pose = tuple[float, float, float]
RADIUS = 0.75
places, yaws = st.floats(-4, 4), st.floats(-math.pi, math.pi)


def planned(goal: Pose, change: float = 0.0) -> tuple[float, np.ndarray]:
    path = np.zeros((5, 2))
    return plan_to_pose(*goal, RADIUS, change, path), path


@settings(max_examples=300, deadline=None)
@example(0.0, 0.0, 0.0)
@example(0.0, 0.0, math.pi)
@example(0.0, 1e-3, 0.0)
@example(-1e-9, 0.5, 1e-9)
@given(places, places, yaws)
def test_a_path_ends_at_the_goal_and_keeps_the_radius(x: float, y: float, yaw: float) -> None:
    cost, path = planned((x, y, yaw))
    end = follow(0.0, 0.0, 0.0, path)
    assert end[:2] == pytest.approx((x, y), abs=2e-6)
    assert math.remainder(end[2] - yaw, 2 * math.pi) == pytest.approx(0.0, abs=2e-6)
    assert cost == pytest.approx(np.abs(path[:, 1]).sum())
    assert set(np.round(np.abs(path[:, 0]) * RADIUS, 9)) <= {0.0, 1.0}
    assert cost >= math.hypot(x, y) - 1e-6


@settings(max_examples=100, deadline=None)
@given(places, places, yaws)
def test_the_way_back_and_the_mirrored_way_are_as_long(x: float, y: float, yaw: float) -> None:
    cost, _ = planned((x, y, yaw))
    back = (-x * math.cos(yaw) - y * math.sin(yaw), x * math.sin(yaw) - y * math.cos(yaw), -yaw)
    assert planned(back)[0] == pytest.approx(cost, abs=1e-4)
    assert planned((x, -y, -yaw))[0] == pytest.approx(cost, abs=1e-4)
    assert planned((-x, y, -yaw))[0] == pytest.approx(cost, abs=1e-4)


moves = st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.floats(-3, 3)), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(moves)
def test_no_other_way_is_shorter(driven: list[tuple[int, float]]) -> None:
    """However a car drives to a place, the planned path is not longer."""
    path = np.array([(turn / RADIUS, length) for turn, length in driven])
    goal = follow(0.0, 0.0, 0.0, path)
    assert planned(goal)[0] <= np.abs(path[:, 1]).sum() + 1e-4


def test_known_paths() -> None:
    assert planned((2.0, 0.0, 0.0))[0] == pytest.approx(2.0)
    assert planned((-2.0, 0.0, 0.0))[0] == pytest.approx(2.0), "backwards"
    assert planned((0.0, 2 * RADIUS, math.pi))[0] == pytest.approx(math.pi * RADIUS)
    assert planned((0.0, 0.0, math.pi))[0] == pytest.approx(math.pi * RADIUS), "three arcs of 60°"


@settings(max_examples=60, deadline=None)
@given(places, places)
def test_a_place_is_reached_with_the_best_of_all_yaws(x: float, y: float) -> None:
    path = np.zeros((5, 2))
    cost = plan_to_place(x, y, RADIUS, 0.0, path)
    assert follow(0.0, 0.0, 0.0, path)[:2] == pytest.approx((x, y), abs=2e-6)
    finest = min(planned((x, y, yaw))[0] for yaw in np.linspace(-math.pi, math.pi, 720))
    assert cost <= finest + 0.02


def test_changes_of_direction_cost() -> None:
    for goal in product((-0.3, 0.4), (0.2, -0.5), (0.1, 2.0)):
        _, short = planned(goal)
        _, simple = planned(goal, change=5.0)
        assert np.count_nonzero(simple[:, 1]) <= np.count_nonzero(short[:, 1])
        assert np.abs(simple[:, 1]).sum() >= np.abs(short[:, 1]).sum() - 1e-9
