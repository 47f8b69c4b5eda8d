"""The status of a mobile robot: OFFLINE > ERROR > PAUSED > WARNING > RUNNING."""

from itertools import product

import pytest

from understudy.jobs.mobile.status import Condition, fault_level, status_of

EVERYTHING_BAD = Condition(nats_connected=False, drive_down=True, function_down=True, stop="ESTOP")


@pytest.mark.parametrize(
    ("health", "status"),
    [
        (Condition(), "RUNNING"),
        (Condition(function_down=True), "WARNING"),
        (Condition(stop="OBSTACLE", function_down=True), "PAUSED"),
        (Condition(drive_down=True, stop="ESTOP", function_down=True), "ERROR"),
        (EVERYTHING_BAD, "OFFLINE"),
        (Condition(nats_connected=False, needs_nats=False), "RUNNING"),
    ],
)
def test_the_gravest_condition_decides(health: Condition, status: str) -> None:
    assert status_of(health) == status


def test_every_combination_has_the_status_of_its_gravest_condition() -> None:
    order = ["RUNNING", "WARNING", "PAUSED", "ERROR", "OFFLINE"]
    for offline, drive, stop, function in product((False, True), repeat=4):
        health = Condition(
            nats_connected=not offline,
            drive_down=drive,
            function_down=function,
            stop="TRAFFIC_HOLD" if stop else None,
        )
        conditions = (function, stop, drive, offline)
        gravest = max((n for n, holds in enumerate(conditions, 1) if holds), default=0)
        assert status_of(health) == order[gravest]


def test_the_fault_level_is_that_of_the_worst_motor() -> None:
    assert fault_level(Condition()) == "NONE"
    assert fault_level(Condition(function_down=True)) == "WARN"
    assert fault_level(EVERYTHING_BAD) == "ERROR"
