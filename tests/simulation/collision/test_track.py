"""Stretches of a sweep, and the time at which a plan passes a place of its path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.motion.jog import jog
from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path
from understudy.motion.plan import Motion, Plan, passing_time
from understudy.motion.stream import Stream
from understudy.simulation.collision.watch import (
    FARTHEST,
    MOST_PIECES,
    PathPlace,
    beginning_at,
    next_stretch,
    to_be_run,
)

LIMITS = Limits.of([2.0, 2.0], [10.0, 10.0])
NOWHERE = np.zeros(2)


def zigzag(count: int) -> Path:
    targets = np.array([[0.1 * (k % 2), 0.01 * k] for k in range(1, count + 1)])
    found = lines(NOWHERE, targets, LIMITS, feed=1.0, line=1)
    assert isinstance(found, Path)
    return found


def streamed(count: int = 5) -> tuple[Stream, Plan]:
    stream = Stream(NOWHERE, LIMITS)
    stream.append(zigzag(count), 1.0)
    return stream, stream.plan


def test_a_jog_without_end_is_swept_in_stretches() -> None:
    plan = jog(Motion(NOWHERE, NOWHERE, NOWHERE), [1.0, 0.0], LIMITS, at=0.0)
    path, end = next_stretch(plan.path, PathPlace(0))
    assert end.s < plan.path.length[end.piece]
    assert np.abs(path.end[-1]).max() <= 2 * FARTHEST
    _, further = next_stretch(plan.path, end)
    assert further > end


def test_a_long_program_is_swept_in_stretches() -> None:
    path = zigzag(MOST_PIECES + 10)
    first, end = next_stretch(path, PathPlace(0))
    assert (len(first), end) == (MOST_PIECES, PathPlace(MOST_PIECES))
    rest, end = next_stretch(path, end)
    assert (len(rest), end) == (len(path), PathPlace(len(path)))


@pytest.mark.parametrize("most", [0.003, 0.04, 0.1, 0.25])
def test_stretches_of_limited_motion_cover_the_whole_path(most: float) -> None:
    path, here, count = zigzag(5), PathPlace(0), 0
    while here < PathPlace(len(path)):
        stretch, end = next_stretch(path, here, most)
        assert here < end <= PathPlace(len(stretch))
        here, count = end, count + 1
    assert count >= 0.4 / most, "the first joint moves 0.4 rad in all"


@settings(deadline=None)
@given(st.floats(1.0, 3.0))
def test_a_plan_passes_its_present_place(t: float) -> None:
    """`passes` is the inverse of `place` during motion."""
    _, plan = streamed()
    t = min(t, plan.ends)
    here = plan.place(t)
    found = passing_time(plan, here.piece, here.s)
    assert found is not None
    assert plan.place(found).s == pytest.approx(here.s, abs=1e-9) or found == pytest.approx(t)
    if here.v > 1e-3:
        assert found == pytest.approx(t, abs=1e-9)


def test_a_place_beyond_the_hold_is_not_passed() -> None:
    stream, plan = streamed()
    assert passing_time(plan, 4, 0.0) is not None
    stream.hold(1.05)
    assert passing_time(stream.plan, 4, 0.0) is None
    stream.resume(9.0)
    again = passing_time(stream.plan, 4, 0.0)
    assert again is not None
    assert again > 9.0


def test_a_plan_that_ends_before_a_place_does_not_pass_it() -> None:
    stream, plan = streamed(1)
    stream.append(lines(plan.target, plan.target + 0.1, LIMITS, feed=1.0, line=2), 7.0)
    assert passing_time(stream.plan, 1, 0.0) == 7.0


def test_a_stop_cuts_off_the_rest_of_its_piece() -> None:
    stream, _ = streamed()
    stream.stop(1.05)
    plan = stream.plan
    run = to_be_run(plan)
    assert run.length[-1] < plan.path.length[-1]
    assert np.allclose(run.end[-1], plan.target)


@settings(deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_rest_of_a_path_is_the_same_path(cut: float, share: float) -> None:
    rng = np.random.default_rng(3)
    path = zigzag(2)
    cubic = Path(*(getattr(path, name) for name in Path.__slots__))
    shape = rng.uniform(-1.0, 1.0, (2, 4, 2))
    object.__setattr__(cubic, "shape", shape)
    s = cut * float(cubic.length[0])
    rest = beginning_at(cubic, PathPlace(0, s))
    x = share * float(rest.length[0])
    one = (s + x) ** np.arange(4) @ shape[0]
    other = x ** np.arange(4) @ rest.shape[0]
    assert np.allclose(one, other, atol=1e-12)
