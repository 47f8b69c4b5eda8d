"""A plan: cut, joined, saved, sampled before its begin and after its end."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.programs import Program, programs

from understudy.motion.lines import lines
from understudy.motion.path import Limits, empty_path
from understudy.motion.plan import Plan, empty_law, motions_at
from understudy.motion.stream import planned
from understudy.motion.warm import warm

LIMITS = Limits.of([100.0] * 2, [500.0] * 2)
SQUARE = lines(
    np.zeros(2), [[50, 0], [50, 50], [0, 50], [0, 0]], LIMITS, feed=50.0, line=[3, 4, 5, 6]
)


def test_before_it_begins_it_rests_at_its_start() -> None:
    plan = planned(SQUARE.rows(0, 2), at=5.0)
    assert plan.begins == 5.0
    assert plan.at(0.0).position.tolist() == [0.0, 0.0]
    assert not plan.at(0.0).velocity.any()
    assert not plan.at(0.0).acceleration.any()
    assert plan.line_at(4.9) is None


def test_lines_begin_in_their_order() -> None:
    plan = planned(SQUARE)
    numbers, begins = plan.lines()
    assert numbers.tolist() == [3, 4, 5, 6]
    assert begins == pytest.approx(plan.duration / 4 * np.arange(4))
    assert [plan.line_at(t) for t in begins + 1e-6] == [3, 4, 5, 6]


def test_distance_and_speed_run_along_the_path() -> None:
    plan = planned(SQUARE)
    assert plan.distance(plan.ends) == pytest.approx(200.0)
    assert plan.distance(plan.duration / 2) == pytest.approx(100.0)
    assert plan.speed(0.5) == 50.0
    assert plan.speed(plan.ends + 1.0) == 0.0


@given(st.lists(st.floats(-1.0, 6.0), max_size=20))
def test_unsorted_times_give_the_same_samples(times: list[float]) -> None:
    plan = planned(SQUARE)
    found = plan.sample(np.array(times))
    for k, t in enumerate(times):
        assert found.position[k].tolist() == plan.at(t).position.tolist()
        assert found.velocity[k].tolist() == plan.at(t).velocity.tolist()


@given(programs(), st.floats(0.0, 1.1))
def test_a_cut_plan_is_the_plan_up_to_there_and_then_rests(program: Program, share: float) -> None:
    path = program.path()
    if not len(path):
        return
    plan = planned(path)
    end = share * plan.ends
    cut = plan.until(end)
    times = np.linspace(0.0, min(end, plan.ends), 20)[:-1]
    assert cut.positions(times) == pytest.approx(plan.positions(times), abs=1e-12)
    assert cut.at(end + 1.0).position == pytest.approx(plan.at(end).position, abs=1e-12)
    assert not cut.at(end + 1.0).velocity.any()


def test_one_plan_after_the_other() -> None:
    first = planned(SQUARE.rows(0, 2))
    second = planned(SQUARE.rows(2, 4), at=first.ends)
    both = first.then(second)
    assert both.ends == second.ends
    assert both.at(first.ends + 0.3).position == pytest.approx(second.at(first.ends + 0.3).position)
    assert both.lines()[0].tolist() == [3, 4, 5, 6]


def test_a_plan_is_restored_from_its_state() -> None:
    plan = planned(SQUARE)
    copy = Plan.from_state(json.loads(json.dumps(plan.to_state())))
    times = np.linspace(-1.0, plan.ends + 1.0, 99)
    assert copy.positions(times).tolist() == plan.positions(times).tolist()


def test_a_plan_without_motion_is_at_its_target() -> None:
    plan = Plan(empty_path(2), empty_law(1.0), np.array([3.0, 4.0]))
    assert plan.duration == 0.0
    assert plan.at(0.0).position.tolist() == [3.0, 4.0]
    assert plan.distance(2.0) == 0.0


def test_warming_up_needs_no_arm() -> None:
    warm()
    kernel: Any = motions_at
    assert kernel.signatures, "it is compiled, or loaded from the cache"
