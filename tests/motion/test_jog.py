"""Jogging: any axis, any sequence of changes, never beyond a limit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.motion.jog import Range, jog, stop_jog
from understudy.motion.path import Limits
from understudy.motion.plan import Motion
from understudy.motion.profile import Profile

LIMITS = Limits.of([2.0, 2.0], [8.0, 4.0], [40.0, 20.0])
WITHIN = Range.of([-1.0, -2.0], [1.0, 2.0])
AT_REST = Motion(np.zeros(2), np.zeros(2), np.zeros(2))
SPEED = st.sampled_from([-3.0, -0.5, 0.0, 1.0, 2.5])
both = pytest.mark.parametrize("profile", ["trapezoid", "jerk_limited"])


@both
@example(moods=[(2.5, -0.5, 0.9455112765814114), (2.5, 0.0, 1e-05), (2.5, 0.0, 0.999999)])
@example(moods=[(0.0, 2.5, 1.1), (-3.0, 2.5, 2.939069760066193e-05), (1.0, 1.0, 1.292144893529293)])
@given(moods=st.lists(st.tuples(SPEED, SPEED, st.floats(0.0, 1.5)), max_size=8))
def test_limits_and_soft_limits_hold_through_every_change(
    moods: list[tuple[float, float, float]], profile: Profile
) -> None:
    state, now = AT_REST, 0.0
    for first, second, wait in moods:
        plan = jog(state, [first, second], LIMITS, at=now, within=WITHIN, profile=profile)
        found = plan.sample(np.linspace(now, now + wait, 200))
        assert found.position[0] == pytest.approx(state.position, abs=1e-9)
        assert found.velocity[0] == pytest.approx(state.velocity, abs=1e-9)
        assert (np.abs(found.position) <= WITHIN.upper + 1e-9).all()
        assert (np.abs(found.velocity) <= LIMITS.velocity + 1e-9).all()
        assert (np.abs(found.acceleration) <= LIMITS.acceleration + 1e-9).all()
        now += wait
        state = plan.at(now)


def test_a_jog_reaches_its_velocity_and_keeps_it() -> None:
    plan = jog(AT_REST, [1.0, 0.0], LIMITS, at=5.0)
    assert plan.at(5.0625).velocity[0] == pytest.approx(0.5)
    assert plan.at(1000.0).velocity.tolist() == [1.0, 0.0]


def test_too_fast_a_jog_is_clamped() -> None:
    assert jog(AT_REST, [9.0, -9.0], LIMITS, at=0.0).at(2.0).velocity.tolist() == [2.0, -2.0]


@both
def test_a_jog_comes_to_rest_on_its_limit(profile: Profile) -> None:
    plan = jog(AT_REST, [2.0, -2.0], LIMITS, at=0.0, within=WITHIN, profile=profile)
    assert plan.target == pytest.approx([1.0, -2.0], abs=1e-9)
    assert not plan.at(plan.ends).velocity.any()


@both
def test_stop_jog_ends_all_axes(profile: Profile) -> None:
    moving = jog(AT_REST, [2.0, -1.0], LIMITS, at=0.0, profile=profile).at(1.0)
    plan = stop_jog(moving, LIMITS, at=1.0, profile=profile)
    assert not plan.at(plan.ends).velocity.any()
    if profile == "trapezoid":
        assert plan.duration == pytest.approx(0.25)


def test_a_stop_at_rest_takes_no_time() -> None:
    assert stop_jog(AT_REST, LIMITS, at=3.0).duration == 0.0
    assert stop_jog(AT_REST, LIMITS, at=3.0).at(3.0).position.tolist() == [0.0, 0.0]
