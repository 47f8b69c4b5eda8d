"""Modbus RTU and TCP: frames in a stream of bytes, and the requests of a client.

    RTU   unit | function | data … | CRC, 2 bytes            at most 256 bytes
    TCP   transaction, 2 | 0, 2 | length, 2 | unit | function | data …

The 3.5 characters of silence between RTU frames cannot be seen through a pseudo-terminal or a USB
adapter. The end of a frame follows from its function and its byte count, as pymodbus knows them; a
frame of an unknown function ends where its CRC is right. After a pause the session calls `silence`:
what is left of a frame is dropped then, so that garbage never shifts the frames behind it.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pymodbus.exceptions import ModbusException
from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU, ExceptionResponse, ModbusPDU

LONGEST_RTU = 256
SHORTEST_RTU = 4
HEADER = 6
"""Bytes of the header of TCP before those that its length counts."""
LENGTHS = range(2, 255)
EXCEPTION_BIT = 0x80
READ_BITS, READ_HOLDING, READ_INPUT = 2, 3, 4
WRITE_ONE, WRITE_BITS, WRITE, READ_WRITE = 6, 15, 16, 23
"""Functions. READ_BITS reads discrete inputs, WRITE_BITS writes coils."""
WRITING = (WRITE_ONE, WRITE_BITS, WRITE)
Kind = Literal["rtu", "tcp"]
Side = Literal["requests", "answers"]


class Frame(NamedTuple):
    """A frame of Modbus: ``pdu`` is function and data; ``transaction`` is 0 for RTU."""

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


def build_frame(kind: Kind, frame: Frame) -> bytes:
    """The bytes of a frame."""
    framer = _FRAMERS[kind]
    data: bytes = framer.encode(frame.pdu, frame.unit, frame.transaction)
    return data


class RtuReader:
    """Cuts the requests or the answers of a connection into frames."""

    broken = False

    def __init__(self, side: Side, part: bytes = b"") -> None:
        self._classes = _CLASSES[side]
        self.part = part
        """What was read of a frame that has not ended."""

    def silence(self) -> None:
        """Drops what is left of a frame: nothing has come for a while."""
        self.part = b""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that end in ``data``; those with a wrong CRC are left out."""
        self.part += data
        frames = []
        while size := self._size():
            whole, self.part = self.part[:size], self.part[size:]
            if check_sum(whole[:-2]) == whole[-2:]:
                frames.append(Frame(whole[0], 0, whole[1:-2]))
        return frames

    def _size(self) -> int:
        """Size of the first frame; 0 if it has not ended."""
        part = self.part
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
    """Cuts one direction of a connection into frames.

    It is `broken` by a header that is not one of Modbus: the stream cannot be read any more.
    """

    def __init__(self, part: bytes = b"") -> None:
        self.part = part
        self.broken = False

    def silence(self) -> None:
        """A TCP connection loses no bytes: the rest of the frame follows."""

    def feed(self, data: bytes) -> list[Frame]:
        self.part += data
        frames = []
        while len(self.part) >= HEADER and not self.broken:
            length = int.from_bytes(self.part[4:HEADER], "big")
            if self.part[2:4] != b"\0\0" or length not in LENGTHS:
                self.broken, self.part = True, b""
            elif len(self.part) < HEADER + length:
                break
            else:
                _, unit, transaction, pdu = _FRAMERS["tcp"].decode(self.part[: HEADER + length])
                frames.append(Frame(unit, transaction, pdu))
                self.part = self.part[HEADER + length :]
        return frames


FrameReader = RtuReader | TcpReader


def frame_reader(kind: Kind, side: Side, part: bytes = b"") -> FrameReader:
    """A reader that goes on with ``part``, what another one had read of a frame."""
    return RtuReader(side, part) if kind == "rtu" else TcpReader(part)


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

# ── requests of a client, and what fits them as an answer ───────────────────────────────────────


def read_request(function: int, address: int, count: int) -> bytes:
    """The PDU that reads registers or bits."""
    return struct.pack(">BHH", function, address, count)


def write_request(address: int, values: Sequence[int], *, single: bool = False) -> bytes:
    """The PDU that writes registers; with ``single`` one register is written with function 6."""
    if single and len(values) == 1:
        return struct.pack(">BHH", WRITE_ONE, address, values[0])
    count = len(values)
    return struct.pack(f">BHHB{count}H", WRITE, address, count, 2 * count, *values)


def write_bits_request(address: int, bits: Sequence[int]) -> bytes:
    """The PDU that writes coils."""
    size = (len(bits) + 7) // 8
    packed = sum(bool(bit) << at for at, bit in enumerate(bits)).to_bytes(size, "little")
    return struct.pack(">BHHB", WRITE_BITS, address, len(bits), size) + packed


def answer_fits(request: bytes, answer: bytes) -> bool:
    """Whether a PDU can be the answer to the PDU of a request."""
    if answer[0] & ~EXCEPTION_BIT != request[0]:
        return False
    if answer[0] & EXCEPTION_BIT:
        return len(answer) == 2
    if request[0] in WRITING:
        return answer == request[:5]
    count = int.from_bytes(request[3:5], "big")
    size = (count + 7) // 8 if request[0] == READ_BITS else 2 * count
    return answer[1:2] == bytes([size]) and len(answer) == 2 + size


def exception_number(answer: bytes) -> int:
    """Why the device refuses the request; 0: it was carried out."""
    return answer[1] if answer[0] & EXCEPTION_BIT else 0


def read_values(answer: bytes) -> list[int]:
    """The registers or bits that were read; bits are filled up to whole bytes."""
    data = answer[2:]
    if answer[0] == READ_BITS:
        return [byte >> bit & 1 for byte in data for bit in range(8)]
    return list(struct.unpack(f">{len(data) // 2}H", data))
