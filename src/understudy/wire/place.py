"""Where somebody can be called, as people write it: on the command line as in a cell file."""

import re

from understudy.errors import ConfigError
from understudy.wire.dial import Destination
from understudy.wire.serial import BAUD, BAUDS, Device

FORMS = "HOST:PORT or tcp://HOST:PORT; /dev/NAME[@BAUD] or serial:///dev/NAME?baud=115200"

_TCP = re.compile(r"(?:tcp://)?(?:\[([0-9A-Fa-f:.%]+)\]|([^\s/?#@:\[\]]*)):([0-9]{1,5})")
_DEVICE = re.compile(r"(?:(?:serial|pty):(?://)?)?(/(?!/)[^@?]+)(?:(?:@|\?baud=)([0-9]{1,7}))?")


def parse_place(text: str) -> Destination | Device:
    """Without a host: this machine."""
    if found := _TCP.fullmatch(text):
        port = int(found[3])
        if 1 <= port <= 65535:
            return Destination(found[1] or found[2] or "127.0.0.1", port)
    elif found := _DEVICE.fullmatch(text):
        baud = int(found[2] or BAUD)
        if baud in BAUDS:
            return Device(found[1], baud)
    raise ConfigError("not a place", value=text, allowed=FORMS)
