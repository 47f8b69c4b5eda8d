"""The status of a mobile robot and the reason of its stop: the first condition decides."""

from itertools import product

import numpy as np
import pytest

from understudy.robots.mobile.runtime.messages import RobotStatus, StopReason
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS, Conditions, update_statuses

NAMES = Conditions._fields
HEALTHY = {
    "inputs_up": True,
    "lidar_up": True,
    "stop_on_estop": True,
    "stop_on_obstacle": True,
    "needs_nats": True,
}


def found(rows: list[dict[str, bool]], *, connected: bool = True) -> list[tuple[str, str | None]]:
    """Status and reason of each row, of which the conditions are given that are not as usual."""
    columns = [
        np.array([(HEALTHY | row).get(name, False) for row in rows], dtype=np.bool_)
        for name in NAMES
    ]
    before, stop, status, changes = (np.zeros(len(rows), dtype=np.int8) for _ in range(4))
    update_statuses(Conditions(*columns), before, stop, status, changes, connected)
    return [(STATUSES[s], STOPS[why]) for s, why in zip(status, stop, strict=True)]


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ({}, "RUNNING", None),
        ({"function_down": True}, "WARNING", None),
        ({"estop": True}, "PAUSED", "ESTOP"),
        ({"estop": True, "stop_on_estop": False}, "RUNNING", None),
        ({"blocked": True}, "PAUSED", "OBSTACLE"),
        ({"lidar_up": False}, "PAUSED", "INTERNAL_FAULT"),
        ({"lidar_up": False, "stop_on_obstacle": False}, "RUNNING", None),
        ({"inputs_up": False}, "PAUSED", "INTERNAL_FAULT"),
        ({"io_hold": True}, "PAUSED", "TRAFFIC_HOLD"),
        ({"traffic_hold": True}, "PAUSED", "TRAFFIC_HOLD"),
        ({"manual_hold": True}, "PAUSED", "MANUAL_HOLD"),
        ({"operator_hold": True}, "PAUSED", "MANUAL_HOLD"),
        ({"drive_down": True}, "ERROR", None),
    ],
)
def test_each_condition_alone(
    given: dict[str, bool], status: RobotStatus, reason: StopReason | None
) -> None:
    assert found([given]) == [(status, reason)]


def test_the_gravest_of_all_conditions_decides() -> None:
    causes = ("drive_down", "estop", "blocked", "lost", "hold", "manual", "function_down")
    rows = [dict(zip(causes, values, strict=True)) for values in product((0, 1), repeat=7)]
    given = [
        {
            "drive_down": bool(row["drive_down"]),
            "estop": bool(row["estop"]),
            "blocked": bool(row["blocked"]),
            "lidar_up": not row["lost"],
            "traffic_hold": bool(row["hold"]),
            "manual_hold": bool(row["manual"]),
            "function_down": bool(row["function_down"]),
        }
        for row in rows
    ]
    stops = {
        "estop": "ESTOP",
        "blocked": "OBSTACLE",
        "lost": "INTERNAL_FAULT",
        "hold": "TRAFFIC_HOLD",
        "manual": "MANUAL_HOLD",
    }
    for row, (status, reason) in zip(rows, found(given), strict=True):
        expected = next((why for cause, why in stops.items() if row[cause]), None)
        assert reason == expected
        levels = {"ERROR": row["drive_down"], "PAUSED": expected, "WARNING": row["function_down"]}
        assert status == next((name for name, holds in levels.items() if holds), "RUNNING")
    assert {status for status, _ in found(given, connected=False)} == {"OFFLINE"}
    free = [each | {"needs_nats": False} for each in given]
    assert found(free, connected=False) == found(free)
