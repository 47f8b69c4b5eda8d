"""Look-ahead: the kernels are the contract's formulas, and the limits hold for every program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.motion.plain_motion import (
    plain_blocks,
    plain_corner,
    plain_entries,
    plain_motion,
    plain_trapezoid,
    whole_steps,
)
from tests.motion.programs import Program, grid, programs

from understudy.motion.lines import corner, lines, on_steps, seam
from understudy.motion.path import Limits, dwell_path, joined
from understudy.motion.profile import entries, trapezoid
from understudy.motion.stream import Overrides, planned

LIMITS = Limits.of([100.0] * 3, [500.0] * 3)
WINDOWS = st.sampled_from([1, 2, 3, 7, 100])


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.0020, 0.004), (-0.0020, -0.004), (0.0019, 0.0), (1.0, 1.0)]
)
def test_half_a_step_goes_away_from_zero(value: float, rounded: float) -> None:
    assert on_steps(value, 250.0) == pytest.approx(rounded)
    assert whole_steps(value, 250.0) == pytest.approx(rounded)


@given(programs())
def test_blocks_are_measured_as_the_contract_says(program: Program) -> None:
    path = program.path()
    plain = plain_blocks(
        [0.0] * 3,
        program.targets.tolist(),
        program.limits.velocity.tolist(),
        program.limits.acceleration.tolist(),
        deviation=program.deviation,
        steps=[program.steps] * 3,
    )
    assert len(path) == len(plain)
    for k, block in enumerate(plain):
        assert path.end[k].tolist() == block.end
        assert path.length[k] == pytest.approx(block.length, rel=1e-12)
        assert path.acceleration[k] == pytest.approx(block.acceleration, rel=1e-12)
        assert path.fastest[k] == pytest.approx(block.fastest, rel=1e-12)
        assert path.junction[k] == pytest.approx(block.junction, rel=1e-9)


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


@given(st.floats(0.0, np.pi))
def test_corner_is_the_contracts_formula(angle: float) -> None:
    able = np.array([500.0, 200.0])
    found = corner(unit(0.0), unit(angle), able, 0.01)
    assert found == pytest.approx(plain_corner(unit(0.0), unit(angle), able, 0.01), rel=1e-9)


def test_reversal_stops_and_straight_on_is_free() -> None:
    able = np.array([500.0, 500.0])
    assert corner(unit(0.0), unit(np.pi), able, 0.01) == 0.0
    assert corner(unit(0.0), unit(1e-6), able, 0.0) == np.inf
    assert corner(unit(0.0), unit(0.5), able, 0.0) == 0.0


@given(programs(), WINDOWS)
def test_entry_speeds_are_those_of_one_pass_per_window(program: Program, window: int) -> None:
    path = program.path()
    nominal = path.nominal()
    found = entries(path, nominal, window=window)
    assert found == pytest.approx(plain_entries(path, nominal, window), rel=1e-9, abs=1e-12)


@given(programs(), WINDOWS)
def test_plan_and_samples_are_those_of_the_plain_trapezoid(program: Program, window: int) -> None:
    path = program.path()
    if not len(path):
        return
    nominal = path.nominal()
    speeds = entries(path, nominal, window=window)
    segments = plain_trapezoid(path, nominal, speeds)
    plan = planned(path, window=window)
    assert plan.ends == pytest.approx(segments[-1][1], rel=1e-9)
    times = grid(plan.ends, 37)[1:] - 1e-7
    found = plan.sample(times)
    assert plan.positions(times) == pytest.approx(found.position, abs=1e-12)
    for k, t in enumerate(times):
        position, velocity, _ = plain_motion(path, segments, t)
        assert found.position[k] == pytest.approx(position, abs=1e-7)
        assert found.velocity[k] == pytest.approx(velocity, abs=1e-3)


@given(programs(), WINDOWS, st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_limits_hold_at_every_sample(program: Program, window: int, override: float) -> None:
    path = program.path()
    if not len(path):
        return
    plan = planned(path, window=window, overrides=Overrides(feed=override))
    found = plan.sample(grid(plan.ends))
    assert (np.abs(found.velocity) <= program.limits.velocity * (1 + 1e-9)).all()
    assert (np.abs(found.acceleration) <= program.limits.acceleration * (1 + 1e-9)).all()


@given(programs(), WINDOWS)
def test_junctions_and_feeds_hold(program: Program, window: int) -> None:
    path = program.path()
    speeds = entries(path, path.nominal(), window=window)
    assert speeds[0] == 0.0
    assert speeds[-1] == 0.0
    assert (speeds[:-1] <= path.junction * (1 + 1e-12)).all()
    assert (speeds[:-1] <= path.nominal() ** 2 * (1 + 1e-12)).all()
    assert (speeds[1:] <= path.nominal() ** 2 * (1 + 1e-12)).all()


@given(programs(deviation=0.0))
def test_without_deviation_velocity_has_no_step(program: Program) -> None:
    path = program.path()
    if not len(path):
        return
    plan = planned(path)
    edges = plan.law.begins[1:-1]
    before, after = plan.sample(edges - 1e-9).velocity, plan.sample(edges + 1e-9).velocity
    # Directions within the straight-on cosine count as one: their difference times the speed stays.
    assert np.abs(after - before).max(initial=0.0) < 1e-2 * program.limits.velocity.max()


@given(programs(), WINDOWS)
def test_ends_exactly_on_the_target_rounded_to_steps(program: Program, window: int) -> None:
    path = program.path()
    if not len(path):
        return
    plan = planned(path, window=window)
    goal = [whole_steps(x, program.steps) for x in program.targets[len(program.targets) - 1]]
    for t in (plan.ends, plan.ends + 1.0):
        assert plan.at(t).position.tolist() == goal
        assert not plan.at(t).velocity.any()


def test_inverse_time_takes_its_time() -> None:
    """G93 F30 is half a second a line, whatever its length, but for the ramps."""
    path = lines(np.zeros(3), [[10.0, 0, 0]], LIMITS, feed=2.0, inverse_time=True)
    assert path.feed[0] == 20.0
    assert planned(path).duration == pytest.approx(0.5 + 20.0 / 500.0)


def test_rapid_goes_as_fast_as_the_axes_and_its_own_override() -> None:
    path = lines(np.zeros(3), [[100.0, 100.0, 0]], LIMITS, rapid=True)
    assert path.nominal(0.1, 1.0)[0] == pytest.approx(100.0 * np.sqrt(2.0))
    assert path.nominal(1.0, 0.25)[0] == pytest.approx(25.0 * np.sqrt(2.0))


def test_feed_override_acts_on_the_capped_feed_and_is_capped_again() -> None:
    path = lines(np.zeros(3), [[10.0, 0, 0], [20.0, 0, 0]], LIMITS, feed=[500.0, 60.0])
    assert path.nominal(0.5).tolist() == [50.0, 30.0]
    assert path.nominal(2.0).tolist() == [100.0, 100.0]


def test_dwell_stops_motion_and_takes_its_time() -> None:
    first = lines(np.zeros(3), [[10.0, 0, 0]], LIMITS, feed=50.0)
    last = lines(first.end[-1], [[20.0, 0, 0]], LIMITS, feed=50.0, line=2)
    plan = planned(joined([first, dwell_path(first.end[-1], 0.5, line=1), last]))
    alone = planned(first).duration
    assert plan.duration == pytest.approx(2 * alone + 0.5)
    assert plan.at(alone + 0.25).position.tolist() == [10.0, 0.0, 0.0]
    assert [plan.line_at(t) for t in (0.0, alone + 0.25, alone + 0.6)] == [0, 1, 2]


def test_exact_stop_rests_between_lines_that_go_straight_on() -> None:
    path = lines(np.zeros(3), [[10.0, 0, 0], [20.0, 0, 0]], LIMITS, feed=50.0, exact=True)
    assert planned(path).duration == pytest.approx(2 * planned(path.rows(0, 1)).duration)


def test_a_feed_of_zero_raises_an_error() -> None:
    with pytest.raises(ValueError, match="feed must be above 0"):
        lines(np.zeros(3), [[1.0, 0, 0]], LIMITS, feed=0.0)


def test_seams_are_corners_and_stops_beside_a_dwell() -> None:
    first = lines(np.zeros(3), [[10.0, 0, 0]], LIMITS, feed=50.0)
    second = lines(first.end[-1], [[10.0, 10.0, 0]], LIMITS, feed=50.0)
    both = lines(np.zeros(3), [[10.0, 0, 0], [10.0, 10.0, 0]], LIMITS, feed=50.0, deviation=0.01)
    assert seam(first, second, LIMITS, 0.01) == pytest.approx(both.junction[1])
    assert seam(dwell_path(first.end[-1], 1.0), second, LIMITS, 0.01) == 0.0


@settings(max_examples=20)
@given(st.integers(1, 400), WINDOWS)
def test_long_programs_need_no_more_than_their_window(count: int, window: int) -> None:
    turns = np.cumsum(np.random.default_rng(count).normal(size=(count, 3)), axis=0)
    path = lines(np.zeros(3), turns, LIMITS, feed=80.0, deviation=0.05)
    speeds = entries(path, path.nominal(), window=window)
    assert speeds == pytest.approx(plain_entries(path, path.nominal(), window), rel=1e-9, abs=1e-12)
    law = trapezoid(path, path.nominal(), speeds, at=0.0)
    assert (np.diff(law.begins) > 0.0).all()
