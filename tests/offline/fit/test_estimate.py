"""The statistics of a fit, and the alignment of reports with a motion."""

from random import Random

import numpy as np
import pytest

from understudy.offline.fit import Measured
from understudy.offline.fit.estimate import aligned, measured_estimate

KEYS = ("a",)


def measured(values: list[float], step: float = 0.0) -> Measured:
    return Measured(KEYS, "delay", "ms", values, "answers", step)


def test_the_interval_of_a_mean_holds_as_often_as_it_says() -> None:
    rng, held = Random(1), 0
    for _ in range(2000):
        found = measured_estimate(measured([rng.gauss(5.0, 1.0) for _ in range(8)]), 1.96)
        held += found.low <= 5.0 <= found.high
    assert 0.93 < held / 2000 < 0.97


def test_outliers_do_not_count() -> None:
    found = measured_estimate(measured([5.0, 5.1, 4.9, 5.05, 4.95, 5.0, 60.0]), 3.0)
    assert found.value == pytest.approx(5.0, abs=0.01)


def test_too_few_measurements_have_no_interval() -> None:
    found = measured_estimate(measured([5.0, 5.1]), 3.0)
    assert not found.visible
    assert "too few" in found.seen_from


def test_a_figure_that_is_rounded_up_has_the_interval_of_a_step() -> None:
    found = measured_estimate(measured([1.7003, 1.6999, 1.7001, 1.7002], 0.05), 3.0)
    assert (found.low, found.value, found.high) == pytest.approx((1.65, 1.7, 1.7))


@pytest.mark.parametrize("pace", [0.6, 1.0, 1.5])
def test_the_order_of_reports_tells_which_passing_is_meant(pace: float) -> None:
    """To and fro on one line; the assumed motion is slower or faster than the recorded one."""
    grid = np.linspace(0.0, 8.0 * pace, 1601)
    places = np.abs((grid / pace) % 2.0 - 1.0)[:, None] * 50.0
    time = np.arange(0.05, 8.0, 0.09)
    seen = np.round(np.abs(time % 2.0 - 1.0)[:, None] * 50.0, 3)
    cost, when = aligned(grid, places, seen, time, np.array([1e-3]))
    assert np.isfinite(cost)
    assert np.abs(when / pace - time).max() < 0.06


def test_a_report_that_is_on_no_motion_is_left_out() -> None:
    grid = np.linspace(0.0, 1.0, 201)
    seen = np.array([[10.0, 0.0], [20.0, 5.0], [30.0, 0.0]])
    places = np.column_stack([grid * 100.0, np.zeros(201)])
    _, when = aligned(grid, places, seen, np.array([0.1, 0.2, 0.3]), np.full(2, 1e-3))
    assert np.isnan(when).tolist() == [False, True, False]
    assert when[[0, 2]] == pytest.approx([0.1, 0.3])
