"""Robots with a lidar never touch an obstacle, whatever they are commanded."""

import pytest
from tests.robots.mobile.random_worlds import Figures, Watched


def check(figures: Figures, worlds: int) -> None:
    assert not figures.touches
    assert figures.least >= 0.0
    assert figures.travelled > 4 * worlds
    assert figures.stops > worlds


@pytest.mark.parametrize(("worlds", "rate", "seed"), [(11, 50, 1), (8, 100, 2), (6, 200, 3)])
def test_no_robot_touches_an_obstacle(worlds: int, rate: int, seed: int) -> None:
    check(Watched(worlds, seed, rate).watch(6.0), worlds)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_robot_touches_an_obstacle_in_five_hundred_worlds(seed: int) -> None:
    figures = Watched(25, seed, (50, 100, 200)[seed % 3]).watch(20.0)
    print(figures)
    check(figures, 25)
