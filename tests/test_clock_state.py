"""Rate and pause have one owner: after any command every reader sees the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.agenda import ClockState, Rate
from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import Refused
from understudy.simulation.engine import SimulationEngine


def test_a_rate_does_not_end_a_pause() -> None:
    clock = ClockState(1.0)
    clock.pause()
    clock.set_rate(2.0)
    assert (clock.paused, clock.running_rate, clock.rate) == (True, 0.0, 2.0)
    clock.resume()
    assert (clock.paused, clock.running_rate) == (False, 2.0)


@pytest.mark.parametrize("rate", ["max", "step"])
def test_a_pause_acts_in_lock_step_too(rate: Rate) -> None:
    clock = ClockState(rate)
    clock.pause()
    assert clock.running_rate == 0.0
    clock.resume()
    assert clock.running_rate == rate


def test_resume_ends_a_rate_of_zero_at_the_last_scale() -> None:
    clock = ClockState(5.0)
    clock.set_rate(0.0)
    assert clock.running_rate == 0.0
    clock.resume()
    assert clock.running_rate == 5.0


@pytest.mark.parametrize("rate", ["max", "step", 0.0])
def test_a_scale_that_does_not_apply_now_is_kept_for_later(rate: Rate) -> None:
    clock = ClockState(rate)
    assert clock.set_scale(3.0) is None
    assert (clock.rate, clock.scale) == (rate, 3.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e7, float("nan")])
def test_a_scale_that_is_refused_changes_nothing(scale: float) -> None:
    clock = ClockState(2.0)
    assert isinstance(clock.set_scale(scale), Refused)
    assert (clock.rate, clock.scale) == (2.0, 2.0)


@pytest.mark.parametrize("scale", [0.1, 1e6])
def test_a_scale_applies_at_once_and_listeners_are_called(scale: float) -> None:
    clock = ClockState(2.0)
    seen: list[Rate] = []
    clock.on_change(lambda: seen.append(clock.running_rate))
    assert clock.set_scale(scale) is None
    assert (seen, clock.rate, clock.scale) == ([scale], scale, scale)


def test_a_cell_that_starts_in_lock_step_or_at_rate_zero_has_scale_one() -> None:
    assert [ClockState(rate).scale for rate in ("max", "step", 0.0)] == [1.0, 1.0, 1.0]


def test_the_engine_sets_the_scale_or_returns_the_refusal() -> None:
    cell = build_cell(load_config("text_robot"))
    engine = cell.components["engine"]
    assert isinstance(engine, SimulationEngine)
    assert engine.set_time_scale(4.0) is None
    assert engine.set_time_scale(0.0) == Refused(
        "0 is not a time scale; allowed: above 0, up to 1e+06"
    )
    assert engine.status(0).time_scale == 4.0


def test_a_whole_number_is_kept_as_a_float() -> None:
    clock = ClockState(2)
    assert [type(value) for value in (clock.rate, clock.scale)] == [float, float]


RATES = st.floats(0.0, 1e6, allow_nan=False) | st.sampled_from(["max", "step"])
COMMANDS = st.tuples(st.just("rate"), RATES) | st.tuples(
    st.sampled_from(["pause", "resume", "start"]), st.none()
)


@given(st.lists(COMMANDS))
def test_the_engine_is_paused_exactly_while_time_stands_still(
    commands: list[tuple[str, Rate | None]],
) -> None:
    cell = build_cell(load_config("text_robot"))
    engine, clock = cell.components["engine"], cell.clock_state
    assert isinstance(engine, SimulationEngine)
    changes: list[Rate] = []
    clock.on_change(lambda: changes.append(clock.running_rate))
    for name, rate in commands:
        if rate is None:
            getattr(engine, name)(0)
        else:
            clock.set_rate(rate)
        assert changes[-1] == clock.running_rate
        assert engine.state(0) == ("PAUSED" if clock.running_rate == 0.0 else "RUNNING")
