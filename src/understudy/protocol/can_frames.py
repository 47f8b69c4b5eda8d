"""CAN frames as bytes, 16 for each, in the layout of Linux (`struct can_frame`).

    bytes 0–3   identifier, little-endian; bit 31: it has 29 bits, bit 30: remote request
    byte 4      number of data bytes, 0 … 8
    bytes 8–15  data, filled up with zeros

A wire carries whole frames between a bus and a driver.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

SIZE = 16
EXTENDED, REMOTE = 1 << 31, 1 << 30
IDENTIFIER = (1 << 29) - 1
LARGEST_STANDARD = 0x7FF
LONGEST = 8
_LAYOUT = struct.Struct("<IB3x8s")


class CanFrame(NamedTuple):
    """A frame with up to 8 bytes. ``id`` is the identifier with its flags, as in the first four
    bytes; a plain frame with 11 bits has none."""

    id: int
    data: bytes

    def pack(self) -> bytes:
        return _LAYOUT.pack(self.id, len(self.data), self.data)


def unpack(data: bytes) -> Iterator[CanFrame]:
    """The whole frames in ``data``."""
    for at in range(0, len(data) - SIZE + 1, SIZE):
        identifier, length, content = _LAYOUT.unpack_from(data, at)
        yield CanFrame(identifier, content[: min(length, LONGEST)])
