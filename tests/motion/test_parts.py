"""A path planned part by part moves exactly as if it were planned as a whole."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path
from understudy.motion.plan import Plan
from understudy.motion.profile import Profile
from understudy.motion.stream import PartPlanner, planned

LIMITS = Limits.of([100.0, 80.0], [500.0, 300.0], [9000.0, 7000.0])


def path_of(steps: list[tuple[int, int]], feed: float) -> Path:
    """A path through places that are some steps apart; a step of (0, 0) has no piece."""
    through = np.cumsum(np.array(steps, dtype=np.float64), axis=0)
    return lines(np.zeros(2), through, LIMITS, feed=feed, deviation=0.01)


def in_parts(path: Path, *, window: int, profile: Profile, size: int) -> list[Plan]:
    """The plans of the parts; the path is appended a few pieces at a time."""
    planner, plans, now = PartPlanner(window, profile, enough=size), [], 0.0
    for first in range(0, len(path), 3):
        planner.append(path.rows(first, min(first + 3, len(path))))
        while plan := planner.part(now):
            plans.append(plan)
            now = plan.ends
    last = planner.rest(now)
    assert last is not None
    assert not planner
    return [*plans, last]


STEPS = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3)).filter(any), min_size=1, max_size=80
)


@given(STEPS, st.sampled_from([5.0, 60.0]), st.integers(1, 12), st.integers(1, 30))
@settings(deadline=None)
def test_every_bit_of_a_trapezoidal_plan_is_the_same(
    steps: list[tuple[int, int]], feed: float, window: int, size: int
) -> None:
    path = path_of(steps, feed)
    whole = planned(path, window=window)
    parts = in_parts(path, window=window, profile="trapezoid", size=size)
    begins = np.concatenate([*(plan.law.begins[:-1] for plan in parts), [parts[-1].ends]])
    assert np.array_equal(begins, whole.law.begins)
    for column in ("s", "v", "a"):
        joined = np.concatenate([getattr(plan.law, column) for plan in parts])
        assert np.array_equal(joined, getattr(whole.law, column))
    assert sum(len(plan.path) for plan in parts) == len(path)


@given(STEPS, st.sampled_from([5.0, 60.0]), st.integers(1, 30))
@settings(deadline=None, max_examples=40)
def test_a_jerk_limited_plan_moves_in_the_same_way(
    steps: list[tuple[int, int]], feed: float, size: int
) -> None:
    path = path_of(steps, feed)
    whole = planned(path, profile="jerk_limited")
    parts = in_parts(path, window=100, profile="jerk_limited", size=size)
    assert parts[-1].ends == pytest.approx(whole.ends, abs=1e-9)
    for plan in parts:
        times = np.linspace(plan.begins, plan.ends, 20)
        np.testing.assert_allclose(plan.positions(times), whole.positions(times), atol=1e-6)


def test_parts_follow_each_other_at_speed() -> None:
    parts = in_parts(path_of([(1, 0)] * 600, 60.0), window=20, profile="trapezoid", size=100)
    assert len(parts) > 4
    for before, after in pairwise(parts):
        assert before.ends == after.begins
        assert after.law.v[0] == pytest.approx(60.0)
    assert max(len(plan.path) for plan in parts) < 150
