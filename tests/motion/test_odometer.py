"""Distance of the tool tip: independent of the readings, at little cost."""

import math

import numpy as np
import pytest

from understudy.motion.path import Floats
from understudy.motion.plan import Odometer
from understudy.units import NS_PER_SECOND

HOUR = 3600.0


class Circle:
    """A tip that goes round at 1 rad/s on a radius of 1 m, and counts its readings."""

    def __init__(self, turns_per_second: float = 1.0) -> None:
        self.looks = 0
        self._speed = turns_per_second

    def __call__(self, times: Floats) -> Floats:
        self.looks += len(times)
        angle = self._speed * times
        return np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)


def test_the_distance_is_the_sum_of_the_chords() -> None:
    assert Odometer(Circle()).at(round(math.tau * NS_PER_SECOND), HOUR) == pytest.approx(
        math.tau, rel=1e-5
    )


def test_time_after_the_end_of_the_plan_adds_nothing() -> None:
    way = Circle()
    odometer = Odometer(way)
    assert odometer.at(10**6 * NS_PER_SECOND, 1.0) == pytest.approx(1.0, rel=1e-5)
    assert way.looks < 200


def test_reading_changes_nothing() -> None:
    seldom, often = Odometer(Circle()), Odometer(Circle())
    for moment in range(0, 60 * NS_PER_SECOND, 777_000_000):
        often.at(moment, HOUR)
    end = 60 * NS_PER_SECOND
    assert often.at(end, HOUR) == seldom.at(end, HOUR)


def test_repeated_reading_of_a_long_motion_costs_little() -> None:
    way = Circle()
    odometer = Odometer(way)
    odometer.at(round(0.9 * HOUR) * NS_PER_SECOND, HOUR)
    before = way.looks
    odometer.at(round(0.9 * HOUR) * NS_PER_SECOND + 1, HOUR)
    assert way.looks - before < 2000


def test_a_motion_of_weeks_is_sampled_with_longer_chords() -> None:
    weeks = 4 * 7 * 24 * HOUR
    way = Circle(1.0 / weeks)
    length = Odometer(way).at(round(weeks) * NS_PER_SECOND, weeks)
    assert length == pytest.approx(1.0, rel=1e-6)
    assert way.looks < 2_000_000


def test_a_mark_keeps_the_distance_so_far() -> None:
    odometer = Odometer(Circle())
    odometer.mark(2 * NS_PER_SECOND, HOUR)
    assert odometer.state.distance == pytest.approx(2.0, rel=1e-5)
    assert odometer.at(3 * NS_PER_SECOND, HOUR) == pytest.approx(3.0, rel=1e-5)
