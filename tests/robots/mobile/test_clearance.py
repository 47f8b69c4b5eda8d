"""Robots with a lidar never touch an obstacle, whatever they are commanded."""

import pytest
from tests.robots.mobile.random_worlds import Watched


@pytest.mark.parametrize(
    ("worlds", "rate", "seed"),
    [(9, 50, 1), (8, 100, 2), (8, 200, 3)],
)
def test_no_robot_touches_an_obstacle(worlds: int, rate: int, seed: int) -> None:
    watched = Watched(worlds, seed, rate)
    figures = watched.watch(8.0)
    assert not figures.touches
    assert figures.least >= 0.0
    assert figures.travelled > 4 * worlds
    assert figures.stops > worlds
