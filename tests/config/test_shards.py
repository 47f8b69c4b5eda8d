"""More robots than the cell file has, and parts of them for several processes."""

import pytest
from msgspec.structs import replace

from understudy.config import load_config, read_config
from understudy.config.shards import Shard, parse_shard, with_robots, with_shard
from understudy.errors import ConfigError

MIXED = """
robots:
  bench: {kind: text_robot}
  robot-1: {kind: mobile, file: amr.json}
"""


def test_copies_continue_the_names_and_are_as_their_originals_but_for_the_pose() -> None:
    config = with_robots(load_config("fleet"), 25)
    assert list(config.robots) == [f"robot-{number}" for number in range(1, 26)]
    robots = config.robots
    for name, of in (("robot-11", "robot-1"), ("robot-25", "robot-5")):
        copy, original = robots[name].config, robots[of].config
        assert copy.pose != original.pose
        assert replace(copy, pose=original.pose) == original


def test_fewer_robots_are_the_first_ones() -> None:
    assert list(with_robots(load_config("fleet"), 3).robots) == ["robot-1", "robot-2", "robot-3"]


def test_robots_of_other_kinds_stay_as_they_are() -> None:
    robots = with_robots(read_config(MIXED, "mixed.yaml"), 5).robots
    assert "bench" in robots
    assert sum(robot.kind == "mobile" for robot in robots.values()) == 5


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_robot_is_in_one_shard(count: int) -> None:
    whole = with_robots(load_config("fleet"), 50)
    shards = [with_shard(whole, Shard(number, count)).robots for number in range(1, count + 1)]
    names = [name for robots in shards for name in robots]
    assert sorted(names) == sorted(whole.robots)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_more_robots_change_the_shard_of_none() -> None:
    small = with_shard(with_robots(load_config("fleet"), 20), Shard(2, 4)).robots
    large = with_shard(with_robots(load_config("fleet"), 40), Shard(2, 4)).robots
    assert list(small) == ["robot-2", "robot-6", "robot-10", "robot-14", "robot-18"]
    assert set(small) <= set(large)


def test_other_shards_connect_to_the_server_of_the_first() -> None:
    whole = with_robots(load_config("fleet"), 20)
    first = with_shard(whole, Shard(1, 2)).endpoints()["nats"]
    second = with_shard(whole, Shard(2, 2)).endpoints()["nats"]
    assert first.listens_on() == ("127.0.0.1", 4222)
    assert second.listens_on() is None


def test_other_robots_and_devices_are_in_the_first_shard_only() -> None:
    whole = with_robots(read_config(MIXED, "mixed.yaml"), 10)
    assert "bench" in with_shard(whole, Shard(1, 2)).robots
    assert "bench" not in with_shard(whole, Shard(2, 2)).robots


def test_many_shards_have_more_robots_than_one_process() -> None:
    with pytest.raises(ConfigError, match="1 to 20000"):
        with_robots(read_config(MIXED, "mixed.yaml"), 30_000)
    whole = with_robots(read_config(MIXED, "mixed.yaml"), 30_000, shards=100)
    assert len(with_shard(whole, Shard(100, 100)).robots) == 300
    with pytest.raises(ConfigError, match="1 to 1000000"):
        with_robots(load_config("fleet"), 1_000_001, shards=100)


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "a/b", "1/", "-1/4", "1/99999", "1/4 "])
def test_a_shard_that_cannot_be(text: str) -> None:
    with pytest.raises(ConfigError, match="K/N"):
        parse_shard(text)


def test_what_cannot_be_divided_is_named() -> None:
    with pytest.raises(ConfigError, match="no mobile robots"):
        with_robots(load_config("text_robot"), 5)
    with pytest.raises(ConfigError, match="more shards than robots"):
        with_shard(with_robots(load_config("fleet"), 1), Shard(2, 2))
    with pytest.raises(ConfigError, match="1 to"):
        with_robots(load_config("fleet"), 10**9)
