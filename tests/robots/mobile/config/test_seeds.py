"""Which seed of a robot counts."""

import json

import pytest
from tests.robots.mobile.config.test_robot_file import EXAMPLE

from understudy.robots.mobile.config.fleet_keys import seed_of
from understudy.robots.mobile.config.robot_file import read_robot_file


@pytest.mark.parametrize(
    ("option", "own", "expected"),
    [(3, 7, 3), (0, 7, 0), (None, 7, 7), (None, 0, 0), (3, None, 3), (None, None, 11)],
)
def test_the_option_counts_then_the_profile_then_the_cell(
    option: int | None, own: int | None, expected: int
) -> None:
    document = json.loads(EXAMPLE.read_text())
    document["runtime"]["simulationProfile"]["randomSeed"] = own
    assert seed_of(read_robot_file(json.dumps(document), "f"), option, 11) == expected


def test_a_robot_without_a_profile_has_the_seed_of_the_cell() -> None:
    document = json.loads(EXAMPLE.read_text())
    del document["runtime"]["simulationProfile"]
    assert seed_of(read_robot_file(json.dumps(document), "f"), None, 5) == 5
