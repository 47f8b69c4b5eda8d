"""The clock: rate, pause, lock-step; a change of rate never makes time jump."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.agenda import ClockState, Rate, parse_rate
from understudy.wire.pump import Clock

SECOND = 1_000_000_000


class Wall:
    """A wall clock that the test sets."""

    def __init__(self) -> None:
        self.now = 12_345

    def __call__(self) -> int:
        return self.now


def clock_at(rate: Rate) -> tuple[Clock, Wall]:
    wall = Wall()
    return Clock(ClockState(rate), wall), wall


@pytest.mark.parametrize(
    ("rate", "passed"),
    [(1.0, 2.0), (10.0, 20.0), (0.25, 0.5), (0.0, 0.0), ("step", 0.0), ("max", 2.0)],
)
def test_simulated_time_after_two_wall_seconds(rate: Rate, passed: float) -> None:
    clock, wall = clock_at(rate)
    wall.now += 2 * SECOND
    assert clock.now() == passed * SECOND
    assert clock.real_seconds() == 2.0


@pytest.mark.parametrize(
    ("rate", "seconds"), [(1.0, 3.0), (10.0, 0.3), (0.0, None), ("step", None), ("max", 3.0)]
)
def test_wall_seconds_until_a_simulated_time(rate: Rate, seconds: float | None) -> None:
    clock, wall = clock_at(rate)
    assert clock.seconds_until(3 * SECOND) == seconds
    wall.now += 60 * SECOND
    assert clock.seconds_until(0) == (None if seconds is None else 0.0)


@pytest.mark.parametrize(("rate", "lock_step"), [(1.0, False), ("step", True), ("max", True)])
def test_only_step_and_max_are_lock_step(rate: Rate, lock_step: bool) -> None:
    assert clock_at(rate)[0].lock_step is lock_step


def test_a_cell_that_cannot_keep_up_is_late_or_loses_time() -> None:
    clock, wall = clock_at(2.0)
    wall.now += 3 * SECOND
    assert clock.late_seconds(4 * SECOND) == 1.0
    begun = wall.now
    wall.now += SECOND  # in which half a second was simulated
    clock.hold_back(begun, SECOND)
    assert clock.lost == SECOND // 2
    assert clock.late_seconds(5 * SECOND) == 1.0
    assert clock_at(0.0)[0].late_seconds(0) == 0.0


def test_a_clock_continues_from_the_time_it_is_set_to() -> None:
    clock, wall = clock_at(2.0)
    wall.now += SECOND
    clock.set_now(100 * SECOND)
    wall.now += SECOND
    assert clock.now() == 102 * SECOND


RATES = st.floats(0.0, 1e6) | st.sampled_from(["max", "step"])


@given(st.lists(st.tuples(RATES, st.integers(0, 3600 * SECOND))))
def test_a_change_of_rate_never_makes_time_jump(course: list[tuple[Rate, int]]) -> None:
    state, wall = ClockState(1.0), Wall()
    clock = Clock(state, wall)
    for rate, passes in course:
        before = clock.now()
        state.set_rate(rate)
        assert clock.now() == before
        wall.now += passes
        speed = {"max": 1.0, "step": 0.0}.get(str(rate)) if isinstance(rate, str) else rate
        assert speed is not None
        assert math.isclose(clock.now() - before, passes * speed, rel_tol=1e-12, abs_tol=0.5)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1", 1.0), ("0.5", 0.5), ("0", 0.0), ("1e6", 1e6), ("max", "max"), ("step", "step")],
)
def test_rates_are_read_from_text(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1", "nan", "inf", "1000001", "MAX", "1,5"])
def test_text_that_is_no_rate_raises_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rate(text)
