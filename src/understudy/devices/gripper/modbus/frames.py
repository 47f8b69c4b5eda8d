"""Frames of Modbus RTU and TCP: cut out of a stream of bytes, and built.

    RTU   unit | function | data … | CRC, 2 bytes            at most 256 bytes
    TCP   transaction, 2 | 0, 2 | length, 2 | unit | function | data …

The 3.5 characters of silence between RTU frames cannot be seen through a pseudo-terminal or a USB
adapter. The end of a frame follows from its function and its byte count, as pymodbus knows them; a
frame of an unknown function ends where its CRC is right. After a pause the session calls `silence`:
what is left of a frame is dropped then, so that garbage never shifts the frames behind it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from pymodbus.exceptions import ModbusException
from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU, ExceptionResponse, ModbusPDU

LONGEST_RTU = 256
SHORTEST_RTU = 4
HEADER = 6
"""Bytes of the header of TCP before those that its length counts."""
LENGTHS = range(2, 255)
EXCEPTION_BIT = 0x80
Kind = Literal["rtu", "tcp"]
Side = Literal["requests", "answers"]


class Frame(NamedTuple):
    """``pdu``: function and data. ``transaction``: 0 for RTU."""

    unit: int
    transaction: int
    pdu: bytes


class LineRules(NamedTuple):
    """What differs between a serial line and TCP. `shared`: several devices hear a request, so that
    there are broadcasts and foreign answers, and silence ends a frame. `numbered`: an answer has
    the transaction of its request. `itself`: units that mean the device at the other end, whatever
    its own is."""

    shared: bool
    numbered: bool
    itself: tuple[int, ...] = ()


LINE_RULES: Mapping[Kind, LineRules] = {
    "rtu": LineRules(shared=True, numbered=False),
    "tcp": LineRules(shared=False, numbered=True, itself=(0, 255)),
}


class FrameReader(Protocol):
    """Cuts one direction of a connection into frames."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that end in ``data``; those with a wrong CRC are left out."""
        ...

    def silence(self) -> None:
        """Nothing has come for a while: what is left of a frame is dropped."""
        ...

    @property
    def part(self) -> bytes:
        """What was read of a frame that has not ended."""
        ...

    @property
    def broken(self) -> bool:
        """The stream cannot be read any more."""
        ...


def build_frame(kind: Kind, frame: Frame) -> bytes:
    """The bytes of a frame."""
    framer = _FRAMERS[kind]
    data: bytes = framer.encode(frame.pdu, frame.unit, frame.transaction)
    return data


def frame_reader(kind: Kind, side: Side, part: bytes = b"") -> FrameReader:
    """A reader; ``part``: what another one had read of a frame."""
    return RtuReader(side, part) if kind == "rtu" else TcpReader(part)


class RtuReader:
    """`FrameReader` of requests or of answers."""

    broken = False

    def __init__(self, side: Side, part: bytes = b"") -> None:
        self._classes = _CLASSES[side]
        self._part = part

    @property
    def part(self) -> bytes:
        return self._part

    def silence(self) -> None:
        self._part = b""

    def feed(self, data: bytes) -> list[Frame]:
        self._part += data
        frames = []
        while size := self._size():
            whole, self._part = self._part[:size], self._part[size:]
            if check_sum(whole[:-2]) == whole[-2:]:
                frames.append(Frame(whole[0], 0, whole[1:-2]))
        return frames

    def _size(self) -> int:
        """Size of the first frame; 0 if it has not ended."""
        part = self._part
        if len(part) < SHORTEST_RTU:
            return 0
        known = self._classes.get(part[1])
        try:
            size = known.calculateRtuFrameSize(part) if known else 0
        except ModbusException:
            size, known = 0, None
        if known and size <= LONGEST_RTU and (size or len(part) < LONGEST_RTU):
            return size if 0 < size <= len(part) else 0
        too_long = LONGEST_RTU if len(part) >= LONGEST_RTU else 0
        return _size_by_check_sum(part[:LONGEST_RTU]) or too_long


class TcpReader:
    """`FrameReader`; it is broken by a header that is not one of Modbus."""

    def __init__(self, part: bytes = b"") -> None:
        self._part = part
        self.broken = False

    @property
    def part(self) -> bytes:
        return self._part

    def silence(self) -> None:
        """A TCP connection loses no bytes: the rest of the frame follows."""

    def feed(self, data: bytes) -> list[Frame]:
        self._part += data
        frames = []
        while len(self._part) >= HEADER and not self.broken:
            length = int.from_bytes(self._part[4:HEADER], "big")
            if self._part[2:4] != b"\0\0" or length not in LENGTHS:
                self.broken, self._part = True, b""
            elif len(self._part) < HEADER + length:
                break
            else:
                _, unit, transaction, pdu = _FRAMERS["tcp"].decode(self._part[: HEADER + length])
                frames.append(Frame(unit, transaction, pdu))
                self._part = self._part[HEADER + length :]
        return frames


def check_sum(data: bytes) -> bytes:
    """The CRC of an RTU frame, in the order in which it is sent."""
    return FramerRTU.compute_CRC(data).to_bytes(2, "big")


def _size_by_check_sum(data: bytes) -> int:
    """Size of the shortest frame at the beginning with a right CRC; 0: there is none."""
    crc = 0xFFFF
    for at, byte in enumerate(data[:-2]):
        crc = (crc >> 8) ^ FramerRTU.crc16_table[(crc ^ byte) & 0xFF]
        if at >= 1 and data[at + 1 : at + 3] == crc.to_bytes(2, "little"):
            return at + 3
    return 0


_FRAMERS: Mapping[Kind, FramerRTU | FramerSocket] = {
    "rtu": FramerRTU(DecodePDU(True)),
    "tcp": FramerSocket(DecodePDU(True)),
}
_EXCEPTIONS: dict[int, type[ModbusPDU]] = dict.fromkeys(
    range(EXCEPTION_BIT, 2 * EXCEPTION_BIT), ExceptionResponse
)
_CLASSES: Mapping[Side, Mapping[int, type[ModbusPDU]]] = {
    "requests": {code: pair[0] for code, pair in DecodePDU.pdu_table.items()},
    "answers": {code: pair[1] for code, pair in DecodePDU.pdu_table.items()} | _EXCEPTIONS,
}
