"""What the runtime foresees is what the simulated drives do."""

import numpy as np
from tests.robots.mobile.random_worlds import Watched

from understudy.robots.mobile import drive


def test_the_speeds_after_a_tick_are_foreseen() -> None:
    """The oracle is the drive itself, in random worlds with commands of all kinds."""
    fleet = Watched(6, seed=11, rate=50)
    table = fleet.fleet._tickers[0].table
    moving = 0
    for number in range(1, 301):
        fleet.watch_tick(number)
        speeds = fleet.hardware.motors.body[:, drive.FORWARD : drive.TURNING + 1]
        given = table.command.any(axis=1)
        moving += int(np.count_nonzero(given))
        np.testing.assert_allclose(speeds[given], table.foreseen[given], atol=1e-9)
        np.testing.assert_allclose(speeds, table.speeds, atol=1e-9)
    assert moving > 1000
