"""Copies of robots are spread over the free floor."""

import math
from itertools import pairwise

import numpy as np
import pytest

from understudy.app.build import build_cell
from understudy.config import load_config, read_config
from understudy.config.cell import CellConfig
from understudy.config.shards import Shard, with_robots, with_shard
from understudy.errors import ConfigError
from understudy.robots.mobile.group import SimulatedHardware
from understudy.robots.mobile.placement import CLEARANCES

HALF_LENGTH, HALF_WIDTH = 0.45, 0.325
ROOMS = """
robots:
  robot-1: {{kind: mobile, file: amr.json, pose: [2, 2, 30]}}
environment:
  objects:
    - {{name: floor, type: box, position_mm: [5000, 2000, -50], dimensions_mm: [10000, 4000, 100]}}
    - {{name: wall, type: box, position_mm: [5000, {y}, 500], dimensions_mm: [100, {wide}, 1000]}}
"""


def poses(config: CellConfig) -> dict[str, tuple[float, float, float]]:
    return {name: robot.config.pose for name, robot in config.robots.items()}


def half_box(yaw_deg: float) -> tuple[float, float]:
    c, s = abs(math.cos(math.radians(yaw_deg))), abs(math.sin(math.radians(yaw_deg)))
    return HALF_LENGTH * c + HALF_WIDTH * s, HALF_LENGTH * s + HALF_WIDTH * c


def gap(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """Metres between the upright boxes around two robots; the largest of both axes."""
    x, y = np.add(half_box(one[2]), half_box(other[2])).tolist()
    apart: float = max(abs(one[0] - other[0]) - x, abs(one[1] - other[1]) - y)
    return round(apart, 6)


def nearest_robots(found: dict[str, tuple[float, float, float]]) -> float:
    places = sorted(found.values())
    return min(gap(one, other) for n, one in enumerate(places) for other in places[n + 1 :])


@pytest.mark.parametrize("count", [11, 50, 200])
def test_robots_stand_apart_from_each_other_and_from_walls_and_shelves(count: int) -> None:
    config = with_robots(load_config("fleet"), count)
    found = poses(config)
    originals = poses(load_config("fleet"))
    assert {name: found[name] for name in originals} == originals
    assert nearest_robots(found) >= CLEARANCES[-1]
    hardware = build_cell(config).components["fleet.hardware"]
    assert isinstance(hardware, SimulatedHardware)
    assert hardware.graph.mock is not None
    for row, (x, y, _) in enumerate(found.values()):
        assert 0.0 < x < 20.0
        assert 0.0 < y < 14.0
        assert hardware.graph.mock.clearance(row) >= CLEARANCES[-1]


def test_few_robots_stand_far_apart_and_all_over_the_floor() -> None:
    found = poses(with_robots(load_config("fleet"), 40))
    assert nearest_robots(found) >= 0.8  # the originals of the file
    copies = list(found.values())[10:]
    assert nearest_robots({str(place): place for place in copies}) >= CLEARANCES[0]
    for low, high in pairwise(np.linspace(0.0, 14.0, 3)):
        assert any(low <= y <= high for _, y, _ in copies)


def test_every_shard_finds_the_same_places() -> None:
    whole = with_robots(load_config("fleet"), 60)
    again = with_robots(load_config("fleet"), 60, shards=3)
    found = [poses(with_shard(again, Shard(number, 3))) for number in (1, 2, 3)]
    assert {name: pose for each in found for name, pose in each.items()} == poses(whole)


def test_a_floor_without_room_says_how_many_fit() -> None:
    with pytest.raises(ConfigError, match=r"room for \d+ robots, 0.1 m apart") as told:
        with_robots(load_config("fleet"), 1000)
    most = int(str(told.value).partition("room for ")[2].split()[0])
    assert most > 200
    assert nearest_robots(poses(with_robots(load_config("fleet"), most))) >= CLEARANCES[-1]
    with pytest.raises(ConfigError, match="room"):
        with_robots(load_config("fleet"), most + 1)


def test_the_hall_has_room_for_thousands() -> None:
    found = poses(with_robots(load_config("hall"), 5000))
    assert len(set(found.values())) == 5000


def test_a_room_that_no_robot_gets_to_stays_empty() -> None:
    closed = read_config(ROOMS.format(y=2000, wide=4000), "rooms.yaml")
    assert all(x < 5.0 for x, _, _ in poses(with_robots(closed, 6)).values())
    with pytest.raises(ConfigError, match="room for"):
        with_robots(closed, 20)
    opened = read_config(ROOMS.format(y=1000, wide=2000), "rooms.yaml")
    assert any(x > 5.0 for x, _, _ in poses(with_robots(opened, 20)).values())
    assert nearest_robots(poses(with_robots(opened, 20))) >= CLEARANCES[-1]


def test_a_cell_without_a_floor_has_room_for_any_number() -> None:
    open_ = read_config("robots: {r1: {kind: mobile, file: amr.json, pose: [0, 0, 0]}}", "o.yaml")
    found = poses(with_robots(open_, 300))
    assert len(found) == 300
    assert nearest_robots(found) >= CLEARANCES[0]
