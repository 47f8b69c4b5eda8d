"""The address of a real controller in a cell file."""

import pytest

from understudy.config import read_config
from understudy.errors import ConfigError
from understudy.wire.dial import Destination


def test_a_wrong_real_address_is_reported_with_its_line() -> None:
    text = "controller: auto\nrobots:\n  b:\n    kind: text_robot\n    real: {to: 'tcp://h:1'}\n"
    config = read_config(text, "cell.yaml")
    assert (config.head.controller, config.robots["b"].real) == ("auto", Destination("h", 1))
    assert config.digest == read_config(text.replace("auto", "real"), "cell.yaml").digest
    with pytest.raises(ConfigError, match=r"cell.yaml:5: robots.b.real.to: not an address"):
        read_config(text.replace("tcp://h:1", "h"), "cell.yaml")
    with pytest.raises(ConfigError, match="controller"):
        read_config(text.replace("auto", "maybe"), "cell.yaml")
