"""Addresses: the same format and the same error for `--to` and for `real: {to}`."""

import pytest

from understudy.config.cell import Real, place_of
from understudy.errors import ConfigError
from understudy.wire.dial import FORMS, Destination, Device, parse_place

PLACES = [
    ("/dev/ttyACM0", Device("/dev/ttyACM0")),
    ("/dev/ttyACM0@250000", Device("/dev/ttyACM0", 250_000)),
    ("pty:/dev/pts/3", Device("/dev/pts/3")),
    ("serial:/dev/ttyUSB1", Device("/dev/ttyUSB1")),
    ("serial:///dev/ttyACM0", Device("/dev/ttyACM0", 115200)),
    ("serial:///dev/ttyUSB1?baud=250000", Device("/dev/ttyUSB1", 250_000)),
    ("10.0.0.1:2323", Destination("10.0.0.1", 2323)),
    ("tcp://10.0.0.1:2323", Destination("10.0.0.1", 2323)),
    (":2323", Destination("127.0.0.1", 2323)),
    ("[::1]:23", Destination("::1", 23)),
    ("tcp://[::1]:23", Destination("::1", 23)),
]
NO_PLACES = [
    "", "nowhere", "pty:", "/dev/x@", "/dev/x@1", "host:0", "h:99999", "tcp://host", "tcp://host:0",
    "tcp://host:1/x", "serial://ttyACM0", "serial:///dev/x?baud=fast", "serial:///dev/x?baud=1",
    "serial:///dev/x?speed=9600", "http://host:80", "tcp://[::1:5", "a b:5", "host:5\n",
]  # fmt: skip


@pytest.mark.parametrize(("text", "place"), PLACES)
def test_addresses_are_read_from_text(text: str, place: object) -> None:
    assert parse_place(text) == place_of(Real(text)) == place
    assert parse_place(str(place)) == place


@pytest.mark.parametrize("text", NO_PLACES)
def test_a_wrong_address_has_the_same_message_on_the_command_line_and_in_a_cell_file(
    text: str,
) -> None:
    with pytest.raises(ConfigError) as on_the_command_line:
        parse_place(text)
    with pytest.raises(ConfigError) as in_a_cell_file:
        place_of(Real(text))
    assert FORMS in str(on_the_command_line.value)
    assert str(in_a_cell_file.value) == f"to: {on_the_command_line.value}"
