"""Where a real controller is: said in one line, read once."""

import pytest

from understudy.app import read_config
from understudy.config.real import Real, RealPlace, SerialPlace, TcpPlace, place_of
from understudy.errors import ConfigError


@pytest.mark.parametrize(
    ("to", "place"),
    [
        ("tcp://192.168.0.10:5000", TcpPlace("192.168.0.10", 5000)),
        ("tcp://[::1]:23", TcpPlace("::1", 23)),
        ("serial:///dev/ttyACM0", SerialPlace("/dev/ttyACM0", 115200)),
        ("serial:///dev/ttyUSB1?baud=250000", SerialPlace("/dev/ttyUSB1", 250000)),
    ],
)
def test_places(to: str, place: RealPlace) -> None:
    assert place_of(Real(to)) == place
    assert place_of(Real(str(place))) == place


@pytest.mark.parametrize(
    "to",
    [
        "", "192.168.0.10:5000", "tcp://host", "tcp://host:0", "tcp://host:99999", "tcp://:5000",
        "tcp://host:1/x", "serial://ttyACM0", "serial:///dev/x?baud=fast", "serial:///dev/x?baud=1",
        "serial:///dev/x?speed=9600", "http://host:80", "tcp://[::1:5",
    ],
)  # fmt: skip
def test_what_is_no_place(to: str) -> None:
    with pytest.raises(ConfigError, match="tcp://HOST:PORT or serial:///dev/NAME"):
        place_of(Real(to))


def test_a_cell_file_says_where_and_is_told_its_line() -> None:
    text = "controller: auto\nrobots:\n  b:\n    kind: point\n    real: {to: 'tcp://h:1'}\n"
    config = read_config(text, "cell.yaml")
    assert (config.head.controller, config.robots["b"].real) == ("auto", TcpPlace("h", 1))
    assert config.digest == read_config(text.replace("auto", "real"), "cell.yaml").digest
    with pytest.raises(ConfigError, match=r"cell.yaml:5: robots.b.real.to: not a place"):
        read_config(text.replace("tcp://h:1", "h"), "cell.yaml")
    with pytest.raises(ConfigError, match="controller"):
        read_config(text.replace("auto", "maybe"), "cell.yaml")
