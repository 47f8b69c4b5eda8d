"""Changing a value of a cell file leaves everything else as it is."""

import pytest
import yaml

from understudy.config import read_config
from understudy.errors import ConfigError
from understudy.offline.fit.cell_file import with_value, with_values
from understudy.offline.fit.section import Interval, RobotFit, parsed

BLOCK = """robots:
  mill:   # ours
    kind: machine
    settings:
      120: 500   # mm/s2
      121: 500
"""


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        (BLOCK, ("robots", "mill", "settings", 120), BLOCK.replace("120: 500", "120: 7")),
        ("a: {b: 1, c: 2}  # d\n", ("a", "b"), "a: {b: 7, c: 2}  # d\n"),
        ("a: {c: 2}\n", ("a", "b"), "a: {b: 7, c: 2}\n"),
        ("a: 1\n", ("b", "c"), "a: 1\nb: {c: 7}\n"),
        ("a: [1, 2, 3]\n", ("a", 1), "a: [1, 7, 3]\n"),
        ("a:\n  b:\nc: 1\n", ("a", "b", "d"), "a:\n  b: {d: 7}\nc: 1\n"),
        ("", ("a", "b"), "a: {b: 7}\n"),
    ],
)
def test_one_value_is_changed(text: str, keys: tuple[str | int, ...], expected: str) -> None:
    assert with_value(text, keys, "7") == expected


def test_a_key_is_added_to_a_block() -> None:
    text = with_value(BLOCK, ("robots", "mill", "settings", 11), "0.02")
    assert yaml.safe_load(text)["robots"]["mill"]["settings"] == {11: 0.02, 120: 500, 121: 500}
    assert "# ours" in text


def test_a_value_is_not_put_into_a_text() -> None:
    with pytest.raises(ConfigError, match="no mapping"):
        with_value("a: b\n", ("a", "c"), "7")


def test_a_configuration_with_other_values() -> None:
    config = read_config(BLOCK, "mill.yaml")
    changed = with_values(config, {"robots.mill.settings.121": 7.0})
    assert changed.robots["mill"].config.settings == {120: 500.0, 121: 7.0}
    with pytest.raises(ConfigError, match="no value at this key"):
        with_values(config, {"robots.mill.settings.122": 7.0})


def test_an_interval_begins_with_its_lower_end() -> None:
    with pytest.raises(ConfigError, match="above the upper"):
        parsed({"mill": RobotFit(intervals={"seed": Interval(2.0, 1.0)})})
